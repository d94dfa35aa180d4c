"""``ssdlab array``: what arrays of a drive would do, beside one drive alone, and which to take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ssdlab import units
from ssdlab.arrays.workloads import DEPTH, WORKLOADS
from ssdlab.cli import light
from ssdlab.cli.answer import View, answering
from ssdlab.cli.options import BenchOptions, Seed, SetKeys, keys
from ssdlab.errors import InputError, unknown_name
from ssdlab.output import make_folder, write_to

if light.BODIES:
    from ssdlab.answer import Answer, Section
    from ssdlab.arrays import studies
    from ssdlab.arrays.attachment import DIRECT, Attachment, attachment, with_bus
    from ssdlab.arrays.compare import study
    from ssdlab.arrays.grid import DriveSetup, shapes
    from ssdlab.arrays.measured import measured_drive
    from ssdlab.arrays.rigs import LEVELS, MEMBERS_MIN, ArrayShape, DriveRig, array_rig, named
    from ssdlab.arrays.workloads import job, workload
    from ssdlab.cli.console import stderr
    from ssdlab.cli.output import results, say
    from ssdlab.jobfile import JobText, read_job
    from ssdlab.progress import ProgressCallback, stage
    from ssdlab.rig import capacity_of, reduced, smaller

MEMBER_BYTES = 1 << 30
"""Drives that ship with ssdlab are made about this small unless ``--scale`` says otherwise."""
STUDIES = ("arrays", "chunk", "scaling", "depth", "degradation")


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
    job_file: Annotated[
        Path | None, typer.Option("--job", metavar="JOB.fio", help="The load, as a fio job file.")
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="NAME",
            help=f"A load by name: {', '.join(one.name for one in WORKLOADS)}.",
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
    where: BenchOptions,
    view: View,
) -> None:
    """Compare arrays of a drive under a load, and say which to take and why."""
    if (drive is None) == (measured is None):
        raise InputError("name one drive: DRIVE, or --measured RUN for your own")
    wanted = _studies(study_ or ["arrays"])
    grid = _grid(_levels(levels), _counts(count), _chunks(chunk), view.quiet)
    one = named(drive) if drive is not None else measured_drive(measured or Path())
    behind = attachment(controller) if controller is not None else DIRECT
    if bus is not None:
        behind = with_bus(behind, bus)
    if save_rigs is not None:
        _save(one, grid.shapes, save_rigs, behind)
        return
    asked = _load(job_file, load, depth)
    setup = DriveSetup(
        one,
        overrides=keys(set_),
        # Measured latencies have no state.
        prepare="fob" if measured is not None else prepare or asked.prepare,
        seed=seed,
        price=price,
        attachment=behind,
    )
    setup = _scaled(setup, scale)
    started = time.monotonic()
    with where.progress(f"arrays of {one.name}", quiet=view.quiet) as callback:
        chapters = [
            _run(key, setup, grid, asked, stage(callback, place, len(wanted)))
            for place, key in enumerate(wanted)
        ]
    rigs = {one.name: setup.rig(one) for one in grid.shapes[:1]}
    view.show(
        Answer(
            f"Arrays of {setup.drive.name}",
            "arrays",
            chapters,
            notes=[_note(setup, asked.job)],
            texts={asked.job.name: asked.job.text, **rigs},
            data=_document(setup, asked.job),
        ),
        seconds=time.monotonic() - started,
    )


@dataclass(frozen=True)
class Grid:
    """What is compared."""

    shapes: list[ArrayShape]
    levels: list[str]
    counts: list[int]
    chunks: list[int]


@dataclass(frozen=True)
class GridLoad:
    """The load, and the state in which it finds the drives."""

    job: JobText
    name: str
    prepare: str
    options: str | None = None
    """Lines of a load by name, for other depths; None for a job file."""


def _run(
    key: str, setup: DriveSetup, grid: Grid, load: GridLoad, report: ProgressCallback
) -> Section:
    if key == "chunk":
        return studies.chunk_sizes(setup, grid.levels, grid.counts[-1], load.job, report)
    if key == "scaling":
        counts = {*range(1, 5), *(n for n in studies.COUNTS if n <= grid.counts[-1]), *grid.counts}
        return studies.scaling(setup, counts, grid.chunks[0], report)
    if key == "depth":
        if load.options is None:
            raise InputError("--study depth needs --workload: a job file has its own depth")
        return studies.depths(setup, grid.shapes, load.options, load.name, report)
    if key == "degradation":
        return studies.degradation(setup, grid.shapes[0], report)
    return study(setup, grid.shapes, load.job, report)


def _studies(names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in STUDIES:
            raise unknown_name("study of arrays", name, STUDIES)
    return list(dict.fromkeys(names))


def _levels(text: str) -> list[str]:
    found = [one.lower().removeprefix("raid") for one in units.words("--levels", text)]
    for one in found:
        if one not in LEVELS:
            raise unknown_name("RAID level", one, LEVELS)
    return list(dict.fromkeys(found))


def _counts(text: str) -> list[int]:
    expected = "numbers from 1 to 255, such as 2,4,8 or 2..32x2"
    return units.counts("--count", text, expected, lambda count: 1 <= count <= 255)


def _chunks(text: str) -> list[int]:
    expected = "multiples of 4k, such as 64k,512k"
    return units.sizes("--chunk", text, expected, lambda size: size > 0 and size % 4096 == 0)


def _grid(levels: list[str], counts: list[int], chunks: list[int], quiet: bool) -> Grid:
    good, short = shapes(levels, counts, chunks)
    if not good:
        needed = ", ".join(f"{level} takes {MEMBERS_MIN[level]}" for level in levels)
        raise InputError(
            f"--count: too few drives for every level asked for; RAID {needed} or more"
        )
    if short and not quiet:
        left = ", ".join(dict.fromkeys(f"{one.level_name} of {one.count}" for one in short))
        say(stderr(), f"left out, too few drives for the level: {left}")
    return Grid(good, levels, counts, chunks)


def _load(path: Path | None, name: str | None, depth: int) -> GridLoad:
    if path is not None and name is not None:
        raise InputError("--job and --workload exclude each other; give one of them")
    if path is not None:
        return GridLoad(read_job(path), path.stem, "sequential")
    one = workload(name or "random-write")
    text = job(one.options, one.name, depth=depth)
    return GridLoad(text, one.name, one.prepare, one.options)


def _scaled(setup: DriveSetup, scale: int | None) -> DriveSetup:
    """With drives as small as they are simulated, and their full size where that is known."""
    drive = setup.drive
    if drive.profile is None and scale is not None:
        raise InputError("--scale needs one of the shipped drives; a rig file is as it is")
    if drive.profile is None or "capacity" in setup.overrides:
        return setup
    full = capacity_of(drive.name)
    about = smaller(drive.name, full // MEMBER_BYTES)
    own = about if scale is None else reduced(drive.name, scale)
    return replace(setup, capacity_bytes=full, overrides={**own, **setup.overrides})


def _note(setup: DriveSetup, load: JobText) -> str:
    size = setup.overrides.get("capacity")
    small = ""
    if size and setup.capacity_bytes:
        each = units.parse_bytes("capacity", size)
        small = f"; drives simulated at {each / 1e6:,.0f} MB each"
    state = "new" if setup.prepare == "fob" else f"prepared with {setup.prepare}"
    behind = f" behind {setup.attachment.name}" if setup.attachment else ""
    return f"{load.name} on arrays of {setup.drive.name}{behind}, {state}{small}"


def _document(setup: DriveSetup, load: JobText) -> dict[str, object]:
    return {
        "drive": setup.drive.name,
        "job": load.text,
        "prepare": setup.prepare,
        "overrides": dict(setup.overrides),
        "seed": setup.seed,
        "price": setup.price,
        "controller": setup.attachment.name or None,
    }


def _save(drive: DriveRig, grid: Sequence[ArrayShape], folder: Path, behind: Attachment) -> None:
    make_folder(folder)
    for shape in grid:
        chunk = "" if shape.level in ("1", "linear") else f"-{shape.chunk >> 10}k"
        name = f"{LEVELS[shape.level]}-{shape.count}{chunk}-{drive.name}.toml"
        write_to(folder / name, array_rig(drive, shape, behind))
    say(results(None), f"wrote {len(grid)} rigs to {folder}")
