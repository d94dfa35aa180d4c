"""Drives that others measured, by the procedures they followed: measured beside simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ssdlab.answer import Curve, Figure
from ssdlab.experiments.base import Experiment, Line, Reproduced, Runs, Task, experiment
from ssdlab.experiments.measured.cells import MeasuredCell, table
from ssdlab.experiments.measured.procedures import Bench
from ssdlab.experiments.measured.readings import read

DRIVES: tuple[str, ...] = tuple(table().runs)
AXES = {
    "namespace_gib": "namespace, GiB",
    "depth": "depth",
    "rate": "writes a second",
    "at_gb": "place, GB",
}
"""What runs of one kind differ by, as an axis of a chart."""
POINTS = 3
"""Of a chart, at least."""


def plan(drives: Sequence[str], factor: int) -> list[Task]:
    """The runs of these drives."""
    runs = table().runs
    return [
        Bench(drive, name, keys, factor).task()
        for drive in drives
        for name, keys in runs[drive].items()
    ]


def judge(drives: Sequence[str], runs: Runs) -> Reproduced:
    """Each cell of these drives beside what its run shows, and curves where cells make one."""
    lines: list[Line] = []
    figures: list[Figure] = []
    for drive in drives:
        cells = table().of(drive)
        own = [_line(cell, runs) for cell in cells]
        lines += own
        figures += _figures(drive, cells, own)
    return Reproduced(lines, figures)


def _line(cell: MeasuredCell, runs: Runs) -> Line:
    found = read(runs[f"{cell.drive}/{cell.run}"], cell.read, cell.unit)
    why = "nothing was measured in so short a run" if found is None else table().why(cell)
    return Line(cell.drive, cell.quantity, cell.value, cell.unit, found, why, cell.counts_as)


def _figures(drive: str, cells: Sequence[MeasuredCell], lines: Sequence[Line]) -> list[Figure]:
    """A chart of each quantity that was measured at several values of one thing, all else equal."""
    families: dict[tuple[str, str, str, str], list[tuple[float, Line]]] = {}
    for cell, line in zip(cells, lines, strict=True):
        keys = dict(table().runs[drive][cell.run])
        for axis in [axis for axis in AXES if axis in keys]:
            what = cell.quantity.partition(",")[0]
            rest = repr(sorted((key, value) for key, value in keys.items() if key != axis))
            place = (axis, what, f"{cell.read} {cell.unit}", rest)
            families.setdefault(place, []).append((float(keys[axis]), line))
    return [
        _figure(drive, axis, what, sorted(points, key=lambda point: point[0]))
        for (axis, what, _, _), points in families.items()
        if len({x for x, _ in points}) >= POINTS
    ]


def _figure(drive: str, axis: str, what: str, points: list[tuple[float, Line]]) -> Figure:
    x = [at for at, _ in points]
    shown = [(at, line.simulated) for at, line in points if line.simulated is not None]
    curves = [
        Curve("measured", x, [line.published or 0.0 for _, line in points], "published", 0),
        Curve("simulated", [at for at, _ in shown], [y for _, y in shown], "points", 0),
    ]
    unit = points[0][1].unit
    label = f"{what}, {unit}" if unit else what
    return Figure(what, AXES[axis], label, curves, log_x=axis == "depth", group=drive)


def of(drives: Sequence[str]) -> Experiment:
    """The experiment with these drives alone."""
    return replace(
        EXPERIMENT,
        articles=_sources(drives),
        plan=lambda factor: plan(drives, factor),
        judge=lambda runs, _factor: judge(drives, runs),
    )


def _sources(drives: Sequence[str]) -> tuple[str, ...]:
    """Where the numbers of these drives come from, and how they were measured."""
    found = dict.fromkeys(cell.source for cell in table().cells if cell.drive in drives)
    known = [table().sources[key] for key in found]
    return tuple(
        f"{source.what} (licence: {source.licence}): {source.procedure}" for source in known
    )


EXPERIMENT = experiment(
    "measured",
    plan=lambda factor: plan(DRIVES, factor),
    judge=lambda runs, _factor: judge(DRIVES, runs),
    articles=_sources(DRIVES),
)
