"""``ssdlab plan cache``: which cache to put before a pool, for a trace or a job."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import DiskCache, JobFile, Prices, ReuseOptions, Seed
from ssdlab.cli.trace_options import Fit, TraceOptions
from ssdlab.plan.stores import FORMS, MODES, RAM_MODES

if light.BODIES:
    from ssdlab.api.plan import plan_cache


@answering
def command(
    pool: Annotated[str, typer.Option("--pool", metavar="STORE", help=f"What is cached: {FORMS}.")],
    cache: Annotated[
        list[str],
        typer.Option("--cache", metavar="STORE", help="What to cache on; may be given again."),
    ],
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="TRACE", help="The load, as a trace.")
    ] = None,
    job: JobFile = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            metavar="LIST",
            help="Sizes of the cache, such as 16G,32G; else by the working set of the load.",
        ),
    ] = None,
    blocks: Annotated[
        str | None, typer.Option("--blocks", metavar="LIST", help="Sizes of a block: 16k,64k.")
    ] = None,
    thresholds: Annotated[
        str | None,
        typer.Option(
            "--thresholds",
            metavar="LIST",
            help="Admission thresholds: admit a block on its Nth access: 1,2.",
        ),
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option("--policies", metavar="LIST", help="Replacement policies: lru,arc,s3-fifo."),
    ] = None,
    modes: Annotated[
        str | None,
        typer.Option(
            "--modes",
            metavar="LIST",
            help=f"Of {', '.join(MODES)}; else the first three.",
        ),
    ] = None,
    preset: Annotated[
        list[str] | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="A product's cache with all of its settings, besides; may be given again.",
        ),
    ] = None,
    goal: Annotated[
        str,
        typer.Option(
            "--goal",
            metavar="iops|p99|price",
            help="What counts: speed when warm, the 99th percentile, or price per 1000 IOPS.",
        ),
    ] = "iops",
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Allow configurations where one drive failure loses acknowledged writes.",
        ),
    ] = False,
    years: Annotated[
        float,
        typer.Option("--years", min=0.0, metavar="N", help="How long the cache has to last."),
    ] = 5.0,
    prices_: Prices = None,
    top: Annotated[
        int | None,
        typer.Option("--top", min=1, metavar="N", help="Caches that are simulated in time."),
    ] = None,
    depth: Annotated[
        int, typer.Option("--depth", min=1, metavar="N", help="Requests in flight at full speed.")
    ] = 32,
    passes: Annotated[
        int | None,
        typer.Option(
            "--passes",
            min=1,
            metavar="N",
            help="How often a trace is run at full speed, the cache growing warm (more often while "
            "it still gets faster).",
        ),
    ] = None,
    disk_cache: DiskCache = False,
    ram: Annotated[
        str | None,
        typer.Option(
            "--ram",
            metavar="SIZE",
            help="RAM of the host as a cache before the pool and every cache alike: 4GiB.",
        ),
    ] = None,
    ram_policy: Annotated[
        str, typer.Option("--ram-policy", metavar="NAME", help="Its replacement policy.")
    ] = "lru",
    ram_mode: Annotated[
        str,
        typer.Option(
            "--ram-mode",
            metavar="|".join(RAM_MODES),
            help="Its mode; write-back loses acknowledged writes with the power.",
        ),
    ] = RAM_MODES[0],
    sampled: Annotated[
        str | None,
        typer.Option(
            "--sampled",
            metavar="PERCENT",
            help="The trace is a sample of so much of the addresses (trace sample --share): say "
            "what that means for the whole.",
        ),
    ] = None,
    save_rigs: Annotated[
        Path | None,
        typer.Option(
            "--save-rigs",
            metavar="DIR",
            help="Write what was simulated as rig files, which run takes; other files stay.",
        ),
    ] = None,
    fit: Fit = "as-is",
    *,
    how: TraceOptions,
    seed: Seed = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer candidates and passes, for a first look.")
    ] = False,
    where: ReuseOptions,
    view: View,
) -> None:
    """Find the cache for a load: size, block, policy, mode; speed, warm-up, wear and price."""
    started = time.monotonic()
    report = plan_cache(
        pool=pool,
        cache=cache,
        trace=trace,
        job=job,
        sizes=sizes,
        blocks=blocks,
        thresholds=thresholds,
        policies=policies,
        modes=modes,
        preset=preset,
        goal=goal,
        accept_loss=accept_loss,
        years=years,
        prices=prices_,
        top=top,
        depth=depth,
        passes=passes,
        disk_cache=disk_cache,
        ram=ram,
        ram_policy=ram_policy,
        ram_mode=ram_mode,
        sampled=sampled,
        save_rigs=save_rigs,
        fit=fit,
        **how.given,
        seed=seed,
        quick=quick,
        fresh=where.fresh,
        cluster=where.cluster,
        progress=not view.quiet,
    )
    view.show(report.answer, seconds=time.monotonic() - started)
