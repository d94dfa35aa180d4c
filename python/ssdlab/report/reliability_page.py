"""The page of a study of reliability: the answer, its tables, and loss against years."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bokeh.plotting import figure

from ssdlab.analysis.losses import Chance
from ssdlab.reliability import Simulated, Study
from ssdlab.report import drawing
from ssdlab.report.catalogue import ENGLISH
from ssdlab.report.shell import filled
from ssdlab.report.tables import Cell, Table
from ssdlab.store import write_whole

ACCELERATED = "*"
"""Behind a chance from lives in which failures were made frequent."""

Plain = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""Title, head and rows of a table."""


def render(found: Study, path: Path) -> None:
    """Writes the page.

    Raises InputError if the place cannot be written, ExperimentError if the disk is full.
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
    write_whole(
        path,
        filled(
            "reliability.html.j2",
            ENGLISH,
            ENGLISH(
                "reliability.title",
                members=question.members,
                capacity=f"{question.capacity_bytes / 1e12:.3g}",
            ),
            figures,
            mark="",
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
            f"{one.chance:.3g}",
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
        f"{100 * question.failures_per_year:.3g} failures per 100 drive years, at any age alike; "
        f"{question.uber:.1e} unrecoverable errors per bit read. A failed drive is whole again "
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
            "The rating is taken for what 97 % of drives reach (JESD218), endurance for lognormal; "
            "a drive that is worn out fails for good. A drive is renewed by a copy while it still "
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
    return f"{chance.value:.2e}{mark} ({chance.low:.1e} to {chance.high:.1e})"


def _years(value: float) -> str:
    if math.isinf(value):
        return "never"
    if value >= 1e6:
        return f"{value:.2e} years"
    return f"{value:,.0f} years" if value >= 100 else f"{value:.3g} years"


def _off(error: float) -> str:
    if math.isnan(error):
        return "-"
    if error > 10:
        return f"{error + 1:,.0f} times" if error < 1e6 else f"{error + 1:.1e} times"
    return "0 %" if abs(error) < 5e-4 else f"{100 * error:+.2g} %"
