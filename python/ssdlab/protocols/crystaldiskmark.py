"""CrystalDiskMark's tests: the best of several runs, in MB/s, on data that shrinks or does not."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ssdlab import units
from ssdlab.answer import Cell, Figure, Number, Section, Table, columns
from ssdlab.engine.answers import CellGrid, best, charts, grid, number
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import MIB, ProtocolParameter, Setup
from ssdlab.engine.steps import Idle, Step

MEASURE_S = PAUSE_S = 5.0
"""Its defaults: five seconds of measurement, five of rest."""
DATA = {"random": (None, "random data"), "zeros": (100, "zeros")}
"""Its two kinds of test data: names in keys, percent by which they shrink, words."""
RANGE = 1.15
"""Speeds on the two kinds of data that differ by less than this factor are the same."""


@dataclass(frozen=True)
class Test:
    """A line of its window."""

    name: str
    rw: str
    bs: str
    depth: int
    threads: int


PROFILES = {
    "default": (
        Test("SEQ1M Q8T1", "", "1m", 8, 1),
        Test("SEQ1M Q1T1", "", "1m", 1, 1),
        Test("RND4K Q32T1", "rand", "4k", 32, 1),
        Test("RND4K Q1T1", "rand", "4k", 1, 1),
    ),
    "nvme": (
        Test("SEQ1M Q8T1", "", "1m", 8, 1),
        Test("SEQ128K Q32T1", "", "128k", 32, 1),
        Test("RND4K Q32T16", "rand", "4k", 32, 16),
        Test("RND4K Q1T1", "rand", "4k", 1, 1),
    ),
}
WAYS = ("read", "write")


def kinds(setup: Setup) -> list[str]:
    """The kinds of data that are asked for."""
    asked = setup.text("data")
    return list(DATA) if asked == "both" else [asked]


def plan(setup: Setup) -> list[Step]:
    """For each kind of data: lay the test area out, then all reads, then all writes."""
    steps: list[Step] = []
    region = (0, setup.area(setup.count("size_mib") * MIB))
    for kind in kinds(setup):
        shrinks, title = DATA[kind]
        steps.append(
            setup.job(
                f"layout-{kind}",
                f"lay the test area out with {title}",
                "write",
                "1m",
                depth=8,
                region=region,
                compressible=shrinks,
                measured=False,
            )
        )
        for way in WAYS:
            for test in PROFILES[setup.text("profile")]:
                for turn in range(1, setup.count("runs") + 1):
                    key = _key(kind, way, test, turn)
                    steps.append(Idle(f"pause/{key}", "pause", seconds=setup.seconds(PAUSE_S)))
                    steps.append(
                        setup.job(
                            key,
                            f"{test.name} {way}, {title}",
                            f"{test.rw}{way}",
                            test.bs,
                            depth=test.depth,
                            threads=test.threads,
                            seconds=MEASURE_S,
                            region=region,
                            compressible=shrinks,
                        )
                    )
    return steps


def _key(kind: str, way: str, test: Test, turn: int) -> str:
    return f"{kind}/{way}-{test.name.replace(' ', '-')}-{turn}"


def judge(records: Records, setup: Setup) -> Section:
    """The window of the program: the best of the runs, MB/s."""
    tests, asked = PROFILES[setup.text("profile")], kinds(setup)
    shown = [(kind, way) for kind in asked for way in WAYS]

    columns_ = {(kind, way): f"{way}, {DATA[kind][1]}" for kind, way in shown}

    def best_of(what: str, choose: Callable[..., float] = max) -> CellGrid:
        runs = range(1, setup.count("runs") + 1)

        def cell(test: Test, at: tuple[str, str]) -> Cell:
            kind, way = at
            return best((records.cell(what, _key(kind, way, test, n), way) for n in runs), choose)

        return grid({test: test.name for test in tests}, columns_, cell)

    speed, rates, waits = best_of("mbps"), best_of("iops"), best_of("mean", min)
    tables = [
        speed.table(f"Best of {setup.count('runs')}, MB/s", "test", "MB/s"),
        Table(
            "The same runs: operations and latency",
            columns("test | IOPS [IOPS] | mean latency [us]"),
            [
                (f"{test.name}, {columns_[at]}", rate, waits[test, at])
                for (test, at), rate in rates.cells.items()
            ],
        ),
    ]
    names = {kind: DATA[kind][1] for kind in asked}
    return Section(
        _said(tests, asked, {at: cell.value for at, cell in speed.cells.items()}),
        speed_numbers(speed),
        tables,
        speed_figures(speed, names),
    )


def speed_numbers(speed: CellGrid) -> list[Number]:
    """The speeds of tests (rows) on data and in directions (columns) as numbers."""
    return [
        number(f"{speed.rows[test]} {speed.columns[at]}", cell, "MB/s", "higher")
        for (test, at), cell in speed.cells.items()
    ]


def speed_figures(speed: CellGrid, kinds: Mapping[str, str]) -> list[Figure]:
    """The speeds of tests, reads and writes apart; ``kinds`` of data by their words."""
    return charts(
        *(
            replace(speed, columns={(kind, way): word for kind, word in kinds.items()}).figure(
                f"{way.capitalize()}, MB/s", "test", "MB/s", style="bars", group="Speed by test"
            )
            for way in WAYS
        )
    )


def _said(
    tests: tuple[Test, ...],
    asked: list[str],
    speed: Mapping[tuple[Test, tuple[str, str]], float | None],
) -> list[str]:
    said = []
    for kind in asked:
        top, small = tests[0], tests[-1]
        if all(speed[top, (kind, way)] is None for way in WAYS):
            continue
        big, little = (
            [units.speed(speed[test, (kind, way)]) for way in WAYS] for test in (top, small)
        )
        said.append(
            f"On {DATA[kind][1]} the drive reads large files at {big[0]} and writes them at "
            f"{big[1]}; single small pieces at {little[0]} and {little[1]}."
        )
    gains = compressible_gains(
        {
            test.name: (
                speed.get((test, ("random", "write"))),
                speed.get((test, ("zeros", "write"))),
            )
            for test in tests
        }
    )
    return (said or ["No test has been measured yet."]) + gains


def compressible_gains(pairs: Mapping[str, Sequence[float | None]]) -> list[str]:
    """What data that shrinks gains over data that does not; nothing where one is missing.

    ``pairs`` are the speeds of the writing tests on random data and on zeros. The median of their
    ratios decides: one of them alone may be off because the drive's state has moved on.
    """
    gains = [zeros / random for random, zeros in pairs.values() if random and zeros]
    if not gains:
        return []
    gain = statistics.median(gains)
    if gain < RANGE:
        return ["Data that shrinks is written no faster than data that does not."]
    return [
        f"The drive compresses: data that shrinks is written {gain:.1f} times as fast. "
        "Real files lie between the two figures."
    ]


PROTOCOLS = procedure(
    "preset",
    "crystaldiskmark",
    "CrystalDiskMark",
    "the eight numbers of its window, on random data and on zeros",
    "CrystalDiskMark 8: its default and NVMe profiles, five runs of 1 GiB",
    plan,
    judge,
    ProtocolParameter("profile", "default", "set of tests", tuple(PROFILES)),
    ProtocolParameter("data", "both", "data of the test area", ("random", "zeros", "both")),
    ProtocolParameter("runs", 5, "runs of each test, of which the best counts", least=1),
    ProtocolParameter("size_mib", 1024, "MiB of the test area"),
    quick_divisor=5.0,
    own_data=True,
)
