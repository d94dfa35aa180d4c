"""The page of a trace: what it is like, its sizes, and charts of where and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bokeh.plotting import figure

from ssdlab.output import Place, write_to
from ssdlab.report import drawing
from ssdlab.report.catalogue import ENGLISH
from ssdlab.report.shell import filled
from ssdlab.report.tables import Cell, Table
from ssdlab.traces import profile


def render(found: dict[str, Any], place: Place) -> None:
    """Writes the page of what :func:`ssdlab.traces.profile.profile` found.

    Raises as :class:`ssdlab.output.Output` does.
    """
    figures: dict[str, figure] = {}
    charts = drawing.groups("chart", profile.figures(found), figures)
    text = filled(
        "trace.html.j2",
        ENGLISH,
        ENGLISH("trace.title", name=Path(found["trace"]).name),
        figures,
        mark="",
        remarks=found["remarks"],
        facts=_table(("", ""), profile.facts(found), labels=2),
        sizes=_table(("size", "reads", "writes", "trims", "share"), profile.size_rows(found, 20)),
        groups=charts,
    )
    write_to(place, text)


def _table(head: tuple[str, ...], rows: list[list[str]], labels: int = 1) -> Table:
    cells = (
        tuple(Cell(text.strip(), head=not place) for place, text in enumerate(row)) for row in rows
    )
    return Table(head, tuple(cells), labels=labels, narrow=True)
