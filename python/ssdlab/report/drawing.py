"""Draws the figures of answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from bokeh.layouts import column
from bokeh.models import BoxAnnotation, ColumnDataSource, LayoutDOM, Legend, LegendItem, Range1d
from bokeh.plotting import figure

from ssdlab import units
from ssdlab.answer import Curve, Figure
from ssdlab.numeric import Floats
from ssdlab.report import coincidence, plot, style
from ssdlab.report.downsample import keep_extremes
from ssdlab.units import for_page

HEIGHT = 240
HEIGHT_WIDE = 380
POINTS_MAX = 4000
DOTS_MANY = 300
"""From so many on, dots are drawn small."""
DOTS_FEW = 30
"""Up to so many of a curve are drawn large."""
HEAT_SPAN_MIN = 4.0
"""Largest over smallest value between which colours run at least."""
BARS_SPAN_MAX = 30.0
"""Bars that differ by more than this factor stand on a log axis."""
ALIKE = 0.8
"""Axes that share at least so much of what both span are one."""
LINE_ROOM, DOT_ROOM = 0.012, 0.05
DOUBLINGS_MAX = 11
"""An axis of so many doublings has room for the name of each."""
BARS_SHARE = 0.8
"""Of the room of a place, what its bars take."""

Columns = Mapping[str, npt.NDArray[np.object_]]


def groups(
    name: str, figures: Sequence[Figure], drawn: dict[str, figure], marked: Collection[str] = ()
) -> list[Mapping[str, Any]]:
    """What the template needs of figures: those under one heading stand side by side, those without
    a group alone, and one that shows a step among ``marked`` says so; the charts themselves go into
    ``drawn``."""
    found: list[Mapping[str, Any]] = []
    axes = _Axes()
    shown = [
        (at, _scaled(one)) for at, one in enumerate(figures) if any(len(c.x) for c in one.curves)
    ]
    keyed = itertools.groupby(shown, key=lambda f: f[1].group or f[0])
    for number, (key, pairs) in enumerate(keyed):
        members = list(pairs)
        together = [one for _, one in members]
        axes.head(together)
        alone = isinstance(key, int)
        alike = len({tuple(curve.name for curve in one.curves) for one in together}) == 1
        panels = []
        for place, (at, one) in enumerate(members):
            element = f"{name}-{number}-{place}"
            height = HEIGHT_WIDE if one.wide else HEIGHT
            drawn[element] = _draw(one, height, axes)
            panels.append(
                {
                    "id": element,
                    "title": "" if alone else for_page(one.title),
                    "height": height,
                    "at": at,
                    "label": _label(one),
                    "note": for_page(" ".join(filter(None, (one.note, *_coincide(one))))),
                    "legend": [] if alike else _legend([one]),
                    "marked": any(source in marked for source in one.sources),
                }
            )
        found.append(
            {
                "title": for_page(together[0].title if alone else key),
                "wide": together[0].wide,
                "choices": list(together[0].choices.items()),
                "panels": panels,
                "legend": _legend(together) if alike else [],
                "marked": alone and panels[0]["marked"],
            }
        )
    return found


def main_group(figures: Sequence[Figure]) -> list[Figure]:
    """The figures that a page leads with: the first that has points, and those of its group."""
    shown = [one for one in figures if any(len(curve.x) for curve in one.curves)]
    if not shown or not shown[0].group:
        return shown[:1]
    return list(itertools.takewhile(lambda one: one.group == shown[0].group, shown))


def standing_alone(figures: Sequence[Figure]) -> LayoutDOM:
    """Figures as a layout of bokeh that needs no page around it: with titles and legends."""
    shown = [_scaled(one) for one in figures if any(len(curve.x) for curve in one.curves)]
    axes = _Axes()
    axes.head(shown)
    panels = []
    for one in shown:
        by_curve: list[list[Any]] = []
        panel = _draw(one, HEIGHT_WIDE if one.wide else HEIGHT, axes, by_curve)
        panel.title.text = one.title
        if entries := _legend([one]):
            items = [
                LegendItem(label=entry["name"], renderers=drawn)
                for entry, drawn in zip(entries, by_curve, strict=True)
                if drawn
            ]
            panel.add_layout(Legend(items=items, orientation="horizontal"), "below")
        panels.append(panel)
    if len(panels) == 1:
        return panels[0]
    return column(*panels, sizing_mode="stretch_width")


def recoloured(figures: Sequence[Figure], known: dict[str, int]) -> list[Figure]:
    """The figures with one colour for each thing on a page: what has the name of a curve in
    ``known``, which grows, has its colour again, and so has all of a figure that has such a thing
    as its title. Curves of one number in a figure stay together."""
    return [_recoloured(one, known) for one in figures]


def _recoloured(one: Figure, known: dict[str, int]) -> Figure:
    things: dict[int, list[str]] = {}
    for curve in one.curves:
        if isinstance(curve.colour, int):
            things.setdefault(curve.colour, []).append(curve.name)
    if len(things) == 1 and one.title in known:
        things = {key: [one.title] for key in things}
    had = {n: next((known[x] for x in names if x in known), None) for n, names in things.items()}
    given: dict[int, int] = {}
    for own in sorted(things, key=lambda n: had[n] is None):  # those that are known choose first
        wanted = had[own]
        choice = itertools.chain([own if wanted is None else wanted], itertools.count())
        given[own] = next(n for n in choice if n not in given.values())
        for name in things[own]:
            known.setdefault(name, given[own])
    curves = [
        replace(c, colour=given[c.colour]) if isinstance(c.colour, int) else c for c in one.curves
    ]
    return replace(one, curves=curves)


def _label(one: Figure) -> str:
    """What a chart shows, for who does not see it."""
    names = ", ".join(dict.fromkeys(curve.name for curve in one.curves if curve.name))
    over = f" over {one.x_label}" if one.x_label else ""
    return f"{one.title}: {one.y_label}{over}" + (f" of {names}" if names else "")


def _legend(figures: Sequence[Figure]) -> list[Mapping[str, Any]]:
    """One entry for each curve where a chart has several; panels of several drives share it."""
    curves = figures[0].curves
    if len(curves) < 2 and curves[0].style != "fields":
        return []
    neutral = len({tuple(curve.colour for curve in one.curves) for one in figures}) > 1
    return [
        {
            "name": curve.name,
            "dash": curve.style if curve.style in ("dashed", "dotted") else "",
            "colour": style.MUTED if neutral else _colour(figures[0], curve),
            "ring": curve.style == "published",
            "field": curve.style in ("fields", "bars", "stack", "dots"),
        }
        for curve in curves
    ]


class _Axes:
    """The axes of the charts of a section. Charts over the same stretch of the same quantity share
    their horizontal axis, so that they are zoomed together; those under one heading share the
    vertical one, so that they compare."""

    def __init__(self) -> None:
        self._across: list[tuple[Any, Range1d, Range1d]] = []
        """What is on an axis, what the first chart needs of it, and the axis of all."""
        self._up: dict[Any, Range1d] = {}

    def across(self, chart: Figure, xs: Floats) -> Range1d:
        """The horizontal axis of a chart, whose points are at ``xs``."""
        if chart.x_names:
            return _places(chart.x_names)
        own, meaning = _span(xs, chart.log_x, _room(chart)), (chart.x_label, chart.log_x)
        for known, first, axis in self._across:
            if known == meaning and _alike(first, own):
                _widen(axis, own)
                return axis
        self._across.append((meaning, own, plot.span(own.start, own.end)))
        return self._across[-1][-1]

    def head(self, charts: Sequence[Figure]) -> None:
        """Makes the vertical axes for charts under one heading, each long enough for all."""
        self._up = {}
        for chart in charts:
            if not chart.y_names:
                own = _y_span(
                    chart, np.concatenate([_points(c, chart, every=True)[1] for c in chart.curves])
                )
                _widen(self._up.setdefault((chart.y_label, chart.log_y), own), own)

    def up(self, chart: Figure) -> Range1d:
        """The vertical axis of a chart under the present heading."""
        return _places(chart.y_names) if chart.y_names else self._up[chart.y_label, chart.log_y]


def _widen(axis: Range1d, own: Range1d) -> None:
    """Makes an axis long enough for another chart."""
    start, end = min(axis.start, own.start), max(axis.end, own.end)
    axis.update(start=start, end=end, reset_start=start, reset_end=end)


def _alike(one: Range1d, other: Range1d) -> bool:
    """Whether what fills one axis is no sliver of the other."""
    within = min(one.end, other.end) - max(one.start, other.start)
    over = max(one.end, other.end) - min(one.start, other.start)
    return bool(within >= ALIKE * over)


def _draw(
    chart: Figure, height: int, axes: _Axes, by_curve: list[list[Any]] | None = None
) -> figure:
    """One chart; ``by_curve`` gets what draws each curve."""
    curves = [_points(curve, chart) for curve in chart.curves]
    turns = coincidence.turns(chart, curves)
    every = np.concatenate([_points(curve, chart, every=True)[0] for curve in chart.curves])
    panel = plot.new_figure(chart, height, axes.across(chart, every), axes.up(chart))
    if chart.x_names:
        # A place and its number stand below each other, or those of neighbours would overlap.
        names = [for_page(name).replace(": ", "\n") for name in chart.x_names]
        plot.name_ticks(panel.xaxis[0], panel.xgrid[0], names)
    elif not chart.log_x and all(float(at).is_integer() for x, _ in curves for at in x):
        panel.xaxis[0].ticker.min_interval = 1  # no run is the one and a half
    elif chart.log_x and (doublings := _doublings(np.concatenate([x for x, _ in curves]))):
        plot.tick_at(panel.xaxis[0], panel.xgrid[0], doublings)
    if chart.y_names:
        plot.name_ticks(panel.yaxis[0], panel.ygrid[0], [for_page(name) for name in chart.y_names])
    for place in range(len(chart.curves)):
        before = len(panel.renderers)
        _add(panel, chart, curves, place)
        drawn = panel.renderers[before:]
        if place in turns:
            coincidence.take_turns(drawn, *turns[place])
        for one in drawn:
            one.data_source.name = f"curve-{place}"  # the page changes what it holds
        if by_curve is not None:
            by_curve.append(drawn)
    if chart.window is not None:
        shade = BoxAnnotation(left=chart.window[0], right=chart.window[1], fill_color=style.MUTED)
        shade.fill_alpha, shade.line_color, shade.level = 0.1, None, "underlay"
        panel.add_layout(shade)
    return panel


def _doublings(xs: Floats) -> list[float]:
    """The values of a horizontal axis if they are doublings of each other, as block sizes and
    depths are, and few enough for a tick each; else none."""
    places = np.unique(xs)
    if len(places) < 3 or places[-1] > 2**DOUBLINGS_MAX * places[0]:
        return []
    found: list[float] = places.tolist()
    return found if all(math.log2(at / places[0]).is_integer() for at in found) else []


def _add(panel: figure, chart: Figure, curves: Sequence[tuple[Floats, Floats]], place: int) -> None:
    """Draws one of the curves, whose points are among those of all."""
    curve, (x, y), tips = chart.curves[place], curves[place], _tips(chart, chart.curves[place])
    if curve.style == "heat":
        _heat(panel, curve)
    elif curve.style == "fields":
        _fields(panel, curve, chart, x, y)
    elif curve.style == "parallel":
        _parallel(panel, curve, x, y)
    elif curve.style == "stack":
        _stack(panel, curve, x, y, _below(chart, curves, place), tips)
    elif curve.style == "bars":
        _bars(panel, curve, x + _beside(chart, place), y, _bar_width(chart), tips)
    else:
        _curve(panel, curve, _colour(chart, curve), x, y, tips, _beside_points(chart, curve))


def _coincide(chart: Figure) -> list[str]:
    """What is said of lines that lie upon each other, whatever is chosen."""
    curves = [_points(curve, chart, every=True) for curve in chart.curves]
    return coincidence.sentences(chart, curves)


def _below(chart: Figure, curves: Sequence[tuple[Floats, Floats]], place: int) -> Floats:
    """Where the bars of a stacked curve stand: upon those of the curves before it."""
    x, _ = curves[place]
    found = np.zeros(len(x))
    for before in range(place):
        if chart.curves[before].style == "stack":
            own = dict(zip(*curves[before], strict=True))
            found += [own.get(at, 0.0) for at in x]
    return found


def _stack(
    panel: figure, curve: Curve, x: Floats, y: Floats, below: Floats, tips: list[tuple[str, str]]
) -> None:
    source = ColumnDataSource({"x": x, "y": y, "low": below, "high": below + y})
    colour = style.colour(curve.colour)
    drawn = panel.vbar(
        "x", top="high", bottom="low", width=BARS_SHARE, source=source, color=colour,
        line_color=style.RULE,
    )  # fmt: skip
    plot.add_hover(panel, drawn, tips)


def _scaled(chart: Figure) -> Figure:
    """On a log axis where bars differ by so much that a linear one would show the longest alone."""
    if chart.y_max is not None or any(curve.style != "bars" for curve in chart.curves):
        return chart
    values = [y for curve in chart.curves for y in curve.y if math.isfinite(y)]
    far = min(values, default=0.0) > 0 and max(values) > BARS_SPAN_MAX * min(values)
    return replace(chart, log_y=True) if far else chart


def _tips(chart: Figure, curve: Curve) -> list[tuple[str, str]]:
    """What the pointer is told: which curve, and both values with their axes."""
    tips = [("", curve.name)] if curve.name else []
    if not chart.x_names:
        tips.append((for_page(chart.x_label), "@x{0,0.[000]}"))
    return [*tips, (for_page(chart.y_label), "@y{0,0.[00]}")]


def _places(names: Sequence[str]) -> Any:
    return plot.span(-0.5, len(names) - 0.5)


def _y_span(chart: Figure, ys: Floats) -> Any:
    if chart.log_y:
        return _span(ys, True, _room(chart))
    end = chart.y_max or 1.06 * float(ys.max(initial=0.0)) or 1.0
    start = chart.y_min or 0.0
    return plot.span(start - _room(chart) * (end - start) if start < 0 else start, end)


def _bar_width(chart: Figure) -> float:
    return BARS_SHARE / max(1, sum(curve.style == "bars" for curve in chart.curves))


def _beside(chart: Figure, place: int) -> float:
    """How far the bars of a curve stand from the middle of their places."""
    bars = [n for n, curve in enumerate(chart.curves) if curve.style == "bars"]
    return _bar_width(chart) * (bars.index(place) - (len(bars) - 1) / 2)


def _bars(
    panel: figure, curve: Curve, x: Floats, y: Floats, width: float, tips: list[tuple[str, str]]
) -> None:
    drawn = panel.vbar(
        "x", top="y", bottom=panel.y_range.start, width=0.92 * width,
        source=ColumnDataSource({"x": x, "y": y}), color=style.colour(curve.colour),
        line_color=None,
    )  # fmt: skip
    plot.add_hover(panel, drawn, tips)


def _fields(panel: figure, curve: Curve, chart: Figure, x: Floats, y: Floats) -> None:
    """Fields of unit size in one colour; the pointer is told what their row is."""
    rows = [chart.y_names[int(row)] if chart.y_names else f"{row:g}" for row in y]
    source = ColumnDataSource({"x": x, "y": y, "row": rows})
    drawn = panel.rect(
        "x", "y", width=0.9, height=0.86, source=source, color=style.colour(curve.colour)
    )
    plot.add_hover(panel, drawn, [("", curve.name), ("row", "@row")])


def _heat(panel: figure, curve: Curve) -> None:
    """Fields of unit size with their values; the colour follows the logarithm."""
    good = [n for n, z in enumerate(curve.z) if z is not None]
    fields = [(curve.x[n], curve.y[n], z) for n in good if (z := curve.z[n]) is not None]
    logs = [math.log(z) for _, _, z in fields if z > 0]
    high = max(logs, default=0.0)
    # From dark to light is at least a factor: noise is not to look like a landscape.
    over = max(high - min(logs, default=0.0), math.log(HEAT_SPAN_MIN))
    shares = [1 - (high - math.log(z)) / over if z > 0 else 0.0 for _, _, z in fields]
    colours = [style.tint(style.colour(curve.colour), 0.06 + 0.94 * share) for share in shares]
    source = ColumnDataSource(
        {
            "x": [x for x, _, _ in fields],
            "y": [y for _, y, _ in fields],
            "z": [z for _, _, z in fields],
            "text": [for_page(units.number(z)) for _, _, z in fields],
            "colour": colours,
            "ink": [style.ink_on(colour) for colour in colours],
            "size": ["11px"] * len(fields),
            **({"key": [curve.keys[n] for n in good]} if curve.keys else {}),
        }
    )
    drawn = panel.rect("x", "y", width=0.97, height=0.94, source=source, color="colour")
    told = panel.text(
        "x",
        "y",
        text="text",
        source=source,
        text_color="ink",
        text_font={"value": style.FONT},  # else bokeh takes it for a column
        text_font_size="size",
        text_align="center",
        text_baseline="middle",
    )
    told.tags = ["field"]  # the page makes them as large as there is room
    plot.add_tap(panel, drawn, source)
    plot.add_hover(panel, drawn, [(curve.name, "@z{0,0.[00]}")])


def _parallel(panel: figure, curve: Curve, x: Floats, y: Floats) -> None:
    """Lines from place to place; what is told of a line, and how strong it is, is told at its
    first point."""
    first = [int(n) for n in np.flatnonzero(np.diff(x, prepend=math.inf) <= 0)]
    strength = np.asarray(curve.z, dtype=float)[first] if len(curve.z) else np.ones(len(first))
    source = ColumnDataSource(
        {
            "xs": [one.tolist() for one in np.split(x, first[1:])],
            "ys": [one.tolist() for one in np.split(y, first[1:])],
            "alpha": 0.12 + 0.88 * strength,
            **({"about": [curve.about[n] for n in first]} if curve.about else {}),
            **({"key": [curve.keys[n] for n in first]} if curve.keys else {}),
        }
    )
    drawn = panel.multi_line(
        "xs", "ys", source=source, line_color=style.colour(curve.colour), line_alpha="alpha",
        line_width=1.4, hover_line_color=style.colour(curve.colour + 1)
        if isinstance(curve.colour, int) else style.INK, hover_line_alpha=1.0,
    )  # fmt: skip
    plot.add_tap(panel, drawn, source)
    if curve.about:
        plot.add_hover(panel, drawn, [("", "@about")])


def _points(curve: Curve, chart: Figure, *, every: bool = False) -> tuple[Floats, Floats]:
    """What of a curve can be drawn: a logarithm needs something above 0. Of points to choose from
    the first choice, unless ``every``."""
    x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
    good = _drawable(chart, curve, x, y, every=every)
    return x[good], y[good]


def _drawable(
    chart: Figure, curve: Curve, x: Floats, y: Floats, *, every: bool = False
) -> npt.NDArray[np.bool_]:
    good = np.isfinite(x) & np.isfinite(y)
    good &= (x > 0) | (not chart.log_x)
    good &= (y > 0) | (not chart.log_y)
    if curve.choice and not every:
        first = "\t".join(values[0] for values in chart.choices.values())
        good &= np.asarray([one == first for one in curve.choice])
    return good


def _beside_points(chart: Figure, curve: Curve) -> Columns:
    """What is told of the points that are drawn, and what they lead to."""
    x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
    good = _drawable(chart, curve, x, y)
    given = {"about": curve.about, "key": curve.keys}
    return {name: np.asarray(own, dtype=object)[good] for name, own in given.items() if len(own)}


def _room(chart: Figure) -> float:
    """Share of an axis that stays free at its ends: enough for a dot not to be cut."""
    return DOT_ROOM if any(c.style in ("dots", "published") for c in chart.curves) else LINE_ROOM


def _span(values: Floats, log: bool, share: float) -> Any:
    if not len(values):
        return plot.span(1.0, 10.0)
    low, high = float(values.min()), float(values.max())
    if not log:
        room = share * ((high - low) or 1.0)
        return plot.span(low - room, high + room)
    room = max(1.08, (high / low) ** max(share, 0.03))
    # A constant still needs ticks: never less than a decade.
    if math.log10(high / low) < 1:
        room *= math.sqrt(10 * low / high)
    return plot.span(low / room, high * room)


def _colour(chart: Figure, curve: Curve) -> str:
    """Of a curve on the page; what was measured or published is ink where one curve is of it."""
    rings = {one.colour for one in chart.curves if one.style == "published"}
    alone = curve.style == "published" and len(rings) == 1
    return style.INK if alone else style.colour(curve.colour)


def _curve(
    panel: figure,
    curve: Curve,
    colour: str,
    x: Floats,
    y: Floats,
    tips: list[tuple[str, str]],
    beside: Columns,
) -> None:
    if not len(x) and not curve.choice:
        return
    keep = keep_extremes([y], POINTS_MAX)
    source = ColumnDataSource(
        {
            "x": x[keep].astype(np.float32),
            "y": y[keep].astype(np.float32),
            **{name: own[keep].tolist() for name, own in beside.items()},
        }
    )
    tips = [*tips, ("", "@about")] if "about" in beside else tips
    if curve.style == "published":
        drawn = panel.scatter(
            "x", "y", source=source, size=9, fill_color=None, line_color=colour, line_width=2
        )
    elif curve.style == "dots":
        size = 2.5 if len(x) > DOTS_MANY else 10 if len(x) <= DOTS_FEW else 5
        drawn = panel.scatter("x", "y", source=source, size=size, color=colour, line_color=None)
    elif curve.style == "steps":
        drawn = panel.step("x", "y", source=source, color=colour, line_width=1.6, mode="after")
    else:
        dash = curve.style if curve.style in ("dashed", "dotted") else "solid"
        drawn = panel.line("x", "y", source=source, color=colour, line_width=1.6, line_dash=dash)
        if curve.style == "points" or len(x) == 1:  # no line goes through one point
            dots = panel.scatter("x", "y", source=source, size=5, color=colour, line_color=None)
            plot.add_tap(panel, dots, source)
    plot.add_tap(panel, drawn, source)
    if len(x) <= DOTS_MANY or curve.style != "dots":
        plot.add_hover(panel, drawn, tips)
