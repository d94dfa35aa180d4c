"""The protocol ``waf``: what it measures on simulated drives beside closed forms and beside a real
drive's counters; what stands in where a drive does not count."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import make_result
from health_samples import nvme
from ssdlab.analysis import amplification
from ssdlab.answer import Section
from ssdlab.engine.plans import ProtocolOrder
from ssdlab.engine.records import Records
from ssdlab.engine.runs import begin
from ssdlab.engine.setup import Setup
from ssdlab.engine.steps import Job
from ssdlab.errors import UnknownNameError
from ssdlab.fio import nand_logs
from ssdlab.protocols import find
from ssdlab.results import Result
from ssdlab.rig import resolve
from ssdlab.smart import parse
from ssdlab.smart.change import amplification as counted
from ssdlab.store import RunStore

BLOCK = 64
"""Pages of a block of lab-reference, which are its mapping units."""


def carried_out(
    folder: Path, overrides: Mapping[str, str], **given: str
) -> tuple[Section, Records]:
    """The protocol on a lab-reference of 128 MiB."""
    seen: list[Records] = []
    order = ProtocolOrder(
        find("waf"),
        resolve("lab-reference"),
        given,
        overrides={"capacity": "128MiB", **overrides},
    )
    done = begin(
        order,
        RunStore(folder),
        progress=lambda _news: True,
        notice=lambda _sentence: None,
        announce=lambda _what: None,
        examine=lambda execution: seen.append(execution.records) or (),  # type: ignore[func-returns-value]
    )
    return done.findings.judgement, seen[0]


def value(section: Section, start: str) -> float:
    """The only number whose name starts so."""
    (found,) = (one.value for one in section.numbers if one.name.startswith(start))
    assert found is not None
    return found


@pytest.mark.parametrize("victim", ["fifo", "greedy"])
def test_uniform_writes_come_to_the_closed_form_at_every_spare_area(
    victim: str, tmp_path: Path
) -> None:
    found, _ = carried_out(
        tmp_path, {"ftl.gc.victim": victim}, patterns="uniform", shares="100,88", writes="6"
    )
    for share, name in ((1.0, "writes:"), (0.88, "writes, 88 % of the range:")):
        op = 1.28 / share - 1
        expected = {
            "fifo": amplification.fifo(op),
            "greedy": amplification.greedy(op, BLOCK),
        }[victim]
        waf = value(found, f"uniform random {name} write")
        assert waf == pytest.approx(expected, rel=0.03)
        told = value(found, f"uniform random {name} over-provisioning")
        assert told == pytest.approx(100 * amplification.spare(waf))
    assert value(found, "sequential writes") == pytest.approx(1.0, abs=0.01)


def test_skewed_and_sequential_writes_are_less_and_hot_data_stay_where_they_are(
    tmp_path: Path,
) -> None:
    # Greedy collection tells the steady states of patterns apart.
    found, records = carried_out(tmp_path, {}, shares="100", writes="5", streams="4", hot="20")
    names = {one.name for one in found.numbers}
    assert len(names) == len(found.numbers)
    uniform, zipf, streams = (
        value(found, f"{name} writes: write amplification")
        for name in ("uniform random", "zipf random", "interleaved sequential")
    )
    assert streams < 1.3 < uniform
    assert abs(zipf - uniform) > 0.02
    hot = [key for key in records if "hot-cold" in key and key.startswith("round")]
    assert len(hot) >= 5


def test_closed_forms_agree_with_published_ones() -> None:
    # Desnoyers 2014 and Van Houdt 2013 for over-provisioning of 7 and 28 %, blocks of 64.
    assert amplification.fifo(0.07) == pytest.approx(7.8172, abs=1e-4)
    assert amplification.fifo(0.28) == pytest.approx(2.4814, abs=1e-4)
    assert amplification.greedy(0.07, 64) == pytest.approx(7.0099, abs=1e-4)
    assert amplification.greedy(0.28, 64) == pytest.approx(2.4028, abs=1e-4)
    assert amplification.spare(amplification.fifo(0.127)) == pytest.approx(0.127)


# --- what a drive tells


def ocp(programmed: int) -> str:
    """A page C0h in hex."""
    guid = "c5af1028eabff2a49c4f6f7cc914d5af"
    return programmed.to_bytes(16, "little").hex() + "00" * 480 + guid


def intel(units: int) -> str:
    """A page CAh of Intel in hex: two entries before that of bytes programmed."""
    other = bytes([0xAB, 0, 0, 100, 0]) + (9).to_bytes(6, "little") + b"\0"
    entry = bytes([0xF4, 0, 0, 100, 0]) + units.to_bytes(6, "little") + b"\0"
    return (other + other + entry).ljust(240, b"\0").hex()


def micron(programmed: int) -> str:
    """A page D0h of Micron in hex."""
    return (bytes(176) + programmed.to_bytes(8, "little")).ljust(512, b"\0").hex()


@pytest.mark.parametrize(
    ("number", "page", "programmed"),
    [
        ("0xc0", ocp(1 << 70), 1 << 70),
        ("0xc0", ocp(5)[:-2] + "00", None),
        ("0xca", intel(7), 7 * 32 << 20),
        ("0xd0", micron(12_345), 12_345),
        ("0xc0", ocp(0), None),
        ("0xc0", "zz", None),
        ("0xc0", "", None),
    ],
)
def test_log_pages_tell_what_was_programmed(number: str, page: str, programmed: int | None) -> None:
    health = parse(nvme(nvme_logs={number: page}), "drive.json")
    assert health.nand_bytes == programmed


def test_the_page_of_the_ocp_comes_before_a_vendors() -> None:
    both = parse(nvme(nvme_logs={"0xca": intel(7), "0xc0": ocp(1000)}), "drive.json")
    assert both.nand_bytes == 1000
    assert "C0h" in both.origins["nand_bytes"]


def test_log_pages_are_read_from_what_nvme_cli_dumps(monkeypatch: pytest.MonkeyPatch) -> None:
    page = bytes.fromhex(ocp(123_456))
    lines = ["Device:nvme0n1 log-id:192 namespace-id:0xffffffff", "       0  1  2  3  4  5"]
    lines += [
        f'{start:04x}: {page[start : start + 16].hex(" ")} "................"'
        for start in range(0, 512, 16)
    ]
    asked = []

    def printed(command: list[str]) -> tuple[int, str]:
        asked.append(command)
        return (0, "\n".join(lines)) if "--log-id=0xc0" in command else (1, "NVMe status: ...")

    monkeypatch.setattr(nand_logs, "printed", printed)
    monkeypatch.setattr(nand_logs, "system_program", lambda name: f"/usr/sbin/{name}")
    answer = nvme(nvme_pci_vendor={"id": 0x1344})
    found = nand_logs.pages("nvme0n1", answer)
    assert found == {"nvme_logs": {"0xc0": page.hex()}}
    assert [one[3] for one in asked] == ["--log-id=0xc0", "--log-id=0xd0"]
    assert nand_logs.pages("sda", {"smart_status": {}}) == {}


def test_a_run_between_two_snapshots_has_the_drives_write_amplification() -> None:
    before = nvme(nvme_logs={"0xc0": ocp(1 << 40)})
    after = copy.deepcopy(before)
    after["nvme_smart_health_information_log"]["data_units_written"] += 1000
    after["nvme_logs"] = {"0xc0": ocp((1 << 40) + 1000 * 512_000 * 3)}
    smart = {"before": before, "after": after}
    assert counted({"smart": smart}) == pytest.approx(3.0)
    assert counted({"smart": {"before": before, "after": before}}) is None
    assert counted({"smart": {"before": before}}) is None
    assert counted({}) is None
    result = without_counters("real")
    result.document["ssdlab"]["surroundings"] = {"smart": smart}
    records = Records(load=lambda _key: result, keys_=["a"])
    assert records.value("waf", "a") == pytest.approx(3.0)


# --- a drive that does not count


def without_counters(name: str) -> Result:
    """A result as that of a real drive that tells nothing."""
    result = make_result(name)
    del result.document["ssdlab"]["waf"]
    return result


def test_where_a_drive_does_not_count_the_ratio_of_throughputs_is_called_a_bound() -> None:
    def load(key: str) -> Result:
        result = without_counters(key)
        write: dict[str, Any] = result.document["jobs"][0]["write"]
        write["bw_bytes"] = 900_000_000 if key == "sequential" else 300_000_000
        return result

    keys = ["sequential", "layout-uniform-100", *(f"round0{n}/uniform-100" for n in range(1, 6))]
    protocol = find("waf")
    setup = Setup(1 << 30, "device", 1 << 30, protocol.values({"patterns": "uniform"}))
    found = protocol.judge(Records(load=load, keys_=keys), setup)
    assert value(found, "uniform random writes: write amplification, upper bound") == 3.0
    assert not any(one.name.endswith(": write amplification") for one in found.numbers)
    assert "WA" in found.figures[0].title and "bound" in found.figures[0].title
    json.dumps(found.as_json())


def test_patterns_have_names() -> None:
    protocol = find("waf")
    with pytest.raises(UnknownNameError, match="unifrom"):
        protocol.plan(Setup(1 << 30, "sim", 1 << 30, protocol.values({"patterns": "unifrom"})))


def test_a_smaller_share_is_never_written_beyond() -> None:
    protocol = find("waf")
    setup = Setup(1 << 30, "device", 1 << 30, protocol.values({}))
    steps = {one.key: one for one in protocol.plan(setup)}
    rounds: Any = steps["uniform-75"]
    for job in (steps["layout-uniform-75"], *rounds.jobs(1)):
        assert isinstance(job, Job)
        assert f"size={768 << 20}\n" in job.text and "offset=0\n" in job.text
