"""The first screen of a page, for the cell of a notebook: text, tiles, and the main chart drawn
without scripts, so that it is seen wherever a notebook is shown."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from bokeh.plotting import figure
from markupsafe import Markup

from ssdlab.answer import MARK, Answer, Figure
from ssdlab.report import drawing
from ssdlab.report.answer_page import KINDS, doubts, tiles
from ssdlab.report.shell import template_called
from ssdlab.report.sketch import svg
from ssdlab.units import for_page


def first_screen(answer: Answer) -> str:
    """What a page shows first, as a piece of HTML that brings its own look."""
    figures = [one for section in answer.sections for one in section.figures]
    return _cell(
        drawing.main_group(figures),
        answer.marks,
        eyebrow=KINDS[answer.kind],
        title=answer.title,
        headline=for_page(answer.headline),
        tiles=tiles(answer.lead.numbers, answer.marks),
        doubts=doubts(answer),
    )


def chart(one: Figure) -> str:
    """A chart by itself, in the same way."""
    return _cell([one], (), eyebrow="", title="", headline="", tiles=(), doubts=())


def _cell(figures: Sequence[Figure], marks: Collection[str], **head: object) -> str:
    drawn: dict[str, figure] = {}
    lead = drawing.recoloured(figures, {})
    groups = drawing.groups("cell", lead, drawn, marks)
    charts = [
        {
            "title": panel["title"],
            "legend": panel["legend"],
            "note": panel["note"],
            "svg": Markup(svg(drawn[panel["id"]], panel["label"])),  # noqa: S704 - our own
        }
        for group in groups
        for panel in group["panels"]
    ]
    return template_called("cell.html.j2").render(
        heading=groups[0]["title"] if groups else "",
        legend=groups[0]["legend"] if groups else [],
        charts=charts,
        doubt_mark=MARK,
        **head,
    )
