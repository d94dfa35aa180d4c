"""How far simulated numbers are from measured ones, where they are predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ssdlab.experiments.base import Line


@dataclass(frozen=True)
class Score:
    """How far predicted numbers are off: natural logarithms of their ratios, without the sign."""

    counted: int
    missing: int
    """Those that could not be simulated, or came out as nothing."""
    median: float | None
    high: float | None
    """The 90th percentile."""


def score(lines: Iterable[Line]) -> Score:
    """That of the predictions among these numbers; all others are left out."""
    predicted = [line for line in lines if line.kind == "predicted" and line.published]
    off = [
        abs(math.log(line.ratio)) for line in predicted if line.ratio is not None and line.ratio > 0
    ]
    median, high = np.percentile(off, [50, 90]).tolist() if off else (None, None)
    return Score(len(off), len(predicted) - len(off), median, high)


def by(lines: Iterable[Line], what: Callable[[Line], str]) -> dict[str, Score]:
    """Scores by a property of the numbers, in the order of their first appearance; sets without a
    prediction are left out."""
    sets: dict[str, list[Line]] = {}
    for line in lines:
        sets.setdefault(what(line), []).append(line)
    scores = {name: score(own) for name, own in sets.items()}
    return {name: one for name, one in scores.items() if one.counted + one.missing}


def quantity(line: Line) -> str:
    """What was measured, without the conditions, which stand after a comma."""
    return line.quantity.partition(",")[0]
