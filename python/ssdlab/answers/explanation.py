"""Why a simulated run came out so, as an answer: where the time went, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ssdlab import units
from ssdlab.answer import Answer, Cell, Cells, Section, Table, Verdict, columns
from ssdlab.answers import charts, run
from ssdlab.answers.charts import Trace
from ssdlab.answers.job_tables import causes_table, smart_table, time_table
from ssdlab.results import Result
from ssdlab.studies.explain import ChangeOutcome


def answer(result: Result, outcomes: Sequence[ChangeOutcome] = ()) -> Answer:
    """The explanation of a run; ``outcomes`` are what changes made of its main job, the first of
    them the run itself."""
    whole = run.answer([result])
    jobs = run.traces_of([result])
    own = [one for job in jobs for one in job if one.points]
    main = run.main_of(jobs)
    tables = [_tried(outcomes)] if outcomes else []
    tables += [time_table(main), causes_table(main), smart_table(main)]
    said = [text for trace in main for text in run.reasons(trace)]
    figures = [*charts.where_the_time_goes(main), *charts.time_by_part(main)]
    lead = Section(
        said,
        numbers=whole.lead.numbers,
        tables=[one for one in tables if one.rows],
        figures=figures,
        key="why",
        title="Why",
        verdict=_verdict(outcomes),
    )
    return Answer(
        title=f"Why {whole.title} came out so",
        kind="explanation",
        sections=[lead],
        checks=whole.checks,
        marks=whole.marks,
        facts=whole.facts,
        texts=whole.texts,
        data={**whole.data, **_data(own, outcomes)},
    )


def _verdict(outcomes: Sequence[ChangeOutcome]) -> Verdict:
    tried = [one for one in outcomes if one.change is not None]
    if not tried:
        return Verdict("explained")
    best = max(tried, key=lambda one: one.iops)
    gain = best.iops / outcomes[0].iops - 1 if outcomes[0].iops else None
    return Verdict("explained", {"best": best.change.name if best.change else None, "gain": gain})


def _tried(outcomes: Sequence[ChangeOutcome]) -> Table:
    """The run repeated with one thing changed at a time."""
    base = outcomes[0]
    rows: list[Cells] = []
    for one in outcomes:
        changed = one.change is not None
        gain = one.iops / base.iops - 1 if base.iops else None
        rows.append(
            [
                one.change.sentence if one.change else "nothing",
                Cell(one.iops),
                Cell(gain, text="" if gain is None else f"{gain:+.0%}") if changed else None,
                Cell(one.p999_ns / 1e3, text=units.latency(one.p999_ns)),
                None if one.waf is None else Cell(one.waf, text=f"{one.waf:.2f}"),
            ]
        )
    heads = columns("changed | IOPS | gain [=ratio] | p99.9 [=us] | WA")
    return Table("With one thing changed", heads, rows)


def _data(own: Sequence[Trace], outcomes: Sequence[ChangeOutcome]) -> Mapping[str, Any]:
    """What scripts read: times in ns by part, WA by cause, wear, what was tried."""
    time = [
        {
            "job": one.measured.job,
            "ddir": one.measured.ddir,
            "iops": one.measured.iops,
            "points": [
                {
                    "point": p.point,
                    "ios": p.ios,
                    "total_ns": p.total_ns,
                    "ns": p.ns,
                    "whole": p.whole,
                }
                for p in one.points
            ],
        }
        for one in own
    ]
    tried = [
        {
            "change": one.change.name if one.change else None,
            "set": dict(one.change.overrides) if one.change else {},
            "iops": one.iops,
            "clat_p999_ns": one.p999_ns,
            "waf": one.waf,
        }
        for one in outcomes
    ]
    written = next((one for one in reversed(own) if one.causes), None)
    wear = None if written is None else written.wear
    return {
        "time": time,
        "write_amplification": {} if written is None else written.causes,
        "wear": None if wear is None else wear.document(),
        "tries": tried,
    }
