"""What a candidate does under the loads of a price table, in simulated time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ssdlab import _core, bench
from ssdlab.arrays.attachment import ram_bytes, smaller_ram
from ssdlab.arrays.readings import Reading
from ssdlab.bench import Seat
from ssdlab.plan.bed import Bed, Worn, wear_of
from ssdlab.plan.storage import loads
from ssdlab.plan.storage.candidates import Candidate
from ssdlab.plan.storage.loads import DEPTH, HotSet, Span
from ssdlab.plan.storage.sizes import (
    drive_of,
    flash,
    has_disk,
    resized,
    shipped,
    simulated_bytes,
    usable_bytes,
)
from ssdlab.plan.stores import Store
from ssdlab.progress import ProgressCallback, stage
from ssdlab.rig import capacity_of

RAM_FILLS_BYTES_PER_S = 200e6
"""A card's RAM is full after its size divided by this, wherever writes go below it slower."""
SSD_BYTES = 1 << 30
"""An SSD is simulated at least this large."""
STORE_BYTES, STORE_BYTES_QUICK = 24 << 30, 6 << 30
"""A store of SSDs without a cache is simulated about this large."""
HOT_MIN, HOT_MIN_QUICK = 1 << 30, 256 << 20
"""A hot set is simulated at least this large: many times what the drives hold in RAM."""
HOT_SHARE = 24
"""... but at most one part in so many of the store, unless it is larger in truth."""
CACHE_BYTES_MIN = 1 << 30
CACHE_BYTES_COLD = 32 << 30
BLOCK = 64 << 10
"""Of a cache, unless its preset says something else."""
CACHE_HOT_SETS = 50
"""A cache of more hot sets than this is simulated as one of so many."""
COVER_MOST, COVER_MOST_QUICK = 2_000_000, 200_000
"""I/Os that warm a cache at most."""
COVER_TIMES = 3
"""Every place of the hot set is read or written so many times to warm a cache."""
AGED_SHARE = 0.35
"""SSDs are written the hot set and this share of their room before writes are measured."""


LOADS: Mapping[str, tuple[str, str]] = {
    "read": ("random reads", "IOPS"),
    "write": ("random writes", "IOPS"),
    "read_ordered": ("sequential reads", "MB/s"),
    "write_ordered": ("sequential writes", "MB/s"),
    "load": ("the load", "IOPS"),
}
"""What is measured, and by what it is judged. ``load`` is one that the user names."""


@dataclass(frozen=True)
class Times:
    """Simulated seconds of measurements."""

    disk: Span
    flash: Span
    ordered_disk: Span
    ordered_cache: Span


WHOLE = Times(Span(20.0, 4.0), Span(1.0, 0.2), Span(5.0, 1.0), Span(10.0, 10.0))
QUICK = Times(Span(6.0, 2.0), Span(0.25, 0.05), Span(2.0, 0.5), Span(3.0, 6.0))


@dataclass(frozen=True)
class Request:
    """What is asked of every candidate."""

    hot: HotSet
    depth: int = DEPTH
    seed: int = 1
    quick: bool = False
    disk_cache: bool = False
    """Whether disks keep their volatile write cache."""

    @property
    def times(self) -> Times:
        """How long to measure."""
        return QUICK if self.quick else WHOLE

    @property
    def hot_min(self) -> int:
        """Least size of a hot set in the simulation."""
        return min(self.hot.bytes, HOT_MIN_QUICK if self.quick else HOT_MIN)


@dataclass(frozen=True)
class Warmth:
    """How a cache was warmed before it was measured warm."""

    seconds: float
    """It takes so long at full size, under the load itself."""
    whole: bool
    """Whether all of the hot set was touched."""


@dataclass(frozen=True)
class Measured:
    """What a candidate did; loads by their key in `LOADS`."""

    rates: Mapping[str, Reading]
    """Warm, where there is a cache."""
    cold: Mapping[str, Reading] = field(default_factory=dict)
    """The same at the beginning, when the cache holds nothing."""
    hits: Mapping[str, float] = field(default_factory=dict)
    """Share of the I/Os that found everything in the warm cache."""
    warmth: Mapping[str, Warmth] = field(default_factory=dict)
    worn: Worn | None = None
    """The SSDs of the store, by the writes."""
    worn_cache: Worn | None = None
    """Those of the cache."""
    dirty_bytes: float = 0.0
    """Written, but only in the cache, after the writes; at full size."""
    notes: tuple[str, ...] = ()
    """How it was simulated."""


def measure(
    candidates: Sequence[Candidate], request: Request, progress: ProgressCallback | None = None
) -> list[Measured]:
    """Measures candidates; what comes of them, in their order.

    Raises:
        InputError: a rig is wrong, or takes more memory than there is.
        Interrupted: Ctrl-C, or the progress callback returned False.
    """
    jobs = [_Job(one, request).variants() for one in candidates]
    parts = iter(bench.run([one for job in jobs for one in job], progress))
    return [merged([next(parts) for _ in job]) for job in jobs]


Part = dict[str, Any]
"""What a piece found, by the name of a field of `Measured`."""


def merged(parts: Sequence[Part]) -> Measured:
    """What several pieces found of one candidate."""
    whole: dict[str, Any] = {"notes": ()}
    for part in parts:
        for key, value in part.items():
            if key == "notes":
                whole[key] += tuple(one for one in value if one not in whole[key])
            elif isinstance(value, dict):
                whole[key] = {**whole.get(key, {}), **value}
            else:
                whole[key] = value
    return Measured(**whole)


@dataclass(frozen=True)
class _Job:
    """The pieces of work of one candidate."""

    candidate: Candidate
    request: Request

    def variants(self) -> list[bench.Variant[Part]]:
        if self.candidate.fast is None:
            slow = has_disk(self.candidate.pool)
            bodies = [(self._random, 1.0 if slow else 6.0), (self._ordered, 1.0)]
        else:
            bodies = [(self._warm, 6.0), (self._cold, 2.0), (self._ordered_cached, 3.0)]
        return [bench.Variant(body, cost) for body, cost in bodies]

    # --- without a cache

    def _plain(self, seat: Seat, report: ProgressCallback) -> Bed:
        pool_ = self.candidate.pool
        size = ssd_bytes(pool_, self.request)
        bed = self._bed(resized(pool_, size, disk_cache=self.request.disk_cache), None, 1.0, seat)
        if flash(pool_):
            bed.prepare("sequential", report)
        return bed

    def _random(self, seat: Seat) -> Part:
        pool_, request = self.candidate.pool, self.request
        bed = self._plain(seat, stage(seat.report, 0, 4))
        hot, note = self._hot(bed.capacity)
        span = request.times.disk if has_disk(pool_) else request.times.flash
        job = loads.random_job("read", "randread", hot, bed.capacity, request.depth, span)
        rates = {"read": bed.run(job, stage(seat.report, 1, 4)).reading}
        if flash(pool_):
            count = int(AGED_SHARE * bed.capacity + hot.bytes) // loads.BLOCK
            aging = loads.writes_job("age", hot, bed.capacity, request.depth, count)
            bed.run(aging, stage(seat.report, 2, 4))
        span = Span(span.seconds, span.ramp + self._ram_s(1.0))
        job = loads.random_job("write", "randwrite", hot, bed.capacity, request.depth, span)
        wrote = bed.run(job, stage(seat.report, 3, 4))
        rates["write"] = wrote.reading
        return {"rates": rates, "worn": wear_of(wrote, cache=False), "notes": note}

    def _ordered(self, seat: Seat) -> Part:
        bed = self._plain(seat, stage(seat.report, 0, 3))
        times = self.request.times
        span = times.ordered_disk if has_disk(self.candidate.pool) else times.flash
        read = bed.run(loads.ordered_job("read", "read", span), stage(seat.report, 1, 3))
        span = Span(span.seconds, span.ramp + self._ram_s(1.0))
        wrote = bed.run(loads.ordered_job("write", "write", span), stage(seat.report, 2, 3))
        return {"rates": {"read_ordered": read.reading, "write_ordered": wrote.reading}}

    def _hot(self, capacity: int) -> tuple[HotSet, list[str]]:
        """The hot set on the simulated store, and a note where it is not to scale."""
        pool_, whole = self.candidate.pool, usable_bytes(self.candidate.pool)
        hot = self.request.hot.on(whole)
        if hot.fills(whole):
            return HotSet(capacity, hot.spread), []
        share = capacity / whole
        least = min(hot.bytes, self.request.hot_min, capacity // HOT_SHARE)
        size = hot.bytes if share > 0.999 else max(int(hot.bytes * share), least)
        note = []
        if share <= 0.999:
            note.append(
                f"{drive_of(pool_)} at 1/{1 / share:.0f} of its blocks, the hot set at "
                f"{size / 2**20:.0f} MiB ({100 * size / capacity:.2g} % of the store; in truth "
                f"{100 * hot.bytes / whole:.2g} %)"
            )
        return HotSet(size, hot.spread), note

    # --- with a cache

    @property
    def _fast_bytes(self) -> int:
        assert self.candidate.fast is not None
        return usable_bytes(self.candidate.fast)

    def _cached(self, fast_bytes: float, shrink: float, seat: Seat) -> Bed:
        """The candidate with a cache of about ``fast_bytes`` usable, a card's RAM divided."""
        fast, pool_ = self.candidate.fast, self.candidate.pool
        assert fast is not None
        share = min(1.0, fast_bytes / self._fast_bytes)
        each = capacity_of(drive_of(fast)) * share if shipped(fast) else 0
        size = None if has_disk(pool_) else ssd_bytes(pool_, self.request)
        below = resized(pool_, size, disk_cache=self.request.disk_cache)
        cache = resized(fast, int(each), disk_cache=self.request.disk_cache)
        return self._bed(below, cache, shrink, seat)

    def _shrunk(self, hot: HotSet) -> tuple[HotSet, float]:
        """A hot set and a cache as they are simulated, in the same proportion if that matters."""
        fast, whole, request = self.candidate.fast, self._fast_bytes, self.request
        assert fast is not None
        if not shipped(fast):
            return hot, float(whole)
        least = CACHE_BYTES_MIN // 2 if request.quick else CACHE_BYTES_MIN
        wanted = min(max(least, whole * request.hot_min / hot.bytes), whole)
        wanted = min(wanted, max(least, CACHE_HOT_SETS * request.hot_min))
        full = capacity_of(drive_of(fast))
        # An SSD of many dies cannot be as small as one may want.
        found = whole * simulated_bytes(fast, int(full * wanted / whole)) / full
        size = found * max(hot.bytes / whole, 1 / CACHE_HOT_SETS)
        return HotSet(min(hot.bytes, int(size)), hot.spread), found

    def _cold(self, seat: Seat) -> Part:
        """The first moments, with the hot set as it is."""
        request = self.request
        hot = request.hot.on(usable_bytes(self.candidate.pool))
        fits = min(1.5 * hot.bytes, self._fast_bytes, CACHE_BYTES_COLD)
        cold: dict[str, Reading] = {}
        for place, kind in enumerate(("read", "write")):
            bed = self._cached(fits, 1.0, seat)
            ram = self._ram_s(1.0) if kind == "write" else 0.0
            span = Span(request.times.disk.seconds / 8, ram)
            where = hot.on(bed.capacity)
            job = loads.random_job(kind, f"rand{kind}", where, bed.capacity, request.depth, span)
            cold[kind] = bed.run(job, stage(seat.report, place, 2)).reading
        return {"cold": cold}

    def _warm(self, seat: Seat) -> Part:
        """When all of the hot set has been read and written."""
        request = self.request
        whole = usable_bytes(self.candidate.pool)
        hot = request.hot.on(whole)
        small, fast_bytes = self._shrunk(hot)
        shrink = hot.bytes / small.bytes
        bed = self._cached(fast_bytes, shrink, seat)
        small = small.on(bed.capacity)
        fits = small.bytes <= fast_bytes
        span = request.times.flash if fits else request.times.disk
        rates: dict[str, Reading] = {}
        warmths: dict[str, Warmth] = {}
        hits: dict[str, float] = {}
        most = COVER_MOST_QUICK if request.quick else COVER_MOST
        if not fits:
            # Every block of the cache has been exchanged several times by then.
            most = min(most, (3 if request.quick else 6) * int(fast_bytes / BLOCK))
        for place, kind in enumerate(("read", "write")):
            rw, depth = f"rand{kind}", request.depth
            job = loads.covering_job(
                "warm", rw, small, bed.capacity, depth, times=COVER_TIMES, most=most
            )
            warmed = bed.run(job, stage(seat.report, 2 * place, 4))
            once = small.bytes // loads.BLOCK
            warmths[kind] = Warmth(warmed.seconds * shrink, whole=once <= most)
            ram = self._ram_s(shrink) if kind == "write" else 0.0
            timed = Span(span.seconds, span.ramp + ram)
            job = loads.random_job(kind, rw, small, bed.capacity, depth, timed)
            ran = bed.run(job, stage(seat.report, 2 * place + 1, 4))
            rates[kind], hits[kind] = ran.reading, ran.found("hits", kind) or 0.0
        return {
            "rates": rates,
            "hits": hits,
            "warmth": warmths,
            "dirty_bytes": ran.dirty_bytes() * shrink,
            "worn": wear_of(ran, cache=False),
            "worn_cache": wear_of(ran, cache=True) or wear_of(warmed, cache=True),
            "notes": self._warm_note(shrink, small, fast_bytes),
        }

    def _warm_note(self, shrink: float, hot: HotSet, fast_bytes: float) -> list[str]:
        if shrink <= 1.0:
            return []
        fast = self.candidate.fast
        assert fast is not None
        return [
            f"warm cache: hot set at 1/{shrink:.0f}, {drive_of(fast)} at "
            f"1/{self._fast_bytes / fast_bytes:.0f} ({hot.bytes / 2**20:.0f} MiB on "
            f"{fast_bytes / 2**30:.3g} GiB)"
        ]

    def _ordered_cached(self, seat: Seat) -> Part:
        """In order over cold data; writes once the cache holds all that it may hold of them."""
        span = self.request.times.ordered_cache
        bed = self._cached(CACHE_BYTES_MIN, 1.0, seat)
        begin = Span(span.seconds, 1.0)
        read = bed.run(loads.ordered_job("read", "read", begin), stage(seat.report, 0, 2))
        bed = self._cached(CACHE_BYTES_MIN, 1.0, seat)
        later = Span(span.seconds, span.ramp + self._ram_s(1.0))
        wrote = bed.run(loads.ordered_job("write", "write", later), stage(seat.report, 1, 2))
        return {"rates": {"read_ordered": read.reading, "write_ordered": wrote.reading}}

    # --- both

    def _ram_s(self, shrink: float) -> float:
        """Seconds in which a card's RAM fills."""
        ram = ram_bytes(self.candidate.card)
        return ram / shrink / RAM_FILLS_BYTES_PER_S

    def _bed(self, below: _core.Rig, fast: _core.Rig | None, shrink: float, seat: Seat) -> Bed:
        rig = self.candidate.tree(below, fast, smaller_ram(self.candidate.card, shrink)).to_toml()
        return Bed(rig, self.candidate.text, self.request.seed, seat)


def ssd_bytes(one: Store, request: Request) -> int:
    """The size of each SSD of a store without a cache."""
    if not shipped(one):
        return SSD_BYTES
    whole = STORE_BYTES_QUICK if request.quick else STORE_BYTES
    return max(SSD_BYTES, int(whole * capacity_of(drive_of(one)) / usable_bytes(one)))
