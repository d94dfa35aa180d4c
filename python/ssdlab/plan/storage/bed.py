"""A simulated store that several jobs run on, one after the other, and what each of them did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ssdlab import wear
from ssdlab.arrays.readings import Reading, read
from ssdlab.bench import Seat
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.units import SEED_MAX

INTERVAL_MS = 100
SEED_STEP = 1_000_003


@dataclass(frozen=True)
class Ran:
    """What a job did."""

    reading: Reading
    seconds: float
    """Virtual time it took, ramp included."""
    grown: Mapping[str, int]
    """By how much each counter of the devices grew, ramp included."""
    counters: Mapping[str, int]
    """At its end."""

    def last(self, name: str) -> int:
        """By how much the counter nearest to the host with that last name grew; 0 without one."""
        found = sorted(
            (key.count("/"), key) for key in self.grown if key.rpartition("/")[2] == name
        )
        return self.grown[found[0][1]] if found else 0

    def dirty_bytes(self) -> int:
        """What only the cache holds at its end."""
        places = [name.removesuffix("blocks_capacity") for name in self.counters]
        # A card's RAM has dirty bytes, too, which a battery keeps.
        return sum(
            self.counters[f"{place}dirty_bytes"]
            for place, name in zip(places, self.counters, strict=True)
            if name.endswith("blocks_capacity")
        )

    def hit_ratio(self, *kinds: str) -> float | None:
        """Share of the ``read``s or ``write``s, or of both, that found all in the cache."""
        hits = sum(self.last(f"{kind}_hits") for kind in kinds)
        rest = sum(self.last(f"{kind}_partial") + self.last(f"{kind}_misses") for kind in kinds)
        return hits / (hits + rest) if hits + rest else None

    def filled(self) -> float:
        """Share of the cache's blocks in use at its end."""
        cached = {n: v for n, v in self.counters.items() if n.endswith("blocks_cached")}
        place = min(cached, key=lambda name: name.count("/"), default=None)
        if place is None:
            return 0.0
        return cached[place] / self.counters[place.replace("blocks_cached", "blocks_capacity")]


class Bed:
    """A device that keeps its state from job to job.

    Raises InputError where the rig is wrong or takes more memory than the seat has.
    """

    def __init__(self, rig: str, name: str, seed: int, seat: Seat) -> None:
        self.seed = seed
        self.drive = seat.drive(rig, name, seed)
        self.capacity = self.drive.core.capacity_bytes
        self.runs = 0

    def prepare(self, steps: str, progress: ProgressCallback) -> None:
        """As ``--prepare`` of other commands."""
        self.drive.prepare(steps, progress)

    def run(self, job: JobText, progress: ProgressCallback) -> Ran:
        """Runs a job; the device goes on from where it was.

        Each has a seed of its own: who writes the same places in the same order once more finds
        them in the cache, and side by side in the flash.
        """
        seed = (self.seed + SEED_STEP * self.runs) % (SEED_MAX + 1)
        self.runs += 1
        core = self.drive.core
        before, begin = core.counters(), core.now_s
        result = self.drive.run(job, progress, seed=seed, interval_ms=INTERVAL_MS)
        after = core.counters()
        grown = {name: value - before.get(name, 0) for name, value in after.items()}
        return Ran(read(result), core.now_s - begin, grown, after)


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
    rig = wear.Stretch(ran.counters, ran.grown).wear
    found = [
        Worn(one.endurance.write_amplification, one.endurance.dwpd_5_years, one.share)
        for path, one in (rig.members.items() if rig else ())
        if ("cache" in path.split("/")) == cache and one.endurance is not None and one.share
    ]
    return max(found, key=lambda one: one.share * one.write_amplification, default=None)
