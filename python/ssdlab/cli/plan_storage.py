"""``ssdlab plan storage``: disks, arrays, caches and SSDs beside each other, with prices."""

from __future__ import annotations

from typing import Annotated

from ssdlab.arrays.workloads import WORKLOADS
from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import DiskCache, JobFile, Prices, ReuseOptions, Seed, flag, option
from ssdlab.plan.storage.candidates import SYNTAX
from ssdlab.plan.storage.loads import WRITES_PER_DAY

if light.BODIES:
    from ssdlab.api.plan import plan_storage


@answering
def command(
    candidate: Annotated[
        list[str] | None,
        option(
            "STORE",
            f"What may be bought: {SYNTAX}. STORE is a drive, a rig file, or "
            "LEVEL:COUNT:DRIVE[:CHUNK]. Given several times; without it two large disks, twelve "
            "fast ones, twelve SSDs, and two disks behind a cache are compared.",
        ),
    ] = None,
    job: JobFile = None,
    workload: Annotated[
        str | None,
        option(
            "NAME",
            f"A load by name instead: {', '.join(load.name for load in WORKLOADS)}.",
            "--workload",
        ),
    ] = None,
    prices: Prices = None,
    depth: Annotated[int | None, option("N", "I/Os in flight; 256 unless given.", min=1)] = None,
    hot: Annotated[
        str | None,
        option("SIZE|all", "Where random I/O goes; 20 million sectors (10.24GB) unless given."),
    ] = None,
    contiguous: Annotated[
        bool, flag("The hot set lies at the beginning, not all over the store.")
    ] = False,
    writes_per_day: Annotated[
        str, option("SIZE", "For the life of SSDs.")
    ] = f"{WRITES_PER_DAY / 1e9:.0f}GB",
    disk_cache: DiskCache = False,
    scale: Annotated[
        int | None, option("N", "With --job: scale capacity and duration down by N.", min=1)
    ] = None,
    seed: Seed = 1,
    quick: Annotated[bool, flag("A rough look: shorter and smaller.")] = False,
    *,
    where: ReuseOptions,
    view: View,
    ask: Ask,
) -> None:
    """Compare what may be bought: speed, space, life, safety, price; and what to take for what."""
    view.show(ask(plan_storage).answer, seconds=ask.seconds)
