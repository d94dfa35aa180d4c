"""What a function found, for notebooks and scripts: an answer with tables, charts and a page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ssdlab.answer import (
    Answer,
    Check,
    Figure,
    Number,
    Table,
    Verdict,
    finite,
    for_programs,
    table_values,
)
from ssdlab.api.chart import Chart
from ssdlab.errors import known_name, unknown_name
from ssdlab.output import Output
from ssdlab.quantities import quantity, told_apart
from ssdlab.results import Result
from ssdlab.tables import named_tables

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What a study found. Terminal, page, JSON and notebooks show the same :attr:`answer`."""

    answer: Answer
    """Verdict, sentences, numbers, tables, charts, and what puts them in doubt."""
    results: Sequence[Result] = ()
    """The runs of job files that it is about, where there are any."""
    runs: Sequence[str] = ()
    """Ids of kept runs that it is about, as :func:`ssdlab.load` takes them."""
    table: pl.DataFrame | None = field(default=None)
    """All that was measured, a row each, where that is more than the answer tells."""

    @property
    def title(self) -> str:
        """What it is: the study and its target."""
        return self.answer.title

    @property
    def sentences(self) -> list[str]:
        """The answer in plain words, the most important first."""
        return list(self.answer.lead.sentences)

    @property
    def numbers(self) -> dict[str, Number]:
        """The few numbers that it is about, by name (``iops``, ``clat_p99_ns``); each has ``value``
        (None where nothing was measured) and ``unit``."""
        return dict(map(_number, self.answer.lead.numbers))

    @property
    def verdict(self) -> Verdict:
        """The answer for programs: a code and the values that it rests on."""
        return self.answer.verdict

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """Those of all sections, by section."""
        return {
            section.key or section.title or str(place): section.verdict
            for place, section in enumerate(self.answer.sections)
        }

    @property
    def texts(self) -> dict[str, str]:
        """Job files and rigs that it is about, by name."""
        return dict(self.answer.texts)

    @property
    def checks(self) -> list[Check]:
        """Whether the numbers can be believed, the worst first."""
        return list(self.answer.checks)

    @property
    def result(self) -> Result:
        """The run that it is about.

        Raises:
            AttributeError: it is about none, or about several.
        """
        if len(self.results) != 1:
            raise AttributeError(f"{self.title}: is about {len(self.results)} runs; see results")
        return self.results[0]

    @cached_property
    def _tables(self) -> Mapping[str, Table]:
        return dict(named_tables(self.answer))

    @property
    def tables(self) -> list[str]:
        """Names of the tables, as :meth:`frame` and the files of ``--csv`` have them."""
        return list(self._tables)

    def frame(self, table: str | None = None) -> pl.DataFrame:
        """A table as a frame; without a name that of all that was measured, else the first.

        A row for each thing measured. Columns have the names of :meth:`ssdlab.Result.summary`, with
        their units (``clat_p99_ns``, ``bw_bytes``); what was not measured is null.
        ``frame().to_pandas()`` makes a frame of pandas, where that is.

        Raises:
            UnknownNameError: no table has the name.
        """
        if table is not None:
            return table_frame(self._tables[known_name("table of this report", table, self.tables)])
        if self.table is not None:
            return self.table
        if self.answer.lead.rows:
            return frame_of(self.answer.lead.rows)
        told = [one for section in self.answer.sections for one in section.telling]
        return table_frame(next(iter([*told, *self._tables.values()]), Table("", [], [])))

    def plot(self, title: str | None = None) -> LayoutDOM:
        """The main chart, as the page has it, or that called ``title``: a figure of bokeh, a
        layout where several stand side by side; an empty layout where there are none.

        Raises:
            UnknownNameError: no chart has the title.
        """
        from ssdlab.report import drawing

        if title is None:
            return drawing.standing_alone(drawing.main_group(self._figures))
        return drawing.standing_alone(self._called(title))

    def chart(self, title: str) -> Chart:
        """The chart called ``title``, to show in a notebook and to add curves to.

        Raises:
            UnknownNameError: no chart has the title.
        """
        return Chart.of(self._called(title)[0])

    @property
    def _figures(self) -> list[Figure]:
        return [figure for section in self.answer.sections for figure in section.figures]

    def _called(self, title: str) -> list[Figure]:
        named = [figure for figure in self._figures if figure.title == title]
        if not named:
            raise unknown_name("chart of this report", title, self.charts)
        return named

    @property
    def charts(self) -> list[str]:
        """Titles of the charts, as :meth:`plot` and :meth:`chart` take them."""
        return list(dict.fromkeys(figure.title for figure in self._figures))

    def page(self, path: str | Path, *, title: str | None = None) -> None:
        """Writes the page: one HTML file that needs no network.

        Raises:
            InputError: nothing can be written there.
            ExperimentError: the disk is full.
        """
        from ssdlab.report import answer_page

        answer_page.render(self.answer, Output(path), title=title)

    def json(self, indent: int | None = 2) -> str:
        """The answer as JSON text, the same as ``--json`` of the command."""
        return json.dumps(finite(self.answer.document), indent=indent)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, to the last number."""
        if not isinstance(other, Report):
            return NotImplemented
        return self.answer.as_json() == other.answer.as_json() and _equal(self.table, other.table)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        told = [self.title, *([self.answer.headline] if self.answer.headline else [])]
        more = [f"tables: {', '.join(self.tables)}"] if self.tables else []
        return f"<ssdlab.Report {'; '.join([*told, *more])}>"

    def _repr_html_(self) -> str:
        """The first screen of the page, for notebooks: as text and drawn without scripts."""
        from ssdlab.report import cell

        return cell.first_screen(self.answer)


def of_results(results: Sequence[Result], runs: Sequence[str] = ()) -> Report:
    """Runs of job files beside each other.

    Raises:
        InputError: there are none.
    """
    from ssdlab.analysis.measurement import row_numbers
    from ssdlab.answers import run

    rows = [
        {"run": result.name, **row_numbers(row)} for result in results for row in result.summary()
    ]
    return Report(run.answer(results), results, runs, pl.DataFrame(rows, infer_schema_length=None))


def flat(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """A row without rows in it: ``{"a": {"b": 1}}`` is ``{"a_b": 1}``; texts of a list are one."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        name = before + key
        if isinstance(value, Mapping):
            found |= flat(value, f"{name}_")
        elif isinstance(value, list | tuple) and not all(isinstance(v, int | float) for v in value):
            if not any(isinstance(one, Mapping) for one in value):
                found[name] = ", ".join(map(str, value))
        else:
            found[name] = value or None if isinstance(value, list | tuple) else value
    return found


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """A frame of what programs are told in rows."""
    frame = pl.DataFrame([flat(row) for row in rows], infer_schema_length=None, strict=False)
    # What holds values in one row may be nothing in another.
    whole = [
        column for column in frame.columns if any(o.startswith(f"{column}_") for o in frame.columns)
    ]
    return frame.drop(one for one in whole if frame[one].dtype == pl.Null)


def table_frame(table: Table) -> pl.DataFrame:
    """A table with the names and units that programs have (:mod:`ssdlab.quantities`); where rows
    say of which quantity they are, it is theirs."""
    table = for_programs(table)
    heads = [column.name for column in table.columns]
    told = [column.quantity for column in table.columns]
    names = told_apart(one.name for one in told)
    named = next((heads.index(one) for one in ("number", "quantity") if one in heads), None)
    unit = heads.index("unit") if "unit" in heads and named is not None else None
    rows = table_values(table)[1:]
    for row in rows:
        own = None
        if unit is not None and named is not None:
            own = quantity(str(row[named]), str(row[unit] or ""))
            row[named], row[unit] = own.name, own.unit
        for place, (column, kind) in enumerate(zip(table.columns, told, strict=True)):
            value = row[place]
            if isinstance(value, int | float):
                plain = own is not None and not column.unit and not column.values
                row[place] = (own if plain and own else kind).of(value)
    columns = {name: [row[n] for row in rows] for n, name in enumerate(names)}
    return pl.DataFrame({name: _series(name, values) for name, values in columns.items()})


def _series(name: str, values: Sequence[float | str | None]) -> pl.Series:
    """Numbers; text where the cells of a column are mixed."""
    if any(isinstance(value, str) for value in values):
        return pl.Series(name, [None if v is None else str(v) for v in values], pl.String())
    return pl.Series(name, values, pl.Float64(), strict=False)


def _number(number: Number) -> tuple[str, Number]:
    """A number under the name that programs have for it, in the unit of that."""
    own = quantity(number.name, number.unit)
    value = None if number.value is None else own.of(number.value)
    return own.name, replace(number, value=value, unit=own.unit)


def _equal(frame: pl.DataFrame | None, other: pl.DataFrame | None) -> bool:
    if frame is None or other is None:
        return frame is other
    return frame.equals(other)
