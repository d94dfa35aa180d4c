"""A simulated store that several jobs run on, one after the other, and what each of them did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from ssdlab import wear
from ssdlab.arrays.readings import Reading, read
from ssdlab.bench import Seat
from ssdlab.jobfile import JobText
from ssdlab.plan.warmup import Ramp
from ssdlab.progress import ProgressCallback
from ssdlab.results import Result
from ssdlab.units import SEED_MAX

INTERVAL_MS = 100
SEED_STEP = 1_000_003
Found = Literal["hits", "partial", "misses"]


@dataclass(frozen=True)
class Ran:
    """What a job did."""

    reading: Reading
    mean_ns: Mapping[str, float]
    """Mean latency by direction."""
    ramp: Ramp
    dirty_most: int
    """Most bytes that lay in a cache alone, of those that the outermost device counts."""
    seconds: float
    """Virtual time it took, ramp included."""
    before: Mapping[str, int]
    """Counters of the devices at its start."""
    counters: Mapping[str, int]
    """At its end."""

    def grown(self, name: str) -> int:
        """By how much a counter grew, ramp included."""
        return self.counters.get(name, 0) - self.before.get(name, 0)

    @property
    def stretch(self) -> wear.Stretch:
        """All counters, and by how much they grew."""
        return wear.Stretch(self.counters, {name: self.grown(name) for name in self.counters})

    def dirty_bytes(self) -> int:
        """What only the cache holds at its end."""
        places = [name.removesuffix("blocks_capacity") for name in self.counters]
        # A card's RAM has dirty bytes, too, which a battery keeps.
        return sum(
            self.counters[f"{place}dirty_bytes"]
            for place, name in zip(places, self.counters, strict=True)
            if name.endswith("blocks_capacity")
        )

    def found(self, what: Found, *kinds: str) -> float | None:
        """Share of the ``read``s or ``write``s, or of both, that found all, some or nothing in the
        cache nearest to the host; None without any."""

        def last(name: str) -> int:
            same = [key for key in self.counters if key.rpartition("/")[2] == name]
            return self.grown(min(same, key=lambda key: (key.count("/"), key), default=""))

        whole = sum(
            last(f"{kind}_{one}") for kind in kinds for one in ("hits", "partial", "misses")
        )
        return sum(last(f"{kind}_{what}") for kind in kinds) / whole if whole else None

    def filled(self) -> float:
        """Share of the cache's blocks in use at its end."""
        cached = {n: v for n, v in self.counters.items() if n.endswith("blocks_cached")}
        place = min(cached, key=lambda name: name.count("/"), default=None)
        if place is None:
            return 0.0
        return cached[place] / self.counters[place.replace("blocks_cached", "blocks_capacity")]


class Bed:
    """A device that keeps its state from job to job.

    Each job has a seed of its own, unless ``seed_step`` is 0: who writes the same places in the
    same order once more finds them in the cache, and side by side in the flash.

    Raises InputError where the rig is wrong or takes more memory than the seat has.
    """

    def __init__(
        self, rig: str, name: str, seed: int, seat: Seat, seed_step: int = SEED_STEP
    ) -> None:
        self.seed, self.seed_step = seed, seed_step
        self.drive = seat.drive(rig, name, seed)
        self.capacity = self.drive.core.capacity_bytes

    def prepare(self, steps: str, progress: ProgressCallback) -> None:
        """As ``--prepare`` of other commands."""
        self.drive.prepare(steps, progress)

    def run(self, job: JobText, progress: ProgressCallback, interval_ms: int = INTERVAL_MS) -> Ran:
        """Runs a job; the device goes on from where it was."""
        core, seed = self.drive.core, self.seed
        self.seed = (seed + self.seed_step) % (SEED_MAX + 1)
        before, begin = core.counters(), core.now_s
        result = self.drive.run(job, progress, seed=seed, interval_ms=interval_ms)
        reading, series = read(result), result.device_series()
        dirty = 0
        if series is not None and "dirty_bytes" in series.columns and series.height:
            dirty = int(series["dirty_bytes"].to_numpy().max())
        means, ramp = _means(result, reading.jobs), _ramp(result, reading.jobs)
        return Ran(reading, means, ramp, dirty, core.now_s - begin, before, core.counters())


@dataclass(frozen=True)
class Worn:
    """What a load of writes does to one of the SSDs that take it."""

    write_amplification: float
    dwpd: float
    """Writes of the whole drive a day over five years until its rated cycles are used up."""
    share: float
    """Bytes that it is written per byte that the host writes."""


def wear_of(ran: Ran, *, cache: bool) -> Worn | None:
    """The wear of the SSD that is written most: of the cache's, or of the others.

    None where there is none, or where it was written nothing.
    """
    rig = ran.stretch.wear
    found = [
        Worn(one.endurance.write_amplification, one.endurance.dwpd_5_years, one.share)
        for path, one in (rig.members.items() if rig else ())
        if ("cache" in path.split("/")) == cache and one.endurance is not None and one.share
    ]
    return max(found, key=lambda one: one.share * one.write_amplification, default=None)


def _means(result: Result, jobs: Sequence[str]) -> dict[str, float]:
    sums: dict[str, tuple[float, int]] = {}
    for job in result.jobs:
        if job.name not in jobs:
            continue
        for one in job.directions():
            total, ios = sums.get(one.ddir, (0.0, 0))
            sums[one.ddir] = (total + one.lat_mean_ns * one.ios, ios + one.ios)
    return {ddir: total / ios for ddir, (total, ios) in sums.items() if ios}


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
