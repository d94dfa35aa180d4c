"""The experiments with SSD caches: closed forms, and causes that take their effect along."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from ssdlab import _core
from ssdlab.experiments import cachecade, card_cache, maxcache, qsan_warm_up, raid_levels_cached
from ssdlab.experiments.base import Task
from ssdlab.experiments.cached import Members
from ssdlab.experiments.measure import course, thinned, when_above
from ssdlab.jobfile import JobText
from ssdlab.plan.warmup import Formula
from ssdlab.results import Result
from ssdlab.target import Settings, Sim

FACTOR = 400
BLOCKS = card_cache.HOT_BYTES // (card_cache.BLOCK * FACTOR)
"""Hot blocks at that size."""


def run(tasks: Sequence[Task], *keys: str) -> Mapping[str, Result]:
    chosen = [task for task in tasks if task.key in keys]
    assert len(chosen) == len(keys)
    return {
        task.key: Sim(task.drive, task.rig).run(
            JobText(f"{task.key}.fio", task.job, Path.cwd()),
            Settings(seed=1, overrides=task.overrides, interval_ms=task.interval_ms),
        )
        for task in chosen
    }


@pytest.fixture(scope="module")
def writes() -> Mapping[str, Result]:
    keys = ("write", "write-no-ram", "write-no-cache")
    return run(maxcache.plan(FACTOR), *keys)


@pytest.fixture(scope="module")
def warming() -> Mapping[str, Result]:
    return run(qsan_warm_up.plan(4000), "none", "database", "each")


def test_the_formula_gives_what_the_article_says() -> None:
    seconds = Formula(2 << 40, 2, 244, 8192, 8).seconds
    assert seconds == pytest.approx(275_036, abs=1)
    assert seconds / 3600 == pytest.approx(76.4, abs=0.01)


def test_a_gain_of_102_percent_is_73_percent_of_reads_answered() -> None:
    share = qsan_warm_up.hit_ratio_of(1.02)
    assert share == pytest.approx(0.729, abs=0.001)
    # Nine reads in ten, one command each where the cache has nothing; a write is four.
    assert 1.3 / (0.9 * (1 - share) + 0.1 * 4) == pytest.approx(2.02)
    assert qsan_warm_up.hit_ratio_of(0.0) == 0


def test_a_burst_lasts_until_ram_is_full(writes: Mapping[str, Result]) -> None:
    write = course(writes["write"], "write", FACTOR)
    end = maxcache.burst_end(write)
    rate_in = write.between(0, end - 1)
    rate_out = write.between(end + 20, end + 120)
    lines, hot = maxcache.RAM // FACTOR // 4096, BLOCKS
    # Of what comes in, the share that RAM already has takes no further room: with n lines full,
    # dn/dt = rate_in (1 - n / hot) - rate_out.
    settled = 1 - rate_out / rate_in
    expected = -hot / rate_in * math.log(1 - lines / (hot * settled)) * FACTOR
    assert end == pytest.approx(expected, rel=0.08)
    # Without rewriting it would be RAM / (in - out).
    assert end > lines * FACTOR / (rate_in - rate_out)


def test_without_ram_there_is_no_burst(writes: Mapping[str, Result]) -> None:
    with_ram, without = (course(writes[key], "write", FACTOR) for key in ("write", "write-no-ram"))
    assert with_ram.between(0, 4) > 50 * without.between(0, 4)
    assert without.between(0, 100) == pytest.approx(with_ram.between(20, 120), rel=0.25)


def test_without_the_ssds_nothing_climbs(writes: Mapping[str, Result]) -> None:
    cached, bare = (course(writes[key], "write", FACTOR) for key in ("write", "write-no-cache"))
    assert bare.last(card_cache.WARM_S) == pytest.approx(bare.between(20, 520), rel=0.1)
    assert cached.between(20, 120) == pytest.approx(bare.between(20, 120), rel=0.15)
    assert cached.last(card_cache.WARM_S) > 20 * bare.last(card_cache.WARM_S)


def test_a_block_goes_to_the_disks_once_and_from_then_on_to_the_ssds(
    writes: Mapping[str, Result],
) -> None:
    counters = writes["write-no-ram"].ssdlab["counters"]
    assert counters["below/cache_reads"] == 0
    # Those in flight at the same time may both come first.
    in_pool = counters["below/pool_bytes_written"] / card_cache.BLOCK
    assert BLOCKS * 0.999 < in_pool < BLOCKS + card_cache.DEPTH * 20
    assert counters["below/dirty_bytes"] == pytest.approx(BLOCKS * card_cache.BLOCK, rel=0.01)


def test_after_the_switch_everything_is_destaged() -> None:
    (result,) = run(maxcache.plan(1000), "switch").values()
    drained = maxcache.drained_after(result, 1000)
    assert drained is not None
    assert 0 < drained < maxcache.REST_S
    frame = result.device_series()
    assert frame is not None
    time = frame["time_s"].to_numpy() * 1000
    dirty = frame["below/dirty_bytes"].to_numpy()
    before = time < maxcache.SWITCH_S - 20
    assert dirty[before].max() > 0.9 * card_cache.HOT_BYTES / 1000
    assert (dirty[time > maxcache.SWITCH_S + drained + 20] == 0).all()
    counters = result.ssdlab["counters"]
    assert counters["below/destaged_bytes"] > 0
    assert counters["below/lost_bytes"] == 0


def test_no_burst_behind_a_card_that_writes_through() -> None:
    (result,) = run(cachecade.plan(FACTOR), "write").values()
    write = course(result, "write", FACTOR)
    assert write.between(1, 60) < 2000
    # One of the mirrored SSDs, fresh: as many writes as its controller takes.
    assert write.last(card_cache.WARM_S) == pytest.approx(1e6 / (13.9 + 3.2), rel=0.05)


def test_a_cache_warms_up_as_coupons_are_collected(warming: Mapping[str, Result]) -> None:
    places = qsan_warm_up.HOT_BYTES // 4000 / qsan_warm_up.REQUEST
    for key, expected in (
        # One use of a place, after the first of its block; and two uses of each place.
        ("database", lambda n: 1 - math.exp(-n)),
        ("each", lambda n: 1 - math.exp(-n) * (1 + n)),
    ):
        frame = warming[key].device_series()
        assert frame is not None
        hits, misses = (
            frame[f"read_{name}"].to_numpy().astype(float) for name in ("hits", "misses")
        )
        reads = (hits + misses) / places
        middle = len(reads) // 2
        span = slice(middle, middle + 20)
        share = (hits[span.stop] - hits[middle]) / (reads[span.stop] - reads[middle]) / places
        at = (reads[middle] + reads[span.stop]) / 2
        assert share == pytest.approx(expected(at), abs=0.04), (key, at)


def test_disks_do_one_command_for_a_miss_and_four_for_a_write(
    warming: Mapping[str, Result],
) -> None:
    for key, misses, place in (("none", "array_reads", ""), ("database", "read_misses", "below/")):
        counters = warming[key].ssdlab["counters"]
        pattern = re.compile(rf"{place}member[0-9]+/member_(reads|writes)")
        members = sum(value for name, value in counters.items() if pattern.fullmatch(name))
        # Some writes find a part of their stripe in the array's memory.
        expected = counters[misses] + 4 * counters[f"{place}array_writes"]
        assert members == pytest.approx(expected, rel=0.03), key


def test_the_level_below_a_warm_cache_does_not_matter() -> None:
    runs = run(raid_levels_cached.plan(2000), "0-under-0", "0-under-6")
    rows = {
        (key, row["job"]): row
        for key, result in runs.items()
        for row in result.frame().iter_rows(named=True)
    }
    # Counted, not divided by the time of the job: that ends when its last write does, which may
    # wait for its block to be destaged, and so for the disks, a tenth of the whole run.
    writes = {key: rows[key, "write"]["ios"] for key in runs}
    assert writes["0-under-6"] == pytest.approx(writes["0-under-0"], rel=0.01)
    # RAID 6 takes six commands for a write: cold it is far slower.
    assert rows["0-under-0", "cold"]["iops"] > 3 * rows["0-under-6", "cold"]["iops"]


def test_drives_of_a_cache_shrink_as_they_should() -> None:
    pool = Members(
        "5", 8, "seagate-constellation-es3-1000", 64 << 10, (("write_cache_enabled", "false"),)
    )
    rig = pool.rig(1000)
    assert [rig.get(key) for key in ("level", "count", "chunk")] == ["raid5", "8", "65536B"]
    assert rig.get("member.below.write_cache_enabled") == "false"
    assert rig.bytes("member.below.capacity") == 1000204886016 // 1000 // 4096 * 4096
    cache = Members("0", 5, "intel-dc-s3510-480", factor_max=200)
    fast = cache.rig(1000)
    assert fast.get("member.kind") == "partition"
    assert fast.bytes("member.size") == 480103981056 // 1000 // 4096 * 4096
    assert cache.rig(200).get("member.kind") == "link"


def test_at_full_size_nothing_is_left_out() -> None:
    for task in maxcache.plan(1):
        assert "ba=" not in task.job
        assert _core.Rig(task.rig, rig_name=task.key).get("kind") == "controller"
    text = raid_levels_cached.job(1)
    assert "rw=write\n" in text
    assert "ba=4096\n" in text


def test_means_between_edges() -> None:
    time, values = np.arange(1.0, 11.0), np.arange(1.0, 11.0)
    assert thinned(time, values, [0.0, 2.0, 4.0, 20.0]) == ([1.0, 3.0, 12.0], [1.5, 3.5, 7.5])
    assert thinned(time, values, [0.0, 0.5, 2.0]) == ([1.25], [1.5])


def test_a_level_counts_when_it_is_held() -> None:
    time = np.arange(8.0)
    values = np.array([0.0, 5.0, 0.0, 5.0, 5.0, 5.0, 0.0, 5.0])
    assert when_above(time, values, 5.0) == 3.0
    assert when_above(time, values, 6.0) is None
