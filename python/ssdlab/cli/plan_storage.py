"""``ssdlab plan storage``: disks, arrays, caches and SSDs beside each other, with prices."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ssdlab.arrays.workloads import WORKLOADS
from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import BenchOptions, Seed
from ssdlab.errors import InputError
from ssdlab.plan.storage.candidates import SYNTAX
from ssdlab.plan.storage.loads import WRITES_PER_DAY
from ssdlab.units import parse_bytes

if light.BODIES:
    from ssdlab.arrays.workloads import job as named_job
    from ssdlab.arrays.workloads import workload
    from ssdlab.jobfile import read_job
    from ssdlab.plan.prices import prices
    from ssdlab.plan.storage.candidates import DEFAULTS, Candidate, candidate
    from ssdlab.plan.storage.loads import DEPTH, HOT_BYTES, HotSet
    from ssdlab.plan.storage.measure import TableLoads
    from ssdlab.plan.storage.own import OwnLoad
    from ssdlab.plan.storage.study import WHOLE, StorageStudy
    from ssdlab.plan.study import carry_out

CANDIDATES_MAX = 26


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
    job_file: Annotated[
        Path | None,
        typer.Option("--job", metavar="JOB.fio", help="Your own load instead, as a fio job file."),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="NAME",
            help=f"A load by name instead: {', '.join(one.name for one in WORKLOADS)}.",
        ),
    ] = None,
    prices_file: Annotated[
        Path | None,
        typer.Option("--prices", metavar="FILE", help="What you would pay, as TOML."),
    ] = None,
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
    disk_cache: Annotated[
        bool,
        typer.Option("--disk-cache", help="Disks acknowledge writes in their volatile caches."),
    ] = False,
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
    where: BenchOptions,
    view: View,
) -> None:
    """Compare what may be bought: speed, space, life, safety, price; and what to take for what."""
    candidates = _candidates(candidate_)
    cost = prices(prices_file)
    daily = parse_bytes("--writes-per-day", writes_per_day)
    how: dict[str, Any] = {"seed": seed, "quick": quick, "disk_cache": disk_cache}
    asked: TableLoads | OwnLoad | None = _own(job_file, load, depth, scale, how)
    if asked is None:
        if scale is not None:
            raise InputError(
                "--scale is for --job and --workload; else sizes are chosen by the hot set"
            )
        asked = TableLoads(_hot(hot, contiguous), depth or DEPTH, **how)
    elif hot is not None or contiguous:
        raise InputError("--hot and --contiguous are for the loads of the table; a job has its own")
    study = StorageStudy(candidates, asked, cost, daily)
    started = time.monotonic()
    with where.progress(study.subject, quiet=view.quiet) as callback:
        answer = carry_out(study, callback)
    view.show(answer, seconds=time.monotonic() - started)


def _candidates(texts: Sequence[str] | None) -> list[Candidate]:
    found = [candidate(text) for text in texts or DEFAULTS]
    if len(found) > CANDIDATES_MAX:
        raise InputError(f"--candidate: found {len(found)}, expected at most {CANDIDATES_MAX}")
    for one in found:
        # The core says what is wrong with a preset, a chunk, a number of drives, or a rig.
        one.check()
    return found


def _hot(text: str | None, contiguous: bool) -> HotSet:
    if text is None:
        return HotSet(HOT_BYTES, spread=not contiguous)
    if text.strip().lower() in ("all", "100%"):
        return HotSet(WHOLE, spread=not contiguous)
    size = parse_bytes("--hot", text)
    if size < 1 << 20:
        raise InputError(f"--hot {text}: expected at least 1MiB, or all")
    return HotSet(size, spread=not contiguous)


def _own(
    path: Path | None, name: str | None, depth: int | None, scale: int | None, how: dict[str, Any]
) -> OwnLoad | None:
    if path is not None and name is not None:
        raise InputError("--job and --workload exclude each other; give one of them")
    if path is not None:
        if depth is not None:
            raise InputError("--depth is for loads by name; a job file has its own iodepth")
        return OwnLoad(read_job(path), scale=scale, **how)
    if name is None:
        return None
    one, depth = workload(name), depth or DEPTH
    return OwnLoad(named_job(one.options, one.name, depth=depth), one.prepare, scale, depth, **how)
