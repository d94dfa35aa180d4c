"""Two SSDs for six disks: as a cache that copies, or as a tier that extents move to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import polars as pl

from ssdlab.answer import Curve, Figure
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.experiments.cached import milliseconds
from ssdlab.plan.stores import Store, cached, store, tiered
from ssdlab.results import DirectionStats, Result
from ssdlab.rig import capacity_of, reduced

DISK, SSD = "seagate-constellation-500", "intel-330-120"
POOL = f"raid10:6:{DISK}"
MIRROR, STRIPE = f"raid1:2:{SSD}", f"raid0:2:{SSD}"
HOT_SHARE = 0.1
"""Of one SSD's space, what is hot; it fits every way of using the two."""
VOLUME = 50
"""Times the hot part, the volume that is worked in."""
PHASE_S = 1500
"""Seconds of a phase at full size: the hot part, 12 GB, moves in less than half of it."""
MOVE_RATE = "40MB/s"
"""Easy Tier moves at most 12 GB in 5 minutes."""
DEPTH = 32
PERIODS = 6
"""Periods of the tier in a phase."""
FAILS_AT = 0.9
"""Of a phase, when the SSDs fail."""
_WRITTEN = re.compile(r"(fast|cache)/member\d+/member_bytes_written")
"""What is counted of the writes to an SSD."""
CACHE = {"block": "64KiB", "sub_block": "4KiB", "fill": "block"}
WAYS: Mapping[str, str] = {
    "disks": "the disks alone",
    "through": "write-through cache",
    "back": "write-back cache",
    "tier": "tier",
}
"""Tasks of the main job and what they are called."""
COSTS: Mapping[str, str] = {
    "cost-still": "nothing moves",
    "cost-moving": f"extents move at {MOVE_RATE}",
    "cost-unlimited": "extents move as fast as they can",
}
"""Tasks that say what moving costs."""
LOSSES: Mapping[str, str] = {
    "loss-through": "write-through cache, its SSDs fail",
    "loss-back": "write-back cache, its SSDs fail",
    "loss-tier": "tier, its SSDs fail",
    "loss-mirror": "tier, one of its mirrored SSDs fails",
}
"""Tasks in which SSDs fail."""
RATES: Mapping[str, str] = {
    "first": "random reads, cold",
    "warming": "random reads, warming up",
    "reads": "random reads, warm",
    "writes": "random writes, warm",
    "moved": "random reads, the hot part has just moved",
    "following": "random reads, following it",
    "after": "random reads, warm again",
}
"""Phases of the main job and what they are called."""
HERE = "90/2:10/98"
THERE = "5/50:90/2:5/48"
"""Shares of the I/Os and of the volume: ninety percent in a fiftieth, which then is another one."""


def _size(factor: int) -> int:
    """Bytes of the volume."""
    hot = int(HOT_SHARE * capacity_of(SSD) / factor) >> 20 << 20
    return hot * VOLUME


def main_job(factor: int) -> str:
    """Warm-up, measurements, and the same again after the hot part has moved."""
    long, short = (milliseconds(sixths * PHASE_S / 6, factor) for sixths in (5, 1))
    steps = [
        ("first", "randread", HERE, short),
        ("warming", "randread", HERE, long),
        ("reads", "randread", HERE, short),
        ("writes", "randwrite", HERE, short),
        ("moved", "randread", THERE, short),
        ("following", "randread", THERE, long),
        ("after", "randread", THERE, short),
    ]
    return _job(
        factor,
        {
            name: f"rw={rw} random_distribution=zoned:{zones} runtime={length}"
            for name, rw, zones, length in steps
        },
    )


def loss_job(factor: int) -> str:
    """Reads and writes of the hot part, in the course of which the SSDs fail."""
    mix = f"rw=randrw rwmixread=70 random_distribution=zoned:{HERE}"
    return _job(factor, {"mixed": f"{mix} runtime={milliseconds(PHASE_S, factor)}"})


def cost_job(factor: int) -> str:
    """A few reads that make a fiftieth hot, and those whose time is measured, of the rest."""
    size, runtime = _size(factor), f"runtime={milliseconds(PHASE_S / 2, factor)}"
    hot = size // VOLUME
    own = {
        "hot": f"rw=randread size={hot} rate_iops=50 iodepth=1 {runtime}",
        "cold": f"rw=randread offset={2 * hot} size={size - 2 * hot} iodepth=8 {runtime}",
    }
    return _job(factor, own, together=True)


def _job(factor: int, sections: Mapping[str, str], *, together: bool = False) -> str:
    note = "In a volume at the start of a device that is worth nothing."
    common = f"size={_size(factor)} bs=4k iodepth={DEPTH} norandommap"
    return job_file(note, common, sections, together=together)


def plan(factor: int) -> list[Task]:
    """The disks, three ways of using the SSDs, slower looks, failures, and what moving costs."""
    pool, mirror, stripe = store(POOL), store(MIRROR), store(STRIPE)
    period = milliseconds(PHASE_S / PERIODS, factor)
    keys = {
        "extent": "1MiB",
        "period": period,
        "half_life": period,
        "move_rate": MOVE_RATE,
        "moves": 4,
        "placement": "below-first",
    }
    through = partial(cached, stripe, pool)
    back = partial(cached, mirror, pool)
    tier = partial(tiered, mirror, pool)
    fails = milliseconds(FAILS_AT * PHASE_S, factor)
    half = replace(mirror, tree=mirror.tree.copy())
    half.tree.set("fail", f'[{{ member = 0, at = "{fails}" }}]')

    main, loss, cost = main_job(factor), loss_job(factor), cost_job(factor)
    slow = {**keys, "period": milliseconds(PHASE_S, factor)}
    back_keys, lost = {**CACHE, "mode": "write-back"}, {"cache_fails_at": fails}
    still = {**keys, "moves": 0, "reserve": 4}
    eager = {**keys, "promote_after": 1, "margin": 0.0}
    unlimited = {key: value for key, value in eager.items() if key != "move_rate"}
    tasks = [
        ("disks", pool, main, 1.0),
        ("through", through(CACHE), main, 3.0),
        ("back", back(back_keys), main, 3.0),
        ("tier", tier(keys), main, 4.0),
        ("tier-slow", tier(slow), main, 3.0),
        ("loss-through", through({**CACHE, **lost}), loss, 1.0),
        ("loss-back", back({**back_keys, **lost}), loss, 2.0),
        ("loss-tier", tier({**keys, "fast_fails_at": fails}), loss, 2.0),
        ("loss-mirror", tiered(half, pool, keys), loss, 2.0),
        ("cost-still", tier(still), cost, 0.5),
        ("cost-moving", tier(eager), cost, 0.5),
        ("cost-unlimited", tier(unlimited), cost, 0.5),
    ]
    return [_task(key, one, job, factor, share) for key, one, job, share in tasks]


def _task(key: str, one: Store, job: str, factor: int, cost: float) -> Task:
    place = "fast" if one.tree.get("kind") == "tier" else "cache"
    smaller = {f"{place}.{name}": value for name, value in reduced(SSD, factor, fewest=128).items()}
    own = {} if one.tree.get("kind") == "array" else smaller
    interval = max(10, round(1000 * PHASE_S / factor / 60))
    return Task(key, one.title, job, own, interval_ms=interval, cost=cost, rig=one.rig())


@dataclass(frozen=True)
class Way:
    """What a run of a way of using the SSDs says."""

    result: Result

    def stats(self, job: str) -> DirectionStats:
        """What a phase did."""
        return next(
            s for result in self.result.jobs if result.name == job for s in result.directions()
        )

    def iops(self, job: str) -> float:
        """I/Os per second of a phase."""
        return self.stats(job).iops

    def mean_ms(self, job: str) -> float:
        """Mean latency of the I/Os of a phase."""
        return (self.stats(job).clat.mean_ns or 0) / 1e6

    def p99_ms(self, job: str) -> float:
        """What 99 % of the I/Os of a phase did not exceed."""
        return (self.stats(job).clat.percentile_ns(99.0) or 0) / 1e6

    def capacity(self) -> int:
        """Bytes that the host sees."""
        return int(self.result.ssdlab["target"]["capacity_bytes"])

    def counter(self, name: str, at_end_of: str | None = None) -> int:
        """A counter of the outermost device at the end of a phase, or of the run."""
        return self._sum(lambda column: column == name, at_end_of)

    def _sum(self, wanted: Callable[[str], bool], at_end_of: str | None) -> int:
        series = self.result.device_series()
        if series is None:
            return 0
        row = series.height - 1
        if at_end_of is not None:
            spans = {one["name"]: float(one["ended_s"]) for one in self.result.ssdlab["jobs"]}
            times = series["time_s"].to_list()
            # Each job has a row at its end.
            row = min(range(len(times)), key=lambda i: abs(times[i] - spans[at_end_of]))
        return sum(int(series[one][row]) for one in filter(wanted, series.columns))

    def ssd_bytes(self, at_end_of: str) -> int:
        """Bytes written to both SSDs up to the end of a phase."""
        return self._sum(lambda column: bool(_WRITTEN.fullmatch(column)), at_end_of)


def judge(runs: Runs, factor: int) -> Reproduced:
    """Each statement, and what the runs say of it."""
    ways = {key: Way(result) for key, result in runs.items()}
    lines = []
    for key, name in WAYS.items():
        way = ways[key]
        lines.append(Line(name, "capacity", None, "GB", way.capacity() / 1e9))
        lines += [Line(name, said, None, "IOPS", way.iops(job)) for job, said in RATES.items()]
        lines += [
            Line(name, f"99 % of reads{said}", None, "ms", way.p99_ms(job))
            for job, said in (("warming", " while warming up"), ("reads", ", warm"))
        ]
    ssds = [key for key in WAYS if key != "disks"]
    lines += [
        Line(
            WAYS[key], "written to the SSDs by warming up", None, "MB",
            ways[key].ssd_bytes("reads") / 1e6,
        )
        for key in ssds
    ]  # fmt: skip
    for key in ssds:
        written = ways[key].ssd_bytes("writes") - ways[key].ssd_bytes("reads")
        share = written / ways[key].stats("writes").io_bytes
        lines.append(Line(WAYS[key], "bytes to the SSDs per byte that is written", None, "", share))
    lines += [
        Line(name, "data lost", None, "MB", ways[key].counter("lost_bytes") / 1e6)
        for key, name in LOSSES.items()
    ]
    for key, name in COSTS.items():
        way, reads = ways[key], "reads of what is cold,"
        for what, unit, value in (
            ("rate", "IOPS", way.iops("cold")),
            ("mean", "ms", way.mean_ms("cold")),
            ("99 %", "ms", way.p99_ms("cold")),
        ):
            lines.append(Line(f"tier, {name}", f"{reads} {what}", None, unit, value))
    return Reproduced(lines, _figures(ways, factor), _verdicts(ways, factor))


def _verdicts(ways: Mapping[str, Way], factor: int) -> list[str]:
    """Each statement of the articles with the numbers that decide."""
    disks, through, back, tier = (ways[key] for key in WAYS)
    slow, still, moving, unlimited = (ways[key] for key in ("tier-slow", *COSTS))
    lost = {
        key: ways[f"loss-{key}"].counter("lost_bytes")
        for key in ("through", "back", "tier", "mirror")
    }
    ssd = capacity_of(SSD) / factor
    gained = tier.capacity() - disks.capacity()
    still_ms, moving_ms, unlimited_ms = (way.mean_ms("cold") for way in (still, moving, unlimited))
    moved = moving.counter("moved_up_bytes") + moving.counter("moved_down_bytes")
    cases = [
        (
            through.capacity() == back.capacity() == disks.capacity(),
            "A cache gains no capacity",
            f"the host sees {through.capacity() / 1e9:.1f} GB with it and "
            f"{disks.capacity() / 1e9:.1f} GB without",
        ),
        (
            gained > 0,
            "Tiering gains the capacity of the SSDs",
            f"{gained / 1e9:.2f} GB more than the disks: of two mirrored SSDs of "
            f"{ssd / 1e9:.2f} GB, as small as they are simulated, the space of one but for four "
            "extents to move into",
        ),
        (
            lost["through"] == 0,
            "The loss of the SSDs is harmless to a write-through cache",
            f"{lost['through'] / 1e6:.0f} MB are lost; of a write-back cache "
            f"{lost['back'] / 1e6:.0f} MB that were dirty",
        ),
        (
            lost["tier"] > 0 and lost["mirror"] == 0,
            "Tiers need redundancy",
            f"with the SSDs {lost['tier'] / 1e6:.0f} MB are lost, all that lay there; when one of "
            f"two mirrored SSDs fails, {lost['mirror'] / 1e6:.0f} MB",
        ),
        (
            unlimited_ms > moving_ms > still_ms,
            "Moves in the background cost I/O",
            f"reads that have nothing to gain take {still_ms:.1f} ms on average if nothing moves, "
            f"{moving_ms:.1f} ms while {moved / 1e6:.0f} MB move at {MOVE_RATE}, and "
            f"{unlimited_ms:.1f} ms where no rate limits that",
        ),
        (
            slow.iops("following") < tier.iops("following"),
            "Tiering needs tuning",
            f"once another part is hot, {tier.iops('following'):,.0f} reads per second with "
            f"{PERIODS} looks in a phase and {slow.iops('following'):,.0f} with one",
        ),
        (
            through.iops("moved") > tier.iops("moved"),
            "A cache follows at once, a tier when it looks",
            f"in the first period in which another part is hot {through.iops('moved'):,.0f} reads "
            f"per second with the cache and {tier.iops('moved'):,.0f} with the tier; in the end "
            f"{through.iops('after'):,.0f} and {tier.iops('after'):,.0f}",
        ),
    ]  # fmt: skip
    said = [
        f"{what}: {'confirmed' if right else 'not confirmed'}; {why}." for right, what, why in cases
    ]
    best = max(("through", "back", "tier"), key=lambda key: ways[key].iops("writes"))
    said.append(
        f"Warm writes: {through.iops('writes'):,.0f} per second with the write-through cache, "
        f"{back.iops('writes'):,.0f} with the write-back cache, {tier.iops('writes'):,.0f} "
        f"with the tier; the {WAYS[best]} is the fastest."
    )
    said.append(
        "The volume takes a small part of the disks, so that their heads move little; the caches "
        "bring in 64 KiB with each miss, and the tier 1 MiB that was read twice."
    )
    return said


def _figures(ways: Mapping[str, Way], factor: int) -> list[Figure]:
    curves = []
    for place, (key, name) in enumerate(WAYS.items()):
        rows = ways[key].result.series().group_by("time_s").agg(pl.col("iops").sum())
        series = rows.sort("time_s")
        curves.append(
            Curve(name, series["time_s"].to_list(), series["iops"].to_list(), "line", place)
        )
    phase = PHASE_S / factor
    times = [phase, 7 / 6 * phase, 8 / 6 * phase]
    note = (
        f"Until {times[0]:g} s it warms up, until {times[1]:g} s warm reads, until {times[2]:g} s "
        "warm writes; then another fiftieth of the volume is hot."
    )
    title = "I/Os per second, warming up and after the hot part has moved"
    return [Figure(title, "s", "IOPS", curves, log_y=True, wide=True, note=note)]


EXPERIMENT = experiment("tiering-or-caching", plan, judge)
