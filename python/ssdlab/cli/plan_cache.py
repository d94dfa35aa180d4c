"""``ssdlab plan cache``: which cache to put before a pool, for a trace or a job."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ssdlab import _core, units
from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import BenchOptions, Seed
from ssdlab.cli.trace_options import TraceOptions
from ssdlab.errors import InputError, unknown_name
from ssdlab.plan.stores import FORMS, MODES

if light.BODIES:
    from ssdlab.jobfile import read_job
    from ssdlab.plan.cache import CacheStudy
    from ssdlab.plan.candidates import THRESHOLD_MAX
    from ssdlab.plan.prices import prices
    from ssdlab.plan.rows import GOALS, Rules
    from ssdlab.plan.stores import store
    from ssdlab.plan.study import carry_out
    from ssdlab.tracefile import FITS, existing

QUICK: dict[str, Any] = {
    "top": 4,
    "passes": 2,
    "policies": ("lru",),
    "thresholds": (1,),
    "blocks": (64 << 10,),
}
"""What --quick leaves of the defaults."""


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
    job: Annotated[
        Path | None, typer.Option("--job", metavar="JOB.fio", help="The load, as a fio job file.")
    ] = None,
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
    prices_: Annotated[
        Path | None, typer.Option("--prices", metavar="FILE", help="Prices of drives (TOML).")
    ] = None,
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
            help="How often a trace is run at full speed, the cache growing warm.",
        ),
    ] = None,
    fit: Annotated[
        str,
        typer.Option(
            "--fit",
            metavar="as-is|wrap|scale",
            help="Addresses beyond the pool: refused, begun again at 0, or all scaled to it.",
        ),
    ] = "as-is",
    *,
    how: TraceOptions,
    seed: Seed = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer candidates and passes, for a first look.")
    ] = False,
    where: BenchOptions,
    view: View,
) -> None:
    """Find the cache for a load: size, block, policy, mode; speed, warm-up, wear and price."""
    if (trace is None) == (job is None):
        raise InputError("name one load: --trace TRACE or --job JOB.fio")
    if goal not in GOALS:
        raise unknown_name("goal", goal, GOALS)
    if fit not in FITS:
        raise InputError(f'--fit "{fit}": expected {", ".join(FITS)}')
    study = CacheStudy(
        pool=store(pool),
        fasts=[store(name) for name in dict.fromkeys(cache)],
        prices=prices(prices_),
        trace=None if trace is None else existing(trace),
        reading=how.reading(),
        fit=fit,
        job=None if job is None else read_job(job),
        seed=seed,
        depth=depth,
        quick=quick,
        rules=Rules(goal, accept_loss, years),
        presets=_presets(preset or []),
    )
    changes: dict[str, Any] = dict(QUICK) if quick else {}
    changes |= _lists(sizes, blocks, thresholds, policies, modes)
    study = replace(study, **changes)
    study = replace(study, top=top or study.top)
    needed = 1 if job is not None else max(study.passes, max(study.thresholds) + 1)
    study = replace(study, passes=passes or min(needed, 10))
    started = time.monotonic()
    with where.progress(study.subject, quiet=view.quiet) as callback:
        answer = carry_out(study, callback)
    view.show(answer, seconds=time.monotonic() - started)


def _lists(
    sizes: str | None,
    blocks: str | None,
    thresholds: str | None,
    policies: str | None,
    modes: str | None,
) -> dict[str, Any]:
    """What the lists of the command line say, by the field of a study."""
    found: dict[str, Any] = {}
    if sizes is not None:
        expected = "sizes from 1m on, such as 16G,32G or 4g..64gx2"
        found["sizes"] = units.sizes(
            "--sizes", sizes, expected, lambda size: size >= 1 << 20 and size % 4096 == 0
        )
    if blocks is not None:
        expected = "powers of two from 512 bytes to 64 MiB, such as 16k,64k"
        found["blocks"] = units.sizes(
            "--blocks", blocks, expected,
            lambda size: 512 <= size <= 64 << 20 and size & (size - 1) == 0,
        )  # fmt: skip
    if thresholds is not None:
        expected = f"numbers of uses from 1 to {THRESHOLD_MAX}, such as 1,2"
        found["thresholds"] = units.counts(
            "--thresholds", thresholds, expected, lambda uses: 1 <= uses <= THRESHOLD_MAX
        )
    if policies is not None:
        known = [one["name"] for one in _core.registries() if one["kind"] == "replacement policy"]
        known.remove("optimal")  # it knows the future
        found["policies"] = _known("replacement policy", known, units.words("--policies", policies))
    if modes is not None:
        found["modes"] = _known("mode of a cache", MODES, units.words("--modes", modes))
    return found


def _known(kind: str, known: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    return names


def _presets(names: Sequence[str]) -> list[str]:
    for name in names:
        # The core knows the presets, and says so.
        if not name.replace("-", "").isalnum():
            raise InputError(f'--preset "{name}": expected the name of a product\'s cache')
        fast = _core.Rig.wrap("null", {"capacity": "1GiB"})
        pool = _core.Rig.wrap("null", {"capacity": "1TiB"})
        rig = _core.Rig.wrap("cache", {"preset": name}, name="--preset", cache=fast, below=pool)
        _core.rig_check(rig.to_toml(), rig_name="--preset")
    return list(dict.fromkeys(names))
