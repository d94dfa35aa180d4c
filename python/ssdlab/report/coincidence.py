"""Lines of a chart that lie upon each other, so that the last one would hide the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ssdlab.answer import Figure
from ssdlab.numeric import Floats

SAME = 0.003
"""Share of what the vertical axis spans, less than a pixel, that lines lie apart which are drawn as
one."""
DASH = 8
"""Pixels of a line that others lie upon, before those have their turn."""

Drawn = Sequence[tuple[Floats, Floats]]
"""Of each curve of a chart the places of its points."""


def turns(chart: Figure, drawn: Drawn) -> Mapping[int, tuple[int, int]]:
    """By the place of such a curve, which of how many it is."""
    groups = _groups(chart, drawn)
    return {n: (turn, len(group)) for group in groups for turn, n in enumerate(group)}


def sentences(chart: Figure, drawn: Drawn) -> list[str]:
    """Which curves they are."""
    groups = [[chart.curves[n].name for n in group] for group in _groups(chart, drawn)]
    return [f"{', '.join(names[:-1])} and {names[-1]} coincide." for names in groups if all(names)]


def take_turns(renderers: Sequence[Any], turn: int, count: int) -> None:
    """Has what draws one of several such curves seen between the others."""
    line = renderers[0].glyph  # its points come behind it
    line.line_dash, line.line_dash_offset = [DASH, DASH * (count - 1)], DASH * turn


def _groups(chart: Figure, drawn: Drawn) -> list[list[int]]:
    lines = [n for n, one in enumerate(chart.curves) if one.style in ("line", "points", "steps")]
    up = {n: np.log(drawn[n][1]) if chart.log_y else drawn[n][1] for n in lines}
    every = np.concatenate(list(up.values())) if lines else np.zeros(0)
    near = SAME * float(np.ptp(every)) if len(every) else 0.0
    found: list[list[int]] = []
    for n in lines:
        for group in found:
            first = group[0]
            alike = len(up[n]) > 0 and np.array_equal(drawn[n][0], drawn[first][0])
            if alike and np.abs(up[n] - up[first]).max() <= near:
                group.append(n)
                break
        else:
            found.append([n])
    return [group for group in found if len(group) > 1]
