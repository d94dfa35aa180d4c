"""``ssdlab plan storage``: disks, arrays, caches and SSDs beside each other, with prices."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from ssdlab.arrays.workloads import WORKLOADS
from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import DiskCache, JobFile, Prices, ReuseOptions, Seed
from ssdlab.plan.storage.candidates import SYNTAX
from ssdlab.plan.storage.loads import WRITES_PER_DAY

if light.BODIES:
    from ssdlab.api.plan import plan_storage


@answering
def command(
    candidate_: Annotated[
        list[str] | None,
        typer.Option(
            "--candidate",
            metavar="STORE",
            help=f"What may be bought: {SYNTAX}. STORE is a drive, a rig file, or "
            "LEVEL:COUNT:DRIVE[:CHUNK]. Given several times; without it two large disks, twelve "
            "fast ones, twelve SSDs, and two disks behind a cache are compared.",
        ),
    ] = None,
    job_file: JobFile = None,
    load: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="NAME",
            help=f"A load by name instead: {', '.join(workload.name for workload in WORKLOADS)}.",
        ),
    ] = None,
    prices_file: Prices = None,
    depth: Annotated[
        int | None,
        typer.Option("--depth", min=1, metavar="N", help="I/Os in flight; 256 unless given."),
    ] = None,
    hot: Annotated[
        str | None,
        typer.Option(
            "--hot",
            metavar="SIZE|all",
            help="Where random I/O goes; 20 million sectors (10.24GB) unless given.",
        ),
    ] = None,
    contiguous: Annotated[
        bool,
        typer.Option(
            "--contiguous", help="The hot set lies at the beginning, not all over the store."
        ),
    ] = False,
    writes_per_day: Annotated[
        str, typer.Option("--writes-per-day", metavar="SIZE", help="For the life of SSDs.")
    ] = f"{WRITES_PER_DAY / 1e9:.0f}GB",
    disk_cache: DiskCache = False,
    scale: Annotated[
        int | None,
        typer.Option(
            "--scale", min=1, metavar="N", help="With --job: scale capacity and duration down by N."
        ),
    ] = None,
    seed: Seed = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="A rough look: shorter and smaller.")
    ] = False,
    *,
    where: ReuseOptions,
    view: View,
) -> None:
    """Compare what may be bought: speed, space, life, safety, price; and what to take for what."""
    started = time.monotonic()
    report = plan_storage(
        candidate=candidate_,
        job=job_file,
        workload=load,
        prices=prices_file,
        depth=depth,
        hot=hot,
        contiguous=contiguous,
        writes_per_day=writes_per_day,
        disk_cache=disk_cache,
        scale=scale,
        seed=seed,
        quick=quick,
        fresh=where.fresh,
        cluster=where.cluster,
        progress=not view.quiet,
    )
    view.show(report.answer, seconds=time.monotonic() - started)
