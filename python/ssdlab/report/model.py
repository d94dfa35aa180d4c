"""What the report shows, computed from results before anything is drawn or worded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ssdlab import explain
from ssdlab.analysis import attribution, comparison, consistency, flash
from ssdlab.analysis.attribution import Breakdown
from ssdlab.analysis.measurement import SYNC, Direction, JobMeasurement, Window
from ssdlab.answer import MARK, Check, any_doubt
from ssdlab.checks import examine, of_result
from ssdlab.histogram import Histogram
from ssdlab.report import style
from ssdlab.results import Result

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


@dataclass(frozen=True)
class Trace:
    """One direction of one workload of one run."""

    run: Run
    job: JobMeasurement
    measured: Direction
    """Its numbers, all of the measurement window."""
    attribution: list[Breakdown]
    attribution_shared: bool
    """Whether the breakdown covers other jobs of the run as well."""

    @property
    def workload(self) -> comparison.Workload:
        """The job, with its options."""
        return self.job.workload

    @property
    def ddir(self) -> str:
        """The direction."""
        return self.measured.ddir

    @property
    def bins(self) -> pl.DataFrame:
        """One-second bins on the job's clock (`analysis.series.per_second`)."""
        return self.measured.bins

    @property
    def latency(self) -> Histogram | None:
        """Latencies of the window."""
        return self.measured.latency

    @property
    def iops(self) -> float | None:
        """IOPS of the window."""
        return self.measured.iops

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

    @property
    def window(self) -> Window:
        """The measurement window, seconds since the job's start."""
        return self.measured.window

    @property
    def consistency(self) -> consistency.Consistency | None:
        """How even the window is; None if there is no series."""
        return self.measured.consistency

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
        found = (
            None if frame is None else flash.activity(frame, max(1.0, self.run.result.interval_s))
        )
        if found is None:
            return None
        clock = pl.col("time_s") - self.job.start_s
        during = found.filter((clock > 1e-6) & (clock <= self.lasted_s + 1e-6)).with_columns(
            time_s=clock
        )
        return None if during.is_empty() else during

    @cached_property
    def causes(self) -> dict[str, float]:
        """Write amplification over the window, by cause."""
        return flash.causes(self.measured.growth) if self.ddir == "write" else {}

    @property
    def wa(self) -> float | None:
        """Write amplification over the window."""
        return self.measured.waf

    @cached_property
    def wear(self) -> explain.Wear | None:
        """How worn the flash is at the end of the run, and how long it lasts if all goes on as in
        the measurement window; None where nothing is written to flash."""
        return explain.wear_of(self.run.result, self.measured.growth) if self.causes else None


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
    own = runs[workload.run].result.measurement.jobs
    return workload.fills(own[-1].name)


def _traces(run: Run, workload: comparison.Workload) -> list[Trace]:
    job = next(one for one in run.result.measurement.jobs if one.name == workload.name)
    found = []
    for direction in job.directions:
        points, shared = attribution.of_direction(run.result, direction)
        found.append(Trace(run, job, direction, points, shared))
    return sorted(found, key=lambda trace: (trace.ddir == SYNC, -trace.measured.total_ios))
