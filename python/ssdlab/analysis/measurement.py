"""What a run measured: rates, latencies and write amplification of each job, over one window.

The measurement window of a job is where its IOPS are steady (:func:`ssdlab.analysis.steady.judge`)
or else the whole job, as of a replay at recorded times or of one that reads back what it wrote;
every number of the job that is shown comes from it, in every command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from ssdlab import histogram, units
from ssdlab.analysis import comparison, consistency, noise, series, steady
from ssdlab.analysis.stats import CONFIDENCE, Estimate, t_quantile
from ssdlab.histogram import BINS, KINDS, NOTHING, VALUES, Histogram
from ssdlab.numeric import Floats
from ssdlab.results import DIRECTIONS, SYNC, DirectionStats, JobResult, Result
from ssdlab.wear import Stretch

NO_STRETCH = Stretch({}, {})
"""Of what does not write, and of drives that do not count."""
WHY_WHOLE = {
    "drifting": "not steady",
    "short": "too short to be steady",
    "recorded": "at the times of its trace",
    "verified": "in which what was written is read back",
    "unknown": "without a series that would show whether it was steady",
}
"""Of a window that is the whole job."""
LONGER_STEP = 1.05
"""Lengths of a run are tried in steps of this factor."""
NEAR = 1e-6
"""Seconds within which two instants are the same."""


@dataclass(frozen=True)
class Window:
    """The stretch of a job that its numbers are of, in seconds since it began to be measured."""

    start_s: float
    end_s: float
    verdict: Literal["steady", "drifting", "short", "recorded", "verified", "unknown"]
    """``steady`` from the start of the window on, ``drifting`` up to the end of the job, too
    ``short`` to judge, ``recorded`` where I/Os come when a trace has them, so that their rate is
    the trace's, ``verified`` where writes and the reads of them take turns, or ``unknown`` where
    there is no series."""

    @property
    def steady(self) -> bool:
        """Whether it is the steady part of the job."""
        return self.verdict == "steady"

    @property
    def told(self) -> str:
        """Where the numbers are from."""
        if self.steady:
            since = f" (from {units.duration(self.start_s)})" if self.start_s else ""
            return f"at steady state{since}"
        return f"over the whole job, {WHY_WHOLE[self.verdict]}"

    @property
    def whole(self) -> bool:
        """Whether it is the whole job."""
        return self.start_s == 0

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Direction:
    """One direction of one job in its window."""

    job: str
    ddir: str
    window: Window
    ios: int | None
    """None, as everything else, where the target does not tell it for the window."""
    bytes: int | None
    iops: float | None
    bw_bytes: float | None
    latencies: Mapping[str, Histogram] = field(repr=False)
    """By kind, as far as the target tells them for the window."""
    stretch: Stretch = field(repr=False)
    """What the counters of the rig's devices did in the window; of writes, and of reads where all
    that was written is what they brought into a cache or a fast tier."""
    bins: pl.DataFrame = field(repr=False)
    """The whole job in bins of a second (:func:`ssdlab.analysis.series.per_second`)."""
    segments: pl.DataFrame | None = field(default=None, repr=False)
    """Histograms of the shown kind by segment of the window; None where nobody keeps them."""
    total_ios: int = 0
    """Of the whole job."""

    @property
    def kind(self) -> str:
        """The kind of latency that is shown: what every target can tell for any window, or the
        whole latency where fio was told to leave out the other's percentiles, or all of it."""
        return "lat" if self.ddir == SYNC else max(("clat", "lat"), key=self._told)

    def _told(self, kind: str) -> tuple[bool, bool]:
        """Whether percentiles of a kind are known, and whether anything is."""
        known = self.latencies.get(kind, NOTHING)
        return known.known or bool(known.told), known.ios > 0

    @property
    def latency(self) -> Histogram | None:
        """Latencies of that kind."""
        return self.latencies.get(self.kind)

    @property
    def waf(self) -> float | None:
        """Write amplification while the job wrote; None where it did not, or nobody counts."""
        return self.stretch.amplification if self.ddir == "write" else None

    @cached_property
    def consistency(self) -> consistency.Consistency | None:
        """How even the window is from second to second; None without two of them, and where what
        is written and what is read back take turns."""
        rates, ends = (self.inside[name].to_numpy() for name in ("iops", "time_s"))
        if len(rates) < 2 or self.window.verdict == "verified":
            return None
        return consistency.measure(rates, np.diff(ends, prepend=self.window.start_s))

    @cached_property
    def inside(self) -> pl.DataFrame:
        """The bins of the window."""
        return self.bins.filter(pl.col("time_s") > self.window.start_s + NEAR)

    def segment_counts(self) -> tuple[Floats, Floats] | None:
        """Counts by segment and bin, and the latencies in ns of the bins that occur at all."""
        if self.segments is None or self.segments.is_empty():
            return None
        ends = self.segments["time_s"].unique().sort()
        row = ends.search_sorted(self.segments["time_s"])
        flat = self.segments.select("bins", "counts").with_columns(row=row)
        flat = flat.explode("bins", "counts").drop_nulls()
        counts = np.zeros((len(ends), BINS))
        np.add.at(
            counts, (flat["row"].to_numpy(), flat["bins"].to_numpy()), flat["counts"].to_numpy()
        )
        used = np.flatnonzero(counts.sum(axis=0))
        return counts[:, used], VALUES[used].astype(np.float64)

    def summary(self) -> dict[str, Any]:
        """The entry of ``ssdlab.summary``; times in ns, null for what the target does not tell."""
        return {
            "job": self.job,
            "ddir": self.ddir,
            "ios": self.ios,
            "bytes": self.bytes,
            "iops": self.iops,
            "bw_bytes": self.bw_bytes,
            **{
                name: value if kind in self.latencies else None
                for kind in reversed(KINDS)
                for name, value in self.latencies.get(kind, NOTHING).summary(kind).items()
            },
            "waf": self.waf,
            "window_s": [round(self.window.start_s, 9), round(self.window.end_s, 9)],
            "steady": self.window.steady,
        }


def row_numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a summary, its window as two columns."""
    start, end = row["window_s"]
    rest = {key: value for key, value in row.items() if key != "window_s"}
    return {**rest, "window_start_s": start, "window_end_s": end}


@dataclass(frozen=True)
class JobMeasurement:
    """One job name of a run, with all its workers."""

    workload: comparison.Workload
    start_s: float
    """When it began to be measured, on the run's clock."""
    window: Window
    directions: Sequence[Direction]
    """Reads, writes, trims, then flushes; those in which it did anything."""

    @property
    def name(self) -> str:
        """The job's name."""
        return self.workload.name

    @property
    def by_weight(self) -> list[Direction]:
        """What the job is about first: its pattern's own directions before reads that only verify,
        flushes last, the busier before the other. Of a mix that is which it asks for more of, and
        reads at one half, so that it does not depend on the seed."""
        asked = self.workload.mix_asked
        return sorted(
            self.directions,
            key=lambda one: (
                one.ddir == SYNC,
                not self.workload.does(one.ddir),
                -(asked.get(one.ddir, 0.0) if asked else one.total_ios),
            ),
        )

    @property
    def own(self) -> list[Direction]:
        """All but reads that only verify, which come when it writes no more: what may be told
        together."""
        verifies = self.workload.reads_back and not self.workload.does("read")
        return [one for one in self.directions if not (verifies and one.ddir == "read")]

    def of(self, ddir: str) -> Direction | None:
        """One direction; None where the job did nothing in it."""
        return next((direction for direction in self.directions if direction.ddir == ddir), None)


@dataclass(frozen=True)
class RateNoise:
    """How sure the rate of a job is, by how its own series varies in the window."""

    share: float
    """Half of the 95 % interval, as a share of the rate."""
    error: float
    """Standard error, as a share of it."""
    df: float
    """Degrees of freedom of that."""
    seconds: float
    """Length of the window."""
    period_s: float | None
    """From dip to dip, where they repeat."""

    def times_longer(self, share: float) -> float:
        """How many times as long a run, or as many runs, have an interval of `share` to each side:
        the error falls with the root of it, and the quantile with the degrees of freedom."""
        longer = 1.0
        while _sure(longer * self.df) * self.error / longer**0.5 > share:
            longer *= LONGER_STEP
        return longer


def _sure(df: float) -> float:
    return t_quantile(0.5 + CONFIDENCE / 2, df)


@dataclass(frozen=True)
class Measurement:
    """All jobs of a run, in the order of its document."""

    jobs: Sequence[JobMeasurement]

    def of(self, job: str, ddir: str) -> Direction | None:
        """One direction of a job; None where there is no such."""
        own = self.job(job)
        return None if own is None else own.of(ddir)

    def job(self, name: str) -> JobMeasurement | None:
        """A job; None where there is no such."""
        return next((job for job in self.jobs if job.name == name), None)

    @property
    def main(self) -> JobMeasurement | None:
        """The job that the run is about: the last that does more than fill the drive."""
        last = self.jobs[-1].name if self.jobs else ""
        tested = [job for job in self.jobs if not job.workload.fills(last)]
        return next(reversed(tested or self.jobs), None)

    @property
    def directions(self) -> list[Direction]:
        """All directions of all jobs."""
        return [direction for job in self.jobs for direction in job.directions]

    def summary(self) -> list[dict[str, Any]]:
        """``ssdlab.summary``."""
        return [direction.summary() for direction in self.directions]


def measure(result: Result, *, whole: bool = False) -> Measurement:
    """Finds the windows of all jobs of a run and measures them; ``whole``: all of each job."""
    workloads = comparison.workloads(0, result.document)
    return Measurement([_job(result, workload, whole=whole) for workload in workloads])


def rate_noise(result: Result, job: JobMeasurement) -> RateNoise | None:
    """How sure the I/Os per second of a job are, all directions together; None where they are as
    recorded, or intervals of the series too few to tell."""
    every, start = _rates(result, job)
    drawn = noise.of_window(every, start)
    if drawn is None or not drawn.value > 0:
        return None
    error = drawn.error / drawn.value
    cycle = consistency.periodicity(every[start:])
    period = cycle.period * result.interval_s if cycle is not None and cycle.dips else None
    return RateNoise(_sure(drawn.df) * error, error, drawn.df, job.window.seconds, period)


def rate_trend(result: Result, job: JobMeasurement) -> Estimate | None:
    """By how much the rate of a job would change in as long as the job lasted, by its trend in the
    window, as a share of it; None as in :func:`rate_noise`."""
    every, start = _rates(result, job)
    found = noise.trend(every[start:])
    if found is None:
        return None
    longer = job.window.end_s / job.window.seconds
    return replace(
        found, value=longer * found.value, low=longer * found.low, high=longer * found.high
    )


def _rates(result: Result, job: JobMeasurement) -> tuple[Floats, int]:
    """I/Os per second of all directions, by interval, none as recorded or verified; and the first
    of them in the window."""
    rows = result.series(job=job.name).filter(pl.col("ddir").is_in(DIRECTIONS))
    if rows.is_empty() or job.window.verdict in ("recorded", "verified"):
        return np.empty(0), 0
    bins = series.per_second(rows, result.interval_s, job.start_s, bin_s=0.0)
    rates: Floats = bins["iops"].to_numpy()
    inside = bins["time_s"].to_numpy() > job.window.start_s + NEAR
    return rates, len(rates) - int(inside.sum())


def _job(result: Result, workload: comparison.Workload, *, whole: bool) -> JobMeasurement:
    every = result.series(job=workload.name)
    rows = every.filter(pl.col("ddir").is_in(DIRECTIONS))
    if rows.is_empty():
        rows = every  # of flushes alone
    step = result.interval_s
    start = series.start_s(rows, step)
    together = series.per_second(rows, step, start)
    window = _window(rows, together, start, workload, _segments(result, workload.name))
    if whole:
        window = replace(window, start_s=0.0)
    parts = [JobResult(workload.name, raw) for raw in workload.jobs]
    directions = []
    for ddir in DIRECTIONS:
        stats = [
            direction for part in parts for direction in part.directions() if direction.ddir == ddir
        ]
        if stats:
            own = rows.filter(pl.col("ddir") == ddir)
            alone = len(own) == len(rows)
            bins = together if alone else series.per_second(own, step, start)
            directions.append(_direction(result, stats, own, bins, window, start))
    flushes = histogram.merge(part.sync() for part in parts)
    if flushes is not None:
        directions.append(_flushes(result, workload.name, flushes, window, start))
    return JobMeasurement(workload, start, window, tuple(directions))


def _segments(result: Result, job: str) -> pl.DataFrame | None:
    frame = result.latency_frame
    return None if frame is None else frame.filter(pl.col("job") == job)


def _window(
    rows: pl.DataFrame,
    bins: pl.DataFrame,
    start: float,
    workload: comparison.Workload,
    segments: pl.DataFrame | None,
) -> Window:
    """The window of a job: judged by the I/Os of all its directions together."""
    lasted = max((float(job.get("job_runtime") or 0) for job in workload.jobs), default=0.0) / 1e3
    if rows.is_empty():
        return Window(0.0, lasted, "unknown")
    end = float(rows["time_s"].max()) - start  # type: ignore[arg-type]
    if workload.recorded:
        return Window(0.0, end, "recorded")
    if workload.reads_back:
        return Window(0.0, end, "verified")
    time = bins["time_s"].to_numpy()
    steadiness = steady.judge(bins["iops"].to_numpy())
    if not steadiness.steady or steadiness.start == 0:
        return Window(0.0, end, steadiness.verdict)
    begin = float(time[steadiness.start - 1])
    if segments is not None and not segments.is_empty():
        # Latencies are kept by segments: what is shown together begins where one of them does.
        borders = (segments["time_s"] - segments["length_s"] - start).to_numpy()
        later = borders[borders >= begin - NEAR]
        begin = float(later.min()) if len(later) else begin
    return Window(begin, end, "steady")


def _direction(
    result: Result,
    stats: Sequence[DirectionStats],
    rows: pl.DataFrame,
    bins: pl.DataFrame,
    window: Window,
    start: float,
) -> Direction:
    job, ddir = stats[0].job, stats[0].ddir
    ios, moved = sum(stat.ios for stat in stats), sum(stat.io_bytes for stat in stats)
    timed = any(stat.runtime_s for stat in stats)  # what took no time has no rate
    rates = (sum(stat.iops for stat in stats), sum(stat.bw_bytes for stat in stats))
    iops, bandwidth = rates if timed else (None, None)
    known = {
        kind: whole
        for kind in KINDS
        if (whole := histogram.merge(stat.latencies.get(kind) for stat in stats)) is not None
    }
    inside_ios, inside_bytes = ios, moved
    if not window.whole:
        inside = rows.filter(pl.col("time_s") > start + window.start_s + NEAR)
        inside_ios, inside_bytes = int(inside["ios"].sum()), int(inside["bytes"].sum())
        iops, bandwidth = inside_ios / window.seconds, inside_bytes / window.seconds
    segments = _inside(result, job, ddir, start + window.start_s)
    kept = _by_kind(segments)
    if window.whole:
        # fio's document has the bins of one kind; those of the others, where every I/O was kept.
        told = {kind for kind, whole in known.items() if whole.known}
        kept = known | {k: h for k, h in kept.items() if k not in told and h.ios == ios}
    return Direction(
        job=job,
        ddir=ddir,
        window=window,
        ios=inside_ios,
        bytes=inside_bytes,
        iops=iops,
        bw_bytes=bandwidth,
        latencies=kept,
        stretch=_stretch(result, window, start, ddir),
        bins=bins,
        segments=_of_kind(segments, "clat"),
        total_ios=ios,
    )


def _flushes(result: Result, job: str, whole: Histogram, window: Window, start: float) -> Direction:
    segments = _inside(result, job, SYNC, start + window.start_s)
    found = whole if window.whole else _by_kind(segments).get("lat")
    timed = found is not None and window.seconds > 0
    return Direction(
        job=job,
        ddir=SYNC,
        window=window,
        ios=None if found is None else found.ios,
        bytes=None,
        iops=found.ios / window.seconds if found is not None and timed else None,
        bw_bytes=None,
        latencies={} if found is None else {"lat": found},
        stretch=NO_STRETCH,
        bins=series.per_second(result.series(job, SYNC), result.interval_s, start),
        segments=_of_kind(segments, "lat"),
        total_ios=whole.ios,
    )


def _inside(result: Result, job: str, ddir: str, from_s: float) -> pl.DataFrame | None:
    """The segments after an instant of the run's clock."""
    frame = result.latency_frame
    if frame is None:
        return None
    return frame.filter(
        (pl.col("job") == job) & (pl.col("ddir") == ddir) & (pl.col("time_s") > from_s + NEAR)
    )


def _of_kind(segments: pl.DataFrame | None, kind: str) -> pl.DataFrame | None:
    return None if segments is None else segments.filter(pl.col("kind") == kind)


def _by_kind(segments: pl.DataFrame | None) -> dict[str, Histogram]:
    if segments is None:
        return {}
    kinds = segments["kind"].unique(maintain_order=True)
    return {kind: together(segments.filter(pl.col("kind") == kind)) for kind in kinds}


def together(segments: pl.DataFrame) -> Histogram:
    """The histogram of several segments of one kind."""
    if segments.is_empty():
        return histogram.NOTHING
    flat = segments.select("bins", "counts").explode("bins", "counts").drop_nulls()
    counts = np.zeros(BINS, dtype=np.int64)
    np.add.at(counts, flat["bins"].to_numpy(), flat["counts"].cast(pl.Int64).to_numpy())
    busy = segments.filter(pl.col("ios") > 0)
    return Histogram(
        int(segments["ios"].sum()),
        counts,
        float(segments["sum_ns"].sum()),
        float(busy["min_ns"].min() or 0),  # type: ignore[arg-type]
        float(busy["max_ns"].max() or 0),  # type: ignore[arg-type]
    )


def _stretch(result: Result, window: Window, start: float, ddir: str) -> Stretch:
    if ddir not in ("read", "write") or result.device_series() is None:
        return NO_STRETCH
    found = Stretch.of(result, start + window.start_s, start + window.end_s)
    own = ddir == "write" or (not found.host_bytes and found.written.host)
    return found if own else NO_STRETCH
