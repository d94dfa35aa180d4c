"""``ssdlab array``: what arrays of a drive would do, beside one drive alone, and which to take."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ssdlab.arrays.workloads import DEPTH, WORKLOADS
from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import JobFile, ReuseOptions, Seed, SetKeys, keys
from ssdlab.output import write_rigs

if light.BODIES:
    from ssdlab.api.array import ArrayQuestion, array, ask
    from ssdlab.arrays.rigs import LEVELS, array_rig
    from ssdlab.cli.output import notice, results, say


@answering
def command(
    drive: Annotated[
        str | None,
        typer.Argument(
            metavar="DRIVE",
            help="A profile's name or a rig file (.toml) of one drive.",
            autocompletion=light.complete("drives"),
        ),
    ] = None,
    levels: Annotated[
        str, typer.Option("--levels", metavar="LIST", help="RAID levels: 0, 1, 10, 5, 6, linear.")
    ] = "0,10,5,6",
    count: Annotated[
        str, typer.Option("--count", metavar="LIST", help="Numbers of drives: 2,4,8 or 2..32x2.")
    ] = "4,8",
    chunk: Annotated[
        str,
        typer.Option("--chunk", metavar="LIST", help="Sizes of a chunk: 64k,512k or 64k..1mx2."),
    ] = "512k",
    job_file: JobFile = None,
    load: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="NAME",
            help=f"A load by name: {', '.join(workload.name for workload in WORKLOADS)}.",
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option("--depth", min=1, metavar="N", help="I/Os in flight of a load by name.")
    ] = DEPTH,
    study_: Annotated[
        list[str] | None,
        typer.Option(
            "--study",
            metavar="NAME",
            help="arrays (levels, counts and chunks; the default), chunk (4 to 1024 KiB), "
            "scaling (against the number of drives, predicted and simulated), depth (1 to 256), "
            "degradation (fresh, used, rested, trimmed); may be given again.",
        ),
    ] = None,
    prepare: Annotated[
        str | None,
        typer.Option(
            "--prepare",
            metavar="STATE",
            help="State at the start, as for run; else the load's own.",
        ),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option(
            "--measured",
            metavar="RUN",
            help="Instead of DRIVE: the latencies of a run of your own drive (a kept run, or fio's "
            "JSON+ document).",
        ),
    ] = None,
    controller: Annotated[
        str | None,
        typer.Option(
            "--controller",
            metavar="NAME|FILE",
            help="What the array stands behind: intel-dmi2, intel-rs25db080, adaptec-3152-8i, or a "
            "file with [controller] and [bus].",
        ),
    ] = None,
    bus: Annotated[
        str | None,
        typer.Option("--bus", metavar="RATE", help="Bandwidth that all members share, as 2GB/s."),
    ] = None,
    scale: Annotated[
        int | None,
        typer.Option("--scale", min=1, metavar="N", help="Scale the capacity of drives down by N."),
    ] = None,
    set_: SetKeys = None,
    price: Annotated[
        float | None, typer.Option("--price", min=0.0, metavar="X", help="Price of one drive.")
    ] = None,
    seed: Seed = 1,
    save_rigs: Annotated[
        Path | None,
        typer.Option("--save-rigs", metavar="DIR", help="Only write the arrays as rig files."),
    ] = None,
    *,
    where: ReuseOptions,
    view: View,
) -> None:
    """Compare arrays of a drive under a load, and say which to take and why."""
    arrays: dict[str, Any] = {
        "drive": drive,
        "levels": levels,
        "count": count,
        "chunk": chunk,
        "measured": measured,
        "controller": controller,
        "bus": bus,
    }
    if save_rigs is not None:
        _save(ask(**arrays), save_rigs)
        return
    started = time.monotonic()
    report = array(
        **arrays,
        job=job_file,
        workload=load,
        depth=depth,
        study=study_,
        prepare=prepare,
        scale=scale,
        set=keys(set_),
        price=price,
        seed=seed,
        fresh=where.fresh,
        cluster=where.cluster,
        progress=not view.quiet,
        notice=None if view.quiet else notice,
    )
    view.show(report.answer, seconds=time.monotonic() - started)


def _save(asked: ArrayQuestion, folder: Path) -> None:
    rigs = {}
    for shape in asked.grid.shapes:
        chunk = "" if shape.level in ("1", "linear") else f"-{shape.chunk >> 10}k"
        name = f"{LEVELS[shape.level]}-{shape.count}{chunk}-{asked.drive.name}.toml"
        rigs[name] = array_rig(asked.drive, shape, asked.behind)
    write_rigs(folder, rigs)
    say(results(None), f"wrote {len(rigs)} rigs to {folder}")
