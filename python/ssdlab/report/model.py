"""What the report shows, computed from results before anything is drawn or worded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ssdlab.analysis import comparison, consistency, flash, latency, series, steady
from ssdlab.analysis.attribution import Breakdown, breakdowns
from ssdlab.checks import examine, of_result
from ssdlab.engine.check import MARK, Check, any_doubt
from ssdlab.report import style
from ssdlab.results import DIRECTIONS, Result
from ssdlab.wear import Stretch, Wear

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One result with its place on the page."""

    index: int
    name: str
    result: Result
    checks: Sequence[Check] = ()

    @property
    def label(self) -> str:
        """Its name as it stands by all that is shown of it, with a mark where a check puts its
        numbers in doubt."""
        return f"{self.name} {MARK}" if any_doubt(self.checks) else self.name

    @property
    def colour(self) -> str:
        """The run's colour on the whole page."""
        return style.run_colour(self.index)

    @property
    def meta(self) -> Mapping[str, Any]:
        """The object `ssdlab` of the result."""
        return self.result.ssdlab

    @property
    def interval_s(self) -> float:
        """Length of an interval of the series."""
        return float(self.meta.get("interval_ms") or 1000) / 1000


@dataclass(frozen=True)
class Trace:
    """One direction of one workload of one run."""

    run: Run
    workload: comparison.Workload
    ddir: str
    ios: int
    iops: float
    bw_bytes: float
    bins: pl.DataFrame
    """One-second bins on the job's clock (`analysis.series.per_second`)."""
    start_s: float
    """When the job began, on the run's clock."""
    latency: latency.Distribution | None
    attribution: list[Breakdown]
    attribution_shared: bool
    """Whether the breakdown covers other jobs of the run as well."""

    def column(self, name: str) -> Floats:
        """A column of the bins; NaN where it is null."""
        return self.bins[name].cast(pl.Float64).to_numpy()

    @cached_property
    def time(self) -> Floats:
        """Ends of the bins, seconds since the job's start."""
        return self.column("time_s")

    @cached_property
    def rate(self) -> Floats:
        """IOPS of the bins."""
        return self.column("iops")

    def part_shares(self, steps: int) -> tuple[Floats, dict[str, Floats]] | None:
        """Share of the time by part over at most `steps` equal stretches of the job, and the
        middle of each stretch; parts that never took time are left out. None if not known."""
        names = [name for name in self.bins.columns if name.startswith("part_")]
        sums = {name: self.column(name) for name in names}
        sums = {name: values for name, values in sums.items() if values.any()}
        if not sums or len(self.time) < 2:
            return None
        starts = np.unique(np.linspace(0, len(self.time), steps + 1).astype(int)[:-1])
        by_step = {name: np.add.reduceat(values, starts) for name, values in sums.items()}
        total = np.sum(list(by_step.values()), axis=0)
        time = np.add.reduceat(self.time, starts) / np.diff(np.append(starts, len(self.time)))
        shares = {
            name.removeprefix("part_").removesuffix("_ns"): np.divide(
                values, total, out=np.zeros_like(values), where=total > 0
            )
            for name, values in by_step.items()
        }
        return time, shares

    @cached_property
    def steadiness(self) -> steady.Steadiness:
        """Steady or not, and from which bin on."""
        return steady.judge(self.rate)

    @cached_property
    def consistency(self) -> consistency.Consistency | None:
        """Numbers of the window judged; None if there is no series."""
        rate = self.rate[self.steadiness.start :]
        return consistency.measure(rate) if len(rate) else None

    @property
    def window(self) -> tuple[float, float]:
        """Begin and end of the window judged, seconds since the job's start."""
        if len(self.time) == 0:
            return 0.0, 0.0
        start = self.steadiness.start
        return (float(self.time[start - 1]) if start else 0.0), float(self.time[-1])

    @property
    def lasted_s(self) -> float:
        """Length of the job."""
        if len(self.time):
            return float(self.time[-1])
        return max(float(job.get("job_runtime") or 0) for job in self.workload.jobs) / 1000

    @cached_property
    def flash(self) -> pl.DataFrame | None:
        """Activity of the flash during the job (`analysis.flash.activity`) on the job's clock."""
        frame = self.run.result.device_series()
        found = None if frame is None else flash.activity(frame, max(1.0, self.run.interval_s))
        if found is None:
            return None
        clock = pl.col("time_s") - self.start_s
        during = found.filter((clock > 1e-6) & (clock <= self.lasted_s + 1e-6)).with_columns(
            time_s=clock
        )
        return None if during.is_empty() else during

    @cached_property
    def stretch(self) -> Stretch:
        """What the device's counters did over the window judged."""
        if self.ddir != "write":
            return Stretch({}, {})
        start, end = self.window
        return Stretch.of(self.run.result, self.start_s + start, self.start_s + end)

    @cached_property
    def causes(self) -> dict[str, float]:
        """Write amplification over the window judged, by cause."""
        return self.stretch.causes

    @property
    def wa(self) -> float | None:
        """Write amplification over the window judged."""
        return sum(self.causes.values()) if self.causes else None

    @cached_property
    def wear(self) -> Wear | None:
        """How worn the flash is at the end of the run, and how long it lasts if all goes on as in
        the window judged; None where nothing is written to flash."""
        return self.stretch.wear if self.causes else None


@dataclass(frozen=True)
class Section:
    """The same workload on all runs that have it."""

    anchor: str
    name: str
    options: Mapping[str, str]
    traces: tuple[Trace, ...]
    """By run, and within a run the busier direction first."""
    fill: bool
    """Whether it only prepares the drive."""

    @cached_property
    def main_traces(self) -> tuple[Trace, ...]:
        """The busiest direction of each run."""
        first: dict[int, Trace] = {}
        for trace in self.traces:
            first.setdefault(trace.run.index, trace)
        return tuple(first.values())


def build(results: Sequence[Result]) -> tuple[list[Run], list[Section]]:
    """Lays out the runs and the sections of the page, in the order of the jobs."""
    labels = _distinct([result.name for result in results])
    runs = []
    for place, (label, result) in enumerate(zip(labels, results, strict=True)):
        checks = examine(of_result(result))
        runs.append(Run(place, label, result, checks))
    groups = comparison.align([result.document for result in results])
    sections = []
    for number, group in enumerate(groups):
        traces = [t for member in group.members for t in _traces(runs[member.run], member)]
        if traces:
            fill = number + 1 < len(groups) and all(_only_fills(m, runs) for m in group.members)
            sections.append(
                Section(f"job-{number}", group.name, group.members[0].options, tuple(traces), fill)
            )
    return runs, sections


def _distinct(names: Sequence[str]) -> list[str]:
    """Names told apart by a number where they are alike."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(f"{name} ({seen[name]})" if names.count(name) > 1 else name)
    return out


def _only_fills(workload: comparison.Workload, runs: Sequence[Run]) -> bool:
    """Whether this is a sequential write with another job after it."""
    own = comparison.workloads(workload.run, runs[workload.run].result.document)
    rw = workload.option("rw", "readwrite").split(":")[0]
    return rw == "write" and own[-1].name != workload.name


def _traces(run: Run, workload: comparison.Workload) -> list[Trace]:
    found = [t for ddir in DIRECTIONS if (t := _trace(run, workload, ddir)) is not None]
    return sorted(found, key=lambda trace: -trace.ios)


def _trace(run: Run, workload: comparison.Workload, ddir: str) -> Trace | None:
    stats = [s for job in workload.jobs if (s := job.get(ddir)) and s.get("total_ios")]
    if not stats:
        return None
    all_rows = run.result.series(job=workload.name)
    start = series.start_s(all_rows, run.interval_s)
    rows = all_rows.filter(pl.col("ddir") == ddir)
    broken_down, shared = _attribution(run, workload, ddir)
    return Trace(
        run=run,
        workload=workload,
        ddir=ddir,
        ios=sum(int(s["total_ios"]) for s in stats),
        iops=sum(float(s.get("iops") or 0) for s in stats),
        bw_bytes=sum(float(s.get("bw_bytes") or 0) for s in stats),
        bins=series.per_second(rows, run.interval_s, start),
        start_s=start,
        latency=latency.merge(d for d in (latency.distribution(s) for s in stats) if d is not None),
        attribution=broken_down,
        attribution_shared=shared,
    )


def _attribution(
    run: Run, workload: comparison.Workload, ddir: str
) -> tuple[list[Breakdown], bool]:
    """The breakdown of this job if the result has one by job, else that of the whole run."""
    found = run.meta.get("attribution")
    if not found:
        return [], False
    parts = found.get("parts", [])
    by_job = found.get("jobs")
    if by_job is not None:
        direction = by_job.get(workload.name, {}).get(ddir)
        return (breakdowns(parts, direction) if direction else []), False
    direction = found.get(ddir)
    others = [
        other
        for other in comparison.workloads(run.index, run.result.document)
        if other.name != workload.name
        and any((job.get(ddir) or {}).get("total_ios") for job in other.jobs)
    ]
    return (breakdowns(parts, direction) if direction else []), bool(others)
