"""The page of a study of arrays or a plan: what to take and why, charts, tables, jobs, rigs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bokeh.plotting import figure

from ssdlab.arrays.chapters import Chapter
from ssdlab.figures import Cell as Value
from ssdlab.figures import Table as Measured
from ssdlab.figures import figure_text
from ssdlab.output import Place, write_to
from ssdlab.report import drawing
from ssdlab.report.catalogue import ENGLISH, Catalogue
from ssdlab.report.shell import filled
from ssdlab.report.tables import Cell, Table

KINDS = {"arrays": "array.kind", "plan": "plan.kind"}
"""What stands above the title."""


def render(
    chapters: Sequence[Chapter],
    place: Place,
    *,
    title: str,
    notes: Sequence[str] = (),
    texts: Sequence[tuple[str, str]] = (),
    kind: Literal["arrays", "plan"] = "arrays",
) -> None:
    """Writes the page; ``notes`` say what was run, ``texts`` are job files and rigs by name.

    Raises as :class:`ssdlab.output.Output` does.
    """
    words = ENGLISH
    drawn: dict[str, figure] = {}
    shown = [
        {
            "key": one.key,
            "title": one.title,
            # The first sentence of the first chapter leads the page.
            "sentences": list(one.sentences)[1 if place == 0 else 0 :],
            "groups": drawing.groups(one.key, one.figures, drawn),
            "tables": [
                {"title": table.title, "table": _cells(table, words), "note": table.note}
                for table in one.tables
            ],
        }
        for place, one in enumerate(chapters)
    ]
    lede = list(chapters[0].sentences[:1]) if chapters else []
    page = filled(
        "array.html.j2",
        words,
        title,
        drawn,
        doubt_mark="",
        lede=lede,
        notes=notes,
        chapters=shown,
        texts=texts,
        kind=KINDS[kind],
    )
    write_to(place, page)


def _cells(table: Measured, words: Catalogue) -> Table:
    head = tuple(f"{c.name}, {c.unit}" if c.unit else c.name for c in table.columns)
    rows = tuple(
        tuple(_cell(cell, words, place == 0) for place, cell in enumerate(row))
        for row in table.rows
    )
    texts = [all(not isinstance(row[place], Value) for row in table.rows) for place in range(2)]
    return Table(head, rows, labels=2 if all(texts) else 1)


def _cell(cell: Value | str | None, words: Catalogue, head: bool) -> Cell:
    if isinstance(cell, Value):
        raw = "" if cell.value is None else repr(cell.value)
        return Cell(figure_text(cell.value), raw, head=head)
    return Cell(words("none") if cell is None else cell, head=head)
