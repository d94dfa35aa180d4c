"""Readings of a protocol's run in which any step may be missing: None instead of an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ssdlab.analysis.series import per_second
from ssdlab.engine.records import Records
from ssdlab.histogram import NOTHING, Histogram, merge

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """What a step did in each interval, on its own clock; intervals without I/O are zeros."""

    time: Floats
    """Ends of the intervals, seconds since the step began."""
    iops: Floats
    mbps: Floats
    written: Floats
    """Bytes moved up to the end of each interval."""
    step: float
    """Length of an interval, seconds."""

    def records(self, seconds: float) -> tuple[Floats, Floats, Floats]:
        """Means over records of so many seconds: their ends, IOPS and MB/s.

        A last record of less than half of that is left out.
        """
        each = max(1, round(seconds / self.step))
        whole = len(self.time) // each
        cuts = [slice(n * each, (n + 1) * each) for n in range(whole)]
        if len(self.time) - whole * each >= each / 2:
            cuts.append(slice(whole * each, len(self.time)))
        return (
            np.array([self.time[cut][-1] for cut in cuts]),
            np.array([self.iops[cut].mean() for cut in cuts]),
            np.array([self.mbps[cut].mean() for cut in cuts]),
        )


@dataclass(frozen=True)
class Readings:
    """The values of :class:`Records`; None where a step was not run, or moved nothing."""

    records: Records

    def has(self, key: str) -> bool:
        """Whether the step was run."""
        return key in self.records.keys_

    def iops(self, key: str, ddir: str | None = None, job: str | None = None) -> float | None:
        """I/Os per second of a step."""
        return (self.records.iops(key, ddir, job) or None) if self.has(key) else None

    def mbps(self, key: str, ddir: str | None = None, job: str | None = None) -> float | None:
        """10^6 bytes per second of a step."""
        return (self.records.mbps(key, ddir, job) or None) if self.has(key) else None

    def mean_us(self, key: str, ddir: str | None = None, job: str | None = None) -> float | None:
        """Mean completion latency of a step, us."""
        return self.records.mean_us(key, ddir, job) if self.has(key) else None

    def max_us(self, key: str, ddir: str | None = None, job: str | None = None) -> float | None:
        """Longest completion latency of a step, us."""
        return self.records.max_us(key, ddir, job) if self.has(key) else None

    def percentile_us(
        self, key: str, percent: float, ddir: str | None = None, job: str | None = None
    ) -> float | None:
        """The latency that so many percent of the I/Os of a step did not exceed, us."""
        return self.records.percentile_us(key, percent, ddir, job) if self.has(key) else None

    def waf(self, key: str) -> float | None:
        """Write amplification during a step; None where the drive does not tell."""
        return self.records[key].waf if self.has(key) else None

    def sync(self, key: str) -> Histogram | None:
        """How long the flushes of a step took (fio's ``sync``)."""
        return merge(job.sync() for job in self.records[key].jobs) if self.has(key) else None

    def latencies(self, key: str, ddir: str, job: str | None = None) -> tuple[Floats, Floats]:
        """Completion latencies of a step, us, ascending, and the percent of I/Os slower than each
        (:meth:`ssdlab.histogram.Histogram.slower`)."""
        found = self.records.latency(key, ddir, job) if self.has(key) else None
        value, share = (NOTHING if found is None else found).slower()
        return value / 1e3, 100 * share

    def series(self, key: str, ddir: str | None = None, job: str | None = None) -> Series | None:
        """The series of a step on its own clock; None where there is none."""
        if not self.has(key):
            return None
        rows = self.records.series(key, ddir, job)
        if ddir is None:
            rows = rows.filter(rows["ddir"].is_in(["read", "write"]))
        if rows.is_empty():
            return None
        about = self.records.ssdlab(key)
        step = float(about.get("interval_ms", 1000)) / 1e3
        frame = per_second(rows, step, _started(about, rows["time_s"].min(), step), bin_s=step)
        return Series(
            time=frame["time_s"].to_numpy(),
            iops=frame["iops"].to_numpy(),
            mbps=frame["bw_bytes"].to_numpy() / 1e6,
            written=np.cumsum(frame["bytes"].to_numpy()),
            step=step,
        )


def best(values: Iterable[float | None], choose: Callable[..., float] = max) -> float | None:
    """The best of what was measured; None where nothing was."""
    found = [value for value in values if value is not None]
    return choose(found) if found else None


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what was measured; None where nothing was."""
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else None


def ratio(one: float | None, other: float | None) -> float | None:
    """one / other; None where either is missing or the other is nothing."""
    return None if one is None or not other else one / other


def percent(one: float | None, other: float | None) -> float | None:
    """100 one / other; None as in :func:`ratio`."""
    found = ratio(one, other)
    return None if found is None else 100 * found


def _started(about: dict[str, Any], first: Any, step: float) -> float | None:
    """When the step began on the clock of its series, where the result says it plausibly."""
    starts = [float(one["started_s"]) for one in about.get("jobs", []) if "started_s" in one]
    if not starts or min(starts) > float(first):
        return None
    return min(starts)
