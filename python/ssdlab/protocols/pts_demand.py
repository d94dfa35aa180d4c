"""Grids of queue depths and threads: how much a drive does, and how fast, as demand grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ssdlab.answer import Cell, Cells, Figure, Number, Style, Table, columns
from ssdlab.engine.answers import CellGrid, charts, figure, grid
from ssdlab.engine.records import Records
from ssdlab.protocols import pts_common as pts

COUNTS = (32, 16, 8, 6, 4, 2, 1)
"""Queue depths and threads, from high to low."""
POINTS = tuple((tc, qd) for tc in COUNTS for qd in COUNTS)
"""Threads and queue depth of each point, in the order of a round."""


class DemandPoint(NamedTuple):
    """What was measured at a point: IOPS, mean and max latency, us."""

    iops: float
    mean_us: float
    max_us: float
    sources: tuple[str, ...]


Points = Mapping[tuple[int, int], DemandPoint]
Where = Callable[[tuple[int, int], DemandPoint], tuple[float, float]]


def name_of(tc: int, qd: int) -> str:
    """The part of a key that names a point."""
    return f"tc{tc:02d}-qd{qd:02d}"


def text(point: tuple[int, int]) -> str:
    """A point for people."""
    return f"TC {point[0]}, QD {point[1]}"


def measured(records: Records, keys: Mapping[tuple[int, int], Sequence[str]]) -> Points:
    """The points of which there is anything: means over their keys, and the max latency."""
    found = {}
    for point, wanted in keys.items():
        here = [key for key in wanted if key in records]
        cells = [pts.mean_of_rounds(records, what, here) for what in ("iops", "mean", "max")]
        iops, mean, longest = (cell.value for cell in cells)
        if iops is not None and mean is not None and longest is not None:
            found[point] = DemandPoint(iops, mean, longest, tuple(here))
    return found


def numbers(name: str, point: DemandPoint) -> list[Number]:
    """What a point did, as numbers of its ``name``."""
    return [
        Number(f"{name}: IOPS", point.iops, "IOPS", "higher", point.sources),
        Number(f"{name}: mean response", point.mean_us, "us", "lower", point.sources),
    ]


def tables(points: Points) -> list[Table]:
    """IOPS, mean and max latency by threads (rows) and depth (columns)."""
    return [
        _grid(points, field).table(f"{title} by threads and queue depth", "threads", unit)
        for title, unit, field in (
            ("IOPS", "IOPS", "iops"),
            ("Mean response time", "us", "mean_us"),
            ("Max response time", "us", "max_us"),
        )
    ]


def _grid(points: Points, field: str) -> CellGrid:
    threads, depths = ({count: f"{name} {count}" for count in COUNTS} for name in ("TC", "QD"))
    return grid(threads, depths, lambda tc, qd: _cell(points, (tc, qd), field))


def _cell(points: Points, at: tuple[int, int], field: str = "iops") -> Cell:
    return Cell(getattr(points[at], field), points[at].sources) if at in points else Cell(None)


def figures(points: Points, marked: Mapping[str, tuple[int, int]] | None = None) -> list[Figure]:
    """Demand variation as a surface and as lines, demand intensity, and both against the number
    of outstanding I/Os; ``marked`` points are ringed."""
    if not points:
        return []
    ordered = sorted(points, key=lambda at: at[0] * at[1])
    names = {count: str(count) for count in COUNTS[::-1]}
    axes: dict[str, Any] = {
        "log_x": True,
        "log_y": True,
        "from_steps": [key for point in points.values() for key in point.sources],
    }
    intensity = _by_threads(points, lambda _, point: (point.iops, point.mean_us / 1e3))
    styles: dict[str, Style] = dict.fromkeys(intensity, "points")
    if rings := [points[at] for at in (marked or {}).values() if at in points]:
        intensity["histograms"] = [(point.iops, point.mean_us / 1e3) for point in rings]
        styles["histograms"] = "published"
    outstanding = (
        figure(
            f"Outstanding I/Os: {name}",
            "outstanding I/Os (threads x depth)",
            unit,
            {name: [(tc * qd, scale * getattr(points[tc, qd], field)) for tc, qd in ordered]},
            style="published",
            group="Outstanding I/Os",
            **axes,
        )
        for name, unit, field, scale in (
            ("IOPS", "IOPS", "iops", 1.0),
            ("mean response time", "ms", "mean_us", 1e-3),
        )
    )
    return [
        grid(names, names, lambda tc, qd: _cell(points, (tc, qd))).heat(
            "Demand variation",
            ("queue depth", "threads"),
            "IOPS",
            note="IOPS; colours follow their logarithm, from dark to light at least a factor of 4.",
        ),
        *charts(
            figure(
                "Demand variation: IOPS against queue depth",
                "queue depth",
                "IOPS",
                _by_threads(points, lambda at, point: (float(at[1]), point.iops)),
                **axes,
            ),
            figure(
                "Demand intensity: response time against IOPS",
                "IOPS",
                "mean response time, ms",
                intensity,
                style=styles,
                note="A line for each number of threads, the depth growing along it."
                + (" Rings: the points of the histograms." if rings else ""),
                **axes,
            ),
            *outstanding,
        ),
    ]


def _by_threads(points: Points, where: Where) -> dict[str, list[tuple[float, float]]]:
    return {
        f"TC {tc}": [where((tc, qd), points[tc, qd]) for qd in COUNTS[::-1] if (tc, qd) in points]
        for tc in COUNTS
    }


def histograms(
    records: Records, points: Mapping[str, tuple[str, tuple[int, int]]]
) -> tuple[Table, list[Figure]]:
    """The response times of some points, by name: their key, and their threads and depth."""
    measured = {name: point for name, point in points.items() if point[0] in records}
    rows: list[Cells] = [
        [
            name,
            *(Cell(count) for count in (tc, qd, tc * qd)),
            records.cell("iops", key),
            records.cell("mean", key),
            *pts.percentile_cells(records, [key]),
        ]
        for name, (key, (tc, qd)) in measured.items()
    ]
    heads = columns("point | TC | QD | outstanding | IOPS [IOPS] | mean [us]")
    table = Table("Response times of the histograms", [*heads, *pts.PERCENT_COLUMNS], rows)
    bins = {f"{name} ({text(at)})": records.latency(key) for name, (key, at) in measured.items()}
    known = {name: histogram for name, histogram in bins.items() if histogram is not None}
    keys = [key for key, _ in measured.values()]
    shown = pts.histogram_figure("Response time histograms", known, keys)
    return table, [shown] if known else []
