"""PTS Throughput test: sequential reads and writes of 1024 and 128 KiB, each on a purged drive."""

from __future__ import annotations

from ssdlab.answer import Cell, Column, Curve, Figure, Section, Table
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, Setup
from ssdlab.engine.steps import Job, Rounds, Step, Tracked, in_round
from ssdlab.protocols import pts_common as pts

SIZES = (1024 * KIB, 128 * KIB)
MIXES = (100, 0)
"""Percent of reads, in the order of a round."""


def key_of(size: int) -> str:
    """The loop of a block size."""
    return f"seq-{pts.block_name(size)}"


def name_of(size: int, read_percent: int) -> str:
    """The part of a key that names a block size and a mix."""
    return f"{key_of(size)}-{'read' if read_percent else 'write'}"


def plan(setup: Setup) -> list[Step]:
    """For each block size: purge, two sequential fills, rounds of a read and a write."""
    steps: list[Step] = []
    for size in SIZES:
        steps += pts.precondition(setup, f"-{pts.block_name(size)}")
        steps.append(_rounds(setup, size))
    return steps


def _rounds(setup: Setup, size: int) -> Rounds:
    written = name_of(size, 0)
    tracked = Tracked(
        f"SEQ {pts.block_text(size)}, {pts.mix_text(0)}",
        "MB/s",
        lambda records, number: records.mbps(in_round(number, written)),
    )

    def jobs(number: int) -> list[Job]:
        return [_job(setup, in_round(number, name_of(size, mix)), size, mix) for mix in MIXES]

    return Rounds(
        key_of(size), f"SEQ {pts.block_text(size)}", jobs, (tracked,), most=pts.rounds(setup)
    )


def _job(setup: Setup, key: str, size: int, mix: int) -> Job:
    threads = pts.threads(setup)
    share = setup.active // threads // size * size
    # Threads that began at the same place would write the same blocks one after another.
    apart: dict[str, str | int] = {"offset_increment": share, "size": share} if threads > 1 else {}
    return pts.mix_job(
        setup,
        key,
        size,
        mix,
        sequential=True,
        depth=pts.depth(setup),
        threads=threads,
        seconds=setup.number("seconds"),
        options=apart,
    )


def judge(records: Records, setup: Setup) -> Section:
    """Throughput of both sizes and directions, means of their measurement windows."""
    cells = {
        (size, mix): pts.window_cell(records, key_of(size), name_of(size, mix), records.mbps)
        for size in SIZES
        for mix in MIXES
    }
    read, write = (pts.value(cells[SIZES[0], mix]) for mix in MIXES)
    said = ["Nothing has been measured."]
    if read is not None and write is not None:
        said = [f"In order, 1024 KiB at a time, it reads {read:,.0f} and writes {write:,.0f} MB/s."]
    numbers = [
        pts.number(
            f"SEQ {pts.block_text(size)} {'read' if mix else 'write'}",
            cells[size, mix],
            "MB/s",
            "higher",
        )
        for size in SIZES
        for mix in MIXES
    ]
    means = Table(
        "Throughput, means of the measurement windows",
        (Column("block"), *(Column(pts.mix_text(mix), "MB/s") for mix in MIXES)),
        [(pts.block_text(size), *(cells[size, mix] for mix in MIXES)) for size in SIZES],
    )
    tables = [means, *(_tabular(records, size) for size in SIZES), pts.conditions(setup)]
    return Section(
        [*said, *pts.doubts(records, *map(key_of, SIZES))], numbers, tables, _figures(cells)
    )


def _tabular(records: Records, size: int) -> Table:
    def cell(number: int, mix: int) -> Cell | None:
        key = in_round(number, name_of(size, mix))
        return Cell(records.mbps(key), (key,)) if key in records else None

    rounds = pts.rounds_of(records, key_of(size), name_of(size, 0))
    return Table(
        f"SEQ {pts.block_text(size)}: rounds of the measurement window",
        (Column("round"), *(Column(pts.mix_text(mix), "MB/s") for mix in MIXES)),
        [(str(n), *(cell(n, mix) for mix in MIXES)) for n in rounds],
    )


def _figures(cells: dict[tuple[int, int], Cell | None]) -> list[Figure]:
    curves = []
    for place, mix in enumerate(MIXES):
        found = [(float(x), v) for x, s in enumerate(SIZES) if (v := pts.value(cells[s, mix]))]
        if found:
            x, y = zip(*found, strict=True)
            curves.append(Curve(pts.mix_text(mix), x, y, "bars", place))
    if not curves:
        return []
    return [
        Figure(
            "Throughput",
            "block, KiB",
            "MB/s",
            curves,
            x_names=[f"{size // KIB}" for size in SIZES],
            sources=tuple(s for cell in cells.values() if cell for s in cell.sources),
        )
    ]


PROTOCOLS = (
    Protocol(
        name="pts-throughput",
        title="PTS Throughput",
        summary="sequential throughput in steady state with blocks of 1024 and 128 KiB",
        source=pts.SOURCE,
        group="pts",
        plan=plan,
        judge=judge,
        # Several threads in order are no sequential load to a drive: one, as the spec recommends.
        parameters=pts.parameters(threads=1),
        active_share=pts.active_share,
    ),
)
