"""A load run in time: on a pool, on a fast device, on a pool behind a cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ssdlab.arrays.readings import Reading
from ssdlab.bench import Seat
from ssdlab.plan.bed import Bed, Ran
from ssdlab.plan.workload import Load
from ssdlab.progress import ProgressCallback, stage, within

INTERVALS = 300
"""Of a pass, about."""
INTERVAL_MS = (10, 60_000)


@dataclass(frozen=True)
class Schedule:
    """What is run on every rig."""

    load: Load
    passes: int
    """At full speed, one after another; a job runs once."""
    seed: int
    interval_ms: int = 1000
    """Of the series at full speed."""


@dataclass(frozen=True)
class Timed:
    """What a rig did."""

    capacity: int
    passes: Sequence[Ran]
    """At full speed."""
    recorded: Ran | None
    """At the times of the recording, after the others."""

    @property
    def dirty_recorded(self) -> int:
        """Most dirty bytes while the recording was followed."""
        return 0 if self.recorded is None else self.recorded.dirty_most

    @property
    def first(self) -> Ran:
        """The pass that began with an empty cache."""
        return self.passes[0]

    @property
    def last(self) -> Ran:
        """The warmest pass at full speed."""
        return self.passes[-1]

    @property
    def calm(self) -> Ran:
        """The pass that latencies are taken from: at recorded times, else the last."""
        return self.recorded or self.last


def run(rig: str, name: str, order: Schedule, seat: Seat, prepare: str = "fob") -> Timed:
    """Runs all passes on one device that lives through them.

    Raises InputError where the rig is wrong or the load does not fit on it, Interrupted.
    """
    load = order.load
    count = 1 if load.is_job else order.passes
    whole = count + (load.recorded is not None)

    def fresh(report: ProgressCallback) -> tuple[Bed, ProgressCallback]:
        """A device that has been prepared, and what is left of the progress for its first pass."""
        bed = Bed(rig, name, order.seed, seat, seed_step=0)
        if prepare == "fob":
            return bed, report
        bed.prepare(prepare, within(report, 0.0, 0.5))
        return bed, within(report, 0.5, 1.0)

    bed, report = fresh(stage(seat.report, 0, whole))
    found = []
    for i in range(count):
        report = report if i == 0 else stage(seat.report, i, whole)
        found.append(bed.run(load.full_speed, report, order.interval_ms))
    calm = None
    if load.recorded is not None:
        report = stage(seat.report, count, whole)
        if count == 1:
            # With nothing to warm it up, the recording too begins on a new device.
            bed, report = fresh(report)
        calm = bed.run(load.recorded, report, interval(load.span_s))
    return Timed(bed.capacity, found, calm)


def interval(seconds: float) -> int:
    """Length of an interval (ms) for a pass of so many seconds."""
    least, most = INTERVAL_MS
    return min(most, max(least, round(seconds * 1000 / INTERVALS)))


def summary(reading: Reading) -> dict[str, Any]:
    """A reading in ``--json``, without what only arrays have."""
    found = reading.as_json()
    left = ("member_utilisation", "member_written_bytes", "member_ios_per_io", "shared_utilisation")
    text = json.dumps({key: value for key, value in found.items() if key not in left})
    return dict(json.loads(text))
