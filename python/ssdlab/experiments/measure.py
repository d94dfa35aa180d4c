"""Readings of results that several experiments take."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ssdlab.results import Result

Floats = npt.NDArray[np.float64]


def rate(result: Result, job: str, ddir: str = "write") -> tuple[Floats, Floats]:
    """Ends of the intervals in seconds since the job's begin, and MB/s in each."""
    frame = result.series(job=job, ddir=ddir)
    return _clock(result, job, frame["time_s"].to_numpy()), frame["bw_bytes"].to_numpy() / 1e6


def iops(result: Result, job: str, ddir: str = "write") -> tuple[Floats, Floats]:
    """Ends of the intervals in seconds since the job's begin, and IOPS in each."""
    frame = result.series(job=job, ddir=ddir)
    return _clock(result, job, frame["time_s"].to_numpy()), frame["iops"].to_numpy()


def mean_rate(result: Result, job: str) -> float | None:
    """MB/s of a whole job in its only direction; None if it is not in the result."""
    rows = [row for row in result.frame().iter_rows(named=True) if row["job"] == job]
    return rows[0]["bw_bytes"] / 1e6 if rows else None


def at(time: Floats, values: Floats, when: float) -> float | None:
    """The value of the interval that ends nearest to ``when``; None without any."""
    return float(values[int(np.abs(time - when).argmin())]) if len(time) else None


def mean_between(time: Floats, values: Floats, start: float, end: float) -> float | None:
    """Mean of the intervals that end after ``start`` and not after ``end``."""
    chosen = values[(time > start) & (time <= end + 1e-9)]
    return float(chosen.mean()) if len(chosen) else None


def _clock(result: Result, job: str, time: Floats) -> Floats:
    spans = {one["name"]: float(one["started_s"]) for one in result.ssdlab.get("jobs", [])}
    return np.asarray(time - spans.get(job, 0.0), dtype=np.float64)
