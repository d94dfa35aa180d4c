"""fio's logs beside a foreign document, as the series and the latencies of a run.

Histogram logs and logs of every I/O give both; averaged logs give a series whose latencies are
means, and no more than they say.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ssdlab.errors import InputError
from ssdlab.fio.logs import Counts, Frames, by_second
from ssdlab.histogram import BINS, VALUES, bin_index
from ssdlab.results import DIRECTIONS, SERIES_SCHEMA

NAME = re.compile(r"(.*?)_(bw|iops|slat|clat|lat|clat_hist)(?:\.(\d+))?\.log(?:\.(.+))?")
"""Prefix, kind and thread of a log's name, and the host that some tools put behind it."""
OLD_BINS = 19 << 6
"""Counters of a histogram before fio counted nanoseconds."""
FIELDS_MIN = 3
EPOCH_MS = 1e11
"""Times beyond are those of a clock on the wall (``log_unix_epoch``)."""
SLACK_S = 2.0
"""fio counts whole seconds of the time that it has run."""
ALIKE = 0.02
"""A log that has as many entries as the document counts I/Os, but for this share, has each."""
REST_MIN_S = 0.1
"""In less time a few I/Os make a rate of noise."""
Row = dict[str, Any]
"""Of the series."""
Table = npt.NDArray[np.int64]
"""Of a log: time in ms, value, direction, block size."""


@dataclass(frozen=True)
class Log:
    """One log of fio."""

    name: str
    kind: str
    thread: int | None
    text: str
    limit_ms: float = math.inf
    """When the run that it is of had ended at the latest."""


@dataclass(frozen=True)
class LogSeries:
    """What the logs of a document came to."""

    series: pl.DataFrame
    latency: pl.DataFrame | None
    interval_ms: int


NONE = LogSeries(pl.DataFrame(schema=SERIES_SCHEMA), None, 1000)
"""Where no log tells one."""


def log_of(name: str, text: str) -> Log | None:
    """A log by its name; None where it is none."""
    match = NAME.fullmatch(name)
    return Log(name, match[2], int(match[3]) if match[3] else None, text) if match else None


def series(document: Mapping[str, Any], logs: Sequence[Log], *, old: bool) -> LogSeries | None:
    """The series of the jobs of ``document``; None where the logs do not tell one. ``old``: their
    latencies are in microseconds; InputError where a log is none."""
    frames = Frames()
    rows: list[Row] = []
    steps: list[float] = []
    jobs = _by_name(document)
    worked = [float(job.get("elapsed") or 0) + job["job_runtime"] / 1e3 for job in document["jobs"]]
    logs = [replace(log, limit_ms=1e3 * (SLACK_S + 2 * max(worked))) for log in logs]
    for (title, own), start in zip(jobs.items(), _starts(list(jobs.values())), strict=True):
        mine = [log for log in logs if _belongs(log, title, document)]
        if (intervals := _intervals(mine, own, old)) is not None:
            frames.add(title, start, own, intervals, exact=not old and _exact(mine))
            rows += _rest([row for row in frames.rows if row["job"] == title], own, start)
            steps.append(1.0)
        elif (averaged := _averaged(mine, own, old)) is not None:
            step, found = averaged
            found = [{**one, "job": title, "time_s": start + one["time_s"]} for one in found]
            rows += found + _rest(found, own, start)
            steps.append(step)
    if not steps:
        return None
    table = pl.concat([frames.series(), pl.DataFrame(rows, schema=SERIES_SCHEMA)])
    latency = frames.latency() if frames.latencies else None
    return LogSeries(table.sort("time_s", maintain_order=True), latency, round(1000 * max(steps)))


def _rest(rows: Sequence[Row], jobs: Sequence[Mapping[str, Any]], start: float) -> list[Row]:
    """What the document counts beyond the logs, in the time after them: fio drops the last
    incomplete interval. Of its latencies nothing is known."""
    found: list[Row] = []
    for name in DIRECTIONS:
        own = [row for row in rows if row["ddir"] == name]
        if not own:
            continue
        end = start + max(float(job[name]["runtime"]) for job in jobs) / 1000
        last = max(one["time_s"] for one in own)
        ios, moved = (
            sum(job[name][of] for job in jobs) - sum(one[column] for one in own)
            for of, column in (("total_ios", "ios"), ("io_bytes", "bytes"))
        )
        length = end - last
        if ios <= 0 or moved <= 0 or length < REST_MIN_S:
            continue
        rates = {"iops": ios / length, "bw_bytes": moved / length}
        where = {"time_s": end, "job": own[0]["job"], "ddir": name}
        found.append({**where, "ios": ios, "bytes": moved, **rates})
    return found


def _by_name(document: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for job in document["jobs"]:
        found.setdefault(job["jobname"], []).append(job)
    return found


def _starts(jobs: Sequence[Sequence[Mapping[str, Any]]]) -> list[float]:
    """When each job began, in seconds since the first: as the document says; else one group after
    the other (``stonewall``, which fio does not list) where fio ran for as long as all of them
    together, and all at once where it did not."""
    told = [min((j["job_start"] for j in own if "job_start" in j), default=None) for own in jobs]
    if all(isinstance(one, int | float) for one in told):
        return [(one - min(told)) / 1000 for one in told]  # type: ignore[operator,type-var]
    groups: dict[Any, float] = {}
    for own in jobs:
        length = max(float(job["job_runtime"]) for job in own) / 1000
        group = own[0].get("groupid")
        groups[group] = max(groups.get(group, 0.0), length)
    elapsed = max((float(job.get("elapsed") or 0) for own in jobs for job in own), default=0.0)
    if elapsed + SLACK_S < sum(groups.values()):
        return [0.0 for _ in jobs]
    begins = dict(zip(groups, np.cumsum([0.0, *groups.values()]).tolist(), strict=False))
    return [begins[own[0].get("groupid")] for own in jobs]


def _belongs(log: Log, title: str, document: Mapping[str, Any]) -> bool:
    """Whether a log is of the job: fio numbers the threads of all jobs through, from 1."""
    jobs = document["jobs"]
    names = [job["jobname"] for job in jobs]
    if len({*names}) == 1:
        return True
    if log.thread is None:
        prefix = (NAME.fullmatch(log.name) or [""])[1]
        return bool(prefix == title)
    first = 1
    for job in jobs:
        options = {**document.get("global options", {}), **job["job options"]}
        count = options.get("numjobs", "1")
        # One entry for several threads is one of group_reporting.
        grouped = names.count(job["jobname"]) == 1 and count.isdigit()
        after = first + (int(count) if grouped else 1)
        if first <= log.thread < after:
            return bool(job["jobname"] == title)
        first = after
    return False


def _intervals(
    logs: Sequence[Log], jobs: Sequence[Mapping[str, Any]], old: bool
) -> dict[int, dict[float, Counts]] | None:
    """By direction and second, how many I/Os took how long; None where no log tells."""
    if hist := [log for log in logs if log.kind == "clat_hist"]:
        return by_second(_histograms(hist, old))
    each = [log for log in logs if log.kind == "clat"]
    if not each or not (tables := [table for log in each if len(table := _table(log))]):
        return None
    whole = np.concatenate(tables)
    total = sum(job[ddir]["total_ios"] for job in jobs for ddir in DIRECTIONS)
    if abs(len(whole) - total) > ALIKE * total:
        return None
    found: dict[int, dict[float, Counts]] = defaultdict(dict)
    seconds = np.maximum(1, np.ceil(whole[:, 0] / 1000)).astype(np.int64)
    bins = bin_index(whole[:, 1] * (1000 if old else 1))
    for ddir in np.unique(whole[:, 2]):
        for second in np.unique(seconds[whole[:, 2] == ddir]):
            own = bins[(whole[:, 2] == ddir) & (seconds == second)]
            found[int(ddir)][float(second)] = np.bincount(own, minlength=BINS)
    return found


def _exact(logs: Sequence[Log]) -> bool:
    """Whether histogram logs have fio's own bins."""
    first = next((log.text.partition("\n")[0] for log in logs if log.kind == "clat_hist"), "")
    return not first or first.count(",") >= BINS


def _histograms(logs: Sequence[Log], old: bool) -> Iterator[tuple[float, int, Counts]]:
    """The lines of histogram logs, in fio's own bins of ns."""
    for log in logs:
        for number, fields in _lines(log):
            head, counts = fields[:3], _fine(fields[3:], log, number)
            if old:
                micro, used = counts, np.flatnonzero(counts)
                counts = np.zeros(BINS, dtype=np.int64)
                np.add.at(counts, bin_index(VALUES[used] * 1000), micro[used])
            yield head[0], head[1], counts


def _fine(counts: Table, log: Log, number: int) -> Counts:
    """Counters of fio's bins; those of coarser ones (``log_hist_coarseness``) in their middle."""
    for whole in (BINS, OLD_BINS):
        if len(counts) and whole % len(counts) == 0:
            times = whole // len(counts)
            fine = np.zeros(BINS, dtype=np.int64)
            fine[times // 2 : whole : times] = counts
            return fine
    raise InputError(f"{log.name}: line {number} is no histogram of fio ({len(counts)} counters)")


def _lines(log: Log) -> Iterator[tuple[int, Table]]:
    """The numbers of every line, by its number; times are since the start."""
    start: int | None = None
    for number, line in enumerate(log.text.splitlines(), 1):
        fields = [one.strip() for one in line.rstrip(", \t\r").split(",")]
        if fields == [""]:
            continue
        try:
            numbers = [int(field, 0) if field[:2] == "0x" else int(field) for field in fields]
            values = np.array(numbers, dtype=np.int64)
        except (ValueError, OverflowError):
            values = np.zeros(0, dtype=np.int64)
        if len(values) < FIELDS_MIN:
            raise InputError(
                f"{log.name}: line {number} is none of a log of fio: time in ms, value, "
                "direction, block size"
            )
        if start is None:
            start = int(values[0]) if values[0] > EPOCH_MS else 0
        values[0] -= start
        if not 0 <= values[0] <= log.limit_ms:
            raise InputError(f"{log.name}: line {number} is of a time after the end of its run")
        yield number, values


def _table(log: Log) -> Table:
    """Time in ms, value, direction and block size of every line."""
    rows = [np.append(values, [0])[:4] for _, values in _lines(log)]
    if not rows:
        return np.zeros((0, 4), dtype=np.int64)
    return np.array(rows)


def _averaged(
    logs: Sequence[Log], jobs: Sequence[Mapping[str, Any]], old: bool
) -> tuple[float, list[Row]] | None:
    """Length of an interval in seconds, and the rows of the series; None where no log of I/Os or
    of bytes tells one."""
    tables = {
        kind: {
            log.name.replace(f"_{kind}", "", 1): found
            for log in logs
            if log.kind == kind and len(found := _table(log))
        }
        for kind in ("iops", "bw", "clat")
    }
    leading = [*(tables["iops"] or tables["bw"]).values()]
    if not leading:
        return None
    gaps = np.concatenate([np.diff(np.unique(one[:, 0])) for one in leading])
    step = float(np.median(gaps)) / 1000 if len(gaps) else 1.0
    if step < 0.05:
        return None  # of every I/O, without its latency
    rows: list[Row] = []
    for ddir, name in enumerate(DIRECTIONS):
        stats = [job[name] for job in jobs if job[name]["total_ios"]]
        if not stats:
            continue
        ios = sum(stat["total_ios"] for stat in stats)
        mean_bytes = sum(stat["io_bytes"] for stat in stats) / ios
        by_kind = {kind: _binned([*own.values()], ddir, step) for kind, own in tables.items()}
        latencies = _latencies(tables["clat"], tables["iops"], ddir, step)
        for place in sorted(by_kind["iops"] or by_kind["bw"]):
            moved = sum(by_kind["bw"].get(place, [])) * 1024.0
            rate = sum(by_kind["iops"].get(place, [])) or moved / mean_bytes
            moved = moved or rate * mean_bytes
            mean = latencies.get(place)
            rows.append(
                {
                    "time_s": place * step,
                    "ddir": name,
                    "ios": round(rate * step),
                    "iops": float(rate),
                    "bytes": round(moved * step),
                    "bw_bytes": float(moved),
                    "lat_mean_ns": None if mean is None else mean * (1000 if old else 1),
                }
            )
    return step, rows


def _latencies(
    means: Mapping[str, Table], rates: Mapping[str, Table], ddir: int, step: float
) -> dict[int, float]:
    """The mean latency in each interval: threads count by their rates, where all tell them."""
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for thread, table in means.items():
        own = _binned([rates[thread]] if thread in rates else [], ddir, step)
        for place, values in _binned([table], ddir, step).items():
            found[place].append((float(np.mean(values)), sum(own.get(place, []))))
    return {
        place: float(np.average(one[:, 0], weights=one[:, 1] if one[:, 1].all() else None))
        for place, pairs in found.items()
        for one in [np.array(pairs)]
    }


def _binned(tables: Sequence[Table], ddir: int, step: float) -> dict[int, list[float]]:
    """The values of all threads by the interval to which they belong."""
    found: dict[int, list[float]] = defaultdict(list)
    for table in tables:
        own = table[table[:, 2] == ddir]
        places = np.maximum(1, np.round(own[:, 0] / 1000 / step)).astype(int)
        for place, value in zip(places.tolist(), own[:, 1].tolist(), strict=True):
            found[place].append(float(value))
    return found
