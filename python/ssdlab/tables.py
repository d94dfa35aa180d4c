"""The tables of an answer as files have them: each with a name of its own, numbers and doubts among
them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from ssdlab import units
from ssdlab.answer import (
    Answer,
    Cell,
    Check,
    Column,
    Section,
    Table,
    numbers_table,
    table,
    table_values,
)

NAME_MAX = 31
"""Characters of a table's name: of a sheet's, by the format of workbooks."""


def checks_table(troubles: Sequence[Check]) -> Table:
    """What puts numbers in doubt, for tables whose cells carry no marks."""
    return table(
        "Checks",
        troubles,
        {
            "check": lambda one: one.title,
            "says": lambda one: one.word,
            "seen": lambda one: one.evidence,
            "in doubt": lambda one: (
                "all" if one.affects is None else ", ".join(one.affects) or None
            ),
        },
        "in doubt: the steps, or jobs of them, whose numbers are; of a run of one job file: run.",
    )


def settings_table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], settings: Collection[int],
    words: Collection[str] = (),
) -> Table:  # fmt: skip
    """A table of which the columns at some places hold ``settings`` as they are written: numbers,
    with their units beside them where there are any, and words. Those of some ``words`` in the
    first column are words even where they look like numbers."""
    cells = [
        [
            _setting(text) if place in settings and row[0] not in words else text
            for place, text in enumerate(row)
        ]
        for row in rows
    ]
    united = {
        place
        for row in cells
        for place, cell in enumerate(row)
        if isinstance(cell, Cell) and cell.unit
    }
    columns = [
        Column(head, parts=("value", "unit") if place in united else ("value",))
        for place, head in enumerate(heads)
    ]
    return Table(title, columns, cells)


def _setting(text: str) -> Cell | str:
    found = units.setting(text)
    return text if found is None else Cell(found[0], text=text, unit=found[1])


def named_tables(answer: Answer) -> Iterator[tuple[str, Table]]:
    """Every table with a name of its own, the numbers of each section as one, and the doubts. What
    several sections call the same begins with the section's key, which is enough where it is their
    only one."""
    taken: set[str] = set()
    found: list[tuple[Section, Table]] = []
    for section in answer.sections:
        found += [(section, numbers_table(section.numbers))] if section.numbers else []
        found += [(section, one) for one in section.tables if one.rows]
    doubts = Section(tables=[checks_table(answer.troubles)], key="doubts")
    found += [(doubts, one) for one in doubts.tables if one.rows]
    sections = Counter(title for title, _ in {(one.title, section.key) for section, one in found})
    tables = Counter(section.key for section, _ in found)
    for section, one in found:
        title = one.title or section.title
        if sections[one.title] > 1 and section is not answer.lead:
            title = f"{section.key} {title}" if tables[section.key] > 1 else section.key
        words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "table"
        endings = ("", *(f"-{number}" for number in range(2, len(found) + 1)))
        name = next(cut for end in endings if (cut := _cut(words, end)) not in taken)
        taken.add(name)
        yield name, one


def file_values(table: Table) -> list[list[float | str | None]]:
    """A table as files have it: as :func:`ssdlab.answer.table_values`, fractions in twelve figures;
    nobody measured the others (0.3, not 0.30000000000000004)."""
    return [
        [
            float(f"{value:.12g}") if isinstance(value, float) and value % 1 else value
            for value in line
        ]
        for line in table_values(table)
    ]


def _cut(words: str, end: str) -> str:
    """Words joined by dashes and an end, with as many of them as there is room for; of a word that
    is too long alone, its start."""
    room = NAME_MAX - len(end)
    if len(words) > room:
        words = words[: room + 1].rpartition("-")[0] or words[:room]
    return words + end
