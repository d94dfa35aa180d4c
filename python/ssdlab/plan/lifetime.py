"""How fast a cache wears its drives out, and how long they last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ssdlab import _core, bench, wear
from ssdlab.engine.ratings import of_profile
from ssdlab.errors import SsdlabError
from ssdlab.jobfile import JobText
from ssdlab.plan.bed import JobOutcome, Passes
from ssdlab.plan.candidates import CacheCandidate
from ssdlab.rig import capacity_of, profile, smaller
from ssdlab.target import Settings, Sim
from ssdlab.units import DAY_S

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
    """The larger of both as writes of the whole drive per day; of a job, whose data is new to the
    cache but once, the warm one."""
    years: float
    """Until the rated cycles are used up; at most :data:`YEARS_MAX`."""
    rated_host_bytes: float
    """What the host can write until then."""
    recording_is_long_enough: bool
    """Whether the recording says anything of a day."""


@dataclass(frozen=True)
class AgedDrive:
    """An old drive of which a cache takes a share, and writes so many bytes at a time."""

    name: str
    share: float
    """0 where it is so small that nothing is copied."""
    write_bytes: int

    @staticmethod
    def of(candidate: CacheCandidate, passes: Passes) -> AgedDrive | None:
        """That of a cache, of shares that are as good as equal one, so that few drives are
        simulated; None where its drive is no shipped one."""
        if candidate.fast.profile is None:
            return None
        share = min(1.0, candidate.size / candidate.fast.capacity_bytes)
        rounded = 0.0 if share <= SPARE_SHARE else round(share, 2)
        return AgedDrive(candidate.fast.profile, rounded, mean_write_bytes(passes))

    @property
    def roomy(self) -> bool:
        """Whether nothing is copied."""
        return not self.share

    def variant(self) -> bench.Variant[float | SsdlabError]:
        """Its write amplification; an error where it cannot be made small enough."""
        return bench.Variant(bench.Tolerant(partial(_aged, self)))


Amplification = Mapping[AgedDrive, float | SsdlabError]
"""What old drives were found to do, but those that are roomy."""


def mean_write_bytes(passes: Passes) -> int:
    """Mean size of what a cache wrote to its drive."""
    writes = sum(pass_.grown("cache/member_writes") for pass_ in passes.passes)
    moved = sum(pass_.grown("cache/member_bytes_written") for pass_ in passes.passes)
    return max(4096, round(moved / writes / 4096) * 4096) if writes else 4096


def life(
    candidate: CacheCandidate, passes: Passes, span_s: float, known: Amplification
) -> CacheLife | None:
    """The life of the drives of a cache, where a pass takes ``span_s`` in reality (that of the
    recording; 0: the time it took); None where it has no SSD."""
    stretch = wear.Stretch.since_new(passes.last.counters)
    rig = stretch.wear
    members = (
        {path: member for path, member in rig.members.items() if path.split("/")[0] == "cache"}
        if rig
        else {}
    )
    if not members:
        return None
    place = next(iter(members))
    flash, full = members[place].flash, candidate.fast.drive_bytes
    aged = AgedDrive.of(candidate, passes)
    waf = 1.0 if aged and aged.roomy else known.get(aged) if aged else None
    if aged is not None and isinstance(waf, float):
        source = f"random overwrites of {aged.write_bytes >> 10} KiB on an aged drive"
    else:
        own, source = stretch.by_path[place], "the run itself, on a new drive"
        waf = own.programmed / own.host if own.host else 1.0
    named = candidate.fast.profile
    rating = of_profile(profile(named), full) if named else None
    takes = rating.bytes if rating else flash.rated_bytes * full / flash.full_bytes
    rated = takes / waf
    first, warm = (_per_day(did, members, span_s) for did in (passes.first, passes.calm))
    most = warm if passes.job else max(first, warm)
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


def _per_day(outcome: JobOutcome, places: Iterable[str], span_s: float) -> float:
    written = max(outcome.grown(f"{place}/host_bytes_written") for place in places)
    # All that was written, in all of the time: in a ramp too.
    return written * DAY_S / (span_s or outcome.seconds or 1.0)


def _aged(drive: AgedDrive, seat: bench.Seat) -> float:
    """Random overwrites of a share of a drive, after three times as much of the same."""
    name = drive.name
    changes = smaller(name, capacity_of(name) // AGED_BYTES)
    capacity = int(changes["capacity"].removesuffix("B")) if changes else capacity_of(name)
    part = int(capacity * drive.share) // 65536 * 65536
    keys = {"size": f"{part}B"}
    rig = _core.Rig.wrap("partition", keys, name=name, below=profile(name).rig())
    text = (
        f"[overwrite]\nrw=randwrite\nbs={drive.write_bytes}\niodepth=4\nsize=100%\nnorandommap\n"
        f"io_size={2 * part}\n"
    )
    settings = Settings(prepare="random:3", overrides=changes)
    job = JobText("overwrite", text, Path.cwd())
    result = seat.run(Sim(name, rig.to_toml()), job, settings)
    return max(1.0, result.waf or 1.0)
