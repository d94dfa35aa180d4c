"""What the experiments on RAID cards with an SSD cache have in common: hot blocks on six disks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssdlab.arrays.attachment import Attachment
from ssdlab.experiments.base import Task
from ssdlab.experiments.cached import Members, course, milliseconds, rig, thinned
from ssdlab.experiments.measure import Floats, mean_between
from ssdlab.figures import Curve
from ssdlab.results import Result

ARTICLE = "an article on SSD caches of two RAID cards (Adaptec 3152-8i, LSI 9361-8i)"
DISK = "seagate-constellation-es3-1000"
"""Stands for the 1 TB SATA disks, whose model the article does not give."""
SSD = "intel-dc-s4600-240"
CHUNK = 256 << 10
"""Strip of both cards by default."""
POOL = Members("10", 6, DISK, CHUNK, (("write_cache", "0B"),))
"""The cards switch the volatile caches of disks off."""
CACHE = Members("1", 2, SSD)
HOT_BYTES = 20_000_000 * 512
BLOCK = 4096
DEPTH = 256
LOADS = {"write": "rw=randwrite", "read": "rw=randread", "mixed": "rw=randrw"}
LENGTH_S = {"write": 2500, "read": 2000, "mixed": 2500}
"""Time that a load is watched for, at full size."""
COLD_S = 100
"""The beginning of a load, in which next to nothing is warm."""
WARM_S = 400
"""Its end, in which everything is."""
SCALING = (
    "capacity of disks, SSDs and RAM, hot blocks, and time, so that the hot blocks take the same "
    "share of each and of the heads' way; sectors on a track, dies, and all rates stay"
)
FRESH = (
    "the SSDs begin fresh and see 10 GB of their 240: they write as in order, 260 MB/s, not at the "
    "38 000 a second that are rated for a drive that is full and used"
)


@dataclass(frozen=True)
class Setting:
    """A load on a system: what it is called, and what of the system is there."""

    key: str
    load: str
    card: Attachment
    preset: str = ""
    """Of the cache; empty for disks alone."""


def job(load: str, factor: int, more: str = "") -> str:
    """The job file of a load."""
    hot = HOT_BYTES // factor // BLOCK * BLOCK
    return f"""\
; 4 KiB at random in the first 20 million sectors, {DEPTH} in flight. Begin with a cold cache.
[global]
ioengine=libaio
direct=1
bs={BLOCK}

[{load}]
{LOADS[load]}
size={hot}
iodepth={DEPTH}
norandommap
time_based
runtime={milliseconds(LENGTH_S[load], factor)}
{more}"""


def task(setting: Setting, drive: str, factor: int) -> Task:
    """The run of a load on a system."""
    keys = {"preset": setting.preset}
    fast = CACHE if setting.preset else None
    return Task(
        setting.key,
        drive,
        job(setting.load, factor),
        interval_ms=max(1, 1000 // factor),
        cost=LENGTH_S[setting.load] / factor * (1.0 if fast else 0.1),
        rig=rig(drive, POOL, fast, keys, factor, setting.card),
    )


@dataclass(frozen=True)
class Course:
    """IOPS of a load over its time at full size."""

    time: Floats
    iops: Floats

    def between(self, begin: float, end: float) -> float:
        """Mean of the intervals from ``begin`` to ``end``, s."""
        return mean_between(self.time, self.iops, begin, end) or 0.0

    def warm(self) -> float:
        """Mean at the end."""
        end = float(self.time[-1])
        return self.between(end - WARM_S, end)

    def curve(self, name: str, colour: int, style: str = "line") -> Curve:
        """As drawn: a point a second at first, then ever longer means."""
        edges = [0.0, *np.arange(1.0, 20.0), *np.geomspace(20.0, float(self.time[-1]), 90)]
        x, y = thinned(self.time, self.iops, edges)
        return Curve(name, x, y, "dashed" if style == "dashed" else "line", colour)


def followed(result: Result, load: str, factor: int) -> Course:
    """The course of a load."""
    return Course(*course(result, load, factor))
