"""What charts and tables are made of, whoever draws them: experiments and protocols alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Better = Literal["higher", "lower", ""]
"""Which way a number is good; empty for neither."""


Style = Literal["line", "dashed", "dotted", "dots", "published", "points", "steps", "bars", "heat"]
"""How the points of a curve are drawn."""


@dataclass(frozen=True)
class Curve:
    """Points of a chart, or a line through them."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: Style = "line"
    """``published`` draws rings: numbers of an article. ``points`` draws a line with its points;
    ``steps`` the outline of a histogram; ``bars`` stand side by side with those of other curves;
    ``heat`` fields of unit size, coloured and labelled by ``z``."""
    colour: int = 0
    z: Sequence[float | None] = ()
    """Values of the fields of ``heat``; None where nothing was measured."""


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
    """Begin of a linear vertical axis where it is not 0."""
    x_names: Sequence[str] = ()
    """What the places 0, 1, 2 ... of the horizontal axis are called, where they are no numbers."""
    y_names: Sequence[str] = ()
    """The same for the vertical axis."""
    wide: bool = False
    group: str = ""
    """Figures of one group stand side by side under this heading."""
    sources: tuple[str, ...] = ()
    """Keys of the steps that it shows; a step that fails a check marks the chart."""
    note: str = ""
    """A sentence below the chart."""


@dataclass(frozen=True)
class Cell:
    """A number of a table and what it was measured by."""

    value: float | None
    sources: tuple[str, ...] = ()
    """Keys of the steps that it comes from; a step that fails a check marks the number."""


@dataclass(frozen=True)
class Column:
    """A column; ``unit`` decides how its numbers are written."""

    name: str
    unit: str = ""
    """``"IOPS"``, ``"MB/s"``, ``"us"``, ``"ms"``, ``"s"``, ``"%"``, ``"B"``, ``"x"``; empty for
    text and plain numbers."""


@dataclass(frozen=True)
class Table:
    """A table of the answer. A cell is a :class:`Cell`, text, or None for nothing measured."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str | None]]
    note: str = ""


@dataclass(frozen=True)
class Number:
    """One of the few numbers that an experiment is about: what runs are compared by."""

    name: str
    value: float | None
    unit: str
    better: Better = ""
    sources: tuple[str, ...] = ()


_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")


def heading(column: Column) -> str:
    """The head of a column with its unit, where the numbers do not carry that themselves."""
    own = column.unit in ("", "B") or column.unit == column.name
    return column.name if own else f"{column.name}, {column.unit}"


def figure_text(value: float | None, unit: str = "") -> str:
    """A number as tables write it: three figures, whole from 100 on, thousands apart."""
    if value is None or not math.isfinite(value):
        return "-"
    if unit == "B":
        power = min(max(0, math.floor(math.log10(max(abs(value), 1)) / 3)), len(_SIZES) - 1)
        return f"{value / 1000**power:.3g} {_SIZES[power]}"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def in_gigabytes(number: Number) -> Number:
    """The number as people read it beside its unit: bytes as GB."""
    if number.unit != "B":
        return number
    value = None if number.value is None else number.value / 1e9
    return replace(number, value=value, unit="GB")


def says_only(table: Table, numbers: Sequence[Number]) -> bool:
    """Whether a table says nothing that the numbers do not say."""
    if len(table.columns) > 3:  # more than name, value and unit
        return False
    return {row[0] for row in table.rows} <= {number.name for number in numbers}
