"""Published experiments as an answer: published beside simulated."""

from __future__ import annotations

from collections.abc import Sequence

from ssdlab import units
from ssdlab.answer import (
    Answer,
    Cells,
    Curve,
    Figure,
    Number,
    Section,
    Table,
    Verdict,
    columns,
    numbers,
    table,
)
from ssdlab.experiments.base import Line, Reproduction

FACTOR = 1.5
"""A prediction within this factor is a fair one."""
NOTE = (
    "Ratio: simulated / published; missed: more than 15 % off. A fitted number was used to "
    "calibrate the drive's profile, an input is a datasheet's figure that the profile has, a "
    "ceiling is the host's, a consequence follows from another number, and a bound, at most or at "
    "least so much, is met or not; predicted are the others. Without a published number the "
    "article gives a picture or words only."
)


def _tally(lines: Sequence[Line]) -> dict[str, int]:
    """How many of an article's numbers are predicted, and of those within 15 % or a factor of 1.5
    or not simulated; how many are no predictions; how many bounds there are, and of those met."""
    stated = [line for line in lines if line.published is not None]
    bounds = [line.met for line in lines if line.kind == "bound"]
    ratios = [(line.near, line.ratio) for line in stated if line.kind == "predicted"]
    return {
        "predicted": len(ratios),
        "near": sum(near for near, _ in ratios),
        "fair": sum(ratio is not None and 1 / FACTOR <= ratio <= FACTOR for _, ratio in ratios),
        "missing": sum(ratio is None for _, ratio in ratios),
        "uncounted": len(stated) - len(ratios),
        "bounds": len(bounds),
        "met": sum(bounds),
    }


def answer(outcomes: Sequence[Reproduction]) -> Answer:
    """How many numbers are met, and experiment by experiment what is not, and why."""
    lines = [line for outcome in outcomes for line in outcome.findings.lines]
    said, verdict = _headline(lines)
    names = {"near": "within 15 %", "fair": "within a factor of 1.5", "compared": "compared"}
    counted = [
        Number(name, value, "")
        for key, name in names.items()
        if isinstance(value := verdict.values.get(key), float)
    ]
    sections = [_experiment(outcome) for outcome in outcomes]
    if len(outcomes) == 1:
        (own,) = outcomes
        title = own.experiment.title
        section = sections[0]
        lead = Section(
            [*said, *section.sentences], counted, section.tables, section.figures, section.key,
            "Results", section.rows, verdict,
        )  # fmt: skip
        sections = [lead]
    else:
        title = "Published and simulated"
        lead = Section(
            said, counted, [_overview(outcomes)], _ratios(outcomes), "overview", "All experiments",
            verdict=verdict,
        )  # fmt: skip
        sections = [lead, *sections]
    texts: dict[str, str] = {}
    for outcome in outcomes:
        texts |= outcome.experiment.job_files()
    rows = [row for section in sections for row in section.rows]
    return Answer(
        title, "reproduction", sections, notes=_notes(outcomes), texts=texts, data={"lines": rows}
    )


def _headline(lines: Sequence[Line]) -> tuple[list[str], Verdict]:
    counts = _tally(lines)
    good, uncounted = counts["near"], counts["uncounted"]
    compared = counts.pop("predicted") - counts["missing"]
    if not compared:
        return ["The article gives no number to compare with."], Verdict("nothing-to-compare")
    off = compared - good
    said = [
        f"{good} of {compared} predicted values are within 15 % of the published ones, "
        f"{counts['fair']} within a factor of 1.5"
        + (f"; {off} {'is' if off == 1 else 'are'} missed by more than 15 %." if off else ".")
    ]
    if counts["missing"]:
        said.append(f"{counts['missing']} could not be simulated.")
    if uncounted:
        is_ = "is no prediction and is" if uncounted == 1 else "are no predictions and are"
        said.append(f"{uncounted} {is_} excluded.")
    if counts["bounds"]:
        said.append(f"Bounds met: {counts['met']} of {counts['bounds']}.")
    values = {"compared": compared, **counts}
    return said, Verdict("compared", {key: float(count) for key, count in values.items()})


def _overview(outcomes: Sequence[Reproduction]) -> Table:
    rows: list[Cells] = [
        [outcome.experiment.title, *numbers(*_tally(outcome.findings.lines).values())]
        for outcome in outcomes
    ]
    heads = (
        "experiment | predictions | within 15 % | within 1.5 times | not simulated | not predicted"
        " | bounds | bounds met"
    )
    return Table("All experiments", columns(heads), rows)


def _ratios(outcomes: Sequence[Reproduction]) -> list[Figure]:
    """Every prediction beside what was published, experiment by experiment."""
    shown = list(reversed(outcomes))  # the first stands at the top
    found = [
        (ratio, float(place), f"{line.drive}: {line.quantity}")
        for place, outcome in enumerate(shown)
        for line in outcome.findings.lines
        if line.kind == "predicted" and (ratio := line.ratio) is not None and ratio > 0
    ]
    if not found:
        return []
    x, y, about = zip(*found, strict=True)
    curves = [
        Curve("predicted", x, y, "dots", about=about),
        Curve("as published", [1.0, 1.0], [-0.5, len(shown) - 0.5], "dashed", 1),
    ]
    names = [outcome.experiment.name for outcome in shown]
    axis = "simulated / published"
    return [Figure("Predictions", axis, "", curves, log_x=True, y_names=names, wide=True)]


def _experiment(outcome: Reproduction) -> Section:
    lines = outcome.findings.lines
    name = outcome.experiment.name
    return Section(
        [*_misses(lines), *outcome.findings.remarks],
        tables=[
            table(
                "Published and simulated",
                lines,
                {
                    "drive": lambda line: line.drive,
                    "quantity": lambda line: line.quantity,
                    "unit": lambda line: line.unit,
                    "published": lambda line: line.bound(units.number) or line.published,
                    "simulated": lambda line: line.simulated,
                    "ratio [=ratio]": lambda line: line.ratio,
                    "within 15 %": lambda line: line.agreement,
                    "kind": lambda line: line.kind,
                },
                NOTE,
            )
        ],
        figures=outcome.findings.figures,
        key=name,
        title=outcome.experiment.title,
        rows=[line.as_json(name) for line in lines],
    )


def _misses(lines: Sequence[Line]) -> list[str]:
    """A sentence for each drive and reason, with what is missed and by how much."""
    missed = [line for line in lines if line.agreement not in ("", "yes", "met")]
    sentences = []
    for drive, why in dict.fromkeys((line.drive, line.why) for line in missed):
        amounts = [
            f"{line.quantity} ({_off(line)})"
            for line in missed
            if (line.drive, line.why) == (drive, why)
        ]
        reason = f"Probable cause: {why}." if why else "The cause is unknown."
        sentences.append(f"{drive}: {'; '.join(amounts)}. {reason}")
    return sentences


def _off(line: Line) -> str:
    """How a line is off."""
    if line.simulated is None:
        return "not simulated"
    if line.ratio is None:
        return f"{units.number(line.simulated)}, published: {line.bound(units.number)}"
    return f"{units.number(line.ratio)} times what was published"


def _notes(outcomes: Sequence[Reproduction]) -> list[str]:
    notes = []
    if any(outcome.mode == "quick" for outcome in outcomes):
        notes.append("Quick run: drives and times are so small that numbers are rough.")
    for outcome in outcomes:
        experiment = outcome.experiment
        size = (
            "Simulated at full size."
            if outcome.factor == 1
            else f"Simulated at 1/{outcome.factor} of its size. Scaled: {experiment.scaling}. "
            "Every ratio is kept; --full runs it at full size."
        )
        notes.append(f"{experiment.article}. {experiment.procedure} {size} Seed {outcome.seed}.")
    return notes
