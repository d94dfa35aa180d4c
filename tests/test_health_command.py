"""The health command: input that is none, history, runs, live drives, and what it shows."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli, Loop, make_result, one_sentence
from health_samples import (
    INTEL_ROWS,
    PHISON_ROWS,
    SAMSUNG_ROWS,
    later,
    nvme,
    sas,
    sata,
    smartctl,
)
from ssdlab.answers import health as answers
from ssdlab.cli.answer import View
from ssdlab.errors import InputError, SsdlabError
from ssdlab.rating import parse_tbw
from ssdlab.results import Result
from ssdlab.smart import judge, parse, project, read_document
from ssdlab.smart.report import HealthReport
from ssdlab.store import RunStore


def stored(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


# Input that is none


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("[]", "is no object of JSON"),
        ("null", "is no object of JSON"),
        ("{}", "is not from smartctl"),
        ('{"fio version": "fio-3.33", "jobs": []}', "a result of fio"),
        ('{"smartctl": 3}', "is not from smartctl"),
        ("[" * 100_000, "no JSON"),
        ('{"smartctl": {"exit_status": 0}}', "reports no SMART data"),
    ],
)
def test_what_is_no_document_of_smartctl_is_one_sentence(
    cli: Cli, tmp_path: Path, content: str, told: str
) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    assert told in one_sentence(cli("health", path))


@pytest.mark.parametrize(
    ("status", "message", "told"),
    [
        (1, "/dev/vda: Unable to detect device type", "could not read the drive (/dev/vda: Unable"),
        (2, "Smartctl open device: /dev/sda failed: Permission denied", "run as root"),
        (2, "Device is in STANDBY mode, exit(2)", "the drive is in standby"),
        (2, "", "exit 2"),
    ],
)
def test_smartctls_own_failures_are_one_sentence(
    cli: Cli, tmp_path: Path, status: int, message: str, told: str
) -> None:
    messages = [message] if message else []
    path = stored(tmp_path / "x.json", {"smartctl": smartctl(status, *messages)})
    assert told in one_sentence(cli("health", path))


def test_a_device_without_smart_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    for support, told in (
        ({"available": False}, "QEMU DISK reports no SMART data (it has no SMART)"),
        ({"available": True, "enabled": False}, "switched off"),
    ):
        document = {"smartctl": smartctl(), "model_name": "QEMU DISK", "smart_support": support}
        path = stored(tmp_path / "x.json", document)
        assert told in one_sentence(cli("health", path))


@pytest.mark.parametrize(
    "document",
    [nvme(), sata("Intel", "INTEL", INTEL_ROWS), sas()],
    ids=["nvme", "sata", "sas"],
)
def test_every_beginning_of_a_document_is_one_sentence(document: dict[str, Any]) -> None:
    whole = json.dumps(document)
    for length in range(len(whole)):
        with pytest.raises(InputError) as caught:
            read_document(whole[:length], "x.json")
        assert "\n" not in caught.value.message
    assert read_document(whole, "x.json") == document


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every value in a document."""
    found = [way] if way else []
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in items:
            found += places(one, (*way, key))
    return found


@pytest.mark.parametrize(
    "document",
    [nvme(), sata("Phison Driven SSDs", "K", PHISON_ROWS), sata("Intel", "I", INTEL_ROWS), sas()],
    ids=["nvme", "phison", "intel", "sas"],
)
def test_any_value_of_another_kind_is_read_or_is_one_sentence(document: dict[str, Any]) -> None:
    odd: list[Any] = [
        None,
        True,
        -1,
        10**30,
        1.5,
        float("nan"),
        float("inf"),
        "",
        "x/y",
        "9/",
        [],
        [[]],
        {},
    ]
    text = json.dumps(document)
    for way in places(document):
        for value in odd:
            changed = json.loads(text)
            at = changed
            for key in way[:-1]:
                at = at[key]
            at[way[-1]] = value
            judged(changed, show=False)


def judged(document: dict[str, Any], *, show: bool) -> None:
    """Reads, judges and shows; an SsdlabError in one line is as good as an answer."""
    try:
        health = parse(document, "x.json")
        findings = judge(health)
        carried = project([health], 600e12)
    except SsdlabError as error:
        assert "\n" not in error.message
        return
    assert findings
    assert carried.assumption
    if not show:
        return
    report = HealthReport("x.json", health, findings, carried)
    for reports in ([report], [report, report]):
        View().show(answers.answer(reports, {}, alone=len(reports) == 1))
    json.dumps(report.document, allow_nan=False)


def test_several_values_of_another_kind_at_once_are_no_worse() -> None:
    chance = random.Random(1)
    for document in (nvme(), sata("Samsung based SSDs", "SAMSUNG", SAMSUNG_ROWS), sas()):
        text = json.dumps(document)
        for _ in range(300):
            changed = json.loads(text)
            for way in chance.sample(places(changed), 3):
                at = changed
                try:
                    for key in way[:-1]:
                        at = at[key]
                    at[way[-1]] = chance.choice([None, "12", 0, [], {}, 300, -5])
                except (TypeError, KeyError, IndexError):
                    continue  # an outer value was changed before
            judged(changed, show=chance.random() < 0.2)


# The command


def test_one_drive_is_shown_with_all_it_tells(cli: Cli, tmp_path: Path) -> None:
    path = stored(tmp_path / "k.json", sata("Phison Driven SSDs", "KINGSTON", PHISON_ROWS))
    outcome = cli("health", path, "--attributes")
    assert outcome.status == 0, outcome.err
    lines = {line.split("\t")[0]: line for line in outcome.out.splitlines() if "\t" in line}
    assert "2.46" in lines["write amplification (WA)"]
    assert "2 %" in lines["percentage used"]
    assert "not reported" in lines["available spare"]
    assert "unknown attributes, not judged: 169 Bad_Block_Rate = 4" in outcome.out
    assert "Phison MKP_521" in outcome.out


def test_several_drives_are_a_row_each_and_findings(cli: Cli, tmp_path: Path) -> None:
    stored(tmp_path / "a.json", nvme())
    stored(tmp_path / "b.json", sata("Samsung based SSDs", "SAMSUNG B", SAMSUNG_ROWS))
    outcome = cli("health", tmp_path)
    assert outcome.status == 0, outcome.err
    rows = [line for line in outcome.out.splitlines() if line.startswith(("Example", "SAMSUNG"))]
    assert len(rows) == 3  # two drives, one finding
    assert "12 CRC errors" in rows[2]


def test_health_is_written_in_every_form(cli: Cli, tmp_path: Path) -> None:
    one = stored(tmp_path / "a.json", nvme())
    two = stored(tmp_path / "b.json", sata("Samsung based SSDs", "SAMSUNG B", SAMSUNG_ROWS))
    page, book, folder = tmp_path / "h.html", tmp_path / "h.xlsx", tmp_path / "tables"
    forms = ("--report", page, "--xlsx", book, "--csv", folder, "--quiet", "--attributes")
    alone = cli("health", one, *forms)
    assert (alone.status, alone.out, alone.err) == (0, "", "")
    assert "percentage used," in (folder / "metrics.csv").read_text()
    assert "Example NVMe 1TB: good" in page.read_text()
    several = cli("health", one, two, *forms)
    assert several.status == 0, several.err
    assert "12 CRC errors" in several.out
    assert "Example NVMe 1TB,good," in (folder / "drives.csv").read_text()
    assert "12 CRC errors" in (folder / "findings.csv").read_text()
    assert (folder / "attributes-of-samsung-b.csv").exists()
    assert "12 CRC errors" in page.read_text()
    assert book.stat().st_size > 0


def test_two_documents_on_standard_output_are_one_sentence(cli: Cli, tmp_path: Path) -> None:
    path = stored(tmp_path / "a.json", nvme())
    for other in ("--report", "--xlsx", "--prometheus"):
        said = one_sentence(cli("health", path, "--json", "-", other, "-"))
        assert "both write to standard output" in said


def test_history_is_put_to_its_drive(cli: Cli, tmp_path: Path) -> None:
    now = stored(tmp_path / "now.json", later(10, data_units_written=4_500_000))
    old = tmp_path / "old"
    old.mkdir()
    stored(old / "a.json", nvme())
    stored(old / "b.json", nvme(serial_number="another"))
    outcome = cli("health", now, "--history", old, "--tbw", "600TB", "--json", "-")
    assert outcome.status == 0, outcome.err
    carried = json.loads(outcome.out)["drives"][0]["projection"]
    assert carried["snapshots"] == 2
    assert carried["days"] == 10
    assert carried["since"]["written_bytes"] == 500_000 * 512_000
    other = stored(tmp_path / "other.json", nvme(serial_number="third"))
    said = one_sentence(cli("health", now, "--history", other))
    assert "holds no snapshot of a drive that is asked for" in said


def test_a_run_on_a_real_drive_brings_its_snapshots(cli: Cli, tmp_path: Path) -> None:
    result = make_result("real")
    result.document["ssdlab"] = {
        "target": {"kind": "fio", "name": "real"},
        "surroundings": {
            "smart": {"before": nvme(), "after": later(1, data_units_written=4_100_000)}
        },
    }
    out = tmp_path / "runs"
    folder = RunStore(out).save(result)
    outcome = cli("health", folder.name, "--out", out)
    assert outcome.status == 0, outcome.err
    assert "between 2 snapshots, 24 h 00 min apart: host writes 51.2 GB" in outcome.out
    now = stored(tmp_path / "now.json", later(3, data_units_written=4_300_000))
    for place in ("runs", out, folder):
        outcome = cli("health", now, "--history", place, "--out", out, "--json", "-")
        assert json.loads(outcome.out)["drives"][0]["projection"]["snapshots"] == 3, outcome.err


def test_a_run_without_smart_data_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    result = make_result("real")
    result.document["ssdlab"] = {"target": {"kind": "fio", "name": "real"}, "surroundings": {}}
    folder = RunStore(tmp_path / "runs").save(result)
    assert "holds no SMART data" in one_sentence(cli("health", folder))


def test_a_simulated_run_gives_the_same_table(cli: Cli, tmp_path: Path) -> None:
    job = tmp_path / "j.fio"
    job.write_text("[w]\nrw=randwrite\nbs=4k\niodepth=8\nnorandommap\nio_size=64m\n")
    out = tmp_path / "runs"
    run = ("run", job, "--on", "lab-reference", "--set", "capacity=64MiB", "--prepare", "random:1")
    assert cli(*run, "--out", out, "--quiet").status == 0
    folder = next(one for one in out.iterdir() if one.is_dir())
    outcome = cli("health", folder, "--json", tmp_path / "h.json")
    assert outcome.status == 0, outcome.err
    told = json.loads((tmp_path / "h.json").read_text())["drives"][0]["health"]
    about = Result.load(folder).ssdlab
    assert told["interface"] == "simulated"
    # The filling, the overwriting once, and the job.
    assert told["written_bytes"] == about["counters"]["host_bytes_written"] >= 128 << 20
    assert told["write_amplification"] == pytest.approx(about["waf_lifetime"], rel=1e-6)
    assert "simulated, SSD" in outcome.out


def test_nothing_that_names_a_drive_is_left_when_redacted(cli: Cli, tmp_path: Path) -> None:
    said = smartctl(4, "Read of /dev/disk/by-id/nvme-SECRETSERIAL failed")
    document = nvme(serial_number="SECRETSERIAL", smartctl=said)
    path = stored(tmp_path / "SECRETSERIAL.json", document)
    for arguments in ((), ("--attributes",), ("--json", "-"), ("--history", path)):
        outcome = cli("health", path, "--redact", *arguments)
        assert outcome.status == 0, outcome.err
        assert "SECRETSERIAL" not in outcome.out + outcome.err


def test_a_missing_smartctl_is_told_with_its_package(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = next((one for one in Path("/dev").glob("*") if one.is_block_device()), None)
    if disk is None or not (Path("/sys/class/block") / disk.name).exists():
        pytest.skip("this system has no block device")
    monkeypatch.setattr("ssdlab.smart.sources.system_program", lambda _name: None)
    said = one_sentence(cli("health", disk), 1)
    assert "sudo apt install smartmontools" in said


def test_a_live_drive_is_asked_for_all_it_tells(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disk = next((one for one in Path("/dev").glob("*") if one.is_block_device()), None)
    if disk is None or not (Path("/sys/class/block") / disk.name).exists():
        pytest.skip("this system has no block device")
    program = tmp_path / "smartctl"
    answer = stored(tmp_path / "answer.json", nvme())
    program.write_text(f'#!/bin/sh\nprintf "%s " "$@" > {tmp_path}/asked\ncat {answer}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    outcome = cli("health", disk)
    assert outcome.status == 0, outcome.err
    assert "Example NVMe 1TB: good" in outcome.out
    assert (tmp_path / "asked").read_text().split()[:2] == ["--json", "-x"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("/dev/nvme77n1",), "there is no such device"),
        (("gone.json",), "there is no such file"),
        (("/dev/null",), "is neither a drive nor a file"),
        (("demo-client",), "is a profile"),
        (("no-such-run",), 'no run is called "no-such-run"'),
        (("/proc/self/mem",), "cannot be read"),
    ],
)
def test_a_wrong_target_is_one_sentence(cli: Cli, arguments: tuple[str, ...], told: str) -> None:
    assert told in one_sentence(cli("health", *arguments))


def test_an_empty_folder_and_a_file_that_is_no_text_are_one_sentence(
    cli: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    assert "has no *.json files in it" in one_sentence(cli("health", folder))
    path = tmp_path / "x.json"
    path.write_bytes(b"\xff\xfe{}")
    assert "no text in UTF-8 (byte 0)" in one_sentence(cli("health", path))


def test_a_rating_is_a_size() -> None:
    assert parse_tbw("600TB") == parse_tbw("600") == parse_tbw("0.6pb") == 600e12
    assert parse_tbw("750 TBW") == 750e12
    for wrong in ("", "0", "-3TB", "many", "600TiB", "1e9"):
        with pytest.raises(InputError, match="expected a size such as 600TB"):
            parse_tbw(wrong)


def test_the_real_smartctls_answer_about_a_disk_without_smart_is_one_sentence(
    cli: Cli, loop: Loop
) -> None:
    if shutil.which("smartctl", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("smartctl is not installed")
    said = one_sentence(cli("health", loop.path))
    assert "smartctl could not read the drive" in said
