"""``ssdlab explain``: where the time of a simulated run went, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from ssdlab import explain, units
from ssdlab.analysis.attribution import Breakdown
from ssdlab.cli.console import progress, table
from ssdlab.cli.options import Json, KeptWhere
from ssdlab.cli.output import results, write_json
from ssdlab.explain import Direction, Outcome, Wear
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
    causes = explain.programs(result)
    if causes:
        console.print(_causes(causes), markup=False, soft_wrap=True)
    wear = explain.wear_of(result)
    if wear is not None:
        for sentence in why.wear(wear, say, Numbers(say, str)):
            console.print(sentence, markup=False, soft_wrap=True)
    if causes or wear is not None:
        console.print()
    outcomes: list[Outcome] = []
    if tries and found and result.rig_toml is not None:
        main = found[-1]
        outcomes = _try(result, main)
        console.print(f"{main.job}, {main.ddir}, with one thing changed:", markup=False)
        console.print(_table(outcomes))
    write_json(json_, _document(found, causes, wear, outcomes))


def _time(direction: Direction) -> list[str]:
    """A heading and a line with its bar for the mean and each percentile."""
    heading = f"{direction.job}, {direction.ddir}: {direction.stats.iops:,.0f} IOPS"
    points = (
        f"  {one.point:6} {units.latency(one.total_ns):>8}  {_bar(one)}  {_words(one)}"
        for one in direction.points
    )
    return [heading, *points]


def _bar(point: Breakdown) -> str:
    """The parts side by side, the largest first: in the order of the words beside the bar."""
    shares = sorted(point.shares.values(), reverse=True)
    shades = [*SHADES, *([SHADES[-1]] * len(shares))]
    bar = "".join(shade * round(BAR * share) for shade, share in zip(shades, shares, strict=False))
    return bar[:BAR].ljust(BAR)


def _words(point: Breakdown) -> str:
    shares = sorted(point.shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{share:.0%} {say.part(part)}" for part, share in shares if share >= WORTH)


def _causes(causes: dict[str, float]) -> str:
    named = {cause: units for cause, units in causes.items() if units >= WORTH / 2}
    parts = ", ".join(f"{units:.2f} for {cause}" for cause, units in named.items())
    return f"write amplification of the whole run {sum(causes.values()):.2f}: {parts}"


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
    found: Sequence[Direction],
    causes: dict[str, float],
    wear: Wear | None,
    outcomes: Sequence[Outcome],
) -> dict[str, Any]:
    time = [
        {
            "job": direction.job,
            "ddir": direction.ddir,
            "iops": direction.stats.iops,
            "points": [
                {"point": p.point, "ios": p.ios, "total_ns": p.total_ns, "ns": p.ns}
                for p in direction.points
            ],
        }
        for direction in found
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
    return {"time": time, "write_amplification": causes, "wear": worn, "tries": tries}
