"""A load of the user's own on every candidate, in place of the loads of the price table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ssdlab import _core, bench
from ssdlab.arrays.attachment import smaller_ram
from ssdlab.bench import Seat
from ssdlab.errors import MemoryShortError
from ssdlab.jobfile import JobText
from ssdlab.plan.bed import Bed, Ran, wear_of
from ssdlab.plan.storage.candidates import Candidate
from ssdlab.plan.storage.measure import (
    CACHE_BYTES_MIN,
    Measured,
    Part,
    Request,
    Warmth,
    merged,
    ssd_bytes,
)
from ssdlab.plan.storage.sizes import (
    drive_of,
    flash,
    has_disk,
    resized,
    set_all,
    shipped,
    simulated_bytes,
    usable_bytes,
)
from ssdlab.progress import ProgressCallback, stage
from ssdlab.rig import capacity_of, reduced

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
class OwnLoad:
    """A job, the state in which it finds SSDs, and how much smaller drives are simulated."""

    job: JobText
    prepare: str = "sequential"
    scale: int | None = None
    """None: as small as the price table has SSDs; larger if the job names sizes in bytes,
    and full size behind a cache then."""

    @property
    def replays(self) -> bool:
        """Whether the job replays a trace, whose addresses are what they are."""
        return "read_iolog" in self.job.text

    @property
    def extent(self) -> int:
        """Bytes that the places and amounts which the job names add up to; 0 if it names none."""
        found = _ABSOLUTE.finditer(self.job.text)
        return sum(_core.parse_fio_size(one[2]) for one in found)


def measure_own(
    candidates: Sequence[Candidate],
    load: OwnLoad,
    request: Request,
    progress: ProgressCallback | None = None,
) -> list[Measured]:
    """Runs the job on every candidate; raises as :func:`ssdlab.plan.storage.measure.measure`."""

    def variant(one: Candidate) -> bench.Variant[Part]:
        return bench.Variant(lambda seat: _run(one, load, request, seat))

    try:
        found = bench.run([variant(one) for one in candidates], progress)
    except MemoryShortError as error:
        raise MemoryShortError(f"{error}; --scale N scales all of it down") from None
    return [merged([part]) for part in found]


def _factor(one: Candidate, load: OwnLoad, request: Request) -> int:
    if load.scale is not None:
        return load.scale
    if load.replays or (load.extent and one.fast is not None):
        return 1  # how much of it a cache holds has to stay
    stores = [part for part in (one.pool, one.fast) if part is not None and shipped(part)]
    if not any(flash(part) for part in stores):
        return 1
    size = CACHE_BYTES_MIN
    if one.fast is None:
        per_drive = ROOM * load.extent * capacity_of(drive_of(one.pool)) / usable_bytes(one.pool)
        size = max(ssd_bytes(one.pool, request), int(per_drive))
    # An SSD of many dies cannot be as small as one may want.
    found = [
        capacity_of(drive_of(part)) // simulated_bytes(part, size) for part in stores if flash(part)
    ]
    return max(1, min(found))


def _run(one: Candidate, load: OwnLoad, request: Request, seat: Seat) -> Part:
    factor = _factor(one, load, request)
    bed, note = _bed(one, factor, request, seat)
    laps = 1 if one.fast is None else LAPS_QUICK if request.quick else LAPS
    if not has_disk(one.pool):
        bed.prepare(load.prepare, stage(seat.report, 0, laps + 1))
    ran: list[Ran] = []
    for lap in range(laps):
        ran.append(bed.run(load.job, stage(seat.report, lap + 1, laps + 1)))
        if lap and _settled(ran[-2], ran[-1]):
            break
    last = ran[-1]
    part: Part = {
        "rates": {"load": last.reading},
        "worn": wear_of(last, cache=False),
        "worn_cache": wear_of(last, cache=True),
        "dirty_bytes": last.dirty_bytes() * factor,
        "notes": [note] if note else [],
    }
    if one.fast is not None:
        part["cold"] = {"load": ran[0].reading}
        part["hits"] = {"load": last.found("hits", "read", "write") or 0.0}
        before = sum(lap.seconds for lap in ran[:-1])
        part["warmth"] = {"load": Warmth(before * factor, whole=_settled(ran[-2], last))}
    return part


def _settled(one: Ran, other: Ran) -> bool:
    alike = abs(other.reading.iops - one.reading.iops) <= SETTLED * other.reading.iops
    return alike and (other.filled() >= FILLED or other.filled() - one.filled() < GROWN)


def _bed(one: Candidate, factor: int, request: Request, seat: Seat) -> tuple[Bed, str]:
    """All of the candidate divided by the factor, so that every share of a size stays."""
    parts = [one.pool] if one.fast is None else [one.pool, one.fast]
    flash_only = one.fast is None and flash(one.pool)
    rigs = []
    for part in parts:
        scaled = factor > 1 and shipped(part)
        size = capacity_of(drive_of(part)) // factor if scaled and flash(part) else None
        rig = resized(part, size, disk_cache=request.disk_cache)
        if scaled and not flash(part) and not flash_only:
            set_all(rig, "hdd", {"capacity": reduced(drive_of(part), factor)["capacity"]})
        rigs.append(rig)
    fast = rigs[1] if one.fast is not None else None
    rig = one.tree(rigs[0], fast, smaller_ram(one.card, factor))
    note = f"{one.text}: all of it at 1/{factor} of its size" if factor > 1 else ""
    return Bed(rig.to_toml(), one.text, request.seed, seat), note
