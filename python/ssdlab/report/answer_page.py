"""The page of an answer: one layout for every study.

What it is, the answer in a sentence, the few numbers, the chart that shows it, what is in doubt;
then section by section, and at the end what was run on what.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bokeh.plotting import figure

from ssdlab.answer import (
    MARK,
    MARK_NOTE,
    Answer,
    Cell,
    Number,
    Section,
    Table,
    cell_text,
    heading,
    heads_of,
    numbers_table,
    value_of,
)
from ssdlab.output import Place, write_to
from ssdlab.report import drawing
from ssdlab.report.embed import packed
from ssdlab.report.shell import filled
from ssdlab.units import for_page, listed, with_unit

KINDS = {
    "run": "Runs of a job file",
    "runs": "Kept runs",
    "explanation": "Why a run came out so",
    "trial": "A change tried",
    "protocol": "Test of a drive",
    "arrays": "Arrays of a drive",
    "plan": "Plan",
    "reliability": "Reliability of arrays",
    "comparison": "Comparison of runs",
    "reproduction": "Published experiments",
    "scan": "Scan of a drive",
    "audit": "Audit of a system's settings",
    "health": "Health of drives",
    "refresh": "Refresh of a file or drive",
    "purge": "Purge of a drive",
    "trim": "Trim of a file system",
    "fit": "Twin of a drive",
    "sweep": "Sweep of a simulated drive",
    "trace": "Recorded trace",
    "cache": "Caches for a trace",
    "import": "Results of others",
}
"""What stands above the title, by the kind of study; else the kind itself."""
TILES = 5
ROWS_OPEN = 12
"""A table of more rows is folded, unless it is the first."""
TALL = 30
"""A table of more rows scrolls within the page."""
CARDS_MAX = 150
"""On a phone the rows of a table of up to so many cells are cards, one below the other; of a folded
one always, as it takes no room."""
ROWS_MAX = 2_000
"""A page has so many rows of a table; JSON and CSV have all."""
BROAD = 7
"""Tables of more columns are set smaller."""
NARROW = 4
"""Tables of so few columns do not take the whole width."""


def render(answer: Answer, place: Place, *, title: str | None = None) -> None:
    """Writes the page; raises as :class:`ssdlab.output.Output` does."""
    write_to(place, page(answer, title))


def page(answer: Answer, title: str | None = None) -> str:
    """The page: one HTML file without network access."""
    drawn: dict[str, figure] = {}
    colours: dict[str, int] = {}
    sections = []
    for place, section in enumerate(answer.sections):
        shown = replace(section, figures=drawing.recoloured(section.figures, colours))
        sections.append(_section(place, shown, answer, drawn))
    first = next((section for section in sections if section["groups"]), None)
    lead = None if first is None else first["groups"].pop(0)
    encoding, data = packed(json.dumps(answer.as_json(), separators=(",", ":")))
    return filled(
        "answer.html.j2",
        title or answer.title,
        drawn,
        eyebrow=KINDS.get(answer.kind, answer.kind.capitalize()),
        heading=for_page(title or answer.title),
        headline=for_page(answer.headline),
        tiles=tiles(answer.lead.numbers, answer.marks),
        lead=lead,
        lead_section=0 if first is None else first["place"],
        doubts=doubts(answer),
        passed=_passed(answer),
        sections=[section for section in sections if section["filled"] or section["groups"]],
        notes=[for_page(note) for note in answer.notes],
        facts=[(name, rows) for name, rows in answer.facts.items() if rows],
        texts=list(answer.texts.items()),
        doubt_mark=MARK,
        mark_note=MARK_NOTE,
        data={"encoding": encoding, "body": data},
    )


def _section(
    place: int, section: Section, answer: Answer, drawn: dict[str, figure]
) -> dict[str, Any]:
    shown = section.telling
    if section.numbers and (place or len(section.numbers) > TILES):
        shown.insert(0, numbers_table(section.numbers))
    sentences = [for_page(text) for text in list(section.sentences)[0 if place else 1 :]]
    name = section.key or f"section-{place}"
    return {
        "place": place,
        "id": name,
        "title": for_page(section.title) if section.title not in ("", answer.title) else "Results",
        "sentences": sentences,
        "tables": [_table(t, answer.marks, first=not place and not n) for n, t in enumerate(shown)],
        "groups": drawing.groups(name, section.figures, drawn, answer.marks),
        "filled": bool(sentences or shown),
    }


def _table(table: Table, marks: Collection[str], *, first: bool) -> Mapping[str, Any]:
    """A table as the template takes it: the first ``labels`` columns hold names, the others
    numbers; of a cell what is shown, and what is copied where that is not the same."""
    columns, rows = table.columns, table.rows[:ROWS_MAX]
    numeric = (place for place in range(len(columns)) if any(_counts(row[place]) for row in rows))
    shown = [
        [_cell(value, one.unit, marks) for value, one in zip(row, columns, strict=True)]
        for row in rows
    ]
    folded = len(table.rows) > ROWS_OPEN and not first
    more = f"{ROWS_MAX:,} of {len(table.rows):,} rows. " if len(table.rows) > ROWS_MAX else ""
    return {
        "title": for_page(table.title),
        "head": [for_page(heading(column)) for column in columns],
        # Intervals are copied as they are written.
        "copied": heads_of([c if "value" in c.parts else replace(c, values="") for c in columns]),
        "rows": shown,
        "labels": max(1, next(numeric, len(columns))),
        "anchors": table.anchors[:ROWS_MAX],
        "repeat": table.repeat,
        "note": for_page(more + table.note),
        "folded": folded,
        "count": len(table.rows),
        "broad": len(columns) > BROAD,
        "tall": len(rows) > TALL,
        "cards": len(columns) > 3 and (folded or len(columns) * len(rows) <= CARDS_MAX),
        "narrow": len(columns) <= NARROW,
        "marked": any(text.endswith(MARK) for row in shown for text, _ in row),
    }


def _counts(cell: object) -> bool:
    return cell is not None and not isinstance(cell, str)


def _cell(value: Cell | str | None, unit: str, marks: Collection[str]) -> tuple[str, str | None]:
    raw = value_of(value)
    told = isinstance(raw, str) or (isinstance(value, Cell) and raw is None and bool(value.text))
    copied = None if told else "" if raw is None else repr(raw)
    return for_page(cell_text(value, unit, marks)), copied


def tiles(numbers: Sequence[Number], marks: Collection[str]) -> list[Mapping[str, str]]:
    """The first of the numbers that are known, as the template takes them."""
    known = [number for number in numbers if number.value is not None]
    return [
        {
            "name": for_page(number.head),
            "value": for_page(with_unit(number.value, number.unit)),
            "mark": MARK if any(key in marks for key in number.sources) else "",
        }
        for number in known[:TILES]
    ]


def doubts(answer: Answer) -> list[Mapping[str, str]]:
    """What puts numbers in doubt, as the template takes it."""
    return [
        {
            "status": trouble.status,
            "word": trouble.word,
            "title": trouble.title,
            "evidence": for_page(trouble.evidence),
            "why": for_page(trouble.why),
        }
        for trouble in answer.troubles
    ]


def _passed(answer: Answer) -> list[str]:
    """The checks that did not trip, in a line each."""
    good = [check.title for check in answer.checks if check.status == "good"]
    unknown = [check.title for check in answer.checks if check.status == "unknown"]
    said = []
    if good and not unknown and not answer.troubles:
        count = "1 check" if len(good) == 1 else f"All {len(good)} checks"
        said.append(f"{count} passed: {listed(good)}.")
    elif good:
        said.append(f"Passed: {listed(good)}.")
    if unknown:
        said.append(f"Could not be checked: {listed(unknown)}.")
    return said
