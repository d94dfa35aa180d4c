"""Why a simulated run came out so, as an answer: where the time went, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ssdlab.answer import Answer, Cell, Section, Table, Verdict, table
from ssdlab.answers import charts, head, run
from ssdlab.answers.charts import Trace
from ssdlab.answers.job_tables import causes_table, mix_note, smart_table, time_cell, time_table
from ssdlab.answers.members import of_members
from ssdlab.results import Result
from ssdlab.studies.compare import share_cell
from ssdlab.studies.explain import ChangeOutcome

CLOSE = 0.02
"""The change that gained most by this share more than the next did so with each of four seeds, in
15 of 15 runs; where it led by less than 0.01, with another seed mostly another did (28 runs). Ours.
"""
FEW = 0.1
"""So small a gain may be the seed's: over four seeds one varied by 9 % (standard deviation) in
short runs that collect, nine in ten of all by 2 % or less. Ours."""


def answer(result: Result, outcomes: Sequence[ChangeOutcome] = ()) -> Answer:
    """The explanation of a run; ``outcomes`` are what changes made of its main job, the first of
    them the run itself."""
    whole = run.answer([result])
    jobs = run.traces_of([result])
    own = [trace for job in jobs for trace in job if trace.points]
    first = head.main_of(jobs)
    # Both directions of a mix: what one waits for is not what the other does.
    main = [trace for trace in own if trace.job in [one.job for one in first]]
    tables = [_tried(outcomes, first)] if len(outcomes) > 1 else []
    tables += [time_table(main), causes_table(main), smart_table(main)]
    said = [*dict.fromkeys(text for trace in main for text in run.reasons(trace))]
    said += of_members(result)
    figures = [*charts.where_the_time_goes(main), *charts.time_by_part(main)]
    lead = Section(
        said,
        numbers=whole.lead.numbers,
        tables=[table for table in tables if table.rows],
        figures=figures,
        key="why",
        title="Why",
        verdict=_verdict(outcomes),
    )
    return replace(
        whole,
        title=f"Why {head.title([one.run for one in first], first) or whole.title} came out so",
        kind="explanation",
        sections=[lead],
        notes=[_seeds(outcomes)] if any(outcome.change for outcome in outcomes) else (),
        data={**whole.data, **_data(own, outcomes)},
    )


def _verdict(outcomes: Sequence[ChangeOutcome]) -> Verdict:
    tried = [outcome for outcome in outcomes if outcome.change is not None]
    if not tried:
        return Verdict("explained")
    best = max(tried, key=lambda outcome: outcome.iops)
    gain = best.iops / outcomes[0].iops - 1 if outcomes[0].iops else None
    return Verdict("explained", {"best": best.change.name if best.change else None, "gain": gain})


def _seeds(outcomes: Sequence[ChangeOutcome]) -> str:
    """How the changes were tried, and what of it another seed may say otherwise."""
    note = "With one thing changed: each once, with the seed of the run."
    base = outcomes[0].iops
    gains = sorted((one.iops / base - 1 for one in outcomes if one.change and base), reverse=True)
    if not gains:
        return note
    if gains[0] < CLOSE:
        return f"{note} No gain is more than another seed may make."
    if len(gains) > 1 and 1 + gains[0] < (1 + CLOSE) * (1 + gains[1]):
        return f"{note} With another seed the second may gain most."
    if any(0 < round(abs(gain), 3) < FEW for gain in gains):
        return f"{note} A gain of a few percent may be that of another seed."
    return note


def _tried(outcomes: Sequence[ChangeOutcome], main: Sequence[Trace]) -> Table:
    """The run repeated with one thing changed at a time."""
    base = outcomes[0].iops

    def gain(outcome: ChangeOutcome) -> Cell | None:
        return share_cell(outcome.iops / base - 1 if base else None) if outcome.change else None

    return table(
        "With one thing changed",
        outcomes,
        {
            "changed": lambda outcome: outcome.change.sentence if outcome.change else "nothing",
            "IOPS": lambda outcome: outcome.iops,
            "gain [=%]": gain,
            "p99.9 [=us]": lambda outcome: time_cell(outcome.p999_ns),
            "WA": lambda outcome: outcome.waf,
        },
        mix_note(main),
        optional=["WA"],  # reads have none
    )


def _data(own: Sequence[Trace], outcomes: Sequence[ChangeOutcome]) -> Mapping[str, Any]:
    """What scripts read: times in ns by part, WA by cause, wear, what was tried."""
    time = [
        {
            "job": trace.measured.job,
            "ddir": trace.measured.ddir,
            "iops": trace.measured.iops,
            "points": [
                {
                    "point": p.point,
                    "ios": p.ios,
                    "total_ns": p.total_ns,
                    "ns": p.ns,
                    "whole": p.whole,
                }
                for p in trace.points
            ],
        }
        for trace in own
    ]
    tried = [
        {
            "change": outcome.change.name if outcome.change else None,
            "set": dict(outcome.change.overrides) if outcome.change else {},
            "iops": outcome.iops,
            "clat_p999_ns": outcome.p999_ns,
            "waf": outcome.waf,
        }
        for outcome in outcomes
    ]
    written = next((trace for trace in reversed(own) if trace.causes), None)
    wear = None if written is None else written.wear
    return {
        "time": time,
        "write_amplification": {} if written is None else written.causes,
        "wear": None if wear is None else wear.document(),
        "tries": tried,
    }
