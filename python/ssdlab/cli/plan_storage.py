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
from ssdlab.cli.options import Seed
from ssdlab.errors import InputError
from ssdlab.plan.storage.candidates import SYNTAX
from ssdlab.plan.storage.loads import WRITES_PER_DAY
from ssdlab.units import parse_bytes

if light.BODIES:
    from ssdlab import units
    from ssdlab.answer import Answer, Section
    from ssdlab.arrays.workloads import job as named_job
    from ssdlab.arrays.workloads import workload
    from ssdlab.cli.console import progress
    from ssdlab.jobfile import read_job
    from ssdlab.plan.prices import Prices, prices
    from ssdlab.plan.storage.candidates import DEFAULTS, Candidate, candidate
    from ssdlab.plan.storage.loads import DEPTH, HOT_BYTES, HotSet
    from ssdlab.plan.storage.measure import Request, measure
    from ssdlab.plan.storage.own import OwnLoad, measure_own
    from ssdlab.plan.storage.rows import assumptions, rows
    from ssdlab.plan.storage.sizes import check
    from ssdlab.plan.storage.tables import chapter

WHOLE = 1 << 62
"""A hot set that is larger than any store fills it."""
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
    view: View,
) -> None:
    """Compare what may be bought: speed, space, life, safety, price; and what to take for what."""
    candidates = _candidates(candidate_)
    cost = prices(prices_file)
    daily = parse_bytes("--writes-per-day", writes_per_day)
    request = Request(_hot(hot, contiguous), depth or DEPTH, seed, quick, disk_cache)
    own = _own(job_file, load, depth, scale)
    if own is not None and (hot is not None or contiguous):
        raise InputError("--hot and --contiguous are for the loads of the table; a job has its own")
    if own is None and scale is not None:
        raise InputError(
            "--scale is for --job and --workload; else sizes are chosen by the hot set"
        )
    started = time.monotonic()
    with progress(f"{len(candidates)} candidates", quiet=view.quiet) as callback:
        if own is None:
            found = measure(candidates, request, callback)
        else:
            found = measure_own(candidates, own, request, callback)
    said = chapter(rows(candidates, found, cost, daily), cost, daily)
    notes = [_note(request, own), *_notes(found)]
    texts = {} if own is None else {own.job.name: own.job.text}
    texts |= {one.text: one.rig() for one in candidates}
    data = _document(said, request, own, cost, daily)
    answer = Answer("Which storage to buy", "plan", [said], notes=notes, texts=texts, data=data)
    view.show(answer, seconds=time.monotonic() - started)


def _candidates(texts: Sequence[str] | None) -> list[Candidate]:
    found = [candidate(text) for text in texts or DEFAULTS]
    if len(found) > CANDIDATES_MAX:
        raise InputError(f"--candidate: found {len(found)}, expected at most {CANDIDATES_MAX}")
    for one in found:
        # The core says what is wrong with a preset, a chunk, a number of drives, or a rig.
        check(one)
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
    path: Path | None, name: str | None, depth: int | None, scale: int | None
) -> OwnLoad | None:
    if path is not None and name is not None:
        raise InputError("--job and --workload exclude each other; give one of them")
    if path is not None:
        if depth is not None:
            raise InputError("--depth is for loads by name; a job file has its own iodepth")
        job = read_job(path)
        return OwnLoad(job, scale=scale)
    if name is None:
        return None
    one = workload(name)
    return OwnLoad(named_job(one.options, one.name, depth=depth or DEPTH), one.prepare, scale)


def _load_text(request: Request, own: OwnLoad | None) -> str:
    if own is not None:
        return own.job.name.removesuffix(".fio")
    where = "all of the store"
    if request.hot.bytes < WHOLE:
        place = "all over the store" if request.hot.spread else "at its beginning"
        where = f"a hot set of {units.number(request.hot.bytes / 1e9)} GB {place}"
    return f"4 KiB at random with {request.depth} in flight in {where}; 1 MiB in order with 32"


def _note(request: Request, own: OwnLoad | None) -> str:
    rough = ", quick run: rough" if request.quick else ""
    caches = "on" if request.disk_cache else "off"
    return f"{_load_text(request, own)}; volatile caches of disks {caches}{rough}"


def _notes(found: Sequence[Any]) -> list[str]:
    notes = list(dict.fromkeys(note for one in found for note in one.notes))
    return [f"simulated smaller: {'; '.join(notes)}"] if notes else []


def _document(
    said: Section, request: Request, own: OwnLoad | None, cost: Prices, daily: float
) -> dict[str, Any]:
    hot = request.hot.bytes
    return {
        "load": _load_text(request, own),
        "job": None if own is None else own.job.text,
        "depth": request.depth,
        "hot_bytes": None if own is not None or hot >= WHOLE else hot,
        "hot_spread": request.hot.spread,
        "seed": request.seed,
        "quick": request.quick,
        "disk_cache": request.disk_cache,
        "writes_per_day_bytes": daily,
        "currency": cost.currency,
        "prices": cost.source,
        "loss_assumes": dict(assumptions()),
        "candidates": list(said.rows),
    }
