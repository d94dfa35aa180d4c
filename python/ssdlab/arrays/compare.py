"""Arrays of one drive beside each other and beside the drive alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ssdlab.analysis.names import part
from ssdlab.answer import Cell, Curve, Figure, Number, Section, Table, Verdict, by_name, table
from ssdlab.arrays.advice import advise, choose, contenders
from ssdlab.arrays.grid import ONE, ArrayCase, DriveSetup, doubts
from ssdlab.arrays.offer import ArrayRow, rows_of
from ssdlab.arrays.performance import Performance, Spread
from ssdlab.arrays.rigs import STRIPED, ArrayShape
from ssdlab.histogram import ms
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback, stage

ARRAY_PARTS = ("slowest_member", "parity", "bitmap", "stripe_wait")
"""Where an array spends time of its own (`stats::Part`)."""
SHARED_PARTS = ("card", "cache", "bus")
"""What lies between it and the host, or between it and its members."""
PERCENTS = (50.0, 99.0, 99.9)

Column = Callable[[ArrayRow], Cell | float | str | None]


def study(
    setup: DriveSetup,
    shapes: Sequence[ArrayShape],
    job: JobText,
    progress: ProgressCallback | None = None,
    seeds: int = 1,
) -> Section:
    """Runs ``job`` on every array and on the drive alone, and with so many ``seeds`` on those that
    one seed does not tell apart; raises as :func:`ssdlab.bench.run`."""
    cases = {shape: ArrayCase(shape, job) for shape in (None, *shapes)}
    first, second = progress, progress
    if progress is not None and seeds > 1:
        first, second = (stage(progress, place, 2) for place in range(2))
    performances = setup.measure(cases, first)
    close = contenders(rows_of(setup, performances)[1:]) if seeds > 1 else []
    again = {
        (row.shape, seed): replace(cases[row.shape], seed=seed)
        for row in close
        for seed in range(setup.seed + 1, setup.seed + seeds)
    }
    others = setup.measure(again, second) if again else {}
    for row in close:
        own = [did for (shape, _), did in others.items() if shape == row.shape]
        performances[row.shape] = Performance.over_seeds([row.did, *own])
    alone, *rows = rows_of(setup, performances)
    chosen = choose(rows) if rows else None
    return Section(
        key="arrays",
        title=f"Arrays of {setup.drive.name}",
        sentences=list(advise(rows)),
        numbers=_numbers(chosen) if chosen else (),
        verdict=Verdict("recommended", {"array": chosen.name} if chosen else {}),
        tables=_tables(alone, rows),
        figures=_figures(alone, rows),
        rows=[row.as_json() for row in (alone, *rows)],
        checks=doubts(cases, performances),
    )


def _numbers(chosen: ArrayRow) -> list[Number]:
    """Of the array to take."""
    performance, own = chosen.did, (chosen.name,)
    return [
        Number("rate", performance.iops, "IOPS", "higher", own),
        Number("throughput", performance.bytes_per_s / 1e6, "MB/s", "higher", own),
        Number("p99", ms(performance.percentile_ns(99.0)), "ms", "lower", own),
        Number("usable", chosen.usable_bytes, "B", "higher"),
    ]


def _name(row: ArrayRow) -> str:
    return row.name


def _tables(alone: ArrayRow, rows: Sequence[ArrayRow]) -> list[Table]:
    def marked(of: Callable[[ArrayRow], float | None]) -> Column:
        return lambda row: Cell(of(row), (row.name,))

    def tail(percent: float) -> Column:
        return marked(lambda row: ms(row.did.percentile_ns(percent)))

    speeds = table(
        "Speed",
        [alone, *rows],
        {
            "array": _name,
            "rate [IOPS]": marked(lambda row: row.did.iops),
            "throughput [MB/s]": marked(lambda row: row.did.bytes_per_s / 1e6),
            "mean [ms]": marked(lambda row: ms(row.did.mean_ns)),
            **{f"p{percent:g} [ms]": tail(percent) for percent in PERCENTS},
            "max [ms]": marked(lambda row: ms(row.did.max_ns)),
            "of N drives [%]": lambda row: 100 * row.efficiency,
        },
        "“Of N drives”: the rate, as a share of N times that of one drive under the same load. "
        "An array that was run with several seeds has their mean rate and the latencies of all.",
    )
    return [speeds, _members(rows), _times(rows), _money(alone, rows)]


def _times(rows: Sequence[ArrayRow]) -> Table:
    shared = [one for one in SHARED_PARTS if any(row.did.parts.get(one) for row in rows)]
    parts = [*ARRAY_PARTS, *shared]

    def share(name: str) -> Column:
        return lambda row: 100 * row.did.parts.get(name, 0.0) if row.did.parts else None

    def rest(row: ArrayRow) -> float | None:
        own = sum(100 * row.did.parts.get(one, 0.0) for one in parts)
        # Where they are all of it, sums leave a trace, of either sign.
        return abs(round(100 - own, 6)) if row.did.parts else None

    return table(
        "Where the time of the I/Os went",
        rows,
        {
            "array": _name,
            **{f"{part(one)} [%]": share(one) for one in parts},
            "the members [%]": rest,
        },
        "The array's own time: waiting for the slowest member beyond what members need on the "
        "average, for old data and parity, for stripe lock waits"
        + ("; and what they share. " if shared else ". ")
        + "The rest is what the members took.",
    )


def _members(rows: Sequence[ArrayRow]) -> Table:
    def ends(
        what: str, unit: str, of: Callable[[Performance], Spread | None], factor: float
    ) -> dict[str, Column]:
        def end(name: str) -> Column:
            return lambda row: (
                None if (spread := of(row.did)) is None else factor * getattr(spread, name)
            )

        names = {"least": "min", "mean": "mean", "most": "max"}
        return {f"{what} {head} [{unit}]": end(name) for head, name in names.items()}

    return table(
        "What the members did",
        rows,
        {
            "array": _name,
            "member I/Os per I/O": lambda row: row.did.member_ios,
            **ends("busy", "%", lambda did: did.utilisation, 100),
            **ends("written", "MB", lambda did: did.written, 1e-6),
            "write amplification": lambda row: row.did.waf,
        },
        "A member is busy while it has a command; least, mean and most over the members.",
    )


def _money(alone: ArrayRow, rows: Sequence[ArrayRow]) -> Table:
    prices: dict[str, Column] = {
        "price": lambda row: row.price,
        "per GB": lambda row: row.price_per_gb,
        "per 1000 IOPS": lambda row: row.price_per_kiops,
    }
    return table(
        "Space, price and safety",
        [alone, *rows],
        {
            "array": _name,
            "usable [GB]": lambda row: row.usable_bytes / 1e9,
            "of the space [%]": lambda row: 100 * row.space,
            **({} if alone.price is None else prices),
            "tolerates failure of": lambda row: "-" if row.shape is None else row.shape.survives,
        },
    )


def _short(shape: ArrayShape, chunks: bool) -> str:
    """A name for the axis of a chart, with the chunk where there are several."""
    chunk = f" {shape.chunk >> 10}k" if chunks and shape.level in STRIPED else ""
    level = shape.level if shape.level == "linear" else f"R{shape.level}"
    return f"{level} x {shape.count}{chunk}"


def _figures(alone: ArrayRow, rows: Sequence[ArrayRow]) -> list[Figure]:
    arrays = [(row.shape, row.did) for row in rows if row.shape is not None]
    chunks = len({shape.chunk for shape, _ in arrays}) > 1
    names = [ONE, *(_short(shape, chunks) for shape, _ in arrays)]
    every = [alone, *rows]
    rates = [row.did.iops for row in every]
    figure = by_name("Rate", "IOPS", names, {"simulated": rates}, wide=True)
    ideal = [alone.did.iops * row.count for row in every]
    rings = Curve("N times one drive", figure.curves[0].x, ideal, "published")
    deep = {
        f"p{percent:g}": [row.did.percentile_ns(percent) for row in every] for percent in PERCENTS
    }
    # What too few I/Os carry is not drawn as nothing.
    tails = {name: [one / 1e6 for one in of if one is not None] for name, of in deep.items()}
    tails = {name: of for name, of in tails.items() if len(of) == len(every)}
    charts = [
        replace(figure, curves=[*figure.curves, rings]),
        by_name("Latency", "ms", names, tails, wide=True),
    ]
    if len({shape.count for shape, _ in arrays}) > 1:
        curves: dict[str, list[tuple[int, float]]] = {}
        for shape, did in arrays:
            label = shape.name.replace(f" of {shape.count}", "")
            curves.setdefault(label, [(1, alone.did.iops)]).append((shape.count, did.iops))
        lines = [
            Curve(label, [float(x) for x, _ in points], [y for _, y in points], "points", colour)
            for colour, (label, points) in enumerate(curves.items())
        ]
        title = "Rate against the number of drives"
        charts.append(Figure(title, "drives", "IOPS", lines, wide=True))
    return charts
