"""Synced writes: how long a small write takes until it is safe, one at a time."""

from __future__ import annotations

from ssdlab import units
from ssdlab.answer import Cell, Cells, Section, Table, columns
from ssdlab.engine.answers import Demand, charts, distribution, figure, number, ratio, verdict
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
JUDGED = 8192
"""Bytes of the write that the verdict is about: a page of a common database."""


def plan(setup: Setup) -> list[Step]:
    """Fill; then each size with each kind of flush after every write."""
    region = (0, min(LOG_BYTES, setup.active))
    return [
        setup.fill(),
        *(
            setup.timed(
                f"{mode}-{short(size)}",
                f"writes of {units.binary(size)} in order, each followed by {mode}",
                "write",
                short(size),
                region=region,
                options={mode: 1},
            )
            for mode in MODES
            for size in setup.blocks("blocks")
        ),
    ]


def commit_us(records: Records, key: str, percent: float, job: str | None = None) -> Cell:
    """An upper bound of the latency of write and flush together that ``percent`` of them keep, us.

    fio times the two apart. At most (100 - percent)/2 % of the writes and as many of the flushes
    are above their own percentiles, so at most 100 - percent % are above the sum of the two.
    """
    each = 100 - (100 - percent) / 2
    write = records.value(f"p{each}", key, "write", job)
    flush = records.sync(key)
    flushed = None if flush is None else flush.percentile_us(each)
    return Cell(None if write is None or flushed is None else write + flushed, (key,))


def judge(records: Records, setup: Setup) -> Section:
    """Commits a second and their latency; fit for the log of a database or not."""
    sizes = setup.blocks("blocks")
    rows: list[Cells] = []
    numbers = []
    for mode in MODES:
        for size in sizes:
            key, name = f"{mode}-{short(size)}", f"{units.binary(size)}, {mode}"
            rate = records.cell("iops", key, "write")
            p99, p999 = commit_us(records, key, 99.0), commit_us(records, key, 99.9)
            flush = records.sync(key)
            flushes = [None] * 3 if flush is None else [
                flush.percentile_us(50.0), flush.percentile_us(99.0), flush.max_ns / 1e3
            ]  # fmt: skip
            median, high, longest = (Cell(value, (key,)) for value in flushes)
            written = records.cell("p99", key, "write")
            both = ratio(Cell(1e6), rate)
            rows.append([name, rate, both, written, median, high, p99, p999, longest])
            numbers.append(number(f"{name}: p99", p99, "us", "lower"))
            numbers.append(number(f"{name}: commits", rate, "IOPS", "higher"))
    judged = JUDGED if JUDGED in sizes else sizes[0]
    said, demands, code = verdict("a database log", _demands(records, judged))
    rates = {mode: [records.cell("iops", f"{mode}-{short(s)}") for s in sizes] for mode in MODES}
    latest = {size: f"{MODES[-1]}-{short(size)}" for size in sizes}
    names = [units.binary(size) for size in sizes]
    figures = charts(
        figure(
            "Flushed writes, one at a time",
            "size of the write",
            "a second",
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
    return Section(said, numbers, [demands, table], figures, verdict=code)


def _demands(records: Records, size: int) -> list[Demand]:
    key = f"fdatasync-{short(size)}"
    name = units.binary(size)
    return [
        Demand(
            f"99 % of the writes of {name} are safe within",
            commit_us(records, key, 99.0),
            "us",
            GOOD_US,
            ENOUGH_US,
            "every transaction waits for its log record, and etcd counts a drive as fast enough "
            "below 10 ms",
        ),
        Demand(
            f"flushed writes of {name}, one at a time:",
            records.cell("iops", key, "write"),
            "IOPS",
            COMMITS_GOOD,
            COMMITS_ENOUGH,
            "a hard disk of 7200 turns a minute does one a turn, 120 a second",
        ),
        Demand(
            f"999 of 1000 writes of {name} are safe within",
            commit_us(records, key, 99.9),
            "us",
            10 * GOOD_US,
            10 * ENOUGH_US,
            "a stall of the log is a stall of everything that commits",
        ),
    ]


def _remark(records: Records, size: int) -> list[str]:
    flush = records.sync(f"fdatasync-{short(size)}")
    if flush is None:
        return []
    median = flush.percentile_us(50.0)
    if median is None or median >= 50.0:
        return []
    return [
        f"Half of the flushes take less than {units.microseconds(median)}: either the drive "
        "keeps its "
        "cache alive through a loss of power, or the flush does not reach the flash. Only the "
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
