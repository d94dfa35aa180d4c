"""PTS Latency test: one I/O at a time, three mixes by three block sizes, to steady state; then a
histogram of response times."""

from __future__ import annotations

from ssdlab.answer import Cell, Cells, Figure, Number, Section, Table, columns
from ssdlab.engine.answers import CellGrid, charts, grid, number
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, ProtocolParameter, Setup
from ssdlab.engine.steps import Job, Rounds, Step, Tracked, in_round
from ssdlab.protocols import pts_common as pts

KEY = "latency"
HISTOGRAM = "histogram"
MIXES = (100, 65, 0)
SIZES = (8 * KIB, 4 * KIB, 512)
AGREED = 4 * KIB
"""Writes of this size decide about steady state and make the histogram."""


def name_of(read_percent: int, size: int) -> str:
    """The part of a key that names a mix and a size."""
    return f"lat-r{read_percent}-b{pts.block_name(size)}"


def plan(setup: Setup) -> list[Step]:
    """Purge, two sequential fills, rounds of nine measurements, 20 minutes for the histogram."""
    title = f"mean latency, RND {pts.block_text(AGREED)}, {pts.mix_text(0)}"
    tracked = Tracked.of(title, "mean", name_of(0, AGREED))

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
    sizes = {size: pts.block_text(size) for size in reversed(pts.sizes(setup, SIZES))}
    mixes = {mix: pts.mix_text(mix) for mix in MIXES}

    def window(what: str) -> CellGrid:
        def cell(size: int, mix: int) -> Cell:
            return pts.window_cell(records, KEY, name_of(mix, size), what)

        return grid(sizes, mixes, cell)

    means, longest = window("mean"), window("max")
    length = setup.seconds(60 * setup.number("histogram_minutes"))
    histogram = f"RND 4 KiB, {pts.mix_text(0)}, {length:g} s"
    tables = [
        means.table("Mean latency, means of the measurement window", "block", "us"),
        longest.table("Max latency of the measurement window", "block", "us"),
        _percentiles(records, [(mix, size) for mix in MIXES for size in pts.sizes(setup, SIZES)]),
        _histogram_table(records),
        pts.conditions(setup, load="QD 1, TC 1", what=[("histogram", histogram)]),
    ]
    group = "Latency by block size and mix"
    bars = [
        of.figure(title, "block", "us", style="bars", group=group)
        for title, of in (("Mean latency", means), ("Max latency", longest))
    ]
    return Section(
        [*_said(means), *pts.doubts(records, KEY), *pts.left_out(setup, SIZES)],
        _numbers(records, means, longest),
        tables,
        [*charts(*bars), *_histogram(records)],
    )


def _said(means: CellGrid) -> list[str]:
    read, write = (means[AGREED, mix].value for mix in (100, 0))
    if read is None or write is None:
        return ["No round has been measured to its end."]
    return [
        f"One at a time and at random, a read of 4 KiB takes {read:,.0f} us on average "
        f"and a write {write:,.0f} us."
    ]


def _numbers(records: Records, means: CellGrid, longest: CellGrid) -> list[Number]:
    numbers = []
    for mix in MIXES:
        name = f"RND 4 KiB, {pts.mix_text(mix)}"
        numbers.append(number(f"mean latency, {name}", means[AGREED, mix], "us", "lower"))
        numbers.append(number(f"max latency, {name}", longest[AGREED, mix], "us", "lower"))
    if HISTOGRAM in records:
        numbers += [
            number(f"{what} of RND 4 KiB writes", records.cell(what, HISTOGRAM), "us", "lower")
            for what in ("p99", "p99.9", "p99.99")
        ]
    return numbers


def _percentiles(records: Records, points: list[tuple[int, int]]) -> Table:
    rows: list[Cells] = []
    for mix, size in points:
        keys = pts.keys_of(records, KEY, name_of(mix, size))
        cells = pts.percentile_cells(records, keys)
        rows.append([pts.mix_text(mix), pts.block_text(size), *cells])
    return Table(
        "Response times of the measurement window",
        [*columns("mix | block"), *pts.PERCENT_COLUMNS],
        rows,
        note="Percentiles of all I/Os of the rounds of the window together.",
    )


def _histogram_table(records: Records) -> Table:
    keys = [HISTOGRAM] if HISTOGRAM in records else []
    row: Cells = ["RND 4 KiB, R/W 0/100", records.cell("mean", HISTOGRAM)]
    row += pts.percentile_cells(records, keys)
    return Table(
        "Response times of the histogram",
        [*columns("load | mean [us]"), *pts.PERCENT_COLUMNS],
        [row] if keys else [],
    )


def _histogram(records: Records) -> list[Figure]:
    bins = records.latency(HISTOGRAM)
    title = "Response times of RND 4 KiB writes"
    return [] if bins is None else [pts.histogram_figure(title, {"writes": bins}, [HISTOGRAM])]


PROTOCOLS = pts.protocol(
    "pts-latency",
    "Latency",
    "response times of single reads and writes in steady state, and their histogram",
    plan,
    judge,
    (
        *pts.parameters(depth=None, threads=None),
        ProtocolParameter("histogram_minutes", 20.0, "minutes of writes for the histogram"),
    ),
)
