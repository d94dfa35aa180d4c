"""What the experiments on RAID cards with an SSD cache have in common: hot blocks on six disks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ssdlab.answer import Curve, Figure, Style
from ssdlab.arrays.attachment import Attachment
from ssdlab.experiments.base import Task, job_file
from ssdlab.experiments.cached import Members, milliseconds, rig
from ssdlab.experiments.measure import Course, thinned

DISK = "seagate-constellation-es3-1000"
"""Stands for the 1 TB SATA disks, whose model the article does not give."""
SSD = "intel-dc-s4600-240"
CHUNK = 256 << 10
"""Strip of both cards by default."""
POOL = Members("10", 6, DISK, CHUNK, (("write_cache_enabled", "false"),))
"""The cards switch the volatile caches of disks off."""
CACHE = Members("1", 2, SSD)
HOT_BYTES = 20_000_000 * 512
BLOCK = 4096
DEPTH = 256
LOADS = {"write": "rw=randwrite", "read": "rw=randread", "mixed": "rw=randrw"}
LENGTH_S = {"write": 3600, "read": 2000, "mixed": 3000}
"""Time that a load is watched for, at full size."""
COLD_S = 100
"""The beginning of a load, in which next to nothing is warm."""
WARM_S = 400
"""Its end, in which everything is."""
USED_TIMES = 2.0
"""How often used SSDs were written over at random: from then on they are as slow as rated."""
DISKS_WHY = (
    "which disks, how many commands the card gives one at a time and whether their write caches "
    "are on is not stated: with 4 commands at a disk instead of 32 ours read 1,700 blocks a "
    "second, with their write caches on they write 1,600"
)
FRESH = (
    "fresh SSDs that see 10 GB of their 240 write as many as their controller takes, nearly as "
    "sequentially, not the 38,000 a second that are rated for full and used ones"
)


@dataclass(frozen=True)
class CardLoad:
    """A load on a system: what it is called, and what of the system is there."""

    key: str
    load: str
    card: Attachment
    preset: str = ""
    """Of the cache; empty for disks alone."""
    used: bool = False
    """Whether the SSDs are full and used instead of fresh."""


NOTE = (
    f"4 KiB at random in the first 20 million sectors, {DEPTH} in flight. Begin with a cold cache."
)


def job(load: str, factor: int) -> str:
    """The job file of a load, which takes every ``factor``-th block."""
    where = f"size={HOT_BYTES}" + (f" ba={BLOCK * factor}" if factor > 1 else "")
    return job_file(NOTE, f"bs={BLOCK}", {load: section(load, where, LENGTH_S[load], factor)})


def section(load: str, where: str, length_s: float, factor: int) -> str:
    """Its options, watched for so long at full size."""
    length = milliseconds(length_s, factor)
    return f"{LOADS[load]} {where} iodepth={DEPTH} norandommap runtime={length}"


def task(setting: CardLoad, drive: str, factor: int) -> Task:
    """The run of a load on a system."""
    keys = {"preset": setting.preset, "used_before": USED_TIMES if setting.used else 0.0}
    fast = CACHE.rig(factor) if setting.preset else None
    return Task(
        setting.key,
        drive,
        job(setting.load, factor),
        interval_ms=max(1, 1000 // factor),
        cost=LENGTH_S[setting.load] / factor * (1.0 if fast else 0.1),
        rig=rig(drive, POOL.rig(1), fast, keys, setting.card),
    )


def drawn(course: Course, name: str, colour: int, style: Style = "line") -> Curve:
    """A course as a curve: a point a second, then ever longer means, without the first second,
    which is shorter than an access, for latencies are not scaled."""
    edges = [*np.arange(1.0, 20.0), *np.geomspace(20.0, float(course.time[-1]), 90)]
    return Curve(name, *thinned(course.time, course.values, edges), style, colour)


def chart(title: str, curves: Sequence[Curve], published: Mapping[float, float]) -> Figure:
    """Rates from cold to warm, with the published ones by their time."""
    rings = Curve("published", list(published), list(published.values()), "published", 4)
    return Figure(
        title, "time at full size, s", "IOPS", [*curves, rings], log_x=True, log_y=True, wide=True
    )
