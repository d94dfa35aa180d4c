"""PTS IOPS test: seven mixes by eight block sizes at random addresses, to steady state."""

from __future__ import annotations

from ssdlab.answer import Cell, Column, Curve, Figure, Number, Section, Table
from ssdlab.engine.protocol import Protocol
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
    return [*pts.precondition(setup), _rounds(setup)]


def _rounds(setup: Setup) -> Rounds:
    sizes = pts.sizes(setup, SIZES)

    def jobs(number: int) -> list[Job]:
        return [
            pts.mix_job(
                setup,
                in_round(number, name_of(mix, size)),
                size,
                mix,
                depth=pts.depth(setup),
                threads=pts.threads(setup),
                seconds=setup.number("seconds"),
            )
            for mix in MIXES
            for size in sizes
        ]

    tracked = [_tracked(mix, size) for mix, size in TRACKED if size in sizes]
    return Rounds(KEY, "IOPS by mix and block size", jobs, tracked, most=pts.rounds(setup))


def _tracked(mix: int, size: int) -> Tracked:
    name = name_of(mix, size)
    return Tracked(
        f"RND {pts.block_text(size)}, {pts.mix_text(mix)}",
        "IOPS",
        lambda records, number: records.iops(in_round(number, name)),
    )


def judge(records: Records, setup: Setup) -> Section:
    """IOPS of every point as mean of the measurement window."""
    sizes = pts.sizes(setup, SIZES)
    cells = {
        (mix, size): pts.window_cell(records, KEY, name_of(mix, size), records.iops)
        for mix in MIXES
        for size in sizes
    }
    sentences = [*_said(cells), *pts.doubts(records, KEY), *pts.left_out(setup, SIZES)]
    numbers = _numbers(cells)
    tables = [_means(cells, sizes), _tabular(records, sizes), pts.conditions(setup)]
    return Section(sentences, numbers, tables, _figures(cells, sizes))


Cells = dict[tuple[int, int], Cell | None]


def _said(cells: Cells) -> list[str]:
    read, write = (pts.value(cells.get((mix, 4 * KIB))) for mix in (100, 0))
    if read is None or write is None:
        return ["No round has been measured to its end."]
    return [f"At random, 4 KiB at a time, it reads {read:,.0f} and writes {write:,.0f} IOPS."]


def _numbers(cells: Cells) -> list[Number]:
    wanted = (
        (100, 4), (65, 4), (0, 4), (65, 8), (100, 64), (65, 64), (0, 64), (100, 1024), (0, 1024),
    )  # fmt: skip
    return [
        pts.number(
            f"RND {size} KiB, {pts.mix_text(mix)}", cells.get((mix, size * KIB)), "IOPS", "higher"
        )
        for mix, size in wanted
    ]


def _means(cells: Cells, sizes: list[int]) -> Table:
    return Table(
        "IOPS, means of the measurement window",
        (Column("block"), *(Column(pts.mix_text(mix), "IOPS") for mix in MIXES)),
        [(pts.block_text(s), *(cells[mix, s] for mix in MIXES)) for s in reversed(sizes)],
    )


def _tabular(records: Records, sizes: list[int]) -> Table:
    rounds = pts.rounds_of(records, KEY, name_of(0, 4 * KIB))
    columns = [Column("mix"), Column("block")]
    columns += [Column(f"round {n}", "IOPS") for n in rounds]

    def cell(key: str) -> Cell | None:
        return Cell(records.iops(key), (key,)) if key in records else None

    rows = [
        (
            pts.mix_text(mix),
            pts.block_text(size),
            *(cell(in_round(n, name_of(mix, size))) for n in rounds),
        )
        for mix in MIXES
        for size in reversed(sizes)
    ]
    return Table("IOPS of each round of the measurement window", columns, rows if rounds else [])


def _figures(cells: Cells, sizes: list[int]) -> list[Figure]:
    rising = sizes[::-1]
    curves = []
    for place, mix in enumerate(MIXES):
        # A logarithmic axis has no place for nothing.
        found = [(s / KIB, v) for s in rising if (v := pts.value(cells[mix, s]))]
        if found:
            x, y = zip(*found, strict=True)
            curves.append(Curve(pts.mix_text(mix), x, y, "points", place))
    if not curves:
        return []
    sources = tuple(dict.fromkeys(s for c in cells.values() if c for s in c.sources))
    flat = Figure(
        "IOPS by block size",
        "block, KiB",
        "IOPS",
        curves,
        log_x=True,
        log_y=True,
        wide=True,
        sources=sources,
    )
    places = [(x, y) for y in range(len(MIXES)) for x in range(len(rising))]
    surface = Figure(
        "IOPS by block size and mix",
        "block, KiB",
        "reads / writes, %",
        [
            Curve(
                "IOPS",
                [float(x) for x, _ in places],
                [float(y) for _, y in places],
                "heat",
                z=[pts.value(cells[MIXES[::-1][y], rising[x]]) for x, y in places],
            )
        ],
        x_names=[f"{size / KIB:g}" for size in rising],
        y_names=[f"{mix}/{100 - mix}" for mix in MIXES[::-1]],
        wide=True,
        sources=sources,
        note="Colours follow the logarithm of the IOPS.",
    )
    return [flat, surface]


PROTOCOLS = (
    Protocol(
        name="pts-iops",
        title="PTS IOPS",
        summary="IOPS in steady state for seven mixes of reads and writes and eight block sizes",
        source=pts.SOURCE,
        group="pts",
        plan=plan,
        judge=judge,
        parameters=pts.parameters(),
        active_share=pts.active_share,
    ),
)
