"""A study of reliability as an answer: levels, ways of wearing, loss over the years."""

from __future__ import annotations

import math

from ssdlab import units
from ssdlab.analysis.losses import Chance
from ssdlab.answer import (
    INTERVAL,
    Answer,
    Cell,
    Cells,
    Column,
    Number,
    Part,
    Section,
    Table,
    Verdict,
    columns,
    finite,
)
from ssdlab.studies.compare import share_cell
from ssdlab.studies.reliability import Simulated, Study
from ssdlab.units import number

CHANCE: tuple[Part, ...] = ("value", *INTERVAL, "remark")
ACCELERATED = "*"
"""Behind a chance from lives in which failures were made frequent."""
FEW = "too few losses for an interval"


def answer(study: Study) -> Answer:
    """The safest level and how safe it is, the levels beside each other, and the method."""
    question = study.question
    best, least = study.chances[0]
    lead = Section(
        study.sentences,
        [Number(f"P(loss) of {one.name}", chance, "", "lower") for one, chance in study.chances],
        tables=_tables(study),
        figures=study.figures(),
        key="results",
        title="Levels and wear policies",
        verdict=Verdict("ranked", {"safest": best.array.level, "p_loss": least}),
    )
    drives = units.counted(question.members, "drive")
    title = f"{drives} of {units.size_text(question.capacity_bytes)}: data loss"
    return Answer(title, "reliability", [lead], notes=_notes(study), data=study.document())


def _tables(study: Study) -> list[Table]:
    """Levels under random failures, and what wear does to them."""
    within = f"within {study.question.years:g} years"
    heads = "level | usable [=B] | MTTDL [=years] | usual formula [=years] | off by [=%]"
    heads += f" | P(loss) {within}"
    rows: list[Cells] = [
        [
            level.name,
            Cell(level.array.usable_bytes, text=units.size_text(level.array.usable_bytes)),
            Cell(finite(level.mttdl_years), text=_years(level.mttdl_years)),
            Cell(finite(level.usual_years), text=_years(level.usual_years)),
            share_cell(finite(level.usual_error)),
            Cell(level.chance, text=number(level.chance)),
            _chance(level.simulated),
        ]
        for level in study.levels
    ]
    simulated = Column("simulated (95 %)", head=f"simulated P(loss) {within}", parts=CHANCE)
    shown = [*columns(heads), simulated]
    if study.worn:
        shown += columns("the rating lasts [=years]")
        for row, level in zip(rows, study.levels, strict=True):
            rated = level.rated_years
            row.append(None if rated is None else Cell(finite(rated), text=_years(rated)))
    tables = [Table("Random failures alone", shown, rows)]
    names = [Column("wear policy"), *(Column(one.name, parts=CHANCE) for one in study.levels)]
    for alike in sorted({case.alike for case in study.worn}):
        spread = (
            "equal endurance within a model"
            if alike
            else f"endurance within a model differs by {100 * study.question.spread:.3g} %"
        )
        policies: list[Cells] = [
            [case.name, *(_chance(simulated) for simulated in case.simulated)]
            for case in study.worn
            if case.alike == alike
        ]
        tables.append(Table(f"P(loss) {within} with wear, {spread}", names, policies))
    return tables


def _notes(study: Study) -> list[str]:
    """What the numbers rest on."""
    question = study.question
    said = [
        f"Annual failure rate {100 * question.failures_per_year:.3g} %, at any age alike; "
        f"unrecoverable read errors (URE) per bit: {question.uber:.3g}. Time to repair "
        f"{study.hazards.repair_hours:.3g} h: {question.replace_hours:g} h until the rebuild "
        f"starts, the rest its rebuild at {units.bytes_per_s(question.rebuild_bytes_per_s)}.",
        "An unrecoverable read error in a rebuild with redundancy exhausted counts as data loss. "
        "The closed form takes repairs of that length on average, the simulation of exactly that.",
        f"{question.runs:,} lives each, seed {question.seed}.",
    ]
    if question.uber_source:
        said.append(f"The read errors are {question.uber_source}.")
    every = [level.simulated for level in study.levels]
    every += [simulated for case in study.worn for simulated in case.simulated]
    if any(simulated.accelerated for simulated in every):
        said.append(
            f"{ACCELERATED} rare losses: failures were made frequent, and each life weighted by "
            "its likelihood (importance sampling)."
        )
    if question.tbw_bytes is not None and question.tbw_source:
        rated = units.size_text(question.tbw_bytes)
        said.append(f"Of a drive {rated} can be written, by {question.tbw_source}.")
    if study.worn:
        said.append(
            "The rating is what 97 % of drives reach (JESD218); endurance is Weibull-distributed "
            "with a scale that differs between models. A worn-out drive fails permanently. A drive "
            "is renewed by a copy while it still works. A rebuild writes the new drive once. The "
            "spreads are assumed unless given."
        )
    said.append(
        "Not modelled: failures of controllers, power and people, faults that all drives of a "
        "firmware share, and latent sector errors between rebuilds."
    )
    return said


def _chance(simulated: Simulated) -> Cell:
    chance: Chance = simulated.whole
    mark = ACCELERATED if simulated.accelerated else ""
    remarks = ["rare losses weighted"] if simulated.accelerated else []
    if chance.value == 0:
        text = f"none seen{mark} (below {number(chance.high)})"
        remarks.insert(0, "none seen")
    elif not chance.carried:
        text = f"about {number(chance.value)}{mark} ({FEW})"
        remarks.insert(0, FEW)
    else:
        text = f"{number(chance.value)}{mark} ({number(chance.low)} to {number(chance.high)})"
    low, high = finite([chance.low, chance.high])
    return Cell(chance.value, (), text, low, high, remark="; ".join(remarks))


def _years(value: float) -> str:
    if math.isinf(value):
        return "never"
    if value >= 1e6:
        return f"{value:.2e} years"
    return f"{number(value)} years"
