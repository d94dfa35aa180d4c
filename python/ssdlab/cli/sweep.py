"""``ssdlab sweep``: one job on many variants of a simulated drive, and one table of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import BenchOptions, PlanOnly, Prepare, SetKeys, document, keys
from ssdlab.errors import InputError
from ssdlab.output import Output

if light.BODIES:
    from ssdlab import units
    from ssdlab.answers.sweep import answer as sweep_answer
    from ssdlab.cli.console import progress
    from ssdlab.cli.output import say, write_json
    from ssdlab.jobfile import read_job
    from ssdlab.sweeps import Dataset, Sweep, axis, carry_out


@dataclass(frozen=True)
class Outputs(View):
    """How the answer is wanted; ``-o`` is the folder of the table."""

    report: Annotated[Output | None, document("--report", help="Write an HTML report there.")] = (
        None
    )


@answering
def command(
    job: Annotated[
        Path, typer.Argument(metavar="JOB.fio", help="A fio job file, the same for all runs.")
    ],
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="TARGET",
            help="A profile's name or a rig file (.toml).",
            autocompletion=light.complete("drives"),
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder of the table; what is in it is not run again.",
        ),
    ],
    vary: Annotated[
        list[str],
        typer.Option(
            "--vary",
            metavar="KEY=VALUES",
            help="Values of a key of the rig (ftl.over_provisioning=0.07,0.28), of an option of "
            "the job (job.iodepth=1..256x2), of prepare, or of target. May be given again: each "
            "with each.",
        ),
    ],
    zip_: Annotated[
        bool,
        typer.Option(
            "--zip",
            help="The first values of all keys together, then the second; not each with each.",
        ),
    ] = False,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="Runs of each, with seeds from 1 on.")
    ] = 1,
    set_: SetKeys = None,
    prepare: Prepare = None,
    plan: PlanOnly = False,
    *,
    where: BenchOptions,
    view: Outputs,
) -> None:
    """Run a job on many variants of a simulated drive; the table grows while it runs."""
    started = time.monotonic()
    sweep = Sweep(
        read_job(job),
        on,
        [axis(one) for one in vary],
        seeds,
        prepare or "fob",
        keys(set_),
        together=zip_,
    )
    memory = sweep.check()
    if plan:
        write_json(view.json_, {"runs": len(sweep), "memory_bytes_each": memory})
        size = units.size_text(memory)
        say(view.console, f"{len(sweep):,} runs, each with up to {size} of memory; nothing was run")
        return
    dataset = Dataset(out, sweep.axes)
    with (
        where.engine(quiet=view.quiet),
        progress(f"sweep of {len(sweep):,} runs", quiet=view.quiet) as callback,
    ):
        outcome = carry_out(sweep, dataset, callback)
    if outcome.failed and not outcome.ran and not outcome.before:
        raise InputError(f"no run could be made; of the first: {outcome.failed[0][1].message}")
    found = sweep_answer(sweep, dataset.of(sweep), outcome, str(out))
    view.show(found, seconds=time.monotonic() - started, kept=out, whole=True)
