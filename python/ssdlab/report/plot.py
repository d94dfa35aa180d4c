"""A figure in the style of the report, and its axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bokeh.models import (
    BasicTicker,
    BasicTickFormatter,
    BoxZoomTool,
    FixedTicker,
    HoverTool,
    NumeralTickFormatter,
    PanTool,
    Range1d,
    ResetTool,
    SaveTool,
    TapTool,
    Toolbar,
    WheelZoomTool,
)
from bokeh.plotting import figure

from ssdlab.answer import Figure
from ssdlab.report import style
from ssdlab.units import for_page

LEAST_PLAIN = 0.005
"""Ticks of a log axis that reaches below this would be rounded to 0 in two digits."""
MANY = 10_000
"""Ticks of a linear axis that reaches so far count in thousands."""
LEFT_PX = 62
"""Room for the vertical axis, the same in all charts so that they stand one below another."""
LOW_PX = 160
"""Charts lower than this have fewer ticks."""


def span(start: float, end: float) -> Range1d:
    """The range of an axis, to which the reset button returns."""
    return Range1d(start=start, end=end, reset_start=start, reset_end=end)


def new_figure(chart: Figure, height: int, x_range: Range1d, y_range: Range1d) -> figure:
    """An empty figure for a chart, as wide as its place."""
    # The lengths of bars are compared, which a log axis forbids.
    bars = any(curve.style == "bars" for curve in chart.curves)
    log = ", log scale" if bars and chart.log_y else ""
    plot = figure(
        height=height,
        sizing_mode="stretch_width",
        x_range=x_range,
        y_range=y_range,
        x_axis_type="log" if chart.log_x else "linear",
        y_axis_type="log" if chart.log_y else "linear",
        x_axis_label=for_page(chart.x_label),
        y_axis_label=for_page(chart.y_label) + log,
        tools=[],
        toolbar_location="above",
        min_border_left=LEFT_PX,
        min_border_right=14,
        min_border_top=4,
        min_border_bottom=4,
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_color=None,
    )
    zoom = BoxZoomTool()
    plot.toolbar = Toolbar(
        tools=[zoom, PanTool(), WheelZoomTool(), SaveTool(), ResetTool()],
        active_drag=zoom,
        active_scroll=None,
        logo=None,
        autohide=True,
    )
    for axis in plot.axis:
        axis.update(
            axis_line_color=style.RULE,
            major_tick_line_color=style.RULE,
            minor_tick_line_color=None,
            major_tick_in=0,
            major_tick_out=4,
            major_label_text_color=style.MUTED,
            major_label_text_font=style.FONT,
            major_label_text_font_size="11px",
            axis_label_text_color=style.MUTED,
            axis_label_text_font=style.FONT,
            axis_label_text_font_size="11px",
            axis_label_text_font_style="normal",
            axis_label_standoff=6,
        )
    plot.ygrid[0].grid_line_color = style.GRID
    plot.xgrid[0].grid_line_color = style.GRID if chart.log_x else None
    plot.yaxis[0].formatter = NumeralTickFormatter(format="0[.]0[0]a")
    if chart.log_y:
        _round_ticks(plot.yaxis[0], plot.ygrid[0], y_range)
        plot.yaxis[0].tags = ["log"]
        if y_range.start < LEAST_PLAIN:
            plot.yaxis[0].formatter = BasicTickFormatter()
    else:
        plot.yaxis[0].ticker = BasicTicker(desired_num_ticks=5 if height > LOW_PX else 3)
        plot.ygrid[0].ticker = plot.yaxis[0].ticker
    if chart.log_x:
        _round_ticks(plot.xaxis[0], plot.xgrid[0], x_range)
        plot.xaxis[0].formatter = NumeralTickFormatter(format="0,0.[000]")
        plot.xaxis[0].tags = ["log"]
    else:
        many = NumeralTickFormatter(format="0[.]0[0]a")
        few = BasicTickFormatter(use_scientific=False)
        plot.xaxis[0].formatter = many if x_range.end >= MANY else few
        plot.xaxis[0].ticker = BasicTicker(desired_num_ticks=5)
    return plot


def add_hover(plot: figure, renderer: Any, tips: list[tuple[str, str]]) -> None:
    """Shows values under the pointer; labels and bokeh's formats of the columns."""
    tool = HoverTool(
        renderers=[renderer],
        tooltips=tips,
        mode="mouse",
        line_policy="nearest",
        point_policy="follow_mouse",
        visible=False,
    )
    plot.toolbar.tools = [*plot.toolbar.tools, tool]


def add_tap(plot: figure, renderer: Any, source: Any) -> None:
    """Has points that lead somewhere (a column ``key``) be clicked; the page follows them."""
    if "key" not in source.data:
        return
    renderer.nonselection_glyph = None
    taps = [tool for tool in plot.toolbar.tools if isinstance(tool, TapTool)]
    if taps:
        taps[0].renderers = [*taps[0].renderers, renderer]
    else:
        tap = TapTool(renderers=[renderer], visible=False)
        plot.toolbar.tools = [*plot.toolbar.tools, tap]


def name_ticks(axis: Any, grid: Any, names: Sequence[str]) -> None:
    """Names the places 0, 1, 2 ... of an axis, which has no lines of its own then. A place without
    a name has no tick."""
    named = {float(place): name for place, name in enumerate(names) if name}
    _fix_ticks(axis, grid, list(named))
    axis.major_label_overrides = named
    axis.tags = ["names"]
    grid.grid_line_color = None


def tick_at(axis: Any, grid: Any, places: list[float]) -> None:
    """Ticks of a log axis at what was measured, and nowhere else."""
    _fix_ticks(axis, grid, places)
    # Sizes in bytes have more figures than `g` leaves.
    named = {at: f"{at:,.0f}" if at.is_integer() else f"{at:g}" for at in places}
    axis.major_label_overrides = {at: for_page(name) for at, name in named.items()}
    axis.tags = []


def _round_ticks(axis: Any, grid: Any, over: Any) -> None:
    """Ticks of a log axis at 1, 2 and 5, or at 1 and 3, or at 1 alone, times powers of ten. Fixed,
    since bokeh's own would be few and uneven over a decade or two; the page sets them anew when it
    is zoomed (``page.js``)."""
    low, high = math.log10(over.start), math.log10(over.end)
    digits = (1, 2, 5) if high - low <= 2 else (1, 3) if high - low <= 3 else (1,)
    decades = range(math.floor(low) - 1, math.ceil(high) + 1)
    _fix_ticks(axis, grid, [digit * 10.0**decade for decade in decades for digit in digits])


def _fix_ticks(axis: Any, grid: Any, ticks: list[float]) -> None:
    axis.ticker = FixedTicker(ticks=ticks)
    grid.ticker = axis.ticker
