"""What caches and tiers have yet to do is told beside a rate that is steady meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

import ssdlab
from ssdlab.checks import examine, of_result

POOL = 'kind = "null"\ncapacity = "2GiB"\nservice_time = "10ms"\nservers = 1\n'
FAST = 'kind = "null"\ncapacity = "256MiB"\nservice_time = "20ms"\nservers = 8\n'
BELOW = f"[device.below]\n{POOL}"
CACHE = f'kind = "cache"\nblock = "16KiB"\nmode = "write-back"\n[device.cache]\n{FAST}{BELOW}'
NESTED = f'kind = "partition"\n[device.below]\n{CACHE.replace("[device.", "[device.below.")}'
READ = CACHE.replace("write-back", "write-through")
APART = CACHE.replace('write-back"', 'write-back"\ndestage_merge = "16KiB"')
ZIPF = "bs=4k\nrw=randread\nrandom_distribution=zipf:1.1\nsize=1g"
SKEWED = READ.replace("256MiB", "512MiB").replace("20ms", "100us")
SWIFT_POOL = CACHE.replace("10ms", "3ms")
SLOWED = CACHE.replace('write-back"', 'write-back"\ndestage_rate = "400kB/s"')
AROUND = CACHE.replace("write-back", "write-around").replace("256MiB", "1GiB")
SLOW_CACHE = (
    CACHE.replace("256MiB", "128MiB")
    .replace('mode = "write-back"', 'mode = "write-back"\ndirty_low = 0.45\ndirty_high = 0.5')
    .replace("20ms", "80ms")
)
TIER = (
    'kind = "tier"\nextent = "1MiB"\nperiod = "40s"\nmove_rate = "200kB/s"\n'
    f'placement = "below-first"\n[device.fast]\n{FAST.replace("256", "64")}{BELOW}'
)


def told(device: str, job: str, tmp_path: Path, status: str = "") -> tuple[float, str]:
    """The rate of a job on a new rig, and what is said of whether it is steady."""
    rig = tmp_path / "rig.toml"
    rig.write_text(f"[device]\n{device}")
    text = f"[j]\nbs=16k\niodepth=8\nnorandommap\ntime_based\n{job}\n"
    result = ssdlab.run(text, on=str(rig))
    (found,) = [one for one in examine(of_result(result)) if one.name == "steady"]
    assert status in ("", found.status), found
    assert "steady" in found.evidence and "not steady" not in found.evidence
    return sum(one.iops or 0 for one in result.measurement.directions), found.evidence


@pytest.mark.parametrize(
    ("device", "job", "word"),
    [
        # Faster than it stays while the pool is spared the writes.
        (CACHE, "rw=randwrite\nsize=1g\nruntime=25", "the cache put"),
        (NESTED, "rw=randwrite\nsize=1g\nruntime=25", "the cache put"),
        # More than the pool takes, which is seen once destaging begins.
        (APART, "rw=randwrite\nsize=1g\nrate_iops=200\nruntime=60", "the cache put 4"),
        # The pool has the time, the cache has not: it reads what it writes back.
        (SWIFT_POOL, "rw=randwrite\nsize=1g\nruntime=25", "the cache put"),
        # There is room for all of it, but not for as much that only the cache holds.
        (SLOW_CACHE, "rw=randwrite\nsize=120m\nruntime=25", "the cache put"),
        # Slower, as nothing hot has come up, and as most of it has not yet.
        (TIER, "rw=randread\nsize=32m\nruntime=25", "the tier has moved nothing"),
        (TIER, "rw=randread\nsize=32m\nramp_time=38\nruntime=25", "extents"),
        # Slower, as reads have yet to find what will be there: a quarter of it, and all.
        (READ, "rw=randread\nsize=512m\nruntime=25", "96 % of the reads missed, 52 % at most"),
        (READ, "rw=randrw\nsize=192m\nruntime=25", "of the reads missed, none"),
        # Of skewed reads those that come often are in it first: how it fills tells more than room.
        (SKEWED, f"{ZIPF}\nruntime=60", "missed, 1"),
        # At last, of one read in five the last before it was a write, which goes around.
        (AROUND, "rw=randrw\nrwmixread=80\nsize=512m\nruntime=25", "missed, 2"),
    ],
    ids="put-off further too-fast swift within-reach early in-it cold mix skewed around".split(),
)
def test_a_rate_that_is_steady_before_caches_and_tiers_are_is_doubted(
    device: str, job: str, word: str, tmp_path: Path
) -> None:
    rate, said = told(device, job, tmp_path)
    assert word in said, said
    true, warm = told(device, f"{job}\nramp_time=600", tmp_path)
    assert abs(rate / true - 1) > 0.3
    assert ", but" not in warm, warm


@pytest.mark.parametrize(
    ("device", "job"),
    [
        # A cache that is full, or nearly so, and one that the pool is as fast as.
        (CACHE, "rw=randread\nsize=1g\nramp_time=1000\nruntime=25"),
        (READ, "rw=randread\nsize=1g\nramp_time=150\nruntime=25"),
        # One that is soon full, and one whose policy does not heed what is read.
        (SKEWED, f"{ZIPF}\nramp_time=600\nruntime=25"),
        (f'replacement = "fifo"\n{SKEWED}', f"{ZIPF}\nramp_time=300\nruntime=60"),
        (READ.replace("20ms", "80ms"), "rw=randread\nsize=1g\nruntime=25"),
        # The pool takes as much as the job asks for, once destaging begins.
        (CACHE, "rw=randwrite\nsize=1g\nrate_iops=50\nruntime=60"),
        (CACHE, "rw=randwrite\nsize=1g\nrate_iops=90\nruntime=60"),
        # What is written again and again stays where it is.
        (CACHE, "rw=randwrite\nsize=16m\nramp_time=30\nruntime=25"),
        # Some of it for the first time, but all of it may.
        (CACHE, "rw=randwrite\nsize=16m\nruntime=25"),
        (NESTED, "rw=randwrite\nsize=16m\nruntime=25"),
        (SLOWED, "rw=randwrite\nsize=200m\nruntime=60"),
        (CACHE.replace('block = "16KiB"\n', ""), "rw=randwrite\nsize=16m\nruntime=25"),
        (TIER.replace("below-first", "fast-first"), "rw=randread\nsize=32m\nruntime=25"),
    ],
)
def test_what_caches_and_tiers_do_all_the_time_is_no_doubt(
    device: str, job: str, tmp_path: Path
) -> None:
    _, said = told(device, job, tmp_path)
    assert ", but" not in said, said


@pytest.mark.parametrize("device", [CACHE, NESTED])
def test_what_nothing_shows_is_no_doubt_and_not_good(device: str, tmp_path: Path) -> None:
    # Until it writes back nothing tells what the pool takes, and the job asks for no more than 20.
    job = "rw=randwrite\nsize=1g\nrate_iops=20"
    _, said = told(device, f"{job}\nruntime=40", tmp_path, "unknown")
    assert "is not known: the cache wrote nothing back" in said
    # While more lies in the cache from second to second, the pool has time for all of it.
    assert ", but" not in told(device, f"{job}\nruntime=200", tmp_path, "good")[1]
