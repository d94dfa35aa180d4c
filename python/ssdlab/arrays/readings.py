"""What a run on an array says: rates, latencies, members, and where the time went."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ssdlab import wear
from ssdlab.histogram import NOTHING, Histogram, merge
from ssdlab.results import Result

TOLERANCE_S = 1e-3
"""Jobs that begin within so much of each other run together."""
_BUSY = "member0/member_busy_ns"


@dataclass(frozen=True)
class Spread:
    """Least, mean and greatest over the members."""

    least: float
    mean: float
    greatest: float

    def as_json(self) -> dict[str, float]:
        """The object of ``--json``."""
        return {"min": self.least, "mean": self.mean, "max": self.greatest}


@dataclass(frozen=True)
class Reading:
    """What the jobs of a run that were started last did together."""

    jobs: tuple[str, ...]
    seconds: float
    iops: float
    bytes_per_s: float
    capacity_bytes: int
    """What the host sees."""
    waf: float | None
    """Write amplification of the members' flash, as programmed by what the members were written."""
    utilisation: Spread | None
    """Share of the time in which a member had a command; None for a drive alone."""
    written: Spread | None
    """Bytes written to a member; None for a drive alone."""
    member_ios: float | None
    """Commands of members for each of the host; None for a drive alone."""
    latency: Histogram
    """Completion latencies of all jobs together."""
    shared: Mapping[str, float]
    """Share of the time in which what the members share was busy: ``bus``, ``card`` (its cores),
    ``host bus`` (the card's bandwidth); only what there is."""
    parts: Mapping[str, float]
    """Share of the time of all I/Os by part (docs/results.md), those without time left out."""

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

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""
        return {
            "jobs": list(self.jobs),
            "seconds": self.seconds,
            "iops": self.iops,
            "bytes_per_s": self.bytes_per_s,
            **self.latency.summary("clat"),
            "capacity_bytes": self.capacity_bytes,
            "waf": self.waf,
            "member_utilisation": self.utilisation and self.utilisation.as_json(),
            "member_written_bytes": self.written and self.written.as_json(),
            "member_ios_per_io": self.member_ios,
            "shared_utilisation": dict(self.shared),
            "time_shares": dict(self.parts),
        }


def read(result: Result) -> Reading:
    """The reading of a result."""
    about = result.ssdlab
    spans = about["jobs"]
    last = max(float(one["started_s"]) for one in spans)
    chosen = [one for one in spans if float(one["started_s"]) >= last - TOLERANCE_S]
    names = tuple(dict.fromkeys(str(one["name"]) for one in chosen))
    begin = min(float(one["measured_from_s"]) for one in chosen)
    end = max(float(one["ended_s"]) for one in chosen)
    stats = [one for job in result.jobs if job.name in names for one in job.directions()]
    members = _members(result.device_series(), begin, end) or _Members()
    amplified = [float(one["waf"]) for one in chosen if one.get("waf") is not None]
    return Reading(
        jobs=names,
        seconds=end - begin,
        iops=sum(one.iops for one in stats),
        bytes_per_s=sum(one.bw_bytes for one in stats),
        capacity_bytes=int(about["target"]["capacity_bytes"]),
        waf=max(amplified, default=None),
        utilisation=members.utilisation,
        written=members.written,
        member_ios=members.ios_per_host_io,
        latency=merge(one.clat for one in stats) or NOTHING,
        shared=members.shared,
        parts=_parts(result.attribution or {}),
    )


@dataclass(frozen=True)
class _Members:
    utilisation: Spread | None = None
    written: Spread | None = None
    ios_per_host_io: float | None = None
    shared: Mapping[str, float] = field(default_factory=dict)


def _members(series: pl.DataFrame | None, begin: float, end: float) -> _Members | None:
    """Counters of an array's members between two moments, as near as the series tells."""
    first_busy = (
        next((n for n in series.columns if n.endswith(_BUSY)), None) if series is not None else None
    )
    if series is None or first_busy is None:
        return None
    # Behind a card an array stands one place further down.
    array = first_busy.removesuffix(_BUSY)
    time = series["time_s"].to_list()
    first = max((t for t in time if t <= begin + 1e-9), default=time[0])
    until = next((t for t in time if t >= end - 1e-9), time[-1])
    grown, span_ns = wear.grown(series, first, until), (until - first) * 1e9

    def share(name: str) -> float:
        # What is under way counts up to its end: too much at one end.
        return min(1.0, grown[name] / span_ns) if span_ns else 0.0

    count = sum(
        bool(re.fullmatch(rf"{re.escape(array)}member\d+/member_busy_ns", n)) for n in grown
    )
    place = [f"{array}member{i}/member_" for i in range(count)]
    # A command under way counts up to its member's last event: too little at one end, and so
    # perhaps too much between both.
    busy = [share(f"{one}busy_ns") for one in place]
    commands = sum(grown[f"{one}reads"] + grown[f"{one}writes"] for one in place)
    host = grown[f"{array}array_reads"] + grown[f"{array}array_writes"]
    shared = {}
    if f"{array}bus_out_ns" in grown:
        shared["bus"] = max(share(f"{array}bus_{way}_ns") for way in ("out", "in"))
    if array and "busy_cores_ns" in grown:
        cores = float(series["cores"][-1])
        shared["card"] = min(1.0, grown["busy_cores_ns"] / (cores * span_ns)) if span_ns else 0.0
        shared["host bus"] = share("busy_bus_ns")
    return _Members(
        _spread(busy),
        _spread([grown[f"{one}bytes_written"] for one in place]),
        commands / host if host else None,
        shared,
    )


def _spread(values: Sequence[float]) -> Spread:
    return Spread(min(values), sum(values) / len(values), max(values))


def _parts(attribution: Mapping[str, Any]) -> dict[str, float]:
    names = attribution.get("parts", [])
    sums = [0.0] * len(names)
    for direction in ("read", "write"):
        for place, ns in enumerate((attribution.get(direction) or {}).get("total_ns", [])):
            sums[place] += float(ns)
    whole = sum(sums)
    return {name: ns / whole for name, ns in zip(names, sums, strict=True) if ns} if whole else {}
