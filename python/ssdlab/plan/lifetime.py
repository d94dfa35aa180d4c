"""How fast a cache wears its drives out, and how long they last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from ssdlab import _core, bench, wear
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.plan.bed import Passes, Ran
from ssdlab.plan.candidates import CacheCandidate
from ssdlab.rig import capacity_of, profile, smaller
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
class CacheLife:
    """What a cache writes to each of its drives, and how long that goes on."""

    first_pass_bytes_per_day: float
    """To the drive that is written most, where all data is new to the cache, at the recorded rate,
    or else at that of the pass."""
    warm_bytes_per_day: float
    """The same, warm."""
    write_amplification: float
    """Of the flash once the cache has been overwritten many times."""
    write_amplification_from: str
    """Where that comes from."""
    drive_writes_per_day: float
    """The larger of both as writes of the whole drive per day."""
    years: float
    """Until the rated cycles are used up; at most :data:`YEARS_MAX`."""
    rated_host_bytes: float
    """What the host can write until then."""
    recording_is_long_enough: bool
    """Whether the recording says anything of a day."""


class AgedDrives:
    """Write amplification of old drives; each is simulated once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, float, int], float | None] = {}
        self._locks: defaultdict[tuple[str, float, int], Lock] = defaultdict(Lock)

    def amplification(self, one: CacheCandidate, size: int, seat: bench.Seat) -> float | None:
        """That of the drive of a cache to which ``size`` bytes are written at a time; None where it
        is no shipped one, or cannot be made small enough to be simulated."""
        drive, share = one.fast.profile, min(1.0, one.size / one.fast.capacity_bytes)
        if drive is None:
            return None
        if share <= SPARE_SHARE:
            return 1.0
        # Shares that are as good as equal are, so that few drives are simulated.
        key = drive, round(share, 2), size
        with self._locks[key]:
            if key not in self._known:
                found = bench.tolerant(lambda seat: _aged(*key, seat))(seat)
                self._known[key] = None if isinstance(found, InputError) else found
            return self._known[key]


def mean_write_bytes(passes: Passes) -> int:
    """Mean size of what a cache wrote to its drive."""
    writes = sum(one.grown("cache/member_writes") for one in passes.passes)
    moved = sum(one.grown("cache/member_bytes_written") for one in passes.passes)
    return max(4096, round(moved / writes / 4096) * 4096) if writes else 4096


def life(
    one: CacheCandidate, passes: Passes, span_s: float, aged: AgedDrives, seat: bench.Seat
) -> CacheLife | None:
    """The life of the drives of a cache; None where it has no SSD.

    ``span_s`` is what a pass takes in reality: that of the recording, or 0 to take the time it
    took.
    """
    stretch = wear.Stretch.since_new(passes.last.counters)
    rig = stretch.wear
    members = {path: one for path, one in rig.members.items() if _of_cache(path)} if rig else {}
    if not members:
        return None
    place = next(iter(members))
    flash, full = members[place].flash, one.fast.drive_bytes
    size = mean_write_bytes(passes)
    waf, source = aged.amplification(one, size, seat), ""
    if waf is not None:
        source = f"random overwrites of {size >> 10} KiB on an aged drive"
    else:
        own, source = stretch.by_path[place], "the run itself, on a new drive"
        waf = own.programmed / own.host if own.host else 1.0
    rated = flash.rated_pe_cycles * (flash.physical_bytes * full / flash.capacity_bytes) / waf
    first, warm = (_per_day(did, members, span_s) for did in (passes.first, passes.calm))
    most = max(first, warm)
    return CacheLife(
        first_pass_bytes_per_day=first,
        warm_bytes_per_day=warm,
        write_amplification=waf,
        write_amplification_from=source,
        drive_writes_per_day=most / full,
        years=min(YEARS_MAX, rated / most / YEAR_DAYS) if most else YEARS_MAX,
        rated_host_bytes=rated,
        recording_is_long_enough=span_s >= TELLING_S,
    )


def _of_cache(path: str) -> bool:
    return path.split("/")[0] == "cache"


def _per_day(one: Ran, places: Iterable[str], span_s: float) -> float:
    written = max(one.grown(f"{place}/host_bytes_written") for place in places)
    return written * DAY_S / (span_s or one.did.seconds or 1.0)


def _aged(name: str, share: float, size: int, seat: bench.Seat) -> float:
    """Random overwrites of a share of a drive, after three times as much of the same."""
    changes = smaller(name, capacity_of(name) // AGED_BYTES)
    capacity = int(changes["capacity"].removesuffix("B")) if changes else capacity_of(name)
    part = int(capacity * share) // 65536 * 65536
    keys = {"size": f"{part}B"}
    rig = _core.Rig.wrap("partition", keys, name=name, below=profile(name).rig())
    text = (
        f"[overwrite]\nrw=randwrite\nbs={size}\niodepth=4\nsize=100%\nnorandommap\n"
        f"io_size={2 * part}\n"
    )
    settings = Settings(prepare="random:3", overrides=changes)
    job = JobText("overwrite", text, Path.cwd())
    result = seat.run(Sim(name, rig.to_toml()), job, settings)
    return max(1.0, result.waf or 1.0)
