"""Synced writes: how long a small write takes until it is safe, one at a time."""

from __future__ import annotations

from ssdlab import units
from ssdlab.answer import Column, Curve, Figure, Section, Table
from ssdlab.engine import choices
from ssdlab.engine.answers import Demand, Rows, cell, charts, curve, number, places, verdict
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.readings import Floats, Readings
from ssdlab.engine.records import Records
from ssdlab.engine.setup import Parameter, Setup
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
            setup.job(
                f"{mode}-{choices.short(size)}",
                f"writes of {units.binary(size)} in order, each followed by {mode}",
                "write",
                choices.short(size),
                seconds=setup.number("seconds"),
                region=region,
                compressible=setup.count("compressible"),
                options={mode: 1},
            )
            for mode in MODES
            for size in choices.blocks(setup, "blocks")
        ),
    ]


def commit_us(found: Readings, key: str, percent: float, job: str | None = None) -> float | None:
    """An upper bound of the latency of write and flush together that ``percent`` of them keep, us.

    fio times the two apart. At most (100 - percent)/2 % of the writes and as many of the flushes
    are above their own percentiles, so at most 100 - percent % are above the sum of the two.
    """
    each = 100 - (100 - percent) / 2
    write = found.percentile_us(key, each, "write", job)
    flush = found.sync(key)
    flushed = None if flush is None else flush.percentile_us(each)
    return None if write is None or flushed is None else write + flushed


def judge(records: Records, setup: Setup) -> Section:
    """Commits a second and their latency; fit for the log of a database or not."""
    found = Readings(records)
    sizes = choices.blocks(setup, "blocks")
    rows: Rows = []
    numbers, curves = [], []
    for mode in MODES:
        for place, size in enumerate(sizes):
            key = f"{mode}-{choices.short(size)}"
            rate = found.iops(key, "write")
            flush = found.sync(key)
            p99, p999 = commit_us(found, key, 99.0), commit_us(found, key, 99.9)
            rows.append(
                [
                    f"{units.binary(size)}, {mode}",
                    cell(rate, key),
                    cell(None if not rate else 1e6 / rate, key),
                    cell(found.percentile_us(key, 99.0, "write"), key),
                    cell(None if flush is None else flush.percentile_us(50.0), key),
                    cell(None if flush is None else flush.percentile_us(99.0), key),
                    cell(p99, key),
                    cell(p999, key),
                    cell(None if flush is None else flush.max_ns / 1e3, key),
                ]
            )
            numbers.append(number(f"{units.binary(size)}, {mode}: p99", p99, "us", "lower", key))
            numbers.append(
                number(f"{units.binary(size)}, {mode}: commits", rate, "IOPS", "higher", key)
            )
            if flush is not None and mode == MODES[-1]:
                value, longer = flush.slower()
                curves.append(_longer(units.binary(size), value, longer, place))
    heads = [
        Column("write"),
        Column("commits", "IOPS"),
        Column("mean of both", "us"),
        Column("write p99", "us"),
        Column("flush median", "us"),
        Column("flush p99", "us"),
        Column("both p99, at most", "us"),
        Column("both p99.9, at most", "us"),
        Column("longest flush", "us"),
    ]
    judged = JUDGED if JUDGED in sizes else sizes[0]
    said, demands, code = verdict("a database log", _demands(found, judged))
    keys = tuple(f"{mode}-{choices.short(size)}" for mode in MODES for size in sizes)
    figures = charts(
        Figure(
            "Flushed writes, one at a time",
            "size of the write",
            "a second",
            [
                curve(
                    mode,
                    places(found.iops(f"{mode}-{choices.short(size)}") for size in sizes),
                    place,
                    "bars",
                )
                for place, mode in enumerate(MODES)
            ],
            x_names=[units.binary(size) for size in sizes],
            wide=True,
            sources=keys,
        ),
        Figure(
            "Flush (fdatasync) latency distribution (CCDF)",
            "time of a flush, us",
            "I/Os slower, %",
            curves,
            log_x=True,
            log_y=True,
            wide=True,
            sources=keys,
        ),
    )
    table = Table(
        "Small flushed writes, one at a time",
        heads,
        rows,
        note="fio times a write and the flush after it apart; for both together the table gives "
        "an upper bound.",
    )
    return Section(
        [*said, *_remark(found, judged)], numbers, [demands, table], figures, verdict=code
    )


def _longer(name: str, value_ns: Floats, longer: Floats, place: int) -> Curve:
    return curve(name, zip(value_ns / 1e3, 100 * longer, strict=True), place, "line")


def _demands(found: Readings, size: int) -> list[Demand]:
    key = f"fdatasync-{choices.short(size)}"
    name = units.binary(size)
    return [
        Demand(
            f"99 % of the writes of {name} are safe within",
            commit_us(found, key, 99.0),
            "us",
            GOOD_US,
            ENOUGH_US,
            "every transaction waits for its log record, and etcd counts a drive as fast enough "
            "below 10 ms",
            sources=(key,),
        ),
        Demand(
            f"flushed writes of {name}, one at a time:",
            found.iops(key, "write"),
            "IOPS",
            COMMITS_GOOD,
            COMMITS_ENOUGH,
            "a hard disk of 7200 turns a minute does one a turn, 120 a second",
            lower=False,
            sources=(key,),
        ),
        Demand(
            f"999 of 1000 writes of {name} are safe within",
            commit_us(found, key, 99.9),
            "us",
            10 * GOOD_US,
            10 * ENOUGH_US,
            "a stall of the log is a stall of everything that commits",
            sources=(key,),
        ),
    ]


def _remark(found: Readings, size: int) -> list[str]:
    flush = found.sync(f"fdatasync-{choices.short(size)}")
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


PROTOCOLS = (
    Protocol(
        name="fsync",
        title="Synced writes",
        summary="how long small writes take until they are safe: is the drive fit for a log?",
        source="the test of etcd's documentation, with the sizes of database pages",
        group="everyday",
        plan=plan,
        judge=judge,
        parameters=(
            Parameter("blocks", "4k,8k,16k", "sizes of the writes"),
            Parameter("seconds", 60.0, "time for each size and kind of flush"),
            Parameter("compressible", 0, "percent by which the data shrinks"),
        ),
    ),
)
