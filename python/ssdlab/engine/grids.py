"""Cells of a grid of loads, measured or read from others: block sizes, depths, jobs, mixes and
patterns; their table, heat maps, and latency against IOPS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ssdlab import units
from ssdlab.answer import Cell, Figure, Number, Table, table
from ssdlab.engine.answers import CellGrid, best, charts, figure, number
from ssdlab.engine.setup import short

PATTERNS = {"sequential": "", "random": "rand"}
"""By name, what stands before fio's words of a direction; in the order in which a drive takes
them: random writes change how sequential I/O goes for long, not the other way round."""
MEASURED = {
    "iops": "IOPS [IOPS]", "mbps": "speed [MB/s]", "mean": "mean [us]", "p50": "p50 [us]",
    "p99": "p99 [us]", "p99.9": "p99.9 [us]", "max": "max [us]", "waf": "WA",
}  # fmt: skip
"""What a cell comes to (:meth:`ssdlab.engine.records.Records.value`), with the head in tables."""
DIMENSIONS = {"block": "block size", "depth": "queue depth", "jobs": "jobs"}
"""What a cell has besides pattern and mix, with its name for people."""


NEARLY = 0.99
"""A cell that has this share of the most is as good as the best."""


def mix_text(read_percent: float) -> str:
    """A mix as the PTS writes it: percent of reads / of writes."""
    return f"R/W {read_percent:g}/{100 - read_percent:g}"


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
        size = short(self.block)
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
            "jobs": units.counted(self.jobs, "job"),
        }
        return ", ".join(words[dimension] for dimension in dimensions)


@dataclass(frozen=True)
class Plane:
    """Cells of one pattern: each mix with each block size, depth and number of jobs."""

    pattern: str
    mixes: Sequence[int]
    blocks: Sequence[int]
    depths: Sequence[int]
    jobs: Sequence[int] = (1,)

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


Found = Mapping[Spec, Mapping[str, Cell]]
"""What every cell came to, by the names of :data:`MEASURED`."""


LINE_MIN = 3
"""So many cells that differ in one dimension alone are a line."""


def planes_of(specs: Iterable[Spec]) -> list[Plane]:
    """The planes that cells of others lie in: one of each pattern where at least half of it is
    there, else the lines among them."""
    made: list[Plane] = []
    every = list(dict.fromkeys(specs))
    for pattern in PATTERNS:
        own = [one for one in every if one.pattern == pattern]
        if not own:
            continue
        plane = _spanned(pattern, own)
        if plane.axes and 2 * len(own) >= sum(1 for _ in plane.specs()):
            made.append(plane)
            continue
        for axis in DIMENSIONS:
            lines: dict[Spec, list[Spec]] = {}
            for one in own:
                lines.setdefault(one._replace(read_percent=0).at(axis, 0), []).append(one)
            spanned = [_spanned(pattern, line) for line in lines.values()]
            made += [plane for plane in spanned if len(_values(plane, axis)) >= LINE_MIN]
    return made


def _spanned(pattern: str, specs: Sequence[Spec]) -> Plane:
    """The smallest plane that has all of them."""
    mixes = sorted({spec.read_percent for spec in specs}, reverse=True)
    blocks, depths, jobs = (sorted({getattr(spec, name) for spec in specs}) for name in DIMENSIONS)
    return Plane(pattern, mixes, blocks, depths, jobs)


def _value(of: Mapping[str, Cell], what: str) -> float:
    return of[what].value or 0.0


def said(own: Found) -> str:
    """The most of a pattern and mix, with the fewest I/Os in flight that nearly reach it, and the
    lowest mean latency."""
    if not own:
        return ""
    first = next(iter(own))
    what, unit = ("iops", "IOPS") if first.pattern == "random" else ("mbps", "MB/s")
    most = NEARLY * max(_value(of, what) for of in own.values())
    top = min(
        (one for one in own if _value(own[one], what) >= most),
        key=lambda one: (one.depth * one.jobs, one.block),
    )
    highest = units.with_unit(max(_value(of, what) for of in own.values()), unit)
    reached = units.with_unit(own[top][what].value, unit)
    text = f"{first.load}: up to {highest} ({'' if reached == highest else f'{reached} with '}"
    text += f"{top.told()}; mean latency {units.microseconds(own[top]['mean'].value)})"
    lone = min(own, key=lambda one: own[one]["mean"].value or float("inf"))
    if lone != top:
        text += f"; lowest mean latency {units.microseconds(own[lone]['mean'].value)}"
        text += f" ({lone.told()})"
    return units.sentence(text)


def numbers(load: tuple[str, int], own: Found) -> list[Number]:
    """The few numbers of a pattern and mix: the most, and the shortest latency."""
    name = Spec(*load, 1, 1, 1).load
    what, unit = ("iops", "IOPS") if load[0] == "random" else ("mbps", "MB/s")
    top = best(of[what] for of in own.values())
    least = best((of["mean"] for of in own.values()), min)
    return [
        number(f"{name}, most", top, unit, "higher"),
        number(f"{name}, lowest mean latency", least, "us", "lower"),
    ]


SHOWN = (("iops", "IOPS", "IOPS"), ("mean", "Mean latency", "us"))
"""What charts show of cells: name, title, unit."""


def cells_table(found: Found, planned: int) -> Table:
    """All cells, a row each."""

    def dimension(name: str) -> Callable[[Spec], str]:
        return lambda spec: spec.text(name)

    def measured(what: str) -> Callable[[Spec], Cell]:
        return lambda spec: found[spec][what]

    missing = planned - len(found)
    return table(
        "All cells",
        found,
        {
            "pattern": lambda spec: spec.pattern,
            "R/W": lambda spec: f"{spec.read_percent}/{100 - spec.read_percent}",
            **{name: dimension(name) for name in DIMENSIONS},
            **{head: measured(what) for what, head in MEASURED.items()},
        },
        f"{missing:,} of {planned:,} cells have not been measured." if missing else "",
        optional=["WA"],
    )


def row(spec: Spec, of: Mapping[str, Cell]) -> dict[str, Any]:
    """A cell for scripts."""
    names = {"mean": "clat_mean_us", "p50": "clat_p50_us", "p99": "clat_p99_us",
             "p99.9": "clat_p999_us", "max": "clat_max_us"}  # fmt: skip
    asked = {"rw": spec.rw, "bs": spec.block, "iodepth": spec.depth, "numjobs": spec.jobs,
             "rwmixread": spec.read_percent}  # fmt: skip
    return {**asked, **{names.get(what, what): cell.value for what, cell in of.items()}}


def figures(plane: Plane, found: Found) -> list[Figure]:
    """Of a plane: heat maps of the dimensions in which it extends, or curves over the only one;
    and latency against IOPS."""
    if not any(spec in found for spec in plane.specs()):
        return []
    if len(plane.axes) < 2:
        return [*_lines(plane, found), *_load_curves(plane, found)]
    made = []
    for mix in plane.mixes:
        own = replace(plane, mixes=(mix,))
        made += [*_heats(own, found), *_load_curves(own, found)]
    return made


def _values(plane: Plane, axis: str) -> dict[int, str]:
    return {getattr(spec, axis): spec.text(axis) for spec in plane.specs()}


def _heats(plane: Plane, found: Found) -> list[Figure]:
    """IOPS and mean latency over two dimensions, for each value of the third."""
    down, across, *third = plane.axes
    first = next(plane.specs())
    slices = [first]
    if third:
        slices = [first.at(third[0], value) for value in _values(plane, third[0])]
    held = [dimension for dimension in DIMENSIONS if dimension not in (down, across)]
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
    held = first.told([dimension for dimension in DIMENSIONS if dimension != axis])
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
    named = [axis for axis in plane.axes if axis != grows]
    for spec in plane.specs():
        if spec in found:
            words = [mix_text(spec.read_percent)] if len(plane.mixes) > 1 else []
            name = ", ".join(words + ([spec.told(named)] if named else []))
            curves.setdefault(name or spec.load, []).append(spec)
    first = next(plane.specs())
    load = first.load if len(plane.mixes) == 1 else f"{plane.pattern} I/O"
    held = first.told(dimension for dimension in DIMENSIONS if dimension not in plane.axes)
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
                    name: [(_value(found[spec], "iops"), found[spec][what]) for spec in specs]
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
