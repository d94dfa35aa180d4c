"""``ssdlab sweep``: one job on many variants of a simulated drive, and one table of them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import (
    BenchOptions,
    Options,
    PlanOnly,
    Prepare,
    Prices,
    SetKeys,
    argument,
    document,
    flag,
    keys,
    option,
)
from ssdlab.errors import InputError
from ssdlab.output import Output

if light.BODIES:
    from ssdlab import bench, units
    from ssdlab.api.sweep import swept
    from ssdlab.cli.output import notice, progress, say, write_json
    from ssdlab.cli.run import show as show_run
    from ssdlab.store import RunStore
    from ssdlab.sweeps import Dataset, Sweep, SweepOrder, forecast, from_line
    from ssdlab.sweeps.search import AGAIN, BEST_MAX, FRONT_MAX, Search
    from ssdlab.target import Settings

PRINTED_MAX = 100
"""Rows of a table that are printed."""


@dataclass(frozen=True)
class SweepView(View):
    """How the answer is wanted; ``-o`` is the folder of the table."""

    report: Output | None = document("--report", help="Write an HTML report there.")


@dataclass(frozen=True)
class Variants(Options):
    """What varies; what a sweep's file says holds where an option says nothing."""

    vary: list[str] | None = option(
        "KEY=VALUES",
        "Values of a key of the rig (ftl.over_provisioning=0.07,0.28), of an option of the job "
        "(job.iodepth=1..256x2), of prepare, of target (drives and rig files) or of trace "
        "(files to replay). 1..64x4 is 1, 4, 16 and 64; with --sample or --search it is all from 1 "
        "to 64, by factors (write 1,4,16,64 for these alone). May be given again: each with each.",
    )
    zip_: list[str] | None = option(
        "KEY,KEY", "The values of these keys go together: the first of each, then the second."
    )
    sample: str | None = option(
        "lhs:N|sobol:N",
        "Draw N points from the ranges among the keys (0.07..0.5, or 1..256x evenly by "
        "factors) by a Latin hypercube or a Sobol sequence; lhs:N:SEED draws others.",
    )
    where: list[str] | None = option(
        "CONDITION",
        'Run only what meets this: "capacity x members <= 8 TB". Over what varies, keys of the '
        "rig, capacity, usable, members, memory and price.",
    )
    seeds: int | None = option("N", "Runs of each, with seeds from 1 on; 1 unless given.", min=1)
    series: bool | None = flag("Keep the series of every run too, in DIR/series.", default=None)
    prices_: Prices = None
    yes: bool = flag("Go on with more than a million runs as well.")


@dataclass(frozen=True)
class SearchOptions(Options):
    """Searching the best instead of running all."""

    search: list[str] | None = option(
        "MEASURE,...",
        "Search the best instead of running all: a number of the summary (waf, iops, p999, "
        "read.p99, endurance), price or another fact of the rig; max: or min: before it says "
        "which way. Several: what none surpasses in all (Pareto).",
    )
    target: list[str] | None = option(
        "CONDITION", 'What the best has to meet: "p999 < 5ms", "endurance > 600TB and price < 200".'
    )
    budget: int | None = option("N", "Combinations that a search tries; 100 unless given.", min=1)


@answering
def command(
    job: Path | None = argument(
        "JOB.fio|SWEEP.toml",
        "A fio job file, the same for all runs, or a file that says all of a sweep.",
        default=None,
    ),
    on: str | None = option(
        "TARGET", "A profile's name or a rig file (.toml).", autocompletion=light.complete("drives")
    ),
    out: Path | None = option(
        "DIR", "Folder of the table; what is in it is not run again.", "--out", "-o"
    ),
    set_: SetKeys = None,
    scale: int | None = option(
        "N", "Scale the capacity of simulated drives down by N; the job stays as it is.", min=1
    ),
    prepare: Prepare = None,
    plan: PlanOnly = False,
    run: str | None = option(
        "KEY",
        "Do one of the runs alone, by its key in the table or the start of it, and show and "
        "keep it as `ssdlab run` does.",
    ),
    *,
    variants: Variants,
    searching: SearchOptions,
    where: BenchOptions,
    view: SweepView,
    ask: Ask,
) -> None:
    """Run a job on many variants of a simulated drive; the table grows while it runs."""
    if plan:
        view.require_no_documents("--plan", "--json")
    order = _order(ask)
    if run is not None:
        _show_run(order, run, view, ask)
        return
    sweep = order.sweep(**({"runs_max": None} if variants.yes else {}))
    if plan:
        _say_plan(order, sweep, out, where.cluster, view)
        return
    if out is None:
        raise InputError("say with -o DIR where the table is kept")
    report = swept(
        order,
        sweep,
        out,
        cluster=where.cluster,
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
    vary = keys(given["vary"], "--vary", "job.iodepth=1..256x2")
    if len(vary) < len(given["vary"] or []):
        named = [one.partition("=")[0].strip() for one in given["vary"]]
        twice = next(one for one in named if named.count(one) > 1)
        raise InputError(f"--vary {twice}: is given twice; join its values by commas")
    several = {name: given[name] or () for name in ("where", "search", "target")}
    groups = [units.words("--zip", one) for one in given["zip"] or []]
    said = ask(SweepOrder, job=None, vary=vary, zip=groups, set=keys(given["set"]), **several)
    return said.over(from_line(given["job"]))
