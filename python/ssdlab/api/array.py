"""``ssdlab.array``: what arrays of a drive would do, beside one drive alone, and which to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ssdlab import units
from ssdlab.answer import Answer, Section, marked
from ssdlab.api.report import Report
from ssdlab.api.rig import Drive, named_or_rigs
from ssdlab.api.watching import Watch
from ssdlab.api.working import working
from ssdlab.arrays import studies
from ssdlab.arrays.attachment import (
    DIRECT,
    Attachment,
    attachment,
    ram_bytes,
    with_bus,
)
from ssdlab.arrays.compare import study as compared
from ssdlab.arrays.grid import DriveSetup, depends_on_size, shapes, state_for
from ssdlab.arrays.measured import measured_drive
from ssdlab.arrays.rigs import CHUNK, LEVELS, MEMBERS_MIN, ArrayShape, level_of, named, profile_of
from ssdlab.arrays.workloads import DEPTH, SEEDS, NamedLoad, workload
from ssdlab.errors import InputError, known_name
from ssdlab.given import Many, Size, keys, listed, several, text
from ssdlab.jobfile import JobText, read_job
from ssdlab.progress import Notice, ProgressCallback, stage
from ssdlab.rig import smaller_rig
from ssdlab.target import Sim

MEMBER_BYTES = 1 << 30
"""Drives that ship with ssdlab are made about this small unless ``scale`` says otherwise."""
REAL_BYTES = 64 * 10**9
"""A rig file of so much is that of a real drive, such as a twin, and made smaller as well."""
STUDIES = ("arrays", "chunk", "scaling", "depth", "degradation")
LOADED = ("arrays", "chunk", "depth")
"""Those that run the load that is asked for; the others have their own."""
PREPARED = ("arrays", "chunk", "scaling", "depth")
USES = {
    "job": ("arrays", "chunk"),
    "workload": LOADED,
    "depth": ("arrays", "chunk"),
    "chunk": ("arrays", "scaling", "depth", "degradation"),
    "prepare": PREPARED,
    "price": ("arrays",),
    "seeds": ("arrays",),
}
"""By parameter the studies that look at it; all studies look at the others."""


@dataclass(frozen=True)
class Grid:
    """What is compared."""

    shapes: list[ArrayShape]
    levels: list[str]
    counts: list[int]
    chunks: list[int]


@dataclass(frozen=True)
class ArrayQuestion:
    """Arrays of a drive, before anything is run on them."""

    drive: Sim
    grid: Grid
    behind: Attachment
    left_out: Sequence[str] = ()
    """Levels of numbers of drives that are too few for them."""


def array(
    drive: Drive | None = None,
    *,
    levels: Many = "0,10,5,6",
    count: Many = "4,8",
    chunk: Many = "512k",
    job: str | Path | None = None,
    workload: str | None = None,
    depth: int = DEPTH,
    study: str | Sequence[str] | None = None,
    prepare: str | None = None,
    measured: str | Path | None = None,
    controller: str | None = None,
    bus: Size | None = None,
    scale: int | None = None,
    set: Mapping[str, object] | None = None,
    price: float | None = None,
    seed: int = 1,
    seeds: int = SEEDS,
    fresh: bool = False,
    cluster: str | None = None,
    progress: Watch = None,
    notice: Notice | None = None,
) -> Report:
    """Compares arrays of a drive under a load: which to take, and why.

    Args:
        drive: A profile's name or a rig file (.toml) of one drive. In Python also a
            :class:`ssdlab.Rig`.
        levels: RAID levels: 0, 1, 10, 5, 6, linear.
        count: Numbers of drives: ``"2,4,8"`` or ``"2..32x2"``.
        chunk: Sizes of a chunk: ``"64k,512k"`` or ``"64k..1mx2"``.
        job: The load, as a fio job file. In Python also its text.
        workload: A load by name, from ``ssdlab list workloads``.
        depth: I/Os in flight of a load by name.
        study: arrays (levels, counts and chunks; the default), chunk (4 to 1024 KiB), scaling
            (against the number of drives, predicted and simulated), depth (1 to 256), degradation
            (fresh, used, rested, trimmed); may be given again. In Python one or several.
        prepare: State at the start, as :func:`ssdlab.run` takes it; else steady where the load
            writes at random, sequential where not.
        measured: Instead of ``drive``: the latencies of a run of your own drive (a kept run, or
            fio's JSON+ document).
        controller: What the array stands behind: a name from ``ssdlab list controllers``, or a file
            with [controller] and [bus].
        bus: Bandwidth that all members share, as ``"2GB/s"``.
        scale: Scale the capacity of drives down by N.
        set: As for :func:`ssdlab.run`.
        price: Price of one drive, in any currency.
        seed: Seed of all random streams.
        seeds: Runs, from ``seed`` on, of arrays among which the choice is close.
        fresh: Run all simulations again. Else results of earlier runs of the same rig, job, state,
            seed and version are taken.
        cluster: As for :func:`ssdlab.sweep`.
        progress: Who is told how far it is, as for :func:`ssdlab.run`.
        notice: Called with a sentence for people, such as which arrays are left out.

    Raises:
        InputError: the drive, the load or a list is wrong.
        Interrupted: it was stopped; of the simulations those that ended are kept.
    """
    names = several(study) or ["arrays"]
    studies_ = list(dict.fromkeys(known_name("study of arrays", one, STUDIES) for one in names))
    asked = question(
        drive, levels=levels, count=count, chunk=chunk, measured=measured, controller=controller,
        bus=bus,
    )  # fmt: skip
    given = {
        "job": job is not None,
        "workload": workload is not None,
        "depth": depth != DEPTH,
        "chunk": asked.grid.chunks != [CHUNK],
        "prepare": prepare is not None,
        "price": price is not None,
        "seeds": seeds != SEEDS,
    }
    _used([name for name, told in given.items() if told], studies_)
    if "scaling" in studies_ and "0" not in asked.grid.levels:
        raise InputError("--study scaling is of RAID 0, which --levels leaves out")
    if job is not None and given["depth"]:
        raise InputError("--depth goes with --workload: a job file has its own depth")
    if measured is not None and prepare is not None:
        raise InputError("--prepare goes with a simulated drive: measured latencies have no state")
    if notice is not None:
        if asked.left_out and _any(LOADED, studies_):
            notice(f"left out, too few drives for the level: {', '.join(asked.left_out)}")
        for key in studies_:
            if part := _part(key, asked.grid):
                notice(f"--study {key} is of {part} alone")
    load = _load(job, workload, depth)
    # Measured latencies have no state.
    states = {
        key: "fob" if measured is not None else prepare or state_for(_job_of(key, load))
        for key in studies_
        if key in PREPARED
    }
    setup = DriveSetup(
        asked.drive,
        overrides=keys(set),
        seed=seed,
        price=price,
        attachment=asked.behind,
    )
    setup = _with_card_to_scale(_scaled(setup, scale))
    with working(
        f"arrays of {asked.drive.name}", progress, cluster, notice, fresh=fresh
    ) as callback:
        chapters = [
            _run(
                key,
                replace(setup, prepare=states.get(key, setup.prepare)),
                asked.grid,
                load,
                seeds,
                stage(callback, place, len(studies_)),
            )
            for place, key in enumerate(studies_)
        ]
    own = load.job if _any(LOADED, studies_) else None
    checks = [check for chapter in chapters for check in chapter.checks]
    return Report(
        Answer(
            f"Arrays of {setup.drive.name}",
            "arrays",
            chapters,
            checks=checks,
            marks=marked(checks, ()),
            notes=[_note(setup, own, states)],
            texts={
                **({own.name: own.text} if own else {}),
                asked.drive.name: setup.rig(asked.grid.shapes[0]),
            },
            data=_document(setup, own, states),
        )
    )


def question(
    drive: Drive | None,
    *,
    levels: Many,
    count: Many,
    chunk: Many,
    measured: str | Path | None,
    controller: str | None,
    bus: Size | None,
) -> ArrayQuestion:
    """The arrays that are asked for; raises as :func:`array`."""
    if (drive is None) == (measured is None):
        raise InputError("name one drive: DRIVE, or --measured RUN for your own")
    expected = "numbers from 1 to 255, such as 2,4,8 or 2..32x2"
    counts = units.counts("--count", listed(count) or "", expected, lambda n: 1 <= n <= 255)
    expected = "multiples of 4k, such as 64k,512k"
    chunks = units.sizes(
        "--chunk", listed(chunk) or "", expected, lambda size: size > 0 and size % 4096 == 0
    )
    grid, left_out = _grid(_levels(listed(levels) or ""), counts, chunks)
    if drive is None:
        rig = measured_drive(Path(measured or ""))
    else:
        (given,) = named_or_rigs(drive)
        rig = named(given) if isinstance(given, str) else given
    behind = attachment(controller) if controller is not None else DIRECT
    if bus is not None:
        behind = with_bus(behind, text(bus))
    return ArrayQuestion(rig, grid, behind, left_out)


@dataclass(frozen=True)
class GridLoad:
    """The load."""

    job: JobText
    name: str
    named: NamedLoad | None = None
    """It at other depths; None for a job file."""


def _run(
    key: str, setup: DriveSetup, grid: Grid, load: GridLoad, seeds: int, report: ProgressCallback
) -> Section:
    if key == "chunk":
        return studies.chunk_sizes(setup, grid.levels, grid.counts[-1], load.job, report)
    if key == "scaling":
        most = grid.counts[-1]
        counts = {*(n for n in studies.COUNTS if n <= most), *grid.counts}
        return studies.scaling(setup, counts, grid.chunks[0], report)
    if key == "depth":
        if load.named is None:
            raise InputError("--study depth needs --workload: a job file has its own depth")
        return studies.depths(setup, grid.shapes, load.named, report)
    if key == "degradation":
        return studies.degradation(setup, grid.shapes[0], report)
    assert key == "arrays", f"{key} is in STUDIES and nothing runs it"
    return compared(setup, grid.shapes, load.job, report, seeds)


def _any(of: Sequence[str], studies_: Sequence[str]) -> bool:
    return any(key in of for key in studies_)


def _part(key: str, grid: Grid) -> str:
    """Which of several arrays a study is of; empty where it looks at all of them."""
    if key == "chunk" and len(grid.counts) > 1:
        return units.counted(grid.counts[-1], "drive")
    if key == "scaling" and len(grid.chunks) > 1:
        return f"chunks of {units.binary(grid.chunks[0])}"
    if key == "degradation" and len(grid.shapes) > 1:
        return grid.shapes[0].name
    return ""


def _used(given: Sequence[str], studies_: Sequence[str]) -> None:
    """Raises InputError where a parameter is given that none of the studies looks at."""
    for name in given:
        if not set(USES[name]) & set(studies_):
            raise InputError(
                f"--{name} changes nothing in --study {' and '.join(studies_)}; it goes with "
                f"{units.listed(USES[name])}"
            )


def _levels(text: str) -> list[str]:
    found = map(level_of, units.words("--levels", text))
    return list(dict.fromkeys(known_name("RAID level", one, LEVELS) for one in found))


def _grid(levels: list[str], counts: list[int], chunks: list[int]) -> tuple[Grid, Sequence[str]]:
    """What is compared, and what takes more drives than there are."""
    good, short = shapes(levels, counts, chunks)
    if not good:
        needed = ", ".join(f"{level} takes {MEMBERS_MIN[level]}" for level in levels)
        raise InputError(
            f"--count: too few drives for every level asked for; RAID {needed} or more"
        )
    left_out = dict.fromkeys(f"{shape.level_name} of {shape.count}" for shape in short)
    return Grid(good, levels, counts, chunks), list(left_out)


def _job_of(key: str, load: GridLoad) -> JobText:
    """What a study runs on the state in which it finds the drives."""
    return load.job if key in LOADED else studies.whole_stripes(CHUNK)


def _load(given: str | Path | None, name: str | None, depth: int) -> GridLoad:
    if given is not None and name is not None:
        raise InputError("--job and --workload exclude each other; give one of them")
    if given is not None:
        job = read_job(given)
        return GridLoad(job, Path(job.name).stem)
    load = workload(name or "random-write")
    return GridLoad(load.job(depth), load.name, load)


def _scaled(setup: DriveSetup, scale: int | None) -> DriveSetup:
    """With drives as small as they are simulated, and their full size where that is known; that of
    a rig file as it is, unless it is asked for or has the size of a real drive."""
    if "capacity" in setup.overrides:
        return setup
    drive, tree = setup.drive, setup.drive.tree()
    full = tree.bytes("capacity") or 0
    if scale is not None:
        own = setup.drive.smaller(scale)
    elif profile_of(drive) is not None or full >= REAL_BYTES:
        own = smaller_rig(drive.rig, drive.name, full // MEMBER_BYTES)
    else:
        return setup
    return replace(setup, capacity_bytes=full, overrides={**own, **setup.overrides})


def _with_card_to_scale(setup: DriveSetup) -> DriveSetup:
    """A card's RAM as small beside the drives as it is in truth, as far as writes can still gather
    in it: all of it would hold a good part of small drives."""
    if "capacity" not in setup.overrides or not ram_bytes(setup.attachment):
        return setup
    tree = setup.drive.tree()
    full = tree.bytes("capacity") or 0
    tree.set_all(list(setup.overrides.items()))
    return replace(setup, attachment=setup.attachment.scaled(full / tree.capacity_bytes))


def _note(setup: DriveSetup, load: JobText | None, states: Mapping[str, str]) -> str:
    """``load``: that which was asked for, None where studies have their own; ``states``: by study
    what drives were prepared with."""
    size = setup.overrides.get("capacity")
    small = []
    if size and setup.capacity_bytes:
        each = units.parse_bytes("capacity", size)
        small.append(f"drives simulated at {units.size_text(each)} each")
    if size and (ram := ram_bytes(setup.attachment)):
        small.append(f"behind RAM of {units.size_text(ram)}")
    why = depends_on_size(load) if load and small else ""
    distinct = [*dict.fromkeys(states.values())]
    state = ", new" if distinct == ["fob"] else f", prepared with {distinct[0]}" if distinct else ""
    if len(distinct) > 1:
        state += "".join(f" ({key}: {one})" for key, one in states.items() if one != distinct[0])
    what = f"{load.name} on arrays" if load else "arrays"
    behind = f" behind {setup.attachment.name}" if setup.attachment else ""
    said = f"{what} of {setup.drive.name}{behind}{state}", ", ".join(small), why
    return "; ".join(filter(None, said))


def _document(
    setup: DriveSetup, load: JobText | None, states: Mapping[str, str]
) -> dict[str, object]:
    return {
        "drive": setup.drive.name,
        "job": load and load.text,
        "prepare": ", ".join(dict.fromkeys(states.values())) or None,
        "overrides": dict(setup.overrides),
        "seed": setup.seed,
        "price": setup.price,
        "controller": setup.attachment.name or None,
    }
