"""``characterise`` on simulated drives, whose truth is known: what it concludes, within which
interval, and what it says that it cannot tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ssdlab
from conftest import Outcome, needs_fio
from ssdlab import _core
from ssdlab.analysis import layout
from ssdlab.answer import Cell, cell_text, numbers_table
from ssdlab.answers import blind as blind_answer
from ssdlab.checks import examine_run
from ssdlab.engine import findings
from ssdlab.engine.plans import ProtocolOrder, plan
from ssdlab.engine.runs import begin
from ssdlab.errors import InputError
from ssdlab.fits import starts, trial
from ssdlab.fits.conclusions import Conclusion, conclusions, table, uncached
from ssdlab.fits.fit import FitOrder, fit
from ssdlab.fits.observations import FitWorkload, Observation
from ssdlab.fits.parameters import amount
from ssdlab.fits.sources import Gathered, _check_steady, gather
from ssdlab.protocols import characterise, find
from ssdlab.rig import profile, resolve
from ssdlab.store import RunStore
from ssdlab.studies import blind
from ssdlab.target import Sim

BUFFER = 'write_buffer = { size = "4MiB", power_loss_protected = true }'
VOLATILE = BUFFER.replace("true", "false")


def rig(
    nand: Mapping[str, object], ftl: str = "", ssd: str = BUFFER, link: Mapping[str, str] = {}
) -> str:
    """A drive of 256 MiB: 4 channels of 2 dies unless told otherwise."""
    flash = {
        "channels": 4,
        "ways": 2,
        "page": '"16KiB"',
        "pages_per_block": 6,
        "t_read": '"60us"',
        "t_program": '"600us"',
        "t_erase": '"3ms"',
        "transfer_mts": 800,
        **nand,
    }
    above = {
        "bandwidth": '"3200MB/s"',
        "latency": '"6us"',
        "queue_slots": "1024",
        "duplex": '"full"',
        **link,
    }
    return "\n".join(
        [
            'name = "twin"\n[device]\nkind = "link"',
            *(f"{key} = {value}" for key, value in above.items()),
            f'[device.below]\nkind = "ssd"\ncapacity = "256MiB"\n{ssd}\n[device.below.nand]',
            *(f"{key} = {value}" for key, value in flash.items()),
            f"[device.below.ftl]\n{ftl or 'over_provisioning = 0.25'}",
            '[device.below.controller]\ncommand_time = "1.5us"\ncores = 1\n',
        ]
    )


@dataclass(frozen=True)
class Kind:
    """A drive, what must be concluded of it, and what must not."""

    rig: str
    truth: Mapping[str, float]
    silent: tuple[str, ...] = ()
    """What cannot be told, by the names of conclusions."""
    given: Mapping[str, str] = field(default_factory=dict)


MIB = 1 << 20
EVERY = {
    "command overhead": 7.5,
    "latency of host and link": 6.0,
    "controller, per command": 1.5,
    "link bandwidth": 3200.0,
    "tR": 60.0,
    "flash channel": 800.0,
    "channels": 4,
    "dies": 8,
    "dies of a channel": 2,
}
SPARE = {"over-provisioning": 0.25}
KINDS = {
    "protected buffer, two planes": Kind(
        rig({"planes": 2}, "over_provisioning = 0.25\ngc = { pace = 'blocking' }"),
        {
            **EVERY,
            **SPARE,
            "sensed at once (page of every plane)": 32768,
            "in a row on a die": 32768,
            "planes that read by themselves": 1,
            "senses while it transfers": 0,
            "page register": 0,
            "tPROG": 600.0,
            "write buffer": 4 * MIB,
            "buffer kept over a power failure": 1,
            "programs suspended for reads": 0,
        },
        ("SLC cache", "map cache"),
    ),
    "a policy between greedy and FIFO": Kind(
        rig({}, "over_provisioning = 0.2\ngc = { victim = 'windowed', pace = 'blocking' }"),
        {"over-provisioning": 0.2},
    ),
    "no buffer": Kind(
        rig({}, ssd=""),
        {**EVERY, "tPROG": 600.0, "in a row on a die": 16384},
        ("write buffer", "buffer kept over a power failure", "over-provisioning"),
    ),
    "planes that read by themselves, programs suspended": Kind(
        rig(
            {
                "planes": 4,
                "page": '"8KiB"',
                "independent_plane_reads": "true",
                "cache_operations": "true",
                "suspend": "{ program = true }",
                "t_program": '"900us"',
            },
            "over_provisioning = 0.3\ngc = { victim = 'fifo', pace = 'blocking' }",
            VOLATILE,
        ),
        {
            **EVERY,
            "planes that read by themselves": 4,
            "senses while it transfers": 1,
            "programs suspended for reads": 1,
            "buffer kept over a power failure": 0,
            "tPROG": 900.0,
            "over-provisioning": 0.3,
        },
    ),
    "static SLC cache that is passed by": Kind(
        rig(
            {"planes": 2},
            "over_provisioning = 0.25\n"
            'slc_cache = { static_size = "48MiB", t_read = "25us", t_program = "150us", '
            'when_full = "direct", fold_idle_after = "500ms" }',
            VOLATILE,
        ),
        {
            **EVERY,
            "SLC cache": 48 * MIB,
            "tPROG of the SLC cache": 150.0,
            "tPROG": 600.0,
            "SLC cache folded when full": 0,
            "SLC cache emptied in a rest": 1,
        },
        ("collects in idle time", "over-provisioning"),
    ),
    "SLC cache that is folded": Kind(
        rig(
            {"planes": 2, "channels": 2, "ways": 4},
            "over_provisioning = 0.25\n"
            'slc_cache = { static_size = "64MiB", t_read = "25us", t_program = "150us", '
            'when_full = "fold", fold_idle_after = "500ms" }',
        ),
        {"channels": 2, "dies": 8, "SLC cache folded when full": 1, "SLC cache": 64 * MIB},
        ("tPROG", "programs suspended for reads"),
    ),
    "SLC cache in front of all, too small to be seen": Kind(
        rig(
            {"planes": 2},
            "over_provisioning = 0.25\n"
            'slc_cache = { static_size = "8MiB", t_read = "25us", t_program = "150us", '
            'when_full = "fold" }',
            ssd="",
        ),
        {"tPROG of the SLC cache": 150.0},
        ("tPROG", "SLC cache"),
        {"parts": "link,size,stride,fill,flush,burst"},
    ),
    "cached map": Kind(
        rig({"planes": 2}, 'over_provisioning = 0.25\nmap = { kind = "cached", cache = "32KiB" }'),
        {"map cache": 32768, "dies": 8, "tR": 60.0, "tPROG": 600.0},
        ("over-provisioning",),
    ),
    "whole word lines, page registers": Kind(
        rig(
            {"planes": 2, "one_shot": "true", "page_register": "true", "pages_per_block": 12},
            "over_provisioning = 0.4",
        ),
        {
            **EVERY,
            "sensed at once (page of every plane)": 32768,
            "in a row on a die": 98304,
            "page register": 1,
            "tPROG": 600.0,
        },
    ),
    "fifteen dies, met unevenly by few reads at a stride": Kind(
        rig(
            {"channels": 3, "ways": 5},
            link={"latency": '"6us"'},
        ),
        {"channels": 3, "dies of a channel": 5, "dies": 15, "tR": 60.0, "flash channel": 800.0},
        ("SLC cache",),
        given={"parts": "link,size,stride,depth"},
    ),
    "a link that limits small reads": Kind(
        rig({}, link={"bandwidth": '"2000MB/s"'}),
        {"latency of host and link": 6.0, "command overhead": 7.5},
        ("controller, per command",),
        {"parts": "link"},
    ),
    "a link slower than the flash": Kind(
        rig(
            {"channels": 8, "planes": 2},
            link={"bandwidth": '"550MB/s"', "queue_slots": "32", "duplex": '"half"'},
        ),
        {"channels": 8, "dies": 16, "tR": 60.0, "link bandwidth": 550.0},
        ("tPROG", "write buffer", "controller, per command", "programs suspended for reads"),
    ),
}


def run(text: str, folder: Path, **given: str) -> Any:
    """The protocol on a rig, to its end."""
    order = ProtocolOrder(find("characterise"), Sim("twin", text), {"seconds": "0.05", **given})
    done = begin(
        order,
        RunStore(folder),
        progress=lambda _news: True,
        notice=lambda _sentence: None,
        announce=lambda _what: None,
        examine=examine_run,
    )
    return findings.read(done.folder)


def by_name(found: list[Conclusion]) -> dict[str, Conclusion]:
    assert len({one.name for one in found}) == len(found)
    return {one.name: one for one in found}


@pytest.mark.parametrize("name", KINDS)
def test_it_concludes_what_a_simulated_drive_is(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    judged = run(kind.rig, tmp_path, **kind.given)
    found = by_name(conclusions(judged))
    for what, truth in kind.truth.items():
        one = found[what]
        assert one.known, (what, one.how)
        assert one.low is not None and one.high is not None and one.value is not None
        assert one.low <= one.value <= one.high
        assert one.low <= truth <= one.high, (what, truth, one)
        # An interval that holds everything says nothing.
        assert one.high <= 1.5 * one.low + 1e-9, one
    for what in kind.silent:
        assert not found[what].known and found[what].how, found[what]
    # What is concluded can be put into a rig, such as one that a fit starts from.
    other = _core.Rig(kind.rig, rig_name="twin")
    for one in found.values():
        if one.known and one.key:
            other.set(one.key, one.setting)
            assert other.get(one.key) is not None
    bad = [one.name for one in judged.findings.checks if one.status == "bad"]
    assert bad == []


def test_a_part_alone_says_what_it_shows_and_what_it_lacks(tmp_path: Path) -> None:
    judged = run(KINDS["no buffer"].rig, tmp_path, parts="link,size")
    found = by_name(conclusions(judged))
    assert found["link bandwidth"].known and not found["tR"].known
    assert "stride" in found["tR"].how
    kinds = {step.key.partition("/")[0] for step in judged.steps}
    assert kinds == {"link", "fill", "size"}


def test_what_was_measured_and_does_not_suffice_is_not_said_to_be_missing(tmp_path: Path) -> None:
    text = KINDS["no buffer"].rig.replace("256MiB", "32MiB")
    judged = run(text, tmp_path, parts="flush,range")
    found = by_name(conclusions(judged))
    assert "overhead of a command is not known" in found["buffer kept over a power failure"].how
    assert found["map cache"].how == "32 MiB hold too few growing ranges to tell"
    (told,) = (s for s in judged.findings.judgement.sentences if "could be concluded" in s)
    assert told.startswith("1 value of a rig")


def test_gently_it_only_reads(tmp_path: Path) -> None:
    judged = run(KINDS["no buffer"].rig, tmp_path, gentle="yes")
    assert {step.kind for step in judged.steps} == {"job"}
    assert {step.key.partition("/")[0] for step in judged.steps} == {
        "range", "size", "stride", "depth",
    }  # fmt: skip
    assert not any(one.known for one in conclusions(judged) if one.key.startswith("write_buffer"))


def test_a_plan_says_what_each_part_takes(tmp_path: Path) -> None:
    order = ProtocolOrder(find("characterise"), Sim("twin", KINDS["no buffer"].rig))
    what = plan(order, RunStore(tmp_path))
    assert len(what.parts) == 13
    assert sum(one.steps_max for one in what.parts.values()) == what.estimate.steps_max
    total = sum(one.written.high for one in what.parts.values())
    assert total == pytest.approx(what.estimate.written.high)
    reads = [title for title, one in what.parts.items() if "read" in title and one.written.high]
    assert reads == ["reads behind writes"]
    assert [one["part"] for one in what.document()["parts"]] == list(what.parts)


def test_benchmarks_have_names() -> None:
    protocol = find("characterise")
    order = ProtocolOrder(protocol, Sim("twin", KINDS["no buffer"].rig), {"parts": "link,sise"})
    with pytest.raises(InputError, match="sise"):
        plan(order, RunStore("unused"))


# --- on real targets


@needs_fio()
def test_gently_a_file_is_read_and_left_as_it_was(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "there.bin"
    path.write_bytes(bytes(range(256)) * (4 * MIB // 256))
    before = path.stat().st_mtime_ns
    asked = ["test", str(path), "--protocol", "characterise", "--gentle"]
    told: Outcome = cli(*asked, "--plan")
    assert told.status == 0 and "refused" not in told.out
    order = ProtocolOrder(
        find("characterise"), resolve(str(path)), {"gentle": "yes", "seconds": "0.02"}, quick=True
    )
    monkeypatch.setattr("ssdlab.engine.setup.LEAST_REAL_S", 0.02)
    monkeypatch.setattr("ssdlab.protocols.characterise.benchmarks.SIZES", (4096,))
    monkeypatch.setattr("ssdlab.protocols.characterise.benchmarks.STRIDES", (8192,))
    monkeypatch.setattr("ssdlab.protocols.characterise.benchmarks.DEPTHS", (4,))
    begin(
        order,
        RunStore(tmp_path / "runs"),
        progress=lambda _news: True,
        notice=lambda _sentence: None,
        announce=lambda _what: None,
    )
    assert path.stat().st_mtime_ns == before and path.stat().st_size == 4 * MIB


def test_gently_a_device_need_not_be_named(loop: Any, cli: Any) -> None:
    device = str(loop.path)
    told: Outcome = cli("test", device, "--protocol", "characterise", "--gentle", "--plan")
    assert told.status == 0 and "would be refused" not in told.out
    told = cli("test", device, "--protocol", "characterise", "--plan")
    assert "would be refused" in told.out


@pytest.mark.parametrize(
    ("protocol", "path", "says"),
    [
        ("pts-iops", "x.bin", "pts-iops writes"),
        ("characterise", "missing.bin", "is no file that is there"),
    ],
)
def test_what_cannot_be_gentle_is_said(
    protocol: str, path: str, says: str, cli: Any, tmp_path: Path
) -> None:
    told: Outcome = cli("test", str(tmp_path / path), "--protocol", protocol, "--gentle")
    assert told.status == 2 and says in told.err and len(told.err.strip().splitlines()) == 1


# --- layouts by themselves


def test_a_layout_is_told_from_what_it_would_measure() -> None:
    truth = layout.LayoutFit(layout.FlashLayout(64 << 10, 6, 4), 45.0, 1 / 1200, 0.0)
    singles = {
        size: truth.sense_us + truth.byte_us * min(size, 64 << 10)
        for size in (4096, 8192, 16384, 32768, 65536, 131072, 262144)
    }
    strides = {8192 << n: layout.limit(truth, 8192 << n, 1e9) for n in range(12)}
    (best, *_) = layout.explain(singles, strides, 1e9)
    assert (best.layout.dies, best.layout.unit) == (24, 64 << 10)
    assert best.sense_us == pytest.approx(45.0, rel=0.01)


def test_reads_that_no_regular_flash_explains_give_no_layout() -> None:
    singles = {4096: 60.0, 16384: 61.0, 65536: 900.0, 262144: 905.0}
    strides = {8192 << n: 1000.0 * (1 + (n * 7) % 5) for n in range(12)}
    assert layout.explain(singles, strides, 1e6) == []


# --- twins


def test_a_run_is_rows_of_a_table_in_the_states_that_its_steps_found(tmp_path: Path) -> None:
    judged = run(KINDS["no buffer"].rig, tmp_path, parts="size,steady", writes="2")
    rows = gather([str(judged.folder.path)]).observed
    states = {(one.load.rw, one.load.state) for one in rows}
    assert states == {
        ("randread", "filled"), ("write", "fob"), ("randwrite", "steady"), ("randrw", "steady"),
        ("randread", "steady"),
    }  # fmt: skip
    assert all(one.measured["iops"] > 0 for one in rows)


def test_reads_of_a_written_drive_do_not_wait_for_its_writes(tmp_path: Path) -> None:
    """With its SLC cache still being emptied behind them they were ten times slower."""
    text = KINDS["static SLC cache that is passed by"].rig
    judged = run(text, tmp_path, parts="size,steady", writes="2")
    rows = gather([str(judged.folder.path)]).observed
    lone = [one for one in rows if one.load.rw == "randread" and one.load.depth == 1]
    rates = {one.load.state: one.measured["iops"] for one in lone if one.load.bs == 4096}
    assert rates["steady"] == pytest.approx(rates["filled"], rel=0.02)


def test_a_twin_of_a_drive_without_an_slc_cache_has_none_and_its_spare_area(
    tmp_path: Path,
) -> None:
    """Shipped drives to start from may have one, and blocks that are large for a small drive."""
    text = rig({"channels": 3, "ways": 5}).replace("256MiB", "1GiB").replace("k = 6", "k = 24")
    judged = run(text, tmp_path, writes="2")
    told = gather([str(judged.folder.path)])
    assert uncached(conclusions(judged))
    found = fit(FitOrder(told.observed, 1 << 30, quick=True, concluded=told.concluded)).found
    twin = _core.Rig(found.space.rig(found.vector), rig_name="twin")
    assert twin.get("ftl.slc_cache.t_program") is None
    assert float(twin.get("ftl.over_provisioning") or 0) == pytest.approx(0.25, rel=0.3)


def test_a_start_much_smaller_than_its_drive_has_shorter_blocks() -> None:
    start = _core.Rig(starts.named("toshiba-xg5-512", 2 << 30).rig, rig_name="start")
    keys = ("channels", "ways", "planes", "pages_per_block")
    pages = math.prod(int(start.get(f"nand.{key}") or 0) for key in keys)
    assert (2 << 30) / (pages * (start.bytes("nand.page") or 0)) >= starts.SUPERBLOCKS
    whole = _core.Rig(profile("toshiba-xg5-512").text, rig_name="whole")
    of_a_page = [
        amount("nand.t_erase", one.get("nand.t_erase") or "")
        / int(one.get("nand.pages_per_block") or 0)
        for one in (start, whole)
    ]
    assert of_a_page[0] == pytest.approx(of_a_page[1], rel=1e-3)


def test_a_drive_that_changed_is_no_drive_to_fit(tmp_path: Path) -> None:
    """Reads that fall for good within a job are told with their time."""
    job = "[r]\nrw=randread\niodepth=4\ntime_based\nruntime=20\nrate_iops=2000\n"
    result = ssdlab.run(job, on="lab-reference", set={"capacity": "64MiB"})
    (read,) = result.measurement.jobs[0].directions
    _check_steady(result.measurement.jobs, "run")
    slower = pl.when(pl.col("time_s") > 12).then(0.5).otherwise(1.0) * pl.col("iops")
    fallen = replace(read, bins=read.bins.with_columns(slower.alias("iops")))
    with pytest.raises(InputError, match=r"from 1[23] s on 1,000: the drive changed"):
        _check_steady([replace(result.measurement.jobs[0], directions=[fallen])], "run")


def test_what_was_simulated_of_a_search_is_not_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSDLAB_CACHE", str(tmp_path))
    asked = ([KINDS["no buffer"].rig], [FitWorkload("randread", 4096, 4)])
    first = trial.answers(*asked)
    monkeypatch.setattr(trial, "Sim", None)  # no drive can be built any more
    assert trial.answers(*asked) == first
    with pytest.raises(TypeError):
        trial.answers(asked[0], [FitWorkload("randread", 4096, 8)])


def test_blind_twins_come_near_where_nothing_was_measured() -> None:
    (one,) = blind.selftest(1, seed=1, quick=True, jobs=6)
    assert one.determined >= 6
    assert set(one.inside) <= {True, False} and sum(one.inside) >= len(one.inside) - 2
    median = sorted(abs(error) for error in one.errors["iops"])[3]
    assert median < 0.1
    told = blind_answer.answer([one], quick=True)
    (row,) = (row for row in told.lead.telling[0].rows if row[0] == "IOPS, median error")
    assert isinstance(row[1], Cell) and row[1].value is not None
    assert row[3] == ("yes" if row[1].value <= 5 else "no")


def test_blind_twins_are_fitted_to_numbers_with_the_noise_of_measurements() -> None:
    means = {"iops": 50_000.0, "lat_mean_us": 80.0}
    rows = [
        Observation(FitWorkload("randread", 4096, 4), means),
        Observation(FitWorkload("write", 131072, 8), {"waf": 1.0}),
    ]
    told = [
        Conclusion("tR", 50.0, 49.0, 51.0, "us", "nand.t_read", ""),
        Conclusion("channels", 8.0, 8.0, 8.0, "", "nand.channels", ""),
    ]
    exact = Gathered(rows, 1 << 30, told)
    noisy = blind.as_measured(exact, 1, 2)
    assert noisy == blind.as_measured(exact, 1, 2) != blind.as_measured(exact, 1, 3)
    rate, counted = (one.measured for one in noisy.observed)
    assert rate["iops"] != 50_000
    assert rate["iops"] * rate["lat_mean_us"] == pytest.approx(50_000 * 80)  # Little's law
    assert counted == {"waf": 1.0}
    time, channels = noisy.concluded
    assert time.value and time.low and time.value != 50
    assert time.low / time.value == pytest.approx(49 / 50)
    assert channels == told[1]


def test_random_rigs_are_the_same_for_the_same_seed_and_differ_for_others() -> None:
    assert blind.drawn(1, 2) == blind.drawn(1, 2) != blind.drawn(2, 2)
    assert blind.unseen(1, 2) == blind.unseen(1, 2)
    assert len(set(blind.unseen(1, 2))) == 20


def test_random_rigs_have_every_victim_policy_that_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blind, "registered", lambda kind: {f"{kind} {n}": "" for n in range(3)})
    found = {blind.drawn(1, number)["ftl.gc.victim"] for number in range(60)}
    assert found == {"victim policy 0", "victim policy 1", "victim policy 2"}


def test_pages_are_told_in_kib_and_an_interval_in_the_unit_of_its_value() -> None:
    page = Conclusion("sensed at once", 16384.0, None, None, "B", "", "")
    spare = Conclusion("over-provisioning", 0.287, 0.269, 0.307, "x", "", "")
    told = characterise._number(page)
    assert (told.value, told.unit) == (16.0, "KiB")
    assert characterise._said(spare) == "over-provisioning of 28.7 % (26.9 % .. 30.7 %)"
    share = characterise._number(spare)
    assert share.value == pytest.approx(28.7) and share.unit == "%"
    kept = Conclusion("buffer kept over a power failure", 0.0, 0.0, 0.0, "yes/no", "", "")
    answer = numbers_table([characterise._number(kept)])
    assert [cell_text(one) for one in answer.rows[0]] == [kept.name, "no", "yes/no"]
    large = replace(page, value=2421760.0)
    assert [cell_text(row[1]) for row in table([page, large, spare]).rows] == [
        "16,384", "2,421,760", "0.287"
    ]  # fmt: skip
