"""A change tried by repeats with and without it, as an answer."""

from __future__ import annotations

import statistics

from ssdlab import units
from ssdlab.analysis.differences import Difference
from ssdlab.analysis.paired import Effect
from ssdlab.answer import (
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
from ssdlab.studies import ab
from ssdlab.studies.compare import share_text, span_text

SHOWN = 4
"""Numbers that have a chart."""


def answer(found: ab.TrialOutcome, title: str) -> Answer:
    """Whether the change mattered, every number, and the runs in their order."""
    said = ab.sentences(found, lambda d: f"{share_text(d.share)} ({span_text(d)})")
    doubts = [units.sentence("; ".join(told))] if (told := ab.doubts(found.runs)) else []
    lead = Section(
        [*said, *doubts],
        tables=[_numbers(found)],
        figures=_runs(found),
        key="numbers",
        title="Numbers",
        verdict=_verdict(found),
    )
    sides = [
        f"{side}: {','.join(run.id for run in found.runs if run.side == side)}" for side in "AB"
    ]
    return Answer(
        title=title,
        kind="trial",
        sections=[lead],
        notes=[_method(found), *sides],
        data=ab.as_json(found),
    )


def _verdict(found: ab.TrialOutcome) -> Verdict:
    tested = [one.difference for one in found.effects if one.difference is not None]
    seen = sum(one.seen for one in tested)
    code = "mattered" if seen else "no-difference" if tested else "nothing-measured"
    return Verdict(code, {"metrics": float(len(tested)), "significant": float(seen)})


def _numbers(found: ab.TrialOutcome) -> Table:
    interval = Column("95 %", head="B vs A interval")
    least = "minimum detectable effect (80 % power)"
    heads = [*columns("number | unit | A | B | B vs A [=ratio]"), interval, Column("verdict")]
    rows: list[Cells] = [
        [
            one.name,
            one.unit,
            _mean(one.a),
            _mean(one.b),
            _share(one.difference),
            span_text(one.difference),
            ab.verdict(one),
            _least(one),
        ]
        for one in found.effects
    ]
    return Table("A and B", [*heads, Column(least, head="least effect")], rows)


def _share(difference: Difference | None) -> Cell:
    share = None if difference is None else difference.share
    return Cell(share, text=share_text(share))


def _mean(values: tuple[float, ...]) -> Cell | None:
    """Of positive values the geometric mean, of which the difference is one."""
    if not values:
        return None
    return Cell((statistics.geometric_mean if min(values) > 0 else statistics.fmean)(values))


def _least(one: Effect) -> str:
    if one.visible is None:
        return units.DASH
    return share_text(one.visible) if one.visible > 0 else "any"


def _runs(found: ab.TrialOutcome) -> list[Figure]:
    """The first numbers of every run, in the order of time."""
    places = {side: [r.place for r in found.runs if r.side == side] for side in "AB"}
    return [
        Figure(
            one.name,
            "run",
            one.unit,
            [
                Curve(side, [float(place + 1) for place in places[side]], values, "dots", number)
                for number, (side, values) in enumerate((("A", one.a), ("B", one.b)))
                if len(values) == len(places[side])
            ],
            group="Every run",
        )
        for one in found.effects[:SHOWN]
    ]


def _method(found: ab.TrialOutcome) -> str:
    drift = "" if found.simulated or found.pairs < 4 else ", a steady drift taken out"
    pairs = f"Differences of pairs (t test on logarithms{drift})"
    how = pairs if found.undoable else "Welch's test on logarithms"
    return f"{how}; a difference counts in spite of the number of comparisons (Holm, 5 %)."
