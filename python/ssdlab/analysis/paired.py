"""A change tried again and again: A and B in turn, so that what drifts hits both alike.

In the order A B B A a linear drift adds to the difference B - A of one pair what it takes from the
next. It is estimated beside the difference, and so does not count as noise either (Cox, Planning of
Experiments, 1958, on trend-free orders).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ssdlab.analysis.differences import Difference, corrected, relative
from ssdlab.analysis.stats import (
    Estimate,
    around,
    mean_of,
    reach,
    repeats_needed,
    variance_of,
    welch,
    welch_df,
)
from ssdlab.answer import Better

DRIFT_PAIRS = 4
"""From so many pairs on a drift is estimated beside the difference."""
DRIFT_RUNS = 3
"""Fewest runs of A from which a drift of A can be told."""


@dataclass(frozen=True)
class PairedValue:
    """A number of one run of a side; ``place`` is that of the run in the order of time."""

    side: str
    place: int
    value: float | None


@dataclass(frozen=True)
class Effect:
    """What the change did to one number."""

    name: str
    unit: str
    better: Better
    a: tuple[float, ...]
    b: tuple[float, ...]
    difference: Difference | None
    """B vs A, as a share of A; None where too little was measured."""
    drift: Difference | None
    """By how much A changed from the first run to the last."""
    spread: float | None
    """Standard deviation of the logarithms of the ratios of pairs, drift taken out."""
    pairs: int = 0
    """Of how many pairs that is."""
    df: float = 1.0
    """Its degrees of freedom."""
    resolution: float = 0.0
    """The relative standard error of a value from how coarsely it is told."""
    tests: int = 1
    """Numbers that were looked at together, itself included."""

    @property
    def visible(self) -> float | None:
        """The smallest difference (a share) that so many pairs would mostly (80 %) let see, in
        spite of how many numbers were looked at; None where too little was measured."""
        if self.spread is None:
            return None
        error = math.sqrt(self.spread**2 / self.pairs + 2 * self.resolution**2)
        return math.expm1(min(700.0, reach(self.df, self.tests) * error))

    def needed(self, share: float) -> int | None:
        """Pairs that it would take to see a difference of ``share`` with a chance of 80 %."""
        if self.spread is None:
            return None
        if self.spread == 0 and self.resolution == 0:
            return 2
        return repeats_needed(self.spread, math.log1p(share), self.resolution, self.tests)


def order(pairs: int, undoable: bool) -> str:
    """The order of the runs: ``ABBAABBA`` where the change can be undone, else ``AAABBB``."""
    if not undoable:
        return "A" * pairs + "B" * pairs
    return "".join("AB" if i % 2 == 0 else "BA" for i in range(pairs))


def effect(
    name: str,
    unit: str,
    better: Better,
    trials: Sequence[PairedValue],
    *,
    drifts: bool = True,
    resolution: float = 0.0,
) -> Effect:
    """What the change did to a number that was measured in these runs. `drifts` is False where
    nothing can drift, as in simulated time; `resolution` the relative standard error of a value
    from how coarsely it is told."""
    known = [t for t in sorted(trials, key=lambda t: t.place) if t.value is not None]
    a = [float(t.value) for t in known if t.side == "A" and t.value is not None]
    b = [float(t.value) for t in known if t.side == "B" and t.value is not None]
    logs = [
        (t.side, t.place, math.log(t.value)) for t in known if t.value is not None and t.value > 0
    ]
    spread: float | None = None
    estimate: Estimate | None = None
    count, df = 0, 1.0
    if len(logs) == len(known) and a and b:
        pairs = _pairs(logs)
        if _in_turn(logs) and len(pairs) >= 2:
            estimate, spread, df = _of_pairs(pairs, drifts, resolution)
            count = len(pairs)
        elif not _in_turn(logs) and min(len(a), len(b)) >= 2:
            first, second = ([v for s, _, v in logs if s == side] for side in "AB")
            estimate = welch(first, second, resolution)
            spread = math.sqrt(variance_of(first) + variance_of(second))
            count, df = min(len(a), len(b)), welch_df(first, second)
    return Effect(
        name,
        unit,
        better,
        tuple(a),
        tuple(b),
        None if estimate is None else relative(estimate),
        _drift([(place, v) for side, place, v in logs if side == "A"], len(known), resolution)
        if drifts
        else None,
        spread,
        count,
        df,
        resolution,
    )


def together(effects: Sequence[Effect]) -> list[Effect]:
    """The effects with their chances corrected for that there are several."""
    fixed = corrected([one.difference for one in effects])
    tests = max(1, sum(d is not None and d.p is not None for d in fixed))
    return [replace(one, difference=d, tests=tests) for one, d in zip(effects, fixed, strict=True)]


def _in_turn(logs: Sequence[tuple[str, int, float]]) -> bool:
    """Whether A and B took turns, so that neighbours make pairs."""
    sides = "".join(side for side, _, _ in logs)
    return all(set(sides[i : i + 2]) == {"A", "B"} for i in range(0, len(sides) - 1, 2))


def _pairs(logs: Sequence[tuple[str, int, float]]) -> list[tuple[float, int]]:
    """(B - A, +1 if A came first) of neighbours."""
    found = []
    for first, second in zip(logs[::2], logs[1::2], strict=False):
        if {first[0], second[0]} == {"A", "B"}:
            turn = 1 if first[0] == "A" else -1
            found.append((turn * (second[2] - first[2]), turn))
    return found


def _of_pairs(
    pairs: Sequence[tuple[float, int]], drifts: bool, resolution: float
) -> tuple[Estimate, float, float]:
    """The mean difference, the spread of pairs and its degrees of freedom; where there are enough
    pairs in both orders, the line d = difference + turn * drift is fitted."""
    d = [value for value, _ in pairs]
    turns = [turn for _, turn in pairs]
    n = len(d)
    coarse = 2 * resolution * resolution
    if not drifts or n < DRIFT_PAIRS or len(set(turns)) == 1:
        spread = math.sqrt(variance_of(d))
        error = math.sqrt(spread * spread / n + coarse)
        return around(mean_of(d), error, n - 1), spread, n - 1.0
    tilt = mean_of([float(t) for t in turns])
    across = sum((t - tilt) ** 2 for t in turns)
    slope = sum((t - tilt) * v for v, t in pairs) / across
    base = mean_of(d) - slope * tilt
    rest = math.fsum((v - base - slope * t) ** 2 for v, t in pairs) / (n - 2)
    error = math.sqrt(rest * (1 / n + tilt * tilt / across) + coarse)
    return around(base, error, n - 2), math.sqrt(rest), n - 2.0


def _drift(points: Sequence[tuple[int, float]], runs: int, resolution: float) -> Difference | None:
    """By how much the line through A's logarithms moves from the first run to the last."""
    n = len(points)
    if n < DRIFT_RUNS or runs < 2:
        return None
    middle = mean_of([float(place) for place, _ in points])
    level = mean_of([value for _, value in points])
    across = sum((place - middle) ** 2 for place, _ in points)
    slope = sum((place - middle) * (value - level) for place, value in points) / across
    rest = math.fsum((v - level - slope * (p - middle)) ** 2 for p, v in points) / (n - 2)
    error = math.sqrt(rest / across * (runs - 1) ** 2 + 2 * resolution * resolution)
    return relative(around(slope * (runs - 1), error, n - 2))
