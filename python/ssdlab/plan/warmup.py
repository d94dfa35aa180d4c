"""How long a cache takes to warm up: as simulated, and by the published formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ssdlab.numeric import Floats

WARM = 0.9
"""Share of the final speed at which a cache counts as warm."""
WINDOWS = 20
"""Parts of equal numbers of I/Os into which a pass is cut."""
SPAN = 5
"""Parts over which speed is looked at together."""
RISING = 0.95
"""A last pass that takes less than this share of the time of the one before: still rising."""


@dataclass(frozen=True)
class Formula:
    """T = C P / (I S D): seconds until a cache of C bytes is full (Qsan, SSD cache white paper).

    Every disk of D brings in I random reads of S bytes a second and nothing else, each block from
    its P-th use on. A lower bound for filling it all by random reads: what hits fills nothing.
    """

    cache_bytes: int
    threshold: int
    disk_iops: float
    request_bytes: float
    disks: int

    @property
    def seconds(self) -> float:
        """Until the cache is full."""
        filled = self.disk_iops * self.request_bytes * self.disks
        return self.cache_bytes * self.threshold / filled


@dataclass(frozen=True)
class Ramp:
    """I/Os done over the time of one pass."""

    time_s: Floats
    """End of each interval, from the start of the pass."""
    ios: Floats
    """Done in it."""

    @property
    def seconds(self) -> float:
        """Length."""
        return float(self.time_s[-1]) if len(self.time_s) else 0.0

    def times(self, windows: int = WINDOWS) -> Floats:
        """How long each of so many equal parts of the I/Os took."""
        done = np.concatenate([[0.0], np.cumsum(self.ios)])
        at = np.concatenate([[0.0], self.time_s])
        marks = np.linspace(0.0, done[-1], windows + 1)
        found: Floats = np.diff(np.interp(marks, done, at))
        return found


@dataclass(frozen=True)
class WarmUp:
    """When a cache was warm."""

    seconds: float | None = None
    """Until at least 90 % of the final speed, for good; None where it is not known."""
    passes: float | None = None
    """The same in passes of the load."""
    rising: bool = False
    """Whether the speed was still rising at the end, so that the final speed is a lower bound."""


def warm_up(ramps: Sequence[Ramp]) -> WarmUp:
    """When the speed was within 90 % of the final one: each part of a pass by the same part of the
    last, for parts of a load differ in speed by themselves; a single pass by the mean of its last
    quarter."""
    good = [ramp for ramp in ramps if len(ramp.time_s)]
    if not good:
        return WarmUp()
    if len(good) == 1:
        return _single(good[0])
    times = np.stack([ramp.times() for ramp in good])
    final = np.tile(times[-1], len(good))
    taken = times.reshape(-1)
    kernel = np.ones(SPAN)
    slow = np.convolve(final, kernel, "valid") < WARM * np.convolve(taken, kernel, "valid")
    late = np.flatnonzero(slow)
    # Warm from the first part on from which every span is fast.
    first = 0 if not len(late) else int(late[-1]) + 1
    # With two passes the one before the last began empty: that says nothing of a third.
    rising = len(good) > 2 and float(times[-1].sum()) < RISING * float(times[-2].sum())
    return WarmUp(float(taken[:first].sum()), first / WINDOWS, rising)


def warm_up_of_job(
    parts: Sequence[tuple[float, Ramp]], rate: float, length: float, *, rising: bool
) -> WarmUp:
    """When a job that goes on came to 90 % of its final ``rate`` (I/Os a second). ``parts`` are
    what was measured of it, each with the time of its start; ``length`` is that of all of it (s),
    ramp included."""
    for start, ramp in parts:
        times = ramp.times(WINDOWS * 4)
        wanted = float(ramp.ios.sum()) / len(times) / rate / WARM if rate else 0.0
        near = np.convolve(times, np.ones(SPAN) / SPAN, "valid")
        if len(good := np.flatnonzero(near <= wanted)):
            seconds = start + float(times[: int(good[0])].sum())
            return WarmUp(seconds, seconds / length if length else None, rising)
    return WarmUp(rising=rising)


def _single(ramp: Ramp) -> WarmUp:
    times = ramp.times(WINDOWS * 4)
    quarter = len(times) // 4
    final = float(times[-quarter:].mean())
    near = np.convolve(times, np.ones(SPAN) / SPAN, "valid")
    good = np.flatnonzero(near <= final / WARM)
    first = int(good[0]) if len(good) else len(times)
    before = float(times[-2 * quarter : -quarter].mean())
    return WarmUp(float(times[:first].sum()), first / len(times), rising=final < RISING * before)
