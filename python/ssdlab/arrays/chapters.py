"""What a study of arrays says: sentences, tables and charts under one heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ssdlab.figures import Cell, Column, Figure, Table


@dataclass(frozen=True)
class Chapter:
    """One study."""

    key: str
    title: str
    sentences: Sequence[str]
    tables: Sequence[Table]
    figures: Sequence[Figure]
    rows: Sequence[dict[str, Any]] = ()
    """What was measured, in full, for ``--json``."""

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""
        return {
            "study": self.key,
            "title": self.title,
            "sentences": list(self.sentences),
            "tables": [_table(one) for one in self.tables],
            "runs": list(self.rows),
        }


def _table(table: Table) -> dict[str, Any]:
    heads = [f"{one.name}, {one.unit}" if one.unit else one.name for one in table.columns]
    rows = [
        {
            head: cell.value if isinstance(cell, Cell) else cell
            for head, cell in zip(heads, row, strict=True)
        }
        for row in table.rows
    ]
    return {"title": table.title, "rows": rows, "note": table.note}


Cells = list[Cell | str | None]
"""Of a row."""


def numbers(*values: float | None) -> Cells:
    """Cells of a row."""
    return [Cell(one) for one in values]


def columns(text: str) -> list[Column]:
    """Columns such as ``array, random reads:IOPS, p99:us``."""
    found = []
    for one in text.split(","):
        name, _, unit = one.strip().partition(":")
        found.append(Column(name, unit))
    return found
