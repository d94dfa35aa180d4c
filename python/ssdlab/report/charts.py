"""The charts, drawn with bokeh: for each job a column of panels per run, and one distribution.

No text that a user chose (names, options) is drawn here; it stands in the HTML around a chart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure

from ssdlab.report import plot, style
from ssdlab.report.catalogue import Catalogue
from ssdlab.report.downsample import keep_extremes
from ssdlab.report.model import Section, Trace
from ssdlab.report.numbers import Numbers

Span = tuple[float, float]
Draw = Callable[[figure, Trace, ColumnDataSource, int], None]
Kind = Literal[
    "iops_log",
    "iops_linear",
    "throughput",
    "latency_time",
    "parts",
    "wa",
    "collection",
    "folding",
    "free",
    "fill",
]
LATENCIES = ("lat_mean_ns", "lat_p99_ns", "lat_max_ns")

HEIGHTS: dict[Kind, int] = {
    "iops_log": 240,
    "iops_linear": 240,
    "throughput": 170,
    "latency_time": 240,
    "parts": 170,
    "wa": 170,
    "collection": 150,
    "folding": 150,
    "free": 150,
    "fill": 120,
}
HEIGHT_CDF = 400
MARGIN = 0.012
"""Room beside the time shown, as a share of it."""
AREA_STEPS = 400
"""Steps of the stacked areas."""
NINES_MAX = 7.0
"""Nines on the share axis at most."""
COMPARABLE_LENGTH = 3.0
"""Runs share the time axis if none is longer than this many times the others."""
COMPARABLE_RATE = 8.0
"""Runs share a linear axis if the largest values differ by at most this factor."""
VERY_FEW_POINTS = 20
"""Lines of up to so many points show them."""
FEW_POINTS = 300
"""Up to so many points are drawn larger."""
HOURS_FROM_S = 10_800.0
"""Time axes of longer jobs are in hours."""


@dataclass(frozen=True)
class Panel:
    """One chart of one run."""

    kind: Kind
    run: int
    figure: figure
    own_scale: bool = False
    """Whether its vertical axis differs from the others of its row."""
    points: int | None = None
    """Number of points before some were left out; None if all are drawn."""


@dataclass
class SectionCharts:
    """All charts of a job, and what its buttons switch."""

    panels: list[Panel] = field(default_factory=list)
    cdf: figure | None = None
    ranges: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    """By range name: begin and end for "whole" and for "window"."""

    def row(self, kind: Kind) -> list[Panel]:
        """The panels of one kind, by run."""
        return [panel for panel in self.panels if panel.kind == kind]


class SectionPainter:
    """Draws the charts of one job."""

    def __init__(self, section: Section, words: Catalogue, numbers: Numbers) -> None:
        self._section = section
        self._words = words
        self._numbers = numbers
        self._charts = SectionCharts()
        self._by_run: dict[int, list[Trace]] = {}
        for trace in section.traces:
            if len(trace.time):
                self._by_run.setdefault(trace.run.index, []).append(trace)
        longest = max((t.lasted_s for t in section.traces), default=0.0)
        self._time_unit = 3600.0 if longest >= HOURS_FROM_S else 1.0
        self._time_label = words("axis.time_h" if self._time_unit > 1 else "axis.time_s")
        self._time: dict[int, Range1d] = {}
        self._sources = {id(t): self._source(t) for traces in self._by_run.values() for t in traces}

    def paint(self) -> SectionCharts:
        """All charts; those without data are left out."""
        if self._by_run:
            self._time = self._time_axes()
            if self._section.fill:
                self._row("fill", ("mbs", "mbs"), self._throughput)
            else:
                self._row("iops_log", ("iops", "iops"), self._iops, log=True)
                self._row("iops_linear", ("iops", "iops"), self._iops)
                self._row("throughput", ("mbs", "mbs"), self._throughput)
                self._row("latency_time", ("lat_mean_ns", "lat_max_ns"), self._latency, log=True)
                for panel in self._charts.row("latency_time"):
                    plot.latency_ticks(panel.figure.yaxis[0], self._numbers)
                self._parts_row()
                self._flash_rows()
        if not self._section.fill:
            self._charts.cdf = self._cdf()
        return self._charts

    # --- data and ranges

    def _source(self, trace: Trace) -> tuple[ColumnDataSource, int | None]:
        """The points to draw, and how many there were if some were left out."""
        iops = trace.rate
        latencies = {name: trace.column(name) for name in LATENCIES}
        keep = keep_extremes([iops, latencies["lat_max_ns"]])
        positive = iops[iops > 0]
        floor = float(positive.min()) if len(positive) else 1.0
        columns = {
            "t": trace.time / self._time_unit,
            "iops": iops,
            # Seconds without any I/O lie on the lower edge of a log axis.
            "iops_drawn": np.maximum(iops, floor / 1.5),
            "mbs": trace.column("bw_bytes") / 1e6,
            **latencies,
        }
        data = {name: values[keep].astype(np.float32) for name, values in columns.items()}
        return ColumnDataSource(data), (len(iops) if len(keep) < len(iops) else None)

    def _time_axes(self) -> dict[int, Range1d]:
        """A range per run; runs of similar length share one."""
        lasted = {run: max(t.lasted_s for t in ts) for run, ts in self._by_run.items()}
        longest = max(lasted.values())
        shared = [run for run, s in lasted.items() if s * COMPARABLE_LENGTH >= longest]
        axes: dict[int, Range1d] = {}
        for number, runs in enumerate([shared, *([r] for r in lasted if r not in shared)]):
            end = max(lasted[run] for run in runs) / self._time_unit
            start = min(self._by_run[run][0].window[0] for run in runs) / self._time_unit
            whole = (-MARGIN * end, (1 + MARGIN) * end)
            window = (start - MARGIN * (end - start), end + MARGIN * (end - start))
            axes.update(dict.fromkeys(runs, self._range(f"x{number}", whole, window)))
        return axes

    def _value_axes(
        self, kind: Kind, columns: tuple[str, str], log: bool
    ) -> dict[int, tuple[Range1d, bool]]:
        """A vertical range per run, and whether it is the run's own: one for all on a log scale,
        and on a linear one for those whose values can be compared by eye."""
        spans = {
            run: [_span(traces, columns, window) for window in (False, True)]
            for run, traces in self._by_run.items()
        }
        shared = list(spans)
        if not log:
            top = max(whole[1] for whole, _ in spans.values())
            shared = [r for r, (whole, _) in spans.items() if whole[1] * COMPARABLE_RATE >= top]
        axes = {}
        for number, runs in enumerate([shared, *([r] for r in spans if r not in shared)]):
            whole, window = (_padded([spans[run][i] for run in runs], log) for i in (0, 1))
            made = self._range(f"{kind}{number}", whole, window)
            axes.update(dict.fromkeys(runs, (made, number > 0)))
        return axes

    def _range(self, name: str, whole: Span, window: Span) -> Range1d:
        full_name = f"{self._section.anchor}-{name}"
        self._charts.ranges[full_name] = {"whole": whole, "window": window}
        return plot.span(*whole, name=full_name)

    # --- rows of panels

    def _panel(self, kind: Kind, run: int, y_range: Range1d, log: bool = False) -> figure:
        label = self._words(f"axis.{kind}")
        time = self._time[run]
        return plot.new_figure(HEIGHTS[kind], time, y_range, self._time_label, label, log_y=log)

    def _row(self, kind: Kind, columns: tuple[str, str], draw: Draw, log: bool = False) -> None:
        """A panel per run; the columns are those whose lowest and highest value must fit."""
        axes = self._value_axes(kind, columns, log)
        for run, traces in self._by_run.items():
            y_range, own = axes[run]
            panel = self._panel(kind, run, y_range, log)
            thinned = None
            for place, trace in enumerate(traces):
                source, points = self._sources[id(trace)]
                thinned = thinned or points
                draw(panel, trace, source, place)
            self._charts.panels.append(Panel(kind, run, panel, own, thinned))

    def _iops(self, panel: figure, trace: Trace, source: ColumnDataSource, place: int) -> None:
        colour = trace.run.colour
        found = trace.consistency
        if place == 0 and found is not None and trace.steadiness.verdict != "short":
            start, end = (t / self._time_unit for t in trace.window)
            plot.mark_window(panel, start, end, found.mean, colour)
        dots = panel.scatter(
            "t",
            "iops_drawn",
            source=source,
            size=5.0 if len(trace.time) <= FEW_POINTS else 3.4,
            fill_color=colour if place == 0 else None,
            fill_alpha=0.55,
            line_color=None if place == 0 else colour,
            line_alpha=0.6,
            line_width=0.8,
        )
        tips = [self._time_tip(), (self._words("hover.iops"), "@iops{0,0}")]
        plot.add_hover(panel, dots, tips, "mouse")

    def _throughput(
        self, panel: figure, trace: Trace, source: ColumnDataSource, place: int
    ) -> None:
        line = panel.line(
            "t",
            "mbs",
            source=source,
            color=trace.run.colour,
            line_width=1.2,
            line_dash=plot.dash(place),
        )
        if len(trace.time) <= VERY_FEW_POINTS:
            panel.scatter("t", "mbs", source=source, color=trace.run.colour, size=5)
        if place == 0:
            tips = [self._time_tip(), (self._words("axis.throughput"), "@mbs{0,0.[0]}")]
            plot.add_hover(panel, line, tips, "vline")

    def _latency(self, panel: figure, trace: Trace, source: ColumnDataSource, place: int) -> None:
        """Of a run's directions only the busiest: three lines are enough for one chart."""
        if place:
            return
        colour = trace.run.colour
        panel.scatter("t", "lat_max_ns", source=source, size=2.6, color=style.MUTED, alpha=0.45)
        panel.line("t", "lat_p99_ns", source=source, color=style.tint(colour, 0.5), line_width=1.2)
        panel.line("t", "lat_mean_ns", source=source, color=colour, line_width=1.6)

    def _parts_row(self) -> None:
        """Shares of the time by part, over time: means over at most `AREA_STEPS` stretches."""
        for run, traces in self._by_run.items():
            found = traces[0].part_shares(AREA_STEPS)
            if found is None:
                continue
            time, shares = found
            panel = self._panel("parts", run, plot.span(0.0, 100.0))
            order = [p for p in style.PART_COLOURS if p in shares]
            order += [p for p in shares if p not in order]
            data = {p: (100 * shares[p]).astype(np.float32) for p in order}
            source = ColumnDataSource({"t": (time / self._time_unit).astype(np.float32), **data})
            panel.varea_stack(
                order, x="t", source=source, color=[style.part_colour(part) for part in order]
            )
            self._charts.panels.append(Panel("parts", run, panel))

    def _flash_rows(self) -> None:
        """Write amplification, units collected and folded, and free blocks of simulated drives."""
        frames = {run: f for run, ts in self._by_run.items() if (f := ts[0].flash) is not None}
        rows: tuple[tuple[Kind, str, str], ...] = (
            ("wa", "wa", "@v{0.00}"),
            ("collection", "collected_units", "@v{0,0}"),
            ("folding", "folded_units", "@v{0,0}"),
            ("free", "free_blocks", "@v{0,0}"),
        )
        for kind, column, shown in rows:
            known = {
                run: (frame["time_s"].to_numpy(), values)
                for run, frame in frames.items()
                if column in frame.columns
                and np.isfinite(values := frame[column].cast(float).to_numpy()).any()
            }
            top = max((float(np.nanmax(v)) for _, v in known.values()), default=0.0)
            for run, (time, values) in known.items():
                panel = self._panel(kind, run, plot.span(0.0, max(top, 1.0) * 1.08))
                keep = keep_extremes([values])
                source = ColumnDataSource(
                    {
                        "t": (time[keep] / self._time_unit).astype(np.float32),
                        "v": values[keep].astype(np.float32),
                    }
                )
                colour = self._by_run[run][0].run.colour
                line = panel.line("t", "v", source=source, color=colour, line_width=1.2)
                tips = [self._time_tip(), (self._words(f"axis.{kind}"), shown)]
                plot.add_hover(panel, line, tips, "vline")
                self._charts.panels.append(Panel(kind, run, panel))

    def _cdf(self) -> figure | None:
        """The share of I/Os at most as slow as the latency, on an axis of nines."""
        known = [(t, t.latency) for t in self._section.traces if t.latency and t.latency.ios]
        if not known:
            return None
        nines = min(NINES_MAX, max(2.0, max(math.log10(d.ios) for _, d in known)))
        low = max(1.0, min(float(d.value_ns[0]) for _, d in known))
        high = max(d.max_ns for _, d in known)
        panel = plot.new_figure(
            HEIGHT_CDF,
            plot.span(low / 1.4, high * 1.4),
            plot.span(0.0, nines * 1.03),
            self._words("axis.latency"),
            self._words("axis.share"),
            log_x=True,
            zoom_both=True,
        )
        plot.latency_ticks(panel.xaxis[0], self._numbers)
        plot.nines_ticks(panel, nines, self._words)
        places: dict[int, int] = {}
        for trace, latency in known:
            place = places.get(trace.run.index, 0)
            places[trace.run.index] = place + 1
            value, longer = latency.cdf()
            source = ColumnDataSource(
                {
                    "ns": value.astype(np.float32),
                    "nines": (-np.log10(longer)).astype(np.float32),
                    "longer": longer.astype(np.float32),
                    "text": [self._numbers.latency(float(v)) for v in value],
                }
            )
            line = panel.line(
                "ns",
                "nines",
                source=source,
                color=trace.run.colour,
                line_width=2,
                line_dash=plot.dash(place),
            )
            tips = [
                (self._words("hover.latency"), "@text"),
                (self._words("hover.longer"), "@longer{0.[000000]%}"),
            ]
            plot.add_hover(panel, line, tips, "hline")
        return panel

    def _time_tip(self) -> tuple[str, str]:
        return self._time_label, "@t{0,0.[00]}"


def _span(traces: Sequence[Trace], columns: tuple[str, str], window: bool) -> Span:
    """Lowest positive value of the first column and highest of the second, over all or over the
    window judged."""
    bounds = []
    for column, pick in zip(columns, (np.min, np.max), strict=True):
        found = []
        for trace in traces:
            values = trace.column("bw_bytes") / 1e6 if column == "mbs" else trace.column(column)
            values = values[trace.steadiness.start :] if window else values
            values = values[values > 0]
            if len(values):
                found.append(float(pick(values)))
        bounds.append(float(pick(found)) if found else 1.0)
    return bounds[0], bounds[1]


def _padded(spans: Sequence[Span], log: bool) -> Span:
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    return (low / 1.6, high * 1.5) if log else (0.0, high * 1.08)
