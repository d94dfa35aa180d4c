"""Synced writes: how long a small write takes until it is safe, one at a time."""

from __future__ import annotations

import itertools

from ssdlab import units
from ssdlab.answer import Cell, Cells, Section, Table, columns
from ssdlab.engine.answers import (
    Demand,
    charts,
    demands,
    distribution,
    figure,
    number,
    ratio,
    verdict,
)
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup, short
from ssdlab.engine.steps import Step

MODES = ("fsync", "fdatasync")
LOG_BYTES = 1 << 30
"""A log is written over and over in a file of about this size."""
GOOD_US, ENOUGH_US = 1_000.0, 10_000.0
"""A power-protected cache takes less than the first; etcd asks for the second at most (its
documentation: p99 of wal_fsync_duration below 10 ms)."""
COMMITS_GOOD, COMMITS_ENOUGH = 2_000.0, 120.0
"""A disk of 7200 turns a minute commits once a turn: 120 times a second."""
TOLD = "iops, p99, flush p50, flush p99, commit p99, commit p99.9, flush max"
"""Quantities of the table, beside the mean of a write with its flush."""
JUDGED = 8192
"""Bytes of the write that the verdict is about: a page of a common database."""


def plan(setup: Setup) -> list[Step]:
    """Fill; then each size with each kind of flush after every write."""
    region = (0, setup.area(LOG_BYTES))
    return [
        setup.fill(),
        *(
            setup.timed(
                f"{mode}-{short(size)}",
                f"sequential writes of {units.binary(size)}, each followed by {mode}",
                "write",
                short(size),
                region=region,
                options={mode: 1},
            )
            for mode in MODES
            for size in setup.blocks()
        ),
    ]


def judge(records: Records, setup: Setup) -> Section:
    """Commits a second and their latency; fit for the log of a database or not."""
    sizes = setup.blocks()
    rows: list[Cells] = []
    numbers = []
    for mode, size in itertools.product(MODES, sizes):
        key, name = f"{mode}-{short(size)}", f"{units.binary(size)}, {mode}"
        told = {what: records.cell(what, key, "write") for what in TOLD.split(", ")}
        rate, *others = told.values()
        rows.append([name, rate, ratio(Cell(1e6), rate), *others])
        numbers.append(number(f"{name}: p99", told["commit p99"], "us", "lower"))
        numbers.append(number(f"{name}: commits", rate, "IOPS", "higher"))
    judged = JUDGED if JUDGED in sizes else sizes[0]
    said, wanted, code = verdict("a database log", _demands(records, judged))
    rates = {mode: [records.cell("iops", f"{mode}-{short(s)}") for s in sizes] for mode in MODES}
    latest = {size: f"{MODES[-1]}-{short(size)}" for size in sizes}
    names = [units.binary(size) for size in sizes]
    figures = charts(
        figure(
            "Flushed writes, one at a time",
            "size of the write",
            "commits, IOPS",
            rates,
            style="bars",
            x_names=names,
        ),
        distribution(
            "Flush (fdatasync) latency distribution (CCDF)",
            {units.binary(size): records.sync(key) for size, key in latest.items()},
            latest.values(),
            "time of a flush, us",
        ),
    )
    table = Table(
        "Small flushed writes, one at a time",
        columns(
            "write | commits [IOPS] | mean of both [us] | write p99 [us] | flush median [us] "
            "| flush p99 [us] | both p99, at most [us] | both p99.9, at most [us] "
            "| longest flush [us]"
        ),
        rows,
        note="fio times a write and the flush after it apart; for both together the table gives "
        "an upper bound.",
    )
    said += _remark(records, judged)
    return Section(said, numbers, [wanted, table], figures, verdict=code)


def _demands(records: Records, size: int) -> list[Demand]:
    key, name = f"fdatasync-{short(size)}", units.binary(size)
    asked = (
        (f"99 % of the writes of {name} are safe within", "commit p99", (key,), GOOD_US, ENOUGH_US,
         "every transaction waits for its log record, and etcd counts a drive as fast enough "
         "below 10 ms"),
        (f"flushed writes of {name}, one at a time:", "iops", (key, "write"),
         COMMITS_GOOD, COMMITS_ENOUGH,
         "a hard disk of 7200 turns a minute does one a turn, 120 a second"),
        (f"999 of 1000 writes of {name} are safe within", "commit p99.9", (key,),
         10 * GOOD_US, 10 * ENOUGH_US, "a stall of the log is a stall of everything that commits"),
    )  # fmt: skip
    return demands(records, asked)


def _remark(records: Records, size: int) -> list[str]:
    median = records.value("flush p50", f"fdatasync-{short(size)}")
    if median is None or median >= 50.0:
        return []
    return [
        f"Half of the flushes take less than {units.microseconds(median)}: either the drive keeps "
        "its cache alive through a loss of power, or the flush does not reach the flash. Only the "
        "first is safe; the datasheet says which."
    ]


PROTOCOLS = procedure(
    "everyday",
    "fsync",
    "Synced writes",
    "how long small writes take until they are safe: is the drive fit for a log?",
    "the test of etcd's documentation, with the sizes of database pages",
    plan,
    judge,
    ProtocolParameter("blocks", "4k,8k,16k", "sizes of the writes"),
    ProtocolParameter("seconds", 60.0, "time for each size and kind of flush"),
)
