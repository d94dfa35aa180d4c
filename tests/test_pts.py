"""The tests of the SNIA PTS: plans, arithmetic, steady state, partial runs, job files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import Outcome, histogram_of, needs_fio
from fio_parser import refused
from ssdlab import _core
from ssdlab.answer import Cell, Table
from ssdlab.engine import estimate, steady_report
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.records import Records, RoundsRecord
from ssdlab.engine.setup import MIB, Setup
from ssdlab.engine.steps import Idle, Job, Purge, Rounds, Step, Then, Trim, in_round
from ssdlab.errors import InputError
from ssdlab.protocols import (
    find,
    pts_composite,
    pts_demand,
    pts_dirth,
    pts_hir,
    pts_iops,
    pts_wsat,
    pts_xsr,
)
from ssdlab.protocols import pts_common as pts
from ssdlab.report import drawing
from ssdlab.results import SERIES_SCHEMA, Result

GIB = 1 << 30
NAMES = (
    "pts-iops", "pts-throughput", "pts-latency", "pts-wsat",
    "pts-hir", "pts-xsr", "pts-composite", "pts-dirth",
)  # fmt: skip
EVERY = pytest.mark.parametrize("name", NAMES)
SAMPLE = [228.90, 240.21, 240.60, 240.71, 240.71]
"""A published log of a test to steady state; it prints mean 238.23, excursion 11.81, slope 2.41."""


def setup_of(name: str, *, block: int = 512, capacity: int = 64 * GIB, **given: object) -> Setup:
    protocol = find(name)
    values = protocol.values({key: str(value) for key, value in given.items()})
    share = protocol.active_share(values)
    active = int(capacity * share) // MIB * MIB
    return Setup(capacity, "sim", active, values, block=block)


def options(job: Job) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(.*)$", job.text, flags=re.MULTILINE))


def seconds_of(jobs: Sequence[Job]) -> float:
    return sum(job.seconds or 0.0 for job in jobs)


def nothing() -> Records:
    """Before anything was measured."""
    results: dict[str, Result] = {}
    return Records(load=results.__getitem__)


def number_of(job: Job) -> int:
    """The round of a job; 0 outside of rounds."""
    found = re.match(r"round(\d+)/", job.key)
    return int(found[1]) if found else 0


def rounds_of(steps: Sequence[Step]) -> list[Rounds]:
    return [step for step in steps if isinstance(step, Rounds)]


Rate = Callable[[Job], float]


def answer(job: Job, rate: float) -> Result:
    """A result of ``rate`` I/Os per second in all, split as the job's mix says."""
    sections = re.split(r"^\[(.+?)\]$", job.text, flags=re.MULTILINE)[1:]
    found, rows = [], []
    for title, text in zip(sections[::2], sections[1::2], strict=True):
        chosen: dict[str, str] = dict(re.findall(r"^(\w+)=(.*)$", text, flags=re.MULTILINE))
        size = int(chosen["bs"][:-1]) << 10 if chosen.get("bs", "").endswith("k") else 4096
        size = int(chosen["bs"]) if chosen.get("bs", "").isdigit() else size
        long = float(chosen["runtime"][:-2]) / 1000 if "runtime" in chosen else 1e9
        if "time_based" not in chosen:
            amount = int(chosen.get("io_size", chosen["size"]))
            long = min(long, amount / (rate * size))
        entry: dict[str, Any] = {"jobname": title, "error": 0, "job options": {}}
        plain = {"read": 1.0, "write": 0.0}
        mix = int(chosen.get("rwmixread", 50)) / 100
        reads = plain.get(chosen["rw"].removeprefix("rand"), mix)
        for ddir, share in (("read", reads), ("write", 1 - reads)):
            if not share:
                continue
            iops, ios = share * rate, max(1, round(share * rate * long))
            entry[ddir] = {
                "total_ios": ios,
                "io_bytes": ios * size,
                "runtime": 1000 * long,
                "iops": iops,
                "bw_bytes": iops * size,
                "clat_ns": {"mean": 1e5, "max": 2_000_000, "bins": {"100352": ios}},
            }
            minutes = int(long // 60)
            ends = [60.0 * n for n in range(1, minutes + 1)] if minutes > 1 else [long]
            row = {"job": title, "ddir": ddir, "ios": ios // len(ends), "iops": iops}
            row |= {"bytes": ios * size // len(ends), "bw_bytes": iops * size, "lat_min_ns": 1}
            row |= {"lat_mean_ns": 1e5, "lat_max_ns": 2_000_000, "lat_p50_ns": 1, "lat_p99_ns": 1}
            rows += [{"time_s": end, **row} for end in ends]
        found.append(entry)
    return Result(
        "x", {"jobs": found, "ssdlab": {"interval_ms": 1000}}, job.text,
        pl.DataFrame(rows, schema=SERIES_SCHEMA),
    )  # fmt: skip


def walk(
    steps: Sequence[Step], records: Records, results: dict[str, Result], rate: Rate
) -> Iterator[Step]:
    """Carries steps out over results that ``rate`` makes up; yields each when it is done."""
    for step in steps:
        if isinstance(step, Rounds):
            for number in range(1, step.most + 1):
                yield from walk(step.jobs(number), records, results, rate)
                before = records.rounds.get(step.key)
                records.rounds[step.key] = estimate.rounds_record(step, records, before)
                if records.rounds[step.key].steady:
                    break
        elif isinstance(step, Then):
            yield from walk(step.make(records), records, results, rate)
        elif isinstance(step, Job):
            assert step.key not in results, f"{step.key} comes twice"
            results[step.key] = answer(step, rate(step))
            records.add(step.key, results[step.key])
            yield step
        else:
            yield step


def run(setup: Setup, protocol: Protocol, rate: Rate) -> tuple[Records, list[Step]]:
    results: dict[str, Result] = {}
    records = Records(load=results.__getitem__)
    return records, list(walk(protocol.plan(setup), records, results, rate))


def flat(_job: Job) -> float:
    return 20_000.0


def table(tables: Sequence[Table], title: str) -> dict[str, list[Any]]:
    """The rows of a table by their first cell: values, and the words where there is none."""
    found = next(one for one in tables if one.title.startswith(title))

    def held(cell: Cell | str | None) -> float | str | None:
        if not isinstance(cell, Cell):
            return cell
        return cell.text or None if cell.value is None else cell.value

    return {str(row[0]): [*map(held, row[1:])] for row in found.rows}


def record(values: Mapping[str, list[float]], most: int = 25) -> RoundsRecord:
    count = len(next(iter(values.values())))
    return RoundsRecord("k", "a test", count, values, dict.fromkeys(values, "MB/s"), 5, most)


# --- plans


@EVERY
def test_a_plan_begins_with_a_purge_and_can_be_estimated(name: str) -> None:
    steps = find(name).plan(setup_of(name))
    assert isinstance(steps[0], Purge)
    whole = estimate.of(steps)
    assert whole.never.high >= whole.soon.high >= whole.soon.low > 0
    assert whole.written.high >= whole.written.low > 0


@EVERY
def test_the_settings_decide_about_range_depth_and_threads(name: str) -> None:
    for settings, active in (("enterprise", 64 * GIB), ("client", 48 * GIB)):
        setup = setup_of(name, settings=settings)
        assert setup.active == active
        conditions = find(name).judge(nothing(), setup).tables[-1]
        shown = {str(row[0]): str(row[1]) for row in conditions.rows}
        assert settings in shown["settings"]
        assert (
            f"want it {'off' if settings == 'enterprise' else 'on'}"
            in (shown["volatile write cache"])
        )
    given = setup_of(name, settings="client", active=30)
    assert given.active == int(0.3 * 64 * GIB) // MIB * MIB


def test_depth_and_threads_can_be_given() -> None:
    for settings, depth, threads in (("enterprise", 32, 4), ("client", 16, 2)):
        (loop,) = rounds_of(find("pts-iops").plan(setup_of("pts-iops", settings=settings)))
        for job in loop.jobs(1):
            assert (options(job)["iodepth"], options(job)["numjobs"]) == (str(depth), str(threads))
    (loop,) = rounds_of(find("pts-iops").plan(setup_of("pts-iops", depth=7, threads=3)))
    assert {(options(j)["iodepth"], options(j)["numjobs"]) for j in loop.jobs(1)} == {("7", "3")}


def test_a_round_of_iops_has_56_minutes() -> None:
    purge, fill, loop = find("pts-iops").plan(setup_of("pts-iops"))
    assert isinstance(purge, Purge)
    assert isinstance(fill, Job)
    assert fill.amount == 2 * 64 * GIB
    assert not fill.measured
    assert isinstance(loop, Rounds)
    jobs = loop.jobs(3)
    assert len(jobs) == len({job.key for job in jobs}) == 56
    assert seconds_of(jobs) == 56 * 60
    assert loop.most == 25
    assert {one.name for one in loop.tracked} == {
        "RND 4 KiB, R/W 0/100", "RND 64 KiB, R/W 65/35", "RND 1024 KiB, R/W 100/0",
    }  # fmt: skip
    shares = {job.key: round(100 * job.shape.write_share) for job in jobs}
    assert shares[in_round(3, "r65-b4k")] == 35
    assert shares[in_round(3, "r0-b512")] == 100
    assert shares[in_round(3, "r100-b1024k")] == 0
    for job in jobs:
        reads = int(job.key.rpartition("/r")[2].partition("-")[0])
        said = options(job)
        plain = {100: "randread", 0: "randwrite"}.get(reads)
        assert said["rw"] == (plain or "randrw")
        assert said.get("rwmixread") == (None if plain else str(reads))


def test_throughput_purges_and_fills_for_each_block_size() -> None:
    steps = find("pts-throughput").plan(setup_of("pts-throughput"))
    assert [type(step) for step in steps] == [Purge, Job, Rounds] * 2
    for loop, size in zip(rounds_of(steps), ("1024k", "128k"), strict=True):
        read, write = loop.jobs(1)
        assert (options(read)["rw"], options(write)["rw"]) == ("read", "write")
        assert options(read)["bs"] == options(write)["bs"] == size
        assert seconds_of([read, write]) == 120
        assert options(write)["numjobs"] == "1"


def test_sequential_threads_keep_out_of_each_others_way() -> None:
    setup = setup_of("pts-throughput", threads=3)
    for loop in rounds_of(find("pts-throughput").plan(setup)):
        said = options(loop.jobs(1)[1])
        assert said["size"] == said["offset_increment"]
        assert 3 * int(said["size"]) <= setup.active


def test_latency_measures_nine_points_and_a_histogram() -> None:
    steps = find("pts-latency").plan(setup_of("pts-latency"))
    (loop,) = rounds_of(steps)
    jobs = loop.jobs(1)
    assert len(jobs) == 9
    assert seconds_of(jobs) == 540
    histogram = steps[-1]
    assert isinstance(histogram, Job)
    assert histogram.seconds == 1200
    for job in (*jobs, histogram):
        assert (options(job)["iodepth"], options(job)["numjobs"]) == ("1", "1")


def test_bursts_keep_their_timetable() -> None:
    setup = setup_of("pts-hir")
    steps = find("pts-hir").plan(setup)
    (loop,) = rounds_of(steps)
    assert seconds_of(loop.jobs(1)) == 1800
    for wait in (5, 10, 15, 25, 50):
        batches = [s for s in steps if isinstance(s, Job) and s.key.startswith(f"wait{wait:02d}/b")]
        bursts = [b for b in batches if "bursts" in b.key]
        baseline = [b for b in batches if "baseline" in b.key]
        assert seconds_of(baseline) == 1800
        delays = [[int(ms) for ms in re.findall(r"startdelay=(\d+)ms", job.text)] for job in bursts]
        assert sum(map(len, delays)) == 360
        assert seconds_of(bursts) == 360 * (5 + wait)
        for job, found in zip(bursts, delays, strict=True):
            cycle = 1000 * (5 + wait)
            assert found == [1000 * wait + n * cycle for n in range(len(found))]
            assert job.text.count("runtime=5000ms") == job.text.count("new_group=1") == len(found)
            names = re.findall(r"^\[(.+)\]$", job.text, flags=re.MULTILINE)
            assert len(set(names)) == len(names)


def test_the_composite_load_is_that_of_the_standard() -> None:
    setup = setup_of("pts-composite")
    steps = find("pts-composite").plan(setup)
    grid = [step for step in steps if isinstance(step, Job) and step.measured]
    assert len(grid) == 49
    assert seconds_of(grid) == 49 * 60
    (loop,) = rounds_of(steps)
    for job in (*grid, *loop.jobs(1)):
        said = options(job)
        split = dict(part.split("/") for part in said["bssplit"].split(":"))
        assert sum(map(int, split.values())) == 100
        assert split["512"] == "4"
        assert split["4k"] == "67"
        assert "bs" not in said
        assert said["random_distribution"] == "zoned:50/5:30/15:20/80"
    assert {round(job.shape.write_share, 2) for job in grid} == {0.6}
    assert {job.shape.write_share for job in loop.jobs(1)} == {1.0}


def test_composite_sizes_are_rounded_up_to_larger_logical_blocks() -> None:
    setup = setup_of("pts-composite", block=4096)
    found = pts_composite.shares(setup)
    assert found == [(4096, 77), (8192, 10), (16384, 7), (32768, 3), (65536, 3)]
    judged = find("pts-composite").judge(nothing(), setup)
    assert any("rounded up" in sentence for sentence in judged.sentences)


def test_a_round_of_demand_intensity_has_49_minutes_after_5() -> None:
    setup = setup_of("pts-dirth")
    (loop,) = rounds_of(find("pts-dirth").plan(setup))
    jobs = loop.jobs(1)
    assert len(jobs) == 50
    assert seconds_of(jobs) == 300 + 49 * 60
    loads = [int(options(j)["iodepth"]) * int(options(j)["numjobs"]) for j in jobs[1:]]
    assert loads[0] == max(loads) == 1024
    assert loads[-1] == min(loads) == 1


def test_small_blocks_are_left_out_where_the_drive_cannot_do_them() -> None:
    for name, count in (("pts-iops", 49), ("pts-latency", 6)):
        setup = setup_of(name, block=4096)
        (loop,) = rounds_of(find(name).plan(setup))
        assert len(loop.jobs(1)) == count
        judged = find(name).judge(nothing(), setup)
        assert any("0.5 KiB are left out" in sentence for sentence in judged.sentences)
    with pytest.raises(InputError, match="logical blocks of 4096 bytes"):
        setup_of("pts-iops", block=4096).job("k", "t", "randread", 512)


@pytest.mark.parametrize(("block", "size", "rate"), [(512, 4096, 4096.0), (8192, 8192, 8192.0)])
def test_iops_are_told_of_4_kib_or_of_the_smallest_size_that_the_drive_can_do(
    block: int, size: int, rate: float
) -> None:
    setup = setup_of("pts-iops", block=block)
    before = find("pts-iops").judge(nothing(), setup)
    assert before.verdict.code == "not-measured"

    def rate_of(job: Job) -> float:
        found = options(job)
        return float(_core.parse_fio_size(found["bs"])) * (2 if found["rw"] == "randread" else 1)

    records, _ = run(setup, find("pts-iops"), rate_of)
    judged = find("pts-iops").judge(records, setup)
    assert judged.verdict.code == "measured"
    told = {"block": size, "read_iops": 2 * rate, "write_iops": rate}
    assert judged.verdict.values == pytest.approx(told)
    text = f"{size >> 10} KiB at a time, it reads {2 * rate:,.0f} and writes {rate:,.0f} IOPS"
    assert text in judged.sentences[0]
    rounds = next(table for table in judged.tables if "each round" in table.title)
    assert len(rounds.rows) == 7 * sum(one % block == 0 for one in pts_iops.SIZES)


# --- steps that depend on what was measured


def written(records: Records) -> float:
    return sum(s.io_bytes for key in records for s in records.directions(key, "write"))


def test_saturation_ends_when_four_times_the_range_is_written() -> None:
    setup = setup_of("pts-wsat")
    # 64 GiB at a rate that falls and never rests.
    records, _ = run(
        setup, find("pts-wsat"), lambda job: 300_000.0 / (1 + int(job.key[-4:])) ** 0.2
    )
    minute = sum(s.io_bytes for s in records.directions(pts_wsat.key_of(1)))
    assert 4 * setup.active <= written(records) < 4 * setup.active + 2 * minute
    said = " ".join(find("pts-wsat").judge(records, setup).sentences)
    assert "4 x the active range is written" in said
    assert "x the active range, and was not steady yet." in said
    level, _ = run(setup, find("pts-wsat"), lambda job: 300_000.0 - 10 * int(job.key[-4:]))
    assert "steady yet" not in find("pts-wsat").judge(level, setup).sentences[0]


def test_the_end_of_a_short_saturation_is_not_all_of_it() -> None:
    setup = setup_of("pts-wsat", times=0.5)
    # Eight records, less than half an hour: what the fresh drive did is not how it ends.
    rate = 0.5 * setup.active / 4096 / 60 / (2 * 3 + 6)
    records, _ = run(
        setup, find("pts-wsat"), lambda job: rate * (3 if int(job.key[-4:]) <= 2 else 1)
    )
    assert len(records) == 8
    judged = find("pts-wsat").judge(records, setup)
    found = {one.name: one.value for one in judged.numbers}
    assert found["at the end"] == pytest.approx(rate)
    assert found["at the end / first record"] == pytest.approx(1 / 3)
    assert f"in the end {rate:,.0f}, 33 % of it" in judged.sentences[0]
    by_record = next(table for table in judged.tables if "record by record" in table.title)
    assert len(by_record.rows) == 8
    conditions = {str(row[0]): row[1] for row in judged.tables[-1].rows}
    assert conditions["at the end"] == "means of the last 2 of 8 records: 2 min 00 s"


def test_saturation_ends_after_a_day() -> None:
    setup = setup_of("pts-wsat")
    records, _ = run(setup, find("pts-wsat"), lambda job: 500 * 0.996 ** int(job.key[-4:]))
    assert len(records) == 1440
    assert any("longest time" in s for s in find("pts-wsat").judge(records, setup).sentences)


def test_a_large_drive_that_is_even_while_it_is_new_is_not_called_steady() -> None:
    setup = setup_of("pts-wsat")
    records, _ = run(setup, find("pts-wsat"), lambda job: 1000)
    assert len(records) == 150 and written(records) < setup.active
    said = find("pts-wsat").judge(records, setup).sentences
    assert said[0].endswith(" x the active range, too little for steady state.")
    assert said[1] == ("The test ended after 2 h 30 min, at a rate that the rule takes for steady.")


def test_saturation_ends_when_five_half_hours_are_steady() -> None:
    setup = setup_of("pts-wsat")
    records, _ = run(setup, find("pts-wsat"), lambda job: 10000 if int(job.key[-4:]) < 45 else 1000)
    # The values at 60, 90 ... 180 minutes; the one at 30 is from before the fall.
    assert len(records) == 180
    judged = find("pts-wsat").judge(records, setup)
    assert "It is steady after 3 h 00 min." in judged.sentences
    quick = find("pts-wsat").judge(records, replace(setup, quick=True)).sentences
    assert "The test ended after 3 h 00 min, at a rate that the rule takes for steady." in quick
    by_record = next(table for table in judged.tables if "record by record" in table.title)
    assert [row[0] for row in by_record.rows][:3] == ["1", "10", "20"]
    assert len(by_record.rows) == 19


def test_a_percentile_of_too_few_writes_is_not_zero() -> None:
    setup = setup_of("pts-wsat", hours=3)
    records, _ = run(setup, find("pts-wsat"), lambda _job: 0.05)
    found = {one.name: one.value for one in find("pts-wsat").judge(records, setup).numbers}
    assert found["p99.9 latency, at the end"] is None
    assert found["mean latency, at the end"] == pytest.approx(100)


def test_a_stopped_saturation_goes_on_with_the_same_steps() -> None:
    setup, protocol = setup_of("pts-wsat"), find("pts-wsat")

    def rate(job: Job) -> float:
        return float(200_000 / (1 + int(job.key[-4:])) ** 0.3)

    whole, steps = run(setup, protocol, rate)
    # Another walk over the same results, all of them there from the start.
    results = {key: whole[key] for key in whole}
    known = Records(load=results.__getitem__, keys_=list(results))

    def keys(steps: Sequence[Step]) -> Iterator[str]:
        for step in steps:
            yield from keys(step.make(known)) if isinstance(step, Then) else [step.key]

    assert list(keys(protocol.plan(setup))) == [step.key for step in steps if not_then(step)]


def not_then(step: Step) -> bool:
    return not isinstance(step, (Then, Rounds, Trim, Idle))


def test_cross_stimulus_takes_8_6_and_8_hours_and_writes_whole_ranges() -> None:
    setup = setup_of("pts-xsr")
    records, steps = run(setup, find("pts-xsr"), lambda job: 400 if job.key[0] != "r" else 3000)
    jobs = [step for step in steps if isinstance(step, Job)]
    for phase, hours in (("first", 8), ("random", 6), ("again", 8)):
        mine = [job for job in jobs if job.key.startswith(phase)]
        took = sum(records.directions(job.key)[0].runtime_s for job in mine)
        assert took == pytest.approx(3600 * hours, rel=0.01), phase
        assert len(mine) > 8, "a stopped run repeats little"
        for job in mine:
            if phase != "random":
                assert int(options(job)["io_size"]) % setup.active == 0
                assert options(job)["iodepth"] == "32"
                assert options(job)["numjobs"] == "1"


def test_recovery_is_counted_to_the_first_groups_mean() -> None:
    setup = setup_of("pts-xsr")

    def rate(job: Job) -> float:
        piece = int(job.key[-3:])
        return {"first": 400.0, "random": 3000.0}.get(job.key[:-3], 200.0 if piece < 4 else 396.0)

    records, _ = run(setup, find("pts-xsr"), rate)
    slow = sum(records.directions(f"again{n:03d}")[0].runtime_s for n in (1, 2, 3)) / 60
    judged = find("pts-xsr").judge(records, setup)
    (recovery,) = [one for one in judged.numbers if one.name == "recovery"]
    assert recovery.value == pytest.approx(slow, abs=2.5)
    by_name = {one.name: one.value for one in judged.numbers}
    assert by_name["throughput, SEQ 1024 KiB writes"] == pytest.approx(400 * MIB / 1e6, rel=0.01)
    assert by_name["throughput, RND 8 KiB writes"] == pytest.approx(3000 * 8192 / 1e6, rel=0.01)


def point(iops: float, mean_us: float) -> pts_demand.DemandPoint:
    return pts_demand.DemandPoint(iops, mean_us, mean_us, ())


def test_the_points_of_the_histograms_are_chosen_by_the_rule() -> None:
    grid = {
        (32, 32): point(90_000, 11_000),  # most, but slower than 5 ms
        (8, 32): point(80_000, 3_200),
        (4, 8): point(47_000, 700),
        (2, 8): point(30_000, 500),
        (1, 1): point(8_000, 120),
    }
    # The middle between 80 000 and 8 000 is 44 000.
    assert pts_dirth.choose(grid) == {"min": (1, 1), "mid": (4, 8), "max": (8, 32)}
    slow = {at: point(p.iops, p.mean_us + 5000) for at, p in grid.items()}
    assert pts_dirth.choose(slow)["max"] == (1, 1), "the quickest where none is quick enough"
    assert pts_dirth.choose({}) == {}


def test_histograms_are_made_at_the_chosen_points() -> None:
    setup = setup_of("pts-dirth")

    def rate(job: Job) -> float:
        said = options(job)
        return 100.0 * int(said["iodepth"]) * int(said["numjobs"])

    records, steps = run(setup, find("pts-dirth"), rate)
    last = [step for step in steps if isinstance(step, Job)][-6:]
    assert [job.key for job in last] == [
        f"{what}-{name}" for name in ("min", "mid", "max") for what in ("prewrite", "histogram")
    ]
    assert [job.seconds for job in last] == [3600, 600] * 3
    loads = [int(options(j)["iodepth"]) * int(options(j)["numjobs"]) for j in last]
    assert loads == [1024, 1, 1024, 512, 1024, 1024]
    rows = table(find("pts-dirth").judge(records, setup).tables, "Response times of the histograms")
    assert rows["max"][:3] == [32, 32, 1024]


# --- arithmetic


def test_the_iops_of_a_mix_are_reads_and_writes_together() -> None:
    setup = setup_of("pts-iops")
    records, _ = run(setup, find("pts-iops"), flat)
    judged = find("pts-iops").judge(records, setup)
    for row in table(judged.tables, "IOPS, means").values():
        assert row == [pytest.approx(20_000)] * 7
    assert records.rounds["iops"].count == 5


def test_numbers_are_means_of_the_measurement_window() -> None:
    setup = setup_of("pts-iops")

    def rate(job: Job) -> float:
        number = number_of(job)
        return {1: 90_000, 2: 50_000}.get(number, 10_000.0 + 100 * number)

    records, _ = run(setup, find("pts-iops"), rate)
    assert records.rounds["iops"].window_rounds() == range(3, 8)
    judged = find("pts-iops").judge(records, setup)
    assert table(judged.tables, "IOPS, means")["4 KiB"][0] == pytest.approx(10_500)
    by_name = {one.name: one for one in judged.numbers}
    assert by_name["RND 4 KiB, R/W 0/100"].value == pytest.approx(10_500)
    assert by_name["RND 4 KiB, R/W 0/100"].sources == tuple(
        in_round(n, "r0-b4k") for n in range(3, 8)
    )
    assert not any("Steady state was not" in sentence for sentence in judged.sentences)


@pytest.mark.parametrize("name", ["pts-latency", "pts-dirth"])
def test_a_mean_latency_of_the_window_is_that_of_its_rounds(name: str) -> None:
    """A round of few slow I/Os counts as much as one of many quick ones, as in its steady state."""
    setup = setup_of(name)
    rounds, _ = run(setup, find(name), flat)
    key, lone = ("latency", "lat-r0-b4k") if name == "pts-latency" else ("demand", "tc01-qd01")
    for number in rounds.rounds[key].window_rounds():
        (job,) = rounds[in_round(number, lone)].document["jobs"]
        for ddir in {"read", "write"} & set(job):
            ios, mean = (10, 500_000) if number == 2 else (990, 100_000)
            job[ddir]["total_ios"] = ios
            job[ddir]["clat_ns"] |= {"mean": mean, "bins": {"100352": ios}}
    records = Records(load=rounds.load, keys_=list(rounds), rounds=rounds.rounds)
    judged = find(name).judge(records, setup)
    title = "Mean latency" if name == "pts-latency" else "Mean response"
    rows = table(judged.tables, title)
    told = rows["4 KiB" if name == "pts-latency" else "TC 1"][-1]
    assert told == pytest.approx((500 + 4 * 100) / 5)


def test_percentiles_of_a_window_are_those_of_all_its_ios() -> None:
    bins = histogram_of({1_004: 9_890, 5_024: 100, 80_384: 9, 80_300: 1})
    assert bins.percentile_us(98.9) == 1.004
    assert bins.percentile_us(99.0) == 5.024
    assert bins.percentile_us(99.9) == 5.024
    assert bins.percentile_us(99.99) == 80.384
    assert bins.percentile_us(99.999) is None, "nobody is the slowest in 100,000 of 10,000"


def test_the_outline_of_a_histogram_keeps_every_io() -> None:
    bins = histogram_of({900: 5, 1_100: 7, 64_000: 3})
    curve = pts.histogram_curve("x", bins)
    assert sum(y for y in curve.y if y >= 1) == 15
    assert curve.x[0] <= 0.9 < 64.0 < curve.x[-1]


def test_idle_gains_are_bursts_against_the_return() -> None:
    setup = setup_of("pts-hir", bursts=24)

    def rate(job: Job) -> float:
        return 3000.0 if "bursts" in job.key else 1000.0

    records, _ = run(setup, find("pts-hir"), rate)
    judged = find("pts-hir").judge(records, setup)
    by_name = {one.name: one.value for one in judged.numbers}
    assert by_name["saturated"] == pytest.approx(1000)
    for wait in pts_hir.WAITS:
        assert by_name[f"bursts after {wait} s idle / without a pause"] == pytest.approx(3.0)


# --- steady state


def test_the_published_sample_is_steady_and_reported_with_its_numbers() -> None:
    found = record({"SEQ": [100.0, 180.0, *SAMPLE]})
    assert found.steady
    assert steady_report.verdict(found) == "steady from round 3"
    assert steady_report.sentence(found).startswith("Steady state was reached")
    quick = steady_report.sentence(found, quick=True)
    assert quick.startswith("Rounds 3 to 7 are alike") and "shows no steady state" in quick
    rows = table([steady_report.table(found)], "Steady state")
    assert rows["mean"][0] == pytest.approx(238.23, abs=0.005)
    assert rows["measured max - min"][0] == pytest.approx(11.81, abs=0.005)
    assert rows["allowed max - min"][0] == pytest.approx(0.2 * 238.23, abs=0.01)
    assert rows["slope per round"][0] == pytest.approx(2.41, abs=0.005)
    assert rows["measured slope over the window"][0] == pytest.approx(9.65, abs=0.005)
    assert rows["allowed slope over the window"][0] == pytest.approx(23.82, abs=0.005)
    assert rows["verdict"] == ["steady"]
    # 238.226 - 2.412 x 5: the window's middle is round 5.
    assert rows["fitted line"] == ["2.412 x R + 226.2"]
    shown = steady_report.figures(found)
    assert [one.title.partition(":")[0] for one in shown] == [
        "Steady state convergence", "Measurement window",
    ]  # fmt: skip
    assert list(shown[1].curves[0].x) == [3, 4, 5, 6, 7]
    assert {curve.name for curve in shown[1].curves} >= {"mean", "+10 %", "-10 %", "fitted line"}


def test_a_round_that_a_check_puts_in_doubt_marks_its_value_and_all_that_rests_on_it() -> None:
    keys = tuple(f"round{n}/{job}" for n in range(1, 8) for job in "ab")
    found = replace(record({"SEQ": [100.0, 180.0, *SAMPLE]}), keys=keys)

    def doubted(*bad: str) -> list[str]:
        return [
            str(row[0])
            for row in steady_report.table(found).rows
            if any(isinstance(cell, Cell) and {*bad} & {*cell.sources} for cell in row)
        ]

    assert doubted("round1/a") == [], "it stands before the window"
    assert {"round 4", "mean", "measured max - min"} <= {*doubted("round4/b")}
    assert "round 5" not in doubted("round4/b")
    convergence, window = steady_report.figures(found)
    assert "round1/a" in convergence.sources and "round1/a" not in window.sources
    assert "round4/b" in window.sources


def test_a_tracked_value_carries_the_marks_of_its_own_job_alone() -> None:
    """A round reads and writes, and the writes are to be steady."""
    records, _ = run(setup_of("pts-throughput"), find("pts-throughput"), flat)
    found = records.rounds["seq-128k"]
    cells = [cell for row in steady_report.table(found).rows for cell in row[1:]]
    sources = {key for cell in cells if isinstance(cell, Cell) for key in cell.sources}
    sources |= {key for figure in steady_report.figures(found) for key in figure.sources}
    assert sources == {in_round(number, "seq-128k-write") for number in range(1, 6)}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([90.0, 111.0, 100.0, 100.0, 99.0], "spread too large"),
        ([94.5, 97.25, 100.0, 102.75, 105.5], "rising"),
        ([105.5, 102.75, 100.0, 97.25, 94.5], "falling"),
        ([100.0, 100.0, 100.0, 100.0, 140.0], "spread too large, rising"),
    ],
)
def test_a_window_beyond_a_limit_is_not_steady(values: list[float], why: str) -> None:
    found = record({"x": values})
    assert not found.steady
    assert steady_report.verdict(found) == "not achieved in 5 rounds"
    assert table([steady_report.table(found)], "Steady")["verdict"] == [f"not steady: {why}"]


def test_limits_themselves_are_steady() -> None:
    assert record({"x": [90.0, 110.0, 100.0, 110.0, 90.0]}).steady
    assert record({"x": [95.0, 97.5, 100.0, 102.5, 105.0]}).steady


def test_all_tracked_values_must_be_steady() -> None:
    found = record({"a": SAMPLE, "b": [50.0, 100.0, 100.0, 100.0, 100.0]})
    assert not found.steady
    rows = table([steady_report.table(found)], "Steady")
    assert rows["verdict"][0] == "steady"
    assert str(rows["verdict"][1]).startswith("not steady")


def test_25_rounds_without_steady_state_end_the_test_and_are_said() -> None:
    setup = setup_of("pts-iops")
    # 10 % more in each round: 46 % from the first of a window to its last.
    records, _ = run(setup, find("pts-iops"), lambda job: 1000 * 1.1 ** number_of(job))
    found = records.rounds["iops"]
    assert found.count == 25
    assert steady_report.verdict(found) == "not achieved in 25 rounds"
    judged = find("pts-iops").judge(records, setup)
    assert any("not achieved in 25 rounds" in sentence for sentence in judged.sentences)


def test_a_late_jump_delays_the_steady_state() -> None:
    setup = setup_of("pts-latency")
    records, _ = run(setup, find("pts-latency"), flat)
    assert records.rounds["latency"].count == 5
    setup = setup_of("pts-iops")
    records, _ = run(setup, find("pts-iops"), lambda job: 2000 if number_of(job) == 4 else 1000)
    assert records.rounds["iops"].window_rounds() == range(5, 10)


def test_too_few_rounds_say_so() -> None:
    found = record({"x": [1.0, 2.0]})
    assert "2 rounds of at least 5" in steady_report.verdict(found)
    assert len(steady_report.figures(found)) == 1
    assert steady_report.table(found).rows


# --- partial runs


@EVERY
@pytest.mark.parametrize("quick", [False, True])
def test_every_begin_of_a_run_can_be_judged_and_drawn(name: str, quick: bool) -> None:
    protocol = find(name)
    given = {"pts-hir": {"bursts": 24}, "pts-wsat": {"hours": 3}}.get(name, {})
    whole = setup_of(name, capacity=4 * GIB, **given)
    setup = Setup(
        whole.capacity, "sim", whole.active, whole.values,
        divisor=protocol.quick_divisor if quick else 1.0, quick=quick,
    )  # fmt: skip
    results: dict[str, Result] = {}
    records = Records(load=results.__getitem__)
    protocol.judge(records, setup)
    done = 0
    for done, _ in enumerate(walk(protocol.plan(setup), records, results, flat), start=1):
        # All of the first steps, then ever fewer: a judgement of all takes its time.
        if done > 20 and done % 29:
            continue
        judged = protocol.judge(records, setup)
        assert judged.sentences
        if done in (1, 3, 29):
            drawing.groups("f", judged.figures, {})
    assert done >= 5
    judged = protocol.judge(records, setup)
    keys = set(records)
    for one in judged.numbers:
        assert set(one.sources) <= keys
        assert one.value is None or one.sources or one.name == "written / active range"
    for chart in judged.figures:
        assert chart.sources
        assert set(chart.sources) <= keys
    drawn: dict[str, Any] = {}
    drawing.groups("f", judged.figures, drawn)
    assert len(drawn) == len(judged.figures) > 0


# --- job files


def all_jobs(name: str) -> list[Job]:
    setup = setup_of(name)
    _, steps = run(setup, find(name), flat)
    found: dict[str, Job] = {}
    for step in steps:
        if isinstance(step, Job):
            found.setdefault(re.sub(r"round\d+/|\d{3,4}$", "", step.key), step)
    return list(found.values())


@EVERY
def test_the_core_takes_every_job(name: str) -> None:
    for job in all_jobs(name):
        _core.check_job(job.text, job_name=job.key)


@needs_fio()
def test_fio_takes_every_job(tmp_path: Path) -> None:
    texts = {
        name: "[global]\nfilename=target\n\n" + "\n".join(job.text for job in all_jobs(name))
        for name in NAMES
    }
    assert refused(texts, tmp_path) == {}
    # It does notice what it does not know, and among many job files in which one it is.
    some = {name: texts[name] for name in NAMES[:2]} | {"wrong": "[w]\nblocksizes=4k\n"}
    found = refused(some, tmp_path)
    assert list(found) == ["wrong"] and "blocksizes" in found["wrong"]


def test_the_mean_response_of_a_phase_is_of_its_ios() -> None:
    phase = pts_xsr.PhaseRecords(
        pts_xsr.PHASES[1], ("k",), [1, 2], [90, 10], [100, 1000], [1, 1], 0
    )
    assert phase.mean_response() == pytest.approx(190)


@pytest.mark.parametrize("name", ["pts-throughput", "pts-wsat", "pts-hir", "pts-xsr"])
def test_a_quick_look_runs_on_a_simulated_drive(
    name: str, cli: Callable[..., Outcome], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    said = cli(
        "test", "lab-reference", "-p", name, "--quick", "--out", tmp_path, "--report", page, "-v"
    )
    assert said.status == 0, said.err
    assert "Test conditions" in said.out
    assert find(name).title in page.read_text("utf-8")
    if name == "pts-throughput":
        assert "are alike by the rule of the PTS, but in a quick run" in said.out
    assert "Steady state was reached" not in said.out and "It is steady" not in said.out


def test_the_names_of_points_tell_them_apart() -> None:
    names = {pts_iops.name_of(mix, size) for mix in pts_iops.MIXES for size in pts_iops.SIZES}
    assert len(names) == 56
    assert len({pts_demand.name_of(*at) for at in pts_demand.POINTS}) == 49
    assert {pts_xsr.key_of(phase, 1) for phase in pts_xsr.PHASES} == {
        "first001", "random001", "again001",
    }  # fmt: skip
