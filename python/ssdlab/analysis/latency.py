"""Latency distributions from fio's JSON+ bins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

GROUP_BITS = 6
"""fio's FIO_IO_U_PLAT_BITS: 64 bins per power of two."""
BINS = 29 * 64
"""Number of bins; the last one takes everything above 17 s."""


def bin_index(ns: int) -> int:
    """The bin that fio counts a latency of `ns` in."""
    msb = max(int(ns).bit_length() - 1, 0)
    if msb <= GROUP_BITS:
        return int(ns)
    shift = msb - GROUP_BITS
    return min(((shift + 1) << GROUP_BITS) + ((int(ns) >> shift) & 63), BINS - 1)


def bin_value(index: int) -> int:
    """The latency in ns that fio writes for a bin: its middle, at most 1/128 off."""
    if index < 2 << GROUP_BITS:
        return index
    shift = (index >> GROUP_BITS) - 1
    return int((1 << (shift + GROUP_BITS)) + ((index & 63) + 0.5) * (1 << shift))


@dataclass(frozen=True)
class Distribution:
    """How many I/Os took how long: ascending bin values in ns and their counts."""

    value_ns: Ints
    count: Ints
    min_ns: float
    mean_ns: float
    max_ns: float

    @property
    def ios(self) -> int:
        """Number of I/Os."""
        return int(self.count.sum())

    def percentile(self, percent: float) -> float:
        """Latency in ns that `percent` of the I/Os do not exceed, as fio gives it: the value of the
        first bin at which the running count reaches the share, though never above the maximum;
        NaN if there are no I/Os."""
        ios = self.ios
        if ios == 0:
            return float("nan")
        # percent * ios first: 99.9 / 100 * 1000 is a little more than 999.
        reached = np.cumsum(self.count) >= round(percent * ios / 100, 6)
        return float(min(self.value_ns[int(np.argmax(reached))], self.max_ns))

    def cdf(self) -> tuple[Floats, Floats]:
        """Latency in ns and the share of I/Os that took longer. The last point stands for the
        slowest I/O and has the share 1/n, not zero, so that it can be drawn on a log axis."""
        ios = self.ios
        if ios == 0:
            return np.zeros(0), np.zeros(0)
        longer = 1 - np.cumsum(self.count) / ios
        longer[-1] = 1 / ios
        value = self.value_ns.astype(np.float64)
        value[-1] = max(value[-1], self.max_ns)
        return value, np.maximum(longer, 1 / ios)


def distribution(direction: Mapping[str, Any]) -> Distribution | None:
    """The distribution of one direction of a fio JSON+ job (`jobs[i]["write"]`).

    Taken from `lat_ns` or `clat_ns`, whichever carries bins (fio's lat_percentiles decides).
    None if neither does: plain JSON, or no I/O.
    """
    for key in ("lat_ns", "clat_ns"):
        part = direction.get(key) or {}
        bins = part.get("bins")
        if bins:
            pairs = sorted((int(ns), int(count)) for ns, count in bins.items())
            return Distribution(
                value_ns=np.array([ns for ns, _ in pairs], dtype=np.int64),
                count=np.array([count for _, count in pairs], dtype=np.int64),
                min_ns=float(part.get("min", pairs[0][0])),
                mean_ns=float(part.get("mean", _mean(pairs))),
                max_ns=float(part.get("max", pairs[-1][0])),
            )
    return None


def merge(parts: Iterable[Distribution]) -> Distribution | None:
    """All parts together (several jobs of one name); None if there are none."""
    known = [part for part in parts if part.ios]
    if len(known) < 2:
        return known[0] if known else None
    values, place = np.unique(
        np.concatenate([part.value_ns for part in known]), return_inverse=True
    )
    counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(counts, place, np.concatenate([part.count for part in known]))
    ios = sum(part.ios for part in known)
    return Distribution(
        value_ns=values,
        count=counts,
        min_ns=min(part.min_ns for part in known),
        mean_ns=sum(part.mean_ns * part.ios for part in known) / ios,
        max_ns=max(part.max_ns for part in known),
    )


def _mean(pairs: list[tuple[int, int]]) -> float:
    return sum(ns * count for ns, count in pairs) / sum(count for _, count in pairs)
