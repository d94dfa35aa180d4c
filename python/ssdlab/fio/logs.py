"""fio's histogram logs as the job series: the same columns a simulated run has.

Each line of ``*_clat_hist.*.log`` is ``ms, ddir, bs, 1856 counters``: the completion latencies of
one second of one job thread. fio drops the last incomplete second; it is what the final histogram
in the JSON+ document holds beyond the logged ones, so it is put back from there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ssdlab.errors import ExperimentError
from ssdlab.fio.job import JobSection
from ssdlab.histogram import BINS, Histogram, merge
from ssdlab.results import DIRECTIONS, LATENCY_SCHEMA, SERIES_SCHEMA, JobLogs, JobShape

Counts = npt.NDArray[np.int64]


def series(
    folder: Path, sections: Sequence[JobSection], document: Mapping[str, Any]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The job series of a finished fio run and its latencies by second (completion latencies: what
    fio logs); ``folder`` holds the logs ``ssdlab<section>_...``."""
    by_section = entries([_title(section) for section in sections], document)
    starts = _starts(sections, by_section)
    frames = Frames()
    for numbers in _folded(by_section):
        first = numbers[0]
        logged = by_second(_lines(folder, numbers))
        frames.add(_title(sections[first]), starts[first], by_section[first], logged)
    return frames.series(), frames.latency()


@dataclass
class Frames:
    """The rows of both tables while they come together."""

    rows: list[dict[str, object]] = field(default_factory=list)
    latencies: list[dict[str, object]] = field(default_factory=list)

    def add(
        self,
        title: str,
        start_s: float,
        jobs: Sequence[Mapping[str, Any]],
        logged: Mapping[int, dict[float, Counts]],
        *,
        exact: bool = True,
    ) -> None:
        """What was logged of the document's ``jobs``, which are called ``title``: by direction
        (0 read, 1 write, 2 trim) and end of the interval. Where it is ``exact``, in the bins of the
        document, what that has beyond it is added."""
        for ddir, name in enumerate(DIRECTIONS):
            stats = [job[name] for job in jobs if job.get(name, {}).get("total_ios", 0) > 0]
            if not stats:
                continue
            intervals = logged.get(ddir, {})
            end = max(float(s["runtime"]) for s in stats) / 1000.0
            if exact:
                _add_rest(intervals, stats, end)
            ios = sum(int(s["total_ios"]) for s in stats)
            mean_bytes = sum(int(s["io_bytes"]) for s in stats) / ios
            for begin, end, histogram in _spans(intervals):
                where = {"time_s": start_s + end, "job": title, "ddir": name}
                self.rows.append(where | _row(histogram, end - begin, mean_bytes))
                self.latencies.append(where | _segment(histogram, end - begin))

    def series(self) -> pl.DataFrame:
        """The job series."""
        return pl.DataFrame(self.rows, schema=SERIES_SCHEMA).sort("time_s", maintain_order=True)

    def latency(self) -> pl.DataFrame:
        """The latencies by interval."""
        frame = pl.DataFrame(self.latencies, schema=LATENCY_SCHEMA)
        return frame.sort("time_s", maintain_order=True)


def entries(titles: Sequence[str], document: Mapping[str, Any]) -> list[list[Mapping[str, Any]]]:
    """The document's jobs of each section, of which ``titles`` are the names. A section makes
    ``numjobs`` entries in a row, or one where group_reporting folds it; sections folded together
    have theirs under the first."""
    found: list[list[Mapping[str, Any]]] = [[] for _ in titles]
    position = 0
    for job in document.get("jobs", []):
        name = job.get("jobname")
        later = (i for i in range(position, len(titles)) if titles[i] == name)
        position = next(later, position)
        found[position].append(job)
    return found


def _folded(jobs: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[int]]:
    """Sections that share an entry, first the one that holds it."""
    groups: list[list[int]] = []
    for number, own in enumerate(jobs):
        if own or not groups:
            groups.append([number])
        else:
            groups[-1].append(number)
    return groups


def _title(section: JobSection) -> str:
    return section.get("name") or section.name


def _starts(
    sections: Sequence[JobSection], jobs: Sequence[Sequence[Mapping[str, Any]]]
) -> list[float]:
    """When each section's measurement began, in seconds from the start of the run; fio's logs count
    from the start of their own job, which may wait for all before."""
    starts: list[float] = []
    stage_start = stage_end = 0.0
    stage = 0
    for section, own in zip(sections, jobs, strict=True):
        if section.first["stage"] > stage:
            stage, stage_start = section.first["stage"], stage_end
        begin = stage_start + section.first["start_delay_s"][0] + section.first["ramp_s"]
        starts.append(begin)
        length = max((float(job.get("job_runtime", 0)) for job in own), default=0.0) / 1000.0
        stage_end = max(stage_end, begin + length)
    return starts


def by_second(
    lines: Iterable[tuple[float, int, Counts]],
) -> dict[int, dict[float, Counts]]:
    """The lines of histogram logs (time in ms, direction, counters of fio's bins) by direction and
    end of second, all threads together."""
    found: dict[int, dict[float, Counts]] = defaultdict(dict)
    for ms, ddir, counts in lines:
        # Threads tick some milliseconds apart; they share the second they belong to.
        second = float(max(1, round(ms / 1000)))
        intervals = found[int(ddir)]
        intervals[second] = intervals[second] + counts if second in intervals else counts
    return found


def _lines(folder: Path, numbers: Sequence[int]) -> Iterator[tuple[float, int, Counts]]:
    """Those of the histogram logs of the sections."""
    paths = [p for n in numbers for p in sorted(folder.glob(f"ssdlab{n:03d}_clat_hist.*.log"))]
    for path in paths:
        for line in path.read_text().splitlines():
            fields = np.array(line.split(","), dtype=np.int64)
            if len(fields) != 3 + BINS:
                raise ExperimentError(f"{path.name}: fio wrote a histogram of unknown shape")
            yield fields[0], fields[1], fields[3:]


def _add_rest(
    intervals: dict[float, Counts], stats: Sequence[Mapping[str, Any]], end: float
) -> None:
    """Adds the last incomplete second: the final histogram less what was logged."""
    whole = merge(Histogram.of_document(stat, "clat") for stat in stats)
    rest = np.zeros(BINS, dtype=np.int64) if whole is None else whole.counts.copy()
    for logged in intervals.values():
        rest -= logged
    rest = np.maximum(rest, 0)
    if rest.sum() == 0:
        return
    last = max(intervals, default=0.0)
    if end - last < 0.1 and intervals:
        intervals[last] = intervals[last] + rest  # a sliver would make a rate of noise
    else:
        intervals[max(end, last + 1e-3)] = rest


def _spans(intervals: Mapping[float, Counts]) -> Iterator[tuple[float, float, Histogram]]:
    """Begin, end and latencies of the intervals in which something completed."""
    before = 0.0
    for end in sorted(intervals):
        histogram = Histogram.of_counts(intervals[end])
        if histogram.ios:
            yield before, end, histogram
        before = end


def _row(histogram: Histogram, length: float, mean_bytes: float) -> dict[str, object]:
    volume = round(histogram.ios * mean_bytes)
    return {
        "ios": histogram.ios,
        "iops": histogram.ios / length,
        "bytes": volume,
        "bw_bytes": volume / length,
        "lat_min_ns": int(histogram.min_ns),
        "lat_mean_ns": histogram.mean_ns,
        "lat_max_ns": int(histogram.max_ns),
        "lat_p50_ns": int(histogram.rank_ns(50.0) or 0),
        "lat_p99_ns": int(histogram.rank_ns(99.0) or 0),
    }


def _segment(histogram: Histogram, length: float) -> dict[str, object]:
    used = np.flatnonzero(histogram.counts)
    return {
        "length_s": length,
        "kind": "clat",
        "ios": histogram.ios,
        "sum_ns": histogram.sum_ns,
        "min_ns": int(histogram.min_ns),
        "max_ns": int(histogram.max_ns),
        "bins": used.tolist(),
        "counts": histogram.counts[used].tolist(),
    }


def shapes(sections: Sequence[JobSection]) -> list[JobShape]:
    """The shape of each section; the threads of a trace are one."""
    job_shapes: list[JobShape] = []
    for section in sections:
        threads = len(section.processes)
        if section.trace is not None and section.trace.lane:
            job_shapes[-1] = replace(job_shapes[-1], numjobs=job_shapes[-1].numjobs + threads)
            continue
        depth = section.first["iodepth"]
        job_shapes.append(JobShape.of(_title(section), section.effective, depth, threads))
    return job_shapes


_OURS = re.compile(r"ssdlab\d{3}_")
"""How logs begin that the job did not ask for."""


def read(folder: Path, *, everything: bool) -> list[tuple[str, str]]:
    """The logs of a finished fio run: (file name, text); those the job asked for, or everything."""
    paths = [p for p in sorted(folder.glob("*.log")) if everything or not _OURS.match(p.name)]
    return [(path.name, path.read_text()) for path in paths]


def asked_by_job(logs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of ``logs`` that the job itself asked for."""
    return [(name, text) for name, text in logs if not _OURS.match(name)]


def by_job(shapes: Sequence[JobShape], logs: Sequence[tuple[str, str]]) -> list[JobLogs]:
    """``logs`` by section. fio numbers the threads of all sections through, from 1."""
    numbered = re.compile(r"_(bw|iops|lat|slat|clat|clat_hist)\.(\d+)\.log$")
    known = [(match, text) for name, text in logs if (match := numbered.search(name))]
    logses, first = [], 1
    for shape in shapes:
        threads = range(first, first + shape.numjobs)
        files = [
            (f"{match[1]}.{int(match[2]) - first + 1}.log", text)
            for match, text in known
            if int(match[2]) in threads
        ]
        logses.append(JobLogs(shape, files))
        first += shape.numjobs
    return logses
