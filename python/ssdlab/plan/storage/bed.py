"""A simulated store that several jobs run on, one after the other, and what each of them did."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ssdlab import _core, wear
from ssdlab.arrays.readings import Reading, read
from ssdlab.errors import Interrupted
from ssdlab.jobfile import JobText
from ssdlab.memory import available_bytes
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.target import sim_progress, sim_result
from ssdlab.units import SEED_MAX

INTERVAL_MS = 100
SEED_STEP = 1_000_003
_HOST_BYTES = ("cache_host_bytes_written", "array_bytes_written", "host_bytes_written")


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

    Raises InputError where the rig is wrong or takes more memory than ``memory_bytes``, or than
    there is.
    """

    def __init__(self, rig: str, name: str, seed: int, memory_bytes: int | None) -> None:
        self.seed = seed
        self.name = name
        limits = [one for one in (memory_bytes, available_bytes()) if one is not None]
        most = min(limits, default=None)
        self.drive = _core.Drive(rig, rig_name=name, seed=seed, memory_bytes=most)
        self.capacity = self.drive.capacity_bytes
        self.runs = 0

    def prepare(self, steps: str, progress: ProgressCallback) -> None:
        """As ``--prepare`` of other commands."""
        self._guarded(progress, lambda report: self.drive.prepare(steps, progress=report))

    def run(self, job: JobText, progress: ProgressCallback) -> Ran:
        """Runs a job; the device goes on from where it was.

        Each has a seed of its own: who writes the same places in the same order once more finds
        them in the cache, and side by side in the flash.
        """
        seed = (self.seed + SEED_STEP * self.runs) % (SEED_MAX + 1)
        self.runs += 1
        before, begin = self.drive.counters(), self.drive.now_s
        output: list[_core.RunOutput] = []

        def work(report: Callable[[_core.Progress], bool]) -> None:
            output.append(
                self.drive.run(
                    job.text,
                    job_name=job.name,
                    seed=seed,
                    environment=dict(os.environ),
                    include=job.include(),
                    traces=job.traces(),
                    progress=report,
                    interval_ms=INTERVAL_MS,
                )
            )

        self._guarded(progress, work)
        after = self.drive.counters()
        grown = {name: value - before.get(name, 0) for name, value in after.items()}
        result = sim_result(self.name, job, output[0])
        return Ran(read(result), self.drive.now_s - begin, grown, after)

    def _guarded(
        self,
        progress: ProgressCallback,
        work: Callable[[Callable[[_core.Progress], bool]], None],
    ) -> None:
        stopped = False

        def report(news: _core.Progress) -> bool:
            nonlocal stopped
            stopped = not progress(sim_progress(news))
            return not stopped

        try:
            work(report)
        except KeyboardInterrupt:
            raise Interrupted("stopped by Ctrl-C; nothing was kept") from None
        except Exception:
            if stopped:
                raise Interrupted("stopped; nothing was kept") from None
            raise


def stage(progress: ProgressCallback, place: int, of: int) -> ProgressCallback:
    """The progress of one job among several."""

    def tell(news: Progress) -> bool:
        return progress(Progress((place + (news.fraction or 0.0)) / of, None, news.text))

    return tell


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
    host = next((n for n in (ran.last(key) for key in _HOST_BYTES) if n), 0)
    found: list[Worn] = []
    for name in ran.grown:
        place, _, last = name.rpartition("/")
        if last != "host_units_written" or ("cache" in place.split("/")) != cache:
            continue
        start = f"{place}/" if place else ""
        own = {n.removeprefix(start): v for n, v in ran.grown.items() if n.startswith(start)}
        now = {n.removeprefix(start): v for n, v in ran.counters.items() if n.startswith(start)}
        flash = wear.flash_of(now)
        lasts = None if flash is None else wear.endurance(flash, wear.smart(flash, now), own)
        if flash is None or lasts is None or not host:
            continue
        share = own["host_units_written"] * flash.unit_bytes / host
        found.append(Worn(lasts.write_amplification, lasts.dwpd_5_years, share))
    return max(found, key=lambda one: one.share * one.write_amplification, default=None)
