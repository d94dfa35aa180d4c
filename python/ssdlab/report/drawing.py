"""Draws figures as they are described: those of experiments and of protocols."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

from ssdlab.figures import Curve, Figure
from ssdlab.report import plot, style
from ssdlab.report.downsample import keep_extremes

HEIGHT = 240
HEIGHT_WIDE = 380
POINTS_MAX = 4000
DOTS_MANY = 300
"""From so many on, dots are drawn small."""

Floats = npt.NDArray[np.float64]


def groups(
    name: str,
    figures: Sequence[Figure],
    drawn: dict[str, figure],
    marked: Collection[str] = (),
) -> list[Mapping[str, Any]]:
    """Figures under one heading stand side by side; those without a group stand alone.

    What the template needs of them; the charts themselves go into ``drawn``. A figure that shows
    a step among ``marked`` says so.
    """
    found: list[Mapping[str, Any]] = []
    shown = [one for one in figures if any(len(curve.x) for curve in one.curves)]
    keyed = itertools.groupby(enumerate(shown), key=lambda f: f[1].group or f[0])
    for number, (key, members) in enumerate(keyed):
        together = [one for _, one in members]
        alone = isinstance(key, int)
        alike = len({tuple(curve.name for curve in one.curves) for one in together}) == 1
        panels = []
        for place, one in enumerate(together):
            element = f"{name}-{number}-{place}"
            height = HEIGHT_WIDE if one.wide else HEIGHT
            drawn[element] = draw(one, height)
            panels.append(
                {
                    "id": element,
                    "title": "" if alone else one.title,
                    "height": height,
                    "note": one.note,
                    "legend": [] if alike else _legend([one]),
                    "marked": any(source in marked for source in one.sources),
                }
            )
        found.append(
            {
                "title": together[0].title if alone else key,
                "wide": together[0].wide,
                "panels": panels,
                "legend": _legend(together) if alike else [],
            }
        )
    return found


def _legend(figures: Sequence[Figure]) -> list[Mapping[str, Any]]:
    """One entry for each curve where a chart has several; panels of several drives share it."""
    curves = figures[0].curves
    if len(curves) < 2:
        return []
    neutral = len(figures) > 1
    return [
        {
            "name": curve.name,
            "colour": style.MUTED if neutral else style.run_colour(curve.colour),
            "ring": curve.style == "published",
        }
        for curve in curves
    ]


def draw(chart: Figure, height: int) -> figure:
    """One chart."""
    curves = [_points(curve, chart) for curve in chart.curves]
    xs = np.concatenate([x for x, _ in curves])
    ys = np.concatenate([y for _, y in curves])
    panel = plot.new_figure(
        height,
        _span(xs, chart.log_x),
        _span(ys, True)
        if chart.log_y
        else plot.span(0.0, chart.y_max or 1.06 * float(ys.max(initial=0.0)) or 1.0),
        chart.x_label,
        chart.y_label,
        log_x=chart.log_x,
        log_y=chart.log_y,
        zoom_both=True,
    )
    for curve, (x, y) in zip(chart.curves, curves, strict=True):
        _curve(panel, curve, x, y, named=len(curves) > 1)
    return panel


def _points(curve: Curve, chart: Figure) -> tuple[Floats, Floats]:
    """What of a curve can be drawn: a logarithm needs something above 0."""
    x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
    good = np.isfinite(x) & np.isfinite(y)
    good &= (x > 0) | (not chart.log_x)
    good &= (y > 0) | (not chart.log_y)
    return x[good], y[good]


def _span(values: Floats, log: bool) -> Any:
    if not len(values):
        return plot.span(1.0, 10.0)
    low, high = float(values.min()), float(values.max())
    if not log:
        room = 0.012 * ((high - low) or 1.0)
        return plot.span(low - room, high + room)
    room = max(1.08, (high / low) ** 0.03)
    # A constant still needs ticks: never less than a decade.
    if math.log10(high / low) < 1:
        room *= math.sqrt(10 * low / high)
    return plot.span(low / room, high * room)


def _curve(panel: figure, curve: Curve, x: Floats, y: Floats, *, named: bool) -> None:
    if not len(x):
        return
    keep = keep_extremes([y], POINTS_MAX)
    source = ColumnDataSource({"x": x[keep].astype(np.float32), "y": y[keep].astype(np.float32)})
    colour = style.run_colour(curve.colour)
    if curve.style == "published":
        drawn = panel.scatter(
            "x", "y", source=source, size=9, fill_color=None, line_color=style.INK, line_width=2
        )
    elif curve.style == "dots":
        size = 2.5 if len(x) > DOTS_MANY else 5
        drawn = panel.scatter("x", "y", source=source, size=size, color=colour, line_color=None)
    else:
        drawn = panel.line("x", "y", source=source, color=colour, line_width=1.6)
        if curve.style == "points":
            panel.scatter("x", "y", source=source, size=5, color=colour, line_color=None)
    if curve.style != "dots":
        plot.add_hover(panel, drawn, [(curve.name if named else "", "$y{0,0.[00]}")], "mouse")
