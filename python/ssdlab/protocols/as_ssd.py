"""AS SSD's tests: sequential, 4K, 4K-64Thrd and access time, with its score."""

from __future__ import annotations

from ssdlab import units
from ssdlab.answer import Cell, Column, Figure, Section, Table
from ssdlab.engine import choices
from ssdlab.engine.answers import Rows, cell, charts, curve, number, places
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.readings import Readings
from ssdlab.engine.records import Records
from ssdlab.engine.setup import MIB, Parameter, Setup
from ssdlab.engine.steps import Job, Step
from ssdlab.protocols.crystaldiskmark import compressible_gains

WAYS = ("read", "write")
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


def kinds(setup: Setup) -> list[str]:
    """The kinds of data that are asked for."""
    asked = setup.text("data")
    return list(DATA) if asked == "both" else [asked]


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
    whole = min(FILE, setup.active)
    shrinks, title = DATA[kind]
    label = f"{dict((*SPEEDS, ACCESS))[name]} {way}, {title} data"
    key, seconds = _key(kind, name, way), setup.number("seconds")
    if name == "seq":
        return setup.job(
            key, label, way, "16m", amount=whole, region=(0, whole), compressible=shrinks
        )
    if name == "4k":
        return setup.job(
            key, label, f"rand{way}", "4k", seconds=seconds, region=(0, whole), compressible=shrinks
        )
    if name == "4k-64":
        part = whole // THREADS
        return setup.job(
            key,
            label,
            f"rand{way}",
            "4k",
            threads=THREADS,
            seconds=seconds,
            region=(0, part),
            compressible=shrinks,
            options={"offset_increment": part},
        )
    # Reads go anywhere on the drive, writes of a sector into the test file.
    size = 4096 if way == "read" else max(512, setup.block)
    return setup.job(
        key,
        label,
        f"rand{way}",
        choices.short(size),
        seconds=seconds,
        region=None if way == "read" else (0, whole),
        compressible=shrinks,
    )


def judge(records: Records, setup: Setup) -> Section:
    """The window of the program, and its scores."""
    found = Readings(records)
    asked = kinds(setup)
    speed = {
        (kind, name, way): found.mbps(_key(kind, name, way), way)
        for kind in asked
        for name, _ in SPEEDS
        for way in WAYS
    }
    access = {
        (kind, way): found.mean_us(_key(kind, "acc", way), way) for kind in asked for way in WAYS
    }
    scores = {(kind, what): _score(speed, kind, what) for kind in asked for what in SCORES}
    columns = [(kind, way) for kind in asked for way in WAYS]
    rows: Rows = [
        [
            f"{title}, MB/s",
            *(cell(speed[kind, name, way], _key(kind, name, way)) for kind, way in columns),
        ]
        for name, title in SPEEDS
    ]
    rows.append(
        [
            "Acc.time, ms",
            *(
                cell(None if (us := access[at]) is None else us / 1e3, _key(at[0], "acc", at[1]))
                for at in columns
            ),
        ]
    )
    rows.append(["Score", *(_score_cell(scores, kind, way) for kind, way in columns)])
    heads = [Column("test"), *(Column(f"{way}, {DATA[kind][1]}") for kind, way in columns)]
    totals: Rows = [
        [DATA[kind][1], *(_score_cell(scores, kind, what) for what in SCORES)] for kind in asked
    ]
    numbers = [
        *(
            number(f"score, {DATA[kind][1]}", scores[kind, "total"], "", "higher", *_of(kind))
            for kind in asked
        ),
        *(
            number(
                f"{dict(SPEEDS)[name]} {way}, {DATA[kind][1]}",
                value,
                "MB/s",
                "higher",
                _key(kind, name, way),
            )
            for (kind, name, way), value in speed.items()
        ),
    ]
    figures = charts(
        *(
            Figure(
                f"{way.capitalize()}, MB/s",
                "test",
                "MB/s",
                [
                    curve(
                        DATA[kind][1],
                        places(speed[kind, name, way] for name, _ in SPEEDS),
                        place,
                        "bars",
                    )
                    for place, kind in enumerate(asked)
                ],
                x_names=[title for _, title in SPEEDS],
                group="Speed by test",
                sources=tuple(_key(kind, name, way) for kind in asked for name, _ in SPEEDS),
            )
            for way in WAYS
        )
    )
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
    return Section(_said(asked, speed, access, scores), numbers, tables, figures)


SCORES = ("read", "write", "total")
Speeds = dict[tuple[str, str, str], float | None]


def _of(kind: str) -> tuple[str, ...]:
    return tuple(_key(kind, name, way) for name, _ in SPEEDS for way in WAYS)


def _score(speed: Speeds, kind: str, what: str) -> float | None:
    """A score of AS SSD; None while a part of it is missing."""
    if what == "total":
        parts = [(speed[kind, name, way], weight) for (way, name), weight in WEIGHTS.items()]
    else:
        weights = {"seq": 0.1, "4k": 1.0, "4k-64": 1.0}
        parts = [(speed[kind, name, what], weight) for name, weight in weights.items()]
    known = [(value, weight) for value, weight in parts if value is not None]
    return sum(value * weight for value, weight in known) if len(known) == len(parts) else None


def _score_cell(scores: dict[tuple[str, str], float | None], kind: str, what: str) -> Cell:
    value = scores[kind, what]
    return cell(None if value is None else float(round(value)), *_of(kind))


def _said(
    asked: list[str],
    speed: Speeds,
    access: dict[tuple[str, str], float | None],
    scores: dict[tuple[str, str], float | None],
) -> list[str]:
    said = []
    for kind in asked:
        if all(speed[kind, name, way] is None for name, _ in SPEEDS for way in WAYS):
            continue
        total = scores[kind, "total"]
        head = "" if total is None else f"{total:.0f} points on {DATA[kind][1]} data: "
        said.append(
            f"{head}the drive reads sequentially at {units.speed(speed[kind, 'seq', 'read'])} and "
            f"writes at {units.speed(speed[kind, 'seq', 'write'])}; a lone small read takes "
            f"{units.microseconds(access[kind, 'read'])}, a lone write "
            f"{units.microseconds(access[kind, 'write'])}."
        )
    said = [units.sentence(one) for one in said] or ["No test has been measured yet."]
    pairs = {
        title: (speed.get(("random", name, "write")), speed.get(("zeros", name, "write")))
        for name, title in SPEEDS
    }
    return said + compressible_gains(pairs)


PROTOCOLS = (
    Protocol(
        name="as-ssd",
        title="AS SSD",
        summary="its eight numbers and its score, on incompressible and on compressible data",
        source="AS SSD Benchmark: 1 GB file, blocks of 16 MB and 4 KB, 64 threads, access time",
        group="preset",
        plan=plan,
        judge=judge,
        quick_divisor=5.0,
        parameters=(
            Parameter("data", "both", "data that is written", ("random", "zeros", "both")),
            Parameter("seconds", 15.0, "time of each test of small pieces"),
        ),
    ),
)
