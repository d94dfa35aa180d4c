"""Rigs of disks with an SSD cache at reduced size, and curves over time, for several "
"experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ssdlab import _core
from ssdlab.arrays.attachment import DIRECT, Attachment
from ssdlab.arrays.rigs import CHUNK, Shape, array_of
from ssdlab.experiments.measure import Floats
from ssdlab.results import DIRECTIONS, Result
from ssdlab.rig import SUPERBLOCKS_MIN, capacity_of, profile, reduced


@dataclass(frozen=True)
class Members:
    """Equal drives as an array."""

    level: str
    """A key of ``LEVELS``."""
    count: int
    drive: str
    """Name of the profile."""
    chunk: int = CHUNK
    keys: tuple[tuple[str, str], ...] = ()
    """Keys of the drive that are set otherwise than in its profile, such as a write cache."""
    factor_max: int | None = None
    """A drive is not made smaller than this; beyond it a part of it is used. Collection needs "
    "blocks."""

    def rig(self, factor: int) -> _core.Rig:
        """The array, its drives ``factor`` times smaller."""
        member = profile(self.drive).rig()
        own = factor if self.factor_max is None else min(factor, self.factor_max)
        for key, value in {
            **reduced(self.drive, own, fewest=SUPERBLOCKS_MIN),
            **dict(self.keys),
        }.items():
            member.set(key, value)
        if own < factor:
            size = capacity_of(self.drive) // factor // 4096 * 4096
            member = _core.Rig.wrap("partition", {"size": f"{size}B"}, below=member)
        return array_of(member, Shape(self.level, self.count, self.chunk))


def rig(
    name: str,
    pool: _core.Rig,
    fast: _core.Rig | None = None,
    keys: Mapping[str, Any] | None = None,
    card: Attachment = DIRECT,
) -> str:
    """``pool``, behind a cache on ``fast`` with these keys if there is one, behind ``card``."""
    whole = pool.copy(name=name, summary=name)
    if fast is not None:
        whole = _core.Rig.wrap(
            "cache", dict(keys or {}), name=name, summary=name, cache=fast, below=pool
        )
    return card.around(whole).to_toml()


def milliseconds(seconds: float, factor: int) -> str:
    """A time of the full-size experiment as a job says it, ``factor`` times shorter."""
    return f"{max(1, round(seconds * 1000 / factor))}ms"


def course(result: Result, job: str, factor: int) -> tuple[Floats, Floats]:
    """IOPS of a job in all directions together, over its time at full size in seconds."""
    begin = next(float(j["started_s"]) for j in result.ssdlab["jobs"] if j["name"] == job)
    frame = result.series(job=job)
    time = np.unique(frame["time_s"].to_numpy())
    total = np.zeros(len(time))
    for direction in DIRECTIONS:
        one = frame.filter(frame["ddir"] == direction)
        # A direction has no rows before its first I/O.
        total[np.searchsorted(time, one["time_s"].to_numpy())] += one["iops"].to_numpy()
    return (time - begin) * factor, total


def thinned(
    time: Floats, values: Floats, edges: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Means between consecutive edges, at the middle of each; those without a value left out."""
    place = np.searchsorted(np.asarray(edges), time, side="left")
    found = [(place == i).nonzero()[0] for i in range(1, len(edges))]
    middle = [(a + b) / 2 for a, b in pairwise(edges)]
    kept = [(x, float(values[at].mean())) for x, at in zip(middle, found, strict=True) if len(at)]
    return [x for x, _ in kept], [y for _, y in kept]


def when_above(time: Floats, values: Floats, level: float) -> float | None:
    """When values first stay at ``level`` or above for three intervals; None where they never "
    "do."""
    above = values >= level
    lasting = above[:-2] & above[1:-1] & above[2:]
    return float(time[int(lasting.argmax())]) if lasting.any() else None
