"""AS SSD's tests: sequential, 4K, 4K-64Thrd and access time, with its score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ssdlab import units
from ssdlab.answer import Cell, Cells, Column, Section, Table
from ssdlab.engine.answers import CellGrid, grid, number, sources
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import MIB, ProtocolParameter, Setup, short
from ssdlab.engine.steps import Job, Step
from ssdlab.protocols.crystaldiskmark import (
    WAYS,
    compressible_gains,
    kinds,
    speed_figures,
    speed_numbers,
)

SPEEDS = (("seq", "Seq"), ("4k", "4K"), ("4k-64", "4K-64Thrd"))
ACCESS = ("acc", "Acc.time")
DATA = {"random": (None, "incompressible"), "zeros": (100, "compressible")}
THREADS = 64
FILE = 1024 * MIB
"""Its test file; one of 16 MiB for each of the 64 threads."""
WEIGHTS = {
    ("read", "seq"): 0.1,
    ("read", "4k"): 2.0,
    ("read", "4k-64"): 1.5,
    ("write", "seq"): 0.15,
    ("write", "4k"): 1.0,
    ("write", "4k-64"): 1.0,
}
"""Of the total score (Tom's Hardware 2952, page 6); read and write alone: 0.1 Seq + 4K + 4K-64Thrd,
all in MB/s."""


def plan(setup: Setup) -> list[Step]:
    """For each kind of data, as the program does: write the file and read it, then small pieces."""
    steps: list[Step] = []
    for kind in kinds(setup):
        steps += [_job(setup, kind, "seq", way) for way in ("write", "read")]
        steps += [_job(setup, kind, name, way) for name in ("4k", "4k-64") for way in WAYS]
        steps += [_job(setup, kind, "acc", way) for way in WAYS]
    return steps


def _key(kind: str, name: str, way: str) -> str:
    return f"{kind}/{name}-{way}"


def _job(setup: Setup, kind: str, name: str, way: str) -> Job:
    whole = setup.area(FILE)
    shrinks, title = DATA[kind]
    label = f"{dict((*SPEEDS, ACCESS))[name]} {way}, {title} data"
    size, region = "4k", (0, whole)
    more: dict[str, Any] = {}
    if name == "4k-64":
        region = (0, whole // THREADS)
        more = {"threads": THREADS, "options": {"offset_increment": region[1]}}
    elif name == "acc":
        # Reads go anywhere on the drive, writes of a sector into the test file.
        size = short(4096 if way == "read" else max(512, setup.block))
        region = (0, setup.active) if way == "read" else region
    bound = {"amount": whole} if name == "seq" else {"seconds": setup.number("seconds")}
    rw, size = (way, "16m") if name == "seq" else (f"rand{way}", size)
    more |= {"region": region, "compressible": shrinks or 0, **bound}
    return setup.job(_key(kind, name, way), label, rw, size, **more)


def judge(records: Records, setup: Setup) -> Section:
    """The window of the program, and its scores."""
    asked = kinds(setup)
    shown = {(kind, way): f"{way}, {DATA[kind][1]}" for kind in asked for way in WAYS}
    speed = grid(
        dict(SPEEDS),
        shown,
        lambda name, at: records.cell("mbps", _key(at[0], name, at[1]), at[1]),
    )
    access = {at: records.value("mean", _key(at[0], "acc", at[1]), at[1]) for at in shown}
    scores = {(kind, what): _score(speed, kind, what) for kind in asked for what in SCORES}
    times = (
        Cell(None if (us := access[kind, way]) is None else us / 1e3, (_key(kind, "acc", way),))
        for kind, way in shown
    )
    rows: list[Cells] = [
        [f"{title}, MB/s", *(speed[name, at] for at in shown)] for name, title in SPEEDS
    ]
    rows += [
        ["Acc.time, ms", *times],
        ["Score", *(_rounded(scores[at]) for at in shown)],
    ]
    heads = [Column("test"), *map(Column, shown.values())]
    totals: list[Cells] = [
        [DATA[kind][1], *(_rounded(scores[kind, w]) for w in SCORES)] for kind in asked
    ]
    names = {kind: DATA[kind][1] for kind in asked}
    numbers = [
        *(number(f"score, {names[kind]}", scores[kind, "total"], "", "higher") for kind in asked),
        *speed_numbers(speed),
    ]
    tables = [
        Table("As AS SSD shows it", heads, rows),
        Table(
            "Scores",
            [Column("data"), *(Column(what) for what in SCORES)],
            totals,
            note="Read and write: 0.1 Seq + 4K + 4K-64Thrd. Total: 0.1 Seq + 2 x 4K + 1.5 x "
            "4K-64Thrd of reading, 0.15 Seq + 4K + 4K-64Thrd of writing.",
        ),
    ]
    said = _said(asked, speed, access, scores)
    return Section(said, numbers, tables, speed_figures(speed, names))


SCORES = ("read", "write", "total")


def _score(speed: CellGrid, kind: str, what: str) -> Cell:
    """A score of AS SSD; nothing while a part of it is missing."""
    weights = {(what, name): weight for name, weight in (("seq", 0.1), ("4k", 1.0), ("4k-64", 1.0))}
    parts = [
        (speed[name, (kind, way)], weight)
        for (way, name), weight in (WEIGHTS if what == "total" else weights).items()
    ]
    known = [cell.value * weight for cell, weight in parts if cell.value is not None]
    value = sum(known) if len(known) == len(parts) else None
    return Cell(value, sources(cell for (_, (of, _)), cell in speed.cells.items() if of == kind))


def _rounded(score: Cell) -> Cell:
    return score if score.value is None else replace(score, value=float(round(score.value)))


def _said(
    asked: list[str],
    speed: CellGrid,
    access: dict[tuple[str, str], float | None],
    scores: dict[tuple[str, str], Cell],
) -> list[str]:
    said = []
    for kind in asked:
        if all(speed[name, (kind, way)].value is None for name, _ in SPEEDS for way in WAYS):
            continue
        total = scores[kind, "total"].value
        head = "" if total is None else f"{total:.0f} points on {DATA[kind][1]} data: "
        reads, writes = (units.speed(speed["seq", (kind, way)].value) for way in WAYS)
        said.append(
            f"{head}the drive reads sequentially at {reads} and writes at {writes}; a lone small "
            f"read takes {units.microseconds(access[kind, 'read'])}, a lone write "
            f"{units.microseconds(access[kind, 'write'])}."
        )
    said = [units.sentence(one) for one in said] or ["No test has been measured yet."]
    nothing = Cell(None)
    pairs = {
        title: tuple(speed.cells.get((name, (kind, "write")), nothing).value for kind in DATA)
        for name, title in SPEEDS
    }
    return said + compressible_gains(pairs)


PROTOCOLS = procedure(
    "preset",
    "as-ssd",
    "AS SSD",
    "its eight numbers and its score, on incompressible and on compressible data",
    "AS SSD Benchmark: 1 GB file, blocks of 16 MB and 4 KB, 64 threads, access time",
    plan,
    judge,
    ProtocolParameter("data", "both", "data that is written", ("random", "zeros", "both")),
    ProtocolParameter("seconds", 15.0, "time of each test of small pieces"),
    quick_divisor=5.0,
    own_data=True,
)
