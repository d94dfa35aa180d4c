"""Grids of queue depths and threads: how much a drive does, and how fast, as demand grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ssdlab.answer import Cell, Column, Curve, Figure, Table
from ssdlab.engine.records import Records
from ssdlab.protocols import pts_common as pts

COUNTS = (32, 16, 8, 6, 4, 2, 1)
"""Queue depths and threads, from high to low."""
POINTS = tuple((tc, qd) for tc in COUNTS for qd in COUNTS)
"""Threads and queue depth of each point, in the order of a round."""


class Point(NamedTuple):
    """What was measured at a point."""

    iops: float
    mean_us: float
    max_us: float
    sources: tuple[str, ...]


Grid = Mapping[tuple[int, int], Point]
Where = Callable[[tuple[int, int], Point], tuple[float, float]]


def name_of(tc: int, qd: int) -> str:
    """The part of a key that names a point."""
    return f"tc{tc:02d}-qd{qd:02d}"


def text(point: tuple[int, int]) -> str:
    """A point for people."""
    return f"TC {point[0]}, QD {point[1]}"


def measured(records: Records, keys: Mapping[tuple[int, int], Sequence[str]]) -> Grid:
    """The points of which there is anything: means over their keys, and the max latency."""
    found = {}
    for point, wanted in keys.items():
        here = [key for key in wanted if key in records]
        iops = records.mean_over(here, records.iops)
        mean = records.mean_over(here, records.mean_us)
        longest = [value for key in here if (value := records.max_us(key)) is not None]
        if iops is not None and mean is not None and longest:
            found[point] = Point(iops, mean, max(longest), tuple(here))
    return found


def tables(grid: Grid) -> list[Table]:
    """IOPS, mean and max latency by threads (rows) and depth (columns)."""
    return [
        _table("IOPS by threads and queue depth", grid, "IOPS", "iops"),
        _table("Mean response time by threads and queue depth", grid, "us", "mean_us"),
        _table("Longest response time by threads and queue depth", grid, "us", "max_us"),
    ]


def _table(title: str, grid: Grid, unit: str, field: str) -> Table:
    rows = []
    for tc in COUNTS:
        cells = [
            Cell(getattr(grid[tc, qd], field), grid[tc, qd].sources) if (tc, qd) in grid else None
            for qd in COUNTS
        ]
        rows.append((f"TC {tc}", *cells))
    return Table(title, (Column("threads"), *(Column(f"QD {qd}", unit) for qd in COUNTS)), rows)


def figures(grid: Grid, marked: Mapping[str, tuple[int, int]] | None = None) -> list[Figure]:
    """Demand variation as a surface and as lines, demand intensity, and both against the number
    of outstanding I/Os; ``marked`` points are ringed."""
    if not grid:
        return []
    sources = tuple(dict.fromkeys(key for point in grid.values() for key in point.sources))
    rings = [grid[at] for at in (marked or {}).values() if at in grid]
    return [
        *_variation(grid, sources),
        Figure(
            "Demand intensity: response time against IOPS",
            "IOPS",
            "mean response time, ms",
            [*_by_threads(grid, lambda _, p: (p.iops, p.mean_us / 1e3)), *_ring(rings)],
            log_x=True,
            log_y=True,
            wide=True,
            sources=sources,
            note="A line for each number of threads, the depth growing along it."
            + (" Rings: the points of the histograms." if rings else ""),
        ),
        *_outstanding(grid, sources),
    ]


def _variation(grid: Grid, sources: tuple[str, ...]) -> list[Figure]:
    rising = COUNTS[::-1]
    places = [(x, y) for y in range(len(rising)) for x in range(len(rising))]
    found = [grid.get((rising[y], rising[x])) for x, y in places]
    heat = Curve(
        "IOPS",
        [float(x) for x, _ in places],
        [float(y) for _, y in places],
        "heat",
        z=[point and point.iops for point in found],
    )
    names = [str(count) for count in rising]
    return [
        Figure(
            "Demand variation",
            "queue depth",
            "threads",
            [heat],
            x_names=names,
            y_names=names,
            wide=True,
            sources=sources,
            note="IOPS; colours follow their logarithm, from dark to light at least a factor of 4.",
        ),
        Figure(
            "Demand variation: IOPS against queue depth",
            "queue depth",
            "IOPS",
            _by_threads(grid, lambda at, p: (float(at[1]), p.iops)),
            log_x=True,
            log_y=True,
            wide=True,
            sources=sources,
        ),
    ]


def _by_threads(grid: Grid, where: Where) -> list[Curve]:
    curves = []
    for place, tc in enumerate(COUNTS):
        here = [where((tc, qd), grid[tc, qd]) for qd in COUNTS[::-1] if (tc, qd) in grid]
        here = [(x, y) for x, y in here if x > 0 and y > 0]
        if here:
            x, y = zip(*here, strict=True)
            curves.append(Curve(f"TC {tc}", x, y, "points", place))
    return curves


def _ring(points: list[Point]) -> list[Curve]:
    if not points:
        return []
    return [
        Curve(
            "histograms", [p.iops for p in points], [p.mean_us / 1e3 for p in points], "published"
        )
    ]


def _outstanding(grid: Grid, sources: tuple[str, ...]) -> list[Figure]:
    ordered = sorted(grid.items(), key=lambda one: one[0][0] * one[0][1])
    figures = []
    for name, unit, field, scale in (
        ("IOPS", "IOPS", "iops", 1.0),
        ("mean response time", "ms", "mean_us", 1e-3),
    ):
        points = [(float(tc * qd), scale * getattr(p, field)) for (tc, qd), p in ordered]
        points = [(x, y) for x, y in points if y > 0]
        if points:
            x, y = zip(*points, strict=True)
            figures.append(
                Figure(
                    f"Outstanding I/Os: {name}",
                    "outstanding I/Os (threads x depth)",
                    unit,
                    [Curve(name, x, y, "published")],
                    log_x=True,
                    log_y=True,
                    group="Outstanding I/Os",
                    sources=sources,
                )
            )
    return figures


def histograms(
    records: Records, points: Mapping[str, tuple[str, tuple[int, int]]]
) -> tuple[Table, list[Figure]]:
    """The response times of some points, by name: their key, and their threads and depth."""
    rows, curves, keys = [], [], []
    for place, (name, (key, at)) in enumerate(points.items()):
        if key not in records:
            continue
        keys.append(key)
        mean = records.mean_us(key)
        rows.append(
            (
                name,
                str(at[0]),
                str(at[1]),
                str(at[0] * at[1]),
                Cell(records.iops(key), (key,)),
                None if mean is None else Cell(mean, (key,)),
                *pts.percentile_cells(records, [key], pts.PERCENTILES),
            )
        )
        if (bins := records.latency(key)) is not None:
            curves.append(pts.histogram_curve(f"{name} ({text(at)})", bins, place))
    columns = (
        Column("point"),
        Column("TC"),
        Column("QD"),
        Column("outstanding"),
        Column("IOPS", "IOPS"),
        Column("mean", "us"),
        *(Column(f"{percent:g} %", "us") for percent in pts.PERCENTILES),
        Column("max", "us"),
    )
    table = Table("Response times of the histograms", columns, rows)
    if not curves:
        return table, []
    figure = Figure(
        "Response time histograms",
        "response time, us",
        "I/Os",
        curves,
        log_x=True,
        log_y=True,
        wide=True,
        sources=tuple(keys),
    )
    return table, [figure]
