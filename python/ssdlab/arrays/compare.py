"""Arrays of one drive beside each other and beside the drive alone: the grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ssdlab.answer import (
    Cells,
    Curve,
    Figure,
    Number,
    Section,
    Table,
    Verdict,
    by_name,
    columns,
    numbers,
)
from ssdlab.arrays.advice import advise, choose
from ssdlab.arrays.attachment import DIRECT, Attachment
from ssdlab.arrays.grid import ArrayRun, run_all
from ssdlab.arrays.readings import Reading, Spread
from ssdlab.arrays.rigs import STRIPED, SURVIVES, Drive, Shape
from ssdlab.histogram import ms
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback

ARRAY_PARTS: Mapping[str, str] = {
    "slowest_member": "slowest member",
    "parity": "old data and parity",
    "bitmap": "write-intent bitmap",
    "stripe_wait": "stripe lock wait",
}
"""Where an array spends time of its own (`stats::Part`)."""
SHARED_PARTS: Mapping[str, str] = {
    "card": "controller card",
    "cache": "room in its RAM",
    "bus": "shared bandwidth",
}
"""What lies between it and the host, or between it and its members."""


@dataclass(frozen=True)
class Subject:
    """What is asked of every study: a drive, how it is changed, its state and the seed."""

    drive: Drive
    capacity_bytes: int | None = None
    """Of one drive at full size; None for that which is simulated."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    prepare: str = "sequential"
    seed: int = 1
    price: float | None = None
    """Of one drive, in any currency."""
    attachment: Attachment = DIRECT
    """What lies between the host and the members of an array."""

    def variant(self, shape: Shape | None, job: JobText, prepare: str | None = None) -> ArrayRun:
        """A run on an array of the drive, or on the drive alone."""
        state = prepare or self.prepare
        return ArrayRun(shape, self.drive, job, state, self.overrides, self.attachment)


@dataclass(frozen=True)
class ArrayRow:
    """An array, what it did, and what that is beside the drive alone."""

    shape: Shape
    reading: Reading
    speedup: float
    """IOPS by those of the drive alone."""
    usable_bytes: float
    """At the drive's full size."""
    price: float | None
    """Of all drives."""

    @property
    def efficiency(self) -> float:
        """IOPS by N times those of the drive alone."""
        return self.speedup / self.shape.count

    @property
    def price_per_gb(self) -> float | None:
        """Price of 10^9 usable bytes."""
        return None if self.price is None else self.price / (self.usable_bytes / 1e9)

    @property
    def price_per_kiops(self) -> float | None:
        """Price of a thousand I/Os a second under this load."""
        return None if self.price is None else self.price / (self.reading.iops / 1e3)

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""
        return {
            "array": self.shape.name,
            "level": self.shape.level,
            "count": self.shape.count,
            "chunk_bytes": self.shape.chunk,
            "speedup": self.speedup,
            "efficiency": self.efficiency,
            "usable_bytes": self.usable_bytes,
            "price": self.price,
            "price_per_gb": self.price_per_gb,
            "price_per_1000_iops": self.price_per_kiops,
            **self.reading.as_json(),
        }


def study(
    order: Subject, shapes: Sequence[Shape], job: JobText, progress: ProgressCallback | None = None
) -> Section:
    """Runs ``job`` on every array and on the drive alone.

    Raises as :func:`ssdlab.arrays.grid.run_all`.
    """
    variants = [order.variant(None, job), *(order.variant(one, job) for one in shapes)]
    one, *rest = run_all(variants, seed=order.seed, progress=progress)
    full = order.capacity_bytes or one.capacity_bytes
    rows = [
        ArrayRow(
            shape,
            reading,
            reading.iops / one.iops if one.iops else 0.0,
            reading.capacity_bytes / one.capacity_bytes * full,
            None if order.price is None else order.price * shape.count,
        )
        for shape, reading in zip(shapes, rest, strict=True)
    ]
    alone = {
        "array": None,
        "count": 1,
        "usable_bytes": float(full),
        "price": order.price,
        **one.as_json(),
    }
    return Section(
        key="arrays",
        title=f"Arrays of {order.drive.name}",
        sentences=advise(one, rows),
        numbers=_numbers(choose(rows)) if rows else (),
        verdict=Verdict("recommended", {"array": choose(rows).shape.name} if rows else {}),
        tables=_tables(one, rows, order, full),
        figures=_figures(one, rows),
        rows=[alone, *(row.as_json() for row in rows)],
    )


def _numbers(chosen: ArrayRow) -> list[Number]:
    """Of the array to take."""
    found = chosen.reading
    return [
        Number("rate", found.iops, "IOPS", "higher"),
        Number("throughput", found.bytes_per_s / 1e6, "MB/s", "higher"),
        Number("p99", ms(found.percentile_ns(99.0)), "ms", "lower"),
        Number("usable", chosen.usable_bytes, "B", "higher"),
    ]


PERCENTS = (50.0, 99.0, 99.9)


def _speeds(reading: Reading) -> list[float | None]:
    tails = (ms(reading.percentile_ns(percent)) for percent in PERCENTS)
    rates = [reading.iops, reading.bytes_per_s / 1e6]
    return [*rates, ms(reading.mean_ns), *tails, ms(reading.max_ns)]


def _tables(one: Reading, rows: Sequence[ArrayRow], order: Subject, full: float) -> list[Table]:
    speeds = Table(
        "Speed",
        columns(
            "array | rate [IOPS] | throughput [MB/s] | mean [ms] | p50 [ms] | p99 [ms] | "
            "p99.9 [ms] | max [ms] | of N drives [%]"
        ),
        [
            ["one drive", *numbers(*_speeds(one), 100.0)],
            *([r.shape.name, *numbers(*_speeds(r.reading), 100 * r.efficiency)] for r in rows),
        ],
        "“Of N drives”: the rate, as a share of N times that of one drive under the same load.",
    )
    return [speeds, _members(rows), _times(rows), _money(one, rows, order, full)]


def _times(rows: Sequence[ArrayRow]) -> Table:
    shared = {
        key: name
        for key, name in SHARED_PARTS.items()
        if any(row.reading.parts.get(key) for row in rows)
    }
    parts = {**ARRAY_PARTS, **shared}

    def shares(row: ArrayRow) -> list[float | None]:
        own = [100 * row.reading.parts.get(part, 0.0) for part in parts]
        return [*own, 100 - sum(own)] if row.reading.parts else [None] * (len(own) + 1)

    heads = " | ".join(f"{name} [%]" for name in (*parts.values(), "the members"))
    return Table(
        "Where the time of the I/Os went",
        columns(f"array | {heads}"),
        [[row.shape.name, *numbers(*shares(row))] for row in rows],
        "The array's own time: waiting for the slowest member beyond what members need on the "
        "average, for old data and parity, for stripe lock waits"
        + ("; and what they share. " if shared else ". ")
        + "The rest is what the members took.",
    )


def _members(rows: Sequence[ArrayRow]) -> Table:
    def spread(one: Spread | None, factor: float, by: float = 1.0) -> list[float | None]:
        ends = (one.least, one.mean, one.greatest) if one else (None,) * 3
        return [None if end is None else factor * end / by for end in ends]

    lines: list[Cells] = [
        [
            row.shape.name,
            *numbers(
                row.reading.member_ios,
                *spread(row.reading.utilisation, 100),
                *spread(row.reading.written, 1, 1e6),
                row.reading.waf,
            ),
        ]
        for row in rows
    ]
    heads = columns(
        "array | member I/Os per I/O | busy least [%] | busy mean [%] | busy most [%] | "
        "written least [MB] | written mean [MB] | written most [MB] | write amplification"
    )
    note = "A member is busy while it has a command; least, mean and most over the members."
    return Table("What the members did", heads, lines, note)


def _money(one: Reading, rows: Sequence[ArrayRow], order: Subject, full: float) -> Table:
    text = "array | usable [GB] | of the space [%]"
    alone = [full / 1e9, 100.0]
    if order.price is not None:
        text += " | price | per GB | per 1000 IOPS"
        alone += [order.price, order.price / (full / 1e9), order.price / (one.iops / 1e3)]
    lines: list[Cells] = [["one drive", *numbers(*alone), "-"]]
    for row in rows:
        priced = (row.price, row.price_per_gb, row.price_per_kiops) if len(alone) > 2 else ()
        space = 100 * row.usable_bytes / (full * row.shape.count)
        cells = numbers(row.usable_bytes / 1e9, space, *priced)
        lines.append([row.shape.name, *cells, SURVIVES[row.shape.level]])
    return Table("Space, price and safety", columns(f"{text} | tolerates failure of"), lines)


def _short(shape: Shape, chunks: bool) -> str:
    """A name for the axis of a chart, with the chunk where there are several."""
    chunk = f" {shape.chunk >> 10}k" if chunks and shape.level in STRIPED else ""
    level = shape.level if shape.level == "linear" else f"R{shape.level}"
    return f"{level} x {shape.count}{chunk}"


def _figures(one: Reading, rows: Sequence[ArrayRow]) -> list[Figure]:
    chunks = len({row.shape.chunk for row in rows}) > 1
    names = ["one drive", *(_short(row.shape, chunks) for row in rows)]
    readings = [one, *(row.reading for row in rows)]
    rates = by_name("Rate", "IOPS", names, {"simulated": [r.iops for r in readings]}, wide=True)
    ideal = [one.iops, *(one.iops * row.shape.count for row in rows)]
    rings = Curve("N times one drive", rates.curves[0].x, ideal, "published")
    tails = {
        f"p{percent:g}": [ms(r.percentile_ns(percent)) or 0.0 for r in readings]
        for percent in PERCENTS
    }
    charts = [
        replace(rates, curves=[*rates.curves, rings]),
        by_name("Latency", "ms", names, tails, wide=True),
    ]
    if len({row.shape.count for row in rows}) > 1:
        curves = []
        levels = dict.fromkeys((r.shape.level, r.shape.chunk) for r in rows)
        for place, (level, chunk) in enumerate(levels):
            own = [r for r in rows if (r.shape.level, r.shape.chunk) == (level, chunk)]
            x = [1.0, *(float(r.shape.count) for r in own)]
            y = [one.iops, *(r.reading.iops for r in own)]
            label = own[0].shape.name.replace(f" of {own[0].shape.count}", "")
            curves.append(Curve(label, x, y, "points", place))
        title = "Rate against the number of drives"
        charts.append(Figure(title, "drives", "IOPS", curves, wide=True))
    return charts
