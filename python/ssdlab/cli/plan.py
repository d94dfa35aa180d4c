"""``ssdlab plan``: what to buy, simulated before it is bought."""

from __future__ import annotations

from pathlib import Path

import typer

from ssdlab.arrays.workloads import WORKLOADS
from ssdlab.cli import light
from ssdlab.cli.answer import Ask, View, answering
from ssdlab.cli.options import DiskCache, JobFile, Prices, ReuseOptions, Seed, flag, option
from ssdlab.cli.trace_options import Fit, TraceOptions
from ssdlab.plan.storage.candidates import SYNTAX
from ssdlab.plan.storage.loads import WRITES_PER_DAY
from ssdlab.plan.stores import FORMS, MODES, RAM_MODES

if light.BODIES:
    from ssdlab.api.plan import plan_cache, plan_storage

app = typer.Typer(
    help="What to buy, simulated before it is bought.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command("cache")
@answering
def for_pool(
    pool: str = option(
        "STORE",
        f"What is cached: {FORMS}.",
        default=...,
        autocompletion=light.complete_store,
    ),
    cache: list[str] = option(
        "STORE",
        "What to cache on; may be given again.",
        default=...,
        autocompletion=light.complete_store,
    ),
    trace: Path | None = option("TRACE", "The load, as a trace."),
    job: JobFile = None,
    sizes: str | None = option(
        "LIST", "Sizes of the cache, such as 16G,32G; else by the working set of the load."
    ),
    blocks: str | None = option("LIST", "Sizes of a block: 16k,64k."),
    thresholds: str | None = option(
        "LIST", "Admission thresholds: admit a block on its Nth access: 1,2."
    ),
    policies: str | None = option(
        "LIST",
        "Replacement policies: lru,arc,s3-fifo.",
        autocompletion=light.complete_list("replacement"),
    ),
    modes: str | None = option(
        "LIST",
        f"Of {', '.join(MODES)}; else the first three.",
        autocompletion=light.complete_list("modes"),
    ),
    preset: list[str] | None = option(
        "NAME",
        "A product's cache with all of its settings, besides; may be given again.",
        autocompletion=light.complete("presets"),
    ),
    goal: str = option(
        "iops|p99|price",
        "What counts: speed when warm, the 99th percentile, or price per 1000 IOPS.",
        default="iops",
    ),
    accept_loss: bool = flag(
        "Allow configurations where one drive failure loses acknowledged writes."
    ),
    years: float = option("N", "How long the cache has to last.", default=5.0, min=0.0),
    prices: Prices = None,
    top: int | None = option(
        "N", "Caches that are simulated in time; 6 (4 with --quick) unless given.", min=1
    ),
    depth: int = option("N", "Requests in flight at full speed.", default=32, min=1),
    passes: int | None = option(
        "N",
        "How often a trace is run at full speed, the cache growing warm (more often while it "
        "still gets faster); 3 (2 with --quick), or what its threshold needs, unless given.",
        min=1,
    ),
    disk_cache: DiskCache = False,
    ram: str | None = option(
        "SIZE", "RAM of the host as a cache before the pool and every cache alike: 4GiB."
    ),
    ram_policy: str = option(
        "NAME",
        "Its replacement policy.",
        default="lru",
        autocompletion=light.complete("replacement"),
    ),
    ram_mode: str = option(
        "|".join(RAM_MODES),
        "Its mode; write-back loses acknowledged writes with the power.",
        default=RAM_MODES[0],
    ),
    sampled: str | None = option(
        "PERCENT",
        "The trace is a sample of so much of the addresses (trace sample --share): say what "
        "that means for the whole.",
    ),
    save_rigs: Path | None = option(
        "DIR", "Write what was simulated as rig files, which run takes; other files stay."
    ),
    fit: Fit = "as-is",
    *,
    how: TraceOptions,
    seed: Seed = 1,
    quick: bool = flag("Fewer candidates and passes, for a first look."),
    where: ReuseOptions,
    view: View,
    ask: Ask,
) -> None:
    """Find the cache for a load: size, block, policy, mode; speed, warm-up, wear and price."""
    view.show(ask(plan_cache).answer, seconds=ask.seconds)


@app.command("storage")
@answering
def stores(
    candidate: list[str] | None = option(
        "STORE",
        f"What may be bought: {SYNTAX}. STORE is a drive, a rig file, or "
        "LEVEL:COUNT:DRIVE[:CHUNK]. Given several times; without it two large disks, twelve "
        "fast ones, twelve SSDs, and two disks behind a cache are compared.",
        autocompletion=light.complete_store,
    ),
    job: JobFile = None,
    workload: str | None = option(
        "NAME",
        f"A load by name instead: {', '.join(load.name for load in WORKLOADS)}.",
        "--workload",
        autocompletion=light.complete("workloads"),
    ),
    prices: Prices = None,
    depth: int | None = option("N", "I/Os in flight; 256 unless given.", min=1),
    hot: str | None = option(
        "SIZE|all", "Where random I/O goes; 20 million sectors (10.24GB) unless given."
    ),
    contiguous: bool = flag("The hot set lies at the beginning, not all over the store."),
    writes_per_day: str = option(
        "SIZE", "For the life of SSDs.", default=f"{WRITES_PER_DAY / 1e9:.0f}GB"
    ),
    iops: float | None = option(
        "N",
        "I/Os a second that are needed, of each kind of random I/O or of the load; what to take "
        "for all that is needed is said first.",
        min=0.0,
    ),
    space: str | None = option("SIZE", "Space that is needed."),
    years: float | None = option("N", "How long SSDs have to last.", min=0.0),
    disk_cache: DiskCache = False,
    scale: int | None = option("N", "With --job: scale capacity and duration down by N.", min=1),
    seed: Seed = 1,
    quick: bool = flag("A rough look: shorter and smaller."),
    *,
    where: ReuseOptions,
    view: View,
    ask: Ask,
) -> None:
    """Compare what may be bought: speed, space, life, safety, price; and what to take for what."""
    view.show(ask(plan_storage).answer, seconds=ask.seconds)
