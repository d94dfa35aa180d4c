"""The page of a study of reliability: the answer, its tables, and loss against years."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bokeh.plotting import figure

from ssdlab.analysis.losses import Chance
from ssdlab.output import Place, write_to
from ssdlab.reliability import Simulated, Study
from ssdlab.report import drawing
from ssdlab.report.catalogue import ENGLISH
from ssdlab.report.shell import filled
from ssdlab.report.tables import Cell, Table

ACCELERATED = "*"
"""Behind a chance from lives in which failures were made frequent."""

Plain = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""Title, head and rows of a table."""


def render(found: Study, place: Place) -> None:
    """Writes the page.

    Raises as :class:`ssdlab.output.Output` does.
    """
    figures: dict[str, figure] = {}
    question = found.question
    shown = [
        {
            "title": title,
            "table": Table(
                tuple(head),
                tuple(
                    tuple(Cell(text, head=not place) for place, text in enumerate(row))
                    for row in rows
                ),
            ),
        }
        for title, head, rows in tables(found)
    ]
    write_to(
        place,
        filled(
            "reliability.html.j2",
            ENGLISH,
            ENGLISH(
                "reliability.title",
                members=question.members,
                capacity=f"{question.capacity_bytes / 1e12:.3g}",
            ),
            figures,
            doubt_mark="",
            sentences=found.sentences,
            tables=shown,
            groups=drawing.groups("chart", found.figures(), figures),
            notes=list(notes(found)),
        ),
    )


def tables(found: Study) -> list[Plain]:
    """The tables, in words: levels, and what wear does to them."""
    within = f"within {found.question.years:g} years"
    head = [
        "level",
        "usable",
        "mean time to loss",
        "usual formula",
        "off by",
        f"P(loss) {within}",
        "simulated (95 %)",
    ]
    rows = [
        [
            one.name,
            f"{one.array.usable_bytes / 1e12:.4g} TB",
            _years(one.mttdl_years),
            _years(one.usual_years),
            _off(one.usual_error),
            _share(one.chance),
            _chance(one.simulated),
        ]
        for one in found.levels
    ]
    shown: list[Plain] = [("Random failures alone", head, rows)]
    if not found.worn:
        return shown
    names = [one.name for one in found.levels]
    years = ["the rating lasts", *(_years(one) for one in found.rated_years)]
    for alike in sorted({one.alike for one in found.worn}):
        title = (
            "drives of a model that all wear out at the same number of bytes"
            if alike
            else f"drives of a model whose endurance differs by {100 * found.question.spread:.3g} %"
        )
        policies = [
            [one.name, *(_chance(simulated) for simulated in one.simulated)]
            for one in found.worn
            if one.alike == alike
        ]
        shown.append((f"P(loss) {within} with wear, {title}", ["", *names], [years, *policies]))
    return shown


def notes(found: Study) -> list[str]:
    """What the numbers rest on."""
    question = found.question
    said = [
        f"Failures per 100 drive years, at any age alike: {100 * question.failures_per_year:.3g}; "
        f"unrecoverable errors per bit read: {question.uber:.3g}. A failed drive is whole again "
        f"after {found.hazards.repair_hours:.3g} hours: {question.replace_hours:g} until a new one "
        f"is in, the rest its rebuild at {question.rebuild_bytes_per_s / 1e6:.4g} MB/s.",
        "A sector that a rebuild cannot read and nothing can correct counts as a loss of data. "
        "The closed form takes repairs of that length on average, the simulation of exactly that.",
        f"{question.runs:,} lives each, seed {question.seed}.",
    ]
    every = [one.simulated for one in found.levels]
    every += [simulated for one in found.worn for simulated in one.simulated]
    if any(one.accelerated for one in every):
        said.append(
            f"{ACCELERATED} losses are rare there: failures were made frequent, and each life "
            "counts by how likely it really was (importance sampling)."
        )
    if found.worn:
        said.append(
            "The rating is taken for what 97 % of drives reach (JESD218), endurance for a Weibull "
            "variable whose scale differs from model to model; a drive that is worn out fails for "
            "good. A drive is renewed by a copy while it still "
            "works. A rebuild writes the new drive once. The spreads are assumed unless given."
        )
    said.append(
        "Not in it: failures of controllers, power and people, faults that all drives of a "
        "firmware share, and sectors that go bad unseen between rebuilds."
    )
    return said


def _chance(simulated: Simulated) -> str:
    chance: Chance = simulated.whole
    mark = ACCELERATED if simulated.accelerated else ""
    if chance.value == 0:
        return f"none seen{mark} (below {_share(chance.high)})"
    return f"{_share(chance.value)}{mark} ({_share(chance.low)} to {_share(chance.high)})"


def _share(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:.2e}" if value < 1e-2 else f"{value:.3f}" if value > 0.9995 else f"{value:.3g}"


def _years(value: float) -> str:
    if math.isinf(value):
        return "never"
    if value >= 1e6:
        return f"{value:.2e} years"
    return f"{value:,.0f} years" if value >= 100 else f"{value:.3g} years"


def _off(error: float) -> str:
    if math.isnan(error):
        return "-"
    if abs(error) < 5e-4:
        return "0 %"
    return f"{100 * error:+.2g} %" if error < 0.995 else f"x {error + 1:.3g}"
