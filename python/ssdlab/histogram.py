"""Latencies in fio's bins: one mergeable histogram for all that is measured, counted or drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ssdlab.numeric import Floats, Ints

KINDS = ("slat", "clat", "lat")
"""Kinds of latency: to the submission, from there to the completion, and both."""

PERCENTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99, "p99999": 99.999}
"""What documents hold, by the names it has there."""

GROUP_BITS = 6
"""fio's FIO_IO_U_PLAT_BITS: 64 bins per power of two."""
BINS = 29 << GROUP_BITS
"""Number of bins; the last one takes everything above 17 s."""


def _values() -> Ints:
    index = np.arange(BINS)
    exponent = np.maximum((index >> GROUP_BITS) - 1, 0)
    middle = np.exp2(exponent + GROUP_BITS) + ((index & 63) + 0.5) * np.exp2(exponent)
    return np.where(index < 2 << GROUP_BITS, index, middle).astype(np.int64)


VALUES = _values()
"""The latency in ns that fio writes for each bin: its middle, at most 1/128 off."""


def bin_index(ns: npt.ArrayLike) -> Ints:
    """The bins that fio counts latencies of so many ns in."""
    value = np.maximum(np.asarray(ns, dtype=np.int64), 0)
    # frexp counts the bits exactly below 2^53 ns, a hundred days.
    shift = np.maximum(np.frexp(value.astype(np.float64))[1] - 1 - GROUP_BITS, 0)
    found = ((shift + 1) << GROUP_BITS) + ((value >> shift) & 63)
    return np.minimum(np.where(shift > 0, found, value), BINS - 1)


def carries(ios: int, percent: float) -> bool:
    """Whether a percentile of so many I/Os means anything: at least one must be slower."""
    return ios > 0 and round((100 - percent) * ios, 6) >= min(100, 50 * ios)


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many I/Os took how long."""

    ios: int
    counts: Ints
    """I/Os in each of the :data:`BINS` bins; zeros where only count, mean and ends are known."""
    sum_ns: float
    """All their latencies together."""
    min_ns: float
    max_ns: float
    told: Mapping[float, float] = field(default_factory=dict)
    """Percentiles (percent: ns) where a document tells them and the bins are not known."""

    @staticmethod
    def of_counts(counts: Ints) -> Histogram:
        """Where the bins are all that is known."""
        used = np.flatnonzero(counts)
        low, high = (VALUES[used[0]], VALUES[used[-1]]) if len(used) else (0, 0)
        return Histogram(int(counts.sum()), counts, float(counts @ VALUES), float(low), float(high))

    @staticmethod
    def of_document(stats: Mapping[str, Any], kind: str) -> Histogram | None:
        """One direction of a job in fio's JSON (``jobs[i]["write"]``); None without I/Os of that
        kind. Plain JSON leaves the bins unknown, and has some percentiles unless they are off."""
        found = stats.get(f"{kind}_ns")
        if not found:
            return None
        bins = found.get("bins") or {}
        counts = np.zeros(BINS, dtype=np.int64)
        if bins:
            np.add.at(counts, bin_index([int(ns) for ns in bins]), [int(n) for n in bins.values()])
        rough = Histogram.of_counts(counts)
        ios = rough.ios or int(found.get("N", stats.get("total_ios", 0)))
        if ios == 0:
            return None
        mean = found.get("mean")
        told = {} if rough.ios else found.get("percentile") or {}
        return Histogram(
            ios,
            counts,
            rough.sum_ns if mean is None else float(mean) * ios,
            float(found.get("min", rough.min_ns)),
            float(found.get("max", rough.max_ns)),
            {float(percent): float(ns) for percent, ns in told.items()},
        )

    @property
    def known(self) -> bool:
        """Whether the bins are."""
        return self.ios > 0 and int(self.counts.sum()) > 0

    @property
    def mean_ns(self) -> float | None:
        """Mean latency; None without I/Os."""
        return self.sum_ns / self.ios if self.ios else None

    def percentile_ns(self, percent: float) -> float | None:
        """The latency that ``percent`` of the I/Os do not exceed; None where there are too few I/Os
        for that: below 1,000, none is the slowest in a thousand."""
        counted = int(self.counts.sum()) or (self.ios if self.told else 0)
        return self.rank_ns(percent) if carries(counted, percent) else None

    def summary(self, kind: str) -> dict[str, float | None]:
        """Mean, percentiles and maximum by the names that they have in documents:
        ``clat_p999_ns``."""
        told = {name: self.percentile_ns(percent) for name, percent in PERCENTILES.items()}
        values = {"mean": self.mean_ns, **told, "max": self.max_ns}
        return {f"{kind}_{name}_ns": value for name, value in values.items()}

    def percentile_us(self, percent: float) -> float | None:
        """The same in microseconds."""
        return us(self.percentile_ns(percent))

    def rank_ns(self, percent: float) -> float | None:
        """The same however few they are, as fio gives it: the value of the first bin at which the
        running count reaches the share, though never beyond the smallest and the largest latency:
        the middle of a bin may be, by 1/128."""
        if self.known:
            running = np.cumsum(self.counts)
            # percent * ios first: 99.9 / 100 * 1000 is a little more than 999.
            reached = running >= round(percent * int(running[-1]) / 100, 6)
            value = float(VALUES[int(np.argmax(reached))])
        elif (told := self.told.get(percent)) is not None:
            value = told
        else:
            return None
        return max(self.min_ns, min(value, self.max_ns or value))

    def slower(self) -> tuple[Floats, Floats]:
        """Latencies in ns, ascending, and the share of I/Os slower than each (CCDF), from all of
        them at the quickest on; the slowest has the share 1/n, not zero, so that it can be drawn on
        a log axis."""
        used = np.flatnonzero(self.counts)
        if not len(used):
            return np.zeros(0), np.zeros(0)
        ios = int(self.counts.sum())
        share = 1 - np.cumsum(self.counts[used]) / ios
        share[-1] = 1 / ios
        value = VALUES[used].astype(np.float64)
        value[-1] = max(value[-1], self.max_ns)
        begin = min(self.min_ns or value[0], value[0])
        return np.append(begin, value), np.append(1.0, np.maximum(share, 1 / ios))


NOTHING = Histogram(0, np.zeros(BINS, dtype=np.int64), 0.0, 0.0, 0.0)
"""No I/O."""


def us(ns: float | None) -> float | None:
    """Nanoseconds as microseconds."""
    return None if ns is None else ns / 1e3


def ms(ns: float | None) -> float | None:
    """Nanoseconds as milliseconds."""
    return None if ns is None else ns / 1e6


def merge(parts: Iterable[Histogram | None]) -> Histogram | None:
    """All parts together; None if there are none with I/Os."""
    known = [part for part in parts if part is not None and part.ios]
    if known and not all(histogram.known for histogram in known):
        known = [
            replace(histogram, counts=NOTHING.counts) for histogram in known
        ]  # part of them says nothing
    if len(known) < 2:
        return known[0] if known else None
    return Histogram(
        sum(histogram.ios for histogram in known),
        np.sum([histogram.counts for histogram in known], axis=0),
        sum(histogram.sum_ns for histogram in known),
        min(histogram.min_ns for histogram in known),
        max(histogram.max_ns for histogram in known),
    )
