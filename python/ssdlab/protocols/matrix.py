"""A matrix of your own: block sizes, queue depths, jobs, mixes and patterns, each with each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ssdlab import units
from ssdlab.answer import Cell, Cells, Figure, Number, Section, Table, Verdict, columns
from ssdlab.engine import choices
from ssdlab.engine.answers import CellGrid, best, charts, figure, number
from ssdlab.engine.preparation import used
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import Parameter, Setup
from ssdlab.engine.steps import Job, Rounds, Step, Tracked, in_round
from ssdlab.errors import InputError, unknown_name
from ssdlab.protocols.pts_common import mix_text

PATTERNS = {"sequential": "", "random": "rand"}
"""By name, what stands before fio's words of a direction; in the order in which a drive takes
them: random writes change how sequential I/O goes for long, not the other way round."""
PREPARATIONS = {
    "none": "as it is",
    "fill": "written in order once",
    "random": "written in order, before random I/O at random as well",
    "steady": "as random, then until 4 KiB random writes are steady",
}
ORDERS = ("reads-first", "as-written")
JOBS_MAX = 256
CELLS_MAX = 5000
"""More cells are a slip."""
NEARLY = 0.99
"""A cell that has this share of the most is as good as the best."""
STEADY_BS, STEADY_S = "4k", 60.0
"""Of the random writes that must be steady: their size, and how long a round of them takes."""
MEASURED = "iops mbps mean p50 p99 p99.9 max waf"
"""What a cell comes to (:meth:`ssdlab.engine.records.Records.value`)."""
DIMENSIONS = {"block": "block size", "depth": "queue depth", "jobs": "jobs"}
"""What a cell has besides pattern and mix, with its name for people."""


class Spec(NamedTuple):
    """One cell of the matrix."""

    pattern: str
    read_percent: int
    block: int
    depth: int
    jobs: int

    @property
    def key(self) -> str:
        """Of its step."""
        order = {"sequential": "seq", "random": "rand"}[self.pattern]
        size = choices.short(self.block)
        return f"{order}-r{self.read_percent}-b{size}-d{self.depth}-j{self.jobs}"

    @property
    def rw(self) -> str:
        """What fio calls it."""
        return PATTERNS[self.pattern] + {0: "write", 100: "read"}.get(self.read_percent, "rw")

    @property
    def load(self) -> str:
        """Pattern and mix, for people."""
        mix = {0: "writes", 100: "reads"}.get(self.read_percent)
        return f"{self.pattern} {mix or mix_text(self.read_percent)}"

    def at(self, dimension: str, value: int) -> Spec:
        """The same cell elsewhere in one dimension."""
        return Spec(**{**self._asdict(), dimension: value})

    def text(self, dimension: str) -> str:
        """One of its dimensions for people."""
        value = getattr(self, dimension)
        return units.binary(value) if dimension == "block" else str(value)

    def told(self, dimensions: Iterable[str] = DIMENSIONS) -> str:
        """Its dimensions in a clause: 4 KiB, depth 32, 1 job."""
        words = {
            "block": self.text("block"),
            "depth": f"depth {self.depth}",
            "jobs": f"{self.jobs} job{'' if self.jobs == 1 else 's'}",
        }
        return ", ".join(words[one] for one in dimensions)


@dataclass(frozen=True)
class Plane:
    """Cells of one pattern: each mix with each block size, depth and number of jobs."""

    pattern: str
    mixes: Sequence[int]
    blocks: Sequence[int]
    depths: Sequence[int]
    jobs: Sequence[int] = (1,)
    times: float = 1.0
    """How often the usual time a cell takes."""

    def specs(self) -> Iterator[Spec]:
        """Its cells, mix by mix."""
        for mix in self.mixes:
            for block in self.blocks:
                for depth in self.depths:
                    for jobs in self.jobs:
                        yield Spec(self.pattern, mix, block, depth, jobs)

    @property
    def axes(self) -> list[str]:
        """The dimensions in which its cells differ, besides the mix."""
        several = {"block": self.blocks, "depth": self.depths, "jobs": self.jobs}
        return [name for name, values in several.items() if len(values) > 1]


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
    """The planes of the preset, with the lists that the parameters name instead of its own.

    Raises InputError where a list is none, or nothing remains that the target can do.
    """
    given: dict[str, Any] = {}
    if setup.text("blocks"):
        given["blocks"] = choices.blocks(setup, "blocks")
    for name, most in (("depths", choices.DEPTH_MAX), ("jobs", JOBS_MAX)):
        if setup.text(name):
            given[name] = choices.counts(setup, name, most=most)
    if setup.text("mixes"):
        given["mixes"] = _mixes(setup)
    found = PRESETS[setup.text("preset")].planes
    if setup.text("patterns"):
        named = [
            [one for one in found if one.pattern == name] or [replace(found[0], pattern=name)]
            for name in _patterns(setup)
        ]
        found = [one for own in named for one in own]
    possible = []
    for one in found:
        plane = replace(one, **given)
        sizes = [size for size in plane.blocks if size % setup.block == 0]
        if sizes and (own := replace(plane, blocks=sizes)) not in possible:
            possible.append(own)
    count = sum(1 for one in possible for _ in one.specs())
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
    for one in found:
        if one not in PATTERNS:
            raise unknown_name("pattern", one, PATTERNS)
    return found


def plan(setup: Setup) -> list[Step]:
    """Brings the drive into its state, and measures cell after cell."""
    found = planes(setup)
    if setup.text("order") == "as-written":
        patterns = {one.pattern for one in found}
        steps = [*_filled(setup), *(_scattered(setup) if "random" in patterns else [])]
        return [*steps, *_measured(setup, [one for plane in found for one in _cells(plane)])]
    steps = _filled(setup)
    for pattern in PATTERNS:
        own = [one for plane in found if plane.pattern == pattern for one in _cells(plane)]
        # What only reads leaves the drive as it is for all that follow.
        own.sort(key=lambda one: -one[0].read_percent)
        steps += _scattered(setup) if own and pattern == "random" else []
        steps += _measured(setup, own)
    return steps


def _cells(plane: Plane) -> list[tuple[Spec, float]]:
    return [(one, plane.times) for one in plane.specs()]


def _filled(setup: Setup) -> list[Step]:
    return [] if setup.text("prepare") == "none" else [setup.fill()]


def _scattered(setup: Setup) -> list[Step]:
    """Random writes, and more of them until they are steady."""
    how, passes = setup.text("prepare"), setup.count("passes")
    if how not in ("random", "steady") or not passes:
        return []
    steps: list[Step] = [used(setup, STEADY_BS, times=passes)]
    if how == "steady":
        steps.append(Rounds("steady", "Random writes before the matrix", _round(setup), _TRACKED,
                            most=setup.rounds))  # fmt: skip
    return steps


_TRACKED = (Tracked("RND 4 KiB writes", "IOPS", lambda of, n: of.iops(in_round(n, "writes"))),)


def _round(setup: Setup) -> Any:
    return lambda n: [
        setup.job(in_round(n, "writes"), "random writes until they are steady", "randwrite",
                  STEADY_BS, depth=32, seconds=STEADY_S, measured=False)
    ]  # fmt: skip


def _measured(setup: Setup, cells: Iterable[tuple[Spec, float]]) -> list[Step]:
    """A step for each cell; before one that writes the same load for a while."""
    seconds = setup.number("seconds") or PRESETS[setup.text("preset")].seconds
    settle = setup.number("settle_s")
    steps: list[Step] = []
    for spec, times in dict(cells).items():
        if settle and spec.read_percent < 100:
            before = _job(setup, spec, settle, f"settle-{spec.key}")
            steps.append(replace(before, title=f"before it: {before.title}", measured=False))
        steps.append(_job(setup, spec, times * seconds, spec.key))
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
        choices.short(spec.block),
        depth=spec.depth,
        threads=spec.jobs,
        seconds=seconds,
        read_percent=spec.read_percent if spec.rw.endswith("rw") else None,
        name=spec.key,
        options=options,
    )


# --- what it came to

Found = Mapping[Spec, Mapping[str, Cell]]
"""What every cell came to, by the names of :data:`MEASURED`."""


def judge(records: Records, setup: Setup) -> Section:
    """Heat maps, latency against IOPS, and a table of all cells."""
    matrix = planes(setup)
    specs = list(dict.fromkeys(one for plane in matrix for one in plane.specs()))
    found = {
        one: {what: records.cell(what, one.key) for what in MEASURED.split()}
        for one in specs
        if one.key in records
    }
    loads = list(dict.fromkeys((one.pattern, one.read_percent) for one in specs))
    own = {load: {s: c for s, c in found.items() if s[:2] == load} for load in loads}
    said = [line for of in own.values() if (line := _said(of))]
    numbers = [one for load, of in own.items() for one in _numbers(load, of)]
    figures = [one for plane in matrix for one in _figures(plane, found)]
    code = "measured" if found else "not-measured"
    return Section(
        said or ["No cell has been measured yet."],
        numbers,
        [_table(found, len(specs))],
        figures,
        rows=[_row(spec, of) for spec, of in found.items()],
        verdict=Verdict(code, {"cells": float(len(found)), "planned": float(len(specs))}),
    )


def _value(of: Mapping[str, Cell], what: str) -> float:
    return of[what].value or 0.0


def _said(own: Found) -> str:
    """The most of a pattern and mix, with the fewest I/Os in flight that nearly reach it, and the
    shortest mean latency."""
    if not own:
        return ""
    first = next(iter(own))
    what, unit = ("iops", "IOPS") if first.pattern == "random" else ("mbps", "MB/s")
    most = NEARLY * max(_value(of, what) for of in own.values())
    top = min(
        (one for one in own if _value(own[one], what) >= most),
        key=lambda one: (one.depth * one.jobs, one.block),
    )
    said = f"{first.load}: up to {units.with_unit(own[top][what].value, unit)} ({top.told()}"
    said += f"; mean latency {units.microseconds(own[top]['mean'].value)})"
    lone = min(own, key=lambda one: own[one]["mean"].value or float("inf"))
    if lone != top:
        said += f"; shortest mean latency {units.microseconds(own[lone]['mean'].value)}"
        said += f" ({lone.told()})"
    return units.sentence(said)


def _numbers(load: tuple[str, int], own: Found) -> list[Number]:
    name = Spec(*load, 1, 1, 1).load
    what, unit = ("iops", "IOPS") if load[0] == "random" else ("mbps", "MB/s")
    most = best(of[what] for of in own.values())
    least = best((of["mean"] for of in own.values()), min)
    return [
        number(f"{name}, most", most, unit, "higher"),
        number(f"{name}, shortest mean latency", least, "us", "lower"),
    ]


SHOWN = (("iops", "IOPS", "IOPS"), ("mean", "Mean latency", "us"))
"""What charts show of cells: name, title, unit."""
HEADS = (
    "pattern | R/W | block | depth | jobs | operations [IOPS] | speed [MB/s] | mean [us] | "
    "p50 [us] | p99 [us] | p99.9 [us] | max [us] | WA"
)


def _table(found: Found, planned: int) -> Table:
    known = any(of["waf"].value is not None for of in found.values())
    heads = columns(HEADS if known else HEADS.removesuffix(" | WA"))
    what = MEASURED.split() if known else MEASURED.split()[:-1]
    rows: list[Cells] = [
        [
            spec.pattern,
            f"{spec.read_percent}/{100 - spec.read_percent}",
            *(spec.text(one) for one in DIMENSIONS),
            *(of[one] for one in what),
        ]
        for spec, of in found.items()
    ]
    missing = planned - len(found)
    note = f"{missing:,} of {planned:,} cells have not been measured." if missing else ""
    return Table("All cells", heads, rows, note)


def _row(spec: Spec, of: Mapping[str, Cell]) -> dict[str, Any]:
    """A cell for scripts."""
    names = {"mean": "clat_mean_us", "p50": "clat_p50_us", "p99": "clat_p99_us",
             "p99.9": "clat_p999_us", "max": "clat_max_us"}  # fmt: skip
    asked = {"rw": spec.rw, "bs": spec.block, "iodepth": spec.depth, "numjobs": spec.jobs,
             "rwmixread": spec.read_percent}  # fmt: skip
    return {**asked, **{names.get(what, what): cell.value for what, cell in of.items()}}


def _figures(plane: Plane, found: Found) -> list[Figure]:
    """Of a plane: heat maps of the dimensions in which it extends, or curves over the only one;
    and latency against IOPS."""
    if not any(one in found for one in plane.specs()):
        return []
    if len(plane.axes) < 2:
        return [*_lines(plane, found), *_load_curves(plane, found)]
    made = []
    for mix in plane.mixes:
        own = replace(plane, mixes=(mix,))
        made += [*_heats(own, found), *_load_curves(own, found)]
    return made


def _values(plane: Plane, axis: str) -> dict[int, str]:
    return {getattr(one, axis): one.text(axis) for one in plane.specs()}


def _heats(plane: Plane, found: Found) -> list[Figure]:
    """IOPS and mean latency over two dimensions, for each value of the third."""
    down, across, *third = plane.axes
    first = next(plane.specs())
    slices = [first]
    if third:
        slices = [first.at(third[0], value) for value in _values(plane, third[0])]
    held = [one for one in DIMENSIONS if one not in (down, across)]
    made = []
    for at in slices:
        group = units.sentence(f"{at.load}, {at.told(held)}")[:-1]
        for what, title, unit in SHOWN:
            cells = {
                (row, column): _cell(found, at.at(down, row).at(across, column), what)
                for row in _values(plane, down)
                for column in _values(plane, across)
            }
            if best(cells.values()).value is not None:
                fields = CellGrid(_values(plane, down), _values(plane, across), cells)
                labels = (DIMENSIONS[across], DIMENSIONS[down])
                name = title if title == unit else f"{title}, {unit}"
                made.append(fields.heat(f"{name}: {group}", labels, unit, group=group))
    return made


def _cell(found: Found, spec: Spec, what: str) -> Cell:
    return found[spec][what] if spec in found else Cell(None)


def _lines(plane: Plane, found: Found) -> list[Figure]:
    """IOPS and mean latency over the only dimension in which the cells differ, a line each mix."""
    if not plane.axes:
        return []
    (axis,) = plane.axes
    names = _values(plane, axis)
    first = next(plane.specs())
    held = first.told([one for one in DIMENSIONS if one != axis])
    group = f"{plane.pattern.capitalize()}, {held}"
    made = []
    for what, title, unit in SHOWN:
        curves = {
            mix_text(mix): [
                _cell(found, first._replace(read_percent=mix).at(axis, value), what)
                for value in names
            ]
            for mix in plane.mixes
        }
        made.append(
            figure(
                f"{title}: {group}", DIMENSIONS[axis], unit, curves,
                x_names=list(names.values()), log_y=True, group=group,
            )
        )  # fmt: skip
    return charts(*made)


def _load_curves(plane: Plane, found: Found) -> list[Figure]:
    """Mean and p99 latency against IOPS as more I/Os are in flight: a curve for each mix, block
    size and, where the depth varies too, number of jobs."""
    grows = next((one for one in ("depth", "jobs") if one in plane.axes), None)
    if grows is None:
        return []
    curves: dict[str, list[Spec]] = {}
    named = [one for one in plane.axes if one != grows]
    for spec in plane.specs():
        if spec in found:
            words = [mix_text(spec.read_percent)] if len(plane.mixes) > 1 else []
            name = ", ".join(words + ([spec.told(named)] if named else []))
            curves.setdefault(name or spec.load, []).append(spec)
    first = next(plane.specs())
    load = first.load if len(plane.mixes) == 1 else f"{plane.pattern} I/O"
    held = first.told(one for one in DIMENSIONS if one not in plane.axes)
    about = f"{load}, {held}" if held else load
    along = units.listed(list(_values(plane, grows).values()))
    note = f"Along a curve: {DIMENSIONS[grows]} {along}."
    return charts(
        *(
            figure(
                f"{title} against IOPS: {about}",
                "IOPS",
                f"{title[0].lower()}{title[1:]}, us",
                {
                    name: [(_value(found[one], "iops"), found[one][what]) for one in specs]
                    for name, specs in curves.items()
                },
                log_x=True,
                log_y=True,
                group=units.sentence(f"{about}: latency against IOPS")[:-1],
                note=note if what == "mean" else "",
            )
            for what, title in (("mean", "Mean latency"), ("p99", "p99 latency"))
        )
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
    Parameter("preset", "usual", "whose grid it is", tuple(PRESETS)),
    Parameter("patterns", "", f"sequential, random, or both by a comma{_EMPTY}"),
    Parameter("mixes", "", f"percent of reads: 100,70,0{_EMPTY}"),
    Parameter("blocks", "", f"block sizes: 4k,16k or 4k..1mx2{_EMPTY}"),
    Parameter("depths", "", f"I/Os in flight of each job: 1..64x2{_EMPTY}"),
    Parameter("jobs", "", f"numbers of jobs (fio's numjobs): 1,4{_EMPTY}"),
    Parameter("seconds", 0.0, "time for each cell; 0: that of the preset"),
    Parameter("settle_s", 10.0, "time of the same load, not measured, before a cell that writes"),
    Parameter(
        "prepare",
        "random",
        "; ".join(f"{name}: {what}" for name, what in PREPARATIONS.items()),
        tuple(PREPARATIONS),
    ),
    Parameter("passes", 2, "how often random writes overwrite the range"),
    Parameter(
        "order",
        "reads-first",
        "reads-first: sequential before random, reads before writes; as-written: patterns and "
        "mixes as the parameters have them",
        ORDERS,
    ),
)
