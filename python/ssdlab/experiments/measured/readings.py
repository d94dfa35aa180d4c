"""What is read of a run, in the units of the cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ssdlab.experiments import measure
from ssdlab.results import Result
from ssdlab.wear import Stretch

BYTES = {"MiB/s": 1 << 20, "MB/s": 10**6}


def read(result: Result, what: str, unit: str) -> float | None:
    """A reading of a run; None where nothing was measured."""
    if match := re.fullmatch(r"(read|write) p(\d+)", what):
        return _percentile(result, match[1], float(match[2]))
    return READINGS[what](result, unit)


def _job(result: Result) -> str:
    """The job that counts: the last one."""
    return str(result.ssdlab["jobs"][-1]["name"])


def _late(result: Result, unit: str) -> float | None:
    """The mean rate of the end of the job that counts."""
    course = measure.course(result, _job(result), 1, "bw_bytes")
    mean = measure.last_quarter(course.time, course.values)
    return None if mean is None else mean / BYTES[unit]


def _total(result: Result, unit: str) -> float | None:
    """The rate of all of the job that counts."""
    column = "iops" if unit == "IOPS" else "bw_bytes"
    return measure.totals(result, column)[_job(result)] / BYTES.get(unit, 1)


def _amplification(result: Result, _unit: str) -> float | None:
    """Of one job all of it, of what comes after a fill the last quarter."""
    jobs = result.ssdlab["jobs"]
    if len(jobs) == 1:
        return Stretch.of(result).amplification
    begin = float(jobs[-1]["started_s"])
    frame = result.device_series()
    if frame is None:
        return None
    end = float(frame["time_s"].max())  # type: ignore[arg-type]
    return Stretch.of(result, begin + measure.LATE * (end - begin), end).amplification


def _percentile(result: Result, direction: str, percent: float) -> float | None:
    """Completion latency of the probe, or of the one job, us."""
    direction_stats = [
        stats for job in result.jobs for stats in job.directions() if stats.ddir == direction
    ]
    return direction_stats[0].clat.percentile_us(percent) if direction_stats else None


READINGS: Mapping[str, Callable[[Result, str], float | None]] = {
    "rate": _total,
    "iops": _total,
    "last quarter": _late,
    "wa": _amplification,
}
