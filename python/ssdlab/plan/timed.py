"""A load run in time: on a pool, on a fast device, on a pool behind a cache."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ssdlab.arrays.readings import Reading, read
from ssdlab.bench import LiveDrive, Seat
from ssdlab.jobfile import JobText
from ssdlab.plan.warmup import Ramp
from ssdlab.plan.workload import Load
from ssdlab.progress import ProgressCallback, stage, within
from ssdlab.results import Result

Counters = Mapping[str, int]
INTERVALS = 300
"""Of a pass, about."""
INTERVAL_MS = (10, 60_000)


@dataclass(frozen=True)
class Order:
    """What is run on every rig."""

    load: Load
    passes: int
    """At full speed, one after another; a job runs once."""
    seed: int
    interval_ms: int = 1000
    """Of the series at full speed."""


@dataclass(frozen=True)
class Pass:
    """One pass of the load."""

    reading: Reading
    mean_ns: Mapping[str, float]
    """Mean latency by direction."""
    ramp: Ramp
    before: Counters
    after: Counters

    def grown(self, name: str) -> int:
        """By how much a counter grew."""
        return self.after.get(name, 0) - self.before.get(name, 0)


@dataclass(frozen=True)
class Timed:
    """What a rig did."""

    capacity: int
    passes: Sequence[Pass]
    """At full speed."""
    recorded: Pass | None
    """At the times of the recording, after the others."""
    dirty_recorded: int
    """Most dirty bytes while the recording was followed."""

    @property
    def first(self) -> Pass:
        """The pass that began with an empty cache."""
        return self.passes[0]

    @property
    def last(self) -> Pass:
        """The warmest pass at full speed."""
        return self.passes[-1]

    @property
    def calm(self) -> Pass:
        """The pass that latencies are taken from: at recorded times, else the last."""
        return self.recorded or self.last


def run(rig: str, name: str, order: Order, seat: Seat, prepare: str = "fob") -> Timed:
    """Runs all passes on one device that lives through them.

    Raises InputError where the rig is wrong or the load does not fit on it, Interrupted.
    """
    load = order.load
    count = 1 if load.is_job else order.passes
    whole = count + (load.recorded is not None)
    drive, report = _fresh(rig, name, order, seat, prepare, stage(seat.report, 0, whole))
    found = [_pass(drive, load.full_speed, order, order.interval_ms, report)[0]]
    for i in range(1, count):
        report = stage(seat.report, i, whole)
        found.append(_pass(drive, load.full_speed, order, order.interval_ms, report)[0])
    calm, dirty = None, 0
    if load.recorded is not None:
        report = stage(seat.report, count, whole)
        if count == 1:
            # With nothing to warm it up, the recording too begins on a new device.
            drive, report = _fresh(rig, name, order, seat, prepare, report)
        calm, dirty = _pass(drive, load.recorded, order, interval(load.span_s), report)
    return Timed(drive.core.capacity_bytes, found, calm, dirty)


def interval(seconds: float) -> int:
    """Length of an interval (ms) for a pass of so many seconds."""
    least, most = INTERVAL_MS
    return min(most, max(least, round(seconds * 1000 / INTERVALS)))


def _fresh(
    rig: str, name: str, order: Order, seat: Seat, steps: str, report: ProgressCallback
) -> tuple[LiveDrive, ProgressCallback]:
    """A device that has been prepared, and what is left of the progress for its first pass."""
    drive = seat.drive(rig, name, order.seed)
    if steps == "fob":
        return drive, report
    drive.prepare(steps, within(report, 0.0, 0.5))
    return drive, within(report, 0.5, 1.0)


def _pass(
    drive: LiveDrive, job: JobText, order: Order, pace: int, report: ProgressCallback
) -> tuple[Pass, int]:
    before = drive.core.counters()
    result = drive.run(job, report, seed=order.seed, interval_ms=pace)
    series = result.device_series()
    reading = read(result)
    means, ramp = _means(result, reading.jobs), _ramp(result, reading.jobs)
    most = 0
    if series is not None and "dirty_bytes" in series.columns and series.height:
        most = int(series["dirty_bytes"].to_numpy().max())
    return Pass(reading, means, ramp, before, drive.core.counters()), most


def _means(result: Result, jobs: Sequence[str]) -> dict[str, float]:
    sums: dict[str, tuple[float, int]] = {}
    for job in result.jobs:
        if job.name not in jobs:
            continue
        for one in job.directions():
            total, ios = sums.get(one.ddir, (0.0, 0))
            sums[one.ddir] = (total + one.lat_mean_ns * one.ios, ios + one.ios)
    return {ddir: total / ios for ddir, (total, ios) in sums.items() if ios}


def _ramp(result: Result, jobs: Sequence[str]) -> Ramp:
    frame = (
        result.series()
        .filter(pl.col("job").is_in(list(jobs)))
        .group_by("time_s")
        .agg(pl.col("ios").sum())
        .sort("time_s")
    )
    time = frame["time_s"].to_numpy().astype(np.float64)
    started = min(
        (float(one["started_s"]) for one in result.ssdlab["jobs"] if one["name"] in jobs),
        default=0.0,
    )
    return Ramp(time - started, frame["ios"].to_numpy().astype(np.float64))


def summary(reading: Reading) -> dict[str, Any]:
    """A reading in ``--json``, without what only arrays have."""
    found = reading.as_json()
    left = ("member_utilisation", "member_written_bytes", "member_ios_per_io", "shared_utilisation")
    text = json.dumps({key: value for key, value in found.items() if key not in left})
    return dict(json.loads(text))
