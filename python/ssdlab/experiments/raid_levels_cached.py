"""Eight disks in RAID 0, 10, 5 and 6 behind a cache on four SSDs: does the level still matter?"""

from __future__ import annotations

from dataclasses import replace

from ssdlab.answer import Curve, Figure, by_name
from ssdlab.arrays.attachment import attachment, without_ram
from ssdlab.arrays.performance import Performance
from ssdlab.arrays.rigs import ArrayShape, array_rig, shipped
from ssdlab.experiments import measure, raid_levels
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.experiments.cached import Members, rig
from ssdlab.experiments.raid_levels import CARD, DEPTH, DISK, LEVELS, SSD, SSDS, STRIP
from ssdlab.rig import capacity_of, reduced

DRIVE = "8 disks, 4 SSDs"
FAST = {"0": "RAID 0", "10": "RAID 1"}
"""Levels of the cache: four SSDs as RAID 1 are two mirrors of two."""
PUBLISHED = {"0": 29_300.0, "10": 24_900.0}
PURE = raid_levels.RAID6_WRITE
BLOCK = 4096
VOLUME = 50_000_000_000
WARM_MS = 300
"""Milliseconds of a measurement, at any size."""
SSD_FACTOR = 100
"""The SSDs are not made smaller than this: collection needs blocks."""
USED = {"used_before": 2.0}
"""Keys of a cache whose SSDs are full and used."""
FITTED = (
    "what the card's firmware takes for a command of the host and for each of an SSD was chosen by "
    "the writes through either cache; the SSDs are fresh here. In what state they were is not "
    "stated: ones that were just written over would by themselves take 25,000 and 21,000 a second"
)
TOO_SMALL = "not in a quick run: SSDs that small have no room for collection"
PURE_WHY = "a write is six commands of SSDs, which the firmware sees to as to those of the cache"


def job(factor: int) -> str:
    """The job file: every hot block is written twice, once to disks and SSDs and once to the
    SSDs."""
    area = VOLUME // (BLOCK * factor) * BLOCK * factor
    # A stride at the end of each write: only one block in `factor` is hot.
    order = f"rw=write:{BLOCK * (factor - 1)}" if factor > 1 else "rw=write"
    warm = f"ba={BLOCK * factor} norandommap runtime={WARM_MS}ms"
    return job_file(
        f"4 KiB at random in 50 GB, {DEPTH} in flight, before a cache that holds all of it.",
        f"bs={BLOCK} size={area} iodepth={DEPTH} refill_buffers",
        {
            "cold": order,
            "again": order,
            "write": f"rw=randwrite {warm}",
            "read": f"rw=randread {warm}",
        },
    )


def plan(factor: int) -> list[Task]:
    """Each level of disks under each level of the cache; RAID 6 of SSDs without one."""
    card = without_ram(attachment(CARD))
    # Hot blocks are no neighbours at reduced size, so that a block of the cache holds but one.
    keys: dict[str, object] = {"preset": "cachecade"}
    keys |= {"block": f"{BLOCK}B"} if factor > 1 else {}
    tasks = []
    for fast in FAST:
        for level in LEVELS:
            pool = Members(level, raid_levels.MEMBERS, DISK, STRIP)
            cache = Members(fast, 4, SSD, STRIP, factor_max=SSD_FACTOR)
            text = rig(DRIVE, pool.rig(1), cache.rig(factor), keys, card)
            tasks.append(Task(f"{fast}-under-{level}", DRIVE, job(factor), rig=text))
        if factor > SSD_FACTOR:
            continue
        pool = Members("6", raid_levels.MEMBERS, DISK, STRIP)
        used = rig(DRIVE, pool.rig(1), cache.rig(factor), keys | USED, card)
        tasks.append(Task(f"{fast}-used", DRIVE, job(factor), rig=used))
    shape = ArrayShape("6", raid_levels.MEMBERS, STRIP)
    percent = round(100 * VOLUME / (shape.usable_share * shape.count * capacity_of(SSD)))
    text = raid_levels.job("write", raid_levels.LOADS["write"], percent)
    smaller = reduced(SSD, min(factor, SSD_FACTOR), fewest=128)
    tasks.append(Task("ssds", SSDS, text, smaller, rig=array_rig(shipped(SSD), shape, card)))
    return tasks


def judge(runs: Runs, factor: int) -> Reproduced:
    """The numbers of the text, and how little the level below matters."""
    found = {
        (fast, level, load): measure.totals(runs[f"{fast}-under-{level}"])[load]
        for fast in FAST
        for level in LEVELS
        for load in ("cold", "write", "read")
    }
    pure, on_raid6 = Performance.of(runs["ssds"]).iops, found["0", "6", "write"]
    lines = [
        Line(DRIVE, f"RAID 6, cache {FAST[fast]}: random writes", value, "IOPS",
             found[fast, "6", "write"], FITTED, "fitted")
        for fast, value in PUBLISHED.items()
    ]  # fmt: skip
    for fast, name in FAST.items():
        used = runs.get(f"{fast}-used")
        lines.append(
            Line(
                DRIVE, f"the same, SSDs just written over, cache {name}", None, "IOPS",
                None if used is None else measure.totals(used)["write"],
                TOO_SMALL if used is None else "",
            )
        )  # fmt: skip
    lines += [
        Line(
            DRIVE, "writes with cache RAID 0 / RAID 1", PUBLISHED["0"] / PUBLISHED["10"], "",
            on_raid6 / found["10", "6", "write"],
            f"every write goes to two SSDs of a mirror; {FITTED}", "consequence",
        ),
        Line(SSDS, "RAID 6 without a cache: random writes", PURE, "IOPS", pure, PURE_WHY),
        Line(
            DRIVE, "cached RAID 6 of disks / RAID 6 of SSDs", PUBLISHED["0"] / PURE, "",
            on_raid6 / pure, PURE_WHY,
        ),
    ]  # fmt: skip
    lines += [
        Line(
            DRIVE, f"cache RAID 0: writes on RAID {level} / RAID 0 (hardly differ)", 1.0, "",
            found["0", level, "write"] / found["0", "0", "write"],
        )
        for level in LEVELS[1:]
    ]  # fmt: skip
    lines += [
        Line(DRIVE, f"cache {FAST[fast]} on RAID {level}: {load}s", None, "IOPS", value)
        for (fast, level, load), value in found.items()
        if load == "write" or (load == "read" and level == "6")
    ]
    cold = "first writes, sequential with gaps, on RAID"
    lines += [
        Line(DRIVE, f"{cold} {level}", None, "IOPS", found["0", level, "cold"]) for level in LEVELS
    ]
    return Reproduced(lines, [_figure(found)], _remarks(found))


def _figure(found: dict[tuple[str, str, str], float]) -> Figure:
    shown = {
        "cold": ("0", "cold"),
        "warm, cache RAID 0": ("0", "write"),
        "warm, cache RAID 1": ("10", "write"),
    }
    curves = {
        name: [found[fast, level, load] for level in LEVELS] for name, (fast, load) in shown.items()
    }
    names, title = [f"RAID {level}" for level in LEVELS], "Writes by the level of the disks"
    chart = by_name(title, "IOPS", names, curves, "points", log_y=True, wide=True)
    place = [float(LEVELS.index("6"))] * len(PUBLISHED)
    rings = Curve("published", place, list(PUBLISHED.values()), "published", 4)
    return replace(chart, curves=[*chart.curves, rings])


def _remarks(found: dict[tuple[str, str, str], float]) -> list[str]:
    cold = [found["0", level, "cold"] for level in LEVELS]
    warm = [found["0", level, "write"] for level in LEVELS]
    return [
        "A warm cache takes writes whatever lies below: the fastest level is "
        f"{max(warm) / min(warm):.2f} times the slowest. Before it is warm each write goes to the "
        "disks too, and the levels are as far apart as without a cache, "
        f"{max(cold) / min(cold):.1f} times.",
        "How fast it takes them is up to the card's firmware, which sees to each write and to each "
        "command of an SSD that it takes: one with stripes, two with mirrors, six with RAID 6 of "
        "SSDs. Only SSDs that were just written over twice at random are slower than that.",
        "This holds while everything in use fits, and until dirty blocks have to make room: "
        "destaging is as slow as the level below.",
    ]


EXPERIMENT = experiment("raid-levels-cached", plan, judge)
