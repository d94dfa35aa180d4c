"""``ssdlab sweep``: one job on many variants of a simulated drive, and one table of them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View
from ssdlab.cli.made import of
from ssdlab.cli.options import PlanOnly, document, option
from ssdlab.errors import InputError
from ssdlab.output import Output

if light.BODIES:
    from ssdlab import bench, units
    from ssdlab.api.sweep import below, swept
    from ssdlab.cli.output import notice, progress, say, write_json
    from ssdlab.cli.run import show as show_run
    from ssdlab.store import RunStore
    from ssdlab.sweeps import Dataset, Sweep, SweepOrder, forecast
    from ssdlab.sweeps.search import AGAIN, BEST_MAX, FRONT_MAX, Search
    from ssdlab.target import Settings

PRINTED_MAX = 100
"""Rows of a table that are printed."""


@dataclass(frozen=True)
class SweepView(View):
    """How the answer is wanted; ``-o`` is the folder of the table."""

    report: Output | None = document("--report", help="Write an HTML report there.")


@of("sweep")
def command(
    yes: bool,
    cluster: str | None,
    *,
    out: Path | None = option(
        "DIR", "Folder of the table; what is in it is not run again.", "--out", "-o"
    ),
    plan: PlanOnly = False,
    run: str | None = option(
        "KEY",
        "Do one of the runs alone, by its key in the table or the start of it, and show and "
        "keep it as `ssdlab run` does.",
    ),
    view: SweepView,
    ask: Ask,
) -> None:
    """Does what is asked for instead of the sweep, or all of it."""
    if plan:
        view.require_no_documents("--plan", "--json")
    order = _order(ask)
    if run is not None:
        _show_run(order, run, view, ask)
        return
    sweep = order.sweep(**({"runs_max": None} if yes else {}))
    if plan:
        _say_plan(order, sweep, out, cluster, view)
        return
    if out is None:
        raise InputError("say with -o DIR where the table is kept")
    report = swept(
        order,
        sweep,
        out,
        cluster=cluster,
        progress=not view.quiet,
        notice=None if view.quiet else notice,
        line=_line(ask.given),
    )
    view.show(report.answer, seconds=ask.seconds, kept=out, most=PRINTED_MAX)


def _show_run(order: SweepOrder, key: str, view: SweepView, ask: Ask) -> None:
    """Does one of the runs again, and shows all of it."""
    runs = {run.key: run for run in order.sweep(runs_max=None).runs() if run.key.startswith(key)}
    if len(runs) != 1 or not key:
        many = f"{len(runs)} runs have keys that begin so" if runs else "no run has this key"
        raise InputError(f'--run "{key}": {many}; the table and the page tell them')
    (run,) = runs.values()
    with progress(run.job.name, quiet=view.quiet) as callback:
        settings = Settings(seed=run.seed, prepare=run.prepare, progress=callback)
        result = run.target.run(run.job, settings)
    RunStore().save(result)
    told = ", ".join(f"{name} {text}" for name, text in run.values.items() if name != "seed")
    show_run(result, f"{told}: {run.job.name}", view, ask.seconds)


def _line(given: Mapping[str, Any]) -> str:
    """The command line that asks for the same runs."""
    words = ["ssdlab", "sweep", *([] if given["job"] is None else [str(given["job"])])]
    for name in "on prepare scale set vary zip sample where seeds prices".split():
        value = given[name]
        if isinstance(value, dict):
            value = [f"{key}={text}" for key, text in value.items()]
        several = value if isinstance(value, list) else [] if value is None else [value]
        words += [word for one in several for word in (f"--{name}", str(one))]
    return shlex.join(words)


def _say_plan(
    order: SweepOrder, sweep: Sweep, out: Path | None, cluster: str | None, view: View
) -> None:
    memory = sweep.check()
    if order.search:
        search = Search.of(sweep, order)
        best = BEST_MAX if len(search.goals) == 1 else FRONT_MAX
        most = search.budget * sweep.seeds + AGAIN * best
        write_json(view.json_, {"runs_max": most, "memory_bytes_each": memory})
        size = units.size_text(memory)
        say(view.console, f"up to {most:,} runs at full length, each with up to {size} of memory")
        return
    kept = None if out is None or not out.is_dir() else Dataset(out, sweep.axes)
    found = forecast(sweep, memory, kept, cores=bench.cores(cluster))
    write_json(view.json_, found.document())
    say(view.console, f"{found.sentence}; nothing was kept")


def _order(ask: Ask) -> SweepOrder:
    """What the line says, over what its file says."""
    given = ask.given
    several = {name: given[name] or () for name in ("where", "search", "target")}
    groups = [units.words("--zip", one) for one in given["zip"] or []]
    prices = given["prices"] and Path(given["prices"])
    said = ask(SweepOrder, job=None, zip=groups, prices=prices, **several)
    return said.over(below(given["job"]))
