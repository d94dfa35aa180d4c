"""A plan as chapters: sentences, tables, charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ssdlab import units
from ssdlab.analysis.names import PARTS, part
from ssdlab.answer import (
    Cell,
    Curve,
    Figure,
    Number,
    Section,
    Style,
    Table,
    Verdict,
    duration_cell,
    size_cell,
    table,
)
from ssdlab.histogram import ms
from ssdlab.numeric import Floats
from ssdlab.plan.advice import SAID, about_load, advise
from ssdlab.plan.curves import SHARES, HitCurve
from ssdlab.plan.lifetime import TELLING_S, CacheLife
from ssdlab.plan.question import FINE, CachePlan
from ssdlab.plan.rows import CacheRow

RAMPS_MAX = 8
"""Curves of a chart of ramps."""
PARTS_SHOWN = 5
"""Columns of where the time went."""
POINTS = 90
"""Of speed over time."""
PARTS_OF_PASS = 5
"""In which speeds are compared with the pool's."""
STYLES: tuple[tuple[bool, str, Style], ...] = (
    (False, "first pass", "line"),
    (True, "warm", "dashed"),
)
"""Of curves of hits: cold and warm."""


def chapters(plan: CachePlan) -> list[Section]:
    """The answer; then what the load allows."""
    best = plan.choice.best
    answer = Section(
        advise(plan),
        _numbers(plan),
        tables=[_speed(plan), _warm_up(plan), _wear(plan), _price(plan), _time(plan)],
        figures=[*_tradeoffs(plan), *_ramps(plan)],
        key="plan",
        title="Which cache",
        rows=[row.as_json() for row in plan.rows],
        verdict=Verdict("none") if best is None else Verdict("recommended", {"cache": best.name}),
    )
    return [answer, _load(plan)]


def _numbers(plan: CachePlan) -> list[Number]:
    """Of what to take: the cache, or the pool alone."""
    row = plan.choice.best or plan.pool
    return [
        Number("rate when warm", row.iops, "IOPS", "higher"),
        Number("p99", ms(row.latency_ns(99.0)), "ms", "lower"),
        Number("read hits", _percent(row.hits("read")), "%", "higher"),
        Number("price", row.price, plan.asked.prices.currency, "lower"),
    ]


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _labels(plan: CachePlan, *, full: bool = False) -> Callable[[CacheRow], str]:
    return lambda row: (row.full if full else row.short) + " *" * (row is plan.choice.best)


def _speed(plan: CachePlan) -> Table:
    pace = (
        "p50 and p99: at the recorded pace, warm."
        if plan.load.recorded is not None
        else "p50 and p99: at full speed, since the load has no times of its own."
    )
    passes = len(plan.pool.passes.passes)
    laps = (
        f"IOPS: {plan.asked.depth} in flight, the last of {passes} passes."
        if passes > 1
        else "IOPS: of the job as it goes on, until twice the time changes it by 5 % at most."
        if plan.load.is_job
        else f"IOPS: {plan.asked.depth} in flight, one pass with an empty cache."
    )
    return table(
        "Speed",
        plan.rows,
        {
            "storage": _labels(plan, full=True),
            "rate [IOPS]": lambda row: row.iops,
            "p50 [ms]": lambda row: ms(row.latency_ns(50.0)),
            "p99 [ms]": lambda row: ms(row.latency_ns(99.0)),
            "reads in RAM [%]": lambda row: _percent(row.ram_hits("read")),
            "read hits [%]": lambda row: _percent(row.hits("read")),
            "write hits [%]": lambda row: _percent(row.hits("write")),
        },
        f"{laps} {pace} Hits: requests, cut at blocks, that found all of their data"
        f"{'' if plan.asked.ram is None else ', in the cache of what RAM let past'}. A cache is "
        "named by its size, its blocks, its replacement policy, its mode and, where it is "
        "not 1, its admission threshold. *: to take.",
        optional=["reads in RAM"],
    )


def _warm_up(plan: CachePlan) -> Table:
    span_s = plan.load.span_s

    def pace(row: CacheRow) -> Cell:
        passes = row.warm.passes
        return duration_cell(None if passes is None or not span_s else passes * span_s)

    return table(
        "Warm-up",
        plan.rows,
        {
            "storage": _labels(plan),
            "cold [IOPS]": lambda row: row.first_iops,
            "warm [IOPS]": lambda row: row.iops,
            "warm after [=s]": lambda row: duration_cell(row.warm.seconds),
            "passes": lambda row: row.warm.passes,
            "at recorded pace [=s]": pace,
            "by the formula [=s]": lambda row: duration_cell(
                row.formula.seconds if row.formula else None
            ),
        },
        "Cold: over all of the first pass. Warm after: until 90 % of the final speed for good, at "
        "full speed; the same in passes, and in time at the recorded pace. Formula: C P / (I S D), "
        "filling all of the cache (C bytes; a block is admitted on its Pth access) by random reads "
        "of S bytes, I a second from each of D disks.",
    )


def _wear(plan: CachePlan) -> Table:
    def of(what: Callable[[CacheLife], Cell | float]) -> Callable[[CacheRow], Cell | float | None]:
        return lambda row: None if row.life is None else what(row.life)

    job = plan.load.is_job
    note = (
        "Of the cache drive that is written most. New data: written a day "
        f"{'' if job else 'at the recorded rate, '}as in the first pass; same data: as in the last "
        "one. Years: until the rated cycles are used up, at "
        f"{'the latter' if job else 'the greater of both'}. WA: that of the drive when it has been "
        "overwritten many times."
    )
    if job:
        note += " A day: as if the job went on all day at the speed that it has in the last pass."
    elif plan.load.span_s < TELLING_S:
        note += " This recording is too short to say anything of a day."
    return table(
        "Wear of the cache",
        plan.caches,
        {
            "storage": _labels(plan),
            "new data [GB/day]": of(lambda life: life.first_pass_bytes_per_day / 1e9),
            "same data [GB/day]": of(lambda life: life.warm_bytes_per_day / 1e9),
            "DWPD": of(lambda life: life.drive_writes_per_day),
            "WA": of(lambda life: life.write_amplification),
            "years": of(
                lambda life: Cell(
                    life.years, text="> 100" if life.years > 100 else f"{life.years:.3g}"
                )
            ),
        },
        note,
    )


def _price(plan: CachePlan) -> Table:
    note = (
        "Of pool and cache together; a GB is one that the host can use. Unsafe: acknowledged "
        "writes that lie in the cache alone, at most; ! where one drive takes them with it, or the "
        "power does in RAM or the volatile caches of disks."
    )
    missing = sorted({name for row in plan.rows for name in row.unpriced})
    if missing:
        note += f" No price for {', '.join(missing)}: name it in a file for --prices."
    return table(
        "Price and risk",
        plan.rows,
        {
            "storage": _labels(plan),
            f"price [{plan.asked.prices.currency}]": lambda row: row.price,
            "per GB": lambda row: row.price_per_gb,
            "per 1000 IOPS": lambda row: row.price_per_kiops,
            "unsafe at most [=B]": partial(_risk, plan),
        },
        note,
        {"unsafe at most": ("value", "remark")},
    )


def _risk(plan: CachePlan, row: CacheRow) -> Cell | None:
    if plan.asked.ram is not None and plan.asked.ram.defers:
        most = row.ram_dirty_most + row.dirty_most
        return Cell(most, text=f"{units.binary(most)} !", remark="lost with the power")
    if plan.volatile and row.store.has_disk and not row.defers:
        return Cell(None, text="disks' caches !", remark="disks' caches, lost with the power")
    if row.candidate is None:
        return None
    if not row.defers:
        return Cell(0.0, text="nothing")
    mirrored = row.candidate.fast.redundant
    text = units.binary(row.dirty_most) + (" (mirrored)" if mirrored else " !")
    return Cell(row.dirty_most, text=text, remark="mirrored" if mirrored else "lost with one drive")


def _time(plan: CachePlan) -> Table:
    most = {one: max(row.passes.last.did.parts.get(one, 0.0) for row in plan.rows) for one in PARTS}
    told = sorted((one for one in PARTS if most[one] >= SAID), key=lambda one: -most[one])

    def share(name: str) -> Callable[[CacheRow], float]:
        return lambda row: round(100 * row.passes.last.did.parts.get(name, 0.0), 1)

    shares = {f"{part(one)} [%]": share(one) for one in told[:PARTS_SHOWN]}
    return table(
        "Where the time of the I/Os went, at full speed",
        plan.rows,
        {
            "storage": _labels(plan),
            **shares,
            "other [%]": lambda row: round(
                max(0.0, 100 - sum(of(row) for of in shares.values())), 1
            ),
        },
    )


def _tradeoffs(plan: CachePlan) -> list[Figure]:
    """Speed and latency against price, or against the size of the cache where all cost the same."""
    rows = [plan.pool, *plan.caches]
    by_price = None not in {row.price for row in rows} and len({c.price for c in plan.caches}) > 1
    label = f"price, {plan.asked.prices.currency}" if by_price else "size of the cache, GiB"

    def place(row: CacheRow) -> float:
        size = row.candidate.size if row.candidate else 0
        return row.price or 0.0 if by_price else size / 2**30

    groups: dict[str, list[CacheRow]] = {"pool alone": [plan.pool]}
    for row in plan.caches:
        candidate = row.candidate
        groups.setdefault(candidate.preset or candidate.mode or "" if candidate else "", []).append(
            row
        )
    figures = []
    for title, unit, value, higher in (
        ("Speed", "IOPS", lambda r: r.iops, True),
        ("Latency", "p99, ms", lambda r: ms(r.latency_ns(99.0)) or 0.0, False),
    ):
        curves = [
            Curve(name, [place(r) for r in of], [value(r) for r in of], "dots", colour)
            for colour, (name, of) in enumerate(groups.items())
        ]
        front = _front([(place(r), value(r)) for r in rows], higher)
        line = Curve(
            "Pareto front", [x for x, _ in front], [y for _, y in front], "dashed", len(groups)
        )
        figures.append(
            Figure(
                f"{title} against {'price' if by_price else 'size'}", label, unit,
                [*curves, line], log_y=not higher, group="What is gained for it",
                note="The corners of the dashed line: nothing else is both "
                f"{'cheaper' if by_price else 'smaller'} and better.",
            )
        )  # fmt: skip
    return figures


def _front(points: Sequence[tuple[float, float]], higher: bool) -> list[tuple[float, float]]:
    """Those than which no other is better at the same or a lower place."""
    found: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda p: (p[0], -p[1] if higher else p[1])):
        if not found or (y > found[-1][1] if higher else y < found[-1][1]):
            found.append((x, y))
    return found


def _ramps(plan: CachePlan) -> list[Figure]:
    """Speed against that of the pool in the same part of the load, and IOPS over time."""
    best = plan.choice.best
    some = [plan.pool, *([best] if best else []), *plan.choice.runners]
    if plan.load.is_job:
        some = [plan.pool, *plan.caches[:RAMPS_MAX]]
    time = Figure(
        "Warm-up: speed over time", "seconds at full speed", "IOPS",
        [_over_time(row, colour) for colour, row in enumerate(some)],
        wide=True,
        note="" if plan.load.is_job else "Each pass has faster and slower parts.",
    )  # fmt: skip
    if len(plan.pool.passes.passes) < 2:
        return [time]
    base = plan.pool.passes.last.ramp.times(PARTS_OF_PASS)
    curves = []
    for colour, row in enumerate(plan.caches[:RAMPS_MAX]):
        gains = np.concatenate(
            [base / pass_.ramp.times(PARTS_OF_PASS) for pass_ in row.passes.passes]
        )
        x = [(n + 0.5) / PARTS_OF_PASS for n in range(len(gains))]
        curves.append(Curve(row.full, x, [float(v) for v in gains], "line", colour))
    line = [0.0, float(len(plan.pool.passes.passes))]
    curves.append(Curve("pool alone", line, [1.0, 1.0], "dashed", len(curves)))
    relative = Figure(
        "Warm-up: times as fast as the pool alone in the same part of the load",
        "passes of the load", "times the pool alone", curves, wide=True,
        note=f"Parts of {100 / PARTS_OF_PASS:g} % of the requests. What is warm draws the same "
        "line in every pass.",
    )  # fmt: skip
    return [relative, time]


def _over_time(row: CacheRow, colour: int) -> Curve:
    xs: list[float] = []
    ys: list[float] = []
    base, passes = 0.0, row.passes.passes
    for pass_ in passes:
        count = max(4, POINTS // len(passes))
        times = pass_.ramp.times(count)
        share = float(pass_.ramp.ios.sum()) / count
        xs += [float(v) for v in base + np.cumsum(times)]
        ys += [share / float(t) if t > 0 else 0.0 for t in times]
        base = xs[-1]
    return Curve(row.full, xs, ys, "line" if row.kind == "cache" else "dashed", colour)


def _load(plan: CachePlan) -> Section:
    tables, figures = [], []
    if plan.main is not None:
        tables.append(_hits(plan))
        tables.append(_working_set(plan))
        figures = _curves(plan)
    return Section(
        [*about_load(plan), *plan.dropped, *plan.notes],
        tables=tables,
        figures=figures,
        key="load",
        title=f"What {plan.load.name} allows",
        rows=[curve.as_json() for curve in plan.curves.values()],
    )


def _hits(plan: CachePlan) -> Table:
    shown = [
        (size, curve)
        for block in plan.asked.blocks
        for policy in plan.asked.policies
        if (curve := plan.curves.get((policy, block))) is not None
        for size in plan.sizes
    ]

    def hits(kind: str, *, warm: bool = False) -> Callable[[tuple[int, HitCurve]], float | None]:
        def share(at: tuple[int, HitCurve]) -> float | None:
            value = at[1].at(at[0], at[1].hits(kind=kind, warm=warm))
            return None if np.isnan(value) else 100 * value

        return share

    return table(
        "Hit ratios without time",
        shown,
        {
            "cache": lambda at: (
                f"{units.binary(at[0])}, {units.binary(at[1].block)}, {at[1].policy}"
            ),
            "first reads [%]": hits("read"),
            "first writes [%]": hits("write"),
            "warm reads [%]": hits("read", warm=True),
            "warm writes [%]": hits("write", warm=True),
            "written back [MB]": lambda at: (
                at[1].at(at[0], at[1].first.write_backs) * at[1].block / 1e6
            ),
            "error [%]": lambda at: 100 * at[1].at(at[0], at[1].error),
        },
        "Every miss brings its whole block in. A cache that fills only what was asked for, or only "
        "from the second use on, hits less in the first pass. First: beginning empty; warm: once "
        "more. What is asked for again while it is still being filled hits here and not in time. "
        "Written back: blocks that a write-back cache of this size evicts dirty in the first pass.",
    )


def _working_set(plan: CachePlan) -> Table:
    def held(share: float) -> Callable[[HitCurve], Cell]:
        return lambda curve: size_cell(curve.working_set(share))

    return table(
        "Working set, LRU",
        [plan.curves["lru", block] for block in dict.fromkeys((FINE, *plan.asked.blocks))],
        {
            "block [=B]": lambda curve: size_cell(curve.block),
            "first touches [%]": lambda curve: 100 * curve.first_touch,
            "attainable [%]": lambda curve: 100 * curve.attainable,
            **{f"for {100 * share:.0f} % [=B]": held(share) for share in SHARES},
            "all [=B]": lambda curve: size_cell(curve.whole),
        },
        "Sizes at which so many of the attainable hits of the first pass are had. Large blocks "
        "count neighbours as hits.",
    )


def _curves(plan: CachePlan) -> list[Figure]:
    def drawn(of: HitCurve, what: str, y: Floats, style: Style, colour: int) -> list[Curve]:
        """The curve, where it is known at all sizes."""
        name, x = f"{of.policy}, {units.binary(of.block)}, {what}", [s / 2**20 for s in of.sizes]
        unknown = bool(np.isnan(y).any())
        return [] if unknown else [Curve(name, x, [float(v) for v in y], style, colour)]

    figures, axis = [], "size of the cache, MiB"
    largest = max(plan.asked.blocks)
    others = [plan.curves.get((one, largest)) for one in plan.asked.policies if one != "lru"]
    for kind, title in (("read", "Reads"), ("write", "Writes")):
        curves: list[Curve] = []
        for colour, block in enumerate(dict.fromkeys((FINE, *plan.asked.blocks))):
            lru = plan.curves["lru", block]
            for warm, what, style in STYLES:
                curves += drawn(lru, what, 100 * lru.hits(warm=warm, kind=kind), style, colour)
            for other in others if block == largest else ():
                if other is not None:
                    hits = 100 * other.hits(kind=kind)
                    curves += drawn(other, "first pass", hits, "points", len(curves))
        if curves:
            figures.append(
                Figure(
                    title, axis, "hits, %", curves, log_x=True, y_max=100.0,
                    group="Hit ratio against size",
                )
            )  # fmt: skip
    lru = plan.curves["lru", min(plan.asked.blocks)]
    if lru.writes:
        moved = lru.first.write_backs * lru.block / 1e6
        curves = drawn(lru, "first pass", moved, "line", 0)
        group = "Write-back traffic"
        figures.append(Figure("Written back", axis, "MB", curves, log_x=True, group=group))
    return figures
