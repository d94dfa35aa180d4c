"""A change tried by repeats with and without it, as an answer."""

from __future__ import annotations

import statistics
from dataclasses import replace

from ssdlab import units
from ssdlab.analysis.paired import Effect
from ssdlab.answer import (
    INTERVAL,
    Answer,
    Cell,
    Cells,
    Column,
    Curve,
    Figure,
    Section,
    Table,
    Verdict,
    columns,
)
from ssdlab.engine.answers import weighed
from ssdlab.studies import ab
from ssdlab.studies.compare import difference_cells, share_cell, span_text

SHOWN = 4
"""Numbers that have a chart."""


def answer(outcome: ab.TrialOutcome, title: str) -> Answer:
    """Whether the change mattered, every number, and the runs in their order."""
    said = ab.sentences(outcome, lambda d: f"{units.difference(d.share)} ({span_text(d)})")
    doubts = [units.sentence("; ".join(told))] if (told := ab.doubts(outcome.runs)) else []
    lead = Section(
        [*said, *doubts],
        tables=[_numbers(outcome)],
        figures=_runs(outcome),
        key="numbers",
        title="Numbers",
        verdict=_verdict(outcome),
    )
    sides = [
        f"{side}: {','.join(run.id for run in outcome.runs if run.side == side)}" for side in "AB"
    ]
    return Answer(
        title=title,
        kind="trial",
        sections=[weighed(lead, [check for run in outcome.runs for check in run.checks])],
        notes=[_method(outcome), *sides],
        data=ab.as_json(outcome),
    )


def _verdict(outcome: ab.TrialOutcome) -> Verdict:
    tested = [effect.difference for effect in outcome.effects if effect.difference is not None]
    seen = sum(difference.seen for difference in tested)
    code = "mattered" if seen else "no-difference" if tested else "nothing-measured"
    return Verdict(code, {"metrics": float(len(tested)), "significant": float(seen)})


def _numbers(outcome: ab.TrialOutcome) -> Table:
    interval = Column("95 %", "", "%", "B vs A interval", INTERVAL)
    least = "minimum detectable effect (80 % power)"
    heads = [*columns("number | unit | A | B | B vs A [=%]"), interval, Column("verdict")]
    rows: list[Cells] = [
        [
            effect.name,
            effect.unit,
            _mean(effect.a),
            _mean(effect.b),
            *difference_cells(effect.difference),
            ab.verdict(effect),
            _least(effect),
        ]
        for effect in outcome.effects
    ]
    return Table("A and B", [*heads, Column(least, "", "%", "least effect")], rows)


def _mean(values: tuple[float, ...]) -> Cell | None:
    """Of positive values the geometric mean, of which the difference is one."""
    if not values:
        return None
    return Cell((statistics.geometric_mean if min(values) > 0 else statistics.fmean)(values))


def _least(effect: Effect) -> Cell:
    least = share_cell(effect.visible)
    if effect.visible == 0:
        return replace(least, text="any")
    blind = effect.visible is not None and effect.visible > ab.BLIND
    return replace(least, text=f"more than x {1 + ab.BLIND:.0f}") if blind else least


def _runs(outcome: ab.TrialOutcome) -> list[Figure]:
    """The first numbers of every run, in the order of time."""
    places = {side: [r.place for r in outcome.runs if r.side == side] for side in "AB"}
    return [
        Figure(
            effect.name,
            "run",
            effect.unit,
            [
                Curve(side, [float(place + 1) for place in places[side]], values, "dots", number)
                for number, (side, values) in enumerate((("A", effect.a), ("B", effect.b)))
                if len(values) == len(places[side])
            ],
            group="Every run",
        )
        for effect in outcome.effects[:SHOWN]
    ]


def _method(outcome: ab.TrialOutcome) -> str:
    drift = "" if outcome.simulated or outcome.pairs < 4 else ", a steady drift taken out"
    pairs = f"Differences of pairs (t test on logarithms{drift})"
    how = pairs if outcome.undoable else "Welch's test on logarithms"
    return f"{how}, corrected for the number of comparisons (Holm, 5 %)."
