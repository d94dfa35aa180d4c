"""Published experiments as an answer: published beside simulated."""

from __future__ import annotations

from collections.abc import Sequence

from ssdlab import units
from ssdlab.answer import Answer, Cell, Cells, Number, Section, Table, Verdict, columns
from ssdlab.experiments.base import Line, Reproduction

FACTOR = 1.5
"""A prediction within this factor is a fair one."""
NOTE = (
    "Ratio: simulated / published; missed: more than 15 % off. A fitted number was used to "
    "calibrate the drive's profile; the predicted ones were not. Without a published number the "
    "article gives a picture or words only."
)


def fair(line: Line) -> bool:
    """Whether it is within a factor of 1.5."""
    return line.ratio is not None and 1 / FACTOR <= line.ratio <= FACTOR


def answer(outcomes: Sequence[Reproduction]) -> Answer:
    """How many numbers are met, and experiment by experiment what is not, and why."""
    lines = [line for outcome in outcomes for line in outcome.findings.lines]
    said, verdict = _headline(lines)
    names = {"near": "within 15 %", "fair": "within a factor of 1.5", "compared": "compared"}
    numbers = [
        Number(name, value, "")
        for key, name in names.items()
        if isinstance(value := verdict.values.get(key), float)
    ]
    sections = [_experiment(outcome) for outcome in outcomes]
    if len(outcomes) == 1:
        (own,) = outcomes
        title = own.experiment.title
        one = sections[0]
        lead = Section(
            [*said, *one.sentences], numbers, one.tables, one.figures, one.key, "Results",
            one.rows, verdict,
        )  # fmt: skip
        sections = [lead]
    else:
        title = "Published and simulated"
        lead = Section(
            said, numbers, [_overview(outcomes)], key="overview", title="All experiments",
            verdict=verdict,
        )  # fmt: skip
        sections = [lead, *sections]
    texts: dict[str, str] = {}
    for outcome in outcomes:
        texts |= outcome.experiment.job_files()
    rows = [row for one in sections for row in one.rows]
    return Answer(
        title, "reproduction", sections, notes=_notes(outcomes), texts=texts, data={"lines": rows}
    )


def _headline(lines: Sequence[Line]) -> tuple[list[str], Verdict]:
    stated = [line for line in lines if line.published is not None]
    predicted = [line for line in stated if line.kind == "predicted"]
    compared = [line for line in predicted if line.ratio is not None]
    good, passable = sum(line.near for line in compared), sum(map(fair, compared))
    values: dict[str, float | str | None] = {
        "compared": float(len(compared)),
        "near": float(good),
        "fair": float(passable),
        "missing": len(predicted) - len(compared),
        "fitted": len(stated) - len(predicted),
    }
    if not compared:
        return ["The article gives no number to compare with."], Verdict("nothing-to-compare")
    off = len(compared) - good
    said = [
        f"{good} of {len(compared)} predicted values are within 15 % of the published ones, "
        f"{passable} within a factor of 1.5"
        + (f"; {off} {'is' if off == 1 else 'are'} missed by more than 15 %." if off else ".")
    ]
    if values["missing"]:
        said.append(f"{values['missing']} could not be simulated.")
    if fitted := len(stated) - len(predicted):
        kind = "value was" if fitted == 1 else "values were"
        said.append(
            f"{fitted} {kind} used for calibration and {'is' if fitted == 1 else 'are'} excluded."
        )
    return said, Verdict("compared", values)


def _overview(outcomes: Sequence[Reproduction]) -> Table:
    rows: list[Cells] = []
    for outcome in outcomes:
        stated = [x for x in outcome.findings.lines if x.published is not None]
        predicted = [line for line in stated if line.kind == "predicted"]
        counts = (
            len(predicted),
            sum(line.near for line in predicted),
            sum(map(fair, predicted)),
            sum(line.ratio is None for line in predicted),
            len(stated) - len(predicted),
        )
        rows.append([outcome.experiment.title, *(Cell(float(count)) for count in counts)])
    heads = "experiment | predictions | within 15 % | within 1.5 times | not simulated | fitted"
    return Table("All experiments", columns(heads), rows)


def _experiment(outcome: Reproduction) -> Section:
    lines = outcome.findings.lines
    rows: list[Cells] = [
        [
            line.drive,
            line.quantity,
            line.unit,
            Cell(line.published),
            Cell(line.simulated),
            Cell(line.ratio),
            line.agreement,
            line.kind,
        ]
        for line in lines
    ]
    heads = columns("drive | quantity | unit | published | simulated | ratio | within 15 % | kind")
    name = outcome.experiment.name
    return Section(
        [*_misses(lines), *outcome.findings.remarks],
        tables=[Table("Published and simulated", heads, rows, NOTE)],
        figures=outcome.findings.figures,
        key=name,
        title=outcome.experiment.title,
        rows=[line.as_json(name) for line in lines],
    )


def _misses(lines: Sequence[Line]) -> list[str]:
    """A sentence for each drive and reason, with what is missed and by how much."""
    missed = [line for line in lines if line.published is not None and not line.near]
    sentences = []
    for drive, why in dict.fromkeys((line.drive, line.why) for line in missed):
        amounts = [
            f"{line.quantity} ("
            + (
                "not simulated"
                if line.ratio is None
                else f"{units.number(line.ratio)} times what was published"
            )
            + ")"
            for line in missed
            if (line.drive, line.why) == (drive, why)
        ]
        reason = f"Probable cause: {why}." if why else "The cause is unknown."
        sentences.append(f"{drive}: {'; '.join(amounts)}. {reason}")
    return sentences


def _notes(outcomes: Sequence[Reproduction]) -> list[str]:
    notes = []
    if any(outcome.mode == "quick" for outcome in outcomes):
        notes.append("Quick run: drives and times are so small that numbers are rough.")
    for outcome in outcomes:
        one = outcome.experiment
        size = (
            "Simulated at full size."
            if outcome.factor == 1
            else f"Simulated at 1/{outcome.factor} of its size. Scaled: {one.scaling}. Every ratio "
            "is kept; --full runs it at full size."
        )
        notes.append(f"{one.article}. {one.procedure} {size} Seed {outcome.seed}.")
    return notes
