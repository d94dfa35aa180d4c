"""Differences between runs: how large, how sure, and whether they are more than noise.

Differences are relative and reckoned with logarithms: twice and half are as far from equal. Of
single runs the noise is that of their seconds (:mod:`ssdlab.analysis.noise`); it knows nothing of
how one run differs from the next. Of repeats it is the spread between them (Welch's test).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from ssdlab.analysis import comparison, noise
from ssdlab.analysis.measurement import Direction
from ssdlab.analysis.stats import Estimate, around, holm, mean_of, welch
from ssdlab.answer import Better
from ssdlab.histogram import NOTHING, us
from ssdlab.results import DIRECTIONS, SYNC, Result

BIN_ERROR = 1 / 64 / math.sqrt(12)
"""Standard error of a percentile from fio's bins, which are 1/64 of their value wide."""
NONE_SEEN = "no significant difference"
UNMEASURED = "by ±100 % and more"
"""How well a number is known whose interval is as wide as itself, either way."""
SURE = 0.05
"""Chance of seeing a difference where there is none."""


@dataclass(frozen=True)
class NoisyValue:
    """A quantity of one run."""

    value: float | None
    error: float | None = None
    """Relative standard error from within the run; None where the run does not tell."""
    df: float = 1.0


@dataclass(frozen=True)
class ComparedQuantity:
    """One quantity on all sides of a comparison."""

    section: str
    """What it belongs to: ``random, write``; empty for the numbers of a protocol."""
    name: str
    unit: str
    better: Better
    sides: tuple[tuple[NoisyValue, ...], ...]
    """By side, and within a side by repeat."""
    resolution: float = 0.0
    """Relative standard error of every value from how coarsely it is told."""


@dataclass(frozen=True)
class Difference:
    """By how much a side differs from the first, as a share of it (0.1 is 10 % more)."""

    share: float
    low: float | None = None
    """Ends of the 95 % interval; None where nothing tells how sure it is."""
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    """Corrected for the number of quantities compared (Holm)."""

    @property
    def seen(self) -> bool:
        """Whether there is a difference that neither noise nor the number of tests explains."""
        return self.p_holm is not None and self.p_holm < SURE

    @property
    def perhaps(self) -> bool:
        """Whether it would be a difference if it were the only number compared."""
        return not self.seen and self.p is not None and self.p < SURE

    @property
    def told(self) -> str:
        """In percent with its interval, and whether it is one."""
        if self.low is None or self.high is None:
            return f"{100 * self.share:+.1f} %"
        span = f"{100 * self.low:+.1f} to {100 * self.high:+.1f}"
        return f"{100 * self.share:+.1f} % ({span}{'' if self.seen else f', {NONE_SEEN}'})"

    def verdict(self, better: Better) -> str:
        """In words, of a number of which so much is ``better``."""
        word = "higher" if self.share > 0 else "lower"
        if better:
            word = "better" if word == better else "worse"
        if self.seen:
            return word
        return f"perhaps {word}" if self.perhaps else NONE_SEEN


@dataclass(frozen=True)
class DifferenceRow:
    """A quantity with its values and differences."""

    quantity: ComparedQuantity
    values: tuple[float | None, ...]
    """By side: the mean of its repeats."""
    intervals: tuple[tuple[float, float] | None, ...]
    """95 % intervals of the values."""
    differences: tuple[Difference | None, ...]
    """Of every side but the first."""

    def half(self, side: int) -> float:
        """Half the length of the interval of a value; 0 where none is known."""
        low, high = self.intervals[side] or (0.0, 0.0)
        return (high - low) / 2

    def unmeasured(self, side: int) -> bool:
        """Whether that is as much as the value itself: then it measures nothing."""
        return self.half(side) > 0 and self.half(side) >= abs(self.values[side] or 0.0)


def quantities(sides: Sequence[Sequence[Result]]) -> list[ComparedQuantity]:
    """What ordinary runs are compared by: for each job (aligned as in a report, by name or else by
    what it does) and direction the numbers of its measurement window. A side is one run, or repeats
    of the same."""
    flat = [(place, result) for place, side in enumerate(sides) for result in side]
    compared_quantities: list[ComparedQuantity] = []
    for group in comparison.align([result.document for _, result in flat]):
        # Their patterns' own before reads that only verify.
        verifies = [ddir for ddir in DIRECTIONS if not any(m.does(ddir) for m in group.members)]
        for ddir in (*(ddir for ddir in DIRECTIONS if ddir not in verifies), *verifies, SYNC):
            measured = [
                (
                    flat[member.run][0],
                    _measured(flat[member.run][1].measurement.of(member.name, ddir)),
                )
                for member in group.members
            ]
            for name, (unit, better) in QUANTITIES.items():
                own = tuple(
                    tuple(v[name] for at, v in measured if at == place and name in v)
                    for place in range(len(sides))
                )
                if any(value.value is not None for side in own for value in side):
                    coarse = BIN_ERROR if name in PERCENTILES else 0.0
                    compared_quantities.append(
                        ComparedQuantity(f"{group.name}, {ddir}", name, unit, better, own, coarse)
                    )
    return compared_quantities


THROUGHPUT = "throughput"

QUANTITIES: dict[str, tuple[str, Better]] = {
    "IOPS": ("IOPS", "higher"),
    THROUGHPUT: ("MB/s", "higher"),
    "mean latency": ("us", "lower"),
    "p50 latency": ("us", "lower"),
    "p99 latency": ("us", "lower"),
    "p99.9 latency": ("us", "lower"),
    "max latency": ("us", "lower"),
    "write amplification": ("", "lower"),
}
"""What jobs are compared by: unit, and which way is good. Latencies are completion latencies, those
of flushes their whole time."""
PERCENTILES = {"p50 latency": 50.0, "p99 latency": 99.0, "p99.9 latency": 99.9}
"""Those that come from fio's bins."""
LOG_MAX = 700.0
"""Of a factor that is a number."""


def _measured(direction: Direction | None) -> dict[str, NoisyValue]:
    if direction is None:
        return {}
    inside = direction.inside
    start = direction.bins.height - inside.height
    ios = direction.bins["ios"].cast(pl.Float64).to_numpy()
    # Of one kind, or runs of which one tells the other's alone would be compared in it.
    latency = direction.latencies.get("lat" if direction.ddir == SYNC else "clat", NOTHING)
    parts: dict[str, tuple[float | None, noise.Sampled | None]] = {
        "IOPS": (direction.iops, _resampled(direction.bins, start, "iops")),
        THROUGHPUT: (
            None if direction.bw_bytes is None else direction.bw_bytes / 1e6,
            _resampled(direction.bins, start, "bw_bytes"),
        ),
        "mean latency": (
            us(latency.mean_ns),
            _resampled(direction.bins, start, "lat_mean_ns", ios),
        ),
        "max latency": (us(latency.max_ns) if latency.ios else None, None),
        "write amplification": (direction.waf, None),
    }
    segments = direction.segment_counts() if latency.known else None
    for name, percent in PERCENTILES.items():
        value = latency.percentile_us(percent)
        drawn = noise.percentile(*segments, percent) if value is not None and segments else None
        parts[name] = (value, drawn)
    return {name: _with_noise(value, own) for name, (value, own) in parts.items()}


def _with_noise(value: float | None, own: noise.Sampled | None) -> NoisyValue:
    if value is None or own is None or not own.value > 0:
        return NoisyValue(value)
    return NoisyValue(value, own.error / own.value, own.df)


def _resampled(
    bins: pl.DataFrame, start: int, column: str, weights: npt.NDArray[np.float64] | None = None
) -> noise.Sampled | None:
    if bins.is_empty():
        return None
    return noise.of_window(bins[column].cast(pl.Float64).to_numpy(), start, weights)


def compare(compared_quantities: Sequence[ComparedQuantity]) -> list[DifferenceRow]:
    """The rows of a comparison; the chances corrected over all quantities of a side."""
    rows = [_row(quantity) for quantity in compared_quantities]
    sides = [corrected(side) for side in zip(*(row.differences for row in rows), strict=True)]
    own = zip(*sides, strict=True) if sides else [()] * len(rows)
    return [replace(row, differences=one) for row, one in zip(rows, own, strict=True)]


def corrected(differences: Sequence[Difference | None]) -> list[Difference | None]:
    """Differences with their chances corrected for that there are several (Holm)."""
    chances = iter(
        holm(
            [
                difference.p
                for difference in differences
                if difference is not None and difference.p is not None
            ]
        )
    )
    return [
        difference
        if difference is None or difference.p is None
        else replace(difference, p_holm=next(chances))
        for difference in differences
    ]


def rivals(
    chosen: Sequence[float], others: Sequence[Sequence[float]], resolution: float = 0.0
) -> list[Difference | None]:
    """By how much each of the others differs from what was chosen, by repeats of both; the chances
    corrected over all of them. ``resolution`` is as in :class:`ComparedQuantity`."""
    sides = tuple(tuple(map(NoisyValue, side)) for side in (chosen, *others))
    return corrected(_row(ComparedQuantity("", "", "", "", sides, resolution)).differences)


def _row(quantity: ComparedQuantity) -> DifferenceRow:
    known = [[m for m in side if m.value is not None] for side in quantity.sides]
    return DifferenceRow(
        quantity,
        tuple(mean_of(_values(side)) if side else None for side in known),
        tuple(_interval(side) for side in known),
        tuple(_difference(known[0], side, quantity.resolution) for side in known[1:]),
    )


def _values(side: Sequence[NoisyValue]) -> list[float]:
    return [float(value.value) for value in side if value.value is not None]


def _interval(side: Sequence[NoisyValue]) -> tuple[float, float] | None:
    """Of a single run from its seconds, of repeats from their spread. The former as factors, as its
    differences are."""
    if not side:
        return None
    values = _values(side)
    if len(values) > 1:
        one = welch([0.0, 0.0], values) if len(set(values)) > 1 else None
        return (one.low, one.high) if one else (values[0], values[0])
    error = side[0].error
    if error is None:
        return None
    factor = around(0.0, error, side[0].df)
    return values[0] * math.exp(factor.low), values[0] * math.exp(min(factor.high, LOG_MAX))


def _difference(
    first: Sequence[NoisyValue], side: Sequence[NoisyValue], resolution: float
) -> Difference | None:
    if not first or not side:
        return None
    a, b = _values(first), _values(side)
    if min(a) <= 0 or min(b) <= 0:
        return _absolute(a, b)
    if len(a) > 1 or len(b) > 1:
        estimate = welch([math.log(v) for v in a], [math.log(v) for v in b], resolution)
    else:
        estimate = _of_single(first[0], side[0], resolution)
    if estimate is None:
        return Difference(b[0] / a[0] - 1)
    return relative(estimate)


def relative(of_logarithms: Estimate) -> Difference:
    """A difference of logarithms as a share."""
    share, low, high = (
        math.expm1(min(v, LOG_MAX))
        for v in (of_logarithms.value, of_logarithms.low, of_logarithms.high)
    )
    return Difference(share, low, high, of_logarithms.p, of_logarithms.p)


def _of_single(a: NoisyValue, b: NoisyValue, resolution: float) -> Estimate | None:
    """Two single runs, each with the noise of its own seconds."""
    if a.value is None or b.value is None or a.error is None or b.error is None:
        return None
    value = math.log(b.value / a.value)
    coarse = 2 * resolution * resolution
    both = a.error**2 + b.error**2
    if both == 0:
        return around(value, math.sqrt(coarse), a.df + b.df)
    df = both**2 / (a.error**4 / a.df + b.error**4 / b.df)
    return around(value, math.sqrt(both + coarse), df)


def _absolute(a: Sequence[float], b: Sequence[float]) -> Difference | None:
    """Where a value is zero or less, the difference as a share of the first side's mean."""
    base = abs(mean_of(a))
    if base == 0:
        return Difference(0.0) if mean_of(b) == 0 else None
    estimate = welch(a, b)
    if estimate is None:
        return Difference((mean_of(b) - mean_of(a)) / base)
    share, low, high = (v / base for v in (estimate.value, estimate.low, estimate.high))
    return Difference(share, low, high, estimate.p, estimate.p)
