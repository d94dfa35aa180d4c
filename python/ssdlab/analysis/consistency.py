"""Consistency: how evenly a drive works from one second to the next, and whether it dips."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssdlab.numeric import Floats

PEAK_MIN = 0.3
"""An autocorrelation peak below this is not called a period."""
PEAK_NOISE_SIGMAS = 4.0
"""...nor one within this many standard errors (1/sqrt(n)) of zero."""
PERIODS_MIN = 3
"""A period must be seen at least this often in the series."""


@dataclass(frozen=True)
class Periodicity:
    """A repeating pattern of the series, in samples (seconds for one-second bins)."""

    period: float
    width: float
    """Width of what repeats, at most half a period: of the dips, or of the peaks if those are
    the shorter ones."""
    dips: bool
    """Whether the short part of the period is the low one."""


@dataclass(frozen=True)
class Consistency:
    """Numbers of a series of bins, in the series' unit (IOPS)."""

    mean: float
    min: float
    max: float
    stddev: float
    p1: float
    p99: float
    share_below_half: float
    """Share of the time below half of the mean."""
    periodicity: Periodicity | None

    @property
    def cv(self) -> float:
        """Coefficient of variation: standard deviation / mean."""
        return self.stddev / self.mean if self.mean > 0 else float("inf")

    @property
    def spread(self) -> float:
        """(max - min) / max."""
        return (self.max - self.min) / self.max if self.max > 0 else 0.0


def measure(values: npt.ArrayLike, lengths: Floats | None = None) -> Consistency:
    """Measures a series of bins, of which each counts by its length: a job begins and ends within a
    second. Without lengths all count alike. Raises ValueError if it is empty."""
    y = np.asarray(values, dtype=np.float64)
    if len(y) == 0:
        raise ValueError("no bins to measure: the series is empty")
    mean = float(np.average(y, weights=lengths))
    return Consistency(
        mean=mean,
        min=float(y.min()),
        max=float(y.max()),
        stddev=float(np.average((y - mean) ** 2, weights=lengths)) ** 0.5,
        p1=float(np.percentile(y, 1)),
        p99=float(np.percentile(y, 99)),
        share_below_half=float(np.average(1.0 * (y < mean / 2), weights=lengths)),
        periodicity=periodicity(y),
    )


def autocorrelation(values: npt.ArrayLike) -> Floats:
    """Autocorrelation at lags 0, 1, ... n/`PERIODS_MIN`, each lag divided by its own number of
    pairs; zeros if the series is constant."""
    y = np.asarray(values, dtype=np.float64)
    n = len(y)
    lags = n // PERIODS_MIN + 1
    centred = y - y.mean()
    variance = float((centred * centred).mean())
    if variance <= (1e-9 * abs(float(y.mean()))) ** 2:
        return np.zeros(lags)
    spectrum = np.fft.rfft(centred, 2 * n)
    products: Floats = np.fft.irfft(spectrum * np.conj(spectrum), 2 * n)[:lags]
    return products / (n - np.arange(lags)) / variance


def periodicity(values: npt.ArrayLike) -> Periodicity | None:
    """Finds the period of a series and the width of its dips; None if nothing repeats clearly.

    The autocorrelation of dips of width w is a triangle around the period; its width at half
    height is w. Noise from sample to sample adds to lag 0 alone and so does not matter.
    """
    y = np.asarray(values, dtype=np.float64)
    if len(y) < 4 * PERIODS_MIN:
        return None
    r = autocorrelation(y)
    peak = _first_peak(r, len(y))
    if peak is None:
        return None
    floor = float(r[: peak + 1].min())
    half = (r[peak] + floor) / 2
    left = peak - _steps_to(r[peak::-1], half)
    right = peak + _steps_to(r[peak:], half)
    if right > len(r) - 1:
        right = 2 * peak - left
    width = min(float(right - left), peak / 2)
    return Periodicity(
        period=float(peak),
        width=width,
        dips=bool(np.median(y) >= y.mean()),
    )


def _first_peak(r: Floats, n: int) -> int | None:
    """The first of the (nearly) highest local maxima after the autocorrelation first fell below
    zero: multiples of a period are as high as the period itself."""
    below = np.flatnonzero(r < 0)
    if len(below) == 0:
        return None
    inner = np.arange(max(int(below[0]), 1), len(r) - 1)
    tops = inner[(r[inner] >= r[inner - 1]) & (r[inner] > r[inner + 1])]
    threshold = max(PEAK_MIN, PEAK_NOISE_SIGMAS / np.sqrt(n))
    tops = tops[r[tops] >= threshold]
    if len(tops) == 0:
        return None
    return int(tops[r[tops] >= 0.9 * r[tops].max()][0])


def _steps_to(values: Floats, level: float) -> float:
    """Distance from the first value to where the line through the values first reaches `level`;
    the number of values if it never does."""
    under = np.flatnonzero(values <= level)
    if len(under) == 0:
        return float(len(values))
    i = int(under[0])
    return float(i - 1 + (values[i - 1] - level) / (values[i - 1] - values[i]))
