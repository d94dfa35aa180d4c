"""How sure a mean or percentile of a series is: neighbouring seconds are alike, so they are drawn
in blocks.

The circular block bootstrap (Politis and Romano 1992) draws blocks of neighbours with replacement;
their length is chosen from the autocorrelation (Politis and White 2004, corrected by Patton,
Politis and White 2009). A dip that repeats is kept whole: no block is shorter than its period.
What wanders for longer than blocks of a short series can hold shows in the means of batches, of
which each is like the next (Law and Carson 1979); the wider of both intervals counts.
A window that begins where a series is flat enough is flatter than the series: what lies before it
and is no more apart from it than a steady state may be counts for its noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ssdlab.analysis import consistency
from ssdlab.analysis.stats import CONFIDENCE, Estimate, around, t_quantile
from ssdlab.analysis.steady import EXCURSION_MAX
from ssdlab.numeric import Floats

DRAWS = 2000
"""Resamples of a bootstrap."""
SAMPLES_MIN = 10
"""Fewest samples from which an interval is given."""
SHORTEST = 0.5
"""No block is shorter than n to this power: in a short series correlation hides in the noise."""
BLOCKS_MIN = 3
"""A series shorter than so many blocks says next to nothing about its mean."""
BATCHES_MIN = 20
"""Batches whose means are held against each other, at least; up to twice as many."""
LEAD = 5
"""Samples before a window that are held against it together."""
BIN = 64
"""fio's bins are so many to a power of two: a percentile is no surer than one of them."""


@dataclass(frozen=True)
class Sampled:
    """A number of a series, and how sure it is."""

    value: float
    error: float
    """Standard error, in the unit of the value; of percentiles the value times that of its
    logarithm."""
    df: float
    """Degrees of freedom of that error: the blocks that are strangers, less one."""
    block: int
    """Samples in a block."""


def block_length(values: npt.ArrayLike) -> int:
    """Samples in a block of a series; 1 where neighbours are strangers."""
    y = np.asarray(values, dtype=np.float64)
    n = len(y)
    centred = y - y.mean()
    variance = float(centred @ centred) / n
    if n < SAMPLES_MIN or variance <= (1e-9 * abs(float(y.mean()))) ** 2:
        return 1
    most = min(n - 1, math.ceil(math.sqrt(n)) + 2 * max(5, math.ceil(math.sqrt(math.log10(n)))))
    covariance = np.array([float(centred[: n - k] @ centred[k:]) / n for k in range(most + 1)])
    lag = 2 * _last_lag(covariance / variance, n)
    if lag == 0:
        return 1
    lag = min(lag, most)
    k = np.arange(1, lag + 1)
    weight = np.where(k <= lag / 2, 1.0, 2.0 * (1.0 - k / lag))
    slope = 2.0 * float(np.sum(weight * k * covariance[1 : lag + 1]))
    level = float(covariance[0] + 2.0 * np.sum(weight * covariance[1 : lag + 1]))
    longest = math.ceil(min(3 * math.sqrt(n), n / BLOCKS_MIN))
    if level <= 0:
        return 1
    best = float((1.5 * n) ** (1 / 3) * (slope * slope / (level * level)) ** (1 / 3))
    return max(1, min(longest, math.ceil(best)))


def _last_lag(correlation: Floats, n: int) -> int:
    """The lag after which the correlations of several lags in a row are no more than chance."""
    run = max(5, math.ceil(math.sqrt(math.log10(n))))
    bound = 2 * math.sqrt(math.log10(n) / n)
    large = np.flatnonzero(np.abs(correlation[1:]) >= bound) + 1
    for lag in range(len(correlation) - run):
        if not ((large > lag) & (large <= lag + run)).any():
            return lag
    return int(large[-1]) if len(large) else 0


def resample(
    values: npt.ArrayLike, weights: npt.ArrayLike | None = None, seed: int = 1
) -> Sampled | None:
    """Draws means of a series anew, weighted (mean latency: by I/Os) or plain; the same series
    gives the same draws. None where it is too short, or shorter than three of its own blocks."""
    y = np.asarray(values, dtype=np.float64)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    known = np.isfinite(y) & (w > 0)
    y, w = y[known], w[known]
    n = len(y)
    if n < SAMPLES_MIN:
        return None
    block = max(block_length(y), math.ceil(n**SHORTEST))
    cycle = consistency.periodicity(y)
    if cycle is not None:
        block = max(block, round(cycle.period))
    if n < BLOCKS_MIN * block:
        return None
    source = np.random.Generator(np.random.PCG64(seed))
    starts = source.integers(0, n, size=(DRAWS, math.ceil(n / block)))
    top, bottom = _block_sums(y * w, block)[starts], _block_sums(w, block)[starts]
    draws = top.sum(axis=1) / bottom.sum(axis=1)
    # The draws' own spread is too small where blocks are few.
    df = max(1.0, n / block - 1)
    sure = [(float(draws.std()) * math.sqrt(n / block / df), df)]
    value = float((y * w).sum() / w.sum())
    batch = n // BATCHES_MIN or 1
    if cycle is None or batch >= cycle.period:  # dips kept whole are no memory
        sure.append(_of_batches((y - value) * w / w.mean(), batch))
    error, df = max(sure, key=lambda one: one[0] * t_quantile(0.5 + CONFIDENCE / 2, one[1]))
    return Sampled(value, error, df, block)


def _of_batches(centred: Floats, batch: int) -> tuple[float, float]:
    """Standard error of the mean and its degrees of freedom, if the means of batches are an AR(1)
    process: there are as many strangers among them as have a mean that varies as much."""
    n = len(centred) // batch
    means = centred[: n * batch].reshape(n, batch).mean(axis=1)
    means = means - means.mean()
    squares = float(means @ means)
    if squares <= 0:
        return 0.0, 1.0
    # A short series hides what its values share (Kendall 1954: by (1 + 4r) / n).
    alike = (float(means[1:] @ means[:-1]) / squares + 1 / n) / (1 - 4 / n)
    alike = min(max(alike, 0.0), 1 - 1 / n)
    each = (1 + alike) / (1 - alike) - 2 * alike * (1 - alike**n) / (n * (1 - alike) ** 2)
    # The spread around the sample's own mean is short of what that mean varies.
    return math.sqrt(squares / n * each / (n - each)), max(BLOCKS_MIN - 1.0, n / each - 1)


def of_window(
    values: npt.ArrayLike, start: int, weights: npt.ArrayLike | None = None
) -> Sampled | None:
    """:func:`resample` of a series from a sample on that was chosen since it is steady from there;
    the noise is that of what stands before it too, without its trend, as far as that is as near to
    the window's mean as a steady state (PTS) is."""
    y = np.asarray(values, dtype=np.float64)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    window, first = resample(y[start:], w[start:]), start
    if window is None:
        return None
    while first > 0:
        lead = max(0, first - LEAD)
        if not abs(y[lead:first].mean() - window.value) <= EXCURSION_MAX * window.value:
            break
        first = lead
    longer = None if first == start else resample(_level(y[first:]), w[first:])
    if longer is None:
        return window
    error = longer.error * math.sqrt((len(y) - first) / (len(y) - start))
    own = replace(window, error=error, df=longer.df)
    return max(window, own, key=lambda one: one.error * t_quantile(0.5 + CONFIDENCE / 2, one.df))


def _level(y: Floats) -> Floats:
    """The series without the line through it."""
    x = np.arange(len(y)) - (len(y) - 1) / 2
    level: Floats = y - x * (float(x @ y) / max(1.0, float(x @ x)))
    return level


def trend(values: npt.ArrayLike) -> Estimate | None:
    """By how much the line through a series rises from its begin to its end, as a share of the
    mean; None as in :func:`resample`."""
    y = np.asarray(values, dtype=np.float64)
    x = np.arange(len(y)) - (len(y) - 1) / 2
    mean = float(y.mean()) if len(y) else 0.0
    slope = float(x @ y) / max(1.0, float(x @ x))
    rest = resample(_level(y))
    if rest is None or mean <= 0:
        return None
    # Of a slope the noise is that of the mean times the root of 12 / n^2, if it is one process.
    return around(slope * len(y) / mean, math.sqrt(12) * rest.error / mean, rest.df)


def percentile(segments: npt.ArrayLike, values: npt.ArrayLike, percent: float) -> Sampled | None:
    """A percentile of the histograms of consecutive segments, a row of counts each; ``values`` are
    what their columns stand for, ascending.

    The noise is that of the share of I/Os above it, drawn in blocks so that stalls of neighbouring
    segments stay together, carried over to the latencies at both ends (Woodruff, JASA 47, 1952).
    None as in :func:`resample`, and of so few I/Os that an end lies beyond the first or the last: a
    thousand do not tell how slow the slowest in a thousand mostly is.
    """
    counts = np.asarray(segments, dtype=np.float64)
    places = np.asarray(values, dtype=np.float64)
    whole, ios = counts.sum(axis=0), counts.sum(axis=1)
    at = _rank(whole, percent)
    shares = np.divide(
        counts[:, at + 1 :].sum(axis=1), ios, out=np.full(len(ios), np.nan), where=ios > 0
    )
    above = resample(shares, ios)
    if above is None:
        return None
    # What the blocks cannot show: each I/O is drawn for itself at least.
    share = 1 - percent / 100
    alone = math.sqrt(share * (1 - share) / ios.sum())
    error = max(above.error, alone)
    # Both ends of the interval: between two modes one may be far and the other at hand.
    sure = t_quantile(0.5 + CONFIDENCE / 2, above.df)
    if sure * alone >= min(share, 1 - share):
        return None
    low, high = (places[_rank(whole, percent + side * 100 * sure * error)] for side in (-1, 1))
    value = float(places[at])
    if value <= 0:
        return None
    # As factors, which is how differences are told: a straight line through a far end of the
    # distribution would lead below nothing. Both ends lie somewhere in their bins.
    far = max(math.log(float(high) / value), math.log(value / max(float(low), 1.0)))
    return Sampled(value, value * (far + 1 / BIN) / sure, above.df, above.block)


def _rank(counts: Floats, percent: float) -> int:
    """The column in which a percentile lies."""
    running = np.cumsum(counts)
    wanted = round(min(100.0, max(0.0, percent)) * float(running[-1]) / 100, 6)
    return int(np.argmax(running >= wanted))


def _block_sums(values: Floats, block: int) -> Floats:
    """The sum of the block that begins at each sample; the end is followed by the beginning."""
    total = np.concatenate(([0.0], np.cumsum(np.concatenate((values, values[:block])))))
    found: Floats = total[block : block + len(values)] - total[: len(values)]
    return found
