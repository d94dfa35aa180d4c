"""A load run in time: on a pool, on a fast device, on a pool behind a cache."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ssdlab import _core
from ssdlab.arrays.readings import Reading, read
from ssdlab.errors import Interrupted
from ssdlab.jobfile import JobText
from ssdlab.memory import available_bytes
from ssdlab.plan.warmup import Ramp
from ssdlab.plan.workload import Load
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.results import Result
from ssdlab.target import sim_progress, sim_result

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
    memory_bytes: int | None = None


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


def run(rig: str, name: str, order: Order, report: ProgressCallback, prepare: str = "fob") -> Timed:
    """Runs all passes on one device that lives through them.

    Raises InputError where the rig is wrong or the load does not fit on it, Interrupted.
    """
    load = order.load
    count = 1 if load.is_job else order.passes
    whole = count + (load.recorded is not None)
    drive = _open(rig, name, order)
    _prepared(drive, prepare)
    done = [
        _pass(drive, name, load.full_speed, order, order.interval_ms, _within(report, i, whole))
        for i in range(count)
    ]
    found = [one for one, _ in done]
    calm, dirty = None, 0
    if load.recorded is not None:
        if count == 1:
            # With nothing to warm it up, the recording too begins on a new device.
            drive = _open(rig, name, order)
            _prepared(drive, prepare)
        pace = interval(load.span_s)
        calm, dirty = _pass(drive, name, load.recorded, order, pace, _within(report, count, whole))
    return Timed(drive.capacity_bytes, found, calm, dirty)


def interval(seconds: float) -> int:
    """Length of an interval (ms) for a pass of so many seconds."""
    least, most = INTERVAL_MS
    return min(most, max(least, round(seconds * 1000 / INTERVALS)))


def _open(rig: str, name: str, order: Order) -> _core.Drive:
    free = available_bytes()
    known = [one for one in (order.memory_bytes, free) if one is not None]
    return _core.Drive(
        rig, rig_name=name, seed=order.seed, memory_bytes=min(known) if known else None
    )


def _prepared(drive: _core.Drive, steps: str) -> None:
    if steps != "fob":
        drive.prepare(steps)


def _within(report: ProgressCallback, place: int, of: int) -> ProgressCallback:
    def tell(news: Progress) -> bool:
        fraction = None if news.fraction is None else (place + news.fraction) / of
        return report(Progress(fraction, None, news.text))

    return tell


def _pass(
    drive: _core.Drive, name: str, job: JobText, order: Order, pace: int, report: ProgressCallback
) -> tuple[Pass, int]:
    stopped = False

    def tell(news: _core.Progress) -> bool:
        nonlocal stopped
        stopped = not report(sim_progress(news))
        return not stopped

    before = drive.counters()
    try:
        output = drive.run(
            job.text,
            job_name=job.name,
            seed=order.seed,
            environment=dict(os.environ),
            include=job.include(),
            traces=job.traces(),
            progress=tell,
            interval_ms=pace,
        )
    except KeyboardInterrupt:
        raise Interrupted("stopped by Ctrl-C; nothing was kept") from None
    except Exception:
        if stopped:
            raise Interrupted("stopped; nothing was kept") from None
        raise
    result = sim_result(name, job, output)
    dirty = output.device_series.get("dirty_bytes")
    most = int(np.max(dirty)) if dirty is not None and len(dirty) else 0
    reading = read(result)
    means = _means(result, reading.jobs)
    return Pass(reading, means, _ramp(result, reading.jobs), before, drive.counters()), most


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
