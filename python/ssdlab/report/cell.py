"""The first screen of a page, for the cell of a notebook: text, tiles, and the main chart drawn
without scripts, so that it is seen wherever a notebook is shown."""

from __future__ import annotations

from bokeh.plotting import figure
from markupsafe import Markup

from ssdlab.answer import MARK, Answer
from ssdlab.report import drawing
from ssdlab.report.answer_page import KINDS, doubts, tiles
from ssdlab.report.shell import template_called
from ssdlab.report.sketch import svg
from ssdlab.units import for_page


def first_screen(answer: Answer) -> str:
    """What a page shows first, as a piece of HTML that brings its own look."""
    figures = [one for section in answer.sections for one in section.figures]
    drawn: dict[str, figure] = {}
    lead = drawing.recoloured(drawing.main_group(figures), {})
    groups = drawing.groups("cell", lead, drawn, answer.marks)
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
        eyebrow=KINDS[answer.kind],
        title=answer.title,
        headline=for_page(answer.headline),
        tiles=tiles(answer.lead.numbers, answer.marks),
        heading=groups[0]["title"] if groups else "",
        legend=groups[0]["legend"] if groups else [],
        charts=charts,
        doubts=doubts(answer),
        doubt_mark=MARK,
    )
