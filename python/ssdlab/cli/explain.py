"""``ssdlab explain``: where the time of a simulated run went, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from ssdlab import explain, units
from ssdlab.analysis import flash
from ssdlab.analysis.attribution import Breakdown
from ssdlab.analysis.measurement import SYNC, Direction
from ssdlab.cli.console import progress, table, window_text
from ssdlab.cli.options import Json, KeptWhere
from ssdlab.cli.output import results, write_json
from ssdlab.explain import Explained, Outcome, Wear
from ssdlab.progress import Progress
from ssdlab.report import why
from ssdlab.report.catalogue import ENGLISH as say
from ssdlab.report.numbers import Numbers
from ssdlab.results import Result
from ssdlab.store import RunStore

BAR = 40
"""Characters of a whole bar."""
SHADES = "█▒░·"
"""Of the parts in a bar, the largest first."""
WORTH = 0.01
"""Parts below this share are not named."""


def _run_ids(incomplete: str) -> list[str]:
    return [entry.id for entry in RunStore().entries() if incomplete in entry.id]


def command(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="A simulated run: its folder or id.", autocompletion=_run_ids
        ),
    ],
    tries: Annotated[
        bool,
        typer.Option("--try/--no-try", help="Repeat the run with one thing changed at a time."),
    ] = True,
    json_: Json = None,
    out: KeptWhere = None,
) -> None:
    """Say where the time of a simulated run went, and what would help."""
    result = Result.load(RunStore(out).find(run))
    found = explain.directions(result)
    console = results(json_)
    for direction in found:
        for line in _time(direction):
            console.print(line, markup=False, soft_wrap=True)
        console.print()
    written = explain.main_write(result)
    causes = flash.causes(written.growth) if written is not None else {}
    if written is not None:
        console.print(_causes(written, causes), markup=False, soft_wrap=True)
    wear = explain.wear_of(result, written.growth if written is not None else {})
    if wear is not None:
        for sentence in why.wear(wear, say, Numbers(say)):
            console.print(sentence, markup=False, soft_wrap=True)
    if causes or wear is not None:
        console.print()
    outcomes: list[Outcome] = []
    if tries and found and result.rig_toml is not None:
        main = _main(result)
        outcomes = _try(result, main)
        console.print(f"{main.job}, {main.ddir}, with one thing changed:", markup=False)
        console.print(_table(outcomes))
    write_json(json_, _document(result, found, causes, wear, outcomes))


def _main(result: Result) -> Direction:
    """The direction that changes are tried on: the busiest of the job that the run is about."""
    job = result.measurement.main
    assert job is not None  # there are breakdowns
    return max(job.directions, key=lambda one: one.total_ios if one.ddir != SYNC else 0)


def _time(explained: Explained) -> list[str]:
    """A heading and a line with its bar for the mean and each percentile."""
    one = explained.measured
    heading = f"{one.job}, {one.ddir}: {units.number(one.iops)} IOPS, {window_text(one.window)}"
    points = (
        f"  {point.point:6} {units.latency(point.total_ns):>8}  {_bar(point)}  {_words(point)}"
        for point in explained.points
    )
    told = explained.points and not one.window.whole
    note = ["  mean: of the measurement window; p99, p99.9 and worst: of the whole job"]
    return [heading, *points, *(note if told else [])]


def _bar(point: Breakdown) -> str:
    """The parts side by side, the largest first: in the order of the words beside the bar."""
    shares = sorted(point.shares.values(), reverse=True)
    shades = [*SHADES, *([SHADES[-1]] * len(shares))]
    bar = "".join(shade * round(BAR * share) for shade, share in zip(shades, shares, strict=False))
    return bar[:BAR].ljust(BAR)


def _words(point: Breakdown) -> str:
    shares = sorted(point.shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{share:.0%} {say.part(part)}" for part, share in shares if share >= WORTH)


def _causes(written: Direction, causes: dict[str, float]) -> str:
    named = {cause: units for cause, units in causes.items() if units >= WORTH / 2}
    parts = ", ".join(f"{units:.2f} for {cause}" for cause, units in named.items())
    return f"write amplification of {written.job} {written.waf:.2f}: {parts}"


def _try(result: Result, main: Direction) -> list[Outcome]:
    tried = explain.changes(result)
    with progress("trying changes") as callback:
        outcomes = explain.attempt(result, main, tried, lambda share: callback(Progress(share)))
    ranked = sorted(outcomes, key=lambda one: -one.iops)
    return [explain.outcome(result, main), *ranked]


def _table(outcomes: Sequence[Outcome]) -> Any:
    columns = [("changed", "left"), ("IOPS", "right"), ("gain", "right")]
    columns += [
        ("latency p99.9", "right"),
        ("of before", "right"),
        ("write amplification", "right"),
    ]
    base = outcomes[0]
    rows = [
        [
            one.change.sentence if one.change else "nothing",
            f"{one.iops:,.0f}",
            f"{one.iops / base.iops - 1:+.0%}" if one.change and base.iops else "",
            units.latency(one.p999_ns),
            f"{one.p999_ns / base.p999_ns:.2f}" if one.change and base.p999_ns else "",
            "-" if one.waf is None else f"{one.waf:.2f}",
        ]
        for one in outcomes
    ]
    return table(columns, rows)


def _document(
    result: Result,
    found: Sequence[Explained],
    causes: dict[str, float],
    wear: Wear | None,
    outcomes: Sequence[Outcome],
) -> dict[str, Any]:
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
        for one in found
    ]
    tries = [
        {
            "change": one.change.name if one.change else None,
            "set": dict(one.change.overrides) if one.change else {},
            "iops": one.iops,
            "lat_p999_ns": one.p999_ns,
            "waf": one.waf,
        }
        for one in outcomes
    ]
    worn = (
        None
        if wear is None
        else {**asdict(wear.smart), "endurance": wear.endurance and asdict(wear.endurance)}
    )
    summary = result.summary()
    return {
        "summary": summary,
        "time": time,
        "write_amplification": causes,
        "wear": worn,
        "tries": tries,
    }
