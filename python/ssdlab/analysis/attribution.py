"""Attribution: where the time of the mean, the p99, the p99.9 and the worst I/O went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from ssdlab.histogram import carries
from ssdlab.results import CLASS_SCHEMA

if TYPE_CHECKING:
    from ssdlab.analysis.measurement import Direction
    from ssdlab.results import Result

Point = Literal["mean", "p99", "p99.9", "worst"]

PERCENTS: Mapping[Point, float] = {"p99": 99.0, "p99.9": 99.9, "worst": 100.0}


@dataclass(frozen=True)
class Breakdown:
    """Mean nanoseconds per I/O by part, over the I/Os of one latency class (or over all)."""

    point: Point
    ios: int
    ns: dict[str, float]
    """By part, in the order of the result's list; parts without time are left out."""
    whole: bool = True
    """Whether it is of the whole job, else of its measurement window."""

    @property
    def total_ns(self) -> float:
        """Mean latency of these I/Os in ns."""
        return sum(self.ns.values())

    @property
    def shares(self) -> dict[str, float]:
        """Share of the time by part; adds up to 1."""
        total = self.total_ns
        return {part: ns / total for part, ns in self.ns.items()} if total else {}


def breakdowns(parts: Sequence[str], direction: Mapping[str, Any]) -> list[Breakdown]:
    """Breaks one direction down (`attribution["write"]` of a result, docs/results.md).

    The class of p99 is the latency class in which the I/O at rank 99 % lies, and so on, as far as
    there are enough I/Os; the worst class is the highest one with I/Os in it. Empty if there were
    no I/Os.
    """
    classes = sorted(
        (c for c in direction.get("by_latency", []) if c["ios"]), key=lambda c: int(c["upper_ns"])
    )
    ios = sum(int(c["ios"]) for c in classes)
    if ios == 0:
        return []
    out = [_breakdown("mean", parts, direction["total_ns"], ios)]
    for point, percent in PERCENTS.items():
        if percent < 100 and not carries(ios, percent):
            continue
        chosen = _class_at(classes, round(percent * ios / 100, 6))
        out.append(_breakdown(point, parts, chosen["ns"], int(chosen["ios"])))
    return out


def of_direction(result: Result, direction: Direction) -> tuple[list[Breakdown], bool]:
    """The breakdowns of one direction of a job in its measurement window (of old runs, in the whole
    job), and whether they cover other jobs of the run as well; empty where the target does not tell
    where the time goes."""
    found = result.attribution
    if not found:
        return [], False
    parts, by_job = found.get("parts", []), found.get("jobs")
    own = found if by_job is None else by_job.get(direction.job, {})
    inside = _by_latency(direction.segments, len(parts))
    told = own.get(direction.ddir) if inside is None else inside
    points = breakdowns(parts, told) if told else []
    if inside is not None:
        points = [replace(point, whole=direction.window.whole) for point in points]
    # Asked only where it matters: the whole run may not have been measured yet.
    others = by_job is None and any(
        one.job != direction.job and one.ddir == direction.ddir
        for one in result.measurement.directions
    )
    return points, others


def _by_latency(segments: pl.DataFrame | None, parts: int) -> dict[str, Any] | None:
    """What ``attribution`` tells of a whole job, of these segments; None where they do not tell."""
    if segments is None or "class_ios" not in segments.columns:
        return None
    known = segments.select(CLASS_SCHEMA.names()).filter(pl.col("class_ios").list.len() > 0)
    upper, ios, ns = (known[name].explode().to_numpy() for name in CLASS_SCHEMA.names())
    if len(ns) != len(upper) * parts:
        return None  # of another version than the names of the parts
    edges, row = np.unique(upper, return_inverse=True)
    counts = np.zeros((len(edges), 1 + parts), np.int64)
    np.add.at(counts, row, np.column_stack([ios, ns.reshape(-1, parts)]).astype(np.int64))
    classes = [
        {"upper_ns": int(edge), "ios": int(count[0]), "ns": count[1:].tolist()}
        for edge, count in zip(edges, counts, strict=True)
    ]
    return {"total_ns": counts[:, 1:].sum(axis=0).tolist(), "by_latency": classes}


def _class_at(classes: Sequence[Mapping[str, Any]], rank: float) -> Mapping[str, Any]:
    seen = 0
    for latency_class in classes:
        seen += int(latency_class["ios"])
        if seen >= rank:
            return latency_class
    return classes[-1]


def _breakdown(point: Point, parts: Sequence[str], ns: Sequence[float], ios: int) -> Breakdown:
    return Breakdown(
        point, ios, {part: time / ios for part, time in zip(parts, ns, strict=True) if time}
    )
