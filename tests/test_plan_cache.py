"""Planning a cache: streams, curves, what is simulated, what is recommended, the command."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import browser
import ssdlab.traces
from conftest import Cli
from scheduling import LONG
from ssdlab import _core, bench, units
from ssdlab.bench import Seat
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.output import write_rigs
from ssdlab.plan import advice, bed, candidates, curves, lifetime, workload
from ssdlab.plan.cache import prepared, rounded_up
from ssdlab.plan.ram import BEHIND, Ram
from ssdlab.plan.rows import Rules, near_choices
from ssdlab.plan.stores import MODES, Store, cached, store
from ssdlab.plan.warmup import Formula, Ramp, warm_up
from ssdlab.target import Sim, Terms
from ssdlab.tracefile import Reading
from ssdlab.units import for_page

SEAT = Seat(lambda _: True)
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
POOL = """\
name = "disk"
[device]
kind = "hdd"
capacity = "8GiB"
rpm = 7200
seek_average = "8.5ms"
sustained_outer = "200MB/s"
sustained_inner = "100MB/s"
"""
FAST = '[device]\nkind = "null"\ncapacity = "256MiB"\nservice_time = "50us"\nservers = 8\n'
Row = tuple[int, str, int, int, int]
"""Time (ns), kind, offset, length, device."""


def write_trace(path: Path, rows: Sequence[Row]) -> Path:
    lines = ["time_ns,kind,offset,length,device,response_ns"]
    lines += [f"{t},{kind},{offset},{length},{device}," for t, kind, offset, length, device in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def hot(
    count: int = 4000,
    blocks: int = 2000,
    gap_ns: int = 2_000_000,
    size: int = 4 * KIB,
    writes: float = 0.3,
) -> list[Row]:
    """Aligned requests to a skewed set of blocks."""
    rng = np.random.default_rng(7)
    at = (blocks * rng.random(count) ** 3).astype(int)
    kinds = rng.random(count) < writes
    spread = rng.permutation(blocks)
    return [
        (i * gap_ns, "write" if w else "read", int(spread[b]) * size, size, 0)
        for i, (b, w) in enumerate(zip(at, kinds, strict=True))
    ]


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Path, Path]:
    """A disk and a fast device, as rig files."""
    pool, fast = tmp_path / "disk.toml", tmp_path / "fast.toml"
    pool.write_text(POOL)
    fast.write_text(FAST)
    return pool, fast


# ---- The stream

UNALIGNED: list[Row] = [
    (0, "read", 700, 500, 3),
    (5, "write", 5 * MIB + 4000, 9000, 9),
    (9, "read", 0, 512, 9),
    (12, "write", 12 * MIB - 512, 4096, 3),
    (20, "read", 123_456_789, 65_536, 3),
]


@pytest.mark.parametrize(
    ("fit", "capacity"), [("as-is", GIB), ("wrap", 7 * MIB), ("scale", 7 * MIB + 512)]
)
def test_requests_lie_where_a_replay_puts_them(tmp_path: Path, fit: str, capacity: int) -> None:
    trace = write_trace(tmp_path / "t.csv", UNALIGNED)
    out = tmp_path / "placed.csv"
    place = _core.trace_convert(
        trace, Reading().options(), out, to="csv",
        place={"capacity": capacity, "fit": fit, "redirect": False, "align": 0, "scale": 0},
    )  # fmt: skip
    assert place["requests"] == len(UNALIGNED)
    (wanted,) = list(ssdlab.traces.open(out))
    found = workload.place(workload.read_trace(trace, Reading()), fit, capacity)
    assert found.offset.tolist() == wanted.offset.tolist()
    assert found.length.tolist() == wanted.length.tolist()
    assert found.writes.tolist() == [kind == "write" for _, kind, *_ in UNALIGNED]


def captured(text: str) -> workload.Load:
    load = workload.job_load(JobText("j", text, Path()))
    return bench.run([workload.job_capture(load, GIB, 100, 1.0, 1)])[0]


def test_a_job_is_written_down_as_it_asks() -> None:
    text = (
        "[a]\nrw=write\nbs=16k\nsize=1m\niodepth=4\n[b]\nstartdelay=9\nrw=read\nbs=4k\nsize=64k\n"
    )
    load = captured(text)
    stream = load.stream
    assert stream is not None
    assert stream.offset[:64].tolist() == [16 * KIB * i for i in range(64)]
    assert stream.offset[64:].tolist() == [4 * KIB * i for i in range(16)]
    assert stream.writes.tolist() == [True] * 64 + [False] * 16
    assert (stream.read_bytes, stream.write_bytes) == (64 * KIB, MIB)


@pytest.mark.parametrize("waits", ["stonewall", "wait_for=x"])
def test_a_stage_before_the_last_is_no_part_of_the_load_but_of_the_job(waits: str) -> None:
    load = captured(
        "[x]\nrw=write\nbs=64k\nsize=2m\nfilename=x\n"
        f"[y]\n{waits}\nrw=read\nbs=4k\nsize=64k\nfilename=y\n"
    )
    assert load.stream is not None
    # The file y lies where it does in the whole job.
    assert load.stream.offset.tolist() == [2 * MIB + 4 * KIB * i for i in range(16)]
    assert not load.stream.writes.any()
    assert any("last stage of the job (y)" in note and "(x)" in note for note in load.notes)


@pytest.mark.parametrize(
    ("after_fill", "beside", "last"),
    [("stonewall", "", "stonewall"), ("wait_for=fill", "wait_for=fill\n", "stonewall")],
)
def test_stages_run_one_after_another_do_what_the_job_does_in_one(
    after_fill: str, beside: str, last: str
) -> None:
    text = (
        "[global]\nbs=4k\niodepth=8\n[fill]\nrw=write\nbs=128k\nsize=100%\n"
        f"[mix]\n{after_fill}\nrw=randrw\nnumber_ios=2000\n"
        f"[beside]\n{beside}rw=randread\nnumber_ios=900\n"
        f"[last]\n{last}\nrw=randwrite\nnumber_ios=3000\n"
    )
    whole = JobText("j", text, Path())
    rig = store("lab-reference").tree
    found = []
    for parts in ([None], [(0, 1), (1, 3)], [(0, 2), (2, 3)]):
        drive = Sim("x", rig.to_toml()).open(Terms({"capacity": "64MiB"}))
        with drive:
            result = [drive.run(replace(whole, stages=part), None) for part in parts][-1]
            found.append((result.summary()[-1], drive.core.counters()))
    for summary, counters in found[1:]:
        assert counters == found[0][1]
        assert summary == found[0][0]
    with pytest.raises(InputError, match='stages: found "1 to 4", expected stages of the job'):
        replace(whole, stages=(1, 4)).read()


@pytest.mark.parametrize("own", ["", "do_verify=1\n"])
def test_what_is_only_read_to_be_verified_is_no_part_of_the_load(own: str) -> None:
    text = "[global]\nrw=randrw\nsize=1m\n[fill]\nverify=crc32c\n[j]\nstonewall\n"
    load = workload.job_load(JobText("j", f"{text}verify=crc32c\n{own}", Path()))
    plain = workload.job_load(JobText("j", text, Path()))
    assert load.before is not None and "do_verify=0" not in load.before.text
    did = [
        bed.Bed(FAST, "x", 1, SEAT, iter([SEAT.report])).run(one.full_speed, whole=True).did
        for one in (load, plain)
    ]
    assert {way: one.ios for way, one in did[0].latencies.items()} == {
        way: one.ios for way, one in did[1].latencies.items()
    }
    assert any("verify" in note for note in load.notes)
    assert not any("(verify)" in note for note in plain.notes)


def test_jobs_side_by_side_and_reported_as_a_group_are_written_down_too() -> None:
    text = (
        "[global]\ngroup_reporting\nsize=64k\n[a]\nrw=read\nbs=4k\nnumjobs=2\n"
        "[b]\nrw=write\nbs=8k\noffset=1m\n[c]\nstartdelay=9\nrw=read\nbs=16k\noffset=2m\n"
    )
    stream = captured(text).stream
    assert stream is not None
    assert (stream.reads, int(stream.writes.sum())) == (2 * 16 + 4, 8)
    # What begins after the others comes last.
    assert stream.offset[-4:].tolist() == [2 * MIB + 16 * KIB * i for i in range(4)]
    assert set(stream.offset[stream.writes].tolist()) == {MIB + 8 * KIB * i for i in range(8)}


# ---- Curves


def accesses_of(rows: Sequence[Row], block: int, tmp_path: Path) -> curves.Accesses:
    trace = write_trace(tmp_path / "t.csv", rows)
    stream = workload.place(workload.read_trace(trace, Reading()), "as-is", GIB)
    return curves.accesses(stream, block)


@pytest.mark.parametrize("policy", ["lru", "arc", "s3-fifo"])
def test_both_passes_of_a_curve_are_those_of_the_replayed_policy(
    policy: str, tmp_path: Path
) -> None:
    seen = accesses_of(hot(size=24 * KIB), 16 * KIB, tmp_path)
    sizes = [2 * MIB, 8 * MIB]
    curve = curves.curve(policy, seen, [float(one) for one in sizes])
    keys = np.concatenate([f + np.arange(n) for f, n in zip(seen.first, seen.count, strict=True)])
    writes = np.repeat(seen.writes, seen.count)
    for place, size in enumerate(sizes):
        frames = curves.frames(size, 16 * KIB)
        once = _core.hit_ratio(policy, frames, keys.astype(np.uint64), writes)
        twice = _core.hit_ratio(
            policy, frames, np.tile(keys, 2).astype(np.uint64), np.tile(writes, 2)
        )
        assert curve.first.read_misses[place] == once["read_misses"]
        assert curve.first.write_misses[place] == once["write_misses"]
        assert curve.first.write_backs[place] == once["write_backs"]
        assert curve.warm.read_misses[place] == twice["read_misses"] - once["read_misses"]
        assert curve.warm.write_backs[place] == twice["write_backs"] - once["write_backs"]


def test_first_touches_and_the_working_set_are_those_of_the_requests(tmp_path: Path) -> None:
    rows = hot()
    curve = curves.curve("lru", accesses_of(rows, 4 * KIB, tmp_path))
    different = len({offset for _, _, offset, _, _ in rows})
    assert curve.footprint == different * 4 * KIB
    assert curve.first_touch == pytest.approx(different / len(rows))
    assert curve.hits()[-1] == pytest.approx(curve.attainable)
    assert curve.hits(warm=True)[-1] == 1.0
    for share in curves.SHARES:
        size = curve.working_set(share)
        assert size is not None
        place = curve.sizes.tolist().index(size)
        hits = curve.hits()
        assert hits[place] >= share * curve.attainable > hits[place - 1]


def test_no_working_set_is_larger_than_all_of_the_data(tmp_path: Path) -> None:
    # Blocks that come again in their order all hit, or none does.
    rows = [(n, "read", n % 100 * 4 * KIB, 4 * KIB, 0) for n in range(300)]
    curve = curves.curve("lru", accesses_of(rows, 4 * KIB, tmp_path))
    assert curve.whole == pytest.approx(100 * (4 * KIB + 64))
    assert [curve.working_set(share) for share in curves.SHARES] == [curve.whole] * 4


def test_long_loads_are_sampled_and_say_how_far_off_they_may_be(tmp_path: Path) -> None:
    seen = accesses_of(hot(60_000, 30_000), 4 * KIB, tmp_path)
    whole = curves.curve("lru", seen)
    some = curves.curve("lru", seen, exact_max=50_000)
    assert (whole.rate, some.rate) == (1.0, 50_000 / 16 / 60_000)
    assert not whole.error.any()
    assert some.error.max() > 0
    assert some.sizes[0] >= 16 / some.rate * 4 * KIB
    for size, hits in zip(some.sizes, some.hits(), strict=True):
        assert hits == pytest.approx(whole.at(size, whole.hits()), abs=0.03)


# ---- In time


@pytest.mark.parametrize(
    ("mode", "off"),
    # A write-back cache spares what is dirty, so it evicts others than plain LRU now and then.
    [("write-through", 1e-12), ("write-back", 0.02)],
)
def test_at_depth_1_the_cache_in_time_hits_as_its_curve_says(
    mode: str, off: float, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    # A block that is asked for again while it is still being filled misses once more in time.
    stores[1].write_text(FAST.replace("50us", "1us"))
    rows = hot()
    rows = [row for row, last in zip(rows[1:], rows, strict=False) if row[2] != last[2]]
    pool, one = store(str(stores[0])), store(str(stores[1]))
    trace = write_trace(tmp_path / "t.csv", rows)
    load = workload.trace_load(trace, Reading(), "as-is", 8 * GIB, 1)
    assert load.stream is not None
    size = 1536 * KIB
    candidate = candidates.CacheCandidate(one, size, 4 * KIB, 1, "lru", mode)
    found = bed.run_passes(candidate.rig(pool), "t", bed.Schedule(load, 2, 1), SEAT)
    curve = curves.curve("lru", curves.accesses(load.stream, 4 * KIB), [float(size)])
    assert found.first.counters["blocks_capacity"] == curves.frames(size, 4 * KIB)
    assert found.first.grown("evictions") > 500
    for one_pass, warm in ((found.first, False), (found.last, True)):
        for kind in ("read", "write"):
            hits = curve.hits(warm=warm, kind=kind)[0]
            assert one_pass.found("hits", kind) == pytest.approx(hits, abs=off)


def test_a_drive_that_collects_nothing_does_the_same_made_smaller(tmp_path: Path) -> None:
    one = store("intel-dc-s3700-200")
    assert candidates.reserve_share(one) == 0.335
    assert candidates.reserve_share(store("intel-660p-1024")) is None
    pool = tmp_path / "disk.toml"
    pool.write_text(POOL)
    trace = write_trace(tmp_path / "t.csv", hot(3000, blocks=150_000, size=16 * KIB))
    load = workload.trace_load(trace, Reading(), "as-is", 8 * GIB, 8)
    assert load.stream is not None
    asked = candidates.CacheCandidate(one, GIB, 16 * KIB, 1, "lru", "write-back")
    moved = 2 * (load.stream.read_bytes + load.stream.write_bytes)
    rigs = [asked.rig(store(str(pool)), None, size) for size in (None, moved)]
    sizes = [_core.Rig(rig, rig_name="x").memory_bytes for rig in rigs]
    assert sizes[1] < 0.5 * sizes[0]
    rates = [
        [done.did.iops for done in bed.run_passes(rig, "x", bed.Schedule(load, 2, 1), SEAT).passes]
        for rig in rigs
    ]
    assert rates[0] == rates[1]


def test_a_small_part_of_a_drive_does_the_same_on_a_drive_made_smaller(tmp_path: Path) -> None:
    one = store("intel-dc-s3700-200")
    assert candidates.shrunk(one, one.capacity_bytes // 2 + 1) is None
    part = candidates.part(one, 64 * MIB)
    assert part.tree.capacity_bytes == 64 * MIB
    (inner,) = part.tree.find("ssd")
    assert 256 * MIB <= (part.tree.bytes(f"{inner}capacity") or 0) < 4 * GIB
    pool = tmp_path / "disk.toml"
    pool.write_text(POOL)
    trace = write_trace(tmp_path / "t.csv", hot(1500))
    load = workload.trace_load(trace, Reading(), "as-is", 8 * GIB, 8)
    full = _core.Rig.wrap("partition", {"size": f"{64 * MIB}B"}, below=one.tree)
    rates = []
    for tree in (part.tree, full):
        rig = cached(Store("x", "x", tree, {}, False), store(str(pool)), {"block": "16KiB"}).rig()
        found = bed.run_passes(rig, "x", bed.Schedule(load, 2, 1), SEAT)
        rates.append([one.did.iops for one in found.passes])
    assert rates[0] == rates[1]


@pytest.mark.parametrize("policy", ["lru", "arc"])
def test_ram_in_front_hits_as_its_policy_without_time_and_lets_the_rest_past(
    policy: str, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    # As in the test of the curve: a block that is still being filled misses once more in time.
    rows = hot()
    rows = [row for row, last in zip(rows[1:], rows, strict=False) if row[2] != last[2]]
    trace = write_trace(tmp_path / "t.csv", rows)
    load = workload.trace_load(trace, Reading(), "as-is", 8 * GIB, 1)
    assert load.stream is not None
    memory = Ram(1 * MIB, policy)
    seen = curves.accesses(load.stream, 4 * KIB)
    own = _core.hit_ratio(policy, 256, seen.first, seen.writes, blocks=seen.count)
    past = memory.lets_past(load.stream)
    assert past.read_bytes == own["read_misses"] * 4 * KIB
    assert past.write_bytes == load.stream.write_bytes
    assert own["read_misses"] + own["write_misses"] > 1000
    one = candidates.CacheCandidate(
        store(str(stores[1])), 8 * MIB, 16 * KIB, 1, "lru", "write-back"
    )
    order = bed.Schedule(load, 1, 1, place=BEHIND)
    done = bed.run_passes(one.rig(store(str(stores[0])), memory), "t", order, SEAT).first
    reads, writes = own["read_hits"], own["write_hits"]
    assert done.found_in_ram("read") == reads / (reads + own["read_misses"])
    assert done.found_in_ram("write") == writes / (writes + own["write_misses"])
    # What the cache behind it counts, dirties and fills is its own.
    assert done.counters["cache_host_bytes_read"] == past.read_bytes
    assert done.counters["blocks_capacity"] == curves.frames(8 * MIB, 16 * KIB)
    assert 0 < done.dirty_most <= done.counters["dirty_bytes_most"]
    assert done.front["dirty_bytes_most"] == 0
    assert lifetime.mean_write_bytes(bed.Passes(0, [done], None)) >= 4 * KIB


def test_the_published_warm_up_is_275_036_seconds() -> None:
    # Qsan: 2 TiB, from the second use, 244 IOPS of a disk, 8 KiB, eight disks.
    formula = Formula(2 * 1024 * GIB, 2, 244, 8 * KIB, 8)
    assert formula.seconds == pytest.approx(275_036, abs=0.5)


def test_a_random_load_does_not_fill_a_cache_faster_than_the_formula(tmp_path: Path) -> None:
    pool, one = tmp_path / "disk.toml", tmp_path / "fast.toml"
    pool.write_text(
        '[device]\nkind = "null"\ncapacity = "1GiB"\nservice_time = "5ms"\nservers = 1\n'
    )
    one.write_text(FAST)
    text = "[j]\nrw=randread\nbs=16k\nsize=32m\nnorandommap\niodepth=1\nruntime=60\ntime_based\n"
    job = JobText("j", text, Path())
    load = workload.Load("j", None, 0.0, 0, job, None)
    candidate = candidates.CacheCandidate(
        store(str(one)), 64 * MIB, 16 * KIB, 2, "lru", "write-through"
    )
    rig = candidate.rig(store(str(pool)))
    found = bed.run_passes(rig, "x", bed.Schedule(load, 1, 1, 100), SEAT)
    warm = warm_up([found.last.ramp])
    assert warm.seconds is not None
    # 2048 blocks at 200 a second, each twice; the second use of the last blocks takes longer.
    lower = Formula(32 * MIB, 2, 200, 16 * KIB, 1).seconds
    assert lower < warm.seconds < 4 * lower


def test_a_job_is_measured_when_it_is_warm(tmp_path: Path) -> None:
    pool, fast = tmp_path / "p.toml", tmp_path / "f.toml"
    pool.write_text(FAST.replace("50us", "20ms").replace("256MiB", "4GiB"))
    fast.write_text(FAST.replace("50us", "1ms"))
    rig = cached(store(str(fast)), store(str(pool)), {"block": "16KiB"}).rig()
    text = "[j]\nrw=randread\nsize=32m\niodepth=8\nrandom_distribution=zipf:1.1\ntime_based\n"
    job = JobText("j", f"{text}runtime=5\n", Path())
    load = workload.Load("j", None, 0.0, 0, job, None)
    found = bed.run_passes(rig, "x", bed.Schedule(load, 1, 1, 100, bed.FURTHER), SEAT)
    goes_on = JobText("j", f"{text}ramp_time=200\nruntime=10\n", Path())
    steady = bed.Bed(rig, "x", 1, SEAT, iter([SEAT.report])).run(goes_on, whole=True).did.iops
    assert found.first.did.iops < 0.7 * steady
    assert not found.rising and found.last.did.iops == pytest.approx(steady, rel=0.05)
    alone = bed.run_passes(rig, "x", bed.Schedule(load, 1, 1, 100), SEAT)
    assert len(alone.passes) == 1


def test_a_job_with_a_ramp_of_its_own_is_measured_when_it_is_warm(tmp_path: Path) -> None:
    # Drawn once more, the same places hit all the time, whatever the cache holds.
    one = tmp_path / "f.toml"
    one.write_text(FAST.replace("50us", "1ms"))
    rig = cached(store(str(one)), store(str(one)), {"block": "4KiB"}).rig()
    (tmp_path / "more.inc").write_text("ramp_time=3\n[k]\nramp_time=3\n")
    head = "[global]\nrw=randread\nsize=64m\niodepth=4\nruntime=2\ntime_based\n"
    job = JobText("j", head + "[j]\ninclude more.inc\n[l]\nramp_time=3", tmp_path)
    load = workload.Load("j", None, 0.0, 0, job, None)
    found = bed.run_passes(rig, "x", bed.Schedule(load, 1, 1, 100, bed.FURTHER), SEAT)
    first, second = found.passes[:2]
    assert first.seconds == pytest.approx(5, rel=0.1)
    assert second.seconds == pytest.approx(5 + 2, rel=0.1)


def deferring(tmp_path: Path, size: int) -> str:
    """A cache of so many bytes that puts off writes, of which its pool takes 100 a second."""
    pool, fast = tmp_path / "p.toml", tmp_path / "f.toml"
    pool.write_text(FAST.replace("50us", "10ms").replace("servers = 8", "servers = 1"))
    fast.write_text(FAST.replace("50us", "1ms").replace("256MiB", f"{size}B"))
    keys = {"block": "4KiB", "mode": "write-back"}
    return cached(store(str(fast)), store(str(pool)), keys).rig()


WRITES = "[j]\nrw=randwrite\nbs=4k\nsize=128m\niodepth=8\nnorandommap\ntime_based\n"


def test_a_cache_that_can_put_off_no_more_writes_is_as_slow_as_it_stays(tmp_path: Path) -> None:
    size = 64 * MIB
    rig, job = deferring(tmp_path, size), JobText("j", f"{WRITES}runtime=1\n", Path())
    load = workload.Load("j", None, 0.0, 0, job, None)
    order = bed.Schedule(load, 1, 1, 100, bed.FURTHER, cache_bytes=size)
    found = bed.run_passes(rig, "x", order, SEAT)
    long = JobText("j", f"{WRITES}ramp_time=100\nruntime=20\n", Path())
    steady = bed.Bed(rig, "x", 1, SEAT, iter([SEAT.report])).run(long, whole=True).did.iops
    assert found.first.did.iops > 5 * steady
    assert not found.falling and found.deferred_per_s == 0
    assert found.last.did.iops == pytest.approx(steady, rel=0.06)


def test_a_cache_that_still_puts_off_more_writes_says_so(tmp_path: Path) -> None:
    # Of a size that is not known to be within reach it goes on for no longer than its speed moves.
    rig, job = deferring(tmp_path, 128 * MIB), JobText("j", f"{WRITES}runtime=1\n", Path())
    load = workload.Load("j", None, 0.0, 0, job, None)
    far = bed.Schedule(load, 1, 1, 100, bed.FURTHER, cache_bytes=1 << 50)
    found = bed.run_passes(rig, "x", far, SEAT)
    assert len(found.passes) == 2 and not found.falling
    rates = [done.did.iops for done in found.passes]
    assert rates[1] == pytest.approx(rates[0], rel=0.05)
    row: Any = SimpleNamespace(passes=found, defers=True, iops=found.last.did.iops)
    (said,) = advice.deferred(row)
    grown = found.last.dirty_bytes() - found.first.dirty_bytes()
    assert units.bytes_per_s(grown / found.last.seconds) in said
    fallen: Any = SimpleNamespace(passes=found, defers=True, iops=rates[0] / 2)
    assert any("It was faster before" in one for one in advice.deferred(fallen))


def test_a_part_of_a_pass_is_compared_with_the_same_part_of_the_last() -> None:
    second = np.arange(1.0, 11.0)
    uneven = np.array([100.0] * 5 + [1000.0] * 5)
    ramps = [Ramp(second, uneven), Ramp(second, uneven)]
    assert warm_up(ramps).seconds == 0.0  # uneven as it is, it was warm from the start
    slow = Ramp(np.arange(2.0, 22.0, 2.0), uneven)
    found = warm_up([slow, *ramps])
    # The whole first pass was half as fast.
    assert found.passes == pytest.approx(1.0, abs=0.25)
    assert found.seconds == pytest.approx(20.0, rel=0.1)
    assert not found.rising
    assert warm_up([slow, slow, *ramps[:1]]).rising
    assert warm_up([]).seconds is None


# ---- Wear


def test_a_fuller_drive_copies_more() -> None:
    drives = [lifetime.AgedDrive("intel-dc-s3700-200", share, 65536) for share in (0.3, 0.7, 1.0)]
    small, half, whole = bench.run([one.variant() for one in drives])
    assert isinstance(small, float) and isinstance(half, float) and isinstance(whole, float)
    assert 1.0 <= small < 1.1
    assert small < half < whole


def test_a_cache_that_takes_little_of_its_drive_has_nothing_copied() -> None:
    def aged(share: float) -> lifetime.AgedDrive | None:
        one = store("intel-dc-s3700-200")
        size = int(one.capacity_bytes * share) // MIB * MIB
        cache = candidates.CacheCandidate(one, size, 65536, 1, "lru", "write-back")
        ran: Any = SimpleNamespace(passes=[])
        return lifetime.AgedDrive.of(cache, ran)

    little, much = aged(0.01), aged(0.3)
    assert little is not None and little.roomy
    assert much is not None and not much.roomy and much.share == 0.3


# ---- The command


@functools.cache
def planned(folder: Path, *more: str) -> tuple[dict[str, Any], str]:
    """What the command says of a small load on a disk and a shipped drive, as JSON, and of the
    shortest plans as a page."""
    from ssdlab.cli import run_command

    (folder / "disk.toml").write_text(POOL)
    prices = folder / "prices.toml"
    prices.write_text('currency = "EUR"\n[drives]\ndisk = 100\ndemo-client = 80\n')
    trace = write_trace(folder / "load.csv", hot(3000, gap_ns=2_000_000_000, size=16 * KIB))
    place = folder / f"{abs(hash(more))}.json"
    page = place.with_suffix(".html")
    shown = ["-o", str(page)] if not more or "--quick" in more else []
    status = run_command(
        [
            "plan", "cache", "--trace", str(trace), "--cache", "demo-client",
            *(() if "--pool" in more else ("--pool", str(folder / "disk.toml"))),
            "--prices", str(prices), "--json", str(place), "-q", *shown, *more,
        ]
    )  # fmt: skip
    assert status == 0
    return json.loads(place.read_text()), page.read_text() if shown else ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plan")


def rows_of(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [row for row in document["rows"] if row["kind"] == kind]


@pytest.mark.parametrize("goal", ["iops", "p99", "price"])
def test_what_is_recommended_is_the_best_by_the_rule_that_is_told(folder: Path, goal: str) -> None:
    document, _ = planned(folder, "--goal", goal)
    rule = document["criterion"]
    values: dict[str, Callable[[dict[str, Any]], float]] = {
        "iops": lambda row: row["iops"],
        "p99": lambda row: 1 / row["clat_p99_ns"],
        "price": lambda row: 1 / row["price_per_1000_iops"],
    }
    value = values[goal]
    good = [row for row in rows_of(document, "cache") if row["name"] not in document["refused"]]
    assert len(good) >= 3
    most = max(map(value, good))
    near = [row for row in good if value(row) >= rule["as_good_from_share"] * most]
    cold = max(row["first_pass"]["iops"] for row in near)

    def order(row: dict[str, Any]) -> tuple[float, ...]:
        steps = round(row["first_pass"]["iops"] / (0.02 * cold))
        return row["price"], row["cache_bytes"], -steps, row["keys"]["read_threshold"]

    best = min(near, key=order)
    (pool,) = rows_of(document, "pool")
    if value(best) < rule["gain_min"] * value(pool):
        assert document["recommended"] is None
    else:
        assert document["recommended"] == best["name"]
        assert best["name"] in document["sentences"][0]
    assert document["recommended"] is not None or goal == "price"


def test_what_hangs_on_less_than_another_seed_changes_is_told() -> None:
    def row(name: str, iops: float, first: float, price: float) -> Any:
        own = SimpleNamespace(size=1, threshold=1)
        passes = SimpleNamespace(job=False, passes=[1, 2])
        return SimpleNamespace(
            name=name, iops=iops, first_iops=first, price=price, candidate=own, passes=passes,
            defers=False, life=None,
        )  # fmt: skip

    def near(*rows: Any) -> list[tuple[str, bool]]:
        pool = row("pool", 1000, 1000, 0)
        pool.store = SimpleNamespace(redundant=True)
        found = near_choices(rows, pool, Rules(), 0.5, 0.03)
        return [("" if one.best is None else one.best.name, one.only_again) for one in found]

    # The rule takes the cheaper of what comes within 5 % of the best.
    assert near(row("dear", 2000, 1500, 9), row("cheap", 1700, 1500, 5)) == []
    assert near(row("dear", 2000, 1500, 9), row("cheap", 1890, 1500, 5)) == [("cheap", False)]
    assert near(row("dear", 2000, 1500, 9), row("cheap", 1910, 1500, 5)) == [("dear", False)]
    # It pays off from 10 % on, in the first pass or not.
    assert near(row("a", 1115, 1500, 9)) == [("", False)]
    assert near(row("a", 1085, 1500, 9)) == [("a", False)]
    assert near(row("a", 2000, 1120, 9)) == [("a", True)]
    assert near(row("a", 2000, 1090, 9)) == [("a", False)]


def test_times_and_sizes_of_tables_are_numbers_for_programs(folder: Path) -> None:
    document, _ = planned(folder, "--quick")
    tables = {one["title"]: one["rows"] for part in document["sections"] for one in part["tables"]}
    (row, *_) = (row for row in tables["Warm-up"] if row["passes"])
    span = document["load"]["recorded_s"]
    assert row["at recorded pace, s"] == pytest.approx(row["passes"] * span)
    assert row["warm after, s"] > 0 < row["by the formula, s"]
    assert tables["Working set, LRU"][0]["block, B"] == 4 * KIB
    assert {type(row["all, B"]) for row in tables["Working set, LRU"]} == {float}
    assert {type(row["years"]) for row in tables["Wear of the cache"]} == {float}
    modes = {one["name"]: one["dirty_bytes_most"] for one in rows_of(document, "cache")}
    risks = [row["unsafe at most, B"] for row in tables["Price and risk"]]
    assert sorted(risks[-len(modes) :]) == sorted(modes.values())


def test_what_pays_off_and_may_not_be_taken_stands_beside_no_cache_pays_off(
    tmp_path: Path, cli: Cli
) -> None:
    (tmp_path / "m.toml").write_text(POOL)
    trace = write_trace(tmp_path / "w.csv", hot(600, size=16 * KIB, writes=1.0))
    done = cli(
        "plan", "cache", "--trace", trace, "--pool", f"raid1:2:{tmp_path / 'm.toml'}",
        "--cache", "demo-client", "--modes", "write-back,write-through", "--quick", "--json", "-",
    )  # fmt: skip
    document = json.loads(done.out)
    (pool,) = rows_of(document, "pool")
    refused = [row for row in rows_of(document, "cache") if row["name"] in document["refused"]]
    barred = max(refused, key=lambda row: float(row["iops"]))
    assert document["recommended"] is None and barred["iops"] > 1.1 * pool["iops"]
    said = document["sentences"][0]
    assert said.startswith("No cache that may be taken pays off")
    assert said.endswith("but loses the newest data with one drive.")
    assert f"{barred['name']} would make {barred['iops']:,.0f} IOPS" in said


def test_write_back_on_one_drive_before_a_mirror_is_not_recommended_unless_asked(
    folder: Path,
) -> None:
    (folder / "m.toml").write_text(POOL)
    pool = ["--pool", f"raid1:2:{folder / 'm.toml'}", "--modes", "write-back", "--top", "1"]
    safe, _ = planned(folder, *pool)
    assert safe["recommended"] is None
    assert "loses the newest data with one drive" in set(safe["refused"].values())
    assert "WARNING" in "".join(safe["sentences"])
    asked, _ = planned(folder, *pool, "--accept-loss")
    assert asked["recommended"] is not None
    assert rows_of(asked, "cache")[0]["dirty_bytes_most"] > 0
    twice, _ = planned(folder, *pool, "--cache", "raid1:2:demo-client")
    assert twice["recommended"] is not None
    assert "raid1:2:demo-client" in twice["recommended"]


def test_what_is_recommended_does_once_more_what_it_promised(
    folder: Path, tmp_path: Path, cli: Cli
) -> None:
    rigs = tmp_path / "rigs"
    document, _ = planned(folder, "--quick", "--save-rigs", str(rigs))
    names = sorted(one.name for one in rigs.iterdir())
    assert len(names) == len(document["rows"]) and "pool-alone.toml" in names
    (best,) = [row for row in document["rows"] if row["name"] == document["recommended"]]
    (rig,) = rigs.glob(f"{best['mark']}-*.toml")
    passes = [f"[pass{place}]\nstonewall\n" for place in range(4)]
    job = tmp_path / "again.fio"
    job.write_text(
        f"[global]\nread_iolog={folder / 'load.csv'}\nreplay_no_stall=1\niodepth=32\n"
        + "".join(passes)
    )
    done = cli("run", job, "--on", rig, "--json", tmp_path / "r.json", "-q")
    assert done.status == 0, done.err
    jobs = json.loads((tmp_path / "r.json").read_text())["jobs"]
    iops = [one["read"]["iops"] + one["write"]["iops"] for one in jobs]
    # The plan measured the first pass and the one after which it was warm.
    assert iops[0] == pytest.approx(best["first_pass"]["iops"], rel=0.01)
    assert iops[round(best["warm_up_passes"])] == pytest.approx(best["iops"], rel=0.01)
    # Rigs of its own are replaced; what somebody else put there is not.
    write_rigs(rigs, {names[0]: "name = 'x'\n"})
    rig.write_text("name = 'mine'\n")
    with pytest.raises(InputError, match="no rig that ssdlab wrote"):
        write_rigs(rigs, {names[1]: "", rig.name: ""})
    again = ["plan", "cache", "--trace", folder / "load.csv", "--pool", folder / "disk.toml"]
    refused = cli(*again, "--cache", "demo-client", "--save-rigs", rigs)
    assert refused.status == 2 and "no rig that ssdlab wrote" in refused.err
    assert rig.read_text() == "name = 'mine'\n"


def test_ram_that_holds_the_working_set_leaves_the_cache_next_to_no_reads(folder: Path) -> None:
    plain, _ = planned(folder, "--quick")
    assert "ram" not in plain and "ram_read_hit_ratio" not in plain["rows"][0]
    document, page = planned(folder, "--quick", "--ram", "64MiB")
    assert document["ram"] == {"size": 64 * MIB, "policy": "lru", "mode": "write-through"}
    for row in document["rows"]:
        assert row["ram_read_hit_ratio"] == 1.0 and row["ram_dirty_bytes_most"] == 0
        assert row["read_hit_ratio"] is None
        assert 'kind = "cache"' in row["rig"]
    (pool,), (bare,) = rows_of(document, "pool"), rows_of(plain, "pool")
    assert pool["iops"] > bare["iops"]
    # What passes RAM is what is asked for the first time, and writes.
    assert document["load"]["attainable_hit_ratio"] < plain["load"]["attainable_hit_ratio"]
    assert "WARNING: RAM" not in "".join(document["sentences"])
    assert "reads in RAM" in page


def test_ram_that_writes_back_is_called_unsafe(folder: Path) -> None:
    how = ("--quick", "--ram", "1MiB", "--modes", "write-through", "--top", "1")
    document, _ = planned(folder, *how, "--ram-mode", "write-back")
    assert all(row["ram_dirty_bytes_most"] > 0 for row in document["rows"])
    assert "WARNING: RAM acknowledges writes that only it has" in "".join(document["sentences"])
    (risk,) = [t for t in document["sections"][0]["tables"] if "Price" in t["title"]]
    unsafe = [row["ram_dirty_bytes_most"] + row["dirty_bytes_most"] for row in document["rows"]]
    assert [row["unsafe at most, B"] for row in risk["rows"]] == unsafe
    safe, _ = planned(folder, *how)
    assert all(row["ram_dirty_bytes_most"] == 0 for row in safe["rows"])
    assert 0 < safe["rows"][0]["ram_read_hit_ratio"] < 1


def test_what_is_worn_out_too_soon_is_not_recommended(folder: Path) -> None:
    every = ("--modes", ",".join(MODES))
    lives = {
        row["name"]: row["life"]["years"] for row in rows_of(planned(folder, *every)[0], "cache")
    }
    limit = sorted(lives.values())[len(lives) // 2]
    document, _ = planned(folder, *every, "--years", str(limit))
    caches = rows_of(document, "cache")
    assert {row["keys"]["mode"] for row in caches} == set(MODES)
    worn = [row["name"] for row in caches if row["life"]["years"] < limit]
    assert worn
    assert worn == [name for name, why in document["refused"].items() if "worn out" in why]
    assert document["recommended"] not in worn


def test_the_pool_alone_is_what_a_replay_makes_of_it(
    cli: Cli, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    pool, fast = stores
    trace = write_trace(tmp_path / "t.csv", hot(1500))
    place = tmp_path / "plan.json"
    said = cli(
        "plan", "cache", "--trace", trace, "--pool", pool, "--cache", fast, "--passes", 1,
        "--depth", 4, "--quick", "--json", place, "-q",
    )  # fmt: skip
    assert said.status == 0, said.err
    (row,) = rows_of(json.loads(place.read_text()), "pool")

    def replayed(*how: object) -> tuple[float, dict[str, Any]]:
        out = tmp_path / "replay.json"
        done = cli("trace", "replay", trace, "--on", pool, "-q", "--json", out, *how)
        assert done.status == 0, done.err
        job = json.loads(out.read_text())["jobs"][0]
        return job["read"]["iops"] + job["write"]["iops"], job

    iops, _ = replayed("--depth", 4)
    assert row["iops"] == pytest.approx(iops, rel=1e-9)
    _, job = replayed()
    bins: dict[int, int] = {}
    for way in ("read", "write"):
        for ns, count in job[way]["clat_ns"]["bins"].items():
            bins[int(ns)] = bins.get(int(ns), 0) + count
    order = np.repeat(sorted(bins), [bins[ns] for ns in sorted(bins)])
    for percent in (50, 99):
        assert row[f"clat_p{percent}_ns"] == order[int(np.ceil(percent / 100 * len(order))) - 1]


def test_prices_life_and_the_formula_add_up(folder: Path) -> None:
    document, _ = planned(folder)
    (pool,), (fast,) = rows_of(document, "pool"), rows_of(document, "fast")
    assert pool["price"] == 100
    full = store("demo-client").capacity_bytes
    assert fast["price_per_gb"] == pytest.approx(80 / (full / 1e9))
    for row in rows_of(document, "cache"):
        assert row["price"] == 180
        assert row["price_per_gb"] == pytest.approx(180 / (8 * GIB / 1e9))
        assert row["price_per_1000_iops"] == pytest.approx(180 / (row["iops"] / 1000))
        life, formula = row["life"], row["warm_up_formula"]
        most = max(life["first_pass_bytes_per_day"], life["warm_bytes_per_day"])
        assert life["years"] == pytest.approx(min(1000, life["rated_host_bytes"] / most / 365.25))
        assert formula["seconds"] == pytest.approx(
            formula["cache_bytes"] * formula["threshold"]
            / (formula["disk_iops"] * formula["request_bytes"] * formula["disks"])
        )  # fmt: skip
        assert formula["request_bytes"] == 16 * KIB
        # A seek, half a turn, and little else.
        assert 60 < formula["disk_iops"] < 90
    through = next(
        row for row in rows_of(document, "cache") if row["keys"]["mode"] == "write-through"
    )
    # A day of the first pass: everything written, and every block that was read first.
    rows = hot(3000, gap_ns=2_000_000_000, size=16 * KIB)
    span = rows[-1][0] / 1e9
    written = sum(length for _, kind, _, length, _ in rows if kind == "write")
    floor = written / span * 86_400
    assert floor < through["life"]["first_pass_bytes_per_day"] < 2 * floor


def test_the_same_plan_twice_is_the_same_to_the_byte(folder: Path) -> None:
    first, page = planned(folder, "--quick")
    again, other = planned.__wrapped__(folder, "--quick")
    assert first == again
    assert page == other


def test_json_holds_what_the_tables_say(folder: Path) -> None:
    document, page = planned(folder)
    speed, warm_up, _, cost, _ = document["sections"][0]["tables"]
    names = [row["mark"] + ": " + row["name"] for row in rows_of(document, "cache")]
    assert [row["storage"].removesuffix(" *") for row in speed["rows"]] == [
        "pool alone", "demo-client alone", *names
    ]  # fmt: skip
    for row, fast, slow, dear in zip(
        document["rows"], speed["rows"], warm_up["rows"], cost["rows"], strict=True
    ):
        assert fast["rate, IOPS"] == slow["warm, IOPS"] == row["iops"]
        assert fast["p99, ms"] == pytest.approx(row["clat_p99_ns"] / 1e6)
        assert slow["cold, IOPS"] == row["first_pass"]["iops"]
        assert slow["passes"] == row["warm_up_passes"]
        assert dear["price, EUR"] == row["price"]
    assert document["load"]["requests"] == 3000
    assert sum(row["storage"].endswith(" *") for row in speed["rows"]) == 1
    assert for_page(document["sentences"][0]) in page
    assert "Pareto front" in page


@pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "-")
def test_the_page_draws_its_charts_without_complaint(folder: Path, tmp_path: Path) -> None:
    _, text = planned(folder)
    page = tmp_path / "plan.html"
    page.write_text(text)
    with browser.tab() as tab:
        tab.open(page, 1280)
        assert tab.complaints == []
        assert not [one for one in tab.requests if one.startswith("http")]


def test_a_load_that_asks_for_nothing_twice_needs_no_cache(
    cli: Cli, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    pool, fast = stores
    rng = np.random.default_rng(3)
    rows = [
        (i * 1_000_000, "read", int(b) * 64 * KIB, 16 * KIB, 0)
        for i, b in enumerate(rng.permutation(1000))
    ]
    trace = write_trace(tmp_path / "once.csv", rows)
    said = cli("plan", "cache", "--trace", trace, "--pool", pool, "--cache", fast, "--json", "-")
    assert said.status == 0, said.err
    document = json.loads(said.out)
    assert document["recommended"] is None
    assert document["why_none"] == "reuse"
    assert document["load"]["first_touch_share"] == 1.0
    assert "No cache pays off" in said.err
    # It does not write either: modes are the same, and only the safe one is run.
    assert {row["keys"]["mode"] for row in rows_of(document, "cache")} == {"write-through"}
    assert any("does not write" in one for one in document["dropped"])


def test_a_fast_device_that_has_yet_to_collect_is_told_as_new(tmp_path: Path, cli: Cli) -> None:
    """Random writes to all that it holds go several times as fast until its room is used up."""
    pool, job = tmp_path / "disk.toml", tmp_path / "own.fio"
    pool.write_text(POOL)

    def told(rw: str) -> Any:
        job.write_text(f"[w]\nrw={rw}\nbs=16k\niodepth=16\nsize=64m\nnumber_ios=1000\n")
        done = cli("plan", "cache", "--pool", pool, "--cache", "lab-reference", "--job", job,
                   "--sizes", "32m", "--quick", "--json", "-")  # fmt: skip
        assert done.status == 0, done.err
        (fast,) = rows_of(json.loads(done.out), "fast")
        return fast["note"]

    assert told("randrw") == "new: it has nothing to collect yet"
    assert told("randread") == told("write") == told("rw") == ""


def test_a_job_is_planned_for_as_it_runs(
    cli: Cli, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    pool, fast = stores
    job = tmp_path / "job.fio"
    job.write_text(
        "[db]\nrw=randread\nbs=8k\nsize=64m\nnorandommap\niodepth=8\n"
        f"runtime={8 if LONG else 2}\ntime_based\n"
        "random_distribution=zipf:1.2\n"
    )
    place = tmp_path / "plan.json"
    said = cli(
        "plan", "cache", "--job", job, "--pool", pool, "--cache", fast, "--quick",
        "--preset", "open-cas", "--json", place, "-v",
    )  # fmt: skip
    assert said.status == 0, said.err
    document = json.loads(place.read_text())
    assert document["load"]["kind"] == "job"
    assert document["load"]["mean_request_bytes"] == 8 * KIB
    assert document["recommended"] is not None
    assert any(row["keys"] == {"preset": "open-cas"} for row in rows_of(document, "cache"))
    (alone,) = rows_of(document, "pool")
    best = next(row for row in document["rows"] if row["name"] == document["recommended"])
    assert best["iops"] > 2 * alone["iops"]
    assert best["read_hit_ratio"] > 0.5
    assert "as if the job went on all day" in said.out


def test_what_fills_a_cache_once_does_not_wear_it_for_years(
    cli: Cli, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    job = tmp_path / "job.fio"
    job.write_text(
        "[db]\nrw=randrw\nrwmixread=99\nbs=16k\nsize=48m\nnorandommap\niodepth=8\n"
        "runtime=5s\ntime_based\n"
    )
    place = tmp_path / "plan.json"
    said = cli(
        "plan", "cache", "--job", job, "--pool", stores[0], "--cache", "demo-client", "--quick",
        "--sizes", "64m", "--modes", "write-through", "--json", place,
    )  # fmt: skip
    assert said.status == 0, said.err
    document = json.loads(place.read_text())
    for row in rows_of(document, "cache"):
        life = row["life"]
        warm = life["warm_bytes_per_day"]
        assert 0 < warm < 0.8 * life["first_pass_bytes_per_day"]
        assert life["years"] == pytest.approx(life["rated_host_bytes"] / warm / 365.25)
        share = warm / store("demo-client").capacity_bytes
        assert life["drive_writes_per_day"] == pytest.approx(share)
    (wear,) = [one for one in document["sentences"] if "rated cycles" in one]
    assert wear.startswith("Each cache drive is written ") and " up to " not in wear


def test_a_stage_that_fills_the_pool_is_run_once_and_counted_nowhere(
    cli: Cli, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    # It writes for longer than the last stage takes.
    pool, _ = stores
    job = tmp_path / "job.fio"
    job.write_text(
        "[fill]\nrw=write\nbs=64k\niodepth=8\nsize=128m\n"
        "[db]\nstonewall\nrw=randread\nbs=8k\nsize=128m\nnorandommap\niodepth=8\n"
        "random_distribution=zipf:1.1\nruntime=500ms\ntime_based\n"
    )
    place = tmp_path / "plan.json"
    said = cli(
        "plan", "cache", "--job", job, "--pool", pool, "--cache", "demo-client", "--quick",
        "--sizes", "64m", "--modes", "write-through", "--json", place,
    )  # fmt: skip
    assert said.status == 0, said.err
    document = json.loads(place.read_text())
    for row in rows_of(document, "cache"):
        life = row["life"]
        # The disks take no more than 200 MB/s, whatever is written to the cache beside them.
        assert 0 < life["first_pass_bytes_per_day"] < 200e6 * 86_400
        assert 0 < life["warm_bytes_per_day"] < 200e6 * 86_400
        assert row["warm_up_passes"] < 1
        assert row["life"]["years"] < 5
    (wear,) = [one for one in document["sentences"] if "rated cycles" in one]
    assert " lasts 0.0 years" not in wear
    assert document["load"]["write_bytes"] == 0
    assert any("with what the stages before left in it" in one for one in document["sentences"])
    assert wear.endswith("; too short a load to be held to the 5 years of the rule.")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--cache", "FAST"], "name one load"),
        (["--cache", "FAST", "--trace", "T", "--job", "T"], "name one load"),
        (["--cache", "FAST", "--trace", "nosuch"], "there is no such trace"),
        (["--cache", "nosuch-drive", "--trace", "T"], 'drive profile is called "nosuch-drive"'),
        (["--cache", "FAST", "--trace", "BAD"], "BAD.csv:3"),
        (["--cache", "FAST", "--trace", "T", "--sizes", "1g"], "larger than the largest cache"),
        (["--cache", "POOL", "--trace", "T", "--sizes", "8g"], "as large as the pool"),
        (["--cache", "FAST", "--trace", "T", "--sizes", "5"], '--sizes "5"'),
        (
            ["--cache", "FAST", "--trace", "T", "--years", "-1"],
            "--years -1: expected a number of 0",
        ),
        (["--cache", "FAST", "--trace", "T", "--years", "inf"], "--years inf: expected a number"),
        (["--cache", "FAST", "--trace", "T", "--blocks", "12k"], "powers of two"),
        (["--cache", "FAST", "--trace", "T", "--blocks", "16k,"], "joined by commas"),
        (["--cache", "FAST", "--trace", "T", "--thresholds", "256"], "from 1 to 255"),
        (["--cache", "FAST", "--trace", "T", "--policies", "lruu"], 'did you mean "lru"'),
        (["--cache", "FAST", "--trace", "T", "--policies", "optimal"], "replacement policy"),
        (["--cache", "FAST", "--trace", "T", "--modes", "writeback"], 'did you mean "write-back"'),
        (["--cache", "FAST", "--trace", "T", "--preset", "bcach"], "did you mean bcache"),
        (["--cache", "FAST", "--trace", "T", "--sampled", "150%"], "a percentage above 0"),
        (["--cache", "FAST", "--trace", "T", "--ram", "lots"], '--ram "lots"'),
        (["--cache", "FAST", "--trace", "T", "--ram", "1k"], "from 4KiB"),
        (["--cache", "FAST", "--trace", "T", "--ram-policy", "arc"], "say how much"),
        (["--cache", "FAST", "--trace", "T", "--ram", "1m", "--ram-policy", "ark"], '"arc"'),
        (["--cache", "FAST", "--trace", "T", "--ram", "1m", "--ram-mode", "back"], "write-back"),
        (["--cache", "FAST", "--trace", "T", "--goal", "speed"], "iops, p99, price"),
        (["--cache", "FAST", "--trace", "T", "--fit", "squeeze"], "as-is, wrap, scale"),
        (["--cache", "FAST", "--trace", "FAR"], "--fit wrap"),
        (["--cache", "FAST", "--trace", "T", "--prices", "T"], "is not TOML"),
        (["--cache", "FAST", "--trace", "FLUSHES"], "nothing to cache"),
        (["--cache", "FAST", "--job", "T"], "T.csv"),
    ],
)
def test_what_the_user_got_wrong_is_one_sentence(
    cli: Cli, stores: tuple[Path, Path], tmp_path: Path, arguments: list[str], part: str
) -> None:
    pool, fast = stores
    files = {
        "POOL": pool,
        "FAST": fast,
        "T": write_trace(tmp_path / "T.csv", hot(50)),
        "BAD": write_trace(tmp_path / "BAD.csv", hot(50)),
        "FAR": write_trace(tmp_path / "FAR.csv", [(0, "read", 9 * GIB, 4096, 0)]),
        "FLUSHES": write_trace(tmp_path / "FLUSHES.csv", [(0, "flush", 0, 0, 0)]),
    }
    lines = files["BAD"].read_text().splitlines()
    lines[2] = "what,is,this"
    files["BAD"].write_text("\n".join(lines) + "\n")
    said = cli("plan", "cache", "--pool", pool, *[files.get(one, one) for one in arguments])
    assert said.status == 2
    assert part in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert said.out == ""


def test_damaged_lines_can_be_left_out(cli: Cli, stores: tuple[Path, Path], tmp_path: Path) -> None:
    pool, fast = stores
    trace = write_trace(tmp_path / "t.csv", hot(300))
    trace.write_text(trace.read_text() + "what,is,this\n")
    said = cli(
        "plan", "cache", "--trace", trace, "--pool", pool, "--cache", fast, "--quick",
        "--skip-damaged", "--json", "-", "-q",
    )  # fmt: skip
    assert said.status == 0, said.err
    assert json.loads(said.out)["load"]["requests"] == 300


def test_stores_with_flash_in_them_begin_full() -> None:
    assert prepared(store("demo-client")) == "sequential"
    assert prepared(store("raid10:4:seagate-constellation-500")) == "fob"


def test_sizes_are_round() -> None:
    assert [rounded_up(n) for n in (1000, 1025, 1281, 1700, 2048)] == [1024, 1280, 1536, 1792, 2048]


def test_a_cache_that_holds_no_block_is_told(
    stores: tuple[Path, Path],
) -> None:
    one = store(str(stores[1]))
    asked = candidates.CacheGrid(
        fasts=[one], sizes=[1 * MIB], blocks=[64 * MIB], thresholds=[1], policies=["lru"],
        modes=["write-back"], top=3,
    )  # fmt: skip
    costs = {one.text: candidates.Costs(1, 1, 1, 1)}
    assert not candidates.ShortList(asked, {}, costs).chosen


def test_of_a_long_trace_the_first_requests_are_run_in_time(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t.csv", hot(300))
    load = workload.trace_load(trace, Reading(), "as-is", 8 * GIB, 1, timed_max=100)
    assert load.stream is not None
    assert len(load.stream) == 300
    part = next(ssdlab.traces.open(trace, load.full_speed.replay.reading))
    assert len(part) == 100
    assert load.span_s == 0.2
    assert "100 of 300 requests" in load.notes[0]


def test_a_trace_that_does_not_fit_into_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = write_trace(tmp_path / "t.csv", hot(300))
    monkeypatch.setattr(workload, "available_bytes", lambda: 1000)
    with pytest.raises(InputError, match="--window"):
        workload.read_trace(trace, Reading())
