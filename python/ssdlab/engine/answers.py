"""What judges build their answers from: numbers, curves, charts, and verdicts with reasons."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ssdlab import units
from ssdlab.answer import (
    NOT_DECIDED,
    Better,
    Cell,
    Cells,
    Check,
    Column,
    Curve,
    Figure,
    Number,
    Section,
    Style,
    Table,
    Verdict,
    columns,
    table,
)
from ssdlab.engine.records import Records
from ssdlab.histogram import NOTHING, Histogram

GRADES = ("good", "enough", "poor", "not measured")
UNDECIDING = ("cache", "steady", "load")
"""Checks whose doubt is enough to leave a question open; of others they must be bad."""
REPEAT = "repeat the run"
REMEDIES = {
    "cache": "measure the device itself with direct I/O, not a loop device or through a cache",
    "steady": "run longer, until the drive is steady",
    "quick": "run without --quick",
    "load": "repeat the run with nothing else at work",
    "cpu": "repeat the run with more threads or larger blocks",
    "heat": "cool the drive",
    "errors": "see what the drive reports (ssdlab health)",
    "unwritten": "write the whole range before it is read",
    "span": "measure a larger range",
    "data": "write data that does not compress",
    "pause": "repeat the run without interruption",
    "resumed": "repeat the run without interruption",
}
"""What to do about a doubt, by the name of its check."""
FEW_POINTS = 40
"""A line through so many points at most is drawn with them."""
Values = Iterable[Cell | float | None] | Iterable[tuple[float, Cell | float | None]]
"""Of a curve: values at the places 0, 1, 2 ..., or points."""


def number(name: str, cell: Cell, unit: str, better: Better = "") -> Number:
    """A cell as one of the few numbers that runs are compared by."""
    return Number(name, cell.value, unit, better, cell.sources)


def in_the_end(times: float) -> str:
    """When the rate holds that random writes of so many times the range came to."""
    return "in the long run" if times >= 1 else "in the last quarter of the time"


def too_little(times: float) -> str:
    """The sentence, behind another, for random writes of so many times the range that are too few
    for steady state; empty for more."""
    if times >= 1:
        return ""
    return f" Only {times:.2g} x the range was written: too little for steady state."


# --- cells of cells: each knows the steps of all


def best(cells: Iterable[Cell], choose: Callable[..., float] = max) -> Cell:
    """The best of what was measured."""
    every = list(cells)
    values = [cell.value for cell in every if cell.value is not None]
    return Cell(choose(values) if values else None, sources(every))


def mean(cells: Iterable[Cell]) -> Cell:
    """The mean of what was measured."""
    return best(cells, lambda values: sum(values) / len(values))


def ratio(cell: Cell, other: Cell, times: float = 1.0) -> Cell:
    """``times`` one / other; nothing where either is missing or the other is nothing."""
    known = cell.value is not None and other.value
    value = times * (cell.value or 0.0) / other.value if known and other.value else None
    return Cell(value, sources([cell, other]))


def percent(cell: Cell, other: Cell) -> Cell:
    """100 one / other; nothing as in :func:`ratio`."""
    return ratio(cell, other, 100)


def sources(cells: Iterable[Cell | None]) -> tuple[str, ...]:
    """The steps that cells come from, each once."""
    return tuple(dict.fromkeys(key for cell in cells if cell is not None for key in cell.sources))


# --- charts


def figure(
    title: str,
    x_label: str,
    y_label: str,
    curves: Mapping[str, Values],
    *,
    style: Style | Mapping[str, Style] = "points",
    from_steps: Iterable[str] = (),
    **more: Any,
) -> Figure:
    """A chart with a colour for each curve: wide unless it is of a group. Its steps are those of
    the cells among the values unless ``from_steps`` names them; ``more`` are fields of Figure."""
    drawn, cells = [], []
    for colour, (name, values) in enumerate(curves.items()):
        points = [
            value if isinstance(value, tuple) else (place, value)
            for place, value in enumerate(values)
        ]
        cells += [y for _, y in points if isinstance(y, Cell)]
        plain = [(float(x), y.value if isinstance(y, Cell) else y) for x, y in points]
        found = [(x, float(y)) for x, y in plain if y is not None and math.isfinite(y)]
        way = style if isinstance(style, str) else style[name]
        drawn.append(Curve(name, [x for x, _ in found], [y for _, y in found], way, colour))
    more = {
        "wide": "group" not in more,
        "sources": tuple(dict.fromkeys(from_steps)) or sources(cells),
        **more,
    }
    return Figure(title, x_label, y_label, drawn, **more)


def distribution(
    title: str,
    histograms: Mapping[str, Histogram | None],
    steps: Iterable[str],
    x_label: str = "latency, us",
    **more: Any,
) -> Figure:
    """The latency distributions (CCDF) of several sorts of I/O: how many take longer than a time
    (:meth:`ssdlab.histogram.Histogram.slower`)."""
    curves = {}
    for name, histogram in histograms.items():
        value, share = (histogram or NOTHING).slower()
        curves[name] = zip(value / 1e3, 100 * share, strict=True)
    axes: dict[str, Any] = {
        "log_x": True,
        "log_y": True,
        "style": "line",
        "from_steps": dict.fromkeys(steps),
    }
    return figure(title, x_label, "I/Os slower, %", curves, **axes, **more)


def charts(*figures: Figure) -> list[Figure]:
    """The charts of which something was measured, without empty curves and, on log axes, zeros,
    which have no place there; of a line through few points the points are shown too."""
    kept = []
    for one in figures:
        curves = [_drawable(each, one.log_x, one.log_y) for each in one.curves]
        curves = [each for each in curves if each.x]
        if curves:
            kept.append(replace(one, curves=curves))
    return kept


def _drawable(curve: Curve, log_x: bool, log_y: bool) -> Curve:
    points = [
        (float(x), float(y))
        for x, y in zip(curve.x, curve.y, strict=True)
        if (x > 0 or not log_x) and (y > 0 or not log_y)
    ]
    few = curve.style == "line" and len(points) <= FEW_POINTS
    style: Style = "points" if few else curve.style
    return Curve(curve.name, [x for x, _ in points], [y for _, y in points], style, curve.colour)


@dataclass(frozen=True)
class CellGrid:
    """Cells by row and column, both of which have names for people."""

    rows: Mapping[Any, str]
    columns: Mapping[Any, str]
    cells: Mapping[tuple[Any, Any], Cell]
    """By the keys of row and column."""

    def __getitem__(self, at: tuple[Any, Any]) -> Cell:
        return self.cells[at]

    def column(self, key: Any) -> dict[Any, Cell]:
        """The cells of a column by row."""
        return {row: self.cells[row, key] for row in self.rows}

    def table(self, title: str, corner: str, unit: str) -> Table:
        """As it is, every column in the same unit."""
        heads = [Column(corner), *(Column(name, unit) for name in self.columns.values())]
        rows: list[Cells] = [
            [name, *(self.cells[row, at] for at in self.columns)] for row, name in self.rows.items()
        ]
        return Table(title, heads, rows)

    def figure(
        self,
        title: str,
        x_label: str,
        y_label: str,
        place: Callable[[Any], float] | None = None,
        **more: Any,
    ) -> Figure:
        """A curve for each column over the rows, which stand at their ``place``, or side by side
        under their names."""
        if place is None:
            more = {"x_names": list(self.rows.values()), **more}
        curves = {
            name: [
                (float(at) if place is None else place(row), self.cells[row, column])
                for at, row in enumerate(self.rows)
            ]
            for column, name in self.columns.items()
        }
        return figure(title, x_label, y_label, curves, **more)

    def heat(self, title: str, labels: tuple[str, str], unit: str, **more: Any) -> Figure:
        """A heat map: coloured fields of one unit, the first row lowest; ``labels`` are those of
        the columns and of the rows."""
        places = [(x, y) for y in range(len(self.rows)) for x in range(len(self.columns))]
        cells = [self.cells[row, column] for row in self.rows for column in self.columns]
        x, y = ([float(place[axis]) for place in places] for axis in (0, 1))
        names = {"x_names": list(self.columns.values()), "y_names": list(self.rows.values())}
        values = [cell.value for cell in cells]
        fields = [Curve(unit, x, y, "heat", z=values)]
        more = {"wide": "group" not in more, "sources": sources(cells), **names, **more}
        return Figure(title, *labels, fields, **more)


def grid(
    rows: Mapping[Any, str], columns: Mapping[Any, str], cell: Callable[[Any, Any], Cell]
) -> CellGrid:
    """The cells that ``cell`` gives for each row and column."""
    return CellGrid(
        rows, columns, {(row, column): cell(row, column) for row in rows for column in columns}
    )


def both_scales(title: str, *axes: Any, **more: Any) -> list[Figure]:
    """A chart (:func:`figure`) on a linear and on a logarithmic axis, as far as there is anything;
    what it notes stands below the first."""
    return charts(
        figure(title, *axes, **more),
        figure(f"{title}, log scale", *axes, **{**more, "log_y": True, "note": ""}),
    )


@dataclass(frozen=True)
class Demand:
    """Something that a purpose asks of a drive."""

    what: str
    """Before the number: ``99 % of the log writes are safe within``, ``random writes:``."""
    measured: Cell
    unit: str
    good: float
    """A drive that reaches this does it well."""
    enough: float
    """One that does not reach this is not fit."""
    why: str
    """Why the limits are what they are, or what happens beyond them."""

    @property
    def value(self) -> float | None:
        """What was measured."""
        return self.measured.value

    @property
    def lower(self) -> bool:
        """Whether less is better."""
        return self.good <= self.enough

    @property
    def grade(self) -> str:
        """One of ``GRADES``."""
        if self.value is None or not math.isfinite(self.value):
            return "not measured"
        sign = 1 if self.lower else -1
        if sign * self.value <= sign * self.good:
            return "good"
        return "enough" if sign * self.value <= sign * self.enough else "poor"

    @property
    def name(self) -> str:
        """What is asked for, as tables write it."""
        return self.what.removesuffix(":")

    @property
    def found(self) -> str:
        """What was measured, as a clause."""
        return f"{self.what} {units.with_unit(self.value, self.unit)}"

    def said(self) -> str:
        """What was measured, the limit, and why that matters."""
        limit = self.good if self.grade == "enough" else self.enough
        way = "at most" if self.lower else "at least"
        wanted = "would be good" if self.grade == "enough" else "is needed"
        return f"{self.found} ({way} {units.with_unit(limit, self.unit)} {wanted}): {self.why}"


def verdict(purpose: str, demands: Sequence[Demand]) -> tuple[list[str], Table, Verdict]:
    """Whether a drive is fit for a purpose: in words, the demands as a table, and as a code."""
    grades = {grade: [demand for demand in demands if demand.grade == grade] for grade in GRADES}
    if len(grades["not measured"]) == len(demands):
        code = "not-measured"
        said = [f"Nothing has been measured that would say whether the drive is fit for {purpose}."]
    else:
        so_far = "As far as it was measured: " if grades["not measured"] else ""
        if grades["poor"]:
            code, head = "not-fit", f"not fit for {purpose}"
        elif grades["enough"]:
            code, head = "fit-with-reservations", f"fit for {purpose}, with reservations"
        else:
            code, head = "fit", f"well fit for {purpose}"
        said = [units.sentence(f"{so_far}{head}")]
        said += [units.sentence(f"Against it: {demand.said()}") for demand in grades["poor"]]
        said += [units.sentence(f"A reservation: {demand.said()}") for demand in grades["enough"]]
        if grades["good"]:
            said.append(units.sentence(f"Good: {units.listed([x.found for x in grades['good']])}"))
    asked = table(
        f"What {purpose} asks",
        demands,
        {
            "demand": lambda demand: demand.name,
            "why": lambda demand: demand.why,
            "good": lambda demand: _limit(demand, demand.good),
            "enough": lambda demand: _limit(demand, demand.enough),
            "measured": lambda demand: demand.measured,
            "unit": lambda demand: demand.unit,
            "grade": lambda demand: demand.grade,
        },
    )
    return said, asked, Verdict(code, {demand.name: demand.value for demand in demands})


def fitness(
    purpose: str,
    demands: Sequence[Demand],
    records: Records,
    parts: Sequence[Part],
    said: Iterable[str],
    figures: Iterable[Figure],
) -> Section:
    """Fit for a purpose or not, with what every part of the work came to; ``said`` follows the
    verdict."""
    head, asked, code = verdict(purpose, demands)
    numbers = [
        number(demand.name, demand.measured, demand.unit, "lower" if demand.lower else "higher")
        for demand in demands
    ]
    tables = [asked, work_table(records, parts)]
    return Section([*head, *said], numbers, tables, charts(*figures), verdict=code)


def undecided(why: str, remedy: str, **values: float | None) -> tuple[list[str], Verdict]:
    """The headline where the noise of a run's own numbers forbids an answer, and its verdict."""
    return [f"Not decided: {why}. {units.sentence(remedy)}"], Verdict(NOT_DECIDED, values)


def weighed(judged: Section, checks: Sequence[Check]) -> Section:
    """What was judged, taken back where a check says that the numbers cannot carry it: with one
    that is bad, or that doubts the path to the drive, its steadiness, or that it was alone."""
    against = [
        check
        for check in checks
        if check.status == "bad" or (check.status == "doubt" and check.name in UNDECIDING)
    ]
    if not against or not judged.sentences or judged.verdict.code == NOT_DECIDED:
        return judged
    names = units.listed(list(dict.fromkeys(check.title for check in against)))
    remedies = dict.fromkeys(REMEDIES.get(check.name, REPEAT) for check in against)
    said, verdict = undecided(f"doubts about {names}", "; ".join(remedies))
    values = {"measured": judged.verdict.code, **judged.verdict.values}
    first, *rest = judged.sentences
    return replace(
        judged,
        sentences=[*said, f"As measured: {first}", *rest],
        verdict=Verdict(verdict.code, values),
    )


def _limit(demand: Demand, limit: float) -> Cell:
    return Cell(limit, text=f"{'at most' if demand.lower else 'at least'} {units.number(limit)}")


# --- what steps came to

QUANTITIES = {
    "iops": "IOPS [IOPS]",
    "mbps": "speed [MB/s]",
    "mean": "mean latency [us]",
    "p50": "median [us]",
    "p99": "p99 [us]",
    "p99.9": "p99.9 [us]",
    "max": "max [us]",
    "commit p99": "p99 of write and flush, at most [us]",
    "commit p99.9": "p99.9 of write and flush, at most [us]",
}
"""Heads of the quantities of steps (:meth:`ssdlab.engine.records.Records.value`)."""
WORK = "iops mbps mean p99 p99.9 max"


@dataclass(frozen=True)
class Part:
    """A kind of work: what some steps, one direction of them, or one of their jobs did."""

    keys: str | Sequence[str]
    ddir: str | None
    title: str
    job: str | None = None

    def cell(self, records: Records, what: str) -> Cell:
        """A quantity of its steps. ``p99/read`` is that of one direction."""
        name, _, ddir = what.partition("/")
        return records.cell(name, self.keys, ddir or self.ddir, self.job)


def work_table(
    records: Records,
    parts: Sequence[Part],
    what: str = WORK,
    *,
    title: str = "What was measured",
    corner: str = "work",
    more: Mapping[str, Mapping[str, Cell | None]] | None = None,
) -> Table:
    """What several parts of the work came to: a column for each quantity, then ``more``, by head
    and title of the part."""
    heads = [corner]
    for one in what.split():
        name, _, ddir = one.partition("/")
        heads.append(f"{ddir} {QUANTITIES[name]}".strip())
    others = more or {}
    rows = [
        [
            part.title,
            *(part.cell(records, one) for one in what.split()),
            *(cells.get(part.title) for cells in others.values()),
        ]
        for part in parts
    ]
    return Table(title, columns(" | ".join([*heads, *others])), rows)


def demands(
    records: Records, rows: Iterable[tuple[str, str, tuple[str, ...], float, float, str]]
) -> list[Demand]:
    """What a purpose asks of steps: in words, of which quantity, of which step, direction and job,
    what is good, what is enough, and why."""
    found = []
    for what, quantity, (key, *of), good, enough, why in rows:
        (head,) = columns(QUANTITIES[quantity])
        cell = records.cell(quantity, key, *of)
        found.append(Demand(what, cell, head.unit, good, enough, why))
    return found


def part_distributions(records: Records, title: str, parts: Iterable[Part], **more: Any) -> Figure:
    """The latency distributions of several parts, each of one step."""
    found = {part.title: (str(part.keys), part.ddir, part.job) for part in parts}
    latencies = {name: records.latency(*at) for name, at in found.items()}
    return distribution(title, latencies, (key for key, _, _ in found.values()), **more)
