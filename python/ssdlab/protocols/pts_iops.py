"""PTS IOPS test: seven mixes by eight block sizes at random addresses, to steady state."""

from __future__ import annotations

from ssdlab.answer import Cell, Cells, Column, Figure, Number, Section, Table, Verdict, columns
from ssdlab.engine.answers import CellGrid, charts, grid, number
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, Setup
from ssdlab.engine.steps import Job, Rounds, Step, Tracked, in_round
from ssdlab.protocols import pts_common as pts

KEY = "iops"
MIXES = (100, 95, 65, 50, 35, 5, 0)
"""Percent of reads, in the order of a round."""
SIZES = tuple(int(size * KIB) for size in (1024, 128, 64, 32, 16, 8, 4, 0.5))
TRACKED = ((0, 4 * KIB), (65, 64 * KIB), (100, 1024 * KIB))
"""Mix and size of the three points that must be steady (2.0.x; 1.1 had the first alone)."""


def name_of(read_percent: int, size: int) -> str:
    """The part of a key that names a mix and a size."""
    return f"r{read_percent}-b{pts.block_name(size)}"


def plan(setup: Setup) -> list[Step]:
    """Purge, two sequential fills, rounds of 56 measurements."""
    sizes = pts.sizes(setup, SIZES)

    def jobs(number: int) -> list[Job]:
        return [
            pts.mix_job(setup, in_round(number, name_of(mix, size)), size, mix)
            for mix in MIXES
            for size in sizes
        ]

    tracked = [
        Tracked.of(f"RND {pts.block_text(size)}, {pts.mix_text(mix)}", "iops", name_of(mix, size))
        for mix, size in TRACKED
        if size in sizes
    ]
    title = "IOPS by mix and block size"
    rounds = Rounds(KEY, title, jobs, tracked, most=pts.rounds(setup))
    return [*pts.precondition(setup), rounds]


def judge(records: Records, setup: Setup) -> Section:
    """IOPS of every point as mean of the measurement window."""
    sizes = pts.sizes(setup, SIZES)
    cells = grid(
        {size: pts.block_text(size) for size in reversed(sizes)},
        {mix: pts.mix_text(mix) for mix in MIXES},
        lambda size, mix: pts.window_cell(records, KEY, name_of(mix, size), "iops"),
    )
    said, verdict = _said(cells, sizes)
    sentences = [said, *pts.doubts(records, KEY), *pts.left_out(setup, SIZES)]
    means = cells.table("IOPS, means of the measurement window", "block", "IOPS")
    tables = [means, _tabular(records, sizes), pts.conditions(setup)]
    return Section(sentences, _numbers(cells), tables, _figures(cells), verdict=verdict)


def _said(cells: CellGrid, sizes: list[int]) -> tuple[str, Verdict]:
    """Of reads and writes of 4 KiB, or of the smallest size where the target cannot do those."""
    size = 4 * KIB if 4 * KIB in sizes else min(sizes)
    read, write = (cells[size, mix].value for mix in (100, 0))
    if read is None or write is None:
        return "No round has been measured to its end.", Verdict("not-measured")
    said = (
        f"At random, {pts.block_text(size)} at a time, it reads {read:,.0f} and writes "
        f"{write:,.0f} IOPS."
    )
    return said, Verdict("measured", {"block": size, "read_iops": read, "write_iops": write})


def _numbers(cells: CellGrid) -> list[Number]:
    wanted = (
        (100, 4), (65, 4), (0, 4), (65, 8), (100, 64), (65, 64), (0, 64), (100, 1024), (0, 1024),
    )  # fmt: skip
    return [
        number(
            f"RND {size} KiB, {pts.mix_text(mix)}",
            cells.cells.get((size * KIB, mix), Cell(None)),
            "IOPS",
            "higher",
        )
        for mix, size in wanted
    ]


def _tabular(records: Records, sizes: list[int]) -> Table:
    rounds = pts.rounds_of(records, KEY, name_of(MIXES[-1], sizes[-1]))
    heads = [*columns("mix | block"), *(Column(f"round {n}", "IOPS") for n in rounds)]
    rows: list[Cells] = [
        [
            pts.mix_text(mix),
            pts.block_text(size),
            *(records.cell("iops", in_round(n, name_of(mix, size))) for n in rounds),
        ]
        for mix in MIXES
        for size in reversed(sizes)
    ]
    return Table("IOPS of each round of the measurement window", heads, rows if rounds else [])


def _figures(cells: CellGrid) -> list[Figure]:
    by_size = cells.figure(
        "IOPS by block size", "block, KiB", "IOPS", lambda size: size / KIB, log_x=True, log_y=True
    )
    if not charts(by_size):
        return []
    fields = grid(
        {mix: f"{mix}/{100 - mix}" for mix in reversed(MIXES)},
        {size: f"{size / KIB:g}" for size in cells.rows},
        lambda mix, size: cells[size, mix],
    )
    labels, note = ("block, KiB", "reads / writes, %"), "Colours follow the logarithm of the IOPS."
    return [*charts(by_size), fields.heat("IOPS by block size and mix", labels, "IOPS", note=note)]


PROTOCOLS = pts.protocol(
    "pts-iops",
    "IOPS",
    "IOPS in steady state for seven mixes of reads and writes and eight block sizes",
    plan,
    judge,
    pts.parameters(),
)
