"""How fast a cache wears its drives out, and how long they last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdlab import _core, bench, wear
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.plan.bed import Ran
from ssdlab.plan.candidates import CacheCandidate, full_bytes
from ssdlab.plan.timed import Timed
from ssdlab.progress import ProgressCallback
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

    first_bytes_per_day: float
    """To the drive that is written most, where all data is new to the cache (first pass), at the
    recorded rate, or else at that of the pass."""
    warm_bytes_per_day: float
    """The same, warm."""
    amplification: float
    """Of the flash once the cache has been overwritten many times."""
    amplification_from: str
    """Where that comes from."""
    dwpd: float
    """The larger of both as writes of the whole drive per day."""
    years: float
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


Writes = tuple[CacheCandidate, int]
"""A cache, and the mean size (bytes) of what is written to its drive."""


def writes_of(candidate: CacheCandidate, found: Timed) -> Writes:
    """What a cache wrote to its drive."""
    writes = sum(one.grown("cache/member_writes") for one in found.passes)
    moved = sum(one.grown("cache/member_bytes_written") for one in found.passes)
    return candidate, max(4096, round(moved / writes / 4096) * 4096) if writes else 4096


class AgedDrives:
    """Write amplification of old drives; each is simulated once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, float, int], float | InputError] = {}

    def learn(self, asked: Iterable[Writes], progress: ProgressCallback | None = None) -> None:
        """Simulates all that is not known of these, together."""
        keys = dict.fromkeys(_key(one) for one in asked if one[0].fast.store.profile)
        missing = [key for key in keys if key[1] > SPARE_SHARE and key not in self._known]

        def variant(key: tuple[str, float, int]) -> bench.Variant[float | InputError]:
            return bench.Variant(bench.tolerant(lambda seat: _aged(*key, seat)))

        found = bench.run([variant(key) for key in missing], progress)
        self._known.update(zip(missing, found, strict=True))

    def amplification(self, asked: Writes) -> float | None:
        """That of the drive of a cache; None where it is no shipped one, or cannot be made small
        enough to be simulated."""
        if asked[0].fast.store.profile is None:
            return None
        key = _key(asked)
        if key[1] <= SPARE_SHARE:
            return 1.0
        self.learn([asked])
        found = self._known[key]
        return None if isinstance(found, InputError) else found


def _key(asked: Writes) -> tuple[str, float, int]:
    candidate, size = asked
    share = min(1.0, candidate.size / candidate.fast.capacity)
    # Shares that are as good as equal are, so that few drives are simulated.
    rounded = share if share <= SPARE_SHARE else round(share, 2)
    return candidate.fast.store.profile or "", rounded, size


def life(
    candidate: CacheCandidate, found: Timed, span_s: float, aged: AgedDrives
) -> CacheLife | None:
    """The life of the drives of a cache; None where it has no SSD.

    ``span_s`` is what a pass takes in reality: that of the recording, or 0 to take the time it
    took.
    """
    rig = wear.Stretch.since_new(found.last.counters).wear
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
    return CacheLife(
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


def _per_day(one: Ran, places: list[str], span_s: float) -> float:
    written = max(one.grown(f"{place}/host_bytes_written") for place in places)
    return written * DAY_S / (span_s or one.reading.seconds or 1.0)


def _amplification(
    candidate: CacheCandidate, found: Timed, place: str, aged: AgedDrives
) -> tuple[float, str]:
    asked = writes_of(candidate, found)
    old = aged.amplification(asked)
    if old is not None:
        return old, f"random overwrites of {asked[1] >> 10} KiB on an aged drive"
    own = wear.Stretch.since_new(found.last.counters).by_path[place]
    waf = own.programmed / own.host if own.host else 1.0
    return waf, "the run itself, on a new drive"


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
