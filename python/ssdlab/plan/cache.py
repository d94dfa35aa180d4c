"""Which cache to put before a pool: curves, a short list, simulations in time, a choice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ssdlab import bench, units
from ssdlab.answer import Answer
from ssdlab.arrays.grid import performance, state_for
from ssdlab.errors import InputError, SsdlabError
from ssdlab.jobfile import JobText, replaying
from ssdlab.plan.bed import FURTHER, Passes, Schedule, pass_interval, run_passes
from ssdlab.plan.candidates import (
    CacheCandidate,
    Costs,
    ShortList,
    reserve_share,
    shrunk,
    sub_block,
    written,
)
from ssdlab.plan.curves import Accesses, HitCurve, accesses, curve
from ssdlab.plan.lifetime import AgedDrive, life
from ssdlab.plan.question import FINE, CachePlan, CacheQuestion
from ssdlab.plan.ram import BEHIND, behind
from ssdlab.plan.rounds import Round, Rounds
from ssdlab.plan.rows import CacheRow, Choice, Kind, choose
from ssdlab.plan.stores import Store, cached, letter
from ssdlab.plan.tables import chapters
from ssdlab.plan.warmup import Formula
from ssdlab.plan.workload import Load, Stream, job_capture, job_load, trace_load
from ssdlab.rig import registered
from ssdlab.target import Settings, Sim
from ssdlab.tracefile import existing

SIZE_MIN = 8 << 20
SIZE_SHARES = (0.5, 0.8, 0.95)
"""Of the attainable hits: sizes that are tried unless others are asked for."""
NEIGHBOURS = 3
"""Of the best, that are simulated too."""
GAP = 2.5
"""Sizes farther apart than this get one between them."""
BOUNDS_MS = 100
"""Interval of the series of what runs alone; what the pool takes decides those of the others."""
DISKS_IOPS = 6000
"""A pool with disks does no more than about this: a long trace takes it long enough for longer
intervals, each of which takes memory."""
ALONE_MIN = 256 << 30
"""A fast device larger than this (and than the load) is simulated smaller where it works alone,
or one whose reserve holds what a trace writes: nothing is collected then, on all of it either."""
LIVES = 0.05
"""Share of all the work that old drives take, by which a cache's life is known."""
CURVE = 0.3
"""Work of a curve, in passes of the load."""
BOTH = 2
"""Work of a pass through a cache, in passes of a device alone: both devices take part."""
GOES_ON = 4
"""Passes that a job goes on for on a cache, in its own length, about."""
PRESETS = "preset of a cache"
DISK_S = 20.0
"""Simulated seconds for the rate of one disk."""


class CachePlanner(CacheQuestion):
    """Finds the cache to take."""

    @property
    def subject(self) -> str:
        """What it is about, for the line of progress."""
        return f"caches for {self.pool.text}"

    def judge(self, plan: CachePlan) -> Answer:
        """The caches beside each other and beside the pool alone."""
        texts = {
            "the load at full speed": plan.load.full_speed.text,
            "pool alone": plan.pool.rig,
        }
        if plan.choice.best is not None:
            texts[plan.choice.best.name] = plan.choice.best.rig
        ram = "" if self.ram is None else f"behind RAM ({self.ram.title}), "
        note = (
            f"{plan.load.name} on {self.pool.title}, {ram}caches on "
            f"{', '.join(store.title for store in self.fasts)}; "
            f"{len(plan.caches)} caches simulated in time"
        )
        # Which software of which version each stands for.
        presets = [f"preset {one}: {registered(PRESETS)[one]}" for one in self.presets]
        return Answer(
            f"A cache for {plan.load.name}",
            "plan",
            chapters(plan),
            notes=[note, *presets, *plan.notes],
            texts=texts,
            data=plan.as_json(),
        )

    def variants(self) -> Rounds[CachePlan]:
        """What the pool does alone, what the load allows, what caches do, and which to take;
        InputError where the load, a store or a size is wrong, or the load does not fit."""
        self._check_sizes()
        load = self._load()
        pool, fasts, notes = yield from self._alone(load)
        if self.job is not None:
            did, capacity = pool.passes.first.did, self.pool.capacity_bytes
            writer = job_capture(
                load, capacity, round(did.iops * did.seconds), did.seconds, self.seed
            )
            (load,) = yield Round([writer], sum(self._until[:2]) / 2)
        past = (
            load.stream if self.ram is None or not load.stream else self.ram.lets_past(load.stream)
        )
        curves, sizes = yield from self._curves(past)
        main = curves.get(("lru", FINE))
        short = ShortList(replace(self, sizes=sizes), curves, self._costs(pool, fasts))
        if not short.chosen:
            raise InputError("--sizes: no size is large enough for a block of any size asked for")
        (disk,) = yield Round([disk_rate(self.pool, load.request_bytes, self.seed)], self._until[2])
        interval = pass_interval(pool.passes.first.did.seconds)
        order = Schedule(load, self.passes, self.seed, interval, FURTHER, self._place)
        table = _Caches(self, order, disk)
        reuse = None if main is None else main.attainable
        caches = yield from table.rows(short.chosen, self._until[3])
        if not self.quick:
            more = self._beside(short, caches, choose(caches, pool, self.rules, reuse))
            caches += yield from table.rows(more)
        caches = [replace(row, mark=letter(place)) for place, row in enumerate(caches)]
        dropped = [*dict.fromkeys(short.dropped), *_untried(short, caches, bool(curves))]
        return CachePlan(
            self,
            load,
            sizes,
            curves,
            dropped,
            pool,
            [pool, *fasts, *caches],
            choose(caches, pool, self.rules, reuse),
            (*load.notes, *notes),
        )

    @property
    def _place(self) -> str:
        """Of the storage in the rigs."""
        return "" if self.ram is None else BEHIND

    @cached_property
    def _until(self) -> list[float]:
        """Shares of the work that are done after what runs alone, the curves of LRU, the other
        curves, the short list, and its neighbours."""
        runs = 1 + len(self.fasts)
        one = 1 if self.job is not None else self.passes + 1
        warm = GOES_ON if self.job is not None else one + (self.passes > 2)
        caches = max(self.top, len(self.modes) * len(self.fasts)) + len(self.presets)
        beside = 0 if self.quick else NEIGHBOURS + len(self.fasts)
        curves = [len(self.blocks) + 1, len(self.blocks) * len(self.policies)]
        cached = (BOTH * warm * count for count in (caches, beside))
        work = [runs * one, *(CURVE * count for count in curves), *cached]
        return [sum(work[: place + 1]) / sum(work) for place in range(len(work))]

    def _check_sizes(self) -> None:
        largest = max(store.capacity_bytes for store in self.fasts)
        for size in self.sizes:
            if size > largest:
                raise InputError(
                    f"--sizes {units.binary(size)}: larger than the largest cache device "
                    f"({units.binary(largest)})"
                )
            if size >= self.pool.capacity_bytes:
                raise InputError(
                    f"--sizes {units.binary(size)}: a cache as large as the pool "
                    f"({units.binary(self.pool.capacity_bytes)}) is no "
                    "cache; take the fast device alone"
                )

    def _load(self) -> Load:
        """The load, as far as it is known before it has run."""
        if self.job is not None:
            return job_load(self.job)
        trace, capacity = self.trace or Path(), self.pool.capacity_bytes
        return trace_load(trace, self.reading, self.fit, capacity, self.depth)

    def row(
        self, kind: Kind, name: str, store: Store, passes: Passes, rig: str,
        usable_bytes: int | None = None, **more: Any,
    ) -> CacheRow:  # fmt: skip
        """A storage with what it did and what it costs."""
        return CacheRow(
            kind,
            name,
            store,
            passes,
            rig,
            self.prices.missing(store.bill),
            price=self.prices.of(store.bill),
            usable_bytes=usable_bytes or passes.capacity,
            **more,
        )

    def _alone(self, load: Load) -> Rounds[tuple[CacheRow, list[CacheRow], list[str]]]:
        """What the pool does alone, and what each fast device does with all of the load on it."""
        order = Schedule(load, self.passes, self.seed, BOUNDS_MS, place=self._place)

        rig, least_s = behind(self.ram, self.pool).rig(), 0.0
        if load.stream is not None and self.pool.has_disk:
            least_s = len(load.stream.timed) / DISKS_IOPS
        pool_order = replace(order, interval_ms=max(BOUNDS_MS, pass_interval(least_s)))
        pool = partial(run_passes, rig, self.pool.text, pool_order, state=prepared(self.pool))

        def alone(store: Store) -> bench.Variant[Passes | SsdlabError]:
            small, own = self._fast_rig(store, load)
            run = partial(
                run_passes, small, store.text, replace(order, load=own), state="sequential"
            )
            # A fast device that cannot be simulated alone is no reason to stop.
            return bench.Variant(bench.Tolerant(run))

        did, *found = yield Round([bench.Variant(pool), *map(alone, self.fasts)], self._until[0])
        row = self.row("pool", "pool alone", self.pool, did, rig)
        rows, notes = [], []
        for store, passes in zip(self.fasts, found, strict=True):
            if isinstance(passes, SsdlabError):
                notes.append(f"{store.title} alone is not simulated: {passes}.")
                continue
            said = ["addresses scaled to its size"] if load.end_byte > store.capacity_bytes else []
            wrote = sum(pass_.stretch.written.host for pass_ in passes.passes)
            # Jobs that write in order leave nothing to collect, however long they go on.
            ordered = load.is_job and state_for(load.full_speed) != "steady"
            if 0 < wrote < (reserve_share(store) or 0.0) * passes.capacity and not ordered:
                said.append("new: it has nothing to collect yet")
            fast = self.row(
                "fast", f"{store.text} alone", store, passes, behind(self.ram, store).rig(),
                note=", ".join(said), usable_bytes=store.capacity_bytes,
            )  # fmt: skip
            rows.append(fast)
        return row, rows, notes

    def _fast_rig(self, store: Store, load: Load) -> tuple[str, Load]:
        """A fast device made small, and the load where it reaches beyond it: scaled to it."""
        capacity = store.capacity_bytes
        room, reserve = ALONE_MIN, reserve_share(store)
        if load.stream is not None and reserve:
            count = self.passes + (load.recorded is not None)
            room = min(room, round(written(store, count * load.stream.timed.write_bytes) / reserve))
        least = max(room, capacity if load.is_job else load.end_byte)
        small = replace(store, tree=shrunk(store, least) or store.tree)
        rig = behind(self.ram, small).rig()
        if self.trace is None or load.end_byte <= capacity:
            return rig, load
        file, how = existing(self.trace), replace(load.full_speed.replay, fit="scale")
        timed = replaying(file, replace(how, open_loop=True)) if load.recorded else None
        return rig, replace(load, full_speed=replaying(file, how, self.depth), recorded=timed)

    def _curves(
        self, stream: Stream | None
    ) -> Rounds[tuple[dict[tuple[str, int], HitCurve], list[int]]]:
        """LRU at all sizes, the other policies at those of the candidates; and these sizes."""
        largest = max(store.capacity_bytes for store in self.fasts)
        if stream is None:
            # Nothing is known of the load: a sixteenth, a quarter and all of the device.
            return {}, list(self.sizes) or [largest // 16, largest // 4, largest]
        blocks = dict.fromkeys((FINE, *self.blocks))
        seen = {block: accesses(stream, block) for block in blocks}
        found = yield Round([_curve("lru", one, None) for one in seen.values()], self._until[1])
        curves = {("lru", block): one for block, one in zip(seen, found, strict=True)}
        coarse = curves["lru", max(self.blocks)]
        sizes = list(self.sizes) or sizes_for(curves["lru", FINE], coarse, largest, self.quick)
        others = [
            (policy, block) for block in self.blocks for policy in self.policies if policy != "lru"
        ]
        more = yield Round(
            [_curve(policy, seen[block], sizes) for policy, block in others], self._until[2]
        )
        return {**curves, **dict(zip(others, more, strict=True))}, sizes

    def _costs(self, pool: CacheRow, fasts: Sequence[CacheRow]) -> dict[str, Costs]:
        """Times of both devices, by the text of the fast one."""
        slow, *quick = [
            [row.mean_past_ram_ns(way) for way in ("read", "write")] for row in (pool, *fasts)
        ]
        # Of a fast device that could not be measured: ten times as fast as the pool.
        costs = {store.text: Costs(*slow, *(mean / 10 for mean in slow)) for store in self.fasts}
        known = {row.store.text: Costs(*slow, *one) for row, one in zip(fasts, quick, strict=True)}
        return costs | known

    def _beside(
        self, short: ShortList, caches: Sequence[CacheRow], choice: Choice
    ) -> list[CacheCandidate]:
        """Neighbours of what came out best, of the best on each other fast device, and of the
        fastest that defers writes."""
        tried = {row.candidate for row in caches if row.candidate is not None}
        best = choice.best or (choice.runners[0] if choice.runners else None)
        leads = [] if best is None else [(best, NEIGHBOURS)]
        for fast in self.fasts:
            own = [row for row in caches if row.candidate and row.candidate.fast == fast]
            good = [row for row in own if row.name not in choice.refused]
            if good and best not in own:
                leads.append((max(good, key=lambda row: self.rules.value(row) or 0.0), 1))
        deferring = [row for row in caches if row.defers]
        if deferring:
            leads.append((max(deferring, key=lambda row: row.iops), 1))
        candidates: list[CacheCandidate] = []
        for row, most in leads:
            if row.candidate is not None:
                candidates += short.neighbours(row.candidate, tried | set(candidates))[:most]
        return candidates


@dataclass(frozen=True)
class _Caches:
    """What all caches are simulated with."""

    asked: CachePlanner
    order: Schedule
    disk_iops: float
    aged: dict[AgedDrive, float | SsdlabError] = field(default_factory=dict)

    def rows(self, chosen: Sequence[CacheCandidate], until: float = 1.0) -> Rounds[list[CacheRow]]:
        """What each cache does, and how long it lives, which old drives tell that are simulated
        once each."""
        pool = self.asked.pool
        runs = [
            partial(
                run_passes,
                candidate.rig(pool, self.asked.ram, self._moved),
                candidate.name,
                replace(self.order, cache_bytes=candidate.size),
                state=prepared(pool),
            )
            for candidate in chosen
        ]
        did = yield Round([bench.Variant(run) for run in runs], until - LIVES)
        drives = map(AgedDrive.of, chosen, did)
        new = dict.fromkeys(
            drive
            for drive in drives
            if drive is not None and not drive.roomy and drive not in self.aged
        )
        self.aged.update(
            zip(new, (yield Round([drive.variant() for drive in new], until)), strict=True)
        )
        return list(map(self._row, chosen, did))

    @cached_property
    def _moved(self) -> int | None:
        """Bytes of all passes, in whole sub-blocks; unknown of a job, which goes on for as long as
        it takes."""
        order, stream = self.order, self.order.load.stream
        if stream is None or order.load.is_job:
            return None
        count = order.passes + order.further + (order.load.recorded is not None)
        unit = max(map(sub_block, self.asked.blocks))
        return count * accesses(stream.timed, unit).total * unit

    def _row(self, candidate: CacheCandidate, passes: Passes) -> CacheRow:
        pool, name = self.asked.pool, candidate.name
        return self.asked.row(
            "cache",
            name if len(self.asked.fasts) == 1 else f"{candidate.fast.text}, {name}",
            cached(candidate.fast, pool, candidate.keys),
            passes,
            candidate.rig(pool, self.asked.ram, self._moved),
            candidate=candidate,
            formula=self._formula(candidate),
            life=life(candidate, passes, self.order.load.span_s, self.aged),
        )

    def _formula(self, candidate: CacheCandidate) -> Formula | None:
        disks = sum(self.asked.pool.bill.values())
        if candidate.threshold is None or not self.disk_iops:
            return None
        request = self.order.load.request_bytes
        return Formula(candidate.size, candidate.threshold, self.disk_iops, request, disks)


def _untried(short: ShortList, caches: Sequence[CacheRow], known: bool) -> Iterator[str]:
    run_ones = sum(row.candidate is not None and row.candidate.preset is None for row in caches)
    left = len(short.grid) - run_ones
    if left > 0:
        how = "by the curves they are no faster than those that are"
        yield (
            f"{left} of the remaining {len(short.grid)} combinations are not simulated: "
            f"{how if known else 'their hits are unknown'}, or "
            "they differ in one choice from one that is (--top takes more)."
        )


def prepared(store: Store) -> str:
    """The state that a store begins in: what reads find must lie in the flash of an SSD; where a
    hard disk is below, what was never written is read like the rest."""
    return "sequential" if store.reads_flash else "fob"


def _curve(policy: str, seen: Accesses, sizes: Sequence[int] | None) -> bench.Variant[HitCurve]:
    wanted = None if sizes is None else [float(size) for size in sizes]
    return bench.Variant(partial(_drawn, policy, seen, wanted), float(seen.total))


def _drawn(
    policy: str, seen: Accesses, sizes: Sequence[float] | None, seat: bench.Seat
) -> HitCurve:
    return curve(policy, seen, sizes, progress=seat.report)


def sizes_for(fine: HitCurve, coarse: HitCurve, largest: int, quick: bool) -> list[int]:
    """Sizes worth trying: for 50, 80 and 95 % of the attainable hits, and for everything, in
    blocks of the largest size asked for."""
    everything = 1.1 * coarse.footprint
    wanted = [fine.working_set(share) or everything for share in SIZE_SHARES]
    least = max(SIZE_MIN, 64 * coarse.block)
    sizes = sorted({min(largest, rounded_up(max(least, size))) for size in [*wanted, everything]})
    if quick:
        return sizes[-2:]
    between = [
        rounded_up((small * large) ** 0.5)
        for small, large in itertools.pairwise(sizes)
        if large > GAP * small
    ]
    return sorted({*sizes, *between})


def rounded_up(size: float) -> int:
    """The next of 1, 1.25, 1.5 and 1.75 times powers of two."""
    power = 1 << max(0, int(size) - 1).bit_length() - 1
    return next((power * n // 4 for n in range(4, 8) if power * n // 4 >= size), 2 * power)


def disk_rate(pool: Store, request: float, seed: int) -> bench.Variant[float]:
    """IOPS of one disk of a pool in random reads of about ``request`` bytes, one at a time."""
    disk = replace(pool, tree=pool.tree.part("member") or pool.tree)
    size = max(512, round(request / 512) * 512)
    text = (
        f"[disk]\nrw=randread\nbs={size}\nblockalign=512\niodepth=1\nsize=100%\nnorandommap\n"
        f"runtime={DISK_S:g}\ntime_based\n"
    )
    settings = Settings(seed=seed, prepare=prepared(disk), interval_ms=1000)
    job, target = JobText("disk", text, Path.cwd()), Sim(pool.text, disk.rig())
    return bench.Variant(partial(_rate, target, job, settings))


def _rate(target: Sim, job: JobText, settings: Settings, seat: bench.Seat) -> float:
    return performance(target, job, settings, seat).iops
