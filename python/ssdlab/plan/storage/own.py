"""A load of the user's own on every candidate, in place of the loads of the price table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from ssdlab import _core, bench
from ssdlab.bench import Seat
from ssdlab.checks.base import State
from ssdlab.errors import MemoryShortError
from ssdlab.jobfile import JobText
from ssdlab.plan.bed import Bed, JobOutcome, wear_of
from ssdlab.plan.rounds import stages
from ssdlab.plan.storage.candidates import Candidate
from ssdlab.plan.storage.measure import CACHE_BYTES_MIN, Part, Simulation, Warmth
from ssdlab.plan.stores import set_all
from ssdlab.rig import reduced

LAPS, LAPS_QUICK = 60, 15
"""A job runs at most so many times on a cache; the last is the warm one."""
SETTLED = 0.05
"""Laps whose rates differ by less are alike."""
ROOM = 4
"""A store of SSDs is simulated at least so many times as large as what a job names in bytes."""
FILLED, GROWN = 0.99, 0.01
"""A cache is warm when it is full to this, or when a lap has added less than this of it."""
_ABSOLUTE = re.compile(
    r"^\s*(size|offset|offset_increment|filesize)\s*=\s*([1-9]\d{0,17}(?:[kmgt](?:i?b)?)?)\s*$",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class OwnLoad(Simulation):
    """A job, the state in which it finds SSDs, and how much smaller drives are simulated."""

    job: JobText
    prepare: str
    scale: int | None = None
    """None: as small as the price table has SSDs; larger if the job names sizes in bytes,
    and full size behind a cache then."""
    depth: int | None = None
    """I/Os in flight, of a load by name."""
    settling: JobText | None = None
    """What SSDs without a cache are written first, until their steady state is the load's."""

    @property
    def replays(self) -> bool:
        """Whether the job replays a trace, whose addresses are what they are."""
        return "read_iolog" in self.job.text

    @property
    def extent(self) -> int:
        """Bytes that the places and amounts which the job names add up to; 0 if it names none."""
        matches = _ABSOLUTE.finditer(self.job.text)
        return sum(_core.parse_fio_size(match[2]) for match in matches)

    def pieces(self, candidate: Candidate) -> list[bench.Variant[Part]]:
        """The job on the candidate, several times if it has a cache."""
        return [bench.Variant(partial(self._run, candidate))]

    def _run(self, candidate: Candidate, seat: Seat) -> Part:
        factor = self._factor(candidate)
        try:
            ran = self._ran(candidate, factor, seat)
        except MemoryShortError as error:
            raise MemoryShortError(f"{error}; --scale N scales all of it down") from None
        last = ran[-1]
        part: Part = {
            "rates": {"load": last.did},
            "worn": wear_of(last, cache=False),
            "worn_cache": wear_of(last, cache=True),
            "dirty_bytes": last.dirty_bytes() * factor,
            "notes": [f"{candidate.text}: all of it at 1/{factor} of its size"]
            if factor > 1
            else [],
        }
        if candidate.fast is not None:
            before = sum(lap.seconds for lap in ran[:-1])
            warmth = Warmth(before * factor, whole=_settled(ran[-2], last))
            part["cold"] = {"load": ran[0].did}
            part["hits"] = {"load": last.found("hits", "read", "write") or 0.0}
            part["warmth"] = {"load": warmth}
        return part

    def _ran(self, candidate: Candidate, factor: int, seat: Seat) -> list[JobOutcome]:
        """Lap after lap."""
        laps = 1 if candidate.fast is None else LAPS_QUICK if self.quick else LAPS
        flash = not candidate.pool.has_disk
        settling = self.settling if flash and laps == 1 else None
        bed = self._bed(candidate, factor, seat, flash + (settling is not None) + laps)
        if flash:
            bed.prepare(self.prepare)
        if settling is not None:
            bed.run(settling)
        state: State | None = None
        if flash and laps == 1:
            filled: State = "scattered" if self.prepare == "steady" else "full"
            state = filled if settling is None else "unknown"
        ran: list[JobOutcome] = []
        for lap in range(laps):
            # Laps are compared with each other; one alone is measured and examined like any job.
            ran.append(bed.run(self.job, whole=laps > 1, state=state))
            if lap and _settled(ran[-2], ran[-1]):
                break
        return ran

    def _factor(self, candidate: Candidate) -> int:
        """What all sizes are divided by."""
        if self.scale is not None:
            return self.scale
        if self.replays or (self.extent and candidate.fast is not None):
            return 1  # how much of it a cache holds has to stay
        stores = [part for part in candidate.stores if part.shipped and part.flash]
        if not stores:
            return 1
        size = CACHE_BYTES_MIN
        if candidate.fast is None:
            share = candidate.pool.drive_bytes / candidate.pool.usable_bytes
            size = max(self.ssd_bytes(candidate.pool), int(ROOM * self.extent * share))
        # An SSD of many dies cannot be as small as one may want.
        return max(1, min(part.drive_bytes // part.simulated_bytes(size) for part in stores))

    def _bed(self, candidate: Candidate, factor: int, seat: Seat, steps: int) -> Bed:
        """All of the candidate divided by the factor, so that every share of a size stays."""
        flash_only = candidate.fast is None and candidate.pool.flash
        rigs = []
        for part in candidate.stores:
            scaled = factor > 1 and part.shipped
            size = part.drive_bytes // factor if scaled and part.flash else None
            rig = self.resized(part, size)
            if scaled and not part.flash and not flash_only:
                set_all(rig, "hdd", {"capacity": reduced(part.drive, factor)["capacity"]})
            rigs.append(rig)
        return self.bed(candidate, rigs, factor, seat, stages(seat.report, steps))


def _settled(outcome: JobOutcome, other: JobOutcome) -> bool:
    alike = abs(other.did.iops - outcome.did.iops) <= SETTLED * other.did.iops
    return alike and (other.filled() >= FILLED or other.filled() - outcome.filled() < GROWN)
