"""Health for monitoring: the plug-in's answer, lines of JSON, metrics, and what cron mails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import MIB, Cli, Loop
from health_samples import INTEL_ROWS, later, nvme, sas, sata, smartctl
from ssdlab.fio import surroundings
from ssdlab.smart.prometheus import METRICS
from ssdlab.smart.verdict import SPARE_NEAR, USED_WATCH

SAMPLES = os.environ.get("SSDLAB_HEALTH_SAMPLES")

GOOD = nvme()
WATCH = nvme({"percentage_used": 95}, serial_number="S-watch")
REPLACE = nvme({"critical_warning": 4}, serial_number="S-replace")
UNKNOWN = nvme({"percentage_used": None}, smart_status={}, serial_number="S-unknown")


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., Path]:
    """Writes a document under a name."""

    def store(name: str, document: dict[str, Any]) -> Path:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document))
        return path

    return store


# The plug-in

RANGE = r"(@?(-?[\d.]+:|~:)?(-?[\d.]+)?)"
DATUM = re.compile(
    rf"(?P<label>[^\s=']+)=(?P<value>-?[\d.]+)(?P<unit>s|%|B|c)?(;{RANGE})?(;{RANGE})?"
)


def performance(line: str) -> dict[str, tuple[str, ...]]:
    """Labels, values with units, and limits of a plug-in's line, by the guidelines' grammar."""
    assert line.count("|") == 1, line
    found = {}
    for datum in line.partition(" | ")[2].split(" "):
        match = DATUM.fullmatch(datum)
        assert match is not None, datum
        assert match["label"] not in found, datum
        found[match["label"]] = tuple(datum.partition("=")[2].split(";"))
    return found


@pytest.mark.parametrize(
    ("document", "status", "word"),
    [(GOOD, 0, "OK"), (WATCH, 1, "WARNING"), (REPLACE, 2, "CRITICAL"), (UNKNOWN, 3, "UNKNOWN")],
)
def test_each_verdict_has_its_status(
    cli: Cli, stored: Callable[..., Path], document: dict[str, Any], status: int, word: str
) -> None:
    path = stored("drive", document)
    outcome = cli("health", path, "--exit-code")
    assert (outcome.status, outcome.err) == (status, "")
    assert outcome.out.startswith(f"SSD {word} - 1 drive, drive (Example NVMe 1TB): ")
    # Without the option a verdict is no failure of the command.
    assert cli("health", path).status == 0


@pytest.mark.parametrize(
    ("documents", "status"),
    [
        ((GOOD, GOOD), 0),
        ((GOOD, UNKNOWN), 3),
        ((UNKNOWN, WATCH, GOOD), 1),
        ((WATCH, REPLACE, UNKNOWN), 2),
        ((REPLACE, None), 2),
        ((None, WATCH), 1),
        ((GOOD, None, GOOD), 3),
    ],
)
def test_critical_counts_before_warning_before_unknown_before_ok(
    cli: Cli,
    stored: Callable[..., Path],
    tmp_path: Path,
    documents: tuple[dict[str, Any] | None, ...],
    status: int,
) -> None:
    paths = [
        tmp_path / "missing.json" if one is None else stored(f"d{number}", one)
        for number, one in enumerate(documents)
    ]
    outcome = cli("health", *paths, "--exit-code")
    assert outcome.status == status, outcome.out
    assert outcome.out.startswith(f"SSD {['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'][status]} - ")
    assert f"{len(paths)} drives: " in outcome.out.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("missing.json",), "there is no such file"),
        (("/dev/nvme77n1",), "there is no such device"),
        (("damaged.json",), "only the beginning of one"),
        (("refused.json",), "no permission to ask the drive"),
        (("asleep.json",), "is in standby"),
        (("good.json", "--tbw", "many"), "expected a size"),
        (("good.json", "--json", "/nowhere/x.json"), "does not exist"),
        (("good.json", "--json", "-"), "both write to standard output"),
        (("good.json", "--history", "missing.json"), "there is no such file"),
        (("good.json", "--bogus"), "--bogus"),
        ((), "TARGET"),
    ],
)
def test_what_is_wrong_is_unknown_and_one_line_on_stdout(
    cli: Cli,
    stored: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    stored("good", GOOD)
    (tmp_path / "damaged.json").write_text(json.dumps(GOOD)[:200])
    stored("refused", {"smartctl": smartctl(2, "open /dev/sda failed: Permission denied")})
    stored("asleep", {"smartctl": smartctl(2, "Device is in STANDBY mode, exit(2)")})
    outcome = cli("health", *arguments, "--exit-code")
    assert (outcome.status, outcome.err) == (3, "")
    assert outcome.out.startswith("SSD UNKNOWN - ")
    assert outcome.out.count("\n") == 1, outcome.out
    assert told in outcome.out


def test_performance_data_has_units_and_limits(cli: Cli, stored: Callable[..., Path]) -> None:
    temperature = {"current": 40, "op_limit_max": 82, "critical_limit_max": 85}
    path = stored("drive", nvme(temperature=temperature))
    line = cli("health", path, "--exit-code").out.splitlines()[0]
    found = performance(line)
    assert found["used"] == ("10%", f"{USED_WATCH:.0f}", "100")
    assert found["spare"] == ("100%", f"{10 + SPARE_NEAR:.0f}:", "10:")
    assert found["temp"] == ("40", "82", "85")
    assert found["written"] == ("2048000000000c",)
    assert found["life"] == (f"{500 * 9 * 86_400}s",)
    bare = stored("bare", {"smartctl": smartctl(), "smart_status": {"passed": True}})
    assert "|" not in cli("health", bare, "--exit-code", "--quiet").out


def test_labels_of_several_drives_are_all_different(
    cli: Cli, stored: Callable[..., Path], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    names = ["a drive='x'", "a", "b"]
    paths = [stored(one, GOOD) for one in names]
    (other / "a.json").write_text(json.dumps(sata("Intel", "INTEL", INTEL_ROWS)))
    line = cli("health", *paths, other / "a.json", "--exit-code").out.splitlines()[0]
    used = [label for label in performance(line) if label.endswith("_used")]
    assert used == ["a_drive_x_used", "a_2_used", "b_used", "a_4_used"]


def test_no_name_breaks_the_first_line(cli: Cli, stored: Callable[..., Path]) -> None:
    path = stored("x", nvme({"critical_warning": 4}, model_name="A|B = 1\nC\ud800" + "D" * 500))
    outcome = cli("health", path, "--exit-code", "--attributes")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("SSD CRITICAL - 1 drive, x (A¦B = 1\\nC\\ud800DD")
    assert performance(lines[0])["used"][0] == "10%"
    # What stands after it in further lines would count as performance data too.
    assert "|" not in "".join(lines[1:])


def test_the_long_output_is_what_people_read(
    cli: Cli, stored: Callable[..., Path], tmp_path: Path
) -> None:
    path = stored("drive", GOOD)
    shown = cli("health", path).out
    assert cli("health", path, "--exit-code").out.partition("\n")[2] == shown
    assert cli("health", path, "--exit-code", "--quiet").out.count("\n") == 1
    several = cli("health", path, tmp_path / "missing.json", "--exit-code").out
    assert f"not read: {tmp_path}/missing.json: there is no such file" in several


def test_status_and_first_line_of_the_program_itself(
    stored: Callable[..., Path], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "ssdlab", "health", "--exit-code", "--quiet"]
    for path, status, start in (
        (stored("watch", WATCH), 1, b"SSD WARNING - "),
        (tmp_path / os.fsdecode(b"m\xff.json"), 3, b"SSD UNKNOWN - "),
    ):
        done = subprocess.run([*command, str(path)], capture_output=True)
        assert (done.returncode, done.stderr) == (status, b"")
        assert done.stdout.startswith(start)


# Lines of JSON


def test_a_line_per_drive_goes_on_past_one_that_cannot_be_read(
    cli: Cli, stored: Callable[..., Path], tmp_path: Path
) -> None:
    paths = [stored("a", GOOD), tmp_path / "missing.json", stored("b", WATCH)]
    place = tmp_path / "out.ndjson"
    outcome = cli("health", *paths, "--json-lines", place)
    assert outcome.status == 2
    assert outcome.err == (
        f"ssdlab: 1 of 3 drives could not be read: {paths[1]}: there is no such file\n"
    )
    lines = [json.loads(one) for one in place.read_text().splitlines()]
    assert [one["target"] for one in lines] == [str(one) for one in paths]
    assert [one.get("verdict") for one in lines] == ["good", None, "watch"]
    assert lines[1] == {
        "schema": 1,
        "target": str(paths[1]),
        "error": f"{paths[1]}: there is no such file",
    }
    whole = json.loads(cli("health", paths[0], "--json", "-").out)["drives"][0]
    assert lines[0] == {"schema": 1, **whole}


def test_a_line_is_written_before_the_next_drive_is_read(stored: Callable[..., Path]) -> None:
    command = [sys.executable, "-m", "ssdlab", "health", str(stored("a", GOOD)), "-"]
    process = subprocess.Popen(
        [*command, "--json-lines", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert json.loads(process.stdout.readline())["verdict"] == "good"
    process.stdin.write(json.dumps(WATCH))
    process.stdin.close()
    (second,) = process.stdout.readlines()
    assert json.loads(second)["verdict"] == "watch"
    assert process.wait() == 0


# Metrics


def check_syntax(text: str) -> dict[str, float]:
    """Samples by series, by the grammar of the text format and the rules of promtool."""
    assert text.endswith("\n")
    label = r'[a-z_]+="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
    sample = re.compile(rf"([a-z_]+)(\{{{label}(?:,{label})*\}}) (-?[0-9.e+-]+)")
    kinds: dict[str, str] = {}
    told: set[str] = set()
    samples: dict[str, float] = {}
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in told, "a family in two pieces"
            told.add(name)
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name in told
            assert (kind == "counter") == name.endswith("_total"), name
            assert kind in ("counter", "gauge")
            kinds[name] = kind
            continue
        match = sample.fullmatch(line)
        assert match is not None, line
        assert list(kinds)[-1] == match[1], "a sample outside its family"
        assert match[1] + match[2] not in samples, "a series twice"
        samples[match[1] + match[2]] = float(match[3])
    assert told == set(kinds)
    return samples


def of_client(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """The samples as Prometheus' own client reads them."""
    parser = pytest.importorskip("prometheus_client.parser")
    for family in parser.text_string_to_metric_families(text):
        assert family.documentation
        for one in family.samples:
            yield one.name, one.labels, one.value


def test_metrics_are_in_base_units_with_labels(
    cli: Cli, stored: Callable[..., Path], tmp_path: Path
) -> None:
    temperature = {"current": 40, "op_limit_max": 82, "critical_limit_max": 85}
    path = stored("a", nvme({"media_errors": 2}, temperature=temperature))
    outcome = cli("health", path, "--prometheus", "-")
    samples = check_syntax(outcome.out)
    labels = f'device="{path}",model="Example NVMe 1TB",serial="S1"'
    values = {
        "used_ratio": 0.1,
        "spare_ratio": 1,
        "spare_threshold_ratio": 0.1,
        "media_errors_total": 2,
        "written_bytes_total": 4_000_000 * 512_000,
        "read_bytes_total": 1_000_000 * 512_000,
        "temperature_celsius": 40,
        "temperature_limit_celsius": 82,
        "temperature_critical_celsius": 85,
        "power_on_seconds_total": 12_000 * 3600,
        "projected_life_seconds": 500 * 9 * 86_400,
    }
    expected = {f"ssdlab_health_{name}{{{labels}}}": one for name, one in values.items()}
    expected[f'ssdlab_health_readable{{device="{path}"}}'] = 1
    for verdict in ("good", "unknown", "watch", "replace"):
        key = f'ssdlab_health_verdict{{{labels},verdict="{verdict}"}}'
        expected[key] = float(verdict == "watch")
    assert samples == pytest.approx(expected)
    intel = stored("b", sata("Intel", "INTEL", INTEL_ROWS))
    samples = check_syntax(cli("health", intel, "--prometheus", "-").out)
    values = {
        name.partition("{")[0].removeprefix("ssdlab_health_"): one for name, one in samples.items()
    }
    assert values["nand_written_bytes_total"] == 1_500_000 * 32 * 2**20
    assert values["write_amplification_ratio"] == 1.5
    assert {one.name for one in METRICS} >= set(values) - {"readable", "verdict"}


def test_prometheus_own_client_reads_the_same(
    cli: Cli, stored: Callable[..., Path], tmp_path: Path
) -> None:
    model = 'A "quoted" \\n back\\slash\nand a line'
    paths = [stored("a", nvme(model_name=model)), stored("b", sas()), tmp_path / "missing.json"]
    text = cli("health", *paths, "--prometheus", "-").out
    samples = check_syntax(text)
    found = list(of_client(text))
    assert len(found) == len(samples)
    assert sorted(value for _, _, value in found) == sorted(samples.values())
    assert model in {labels.get("model") for _, labels, _ in found}
    readable = {
        labels["device"]: value for name, labels, value in found if name.endswith("_readable")
    }
    assert readable == {str(one): float(one.exists()) for one in paths}


def test_a_drive_that_cannot_be_read_takes_the_place_of_its_last_metrics(
    cli: Cli, stored: Callable[..., Path], tmp_path: Path
) -> None:
    path, place = stored("a", GOOD), tmp_path / "ssd.prom"
    assert cli("health", path, "--prometheus", place).status == 0
    assert "ssdlab_health_used_ratio" in place.read_text()
    path.unlink()
    outcome = cli("health", path, "--prometheus", place)
    assert (outcome.status, outcome.out) == (2, "")
    assert check_syntax(place.read_text()) == {f'ssdlab_health_readable{{device="{path}"}}': 0}
    # Renamed into place, for everybody to read, and nothing else is left beside it.
    assert sorted(one.name for one in tmp_path.glob("*ssd*")) == ["ssd.prom"]
    mask = os.umask(0)
    os.umask(mask)
    assert place.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_drive_asked_for_twice_is_one_series(cli: Cli, stored: Callable[..., Path]) -> None:
    path = stored("a", GOOD)
    samples = check_syntax(cli("health", path, path, "--prometheus", "-").out)
    assert sum("used_ratio" in one for one in samples) == 1


def test_a_name_the_collector_would_not_read_is_refused(
    cli: Cli, stored: Callable[..., Path], tmp_path: Path
) -> None:
    outcome = cli("health", stored("a", GOOD), "--prometheus", tmp_path / "ssd.txt")
    assert (outcome.status, outcome.out) == (2, "")
    assert "must end in .prom" in outcome.err
    assert not (tmp_path / "ssd.txt").exists()
    both = cli("health", stored("a", GOOD), "--prometheus", "-", "--json-lines", "-")
    assert (both.status, both.out) == (2, "")
    assert "--json-lines - and --prometheus both write to standard output" in both.err


def test_a_name_that_is_not_utf_8_is_a_label(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"m\xff.json")
    path.write_text(json.dumps(GOOD))
    place = tmp_path / "ssd.prom"
    assert cli("health", path, "--prometheus", place, "--json-lines", tmp_path / "l").status == 0
    assert any("/m\\\\udcff.json" in one for one in check_syntax(place.read_text("utf-8")))


# Several drives, and cron


def test_the_others_are_told_before_the_one_that_cannot_be_read(
    cli: Cli, stored: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(GOOD))
    (folder / "b.json").write_text("{")
    place = tmp_path / "h.json"
    missing = tmp_path / "missing.json"
    outcome = cli("health", missing, folder, stored("c", WATCH), "--json", place)
    assert outcome.status == 2
    assert "nearly used up" in outcome.out
    assert f"Example NVMe 1TB ({folder}/a.json)" in outcome.out
    assert outcome.err.startswith("ssdlab: 2 of 4 drives could not be read: ")
    assert outcome.err.count("\n") == 1
    document = json.loads(place.read_text())
    assert [one["verdict"] for one in document["drives"]] == ["good", "watch"]
    assert [one["target"] for one in document["unreadable"]] == [
        str(missing),
        str(folder / "b.json"),
    ]


@pytest.mark.root
def test_of_drives_that_are_asked_one_without_permission_keeps_none_back(
    cli: Cli,
    loop: Loop,
    stored: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = stored("refused", {"smartctl": smartctl(2, "open failed: Permission denied")})
    program = tmp_path / "smartctl"
    answer = f"case $3 in {loop.path}) cat {stored('drive', GOOD)};; *) cat {refused};; esac"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    monkeypatch.setattr(surroundings, "system_program", lambda _name: str(program))
    monkeypatch.setattr("ssdlab.smart.sources.system_program", lambda _name: str(program))
    other = Loop(tmp_path / "other.img", MIB)
    try:
        outcome = cli("health", other.path, loop.path)
        plugged = cli("health", other.path, loop.path, "--exit-code", "--quiet")
    finally:
        other.close()
    assert outcome.status == 2
    assert "Example NVMe 1TB\tgood" in outcome.out
    assert outcome.err.startswith(f"ssdlab: 1 of 2 drives could not be read: {other.path}: no perm")
    assert plugged.status == 3
    assert plugged.out.startswith("SSD UNKNOWN - 2 drives: 1 unknown, 1 ok; ")
    assert f"{loop.name}_used=10%;90;100" in plugged.out


def test_history_of_a_drive_that_cannot_be_read_is_no_second_error(
    cli: Cli, stored: Callable[..., Path], tmp_path: Path
) -> None:
    now = stored("now", later(10, data_units_written=4_500_000))
    other = stored("other", nvme(serial_number="third"))
    outcome = cli("health", now, tmp_path / "missing.json", "--history", other)
    assert "could not be read" in outcome.err
    assert "--history" not in outcome.err
    assert "holds no snapshot of a drive" in cli("health", now, "--history", other).err


def test_quiet_is_silent_while_all_is_good(cli: Cli, stored: Callable[..., Path]) -> None:
    good = stored("good", GOOD)
    outcome = cli("health", good, "--quiet")
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    worn = cli("health", good, stored("worn", WATCH), "--quiet").out.splitlines()
    assert len(worn) == 3  # heading, rule, finding
    assert "nearly used up" in worn[2]


def test_redacted_is_the_drive_that_cannot_be_read_too(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "by-id" / "nvme-SECRETSERIAL.json"
    path.parent.mkdir()
    good = path.with_name("SECRET2.json")
    good.write_text(json.dumps(nvme(serial_number="SECRET2")))
    for content in ("{", json.dumps({"smartctl": smartctl(2, f"open {path} failed")})):
        path.write_text(content)
        for arguments in (
            ("--json", "-"),
            ("--json-lines", "-"),
            ("--prometheus", "-"),
            ("--exit-code",),
        ):
            outcome = cli("health", path, good, "--redact", *arguments)
            whole = outcome.out + outcome.err
            assert "drive 1" in whole
            assert "SECRET" not in whole, whole
            assert str(tmp_path) not in whole, whole
            assert "serial=" not in whole


def test_standard_input_that_is_no_text_is_one_sentence() -> None:
    command = [sys.executable, "-m", "ssdlab", "health", "-"]
    done = subprocess.run(command, input=b"\xff\xfe", capture_output=True)
    assert done.returncode == 2
    assert done.stderr == b"ssdlab: standard input: is no text in UTF-8 (byte 0)\n"


@pytest.mark.skipif(not SAMPLES, reason="SSDLAB_HEALTH_SAMPLES names no folder of real outputs")
def test_real_drives_are_told_to_monitoring(cli: Cli) -> None:
    line = cli("health", SAMPLES, "--exit-code").out.splitlines()[0]
    assert len(performance(line)) > 50
    text = cli("health", SAMPLES, "--prometheus", "-").out
    samples = check_syntax(text)
    assert len(samples) > 100
    assert sum(one.startswith("ssdlab_health_readable") for one in samples) > 5
    assert sorted(value for _, _, value in of_client(text)) == sorted(samples.values())
