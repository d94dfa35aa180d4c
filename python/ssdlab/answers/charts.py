"""What of runs stands beside each other: directions of jobs, and their charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ssdlab import units
from ssdlab.analysis import attribution, flash, names
from ssdlab.analysis.attribution import PERCENTS, Breakdown
from ssdlab.analysis.measurement import Direction, JobMeasurement
from ssdlab.answer import Check, Curve, Figure, Style
from ssdlab.checks import still_moving, worst_word
from ssdlab.histogram import NOTHING
from ssdlab.results import Result
from ssdlab.wear import Wear

LINES: tuple[Style, ...] = ("line", "dashed", "dotted")
"""Curves of one run in a chart where colours tell the runs apart."""
LOG_FROM = 8.0
"""Rates that differ by more than this factor are drawn on a log axis."""
WORTH = 0.01
"""Parts of the time below this share are not named."""
STEPS = 200
"""Stretches of a job over which shares of the time are drawn."""


@dataclass(frozen=True)
class ShownResult:
    """One result with its place among those shown."""

    place: int
    label: str
    result: Result
    checks: Sequence[Check]


@dataclass(frozen=True)
class Trace:
    """One direction of one job of one run."""

    run: ShownResult
    job: JobMeasurement
    measured: Direction
    alone: bool
    """Whether the run has no other direction in this job."""

    @property
    def source(self) -> str:
        """What its numbers and charts carry, for marks of doubt."""
        return f"run-{self.run.place}/{self.job.name}"

    @property
    def doubt(self) -> str:
        """What the worst check says of them: ``not valid``, ``in doubt``, or nothing."""
        return worst_word(self.run.checks, self.job.name)

    @property
    def told(self) -> str:
        """Where its numbers are from (:attr:`Window.told`), and no steady state that is doubted."""
        if still_moving(self.run.checks, self.job):
            return "steady by the PTS rule, but still moving"
        return self.measured.window.told

    @property
    def settled(self) -> bool:
        """Whether its rate is the steady drive's, or the trace's, so that nothing is open."""
        alike = self.measured.window.verdict in ("steady", "recorded")
        return alike and not still_moving(self.run.checks, self.job)

    @property
    def doubted(self) -> bool:
        """Whether they carry a mark."""
        return bool(self.doubt)

    @property
    def name(self) -> str:
        """The run, with the direction where there are several."""
        return self.run.label if self.alone else f"{self.run.label}, {self.measured.ddir}"

    @property
    def colour(self) -> int:
        """Of the run, on the whole page."""
        return self.run.place

    @cached_property
    def points(self) -> list[Breakdown]:
        """Where the time went; empty where the target does not tell."""
        return attribution.of_direction(self.run.result, self.measured)[0]

    @cached_property
    def causes(self) -> dict[str, float]:
        """Write amplification of the window by cause."""
        return self.measured.stretch.causes

    @cached_property
    def wear(self) -> Wear | None:
        """How worn the flash is, and how long it lasts if all goes on as in the window."""
        return self.measured.stretch.wear if self.causes else None


def first_of_each(traces: Sequence[Trace]) -> list[Trace]:
    """The main direction of each run."""
    first: dict[int, Trace] = {}
    for trace in traces:
        first.setdefault(trace.run.place, trace)
    return list(first.values())


def over_time(traces: Sequence[Trace]) -> list[Figure]:
    """IOPS against time, the window shaded where there is one run."""
    curves = [
        Curve(t.name, *_column(t, "iops"), LINES[_nth(traces, t)], t.colour)
        for t in traces
        if t.measured.bins.height
    ]
    values = np.array([y for curve in curves for y in curve.y])
    # Seconds without any I/O have no place on a log axis: a line would be drawn across them.
    wide = bool(len(values)) and values.min() > 0
    spread = float(values.max() / np.percentile(values, 1)) if wide else 1.0
    window = traces[0].measured.window if len({t.run.place for t in traces}) == 1 else None
    return [
        Figure(
            "IOPS over time",
            "time, s",
            "IOPS",
            curves,
            log_y=spread > LOG_FROM,
            wide=True,
            sources=_sources(traces),
            window=(window.start_s, window.end_s) if window is not None else None,
            note="Shaded: the measurement window, which all numbers are of." if window else "",
        )
    ] if drawn(curves) else []  # fmt: skip


def drawn(curves: Iterable[Curve]) -> bool:
    """Whether a chart of these shows anything: a line takes two points."""
    return any(len(curve.x) > 1 for curve in curves)


def _nth(traces: Sequence[Trace], trace: Trace) -> int:
    own = [one for one in traces if one.run.place == trace.run.place]
    return min(own.index(trace), len(LINES) - 1)


def _sources(traces: Sequence[Trace]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(trace.source for trace in traces))


def _column(trace: Trace, name: str, factor: float = 1.0) -> tuple[list[float], list[float]]:
    bins = trace.measured.bins.filter(pl.col(name).is_not_null())
    return bins["time_s"].to_list(), (bins[name].cast(pl.Float64) * factor).to_list()


def latency_over_time(traces: Sequence[Trace]) -> list[Figure]:
    """Mean, p99 and max of every second, a chart for each direction of a run."""
    kinds: tuple[tuple[str, str, Style], ...] = (
        ("mean", "lat_mean_ns", "line"),
        ("p99", "lat_p99_ns", "dashed"),
        ("max", "lat_max_ns", "dots"),
    )
    return [
        Figure(
            t.name,
            "time, s",
            "latency, us",
            [
                Curve(n, *_column(t, c, 1e-3), style, t.colour)
                for n, c, style in kinds
                if t.measured.bins[c].count()
            ],
            log_y=True,
            group="Latency over time",
            sources=(t.source,),
        )
        for t in traces
    ]


def slower(traces: Sequence[Trace]) -> Figure:
    """The latency distribution of several directions."""
    curves = []
    for trace in traces:
        value, share = (trace.measured.latency or NOTHING).slower()
        style = LINES[_nth(traces, trace)]
        points = list(value / 1e3), list(1e6 * share)
        curves.append(Curve(trace.name, *points, style, trace.colour))
    return Figure(
        "Latency distribution (CCDF)",
        "latency, us",
        "I/Os slower, ppm",
        curves,
        log_x=True,
        log_y=True,
        wide=True,
        sources=_sources(traces),
        note="1,000 ppm is p99.9.",
    )


def time_by_part(traces: Sequence[Trace]) -> list[Figure]:
    """Share of the time of the I/Os by part, over the job."""
    figures = []
    for trace in traces:
        bins = trace.measured.bins
        columns = [name for name in bins.columns if name.startswith("part_")]
        if not columns or bins.height < 2:
            continue
        values = bins.select(columns).cast(pl.Float64).fill_null(0.0).to_numpy()
        starts = np.unique(np.linspace(0, bins.height, STEPS + 1).astype(int)[:-1])
        sums = np.add.reduceat(values, starts, axis=0)
        total = sums.sum(axis=1, keepdims=True)
        shares = 100 * np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
        time = bins["time_s"].to_numpy()[starts]
        curves = [
            Curve(names.part(part), list(time), list(shares[:, n]), "line", f"part:{part}")
            for n, column in enumerate(columns)
            if shares[:, n].max() >= 100 * WORTH
            and (part := column.removeprefix("part_").removesuffix("_ns"))
        ]
        figures.append(
            Figure(trace.name, "time, s", "% of the time of its I/Os", curves, y_max=100.0,
                   group="Where the time goes, over time", sources=(trace.source,))
        )  # fmt: skip
    return figures


def where_the_time_goes(traces: Sequence[Trace]) -> list[Figure]:
    """Shares of the time of the mean and of the slowest I/Os, stacked."""
    figures = []
    for trace in traces:
        parts = dict.fromkeys(part for point in trace.points for part in point.ns)
        shares = {part: [100 * p.shares.get(part, 0.0) for p in trace.points] for part in parts}
        shown = {part: of for part, of in shares.items() if max(of) >= 100 * WORTH}
        if len(shown) < len(shares):
            small = (of for part, of in shares.items() if part not in shown)
            shown["other"] = [sum(of) for of in zip(*small, strict=True)]
        places = [float(n) for n in range(len(trace.points))]
        curves = [
            Curve(names.part(part), places, of, "stack", f"part:{part}")
            for part, of in shown.items()
        ]
        ticks = [_tick(trace, p) for p in trace.points]
        figures.append(
            Figure(trace.name, "", "% of the latency", curves, y_max=100.0, x_names=ticks,
                   group="Where the time goes", sources=(trace.source,))
        )  # fmt: skip
    return figures


def _tick(trace: Trace, point: Breakdown) -> str:
    """A point with its latency, as tables have it; the shares are of the class around it."""
    latency = trace.measured.latency
    if latency is None or point.whole != trace.measured.window.whole:
        return point.point
    if point.point in ("mean", "worst"):
        ns: float | None = latency.mean_ns if point.point == "mean" else latency.max_ns
    else:
        ns = latency.percentile_ns(PERCENTS[point.point])
    return f"{point.point}: {units.latency(ns)}"


INSIDE = (
    ("wa", "Write amplification over time", "WA in each second", 1.0),
    ("relocated_bytes", "Garbage collection over time", "relocated by GC, MB/s", 1e-6),
    ("folded_bytes", "SLC cache over time", "folded, MB/s", 1e-6),
    ("free_blocks", "Free superblocks over time", "free superblocks", 1.0),
)
"""Columns of `analysis.flash.activity`, with title, axis and factor of their chart."""


def inside(traces: Sequence[Trace]) -> list[Figure]:
    """What went on inside the drives."""
    seen = []
    for trace in first_of_each([t for t in traces if t.measured.ddir == "write"]):
        frame = trace.run.result.device_series()
        found = (
            None if frame is None else flash.activity(frame, max(1.0, trace.run.result.interval_s))
        )
        if found is None:
            continue
        clock = pl.col("time_s") - trace.job.start_s
        during = (clock > 1e-6) & (clock <= trace.measured.window.end_s + 1e-6)
        seen.append((trace, found.filter(during).with_columns(time_s=clock)))
    return [
        Figure(
            title,
            "time, s",
            axis,
            [
                Curve(
                    t.run.label,
                    known["time_s"].to_list(),
                    (known[column] * factor).to_list(),
                    "line",
                    t.colour,
                )
                for t, frame in seen
                if column in frame.columns
                # Where nothing was collected or folded, there is nothing to see.
                and (known := frame.filter(pl.col(column).is_not_null()))[column].ne(0).any()
            ],
            sources=_sources([t for t, _ in seen]),
        )
        for column, title, axis, factor in INSIDE
    ]
