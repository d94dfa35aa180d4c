"""A matrix of your own: block sizes, queue depths, jobs, mixes and patterns, each with each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ssdlab import units
from ssdlab.answer import Section, Verdict
from ssdlab.engine import grids
from ssdlab.engine.grids import MEASURED, PATTERNS, Plane, Spec
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import DEPTH_MAX, ProtocolParameter, Setup, short
from ssdlab.engine.steps import Job, Rounds, Step, Tracked, in_round
from ssdlab.errors import InputError, known_name

PREPARATIONS = {
    "none": "as it is",
    "fill": "written sequentially once",
    "random": "written sequentially, before random I/O at random as well",
    "steady": "as random, then until 4 KiB random writes are steady",
}
ORDERS = ("reads-first", "as-written")
JOBS_MAX = 256
CELLS_MAX = 5000
"""More cells are a slip."""
STEADY_BS, STEADY_S = "4k", 60.0
"""Of the random writes that must be steady: their size, and how long a round of them takes."""


@dataclass(frozen=True)
class Preset:
    """The grid of a program that people know, and how long its cells take."""

    planes: Sequence[Plane]
    seconds: float


def _doubling(low: int, high: int) -> tuple[int, ...]:
    return tuple(low << n for n in range((high // low).bit_length()))


_SIZES, _COUNTS = _doubling(512, 131072), _doubling(1, 256)
_OWN = (4096, 16384, 65536, 262144), (1, 4, 16, 64)
PRESETS = {
    "usual": Preset(
        (Plane("sequential", (100, 0), *_OWN), Plane("random", (100, 70, 0), *_OWN)), 30.0
    ),
    "bench-fio": Preset(
        (Plane("random", (100,), (4096,), _doubling(1, 64), _doubling(1, 64)),), 60.0
    ),
    "ezfio": Preset(
        (
            Plane("sequential", (100,), _SIZES, (256,)),
            Plane("sequential", (0,), _SIZES, (1,)),
            Plane("random", (100, 0), _SIZES, (16,), (16,)),
            Plane("random", (100, 70, 0), (4096,), (1,), _COUNTS),
        ),
        120.0,
    ),
}


# --- what is to be done


def planes(setup: Setup) -> list[Plane]:
    """The planes of the preset, with the lists that the parameters name instead of its own;
    InputError where a list is none, or nothing remains that the target can do."""
    given: dict[str, Any] = {}
    if setup.text("blocks"):
        given["blocks"] = setup.blocks()
    for name, most in (("depths", DEPTH_MAX), ("jobs", JOBS_MAX)):
        if setup.text(name):
            given[name] = setup.counts(name, most=most)
    if setup.text("mixes"):
        given["mixes"] = _mixes(setup)
    found = PRESETS[setup.text("preset")].planes
    if setup.text("patterns"):
        named = [
            [plane for plane in found if plane.pattern == name] or [replace(found[0], pattern=name)]
            for name in _patterns(setup)
        ]
        found = [plane for own in named for plane in own]
    possible = []
    for one in found:
        plane = replace(one, **given)
        sizes = [size for size in plane.blocks if size % setup.block == 0]
        if sizes and (own := replace(plane, blocks=sizes)) not in possible:
            possible.append(own)
    count = sum(1 for plane in possible for _ in plane.specs())
    if not possible or count > CELLS_MAX:
        raise InputError(
            f"the matrix has {count:,} cells; "
            + (f"at most {CELLS_MAX:,} make sense" if count else
               f"the target has logical blocks of {setup.block} bytes, and no size fits them")
        )  # fmt: skip
    return possible


def _mixes(setup: Setup) -> list[int]:
    where = f"--param mixes={setup.text('mixes')}:"
    expected = "whole percentages of reads from 0 to 100, such as 100,70,0"
    found = units.percents(
        where, setup.text("mixes"), expected, lambda one: 0 <= one <= 100 and one == int(one)
    )
    return list(dict.fromkeys(int(one) for one in found))


def _patterns(setup: Setup) -> list[str]:
    text = setup.text("patterns")
    found = units.words(f"--param patterns={text}:", text)
    return [known_name("pattern", one, PATTERNS) for one in found]


def plan(setup: Setup) -> list[Step]:
    """Brings the drive into its state, and measures cell after cell."""
    found = planes(setup)
    if setup.text("order") == "as-written":
        patterns = {plane.pattern for plane in found}
        steps = [*_filled(setup), *(_scattered(setup) if "random" in patterns else [])]
        return [*steps, *_measured(setup, [spec for plane in found for spec in plane.specs()])]
    steps = _filled(setup)
    for pattern in PATTERNS:
        own = [spec for plane in found if plane.pattern == pattern for spec in plane.specs()]
        # What only reads leaves the drive as it is for all that follow.
        own.sort(key=lambda one: -one.read_percent)
        steps += _scattered(setup) if own and pattern == "random" else []
        steps += _measured(setup, own)
    return steps


def _filled(setup: Setup) -> list[Step]:
    return [] if setup.text("prepare") == "none" else [setup.fill()]


def _scattered(setup: Setup) -> list[Step]:
    """Random writes, and more of them until they are steady."""
    how, passes = setup.text("prepare"), setup.count("passes")
    if how not in ("random", "steady") or not passes:
        return []
    steps: list[Step] = [setup.used(STEADY_BS, times=passes)]
    if how == "steady":
        steps.append(Rounds("steady", "Random writes before the matrix", _round(setup), _TRACKED,
                            most=setup.rounds))  # fmt: skip
    return steps


_TRACKED = (Tracked.of("RND 4 KiB writes", "iops", "writes"),)


def _round(setup: Setup) -> Any:
    return lambda n: [
        setup.job(in_round(n, "writes"), "random writes until they are steady", "randwrite",
                  STEADY_BS, depth=32, seconds=STEADY_S, measured=False)
    ]  # fmt: skip


def _measured(setup: Setup, cells: Iterable[Spec]) -> list[Step]:
    """A step for each cell; before one that writes the same load for a while."""
    seconds = setup.number("seconds") or PRESETS[setup.text("preset")].seconds
    settle = setup.number("settle_s")
    steps: list[Step] = []
    for spec in dict.fromkeys(cells):
        if settle and spec.read_percent < 100:
            before = _job(setup, spec, settle, f"settle-{spec.key}")
            steps.append(replace(before, title=f"before it: {before.title}", measured=False))
        steps.append(_job(setup, spec, seconds, spec.key))
    return steps


def _job(setup: Setup, spec: Spec, seconds: float, key: str) -> Job:
    options: dict[str, str | int] = {}
    if spec.pattern == "sequential" and spec.jobs > 1:
        # Streams that began at one place would read and write each other's blocks.
        share = setup.active // spec.jobs // spec.block * spec.block
        if not share:
            raise InputError(
                f"{key}: {setup.active:,} bytes have no room for {spec.jobs} streams of "
                f"{units.binary(spec.block)}; choose a larger target"
            )
        options = {"size": share, "offset_increment": share}
    return setup.job(
        key,
        f"{spec.load}, {spec.told()}",
        spec.rw,
        short(spec.block),
        depth=spec.depth,
        threads=spec.jobs,
        seconds=seconds,
        read_percent=spec.read_percent if spec.rw.endswith("rw") else None,
        name=spec.key,
        options=options,
    )


# --- what it came to


def judge(records: Records, setup: Setup) -> Section:
    """Heat maps, latency against IOPS, and a table of all cells."""
    matrix = planes(setup)
    specs = list(dict.fromkeys(spec for plane in matrix for spec in plane.specs()))
    found = {
        spec: {what: records.cell(what, spec.key) for what in MEASURED}
        for spec in specs
        if spec.key in records
    }
    loads = list(dict.fromkeys((spec.pattern, spec.read_percent) for spec in specs))
    own = {load: {s: c for s, c in found.items() if s[:2] == load} for load in loads}
    said = [line for of in own.values() if (line := grids.said(of))]
    numbers = [number for load, of in own.items() for number in grids.numbers(load, of)]
    figures = [figure for plane in matrix for figure in grids.figures(plane, found)]
    code = "measured" if found else "not-measured"
    return Section(
        said or ["No cell has been measured yet."],
        numbers,
        [grids.cells_table(found, len(specs))],
        figures,
        rows=[grids.row(spec, of) for spec, of in found.items()],
        verdict=Verdict(code, {"cells": float(len(found)), "planned": float(len(specs))}),
    )


_EMPTY = "; empty: those of the preset"
PROTOCOLS = procedure(
    "everyday",
    "matrix",
    "Matrix",
    "IOPS and latency over block sizes, queue depths, jobs, mixes and patterns of your choice",
    "a grid as users of bench-fio (fio-plot) and ezFIO know it",
    plan,
    judge,
    ProtocolParameter("preset", "usual", "whose grid it is", tuple(PRESETS)),
    ProtocolParameter("patterns", "", f"sequential, random, or both by a comma{_EMPTY}"),
    ProtocolParameter("mixes", "", f"percent of reads: 100,70,0{_EMPTY}"),
    ProtocolParameter("blocks", "", f"block sizes: 4k,16k or 4k..1mx2{_EMPTY}"),
    ProtocolParameter("depths", "", f"I/Os in flight of each job: 1..64x2{_EMPTY}"),
    ProtocolParameter("jobs", "", f"numbers of jobs (fio's numjobs): 1,4{_EMPTY}"),
    ProtocolParameter("seconds", 0.0, "time for each cell; 0: that of the preset"),
    ProtocolParameter(
        "settle_s", 10.0, "time of the same load, not measured, before a cell that writes"
    ),
    ProtocolParameter(
        "prepare",
        "random",
        "; ".join(f"{name}: {what}" for name, what in PREPARATIONS.items()),
        tuple(PREPARATIONS),
    ),
    ProtocolParameter("passes", 2, "how often random writes overwrite the range"),
    ProtocolParameter(
        "order",
        "reads-first",
        "reads-first: sequential before random, reads before writes; as-written: patterns and "
        "mixes as the parameters have them",
        ORDERS,
    ),
)
