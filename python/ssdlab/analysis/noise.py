"""How sure a mean or percentile of a series is: neighbouring seconds are alike, so they are drawn
in blocks.

The circular block bootstrap (Politis and Romano 1992) draws blocks of neighbours with replacement;
their length is chosen from the autocorrelation (Politis and White 2004, corrected by Patton,
Politis and White 2009). A dip that repeats is kept whole: no block is shorter than its period.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssdlab.analysis import consistency
from ssdlab.analysis.stats import CONFIDENCE, t_quantile

Floats = npt.NDArray[np.float64]

DRAWS = 2000
"""Resamples of a bootstrap."""
SAMPLES_MIN = 10
"""Fewest samples from which an interval is given."""
SHORTEST = 0.5
"""No block is shorter than n to this power: in a short series correlation hides in the noise."""
BLOCKS_MIN = 3
"""A series shorter than so many blocks says next to nothing about its mean."""


@dataclass(frozen=True)
class Resampled:
    """Means, or percentiles, of resamples of one series."""

    value: float
    draws: Floats
    block: int
    """Samples in a block."""
    samples: int

    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the value."""
        half = self.error * t_quantile(0.5 + CONFIDENCE / 2, self.df)
        return self.value - half, self.value + half

    @property
    def error(self) -> float:
        """Standard error of the value. The draws' own is too small where blocks are few."""
        blocks = self.samples / self.block
        return float(self.draws.std()) * math.sqrt(blocks / max(1.0, blocks - 1))

    @property
    def df(self) -> float:
        """Degrees of freedom of that error: the blocks, less one."""
        return max(1.0, self.samples / self.block - 1)


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
) -> Resampled | None:
    """Draws means of a series anew, weighted (mean latency: by I/Os) or plain.

    None where the series is too short, or shorter than three of its own blocks. The same series
    gives the same draws.
    """
    y = np.asarray(values, dtype=np.float64)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    known = np.isfinite(y) & (w > 0)
    y, w = y[known], w[known]
    block = _block(y)
    if block is None:
        return None
    starts = _starts(len(y), block, seed)
    top, bottom = _block_sums(y * w, block)[starts], _block_sums(w, block)[starts]
    draws = top.sum(axis=1) / bottom.sum(axis=1)
    return Resampled(float((y * w).sum() / w.sum()), draws, block, len(y))


def resample_percentile(
    segments: npt.ArrayLike, values: npt.ArrayLike, percent: float, seed: int = 1
) -> Resampled | None:
    """Draws a percentile anew from the histograms of consecutive segments, a row of counts each;
    ``values`` are what their columns stand for, ascending.

    The blocks are those of the share of I/Os above the percentile: stalls of neighbouring segments
    are kept together. None as in :func:`resample`.
    """
    counts = np.asarray(segments, dtype=np.float64)
    counts = counts[counts.sum(axis=1) > 0]
    places = np.asarray(values, dtype=np.float64)
    if not len(counts):
        return None
    at = int(_rank(counts.sum(axis=0)[None, :], percent)[0])
    block = _block(counts[:, at + 1 :].sum(axis=1) / counts.sum(axis=1))
    if block is None:
        return None
    n = len(counts)
    starts = _starts(n, block, seed)
    often = np.zeros((DRAWS, n))
    np.add.at(often, (np.arange(DRAWS)[:, None], starts), 1.0)
    draws = places[_rank(often @ _block_sums(counts, block), percent)]
    return Resampled(float(places[at]), draws, block, n)


def _rank(counts: Floats, percent: float) -> npt.NDArray[np.intp]:
    """The column of each row in which its percentile lies."""
    running = np.cumsum(counts, axis=1)
    wanted = np.round(percent * running[:, -1:] / 100, 6)
    found: npt.NDArray[np.intp] = np.argmax(running >= wanted, axis=1)
    return found


def _block(y: Floats) -> int | None:
    """Samples in a block; None where the series has too few for three of them."""
    n = len(y)
    if n < SAMPLES_MIN:
        return None
    block = max(block_length(y), math.ceil(n**SHORTEST))
    cycle = consistency.periodicity(y)
    if cycle is not None:
        block = max(block, round(cycle.period))
    return None if n < BLOCKS_MIN * block else block


def _starts(n: int, block: int, seed: int) -> npt.NDArray[np.int64]:
    """Where the blocks of each draw begin."""
    source = np.random.Generator(np.random.PCG64(seed))
    return source.integers(0, n, size=(DRAWS, math.ceil(n / block)))


def _block_sums(values: Floats, block: int) -> Floats:
    """The sum of the block that begins at each sample; the end is followed by the beginning."""
    wrapped = np.concatenate((values, values[:block]))
    total = np.concatenate((np.zeros((1, *values.shape[1:])), np.cumsum(wrapped, axis=0)))
    found: Floats = total[block : block + len(values)] - total[: len(values)]
    return found
