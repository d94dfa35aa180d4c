"""``ssdlab explain``: where the time of a simulated run went, and what would help."""

from __future__ import annotations

from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import BenchOptions, KeptWhere, OneRun

if light.BODIES:
    from ssdlab.analysis.measurement import SYNC, Direction
    from ssdlab.answers import explanation
    from ssdlab.results import Result
    from ssdlab.store import RunStore
    from ssdlab.studies import explain
    from ssdlab.studies.explain import ChangeOutcome


@answering
def command(
    run: OneRun,
    tries: Annotated[
        bool,
        typer.Option("--try/--no-try", help="Repeat the run with one thing changed at a time."),
    ] = True,
    out: KeptWhere = None,
    *,
    where: BenchOptions,
    view: View,
) -> None:
    """Say where the time of a simulated run went, and what would help."""
    result = RunStore(out).open(run).result()
    explain.require_simulated(result)
    outcomes: list[ChangeOutcome] = []
    if tries and result.rig_toml is not None and result.measurement.main is not None:
        outcomes = _try(result, _main(result), where, quiet=view.quiet)
    view.show(explanation.answer(result, outcomes), whole=True)


def _main(result: Result) -> Direction:
    """The direction that changes are tried on: the busiest of the job that the run is about."""
    job = result.measurement.main
    assert job is not None
    return max(job.directions, key=lambda one: one.total_ios if one.ddir != SYNC else 0)


def _try(
    result: Result, main: Direction, where: BenchOptions, *, quiet: bool
) -> list[ChangeOutcome]:
    tried = explain.changes(result)
    with where.progress("trying changes", quiet=quiet) as callback:
        outcomes = explain.attempt(result, main, tried, callback)
    ranked = sorted(outcomes, key=lambda one: -one.iops)
    return [explain.outcome(result, main), *ranked]
