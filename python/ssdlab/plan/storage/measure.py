"""What a candidate does in simulated time, under the loads of a price table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ssdlab import _core, bench
from ssdlab.arrays.attachment import ram_bytes
from ssdlab.arrays.performance import Performance
from ssdlab.bench import Seat
from ssdlab.plan.bed import Bed, JobOutcome, SsdWear, wear_of
from ssdlab.plan.rounds import Round, Rounds, stages
from ssdlab.plan.storage import loads
from ssdlab.plan.storage.candidates import Candidate
from ssdlab.plan.storage.loads import DEPTH, HotSet, Timing
from ssdlab.plan.stores import Store
from ssdlab.progress import ProgressCallback

RAM_FILLS_BYTES_PER_S = 200e6
"""A card's RAM is full after its size divided by this, wherever writes go below it slower."""
RAM_MIN = 1 << 20
"""It becomes smaller with the hot set, not with the drives, and by as much, down to this."""
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
KINDS = ("read", "write")
COVER_MOST, COVER_MOST_QUICK = 2_000_000, 200_000
"""I/Os that warm a cache at most."""
COVER_TIMES = 3
"""Every place of the hot set is read or written so many times to warm a cache."""
AGED_SHARE = 0.35
"""SSDs are written the hot set and this share of their room before writes are measured."""
EVERYWHERE_SHARE = 1.5
"""They are written this share of their room before writes all over them are measured."""
LOADS: Mapping[str, tuple[str, str]] = {
    "read": ("random reads", "IOPS"),
    "write": ("random writes", "IOPS"),
    "read_ordered": ("sequential reads", "MB/s"),
    "write_ordered": ("sequential writes", "MB/s"),
    "load": ("the load", "IOPS"),
}
"""What is measured, and by what it is judged. ``load`` is one that the user names."""


@dataclass(frozen=True)
class Warmth:
    """How a cache was warmed before it was measured warm."""

    seconds: float
    """It takes so long at full size, under the load itself."""
    whole: bool
    """Whether all of the hot set was touched."""

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""
        return {"seconds": self.seconds, "whole_hot_set": self.whole}


@dataclass(frozen=True)
class CandidateRun:
    """What a candidate did; loads by their key in `LOADS`."""

    rates: Mapping[str, Performance]
    """Warm, where there is a cache."""
    cold: Mapping[str, Performance] = field(default_factory=dict)
    """The same at the beginning, when the cache holds nothing."""
    everywhere: Performance | None = None
    """Random writes all over a store of SSDs, where the hot set is a part of it: those in a small
    one are faster than what the drive does when all of it is written."""
    hits: Mapping[str, float] = field(default_factory=dict)
    """Share of the I/Os that found everything in the warm cache."""
    warmth: Mapping[str, Warmth] = field(default_factory=dict)
    worn: SsdWear | None = None
    """The SSDs of the store, by the writes: of the hot set."""
    worn_everywhere: SsdWear | None = None
    """The same by those all over it, where they were run."""
    worn_cache: SsdWear | None = None
    """Those of the cache."""
    dirty_bytes: float = 0.0
    """Written, but only in the cache, after the writes; at full size."""
    notes: tuple[str, ...] = ()
    """How it was simulated."""

    @staticmethod
    def of(parts: Sequence[Part]) -> CandidateRun:
        """What several pieces of work found of one candidate."""
        whole: dict[str, Any] = {"notes": ()}
        for part in parts:
            for key, value in part.items():
                if key == "notes":
                    whole[key] += tuple(one for one in value if one not in whole[key])
                elif isinstance(value, dict):
                    whole[key] = {**whole.get(key, {}), **value}
                else:
                    whole[key] = value
        return CandidateRun(**whole)


Part = dict[str, Any]
"""What a piece of work found, by the name of a field of `CandidateRun`."""


def measured(
    candidates: Sequence[Candidate], work: Callable[[Candidate], list[bench.Variant[Part]]]
) -> Rounds[list[CandidateRun]]:
    """What comes of the pieces of work of candidates, in their order; one round."""
    pieces = list(map(work, candidates))
    found = iter((yield Round([variant for own in pieces for variant in own])))
    return [CandidateRun.of([next(found) for _ in own]) for own in pieces]


@dataclass(frozen=True)
class Times:
    """Simulation seconds of measurements."""

    disk: Timing
    flash: Timing
    ordered_disk: Timing
    ordered_cache: Timing


WHOLE = Times(Timing(20.0, 4.0), Timing(1.0, 0.2), Timing(5.0, 1.0), Timing(10.0, 10.0))
QUICK = Times(Timing(6.0, 2.0), Timing(0.25, 0.05), Timing(2.0, 0.5), Timing(3.0, 6.0))


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """How candidates are simulated, whatever the load."""

    seed: int = 1
    quick: bool = False
    disk_cache: bool = False
    """Whether disks keep their volatile write cache."""

    def ssd_bytes(self, store: Store) -> int:
        """The size of each SSD of a store without a cache."""
        if not store.shipped:
            return SSD_BYTES
        whole = STORE_BYTES_QUICK if self.quick else STORE_BYTES
        return max(SSD_BYTES, int(whole * store.drive_bytes / store.usable_bytes))

    def resized(self, store: Store, size: int | None) -> _core.Rig:
        """A store with SSDs of about so many bytes each."""
        return store.resized(size, disk_cache=self.disk_cache)

    def bed(
        self, candidate: Candidate, rigs: Sequence[_core.Rig], shrink: float, seat: Seat,
        reports: Iterator[ProgressCallback],
    ) -> Bed:  # fmt: skip
        """A candidate of stores in these sizes, its card's RAM divided."""
        rig = candidate.tree(rigs, candidate.card.scaled(shrink, least=RAM_MIN)).to_toml()
        return Bed(rig, candidate.text, self.seed, seat, reports)


@dataclass(frozen=True)
class TableLoads(Simulation):
    """The loads of a price table: random I/O in a hot set, and I/O in order."""

    hot: HotSet
    depth: int = DEPTH
    everywhere: bool = False
    """Whether SSDs are written all over, too."""

    @property
    def times(self) -> Times:
        """How long to measure."""
        return QUICK if self.quick else WHOLE

    @property
    def hot_min(self) -> int:
        """Least size of a hot set in the simulation."""
        return min(self.hot.bytes, HOT_MIN_QUICK if self.quick else HOT_MIN)

    def pieces(self, candidate: Candidate) -> list[bench.Variant[Part]]:
        """The pieces of work of one candidate."""
        if candidate.fast is not None:
            cached = _Cached(self, candidate, candidate.fast)
            bodies = [(cached.warm, 6.0), (cached.cold, 2.0), (cached.ordered, 3.0)]
        else:
            plain = _Plain(self, candidate)
            bodies = [(plain.random, 1.0 if plain.slow else 6.0), (plain.ordered, 1.0)]
        return [bench.Variant(body, cost) for body, cost in bodies]


@dataclass(frozen=True)
class _Work:
    """Of one candidate."""

    asked: TableLoads
    candidate: Candidate

    @property
    def slow(self) -> bool:
        """Whether the store has disks."""
        return self.candidate.pool.has_disk

    def at_random(
        self, bed: Bed, kind: str, hot: HotSet, timing: Timing, shrink: float = 1.0
    ) -> JobOutcome:
        """Random I/O in a hot set."""
        timing = self._behind_ram(kind, timing, shrink)
        rw, depth = f"rand{kind}", self.asked.depth
        return bed.run(loads.random_job(kind, rw, hot, bed.capacity, depth, timing))

    def in_order(self, bed: Bed, kind: str, timing: Timing, shrink: float = 1.0) -> Performance:
        """I/O in order, from the beginning."""
        return bed.run(loads.ordered_job(kind, kind, self._behind_ram(kind, timing, shrink))).did

    def _behind_ram(self, kind: str, timing: Timing, shrink: float = 1.0) -> Timing:
        """Writes are measured when the RAM of a card is full."""
        ram = ram_bytes(self.candidate.card) / shrink / RAM_FILLS_BYTES_PER_S
        return Timing(timing.seconds, timing.ramp + ram) if kind == "write" else timing


class _Plain(_Work):
    """A candidate without a cache."""

    def random(self, seat: Seat) -> Part:
        """Reads, then writes when collection has settled."""
        bed, hot, shrink = self._bed(seat, 6 if self.asked.everywhere else 4)
        timing = self.asked.times.disk if self.slow else self.asked.times.flash
        rates = {"read": self.at_random(bed, "read", hot, timing, shrink).did}
        if self.candidate.pool.flash:
            count = int(AGED_SHARE * bed.capacity + hot.bytes) // loads.BLOCK
            bed.run(loads.writes_job("age", hot, bed.capacity, self.asked.depth, count))
        wrote = self.at_random(bed, "write", hot, timing, shrink)
        rates["write"] = wrote.did
        notes = self._note(hot, shrink, bed.capacity)
        part: Part = {"rates": rates, "worn": wear_of(wrote, cache=False), "notes": notes}
        if self.asked.everywhere and not self.slow and not hot.fills(bed.capacity):
            whole = HotSet(bed.capacity)
            count = int(EVERYWHERE_SHARE * bed.capacity) // loads.BLOCK
            bed.run(loads.writes_job("age", whole, bed.capacity, self.asked.depth, count))
            wrote = self.at_random(bed, "write", whole, timing, shrink)
            part |= {"everywhere": wrote.did, "worn_everywhere": wear_of(wrote, cache=False)}
        return part

    def ordered(self, seat: Seat) -> Part:
        """The same in order."""
        bed, _, shrink = self._bed(seat, 3)
        timing = self.asked.times.ordered_disk if self.slow else self.asked.times.flash
        rates = {f"{kind}_ordered": self.in_order(bed, kind, timing, shrink) for kind in KINDS}
        return {"rates": rates}

    def _bed(self, seat: Seat, steps: int) -> tuple[Bed, HotSet, float]:
        """The store, the hot set on it, and by how much that and a card's RAM are smaller: RAM
        that keeps its size would hold all of a small hot set."""
        pool = self.candidate.pool
        rig = self.asked.resized(pool, self.asked.ssd_bytes(pool))
        hot = self._hot(rig.capacity_bytes)
        shrink = self.asked.hot.on(pool.usable_bytes).bytes / hot.bytes
        bed = self.asked.bed(self.candidate, [rig], shrink, seat, stages(seat.report, steps))
        if pool.flash:
            bed.prepare("sequential")
        return bed, hot, shrink

    def _hot(self, capacity: int) -> HotSet:
        """The hot set on a simulated store of so many bytes."""
        whole = self.candidate.pool.usable_bytes
        hot = self.asked.hot.on(whole)
        if hot.fills(whole):
            return HotSet(capacity, hot.spread)
        share = capacity / whole
        if share > 0.999:
            return hot
        least = min(hot.bytes, self.asked.hot_min, capacity // HOT_SHARE)
        return HotSet(max(int(hot.bytes * share), least), hot.spread)

    def _note(self, hot: HotSet, shrink: float, capacity: int) -> list[str]:
        """What of it is not to scale."""
        pool, card = self.candidate.pool, self.candidate.card
        told, whole = self.asked.hot.on(pool.usable_bytes), pool.usable_bytes
        if told.fills(whole) or capacity > 0.999 * whole:
            return []
        ram = ram_bytes(card.scaled(shrink, least=RAM_MIN))
        return [
            f"{pool.drive} at 1/{whole / capacity:.0f} of its blocks, the hot set at "
            f"{hot.bytes / 2**20:.0f} MiB ({100 * hot.bytes / capacity:.2g} % of the store; in "
            f"truth {100 * told.bytes / whole:.2g} %)"
            + (f", RAM at {ram / 2**20:.0f} MiB" if ram else "")
        ]


@dataclass(frozen=True)
class _Cached(_Work):
    """A candidate with a cache."""

    fast: Store

    def cold(self, seat: Seat) -> Part:
        """The first moments, with the hot set as it is."""
        hot = self.asked.hot.on(self.candidate.pool.usable_bytes)
        fits = min(1.5 * hot.bytes, self.fast.usable_bytes, CACHE_BYTES_COLD)
        timing = Timing(self.asked.times.disk.seconds / 8, 0.0)
        reports = stages(seat.report, len(KINDS))
        cold: dict[str, Performance] = {}
        for kind in KINDS:
            bed = self._bed(fits, 1.0, seat, reports)
            cold[kind] = self.at_random(bed, kind, hot.on(bed.capacity), timing).did
        return {"cold": cold}

    def warm(self, seat: Seat) -> Part:
        """When all of the hot set has been read and written."""
        asked = self.asked
        hot = asked.hot.on(self.candidate.pool.usable_bytes)
        small, fast_bytes = self._shrunk(hot)
        shrink = hot.bytes / small.bytes
        bed = self._bed(fast_bytes, shrink, seat, stages(seat.report, 2 * len(KINDS)))
        small = small.on(bed.capacity)
        fits = small.bytes <= fast_bytes
        timing = asked.times.flash if fits else asked.times.disk
        most = COVER_MOST_QUICK if asked.quick else COVER_MOST
        if not fits:
            # Every block of the cache has been exchanged several times by then.
            most = min(most, (3 if asked.quick else 6) * int(fast_bytes / BLOCK))
        part: Part = {"rates": {}, "warmth": {}, "hits": {}}
        for kind in KINDS:
            job = loads.covering_job(
                "warm", f"rand{kind}", small, bed.capacity, asked.depth,
                times=COVER_TIMES, most=most,
            )  # fmt: skip
            warmed = bed.run(job)
            whole = small.bytes // loads.BLOCK <= most
            part["warmth"][kind] = Warmth(warmed.seconds * shrink, whole)
            ran = self.at_random(bed, kind, small, timing, shrink)
            part["rates"][kind], part["hits"][kind] = ran.did, ran.found("hits", kind) or 0.0
        return part | {
            "dirty_bytes": ran.dirty_bytes() * shrink,
            "worn": wear_of(ran, cache=False),
            "worn_cache": wear_of(ran, cache=True) or wear_of(warmed, cache=True),
            "notes": self._note(shrink, small, fast_bytes),
        }

    def ordered(self, seat: Seat) -> Part:
        """In order over cold data; writes once the cache holds all that it may hold of them."""
        timing, reports = self.asked.times.ordered_cache, stages(seat.report, len(KINDS))
        timings = {"read": Timing(timing.seconds, 1.0), "write": timing}
        rates = {
            f"{kind}_ordered": self.in_order(
                self._bed(CACHE_BYTES_MIN, 1.0, seat, reports), kind, timings[kind]
            )
            for kind in KINDS
        }
        return {"rates": rates}

    def _bed(
        self, fast_bytes: float, shrink: float, seat: Seat, reports: Iterator[ProgressCallback]
    ) -> Bed:
        """The candidate with a cache of about ``fast_bytes`` usable, a card's RAM divided."""
        pool, fast, asked = self.candidate.pool, self.fast, self.asked
        share = min(1.0, fast_bytes / fast.usable_bytes)
        each = fast.drive_bytes * share if fast.shipped else 0
        below = asked.resized(pool, None if self.slow else asked.ssd_bytes(pool))
        rigs = [below, asked.resized(fast, int(each))]
        return asked.bed(self.candidate, rigs, shrink, seat, reports)

    def _shrunk(self, hot: HotSet) -> tuple[HotSet, float]:
        """A hot set and a cache as they are simulated, in the same proportion if that matters."""
        fast, asked, whole = self.fast, self.asked, self.fast.usable_bytes
        if not fast.shipped:
            return hot, float(whole)
        least = CACHE_BYTES_MIN // 2 if asked.quick else CACHE_BYTES_MIN
        wanted = min(max(least, whole * asked.hot_min / hot.bytes), whole)
        wanted = min(wanted, max(least, CACHE_HOT_SETS * asked.hot_min))
        full = fast.drive_bytes
        # An SSD of many dies cannot be as small as one may want.
        found = whole * fast.simulated_bytes(int(full * wanted / whole)) / full
        size = found * max(hot.bytes / whole, 1 / CACHE_HOT_SETS)
        return HotSet(min(hot.bytes, int(size)), hot.spread), found

    def _note(self, shrink: float, hot: HotSet, fast_bytes: float) -> list[str]:
        if shrink <= 1.0:
            return []
        return [
            f"warm cache: hot set at 1/{shrink:.0f}, {self.fast.drive} at "
            f"1/{self.fast.usable_bytes / fast_bytes:.0f} ({hot.bytes / 2**20:.0f} MiB on "
            f"{fast_bytes / 2**30:.3g} GiB)"
        ]
