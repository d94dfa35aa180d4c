"""Readings of results that several experiments take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from ssdlab.answer import Curve, Style
from ssdlab.numeric import Floats
from ssdlab.results import DIRECTIONS, Result

LATE = 0.75
"""Share of a run after which it counts as steady."""


@dataclass(frozen=True)
class Course:
    """What a job did in each interval, all directions together."""

    time: Floats
    """Ends of the intervals since the job's start, at full size."""
    values: Floats

    def between(self, begin: float, end: float) -> float:
        """Mean of the intervals that end after ``begin`` and not after ``end``; 0 without any."""
        return mean_between(self.time, self.values, begin, end) or 0.0

    def over(self, begin: float, end: float) -> float:
        """Mean of that time: an interval that lies in it in part counts by that part."""
        begun = np.concatenate(([0.0], self.time[:-1]))
        part = np.maximum(0.0, np.minimum(self.time, end) - np.maximum(begun, begin))
        return float(np.average(self.values, weights=part))

    def last(self, length: float) -> float:
        """Mean of its end, so long."""
        end = float(self.time[-1])
        return self.between(end - length, end)

    def curve(self, name: str, colour: int = 0, style: Style = "line") -> Curve:
        """As drawn."""
        return Curve(name, self.time.tolist(), self.values.tolist(), style, colour)


def course(result: Result, job: str, factor: int, column: str = "iops") -> Course:
    """A column of the series over the time at full size, s."""
    begin = next(float(one["started_s"]) for one in result.ssdlab["jobs"] if one["name"] == job)
    # A direction has no rows before its first I/O.
    frame = result.series(job=job).filter(pl.col("ddir").is_in(DIRECTIONS))
    found = frame.group_by("time_s").agg(pl.col(column).sum()).sort("time_s")
    time, values = (found[one].to_numpy().astype(np.float64) for one in ("time_s", column))
    return Course((time - begin) * factor, values)


def minutes(result: Result, factor: int) -> Course:
    """MB/s of the job ``random`` over minutes at full size."""
    one = course(result, "random", factor, "bw_bytes")
    return Course(one.time / 60, one.values / 1e6)


@dataclass(frozen=True)
class Batches:
    """What a drive that collects in batches does from the beginning of its first to that of its
    last: the rates within one and between two differ by orders of magnitude."""

    iops: float
    """Units written by the host a second."""
    amplification: float
    period_s: float
    """From the beginning of one batch to that of the next."""


def over_batches(result: Result) -> Batches | None:
    """The same of the drive below a link; None where fewer than three batches begin."""
    series = result.device_series()
    if series is None or "below/collection_batches" not in series.columns:
        return None
    begins = series.filter(pl.col("below/collection_batches").diff() > 0)
    if len(begins) < 3:
        return None
    seconds, host, copied = (
        float(begins[name][-1] - begins[name][0])
        for name in ("time_s", "below/host_units_written", "below/programs_collection")
    )
    return Batches(host / seconds, 1 + copied / host, seconds / (len(begins) - 1))


def totals(result: Result, column: str = "iops") -> dict[str, float]:
    """A column of the document by job, all directions together."""
    found: dict[str, float] = {}
    for row in result.frame().iter_rows(named=True):
        found[row["job"]] = found.get(row["job"], 0.0) + row[column]
    return found


def at(time: Floats, values: Floats, when: float) -> float | None:
    """The value of the interval that ends nearest to ``when``; None without any."""
    return float(values[int(np.abs(time - when).argmin())]) if len(time) else None


def mean_between(time: Floats, values: Floats, start: float, end: float) -> float | None:
    """Mean of the intervals that end after ``start`` and not after ``end``."""
    chosen = values[(time > start) & (time <= end + 1e-9)]
    return float(chosen.mean()) if len(chosen) else None


def last_quarter(time: Floats, values: Floats) -> float | None:
    """The mean of the last quarter of the time: what a drive keeps up."""
    return mean_between(time, values, LATE * float(time[-1]), float(time[-1]))


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
    """When values first stay at ``level`` or above for three intervals; None where they never
    do."""
    above = values >= level
    lasting = above[:-2] & above[1:-1] & above[2:]
    return float(time[int(lasting.argmax())]) if lasting.any() else None
