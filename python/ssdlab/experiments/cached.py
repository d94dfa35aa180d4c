"""Rigs of disks with an SSD cache at reduced size, and curves over time, for several "
"experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ssdlab.arrays.attachment import DIRECT, Attachment
from ssdlab.arrays.rigs import CHUNK, LEVELS, STRIPED, device_of, shipped, toml_text
from ssdlab.experiments.measure import Floats
from ssdlab.results import DIRECTIONS, Result
from ssdlab.scale import capacity_of, reduced

FEWEST = 128
"""Superblocks of an SSD of a cache, at least."""


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

    def table(self, factor: int) -> dict[str, Any]:
        """The table of the array, its drives ``factor`` times smaller."""
        keys: dict[str, Any] = {"kind": "array", "level": LEVELS[self.level], "count": self.count}
        if self.level in STRIPED:
            keys["chunk"] = f"{self.chunk}B"
        member = device_of(shipped(self.drive))
        own = factor if self.factor_max is None else min(factor, self.factor_max)
        for key, value in {**reduced(self.drive, own, fewest=FEWEST), **dict(self.keys)}.items():
            _set(member, key, value)
        if own < factor:
            size = capacity_of(self.drive) // factor // 4096 * 4096
            member = {"kind": "partition", "size": f"{size}B", "below": member}
        return {**keys, "member": member}


def _set(device: dict[str, Any], key: str, value: str) -> None:
    """Sets a dotted key of a device or of one below it, as an override of a run does."""
    names = key.split(".")
    table = device
    while names[0] not in table and "below" in table:
        table = table["below"]
    for name in names[:-1]:
        table = table.setdefault(name, {})
    table[names[-1]] = _value(value)


def _value(text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def rig(
    name: str,
    pool: Mapping[str, Any],
    fast: Mapping[str, Any] | None = None,
    keys: Mapping[str, Any] | None = None,
    card: Attachment = DIRECT,
) -> str:
    """``pool``, behind a cache on ``fast`` with these keys if there is one, behind ``card``."""
    device = dict(pool)
    if fast is not None:
        device = {"kind": "cache", **(keys or {}), "cache": dict(fast), "below": device}
    return toml_text({"name": name, "summary": name, "device": card.around(device)})


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
