"""How fast a cache wears its drives out, and how long they last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdlab import _core, wear
from ssdlab.arrays.rigs import device_of, shipped, toml_text
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.plan.candidates import SUPERBLOCKS_MIN, Candidate, full_bytes
from ssdlab.plan.timed import Pass, Timed
from ssdlab.rig import profiles
from ssdlab.scale import capacity_of, reduced
from ssdlab.target import Settings, Sim

DAY_S = 86_400.0
YEAR_DAYS = 365.25
AGED_BYTES = 1 << 30
"""Size at which an aged drive is simulated, about."""
SPARE_SHARE = 0.02
"""A cache on so little of a drive has room to spare: nothing is copied."""
TELLING_S = 600.0
"""A shorter recording is a burst that hardly goes on all day; nor does a job at full speed."""
YEARS_MAX = 1000.0
"""Lives beyond this say nothing more."""


@dataclass(frozen=True)
class Life:
    """What a cache writes to each of its drives, and how long that goes on."""

    first_bytes_per_day: float | None
    """To the drive that is written most, where all data is new to the cache (first pass), at the
    recorded rate; None without recorded times."""
    warm_bytes_per_day: float | None
    """The same, warm."""
    amplification: float
    """Of the flash once the cache has been overwritten many times."""
    amplification_from: str
    """Where that comes from."""
    dwpd: float | None
    """The larger of both as writes of the whole drive per day."""
    years: float | None
    """Until the rated cycles are used up; at most :data:`YEARS_MAX`."""
    rated_bytes: float
    """What the host can write until then."""
    telling: bool
    """Whether the recording is long enough to say anything of a day."""

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""
        return {
            "first_pass_bytes_per_day": self.first_bytes_per_day,
            "warm_bytes_per_day": self.warm_bytes_per_day,
            "write_amplification": self.amplification,
            "write_amplification_from": self.amplification_from,
            "drive_writes_per_day": self.dwpd,
            "years": self.years,
            "rated_host_bytes": self.rated_bytes,
            "recording_is_long_enough": self.telling,
        }


Aged = Callable[[Candidate, int], float]
"""Write amplification of a candidate's drive when old, for writes of so many bytes."""


def life(candidate: Candidate, found: Timed, span_s: float, aged: Aged) -> Life | None:
    """The life of the drives of a cache; None where it has no SSD.

    ``span_s`` is what a pass takes in reality: that of the recording, or 0 to take the time it
    took.
    """
    rig = wear.Stretch.since_new(found.last.after).wear
    members = {path: one for path, one in rig.members.items() if _of_cache(path)} if rig else {}
    if not members:
        return None
    places = list(members)
    flash = members[places[0]].flash
    full = full_bytes(candidate.fast)
    physical = flash.physical_bytes * full / flash.capacity_bytes
    waf, source = _amplification(candidate, found, places[0], aged)
    rated = flash.rated_pe_cycles * physical / waf
    first = _per_day(found.first, places, span_s)
    warm = _per_day(found.calm, places, span_s)
    most = max(first, warm)
    return Life(
        first_bytes_per_day=first,
        warm_bytes_per_day=warm,
        amplification=waf,
        amplification_from=source,
        dwpd=most / full,
        years=min(YEARS_MAX, rated / most / YEAR_DAYS) if most else YEARS_MAX,
        rated_bytes=rated,
        telling=span_s >= TELLING_S,
    )


def _of_cache(path: str) -> bool:
    return path.split("/")[0] == "cache"


def _per_day(one: Pass, places: list[str], span_s: float) -> float:
    written = max(one.grown(f"{place}/host_bytes_written") for place in places)
    return written * DAY_S / (span_s or one.reading.seconds or 1.0)


def _amplification(candidate: Candidate, found: Timed, place: str, aged: Aged) -> tuple[float, str]:
    names = list(candidate.fast.store.bill)
    writes = sum(one.grown("cache/member_writes") for one in found.passes)
    moved = sum(one.grown("cache/member_bytes_written") for one in found.passes)
    if len(names) == 1 and names[0] in {one.name for one in profiles()}:
        size = max(4096, round(moved / writes / 4096) * 4096) if writes else 4096
        try:
            return aged(candidate, size), f"random overwrites of {size >> 10} KiB on an aged drive"
        except InputError:
            pass  # a drive that cannot be made small enough: as it ran
    own = wear.Stretch.since_new(found.last.after).by_path[place]
    waf = own.programmed / own.host if own.host else 1.0
    return waf, "the run itself, on a new drive"


def aged_amplification() -> Aged:
    """The function that simulates aged drives, with a memory of what it has simulated."""
    known: dict[tuple[str, float, int], float] = {}

    def found(candidate: Candidate, size: int) -> float:
        name = next(iter(candidate.fast.store.bill))
        share = min(1.0, candidate.size / candidate.fast.capacity)
        if share <= SPARE_SHARE:
            return 1.0
        key = (name, round(share, 2), size)
        if key not in known:
            known[key] = _aged(*key)
        return known[key]

    return found


def _aged(name: str, share: float, size: int) -> float:
    """Random overwrites of a share of a drive, after three times as much of the same."""
    factor = max(1, capacity_of(name) // AGED_BYTES)
    changes = reduced(name, factor, fewest=SUPERBLOCKS_MIN)
    while factor > 1 and not _sound(name, changes):
        factor //= 2
        changes = reduced(name, factor, fewest=SUPERBLOCKS_MIN)
    capacity = int(changes["capacity"].removesuffix("B")) if changes else capacity_of(name)
    part = int(capacity * share) // 65536 * 65536
    device: Mapping[str, Any] = {
        "kind": "partition", "size": f"{part}B", "below": device_of(shipped(name)),
    }  # fmt: skip
    text = (
        f"[overwrite]\nrw=randwrite\nbs={size}\niodepth=4\nsize=100%\nnorandommap\n"
        f"io_size={2 * part}\n"
    )
    result = Sim(name, toml_text({"name": name, "device": device})).run(
        JobText("overwrite", text, Path.cwd()), Settings(prepare="random:3", overrides=changes)
    )
    return max(1.0, result.waf or 1.0)


def _sound(name: str, changes: Mapping[str, str]) -> bool:
    try:
        _core.rig_check(shipped(name).rig, rig_name=name, overrides=list(changes.items()))
    except InputError:
        return False
    return True
