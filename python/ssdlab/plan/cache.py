"""Which cache to put before a pool: curves, a short list, simulations in time, a choice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ssdlab import bench, units
from ssdlab.bench import Seat
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.plan import candidates as cand
from ssdlab.plan.candidates import Asked, CacheCandidate, Costs, Fast, Short
from ssdlab.plan.curves import Accesses, HitCurve, accesses, curve
from ssdlab.plan.lifetime import AgedDrives, life, writes_of
from ssdlab.plan.prices import Prices
from ssdlab.plan.rows import CacheRow, Choice, Formula, Rules, choose
from ssdlab.plan.stores import Store, cached, letter
from ssdlab.plan.timed import Schedule, Timed, interval, run
from ssdlab.plan.warmup import warm_up, warm_up_s
from ssdlab.plan.workload import Load, job_load, replay, trace_load
from ssdlab.progress import ProgressCallback, within
from ssdlab.target import Settings, Sim
from ssdlab.tracefile import Reading, existing

SIZE_MIN = 8 << 20
SIZE_SHARES = (0.5, 0.8, 0.95)
"""Of the attainable hits: sizes that are tried unless others are asked for."""
NEIGHBOURS = 3
"""Of the best, that are simulated too."""
GAP = 2.5
"""Sizes farther apart than this get one between them."""
BOUNDS_MS = 100
"""Interval of the series of the pool alone; what it takes decides the intervals of the others."""
ALONE_MIN = 256 << 30
"""A fast device larger than this (and than the load) is simulated smaller where it works alone:
its reserve stays large enough for what a trace writes."""
FINE = 4096
"""Block of the curve that says what data is asked for again."""
DISK_S = 20.0
"""Simulated seconds for the rate of one disk."""


@dataclass(frozen=True)
class Wish:
    """What is asked for."""

    pool: Store
    fasts: Sequence[Fast]
    prices: Prices
    trace: Path | None = None
    reading: Reading = field(default_factory=Reading)
    fit: str = "as-is"
    job: JobText | None = None
    sizes: Sequence[int] = ()
    """Empty: chosen by the working set."""
    blocks: Sequence[int] = (16 << 10, 64 << 10)
    thresholds: Sequence[int] = (1, 2)
    policies: Sequence[str] = ("lru", "arc", "s3-fifo")
    modes: Sequence[str] = ("write-back", "write-through", "write-around")
    presets: Sequence[str] = ()
    top: int = 6
    depth: int = 32
    passes: int = 3
    seed: int = 1
    quick: bool = False
    rules: Rules = field(default_factory=Rules)


@dataclass(frozen=True)
class CachePlan:
    """The answer."""

    wish: Wish
    load: Load
    sizes: Sequence[int]
    curves: Mapping[tuple[str, int], HitCurve]
    """At all sizes for LRU, at the candidates' for other policies."""
    short: Short
    pool: CacheRow
    rows: Sequence[CacheRow]
    """The pool, the fast devices, the caches."""
    choice: Choice
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def caches(self) -> list[CacheRow]:
        """The rows of caches."""
        return [row for row in self.rows if row.kind == "cache"]

    @property
    def main(self) -> HitCurve | None:
        """The curve that the working set is read from: LRU in blocks of 4 KiB."""
        return self.curves.get(("lru", FINE))


def plan(wish: Wish, progress: ProgressCallback | None = None) -> CachePlan:
    """Finds the cache to take.

    Raises:
        InputError: the load, a store or a size is wrong, or the load does not fit.
        Interrupted: Ctrl-C, or the progress callback returned False.
    """
    report = progress or (lambda _news: True)
    bounds = within(report, 0.0, 0.2)
    load, pool_row, fast_rows, notes = _bounds(wish, bounds)
    curves, sizes = _curves(wish, load, within(report, 0.2, 0.35))
    asked = Asked(
        wish.fasts, sizes, wish.blocks, wish.thresholds, wish.policies, wish.modes, wish.presets
    )
    costs = {row.store.text: _costs(pool_row.timed, row.timed) for row in fast_rows}
    costs = {one.store.text: costs.get(one.store.text, _like(pool_row.timed)) for one in wish.fasts}
    short = cand.shorten(asked, lambda policy, block: curves.get((policy, block)), costs, wish.top)
    if not short.chosen:
        raise InputError("--sizes: no size is large enough for a block of any size asked for")
    seconds = pool_row.timed.first.reading.seconds
    order = Schedule(load, wish.passes, wish.seed, interval(seconds))
    disk = disk_iops(wish.pool, _request_bytes(load), wish.seed, within(report, 0.35, 0.37))
    caches_of = _Bench(wish, load, order, disk, AgedDrives())
    end = 1.0 if wish.quick else 0.75
    caches = caches_of.run(short.chosen, within(report, 0.37, end))
    main = curves.get(("lru", FINE))
    reuse = None if main is None else main.attainable
    if not wish.quick:
        more = _beside(wish, short, caches, choose(caches, pool_row, wish.rules, reuse))
        caches += caches_of.run(more, within(report, end, 1.0)) if more else []
    caches = [replace(row, mark=letter(place)) for place, row in enumerate(caches)]
    choice = choose(caches, pool_row, wish.rules, reuse)
    short = replace(short, dropped=(*short.dropped, *_untried(short, caches, bool(curves))))
    rows = [pool_row, *fast_rows, *caches]
    return CachePlan(
        wish, load, sizes, curves, short, pool_row, rows, choice, (*load.notes, *notes)
    )


def _beside(
    wish: Wish, short: Short, caches: Sequence[CacheRow], choice: Choice
) -> list[CacheCandidate]:
    """Neighbours of what came out best, of the best on each other fast device, and of the fastest
    that defers writes."""
    tried = {row.candidate for row in caches if row.candidate is not None}
    best = choice.best or (choice.runners[0] if choice.runners else None)
    leads = [] if best is None else [(best, NEIGHBOURS)]
    for fast in wish.fasts:
        own = [row for row in caches if row.candidate and row.candidate.fast == fast]
        good = [row for row in own if row.name not in choice.refused]
        if good and best not in own:
            leads.append((max(good, key=lambda row: wish.rules.value(row) or 0.0), 1))
    deferring = [row for row in caches if row.defers]
    if deferring:
        leads.append((max(deferring, key=lambda row: row.iops), 1))
    found: list[CacheCandidate] = []
    for row, most in leads:
        if row.candidate is not None:
            found += cand.neighbours(short, row.candidate, tried | set(found))[:most]
    return found


def _untried(short: Short, caches: Sequence[CacheRow], known: bool) -> list[str]:
    run_ones = sum(row.candidate is not None and row.candidate.preset is None for row in caches)
    left = len(short.grid) - run_ones
    if left <= 0:
        return []
    how = "their hits are unknown"
    if known:
        how = "by the curves they are no faster than those that are"
    return [
        f"{left} of the remaining {len(short.grid)} combinations are not simulated: {how}, or "
        "they differ in one choice from one that is (--top takes more)."
    ]


Work = Callable[[Schedule, Seat], Timed]
"""A simulation of a load."""


def _variant(work: Work, order: Schedule) -> bench.Variant[Timed]:
    return bench.Variant(lambda seat: work(order, seat))


def _bounds(
    wish: Wish, report: ProgressCallback
) -> tuple[Load, CacheRow, list[CacheRow], list[str]]:
    """The load, what the pool does alone, and what each fast device does alone."""
    capacity = wish.pool.tree.copy(name=wish.pool.text).capacity_bytes
    _check_sizes(wish, capacity)
    if wish.job is not None:
        first = Load(wish.job.name, None, 0.0, 0, wish.job, None)
    else:
        first = trace_load(
            wish.trace or Path(), wish.reading, wish.fit, capacity, wish.depth
        )  # fmt: skip
    order = Schedule(first, wish.passes, wish.seed, BOUNDS_MS)
    works = [_work(wish.pool.rig(), wish.pool.text, prepared(wish.pool))]
    works += [_alone(one, wish, first) for one in wish.fasts]
    # A fast device that cannot be simulated alone is no reason to stop.
    bodies = [_variant(work, order).body for work in works]
    variants = [bench.Variant(bench.tolerant(body)) for body in bodies]
    done = bench.run(variants, within(report, 0.0, 0.8))
    found = done[0]
    if not isinstance(found, Timed):
        raise found
    pool_row = _row(wish, "pool", "pool alone", wish.pool, found)
    notes, rows = [], []
    for one, timed in zip(wish.fasts, done[1:], strict=True):
        if isinstance(timed, InputError):
            notes.append(f"{one.store.title} alone is not simulated: {timed}.")
            continue
        scaled = first.end_byte > one.capacity
        note = "addresses scaled to its size" if scaled else ""
        row = _row(wish, "fast", f"{one.store.text} alone", one.store, timed, note)
        rows.append(replace(row, full_size=one.capacity))
    load = first
    if wish.job is not None:
        reading = found.first.reading
        ios = round(reading.iops * reading.seconds)
        load = job_load(
            wish.job, capacity, ios, reading.seconds, wish.seed, within(report, 0.8, 1.0)
        )
    return load, pool_row, rows, notes


def _check_sizes(wish: Wish, capacity: int) -> None:
    largest = max(one.capacity for one in wish.fasts)
    for size in wish.sizes:
        if size > largest:
            raise InputError(
                f"--sizes {units.binary(size)}: larger than the largest cache device "
                f"({units.binary(largest)})"
            )
        if size >= capacity:
            raise InputError(
                f"--sizes {units.binary(size)}: a cache as large as the pool "
                f"({units.binary(capacity)}) is no "
                "cache; take the fast device alone"
            )


def prepared(store: Store) -> str:
    """The state that a store begins in: what reads find must lie in the flash of an SSD; where a
    hard disk is below, what was never written is read like the rest."""
    return "sequential" if store.reads_flash else "fob"


def _work(rig: str, name: str, state: str) -> Work:
    return lambda order, seat: run(rig, name, order, seat, state)


def _alone(one: Fast, wish: Wish, load: Load) -> Work:
    """The whole load on a fast device: where it does not reach so far, scaled to it."""
    least = max(ALONE_MIN, one.capacity if load.is_job else load.end_byte)
    rig = replace(one.store, tree=cand.shrunk(one, least) or one.store.tree).rig()
    if wish.trace is not None and load.end_byte > one.capacity:
        file, how = existing(wish.trace), load.full_speed.replay.reading
        load = replace(
            load,
            full_speed=replay(file, how, "scale", wish.depth),
            recorded=replay(file, how, "scale", None) if load.recorded else None,
        )

    return lambda order, seat: run(
        rig, one.store.text, replace(order, load=load), seat, "sequential"
    )


def _row(wish: Wish, kind: Any, name: str, store: Store, found: Timed, note: str = "") -> CacheRow:
    row = CacheRow(
        kind, name, store, found, wish.prices.of(store.bill), wish.prices.missing(store.bill),
        store.rig(), note=note,
    )  # fmt: skip
    warm = warm_up([one.ramp for one in found.passes])
    return replace(row, warm=warm) if kind == "cache" else row


def _costs(pool: Timed, fast: Timed) -> Costs:
    slow, quick = pool.last.mean_ns, fast.last.mean_ns
    return Costs(
        slow.get("read", 0.0),
        slow.get("write", 0.0),
        quick.get("read", 0.0),
        quick.get("write", 0.0),
    )


def _like(pool: Timed) -> Costs:
    """Of a fast device that could not be measured: ten times as fast as the pool."""
    slow = pool.last.mean_ns
    read, write = slow.get("read", 0.0), slow.get("write", 0.0)
    return Costs(read, write, read / 10, write / 10)


def _curves(
    wish: Wish, load: Load, report: ProgressCallback
) -> tuple[dict[tuple[str, int], HitCurve], list[int]]:
    """LRU at all sizes, the other policies at those of the candidates; and these sizes."""
    largest = max(one.capacity for one in wish.fasts)
    if load.stream is None:
        return {}, list(wish.sizes) or _steps_of(largest)
    blocks = dict.fromkeys((FINE, *wish.blocks))
    seen = {block: accesses(load.stream, block) for block in blocks}
    found = bench.run([_curve("lru", one, None) for one in seen.values()], within(report, 0.0, 0.4))
    curves = {("lru", block): one for block, one in zip(seen, found, strict=True)}
    sizes = list(wish.sizes) or sizes_for(
        curves["lru", FINE], curves["lru", max(wish.blocks)], largest, wish.quick
    )
    others = [
        (policy, block) for block in wish.blocks for policy in wish.policies if policy != "lru"
    ]
    pieces = [_curve(policy, seen[block], sizes) for policy, block in others]
    more = bench.run(pieces, within(report, 0.4, 1.0)) if pieces else []
    return {**curves, **dict(zip(others, more, strict=True))}, sizes


def _curve(policy: str, seen: Accesses, sizes: Sequence[int] | None) -> bench.Variant[HitCurve]:
    wanted = None if sizes is None else [float(one) for one in sizes]
    return bench.Variant(
        lambda seat: curve(policy, seen, wanted, progress=seat.report), float(seen.total)
    )


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


def _steps_of(largest: int) -> list[int]:
    """Sizes where nothing is known of the load: a sixteenth, a quarter and all of the device."""
    return [largest // 16, largest // 4, largest]


@dataclass(frozen=True)
class _Bench:
    """What all caches are simulated with."""

    wish: Wish
    load: Load
    order: Schedule
    disk_iops: float
    aged: AgedDrives

    def run(self, chosen: Sequence[CacheCandidate], report: ProgressCallback) -> list[CacheRow]:
        """The rows of caches, in their order."""
        wish, request = self.wish, _request_bytes(self.load)
        state = prepared(wish.pool)
        works = [_work(one.rig(wish.pool), one.name, state) for one in chosen]
        found = bench.run([_variant(work, self.order) for work in works], within(report, 0.0, 0.9))
        asked = [writes_of(one, timed) for one, timed in zip(chosen, found, strict=True)]
        self.aged.learn(asked, within(report, 0.9, 1.0))
        rows = []
        for one, timed in zip(chosen, found, strict=True):
            store = cached(one.fast.store, wish.pool, one.keys)
            row = _row(wish, "cache", _name(wish, one), store, timed)
            rows.append(
                replace(
                    row,
                    candidate=one,
                    rig=one.rig(wish.pool),
                    formula=_formula(wish, one, self.disk_iops, request),
                    life=life(one, timed, self.load.span_s, self.aged),
                )
            )
        return rows


def _name(wish: Wish, one: CacheCandidate) -> str:
    return one.name if len(wish.fasts) == 1 else f"{one.fast.store.text}, {one.name}"


def _request_bytes(load: Load) -> float:
    return load.stream.mean_bytes if load.stream is not None else 4096.0


def _formula(wish: Wish, one: CacheCandidate, disk: float, request: float) -> Formula | None:
    disks = sum(wish.pool.bill.values())
    if one.threshold is None or not disk:
        return None
    seconds = warm_up_s(one.size, one.threshold, disk, request, disks)
    return Formula(one.size, one.threshold, disk, request, disks, seconds)


def disk_iops(
    pool: Store, request: float, seed: int, progress: ProgressCallback | None = None
) -> float:
    """IOPS of one disk of a pool in random reads of about ``request`` bytes, one at a time."""
    disk = replace(pool, tree=pool.tree.part("member") or pool.tree)
    size = max(512, round(request / 512) * 512)
    text = (
        f"[disk]\nrw=randread\nbs={size}\nblockalign=512\niodepth=1\nsize=100%\nnorandommap\n"
        f"runtime={DISK_S:g}\ntime_based\n"
    )
    settings = Settings(seed=seed, prepare=prepared(disk), interval_ms=1000)
    job, target = JobText("disk", text, Path.cwd()), Sim(pool.text, disk.rig())
    (result,) = bench.run([bench.Variant(lambda seat: seat.run(target, job, settings))], progress)
    return sum(one.iops for job in result.jobs for one in job.directions())
