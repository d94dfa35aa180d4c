"""What a run did over its measurement window, and what the members of its array added to that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ssdlab.analysis import attribution
from ssdlab.analysis.measurement import JobMeasurement, measure
from ssdlab.analysis.stats import mean_of
from ssdlab.answer import WORDS, Check
from ssdlab.histogram import NOTHING, Histogram, merge
from ssdlab.results import DIRECTIONS, Result
from ssdlab.wear import Stretch

TOGETHER_S = 1e-3
"""Jobs that begin within so much of each other run together."""
_BUSY = "member0/member_busy_ns"


@dataclass(frozen=True)
class Spread:
    """Least, mean and greatest over the members."""

    min: float
    mean: float
    max: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """Of one value for each member."""
        return Spread(min(values), sum(values) / len(values), max(values))


@dataclass(frozen=True)
class Performance:
    """What the jobs of a run that were started last did together, in their windows."""

    jobs: tuple[str, ...]
    seconds: float
    iops: float
    bytes_per_s: float
    capacity_bytes: int
    """What the host sees."""
    waf: float | None
    """Write amplification of the members' flash, as programmed by what the members were written."""
    latencies: Mapping[str, Histogram]
    """Completion latencies by direction."""
    parts: Mapping[str, float]
    """Share of the time of all I/Os by part (docs/results.md), those without time left out."""
    utilisation: Spread | None = None
    """Share of the time in which a member had a command; None for a drive alone."""
    written: Spread | None = None
    """Bytes written to a member; None for a drive alone."""
    member_ios: float | None = None
    """Commands of members for each of the host; None for a drive alone."""
    shared: Mapping[str, float] = field(default_factory=dict)
    """Share of the time in which what the members share was busy: ``bus``, ``card`` (its cores),
    ``host bus`` (the card's bandwidth); only what there is."""
    troubles: Sequence[Check] = ()
    """What puts it in doubt, where that was asked."""
    by_seed: Sequence[float] = ()
    """IOPS with each seed, where it was run with several."""

    @staticmethod
    def over_seeds(runs: Sequence[Performance]) -> Performance:
        """Of runs that differ in their seeds: the mean of their rates and the I/Os of all of them;
        what there is to say of members is that of the first."""
        latencies = {
            ddir: merge(run.latencies.get(ddir) for run in runs) or NOTHING
            for ddir in runs[0].latencies
        }
        return replace(
            runs[0],
            iops=mean_of([run.iops for run in runs]),
            bytes_per_s=mean_of([run.bytes_per_s for run in runs]),
            latencies=latencies,
            troubles=[trouble for run in runs for trouble in run.troubles],
            by_seed=[run.iops for run in runs],
        )

    @staticmethod
    def of(result: Result, *, whole: bool = False) -> Performance:
        """Of a result, in the measurement windows of its jobs; or, ``whole``, from beginning to
        end: passes of one load compare only if all of their requests count."""
        spans = result.ssdlab["jobs"]
        last = max(float(span["started_s"]) for span in spans) - TOGETHER_S
        names = {str(span["name"]) for span in spans if float(span["started_s"]) >= last}
        measured = measure(result, whole=True) if whole else result.measurement
        jobs = [job for job in measured.jobs if job.name in names]
        begin = min(job.start_s + job.window.start_s for job in jobs)
        end = max(job.start_s + job.window.end_s for job in jobs)
        stretch = Stretch.of(result, begin, end)
        told = [direction for job in jobs for direction in job.own if direction.ddir in DIRECTIONS]
        by_direction = {
            ddir: merge(direction.latency for direction in told if direction.ddir == ddir)
            for ddir in DIRECTIONS
        }
        return Performance(
            jobs=tuple(job.name for job in jobs),
            seconds=end - begin,
            iops=sum(direction.iops or 0.0 for direction in told),
            bytes_per_s=sum(direction.bw_bytes or 0.0 for direction in told),
            capacity_bytes=int(result.ssdlab["target"]["capacity_bytes"]),
            waf=stretch.amplification,
            latencies={
                ddir: histogram for ddir, histogram in by_direction.items() if histogram is not None
            },
            parts=_parts(result, jobs),
            **_members(stretch, end - begin),
        )

    @property
    def doubt(self) -> str:
        """What the worst check says of it; empty where none says anything against it."""
        said = {check.word for check in self.troubles}
        return next((word for word in WORDS.values() if word in said), "")

    @property
    def latency(self) -> Histogram:
        """Completion latencies of all directions together."""
        return merge(self.latencies.values()) or NOTHING

    @property
    def max_ns(self) -> float:
        """The largest completion latency."""
        return self.latency.max_ns

    @property
    def mean_ns(self) -> float:
        """Mean completion latency; 0 without I/Os."""
        return self.latency.mean_ns or 0.0

    def percentile_ns(self, percent: float) -> float | None:
        """A percentile of the completion latencies."""
        return self.latency.percentile_ns(percent)

    def as_json(self, *, members: bool = True) -> dict[str, Any]:
        """The object of ``--json``, with or without what only arrays have."""
        found: dict[str, Any] = {
            "jobs": list(self.jobs),
            "seconds": self.seconds,
            "iops": self.iops,
            "iops_by_seed": list(self.by_seed) or None,
            "bw_bytes": self.bytes_per_s,
            **self.latency.summary("clat"),
            "capacity_bytes": self.capacity_bytes,
            "waf": self.waf,
            "time_shares": dict(self.parts),
        }
        if members:
            found["member_utilisation"] = self.utilisation and asdict(self.utilisation)
            found["member_written_bytes"] = self.written and asdict(self.written)
            found["member_ios_per_io"] = self.member_ios
            found["shared_utilisation"] = dict(self.shared)
        return found


def _parts(result: Result, jobs: Sequence[JobMeasurement]) -> dict[str, float]:
    """Where the time of the I/Os went, by share."""
    spent: dict[str, float] = {}
    for direction in (direction for job in jobs for direction in job.own):
        points, _ = attribution.of_direction(result, direction)
        for part, ns in points[0].ns.items() if points else ():
            spent[part] = spent.get(part, 0.0) + ns * points[0].ios
    whole = sum(spent.values())
    return {part: ns / whole for part, ns in spent.items()} if whole else {}


def _members(stretch: Stretch, seconds: float) -> dict[str, Any]:
    """What the counters say of an array's members; empty where there is no array."""
    grown, span_ns = stretch.grown, seconds * 1e9
    first_busy = next((name for name in grown if name.endswith(_BUSY)), None)
    if first_busy is None or not span_ns:
        return {}
    # Behind a card an array stands one place further down.
    array = re.escape(prefix := first_busy.removesuffix(_BUSY))
    busy_names = [one for one in grown if re.fullmatch(rf"{array}member\d+/member_busy_ns", one)]
    members = [name.removesuffix("busy_ns") for name in busy_names]

    def share(name: str, of: float = 1.0) -> float:
        # A command under way counts up to its end: too much at one end, too little at the other.
        return min(1.0, grown[name] / (of * span_ns))

    commands = sum(grown[f"{member}reads"] + grown[f"{member}writes"] for member in members)
    host = grown[f"{prefix}array_reads"] + grown[f"{prefix}array_writes"]
    shared = {}
    if f"{prefix}bus_out_ns" in grown:
        shared["bus"] = max(share(f"{prefix}bus_{way}_ns") for way in ("out", "in"))
    if prefix and "busy_cores_ns" in grown:
        shared["card"] = share("busy_cores_ns", float(stretch.counters["cores"]))
        shared["host bus"] = share("busy_bus_ns")
    return {
        "utilisation": Spread.of([share(f"{member}busy_ns") for member in members]),
        "written": Spread.of([grown[f"{member}bytes_written"] for member in members]),
        "member_ios": commands / host if host else None,
        "shared": shared,
    }
