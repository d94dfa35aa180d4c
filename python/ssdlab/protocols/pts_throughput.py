"""PTS Throughput test: sequential reads and writes of 1024 and 128 KiB, each on a purged drive."""

from __future__ import annotations

from ssdlab.answer import Section, Table
from ssdlab.engine.answers import charts, grid, number
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
    title = f"SEQ {pts.block_text(size)}, {pts.mix_text(0)}"
    tracked = Tracked.of(title, "mbps", name_of(size, 0))

    def jobs(number: int) -> list[Job]:
        return [_job(setup, in_round(number, name_of(size, mix)), size, mix) for mix in MIXES]

    return Rounds(
        key_of(size), f"SEQ {pts.block_text(size)}", jobs, (tracked,), most=pts.rounds(setup)
    )


def _job(setup: Setup, key: str, size: int, mix: int) -> Job:
    threads = pts.threads_of(setup)
    share = setup.active // threads // size * size
    # Threads that began at the same place would write the same blocks one after another.
    apart: dict[str, str | int] = {"offset_increment": share, "size": share} if threads > 1 else {}
    return pts.mix_job(setup, key, size, mix, sequential=True, options=apart)


def judge(records: Records, setup: Setup) -> Section:
    """Throughput of both sizes and directions, means of their measurement windows."""
    mixes = {mix: pts.mix_text(mix) for mix in MIXES}
    cells = grid(
        {size: pts.block_text(size) for size in SIZES},
        mixes,
        lambda size, mix: pts.window_cell(records, key_of(size), name_of(size, mix), "mbps"),
    )
    read, write = (cells[SIZES[0], mix].value for mix in MIXES)
    said = ["No round has been measured to its end."]
    if read is not None and write is not None:
        said = [
            f"Sequential, 1024 KiB at a time: it reads {read:,.0f} and writes {write:,.0f} MB/s."
        ]
    numbers = [
        number(
            f"SEQ {pts.block_text(size)} {'read' if mix else 'write'}",
            cells[size, mix],
            "MB/s",
            "higher",
        )
        for size in SIZES
        for mix in MIXES
    ]
    rounds = [_rounds_table(records, size, mixes) for size in SIZES]
    means = cells.table("Throughput, means of the measurement windows", "block", "MB/s")
    bars = cells.figure("Throughput", "block", "MB/s", style="bars", wide=False)
    doubts = pts.doubts(records, *map(key_of, SIZES))
    return Section([*said, *doubts], numbers, [means, *rounds, pts.conditions(setup)], charts(bars))


def _rounds_table(records: Records, size: int, mixes: dict[int, str]) -> Table:
    measured = pts.rounds_of(records, key_of(size), name_of(size, 0))
    return grid(
        {n: str(n) for n in measured},
        mixes,
        lambda n, mix: records.cell("mbps", in_round(n, name_of(size, mix))),
    ).table(f"SEQ {pts.block_text(size)}: rounds of the measurement window", "round", "MB/s")


PROTOCOLS = pts.protocol(
    "pts-throughput",
    "Throughput",
    "sequential throughput in steady state with blocks of 1024 and 128 KiB",
    plan,
    judge,
    # Several threads in order are no sequential load to a drive: one, as the spec recommends.
    pts.parameters(threads=1),
)
