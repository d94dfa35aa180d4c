"""PTS Latency test: one I/O at a time, three mixes by three block sizes, to steady state; then a
histogram of response times."""

from __future__ import annotations

from ssdlab.answer import Cell, Column, Curve, Figure, Number, Section, Table
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, Parameter, Setup
from ssdlab.engine.steps import Job, Rounds, Step, Tracked, in_round
from ssdlab.protocols import pts_common as pts

KEY = "latency"
HISTOGRAM = "histogram"
MIXES = (100, 65, 0)
SIZES = (8 * KIB, 4 * KIB, 512)
AGREED = 4 * KIB
"""Writes of this size decide about steady state and make the histogram."""

Cells = dict[tuple[int, int], Cell | None]


def name_of(read_percent: int, size: int) -> str:
    """The part of a key that names a mix and a size."""
    return f"lat-r{read_percent}-b{pts.block_name(size)}"


def plan(setup: Setup) -> list[Step]:
    """Purge, two sequential fills, rounds of nine measurements, 20 minutes for the histogram."""
    tracked = Tracked(
        f"mean latency, RND {pts.block_text(AGREED)}, {pts.mix_text(0)}",
        "us",
        lambda records, number: records.mean_us(in_round(number, name_of(0, AGREED))) or 0.0,
    )

    def jobs(number: int) -> list[Job]:
        seconds = setup.number("seconds")
        return [
            _job(setup, in_round(number, name_of(mix, size)), size, mix, seconds)
            for mix in MIXES
            for size in pts.sizes(setup, SIZES)
        ]

    return [
        *pts.precondition(setup),
        Rounds(KEY, "latency by mix and block size", jobs, (tracked,), most=pts.rounds(setup)),
        _job(setup, HISTOGRAM, AGREED, 0, 60 * setup.number("histogram_minutes")),
    ]


def _job(setup: Setup, key: str, size: int, mix: int, seconds: float) -> Job:
    return pts.mix_job(setup, key, size, mix, depth=1, threads=1, seconds=seconds)


def judge(records: Records, setup: Setup) -> Section:
    """Mean, longest and high percentiles of the latency, and the histogram."""
    sizes = pts.sizes(setup, SIZES)
    points = [(mix, size) for mix in MIXES for size in sizes]
    means: Cells = {
        (m, s): pts.window_cell(records, KEY, name_of(m, s), records.mean_us) for m, s in points
    }
    longest: Cells = {
        (m, s): pts.window_max(records, KEY, name_of(m, s), records.max_us) for m, s in points
    }
    tables = [
        _grid("Mean latency, means of the measurement window", means, sizes),
        _grid("Max latency of the measurement window", longest, sizes),
        _percentiles(records, points),
        _histogram_table(records),
        pts.conditions(setup, load="QD 1, TC 1", what=[("histogram", _histogram_text(setup))]),
    ]
    return Section(
        [*_said(means), *pts.doubts(records, KEY), *pts.left_out(setup, SIZES)],
        _numbers(records, means, longest),
        tables,
        [
            *_bars("Mean latency", means, sizes),
            *_bars("Max latency", longest, sizes),
            *_histogram(records),
        ],
    )


def _said(means: Cells) -> list[str]:
    read, write = (pts.value(means[mix, AGREED]) for mix in (100, 0))
    if read is None or write is None:
        return ["No round has been measured to its end."]
    return [
        f"One at a time and at random, a read of 4 KiB takes {read:,.0f} us on average "
        f"and a write {write:,.0f} us."
    ]


def _histogram_text(setup: Setup) -> str:
    return (
        f"RND 4 KiB, {pts.mix_text(0)}, {setup.seconds(60 * setup.number('histogram_minutes')):g} s"
    )


def _numbers(records: Records, means: Cells, longest: Cells) -> list[Number]:
    found = []
    for mix in MIXES:
        name = f"RND 4 KiB, {pts.mix_text(mix)}"
        found.append(pts.number(f"mean latency, {name}", means[mix, AGREED], "us", "lower"))
        found.append(pts.number(f"max latency, {name}", longest[mix, AGREED], "us", "lower"))
    if HISTOGRAM in records:
        for percent in (99.0, 99.9, 99.99):
            value = records.percentile_us(HISTOGRAM, percent)
            found.append(
                Number(f"p{percent:g} of RND 4 KiB writes", value, "us", "lower", (HISTOGRAM,))
            )
    return found


def _grid(title: str, cells: Cells, sizes: list[int]) -> Table:
    return Table(
        title,
        (Column("block"), *(Column(pts.mix_text(mix), "us") for mix in MIXES)),
        [(pts.block_text(size), *(cells[mix, size] for mix in MIXES)) for size in sizes],
    )


def _percentiles(records: Records, points: list[tuple[int, int]]) -> Table:
    rows = []
    for mix, size in points:
        keys = pts.keys_of(records, KEY, name_of(mix, size))
        cells = pts.percentile_cells(records, keys, pts.PERCENTILES)
        rows.append((pts.mix_text(mix), pts.block_text(size), *cells))
    return Table(
        "Response times of the measurement window",
        (Column("mix"), Column("block"), *_percent_columns()),
        rows,
        note="Percentiles of all I/Os of the rounds of the window together.",
    )


def _percent_columns() -> list[Column]:
    return [*(Column(f"{percent:g} %", "us") for percent in pts.PERCENTILES), Column("max", "us")]


def _histogram_table(records: Records) -> Table:
    keys = [HISTOGRAM] if HISTOGRAM in records else []
    mean = records.mean_us(HISTOGRAM) if keys else None
    row = (
        "RND 4 KiB, R/W 0/100",
        None if mean is None else Cell(mean, (HISTOGRAM,)),
        *pts.percentile_cells(records, keys, pts.PERCENTILES),
    )
    return Table(
        "Response times of the histogram",
        (Column("load"), Column("mean", "us"), *_percent_columns()),
        [row] if keys else [],
    )


def _bars(title: str, cells: Cells, sizes: list[int]) -> list[Figure]:
    rising = sizes[::-1]
    curves = []
    for place, mix in enumerate(MIXES):
        found = [(float(x), v) for x, s in enumerate(rising) if (v := pts.value(cells[mix, s]))]
        if found:
            x, y = zip(*found, strict=True)
            curves.append(Curve(pts.mix_text(mix), x, y, "bars", place))
    if not curves:
        return []
    return [
        Figure(
            title,
            "block, KiB",
            "us",
            curves,
            x_names=[f"{size / KIB:g}" for size in rising],
            group="Latency by block size and mix",
            sources=tuple(s for cell in cells.values() if cell for s in cell.sources),
        )
    ]


def _histogram(records: Records) -> list[Figure]:
    bins = records.latency(HISTOGRAM) if HISTOGRAM in records else None
    if bins is None:
        return []
    return [
        Figure(
            "Response times of RND 4 KiB writes",
            "response time, us",
            "I/Os",
            [pts.histogram_curve("writes", bins)],
            log_x=True,
            log_y=True,
            wide=True,
            sources=(HISTOGRAM,),
        )
    ]


PROTOCOLS = (
    Protocol(
        name="pts-latency",
        title="PTS Latency",
        summary="response times of single reads and writes in steady state, and their histogram",
        source=pts.SOURCE,
        group="pts",
        plan=plan,
        judge=judge,
        parameters=(
            *pts.parameters(depth=None, threads=None),
            Parameter("histogram_minutes", 20.0, "minutes of writes for the histogram"),
        ),
        active_share=pts.active_share,
    ),
)
