"""A simulated store that several jobs run on, one after the other, and what each of them did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
import polars as pl

from ssdlab import wear
from ssdlab.arrays.performance import Performance
from ssdlab.bench import Seat
from ssdlab.bench.session import Around
from ssdlab.checks import examine, of_result
from ssdlab.checks.base import State
from ssdlab.jobfile import JobText
from ssdlab.plan.rounds import halves, stages
from ssdlab.plan.warmup import RISING, Ramp
from ssdlab.plan.workload import Load
from ssdlab.progress import ProgressCallback, within
from ssdlab.results import Result
from ssdlab.units import SEED_MAX

INTERVAL_MS = 100
SEED_STEP = 1_000_003
INTERVALS = 300
"""Of a pass, about."""
PASS_INTERVAL_MS = (10, 60_000)
FURTHER = 3
"""Passes of a trace beyond those asked for, at most, while the speed of a cache still changes."""
WARMING_IOS = 50_000_000
"""I/Os of one further pass of a job, at most."""
Found = Literal["hits", "partial", "misses"]
FOUND: tuple[Found, ...] = get_args(Found)


@dataclass(frozen=True)
class JobOutcome:
    """What a job did."""

    did: Performance
    ramp: Ramp
    dirty_most: int
    """Most bytes that lay in a cache alone, of those that the storage's outermost device counts."""
    seconds: float
    """Virtual time it took, ramp included."""
    before: Mapping[str, int]
    """Counters of the storage's devices at its start."""
    counters: Mapping[str, int]
    """At its end."""
    front: Mapping[str, int] = field(default_factory=dict)
    """By how much those of RAM before the storage grew, ``dirty_bytes_most`` as it is; empty
    without."""

    def mean_ns(self, ddir: str) -> float:
        """Mean latency of a direction; 0 without I/Os."""
        histogram = self.did.latencies.get(ddir)
        return (histogram and histogram.mean_ns) or 0.0

    def grown(self, name: str) -> int:
        """By how much a counter grew, ramp included."""
        return self.counters.get(name, 0) - self.before.get(name, 0)

    @property
    def stretch(self) -> wear.Stretch:
        """All counters, and by how much they grew."""
        return wear.Stretch(self.counters, {name: self.grown(name) for name in self.counters})

    def dirty_bytes(self) -> int:
        """What only the cache holds at its end."""
        return _dirty(self.counters)

    def deferred(self) -> int:
        """By how many bytes what only the cache holds grew; 0 where that is next to nothing of
        it."""
        at_end, at_start = self.dirty_bytes(), _dirty(self.before)
        return at_end - at_start if at_start < RISING * at_end else 0

    def found_in_ram(self, kind: str) -> float | None:
        """Share of the ``read``s or ``write``s, cut at pages, that found their data in RAM before
        the storage; None without any."""
        whole = sum(self.front.get(f"{kind}_{one}", 0) for one in FOUND)
        return self.front[f"{kind}_hits"] / whole if whole else None

    def found(self, what: Found, *kinds: str) -> float | None:
        """Share of the ``read``s or ``write``s, or of both, that found all, some or nothing in the
        cache of the storage that is nearest to the host; None without any."""

        def last(name: str) -> int:
            same = [key for key in self.counters if key.rpartition("/")[2] == name]
            return self.grown(min(same, key=lambda key: (key.count("/"), key), default=""))

        whole = sum(last(f"{kind}_{one}") for kind in kinds for one in FOUND)
        return sum(last(f"{kind}_{what}") for kind in kinds) / whole if whole else None

    def filled(self) -> float:
        """Share of the cache's blocks in use at its end."""
        cached = {n: v for n, v in self.counters.items() if n.endswith("blocks_cached")}
        place = min(cached, key=lambda name: name.count("/"), default=None)
        if place is None:
            return 0.0
        return cached[place] / self.counters[place.replace("blocks_cached", "blocks_capacity")]


def _dirty(counters: Mapping[str, int]) -> int:
    # A card's RAM has dirty bytes, too, which a battery keeps.
    caches = [name for name in counters if name.endswith("blocks_capacity")]
    return sum(counters[f"{name.removesuffix('blocks_capacity')}dirty_bytes"] for name in caches)


class Bed:
    """A device that keeps its state from job to job; each step reports to the next of ``reports``.
    Each job has a seed of its own, unless ``seed_step`` is 0: who writes the same places in the
    same order once more finds them in the cache, and side by side in the flash. ``place`` is where
    the storage stands in the rig whose counters are told: behind RAM, if not outermost. Raises
    InputError where the rig is wrong or takes more memory than the seat has."""

    def __init__(
        self, rig: str, name: str, seed: int, seat: Seat, reports: Iterator[ProgressCallback],
        seed_step: int = SEED_STEP, place: str = "",
    ) -> None:  # fmt: skip
        self.seed, self.seed_step, self.reports, self.place = seed, seed_step, reports, place
        self.drive = seat.drive(rig, name, seed)

    @property
    def capacity(self) -> int:
        """Bytes."""
        return self.drive.capacity

    def prepare(self, steps: str) -> None:
        """As ``--prepare`` of other commands."""
        self.drive.prepare(steps, next(self.reports))

    def run(
        self,
        job: JobText,
        interval_ms: int = INTERVAL_MS,
        *,
        whole: bool = False,
        state: State | None = None,
    ) -> JobOutcome:
        """Runs a job; the device goes on from where it was. ``whole`` has all of the job counted,
        not its measurement window alone: passes of a load are compared request by request. With the
        ``state`` that it begins in, the checks examine it."""
        seed = self.seed
        self.seed = (seed + self.seed_step) % (SEED_MAX + 1)
        result, around = self.drive.run(job, next(self.reports), seed=seed, interval_ms=interval_ms)
        did, series = Performance.of(result, whole=whole), result.device_series()
        if state is not None:
            evidence = replace(of_result(result, prepared=True), initial=state)
            did = replace(did, troubles=[one for one in examine(evidence) if one.trouble])
        dirty, column = 0, f"{self.place}dirty_bytes"
        if series is not None and column in series.columns and series.height:
            dirty = int(series[column].to_numpy().max())
        return JobOutcome(
            did,
            _ramp(result, did.jobs),
            dirty,
            around.ended_s - around.began_s,
            _behind(self.place, around.before),
            _behind(self.place, around.counters),
            _front(around) if self.place else {},
        )


def _behind(place: str, counters: Mapping[str, int]) -> Mapping[str, int]:
    """The counters of a device of a rig and of what is below it."""
    if not place:
        return counters
    return {n.removeprefix(place): v for n, v in counters.items() if n.startswith(place)}


def _front(around: Around) -> Mapping[str, int]:
    """By how much those of the outermost device grew."""
    own = {name: value for name, value in around.counters.items() if "/" not in name}
    grown = {name: value - around.before.get(name, 0) for name, value in own.items()}
    return grown | {"dirty_bytes_most": own["dirty_bytes_most"]}


@dataclass(frozen=True)
class Schedule:
    """The passes of a load, as they are run on every rig."""

    load: Load
    passes: int
    """At full speed, one after another; of a job, which goes on in the further ones, one."""
    seed: int
    interval_ms: int = 1000
    """Of the series at full speed."""
    further: int = 0
    """Passes of a trace after these, at most, as long as the last differs from the one before; of
    a job, which is so too, any number of passes if this is not 0."""
    place: str = ""
    """Of the storage in the rigs, as :class:`Bed` takes it."""
    cache_bytes: int = 0
    """Of the cache in them."""


@dataclass(frozen=True)
class Passes:
    """What a rig did under the passes of a load."""

    capacity: int
    passes: Sequence[JobOutcome]
    """At full speed."""
    recorded: JobOutcome | None
    """At the times of the recording, after the others."""
    job: bool = False
    """Whether they are a job that goes on."""

    @property
    def rising(self) -> bool:
        """Whether the last pass at full speed was faster than the one before; with two passes of a
        trace the first began empty, which says nothing of a third."""
        return self._goes_by_two and self.last.did.iops * RISING > self.passes[-2].did.iops

    @property
    def falling(self) -> bool:
        """Whether it was slower than the one before: where writes are deferred, the pool is spared
        them as long as more can be."""
        return self._goes_by_two and self.last.did.iops < RISING * self.passes[-2].did.iops

    @property
    def _goes_by_two(self) -> bool:
        return len(self.passes) > (1 if self.job else 2)

    @property
    def deferred_per_s(self) -> float:
        """Bytes a second by which what only the cache holds grew in the last of several passes."""
        return self.last.deferred() / self.last.seconds if len(self.passes) > 1 else 0.0

    @property
    def measured(self) -> list[tuple[float, Ramp]]:
        """What was measured of each pass, and when that began (s)."""
        found, now = [], 0.0
        for pass_ in self.passes:
            now += pass_.seconds
            # In whole ns: what begins at 0 does so after a difference of sums, too.
            found.append((max(0.0, round(now - pass_.ramp.seconds, 9)), pass_.ramp))
        return found

    @property
    def dirty_recorded(self) -> int:
        """Most dirty bytes while the recording was followed."""
        return 0 if self.recorded is None else self.recorded.dirty_most

    @property
    def first(self) -> JobOutcome:
        """The pass that began with a cache that was empty, but for stages before it."""
        return self.passes[0]

    @property
    def last(self) -> JobOutcome:
        """The warmest pass at full speed."""
        return self.passes[-1]

    @property
    def calm(self) -> JobOutcome:
        """The pass that latencies are taken from: at recorded times, else the last."""
        return self.recorded or self.last


def run_passes(rig: str, name: str, order: Schedule, seat: Seat, state: str = "fob") -> Passes:
    """Runs all passes on one device that lives through them; a job is measured in the first, which
    begins with what the stages before have left, or empty, and then goes on. Raises InputError
    where the rig is wrong or the load does not fit on it, Interrupted."""
    load = order.load
    count = 1 if load.is_job else order.passes
    steps = count + (state != "fob") + (load.recorded is not None)
    may = count > 1 and order.further > 0
    reports = halves(seat.report) if load.is_job else _steps(seat.report, steps, may=may)

    def fresh() -> Bed:
        bed = Bed(rig, name, order.seed, seat, reports, seed_step=0, place=order.place)
        if state != "fob":
            bed.prepare(state)
        if load.before is not None:
            bed.run(load.before, order.interval_ms)
        return bed

    bed = fresh()
    outcomes = [bed.run(load.full_speed, order.interval_ms, whole=True) for _ in range(count)]
    while _goes_on(Passes(bed.capacity, outcomes, None, load.is_job), count, order):
        outcomes.append(bed.run(_going_on(load, outcomes), order.interval_ms, whole=True))
    calm = None
    if load.recorded is not None:
        if count == 1:
            # With nothing to warm it up, the recording too begins on a new device.
            bed = fresh()
        calm = bed.run(load.recorded, pass_interval(load.span_s), whole=True)
    return Passes(bed.capacity, outcomes, calm, load.is_job)


def _steps(report: ProgressCallback, known: int, *, may: bool) -> Iterator[ProgressCallback]:
    """The callbacks of as many steps as are known, of one more that ``may`` be, and of any more."""
    yield from stages(report, known + may)
    while True:
        yield within(report, 1.0, 1.0)


def _goes_on(passes: Passes, asked: int, order: Schedule) -> bool:
    """Whether another pass is worth its time: a cache gets faster, or slower where it has deferred
    as many writes as it may, and that it does is not known from a single pass of a job."""
    done, last = len(passes.passes), passes.last.did
    moves = passes.rising or passes.falling
    if not passes.job:
        return moves and done < asked + order.further
    if done == 1:
        return order.further > 0
    seconds = passes.first.did.seconds * 2**done
    if not moves and passes.deferred_per_s:
        moves = True
        room = max(0, order.cache_bytes - passes.last.dirty_bytes())
        seconds = max(seconds, room / passes.deferred_per_s)
    return order.further > 0 and moves and last.iops * seconds <= WARMING_IOS


def _going_on(load: Load, before: Sequence[JobOutcome]) -> JobText:
    """The next pass: of a trace the same; of a job what comes after twice the time that it has had,
    for as long as the first pass took. The same seed finds the same hot spots, and draws the same
    places at first, too, which are long past when the measured part begins."""
    job, first = load.full_speed, before[0]
    if not load.is_job:
        return job
    length = max(1, round(1000 * first.did.seconds))
    ramp = (2 ** len(before) - 1) * max(length, round(1000 * first.seconds))
    return job.with_options(ramp_time=f"{ramp}ms", time_based=1, runtime=f"{length}ms")


def pass_interval(seconds: float) -> int:
    """Length of an interval (ms) for a pass of so many seconds."""
    least, most = PASS_INTERVAL_MS
    return min(most, max(least, round(seconds * 1000 / INTERVALS)))


@dataclass(frozen=True)
class SsdWear:
    """What a load of writes does to one of the SSDs that take it."""

    write_amplification: float
    dwpd_5_years: float
    """Writes of the whole drive a day over five years until its rated cycles are used up."""
    written_per_host_byte: float


def wear_of(ran: JobOutcome, *, cache: bool) -> SsdWear | None:
    """The wear of the SSD that is written most, of the cache's or of the others; None where there
    is none, or it was written nothing."""
    rig = ran.stretch.wear
    wears = [
        SsdWear(member.endurance.write_amplification, dwpd, member.share)
        for path, member in (rig.members.items() if rig else ())
        if ("cache" in path.split("/")) == cache and member.endurance is not None and member.share
        if (dwpd := member.endurance.dwpd_5_years) is not None
    ]
    return max(
        wears,
        key=lambda ssd_wear: ssd_wear.written_per_host_byte * ssd_wear.write_amplification,
        default=None,
    )


def _ramp(result: Result, jobs: Sequence[str]) -> Ramp:
    frame = (
        result.series()
        .filter(pl.col("job").is_in(list(jobs)))
        .group_by("time_s")
        .agg(pl.col("ios").sum())
        .sort("time_s")
    )
    time = frame["time_s"].to_numpy().astype(np.float64)
    started = min(
        (float(one["started_s"]) for one in result.ssdlab["jobs"] if one["name"] in jobs),
        default=0.0,
    )
    return Ramp(time - started, frame["ios"].to_numpy().astype(np.float64))
