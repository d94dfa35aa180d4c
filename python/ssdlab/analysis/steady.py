"""Steady state: the SNIA PTS rule, and a practical judgement of a whole series.

PTS (SNIA Solid State Storage Performance Test Specification 2.0.2): over five consecutive rounds
the values span at most 20 % of their mean, and the least-squares line through them rises or falls
by at most 10 % of the mean from the first round to the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ssdlab.numeric import Floats

ROUNDS = 5
"""Rounds in a PTS measurement window."""
EXCURSION_MAX = 0.20
"""Largest (max - min) / mean of a steady window (PTS)."""
SLOPE_EXCURSION_MAX = 0.10
"""Largest rise or fall of the fitted line over the window, as a share of the mean (PTS)."""

SAMPLES_MIN = 20
"""Fewest samples that `judge` gives an opinion on: five rounds of four. Ours."""
WINDOW_SHARE_MIN = 0.25
"""A steady window shorter than this share of the series proves little. Ours."""
HEAD_ROUND_SHARE = 0.25
HEAD_SAMPLES = 10
"""The window's first quarter of a round, and its first ten samples, must agree with the rest, so
that the window does not reach back into the transient before it. Ours."""
CLEAR_SHARE = 0.5
"""A window is looked for first within this share of the PTS limits: the earliest one within the
limits themselves would always be one that only just passes. Ours."""
USUAL = (2.0, 98.0)
"""Percentiles of the window between which a value is nothing unusual. Ours."""
CANDIDATES = 1000
"""Start points tried at most; the start is exact to 1/1000 of the series."""


@dataclass(frozen=True)
class PtsWindow:
    """One measurement window of five rounds. Shares are of the mean."""

    rounds: tuple[float, ...]
    mean: float
    excursion: float
    """max - min, in the rounds' unit."""
    slope: float
    """Least-squares slope per round, in the rounds' unit."""

    @property
    def excursion_share(self) -> float:
        """(max - min) / mean."""
        return self.excursion / self.mean if self.mean > 0 else float("inf")

    @property
    def slope_excursion(self) -> float:
        """Rise or fall of the fitted line from the first round to the last, in the rounds' unit."""
        return abs(self.slope) * (len(self.rounds) - 1)

    @property
    def slope_share(self) -> float:
        """`slope_excursion` / mean."""
        return self.slope_excursion / self.mean if self.mean > 0 else float("inf")

    @property
    def steady(self) -> bool:
        """Whether both limits of the PTS hold."""
        return self.within(1.0)

    def within(self, share: float) -> bool:
        """Whether both values lie within a share of the limits of the PTS."""
        return (
            self.excursion_share <= share * EXCURSION_MAX
            and self.slope_share <= share * SLOPE_EXCURSION_MAX
        )


@dataclass(frozen=True)
class Steadiness:
    """The judgement of a series: steady or not, and from which sample on."""

    verdict: Literal["steady", "drifting", "short"]
    start: int
    """First sample of the window: of the steady one, or else of the last quarter of the series."""
    window: PtsWindow | None
    """The five rounds judged; None if the series is too short."""

    @property
    def steady(self) -> bool:
        """Whether a steady window was found."""
        return self.verdict == "steady"


def pts_window(rounds: Sequence[float]) -> PtsWindow:
    """Measures one window; `rounds` are its five values, oldest first; ValueError if there are not
    exactly five."""
    if len(rounds) != ROUNDS:
        raise ValueError(f"a PTS window has {ROUNDS} rounds, found {len(rounds)}")
    y = np.asarray(rounds, dtype=np.float64)
    x = np.arange(ROUNDS) - (ROUNDS - 1) / 2
    return PtsWindow(
        rounds=tuple(float(v) for v in y),
        mean=float(y.mean()),
        excursion=float(y.max() - y.min()),
        slope=float((x * (y - y.mean())).sum() / (x * x).sum()),
    )


def judge(values: npt.ArrayLike) -> Steadiness:
    """Finds the earliest sample from which the series stays steady until its end.

    `values` are equally spaced (IOPS per second). From a start point on, the rest of the series is
    cut into five equal rounds, whose means must pass the PTS rule: clearly, with half of its
    limits, or if no start does that, with the limits themselves. The mean of the first quarter of
    the first round must lie within the PTS excursion of the window's mean as well, and so must the
    median of the first ten samples, unless such values are usual in the window. Of the first ten,
    those up to the last that is lower or higher than all later ones are left out.
    """
    y = np.asarray(values, dtype=np.float64)
    if len(y) < SAMPLES_MIN:
        return Steadiness("short", 0, None)
    total = np.concatenate(([0.0], np.cumsum(y)))
    shortest = max(SAMPLES_MIN, round(len(y) * WINDOW_SHARE_MIN))
    last_start = len(y) - shortest
    for share in (CLEAR_SHARE, 1.0):
        found = _first_start(y, total, last_start, share)
        if found is not None:
            return Steadiness("steady", found, _window_from(total, found))
    return Steadiness("drifting", last_start, _window_from(total, last_start))


def _first_start(y: Floats, total: Floats, last_start: int, share: float) -> int | None:
    """The first start from which everything holds, within a share of the PTS limits."""
    for start in range(0, last_start + 1, max(1, len(y) // CANDIDATES)):
        window = _window_from(total, start)
        if window.within(share) and _head_agrees(y, total, start, window.mean):
            moved = _past_strangers(y, start)
            if _window_from(total, moved).within(share):
                return moved
    return None


def _window_from(total: Floats, start: int) -> PtsWindow:
    edges = np.linspace(start, len(total) - 1, ROUNDS + 1).round().astype(int)
    return pts_window((np.diff(total[edges]) / np.diff(edges)).tolist())


def _past_strangers(y: Floats, start: int) -> int:
    """The start moved past what is left of the transient: values that never come again."""
    head, rest = y[start : start + HEAD_SAMPLES], y[start + HEAD_SAMPLES :]
    strangers = np.flatnonzero((head < rest.min()) | (head > rest.max()))
    return start + int(strangers[-1]) + 1 if len(strangers) else start


def _head_agrees(y: Floats, total: Floats, start: int, mean: float) -> bool:
    length = max(1, int((len(y) - start) / ROUNDS * HEAD_ROUND_SHARE))
    head = (total[start + length] - total[start]) / length
    if abs(head - mean) > EXCURSION_MAX * mean:
        return False
    first = np.median(y[start : start + HEAD_SAMPLES])
    if abs(first - mean) <= EXCURSION_MAX * mean:
        return True
    low, high = np.percentile(y[start:], USUAL)
    return bool(low <= first <= high)
