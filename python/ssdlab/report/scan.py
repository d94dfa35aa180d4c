"""The page of a scan: a map, the speed over the address, and the places that are bad."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker
from bokeh.models.annotations import Span
from bokeh.plotting import figure

from ssdlab.care import scansay
from ssdlab.care.blockio import PIECE_BYTES
from ssdlab.care.scan import Scan, Slow
from ssdlab.care.scanmap import STATES, Cell, State, cells
from ssdlab.output import Place, write_to
from ssdlab.report import plot, style
from ssdlab.report.catalogue import ENGLISH, Catalogue
from ssdlab.report.numbers import Numbers
from ssdlab.report.shell import filled
from ssdlab.report.tables import Cell as TableCell
from ssdlab.report.tables import Table

COLUMNS = 64
ROWS_MAX = 24
ROW_PX = 17
STRETCHES = 1000
"""Of the curves, at most."""
HEIGHT = 260
ROWS_LISTED_MAX = 1000
"""Of a table; the JSON has all."""

COLOURS: Mapping[State, str] = {
    "quick": "#bcd7cb",
    "fair": "#e3cf8f",
    "weak": "#d99b58",
    "zero": "#e9e6de",
    "late": "#8fb3d4",
    "slow": "#8b4a9b",
    "bad": "#b3261e",
    "unread": "#ffffff",
}
"""From what is well to what is not; apart in lightness too, for colour-blind readers."""

_UNITS = ((10**12, "unit.tb"), (10**9, "unit.gb"), (10**6, "unit.mb"), (10**3, "unit.kb"))


def render(found: Scan, place: Place) -> None:
    """Writes the page of one scan: one HTML file without network access.

    Raises as :class:`ssdlab.output.Output` does.
    """
    write_to(place, Page(found, ENGLISH).html())


class Page:
    """Everything that the template asks for."""

    def __init__(self, found: Scan, words: Catalogue) -> None:
        self.found, self.words = found, words
        self.numbers = Numbers(words)
        self.cells = cells(found, COLUMNS * ROWS_MAX)
        size = max(found.wanted_bytes, 1)
        self.unit, key = next(((u, k) for u, k in _UNITS if size >= 2 * u), (1, "unit.b"))
        self.unit_name = words(key)

    def html(self) -> str:
        """The page."""
        words, found = self.words, self.found
        figures = {"chart-map": self._map()}
        below = []
        if np.isfinite(found.ns).any():
            figures |= {"chart-speed": self._speed(), "chart-time": self._time()}
            below = [self._below("speed", figures), self._below("time", figures)]
        length = self.numbers.written(self.cells[0].length)
        return filled(
            "scan.html.j2",
            words,
            found.target,
            figures,
            lede=self._lede(),
            findings=[one[:1].upper() + one[1:] + "." for one in scansay.sentences(found)],
            legend=self._legend(),
            map={
                "id": "chart-map",
                "height": figures["chart-map"].height,
                "note": words("scan.map_note", cell=length),
            },
            charts_below=below,
            tables=list(self._tables()),
        )

    def _lede(self) -> list[str]:
        found, n = self.found, self.numbers
        said = [
            self.words(
                "scan.lede",
                amount=n.written(found.read_bytes),
                size=n.written(found.size_bytes),
                time=n.seconds(found.seconds),
                rate=n.rate(found.bytes_per_s()),
            )
        ]
        if found.stopped:
            said.append(self.words("scan.lede_stopped", why=found.stopped))
        return said

    def _legend(self) -> list[Mapping[str, str]]:
        counts = {state: sum(c.state == state for c in self.cells) for state in STATES}
        return [
            {
                "colour": COLOURS[state],
                "name": self.words(f"scan.{state}", count=self.numbers.plain(counts[state])),
            }
            for state in STATES
            if counts[state]
        ]

    # --- charts

    def _map(self) -> figure:
        shown = self.cells
        rows = -(-len(shown) // COLUMNS)
        chart = plot.new_figure(
            rows * ROW_PX + 40,
            plot.span(0, COLUMNS),
            plot.span(rows, 0),
            "",
            self.words("scan.row"),
        )
        places = np.arange(len(shown))
        source = ColumnDataSource(
            {
                "x": places % COLUMNS + 0.5,
                "y": places // COLUMNS + 0.5,
                "colour": [COLOURS[c.state] for c in shown],
                "edge": [style.RULE if c.state == "unread" else COLOURS[c.state] for c in shown],
                "at": [self._address(c.offset) for c in shown],
                "took": [self.numbers.latency(c.slowest_ns) for c in shown],
                "rate": [self.numbers.rate(_rate(c)) for c in shown],
                "state": [self._state(c) for c in shown],
            }
        )
        drawn = chart.rect(
            "x",
            "y",
            width=0.88,
            height=0.84,
            source=source,
            fill_color="colour",
            line_color="edge",
            line_width=0.5,
        )
        tips = [("", "@at"), ("", "@state"), ("", "@rate"), ("", "@took")]
        plot.add_hover(chart, drawn, tips, "mouse")
        chart.xaxis[0].visible = False
        chart.ygrid[0].grid_line_color = None
        every = max(1, -(-rows // 8))
        ticks = [row + 0.5 for row in range(0, rows, every)]
        chart.yaxis[0].ticker = FixedTicker(ticks=ticks)
        chart.yaxis[0].major_label_overrides = {
            tick: self._address(shown[int(tick) * COLUMNS].offset) for tick in ticks
        }
        chart.yaxis[0].major_tick_out = 0
        return chart

    def _state(self, cell: Cell) -> str:
        name = self.words(f"scan.{cell.state}", count="").split(" (")[0]
        lost = f", {self.numbers.written(cell.bad_bytes)}" if cell.bad_bytes else ""
        return name + lost

    def _address(self, offset: int) -> str:
        digits = 2 if self.found.wanted_bytes < 20 * self.unit else 0
        return f"{offset / self.unit:.{digits}f} {self.unit_name}"

    def _speed(self) -> figure:
        zones = self.found.zones(STRETCHES)
        x = np.array([(one.offset + one.length / 2) / self.unit for one in zones])
        y = np.array([one.bytes_per_s / 1e6 for one in zones])
        chart = self._over_address(plot.span(0.0, 1.08 * float(np.nanmax(y))), "scan.speed_label")
        source = ColumnDataSource(
            {
                "x": x,
                "y": y,
                "at": [self._address(one.offset) for one in zones],
                "rate": [self.numbers.rate(one.bytes_per_s) for one in zones],
            }
        )
        drawn = chart.line("x", "y", source=source, color=style.RUN_COLOURS[0], line_width=1.5)
        plot.add_hover(chart, drawn, [("", "@at"), ("", "@rate")], "vline")
        return chart

    def _time(self) -> figure:
        found = self.found
        _, limit = found.limits
        x, low, high = _extremes(found.ns, STRETCHES)
        x = x * PIECE_BYTES / self.unit
        ends = float(np.nanmin(low)), max(limit, float(np.nanmax(high)))
        middle, reach = math.sqrt(ends[0] * ends[1]), max(ends[1] / ends[0], 4.0)
        room = math.sqrt(reach) * 1.15
        span = plot.span(middle / room, middle * room)
        chart = self._over_address(span, "scan.time_label", log_y=True)
        colour = style.RUN_COLOURS[0]
        chart.varea(x=x, y1=low, y2=high, color=colour, fill_alpha=0.25)
        chart.line(x, high, color=colour, line_width=1)
        chart.line(x, low, color=colour, line_width=1, line_alpha=0.5)
        chart.add_layout(
            Span(location=limit, dimension="width", line_color=style.INK, line_dash=[5, 4])
        )
        for wanted, state in ((False, "late"), (True, "slow")):
            marked = [one for one in found.slow if bool(one.place) is wanted]
            if marked:
                source = ColumnDataSource(
                    {
                        "x": [one.offset / self.unit for one in marked],
                        "y": [one.ns for one in marked],
                        "at": [self._address(one.offset) for one in marked],
                        "took": [self.numbers.latency(one.ns) for one in marked],
                    }
                )
                drawn = chart.scatter(
                    "x",
                    "y",
                    source=source,
                    size=6,
                    color=COLOURS["slow" if state == "slow" else "late"],
                    line_color=style.INK,
                    line_width=0.5,
                )
                plot.add_hover(chart, drawn, [("", "@at"), ("", "@took")], "mouse")
        for error in found.errors[:ROWS_LISTED_MAX]:
            chart.add_layout(
                Span(
                    location=error.offset / self.unit,
                    dimension="height",
                    line_color=COLOURS["bad"],
                    line_width=1.5,
                )
            )
        plot.latency_ticks(chart.yaxis[0], self.numbers)
        return chart

    def _over_address(self, y_range: Any, label: str, *, log_y: bool = False) -> figure:
        room = 0.012 * self.found.wanted_bytes / self.unit
        return plot.new_figure(
            HEIGHT,
            plot.span(-room, self.found.wanted_bytes / self.unit + room),
            y_range,
            self.words("scan.address", unit=self.unit_name),
            self.words(label),
            log_y=log_y,
        )

    def _below(self, name: str, figures: Mapping[str, figure]) -> Mapping[str, Any]:
        median, limit = self.found.limits
        stretch = self.numbers.written(self.found.zones(STRETCHES)[0].length)
        values = {
            "stretch": stretch,
            "median": self.numbers.latency(median),
            "limit": self.numbers.latency(limit),
        }
        return {
            "id": f"chart-{name}",
            "title": self.words(f"scan.{name}"),
            "note": self.words(f"scan.{name}_note", **values),
            "height": figures[f"chart-{name}"].height,
        }

    # --- tables

    def _tables(self) -> list[tuple[str, Table]]:
        found, words, n = self.found, self.words, self.numbers
        tables = []
        rows: list[tuple[TableCell, ...]]
        if found.errors:
            rows = [
                (
                    TableCell(f"{one.offset:,}", str(one.offset), head=True),
                    TableCell(f"{one.length:,}", str(one.length)),
                    TableCell(one.reason if one.exact else words("scan.coarse", reason=one.reason)),
                )
                for one in found.errors[:ROWS_LISTED_MAX]
            ]
            tables.append((words("scan.errors"), self._table(("from", "length", "reason"), rows)))
        if found.slow:
            worst = sorted(found.slow, key=lambda one: -one.ns)[:ROWS_LISTED_MAX]
            rows = [
                (
                    TableCell(f"{one.offset:,}", str(one.offset), head=True),
                    TableCell(n.latency(one.ns), repr(one.ns)),
                    TableCell(", ".join(n.latency(ns) for ns in one.again_ns) or words("none")),
                    TableCell(words(_verdict(one))),
                )
                for one in worst
            ]
            head = ("from", "took", "again", "what")
            tables.append((words("scan.slow_places"), self._table(head, rows)))
        rows = [
            (
                TableCell(self._address(one.offset), str(one.offset), head=True),
                TableCell(self._address(one.offset + one.length), str(one.offset + one.length)),
                TableCell(n.rate(one.bytes_per_s), repr(one.bytes_per_s)),
                TableCell(n.latency(one.slowest_ns), repr(one.slowest_ns)),
            )
            for one in found.zones(16)
        ]
        tables.append((words("scan.zones"), self._table(("from", "to", "rate", "slowest"), rows)))
        return tables

    def _table(self, head: Sequence[str], rows: Sequence[tuple[TableCell, ...]]) -> Table:
        return Table(tuple(self.words(f"scan.{key}") for key in head), tuple(rows))


def _verdict(one: Slow) -> str:
    if one.place is None:
        return "scan.is_unknown"
    return "scan.is_slow" if one.place else "scan.is_late"


def _rate(cell: Cell) -> float:
    return 1e9 * PIECE_BYTES / cell.mean_ns if cell.mean_ns > 0 else float("nan")


def _extremes(values: Any, count: int) -> tuple[Any, Any, Any]:
    """Place, least and greatest of each of at most ``count`` stretches; NaN where nothing is."""
    each = max(1, -(-len(values) // count))
    rows = -(-len(values) // each)
    padded = np.full(rows * each, np.nan)
    padded[: len(values)] = values
    table = padded.reshape(rows, each)
    known = np.isfinite(table)
    low = np.where(known, table, np.inf).min(axis=1)
    high = np.where(known, table, -np.inf).max(axis=1)
    empty = ~known.any(axis=1)
    low[empty] = high[empty] = np.nan
    return (np.arange(rows) + 0.5) * each, low, high
