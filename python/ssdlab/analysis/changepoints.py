"""Change points: where the level of a series changes for good, and a cache that has run full.

Optimal partitioning with squared errors (Jackson et al. 2005, the exact search that PELT of Killick
et al. 2012 prunes): the segmentation that minimises the sum of squared distances from the segments'
means, plus a penalty for each change. The noise is taken from the differences of neighbours, so
that the changes themselves do not count as noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ssdlab.numeric import Floats

BINS_MAX = 800
"""Longer series are searched in so many bins, and the places refined afterwards."""
PENALTY = 3.0
"""Times the variance of the noise times ln(n); 2 would be the BIC of a known variance. Ours."""
NOISE_FLOOR = 0.01
"""Share of the median level that counts as noise even where there is none."""
CHANGE_MIN = 0.15
"""Neighbours whose levels differ by less than this share of the higher are one stage. Ours."""
SHORTEST_SHARE = 0.01
"""Shortest stage as a share of the series; a single dip is none."""
FALL_MAX = 0.8
"""A fall leaves at most this share of what was before it."""
BACK = 0.5
"""Levels that rise by this share of what they fall by, or the other way round, wander. Ours."""


@dataclass(frozen=True)
class Stage:
    """Samples of one level."""

    start: int
    """First sample."""
    end: int
    """The sample after the last one."""
    level: float
    """Their mean."""

    @property
    def length(self) -> int:
        """How many samples."""
        return self.end - self.start


def stages(values: npt.ArrayLike, *, change: float = CHANGE_MIN) -> list[Stage]:
    """The series as stages of constant level, in order; empty for an empty series.

    Args:
        values: Equally spaced samples, not negative.
        change: Smallest difference of neighbouring levels, as a share of the higher one.
    """
    y = np.asarray(values, dtype=np.float64)
    if len(y) == 0:
        return []
    fewest = max(2, round(len(y) * SHORTEST_SHARE))
    width = max(1, -(-len(y) // BINS_MAX))
    edges = [*range(0, len(y), width), len(y)]
    total = np.concatenate(([0.0], np.cumsum(y)))
    binned = np.diff(total[edges]) / np.diff(edges)
    cuts = _partition(binned, max(1, round(fewest / width)))
    places = sorted({edges[cut] for cut in cuts} - {0, len(y)})
    places = [0, *(_refined(total, place, width, len(y)) for place in places), len(y)]
    found = [
        Stage(a, b, float((total[b] - total[a]) / (b - a)))
        for a, b in itertools.pairwise(places)
        if b > a
    ]
    return _joined(found, change)


def fall(found: Sequence[Stage]) -> int | None:
    """The sample at which a level that lasted from the start ends for good; None if none does.

    The split between stages that explains most of the variance, if what follows is at most
    ``FALL_MAX`` of what was before; within what was before it, the same again, so that of several
    falls the first is found. A dip that is made good does not end a level, nor does one in which,
    or soon after which, the series ends, if it has lasted no longer than those before it.
    """
    end = None
    within = list(found)
    while len(within) > 1:
        cut = max(range(1, len(within)), key=lambda n: _between(within[:n], within[n:]))
        low = FALL_MAX * level(within[:cut])
        before, after = _dips(within[:cut], low), _dips(within[cut:], low)
        if level(within[cut:]) > low or (len(after) == 1 and after[0] <= max(before, default=0)):
            break
        end = within[cut].start
        within = within[:cut]
    return end


def wander(found: Sequence[Stage]) -> bool:
    """Whether the levels go up about as much as down: what changes slowly all the time, in one or
    the other direction, has no stages, and is cut into some all the same."""
    steps = [after.level - before.level for before, after in itertools.pairwise(found)]
    up, down = sum(max(step, 0.0) for step in steps), sum(max(-step, 0.0) for step in steps)
    return min(up, down) > BACK * max(up, down)


def level(found: Sequence[Stage]) -> float:
    """The mean over several stages."""
    return sum(stage.level * stage.length for stage in found) / _length(found)


def _length(found: Sequence[Stage]) -> int:
    return sum(stage.length for stage in found)


def _dips(found: Sequence[Stage], low: float) -> list[int]:
    """How many samples each dip has: stages in a row that lie no higher than ``low``."""
    rows = itertools.groupby(found, key=lambda stage: stage.level <= low)
    return [_length(list(row)) for is_low, row in rows if is_low]


def _partition(y: Floats, fewest: int) -> list[int]:
    """Begins of the segments of the best segmentation, each at least ``fewest`` samples long."""
    n = len(y)
    if n < 2 * fewest:
        return [0]
    steps = np.abs(np.diff(y))
    # The median of |a - b| of two normal values is 0.6745 sqrt(2) sigma.
    sigma = float(np.median(steps)) / (0.6745 * np.sqrt(2))
    sigma = max(sigma, NOISE_FLOOR * float(np.median(np.abs(y))), 1e-12)
    penalty = PENALTY * sigma**2 * np.log(n)
    y = _calmed(y, fewest)
    total = np.concatenate(([0.0], np.cumsum(y)))
    squares = np.concatenate(([0.0], np.cumsum(y * y)))
    cost = np.full(n + 1, np.inf)
    cost[0] = -penalty
    before = np.zeros(n + 1, dtype=np.int64)
    for end in range(fewest, n + 1):
        begin = np.arange(0, end - fewest + 1)
        length = end - begin
        error = squares[end] - squares[begin] - (total[end] - total[begin]) ** 2 / length
        whole = cost[begin] + error + penalty
        best = int(whole.argmin())
        cost[end], before[end] = whole[best], begin[best]
    cuts = []
    end = n
    while end > 0:
        end = int(before[end])
        cuts.append(end)
    return cuts[::-1]


def _calmed(y: Floats, fewest: int) -> Floats:
    """Running medians: what is shorter than half of a stage vanishes, and steps stay steps."""
    reach = max(1, fewest // 2)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(y, reach, "edge"), 2 * reach + 1)
    calmed: Floats = np.median(windows, axis=1)
    return calmed


def _refined(total: Floats, place: int, width: int, n: int) -> int:
    """The place moved by up to a bin to where two means fit best."""
    if width == 1:
        return place
    low, high = max(0, place - 2 * width), min(n, place + 2 * width)
    cuts = np.arange(max(low + 1, place - width), min(high, place + width + 1))
    left = (total[cuts] - total[low]) ** 2 / (cuts - low)
    right = (total[high] - total[cuts]) ** 2 / np.maximum(high - cuts, 1)
    return int(cuts[(left + right).argmax()])


def _joined(found: list[Stage], change: float) -> list[Stage]:
    """Neighbours of about the same level made one, the most alike first."""
    kept = list(found)
    while len(kept) > 1:
        apart = [
            abs(a.level - b.level) / max(a.level, b.level, 1e-12)
            for a, b in itertools.pairwise(kept)
        ]
        n = int(np.argmin(apart))
        if apart[n] >= change:
            break
        stage, other = kept[n], kept[n + 1]
        kept[n : n + 2] = [Stage(stage.start, other.end, level([stage, other]))]
    return kept


def _between(head: Sequence[Stage], tail: Sequence[Stage]) -> float:
    a, b = _length(head), _length(tail)
    return a * b / (a + b) * (level(head) - level(tail)) ** 2
