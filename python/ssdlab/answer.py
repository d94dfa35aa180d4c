"""What a study answers: a verdict, sentences, numbers, tables, figures, and what puts it in doubt.

A study builds one :class:`Answer`; terminal, page and JSON are each rendered from it by one
renderer (``cli/answer.py``, ``report/answer_page.py``, :meth:`Answer.as_json`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, TypeVar

from ssdlab import units
from ssdlab.quantities import Quantity, quantity

T = TypeVar("T")
Better = Literal["higher", "lower", ""]
"""Which way a number is good; empty for neither."""


Style = Literal[
    "line",
    "dashed",
    "dotted",
    "dots",
    "published",
    "points",
    "steps",
    "bars",
    "stack",
    "heat",
    "fields",
    "parallel",
]
"""How the points of a curve are drawn."""


@dataclass(frozen=True)
class Curve:
    """Points of a chart, or a line through them."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: Style = "line"
    """``published`` draws rings: numbers of an article. ``points`` draws a line with its points;
    ``steps`` the outline of a histogram; ``bars`` stand side by side with those of other curves,
    ``stack`` upon them; ``heat`` fields of unit size, coloured and labelled by ``z``; ``fields``
    the same in the one colour of the curve; ``parallel`` draws a line each time that ``x`` begins
    anew, the stronger the higher its ``z`` (0 to 1)."""
    colour: int | str = 0
    """Curves of one number are of one thing. A name is a colour of its own kind, such as that of a
    state of a piece (``report/style.py``)."""
    z: Sequence[float | None] = ()
    """Values of the fields of ``heat``; None where nothing was measured."""
    about: Sequence[str] = ()
    """What the pointer is told of each point besides."""
    keys: Sequence[str] = ()
    """Of each point the row of a table that it leads to (:attr:`Table.anchors`)."""
    choice: Sequence[str] = ()
    """Of each point for which values of :attr:`Figure.choices` it is drawn, joined by tabs."""


@dataclass(frozen=True)
class Figure:
    """A chart. Its title and the names of its curves say which charts of two runs are the same."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    log_x: bool = False
    log_y: bool = False
    y_max: float | None = None
    """End of the vertical axis where it is fixed."""
    y_min: float | None = None
    """Start of a linear vertical axis where it is not 0."""
    x_names: Sequence[str] = ()
    """Labels of the places 0, 1, 2 ... of the horizontal axis, where they are no numbers; empty for
    none."""
    y_names: Sequence[str] = ()
    """The same for the vertical axis."""
    wide: bool = False
    group: str = ""
    """Figures of one group stand side by side under this heading."""
    sources: tuple[str, ...] = ()
    """Keys of the steps that it shows; a step that fails a check marks the chart."""
    note: str = ""
    """A sentence below the chart."""
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values of what is held, by name: the page lets one choose, the first of each is drawn."""
    window: tuple[float, float] | None = None
    """A stretch of the horizontal axis that is shaded: what numbers are of."""


@dataclass(frozen=True)
class Cell:
    """A number of a table and what it was measured by."""

    value: float | None
    sources: tuple[str, ...] = ()
    """Keys of the steps that it comes from; a step that fails a check marks the number."""
    text: str = ""
    """How it is written, where not as the number of its column."""
    low: float | None = None
    high: float | None = None
    """Ends of the interval that its text tells."""
    unit: str = ""
    """Of the value, where that is another than its column's."""
    remark: str = ""
    """What its text says besides."""


Part = Literal["value", "low", "high", "unit", "remark"]
"""What programs have of the cells of a column."""
INTERVAL: tuple[Part, ...] = ("low", "high")


@dataclass(frozen=True)
class Column:
    """A column; ``unit`` decides how its numbers are written."""

    name: str
    unit: str = ""
    """``"IOPS"``, ``"MB/s"``, ``"us"``, ``"ms"``, ``"s"``, ``"%"``, ``"B"``, ``"x"``; empty for
    text and plain numbers."""
    values: str = ""
    """The unit of the values where the cells write it themselves."""
    head: str = ""
    """What programs make its name of, where that is not what people read."""
    parts: tuple[Part, ...] = ("value",)
    """What its cells hold: one column for people, one of each of these for programs."""

    @property
    def quantity(self) -> Quantity:
        """What programs call it, and its unit there."""
        return quantity(self.head or self.name, self.unit or self.values)


@dataclass(frozen=True)
class Table:
    """A table of the answer. A cell is a :class:`Cell`, text, or None for nothing measured."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str | None]]
    note: str = ""
    anchors: Sequence[str] = ()
    """A name of each row that points of charts lead to; empty for none."""
    repeat: str = ""
    """The command line that repeats what a row is of; its anchor goes in the place of ``KEY``."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.title}: {len(row)} cells for {len(self.columns)} columns")


@dataclass(frozen=True)
class Number:
    """One of the few numbers that an experiment is about: what runs are compared by."""

    name: str
    value: float | None
    unit: str
    better: Better = ""
    sources: tuple[str, ...] = ()
    ddir: str = ""
    job: str = ""
    """The direction and the job that it is of, each where there are others beside it."""

    @property
    def head(self) -> str:
        """What people read above it: ``IOPS, read`` or ``IOPS, log write``."""
        whose = " ".join(filter(None, (self.job, self.ddir)))
        return f"{self.name}, {whose}" if whose else self.name


class Ranked(StrEnum):
    """Words for how things are, from the best to the worst."""

    @property
    def rank(self) -> int:
        """Higher is worse."""
        return list(type(self)).index(self)


MARK = "†"
"""Stands behind a number, or by a chart, that a check puts in doubt."""
MARK_NOTE = f"{MARK} a check puts this number in doubt."

Status = Literal["good", "doubt", "bad", "unknown"]
"""``bad``: the number is not what it claims to be. ``doubt``: it may not be. ``unknown``: nobody
can tell from what was recorded."""


@dataclass(frozen=True)
class Check:
    """What a check says of a run's numbers."""

    name: str
    title: str
    status: Status
    evidence: str
    """What was seen."""
    why: str
    """Why that matters."""
    affects: tuple[str, ...] | None = None
    """Keys of the steps whose numbers it puts in doubt; None: all of them."""

    @property
    def trouble(self) -> bool:
        """Whether it puts numbers in doubt."""
        return self.status in WORDS

    @property
    def word(self) -> str:
        """What it says of those numbers; empty where it says nothing against them."""
        return WORDS.get(self.status, "")


WORDS: Mapping[Status, str] = {"bad": "not valid", "doubt": "in doubt"}
"""What checks say of numbers, the worse word first."""


def any_doubt(checks: Iterable[Check]) -> bool:
    """Whether numbers of a run that is examined as one carry a mark."""
    return any(check.trouble and check.affects != () for check in checks)


def marked(checks: Iterable[Check], keys: Sequence[str]) -> frozenset[str]:
    """The steps among ``keys`` that a check puts in doubt."""
    found: set[str] = set()
    for check in checks:
        if check.trouble:
            found.update(keys if check.affects is None else check.affects)
    return frozenset(found)


@dataclass(frozen=True)
class Verdict:
    """The answer for programs and tests: a code and the values that it rests on."""

    code: str = "measured"
    values: Mapping[str, float | str | None] = field(default_factory=dict)


NOT_DECIDED = "not-decided"
"""The code of a verdict that doubts forbid."""


@dataclass(frozen=True)
class Section:
    """One question of a study and what was found: what a protocol's ``judge`` returns."""

    sentences: Sequence[str] = ()
    """The answer in plain words, the most important first."""
    numbers: Sequence[Number] = ()
    """The few numbers that it is about: what runs are compared by."""
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    key: str = ""
    title: str = ""
    rows: Sequence[Mapping[str, Any]] = ()
    """What was measured, in full, for scripts."""
    verdict: Verdict = Verdict()
    checks: Sequence[Check] = ()
    """Whether its numbers can be believed, where they are of runs of its own; whoever makes an
    answer of several sections puts them together."""

    @property
    def telling(self) -> list[Table]:
        """The tables that say more than the numbers."""
        known = {number.name for number in self.numbers}
        return [
            one
            for one in self.tables
            # With more columns than name, value and unit there is more.
            if one.rows and (len(one.columns) > 3 or not {row[0] for row in one.rows} <= known)
        ]

    def as_json(self) -> dict[str, Any]:
        """The section for scripts; cells of tables by the heads of their columns."""
        return {
            "key": self.key,
            "title": self.title,
            "verdict": asdict(self.verdict),
            "sentences": list(self.sentences),
            "numbers": [asdict(number) for number in self.numbers],
            "tables": [_table_json(one) for one in self.tables],
            "figures": [asdict(figure) for figure in self.figures],
            "rows": [dict(row) for row in self.rows],
        }


CARE = frozenset({"audit", "health", "purge", "refresh", "trim"})
"""Kinds of answers of which scripts are told the data alone."""


@dataclass(frozen=True)
class Answer:
    """All that a study has to say. The first section is the answer itself, and leads."""

    title: str
    """What it is: the study and its target."""
    kind: str
    """Of study: ``protocol``, ``arrays``, ``comparison`` ..."""
    sections: Sequence[Section]
    checks: Sequence[Check] = ()
    """Whether the numbers can be believed, the worst first."""
    marks: frozenset[str] = frozenset()
    """Sources whose numbers and charts a check puts in doubt."""
    notes: Sequence[str] = ()
    """What was run and how, what the numbers rest on."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Job files and rigs by name."""
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of the target, the platform, the test: by heading and name."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What scripts find beside the answer, by key."""

    @property
    def lead(self) -> Section:
        """The section that answers."""
        return self.sections[0] if self.sections else Section()

    @property
    def headline(self) -> str:
        """The answer in one sentence; empty where nothing was found."""
        return next(iter(self.lead.sentences), "")

    @property
    def verdict(self) -> Verdict:
        """The answer for programs."""
        return self.lead.verdict

    @property
    def troubles(self) -> list[Check]:
        """The checks that put numbers in doubt."""
        return [check for check in self.checks if check.trouble]

    @property
    def document(self) -> Mapping[str, Any]:
        """What ``--json`` writes."""
        return self.data if self.kind in CARE else self.as_json()

    def as_json(self) -> dict[str, Any]:
        """The answer for scripts, as pages hold it."""
        own: dict[str, Any] = {
            **self.data,
            "study": self.kind,
            "title": self.title,
            "verdict": asdict(self.verdict),
            "sentences": list(self.lead.sentences),
            "numbers": [asdict(number) for number in self.lead.numbers],
            "sections": [section.as_json() for section in self.sections],
            "checks": [asdict(check) for check in self.checks],
            "notes": list(self.notes),
        }
        return {key: finite(value) for key, value in own.items()}


Cells = list[Cell | str | None]
"""Of a row."""


def size_cell(count: float | None) -> Cell:
    """A size in bytes, below a head with ``[=B]``."""
    return Cell(count, text="" if count is None else units.binary(count))


def duration_cell(seconds: float | None) -> Cell:
    """A stretch of time, below a head with ``[=s]``."""
    return Cell(seconds, text="" if seconds is None else units.duration(seconds))


def numbers(*values: float | None) -> Cells:
    """Cells of a row."""
    return [Cell(value) for value in values]


def table(
    title: str, rows: Iterable[T], cells: Mapping[str, Callable[[T], Cell | float | str | None]],
    note: str = "", parts: Mapping[str, tuple[Part, ...]] | None = None,
    optional: Collection[str] = (),
) -> Table:  # fmt: skip
    """A row for each of ``rows``, a column for each function of one by its head, as in
    :func:`columns`; ``parts`` are those of columns by name, where they are not the values alone.
    An ``optional`` column is left out where no row has a value in it."""
    lines = [[_as_cell(of(row)) for of in cells.values()] for row in rows]
    own = parts or {}
    heads = [replace(one, parts=own.get(one.name, one.parts)) for one in columns(" | ".join(cells))]
    shown = [
        place
        for place, one in enumerate(heads)
        if one.name not in optional or any(value_of(line[place]) is not None for line in lines)
    ]
    found = [[line[place] for place in shown] for line in lines]
    return Table(title, [heads[place] for place in shown], found, note)


def _as_cell(value: Cell | float | str | None) -> Cell | str | None:
    return value if value is None or isinstance(value, str | Cell) else Cell(value)


def family(
    x: Iterable[float], named: Mapping[str, Sequence[float]], style: Style = "points"
) -> list[Curve]:
    """Curves over the same places, each of its own colour."""
    places = [float(one) for one in x]
    return [
        Curve(name, places, list(y), style, colour)
        for colour, (name, y) in enumerate(named.items())
    ]


def by_name(
    title: str, unit: str, names: Sequence[str], named: Mapping[str, Sequence[float]],
    style: Style = "bars", **more: Any,
) -> Figure:  # fmt: skip
    """A chart over places that have names; ``more`` is passed on to :class:`Figure`."""
    curves = family(range(len(names)), named, style)
    return Figure(title, "", unit, curves, x_names=names, **more)


def columns(heads: str) -> list[Column]:
    """Columns of a table, written ``name [unit] | name [unit]``; a name alone has no unit; cells
    below ``name [=unit]`` write it themselves."""
    matches = [
        re.fullmatch(r"(.*?)(?: \[(=?)(.*)\])?", head.strip()) for head in heads.split(" | ")
    ]
    return [
        Column(match[1], "", match[3]) if match[2] else Column(match[1], match[3] or "")
        for match in matches
        if match is not None
    ]


def heading(column: Column) -> str:
    """The head of a column with its unit, where the numbers do not carry that themselves."""
    own = column.unit in ("", "B") or column.unit == column.name
    return column.name if own else f"{column.name}, {column.unit}"


def cell_text(cell: Cell | str | None, unit: str = "", marks: Collection[str] = ()) -> str:
    """A cell as tables write it, with its mark of doubt."""
    if not isinstance(cell, Cell):
        return units.DASH if cell is None else cell
    text = cell.text or units.number(cell.value, unit)
    doubted = text != units.DASH and any(key in marks for key in cell.sources)
    return text + (MARK if doubted else "")


def value_of(cell: Cell | str | None) -> float | str | None:
    """A cell as programs read it."""
    return cell.value if isinstance(cell, Cell) else cell


def in_gigabytes(number: Number) -> Number:
    """The number as people read it beside its unit: bytes as GB."""
    if number.unit != "B":
        return number
    return replace(number, value=number.value and number.value / 1e9, unit="GB")


def numbers_table(numbers: Sequence[Number]) -> Table:
    """The numbers as a table."""
    cells: Mapping[str, Callable[[Number], Cell | str | None]] = {
        "number": lambda one: one.name,
        "job": lambda one: one.job or None,
        "ddir": lambda one: one.ddir or None,
        "value": lambda one: Cell(one.value, one.sources, units.number(one.value, one.unit)),
        "unit": lambda one: one.unit,
    }
    return table("Numbers", map(in_gigabytes, numbers), cells, optional=["job", "ddir"])


def for_programs(table: Table) -> Table:
    """The table with a column for each part of its cells."""
    parts = [(place, part) for place, one in enumerate(table.columns) for part in one.parts]
    heads = [_part_column(table.columns[place], part) for place, part in parts]
    rows = [
        [_part(row[place], part, table.columns[place].unit) for place, part in parts]
        for row in table.rows
    ]
    return replace(table, columns=heads, rows=rows)


def _part_column(column: Column, part: Part) -> Column:
    if "unit" in column.parts:
        column = replace(column, unit="", values="")
    if part == "value":
        return replace(column, parts=("value",))
    head = column.head and f"{column.head} {part}"
    if part in INTERVAL:
        return replace(column, name=f"{column.name} {part}", head=head, parts=("value",))
    return Column(f"{column.name} {part}", head=head)


def _part(cell: Cell | str | None, part: Part, unit: str) -> Cell | str | None:
    if part == "value" or not isinstance(cell, Cell):
        return cell if part == "value" else None
    if part == "unit":
        return cell.unit or unit or None
    if part == "remark":
        return cell.remark or None
    return Cell(cell.low if part == "low" else cell.high, cell.sources)


def table_heads(table: Table) -> list[str]:
    """The heads of a table with the units of their values, as programs read them: each once."""
    return heads_of(for_programs(table).columns)


def heads_of(told: Sequence[Column]) -> list[str]:
    """The heads of columns with the units of their values, each once."""
    names = Counter(column.name for column in told)
    heads: list[str] = []
    for column in told:
        name = column.head or column.name if names[column.name] > 1 else column.name
        unit = column.unit or column.values
        head = name if unit in ("", name) else f"{name}, {unit}"
        again = sum(one == head or one.startswith(f"{head} (") for one in heads)
        heads.append(f"{head} ({again + 1})" if again else head)
    return heads


def table_values(table: Table) -> list[list[float | str | None]]:
    """A table as programs read it: its heads, and a list for each row."""
    rows = for_programs(table).rows
    return [[*table_heads(table)], *([value_of(cell) for cell in row] for row in rows)]


def finite(value: Any) -> Any:
    """A document for JSON: what is no finite number is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list | tuple) else value


def _table_json(table: Table) -> dict[str, Any]:
    heads, *lines = table_values(table)
    rows = [dict(zip(map(str, heads), line, strict=True)) for line in lines]
    return {"title": table.title, "rows": rows, "note": table.note}
