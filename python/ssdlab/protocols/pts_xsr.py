"""PTS Cross Stimulus Recovery test: large sequential writes, small random ones, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ssdlab.answer import Cell, Figure, Number, Section, Table, table
from ssdlab.engine.answers import figure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, MIB, ProtocolParameter, Setup
from ssdlab.engine.steps import Job, Purge, Step, Then
from ssdlab.protocols import pts_common as pts
from ssdlab.units import duration

PIECE_S = 1800.0
"""A phase is cut into pieces of about this length, so that a stopped run repeats little."""
QUICK = 8
"""Groups and records are scaled down by this in a quick run."""
RECOVERED = 0.95
"""Recovered is who reaches this share of the first group's mean. Ours."""


@dataclass(frozen=True)
class Phase:
    """One of the three access groups."""

    name: str
    title: str
    hours: str
    """The parameter that says how long it is."""
    size: int
    sequential: bool


PHASES = (
    Phase("first", "SEQ 1024 KiB writes", "sequential_hours", MIB, True),
    Phase("random", "RND 8 KiB writes", "random_hours", 8 * KIB, False),
    Phase("again", "SEQ 1024 KiB writes again", "sequential_hours", MIB, True),
)


@dataclass(frozen=True)
class PhaseRecords:
    """What was measured of a phase: a record for each minute."""

    phase: Phase
    keys: tuple[str, ...]
    minute: list[float]
    """When each record ended, since the start of the test."""
    mbps: list[float]
    mean_us: list[float]
    max_us: list[float]
    begin: float
    """When the phase began, minutes."""

    def rate(self) -> float:
        """Mean of the records, MB/s."""
        return sum(self.mbps) / len(self.mbps)

    def mean_response(self) -> float:
        """Of its I/Os, us: they are of one size, so that a record has as many as it has MB/s."""
        return float(np.average(self.mean_us, weights=self.mbps))


def plan(setup: Setup) -> list[Step]:
    """Purge and the three groups; nothing in between, not even preconditioning."""
    steps: list[Step] = [Purge()]
    for phase in PHASES:
        if phase.sequential:
            steps.append(_after(setup, phase, 0, 0, 0.0))
        else:
            steps += _random(setup, phase)
    return steps


def _whole_s(setup: Setup, phase: Phase) -> float:
    """How long a phase is at full size."""
    return 3600 * setup.number(phase.hours) / (QUICK if setup.quick else 1)


def _record_s(setup: Setup) -> float:
    """How long a record is here."""
    return setup.seconds(setup.number("seconds") / (QUICK if setup.quick else 1))


def key_of(phase: Phase, number: int) -> str:
    """The key of a piece of a phase, from 1."""
    return f"{phase.name}{number:03d}"


def _job(setup: Setup, phase: Phase, key: str, **bound: Any) -> Job:
    rw = "write" if phase.sequential else "randwrite"
    return setup.job(key, phase.title, rw, phase.size, depth=pts.depth_of(setup), **bound)


def _random(setup: Setup, phase: Phase) -> list[Job]:
    whole = _whole_s(setup, phase)
    count = max(1, math.ceil(whole / PIECE_S))
    return [
        _job(setup, phase, key_of(phase, number), seconds=whole / count)
        for number in range(1, count + 1)
    ]


def _after(setup: Setup, phase: Phase, done: int, passes: int, before: float) -> Then:
    """What follows ``done`` pieces; all but the last took ``before`` seconds, the last consists of
    so many ``passes``. Every piece writes the range from its start to its end: pieces of a fixed
    length would all write the start alone."""
    return Then(
        f"{phase.name}-after{done:03d}",
        lambda records: _next(records, setup, phase, done, passes, before),
        (_expected(setup, phase, before + (setup.seconds(PIECE_S) if done else 0)),),
    )


def _next(
    records: Records, setup: Setup, phase: Phase, done: int, passes: int, before: float
) -> Sequence[Step]:
    whole, spent, again = setup.seconds(_whole_s(setup, phase)), before, 1
    if done:
        key = key_of(phase, done)
        if key not in records:
            return []
        took = records.runtime_s(key)
        if took <= 0:
            return []
        spent += took
        again = max(1, math.floor(setup.seconds(PIECE_S) * passes / took))
    left = whole - spent
    # What would be less than a record is no piece.
    if left < _record_s(setup) / 2:
        return []
    job = _job(
        setup,
        phase,
        key_of(phase, done + 1),
        amount=again * (setup.active // phase.size * phase.size),
        options={"runtime": f"{round(1000 * left)}ms"},
    )
    return [job, _after(setup, phase, done + 1, again, spent)]


def _expected(setup: Setup, phase: Phase, spent: float) -> Job:
    """What is left of it after ``spent`` seconds, for the estimate."""
    job = _job(setup, phase, f"{phase.name}-expected", seconds=_whole_s(setup, phase))
    return replace(job, seconds=max(0.0, setup.seconds(_whole_s(setup, phase)) - spent))


def judge(records: Records, setup: Setup) -> Section:
    """Throughput and response times through the three groups, and how long they take to recover."""
    width = _record_s(setup)
    groups: list[PhaseRecords] = []
    begin = 0.0
    for phase in PHASES:
        group, begin = _group(records, phase, begin, width)
        if group is None:
            break
        groups.append(group)
    hours = ", ".join(
        f"{phase.title} {setup.seconds(_whole_s(setup, phase)):g} s" for phase in PHASES
    )
    what = [("access groups", hours)]
    conditions = pts.conditions(setup, load=f"QD {pts.depth_of(setup)}, TC 1", what=what)
    if not groups:
        return Section(["Nothing has been measured."], tables=[conditions])
    minutes = recovery(groups[0], groups[2]) if len(groups) == len(PHASES) else None
    return Section(
        _said(groups, minutes),
        _numbers(groups, minutes),
        [_table(groups), conditions],
        _figures(groups),
    )


def _group(
    records: Records, phase: Phase, begin: float, width: float
) -> tuple[PhaseRecords | None, float]:
    """The records of a phase that began at ``begin`` seconds, and when it ended."""
    keys: list[str] = []
    frames: list[pl.DataFrame] = []
    now = begin
    while (key := key_of(phase, len(keys) + 1)) in records:
        keys.append(key)
        rows = (
            records[key]
            .series(ddir="write")
            .select(
                pl.col("time_s") + (now - begin),
                pl.col("ios").cast(pl.Float64),
                pl.col("bytes").cast(pl.Float64),
                pl.col("lat_mean_ns").cast(pl.Float64),
                pl.col("lat_max_ns").cast(pl.Float64),
            )
        )
        frames.append(rows)
        now += records.runtime_s(key)
    rows = pl.concat(frames).filter(pl.col("ios") > 0) if frames else pl.DataFrame()
    if rows.is_empty():
        return None, now
    # Never narrower than the rows of the series, or records would be empty between full ones.
    interval = float(records.ssdlab(keys[0]).get("interval_ms", 1000)) / 1000
    ios = pl.col("ios")
    frame = (
        # A row belongs to the record in which it ends; a little early, for rounding.
        rows.with_columns(at=(pl.col("time_s") / max(width, interval) - 0.01).floor())
        .group_by("at")
        .agg(
            pl.col("bytes").sum(),
            ((pl.col("lat_mean_ns") * ios).sum() / ios.sum()).alias("mean"),
            pl.col("lat_max_ns").max(),
            pl.col("time_s").max().alias("end"),
        )
        .sort("at")
        .with_columns(length=pl.col("end").diff().fill_null(pl.col("end")))
    )
    group = PhaseRecords(
        phase,
        tuple(keys),
        ((begin + frame["end"]) / 60).to_list(),
        (frame["bytes"] / frame["length"] / 1e6).to_list(),
        (frame["mean"] / 1e3).to_list(),
        (frame["lat_max_ns"] / 1e3).to_list(),
        begin / 60,
    )
    return group, now


def recovery(first: PhaseRecords, again: PhaseRecords) -> float | None:
    """Minutes until the third group reaches the first one's mean throughput; None if never."""
    wanted = RECOVERED * first.rate()
    for minute, rate in zip(again.minute, again.mbps, strict=True):
        if rate >= wanted:
            return minute - again.begin
    return None


def _said(groups: list[PhaseRecords], minutes: float | None) -> list[str]:
    said = [
        "Mean throughput: "
        + "; ".join(f"{group.phase.title} {group.rate():,.0f} MB/s" for group in groups)
        + "."
    ]
    if len(groups) < len(PHASES):
        return [*said, "The test is not at its end."]
    if minutes is None:
        return [*said, "After the random writes it does not return to its first throughput."]
    return [
        *said,
        f"After the random writes it takes {duration(60 * minutes)} to return to its first "
        f"throughput (to {100 * RECOVERED:.0f} % of the first group's mean).",
    ]


def _numbers(groups: list[PhaseRecords], minutes: float | None) -> list[Number]:
    numbers = []
    for group in groups:
        title, keys = group.phase.title, group.keys
        numbers += [
            Number(f"throughput, {title}", group.rate(), "MB/s", "higher", keys),
            Number(f"max response, {title}", max(group.max_us), "us", "lower", keys),
        ]
    keys = tuple(key for group in groups for key in group.keys)
    return [*numbers, Number("recovery", minutes, "min", "lower", keys)]


def _table(groups: list[PhaseRecords]) -> Table:
    def of(value: Callable[[PhaseRecords], float]) -> Callable[[PhaseRecords], Cell]:
        return lambda group: Cell(value(group), group.keys)

    return table(
        "Cross stimulus recovery",
        groups,
        {
            "access group": lambda group: group.phase.title,
            "mean [MB/s]": of(PhaseRecords.rate),
            "first record [MB/s]": of(lambda group: group.mbps[0]),
            "last record [MB/s]": of(lambda group: group.mbps[-1]),
            "lowest [MB/s]": of(lambda group: min(group.mbps)),
            "highest [MB/s]": of(lambda group: max(group.mbps)),
            "mean response [us]": of(PhaseRecords.mean_response),
            "max response [us]": of(lambda group: max(group.max_us)),
        },
    )


def _figures(groups: list[PhaseRecords]) -> list[Figure]:
    return [
        figure(
            title,
            "time, min",
            unit,
            {
                group.phase.title: [
                    (minute, scale * one)
                    for minute, one in zip(group.minute, getattr(group, field), strict=True)
                ]
                for group in groups
            },
            style="line",
            log_y=unit == "ms",
            from_steps=[key for group in groups for key in group.keys],
        )
        for title, unit, field, scale in (
            ("Throughput over time", "MB/s", "mbps", 1.0),
            ("Mean response time", "ms", "mean_us", 1e-3),
            ("Max response time of each record", "ms", "max_us", 1e-3),
        )
    ]


PROTOCOLS = pts.protocol(
    "pts-xsr",
    "Cross Stimulus Recovery",
    "how a drive comes from large sequential to small random writes and back",
    plan,
    judge,
    (
        *pts.parameters(depth=32, threads=None, rounds=None, fill=None),
        ProtocolParameter("sequential_hours", 8.0, "length of each of the two sequential groups"),
        ProtocolParameter("random_hours", 6.0, "length of the random group"),
    ),
)
