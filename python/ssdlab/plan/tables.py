"""A plan as chapters: sentences, tables, charts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ssdlab import units
from ssdlab.answer import (
    Cell,
    Cells,
    Curve,
    Figure,
    Number,
    Section,
    Table,
    Verdict,
    columns,
    numbers,
)
from ssdlab.plan.advice import PARTS, SAID, about_load, advise
from ssdlab.plan.cache import FINE, Plan
from ssdlab.plan.lifetime import TELLING_S
from ssdlab.plan.rows import Row

RAMPS_MAX = 8
"""Curves of a chart of ramps."""
PARTS_SHOWN = 5
"""Columns of where the time went."""
POINTS = 90
"""Of speed over time."""
PARTS_OF_PASS = 5
"""In which speeds are compared with the pool's."""


def chapters(plan: Plan) -> list[Section]:
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


def _numbers(plan: Plan) -> list[Number]:
    """Of what to take: the cache, or the pool alone."""
    row = plan.choice.best or plan.pool
    return [
        Number("rate when warm", row.iops, "IOPS", "higher"),
        Number("p99", _ms(row.latency_ns(99.0)), "ms", "lower"),
        Number("read hits", _percent(row.hits.read if row.hits else None), "%", "higher"),
        Number("price", row.price, plan.wish.prices.currency, "lower"),
    ]


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6


def _label(plan: Plan, row: Row, *, full: bool = False) -> str:
    mark = " *" if row is plan.choice.best else ""
    return f"{row.full if full else row.short}{mark}"


def _speed(plan: Plan) -> Table:
    rows: list[Cells] = []
    for row in plan.rows:
        hits = row.hits
        rows.append(
            [
                _label(plan, row, full=True),
                *numbers(
                    row.iops, _ms(row.latency_ns(50.0)), _ms(row.latency_ns(99.0)),
                    _percent(hits.read if hits else None), _percent(hits.write if hits else None),
                ),
            ]
        )  # fmt: skip
    pace = (
        "p50 and p99: at the recorded pace, warm."
        if plan.load.recorded is not None
        else "p50 and p99: at full speed, since the load has no times of its own."
    )
    passes = len(plan.pool.timed.passes)
    laps = (
        f"IOPS: {plan.wish.depth} in flight, the last of {passes} passes."
        if passes > 1
        else "IOPS: what the job makes towards its end."
        if plan.load.is_job
        else f"IOPS: {plan.wish.depth} in flight, one pass with an empty cache."
    )
    return Table(
        "Speed",
        columns("storage, rate:IOPS, p50:ms, p99:ms, read hits:%, write hits:%"),
        rows,
        f"{laps} {pace} Hits: requests, cut at blocks, that found all of their data. A cache is "
        "named by its size, its blocks, its replacement policy, its mode and, where it is "
        "not 1, its admission threshold. *: to take.",
    )


def _warm_up(plan: Plan) -> Table:
    rows: list[Cells] = []
    for row in plan.rows:
        warm, span_s = row.warm, plan.load.span_s
        pace = None if warm.passes is None or not span_s else units.duration(warm.passes * span_s)
        rows.append(
            [
                _label(plan, row),
                *numbers(row.first_iops, row.iops),
                None if warm.seconds is None else units.duration(warm.seconds),
                *numbers(warm.passes),
                pace,
                None if row.formula is None else units.duration(row.formula.seconds),
            ]
        )
    return Table(
        "Warm-up",
        columns(
            "storage, cold:IOPS, warm:IOPS, warm after, passes, at recorded pace, by the formula"
        ),
        rows,
        "Cold: over all of the first pass. Warm after: until 90 % of the final speed for good, at "
        "full speed; the same in passes, and in time at the recorded pace. Formula: C P / (I S D), "
        "filling all of the cache by random reads.",
    )


def _wear(plan: Plan) -> Table:
    rows: list[Cells] = []
    for row in plan.caches:
        life = row.life
        years = None if life is None or life.years is None else life.years
        rows.append(
            [
                _label(plan, row),
                *numbers(
                    None if life is None else (life.first_bytes_per_day or 0) / 1e9,
                    None if life is None else (life.warm_bytes_per_day or 0) / 1e9,
                    None if life is None else life.dwpd,
                    None if life is None else life.amplification,
                ),
                None if years is None else "> 100" if years > 100 else f"{years:.3g}",
            ]
        )
    note = (
        "Of the cache drive that is written most. New data: written a day at the recorded rate, as "
        "in the first pass; same data: as once warm. Years: until the rated cycles are used up, at "
        "the greater of both. WAF: of the drive when it has been overwritten many times."
    )
    if plan.load.is_job:
        note += " A day: as if the job went on all day at the speed that it has."
    elif plan.load.span_s < TELLING_S:
        note += " This recording is too short to say anything of a day."
    return Table(
        "Wear of the cache",
        columns("storage, new data:GB/day, same data:GB/day, DWPD, WAF, years"),
        rows,
        note,
    )


def _price(plan: Plan) -> Table:
    rows: list[Cells] = [
        [
            _label(plan, row),
            *numbers(row.price, row.price_per_gb, row.price_per_kiops),
            _risk(row),
        ]
        for row in plan.rows
    ]
    note = (
        "Of pool and cache together; a GB is one that the host can use. Unsafe: acknowledged "
        "writes "
        "that lie in the cache alone, at most; ! where one drive takes them with it."
    )
    missing = sorted({name for row in plan.rows for name in row.unpriced})
    if missing:
        note += f" No price for {', '.join(missing)}: name it in a file for --prices."
    currency = plan.wish.prices.currency
    return Table(
        "Price and risk",
        columns(f"storage, price:{currency}, per GB, per 1000 IOPS, unsafe at most"),
        rows,
        note,
    )


def _risk(row: Row) -> str | None:
    if row.candidate is None:
        return None
    if not row.defers:
        return "nothing"
    safe = " (mirrored)" if row.candidate.fast.store.redundant else " !"
    return f"{units.binary(row.dirty_most)}{safe}"


def _time(plan: Plan) -> Table:
    most = {
        part: max(row.timed.last.reading.parts.get(part, 0.0) for row in plan.rows)
        for part in PARTS
    }
    parts = sorted((one for one in PARTS if most[one] >= SAID), key=lambda one: -most[one])
    parts = parts[:PARTS_SHOWN]
    rows: list[Cells] = []
    for row in plan.rows:
        own = [round(100 * row.timed.last.reading.parts.get(part, 0.0), 1) for part in parts]
        rows.append([_label(plan, row), *numbers(*own, round(max(0.0, 100 - sum(own)), 1))])
    heads = ", ".join(f"{part.replace('_', ' ')}:%" for part in parts)
    return Table(
        "Where the time of the I/Os went, at full speed",
        columns(f"storage, {heads}, other:%"),
        rows,
    )


def _tradeoffs(plan: Plan) -> list[Figure]:
    """Speed and latency against price, or against the size of the cache where all cost the same."""
    caches = plan.caches
    prices = {row.price for row in plan.rows if row.kind != "fast"}
    by_price = None not in prices and len({row.price for row in caches}) > 1
    if by_price:
        label, rows = f"price, {plan.wish.prices.currency}", [plan.pool, *caches]
        place = {id(row): float(row.price or 0.0) for row in rows}
    else:
        label, rows = "size of the cache, GiB", [plan.pool, *caches]
        place = {id(row): (row.candidate.size if row.candidate else 0) / 2**30 for row in rows}
    groups: dict[str, list[Row]] = {"pool alone": [plan.pool]}
    for row in caches:
        one = row.candidate
        groups.setdefault(one.preset or one.mode or "" if one else "", []).append(row)
    figures = []
    for title, unit, value, higher in (
        ("Speed", "IOPS", lambda r: r.iops, True),
        ("Latency", "p99, ms", lambda r: _ms(r.latency_ns(99.0)) or 0.0, False),
    ):
        curves = [
            Curve(name, [place[id(r)] for r in of], [value(r) for r in of], "dots", colour)
            for colour, (name, of) in enumerate(groups.items())
        ]
        front = _front([(place[id(r)], value(r)) for r in rows], higher)
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


def _ramps(plan: Plan) -> list[Figure]:
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
    if len(plan.pool.timed.passes) < 2:
        return [time]
    base = plan.pool.timed.last.ramp.times(PARTS_OF_PASS)
    curves = []
    for colour, row in enumerate(plan.caches[:RAMPS_MAX]):
        gains = np.concatenate([base / one.ramp.times(PARTS_OF_PASS) for one in row.timed.passes])
        x = [(n + 0.5) / PARTS_OF_PASS for n in range(len(gains))]
        curves.append(Curve(row.full, x, [float(v) for v in gains], "line", colour))
    line = [0.0, float(len(plan.pool.timed.passes))]
    curves.append(Curve("pool alone", line, [1.0, 1.0], "dashed", len(curves)))
    relative = Figure(
        "Warm-up: times as fast as the pool alone in the same part of the load",
        "passes of the load", "times the pool alone", curves, wide=True,
        note=f"Parts of {100 / PARTS_OF_PASS:g} % of the requests. What is warm draws the same "
        "line in every pass.",
    )  # fmt: skip
    return [relative, time]


def _over_time(row: Row, colour: int) -> Curve:
    xs: list[float] = []
    ys: list[float] = []
    base, passes = 0.0, row.timed.passes
    for one in passes:
        count = max(4, POINTS // len(passes))
        times = one.ramp.times(count)
        share = float(one.ramp.ios.sum()) / count
        xs += [float(v) for v in base + np.cumsum(times)]
        ys += [share / float(t) if t > 0 else 0.0 for t in times]
        base = xs[-1]
    return Curve(row.full, xs, ys, "line" if row.kind == "cache" else "dashed", colour)


def _load(plan: Plan) -> Section:
    tables, figures = [], []
    if plan.main is not None:
        tables.append(_hits(plan))
        tables.append(_working_set(plan))
        figures = _curves(plan)
    return Section(
        [*about_load(plan), *plan.short.dropped, *plan.notes],
        tables=tables,
        figures=figures,
        key="load",
        title=f"What {plan.load.name} allows",
        rows=[one.as_json() for one in plan.curves.values()],
    )


def _hits(plan: Plan) -> Table:
    rows: list[Cells] = []
    for block in plan.wish.blocks:
        for policy in plan.wish.policies:
            found = plan.curves.get((policy, block))
            if found is None:
                continue
            for size in plan.sizes:
                first = [found.at(size, found.hits(kind=kind)) for kind in ("read", "write")]
                warm = [found.at(size, found.hits(kind=k, warm=True)) for k in ("read", "write")]
                backs = found.at(size, found.first.write_backs) * block / 1e6
                error = found.at(size, found.error)
                rows.append(
                    [
                        f"{units.binary(size)}, {units.binary(block)}, {policy}",
                        *[Cell(None if np.isnan(v) else 100 * v) for v in (*first, *warm)],
                        *numbers(backs, 100 * error),
                    ]
                )
    return Table(
        "Hit ratios without time",
        columns(
            "cache, first reads:%, first writes:%, warm reads:%, warm writes:%, "
            "written back:MB, error:%"
        ),
        rows,
        "Every miss brings its whole block in. A cache that fills only what was asked for, or only "
        "from the second use on, hits less in the first pass. First: beginning empty; warm: once "
        "more. What is asked for again while it is still being filled hits here and not in time. "
        "Written back: blocks that a write-back cache of this size evicts dirty in the first pass.",
    )


def _working_set(plan: Plan) -> Table:
    rows: list[Cells] = []
    for block in dict.fromkeys((FINE, *plan.wish.blocks)):
        found = plan.curves["lru", block]
        sizes = [found.working_set(share) for share in (0.5, 0.8, 0.9, 0.95)]
        rows.append(
            [
                units.binary(block),
                *numbers(100 * found.first_touch, 100 * found.attainable),
                *[None if size is None else units.binary(size) for size in sizes],
                units.binary(found.footprint),
            ]
        )
    return Table(
        "Working set, LRU",
        columns(
            "block, first touches:%, attainable:%, for 50 %, for 80 %, for 90 %, for 95 %, all"
        ),
        rows,
        "Sizes at which so many of the attainable hits of the first pass are had. Large blocks "
        "count neighbours as hits.",
    )


def _curves(plan: Plan) -> list[Figure]:
    figures = []
    for kind, title in (("read", "Reads"), ("write", "Writes")):
        curves = []
        for colour, block in enumerate(dict.fromkeys((FINE, *plan.wish.blocks))):
            lru = plan.curves["lru", block]
            for warm in (False, True):
                hits = lru.hits(warm=warm, kind=kind)
                if np.isnan(hits).any():
                    continue
                name = f"lru, {units.binary(block)}, {'warm' if warm else 'first pass'}"
                curves.append(
                    Curve(
                        name, [s / 2**20 for s in lru.sizes], [100 * v for v in hits],
                        "dashed" if warm else "line", colour,
                    )
                )  # fmt: skip
            for policy in plan.wish.policies:
                other = plan.curves.get((policy, block))
                if other is None or policy == "lru" or block != max(plan.wish.blocks):
                    continue
                hits = other.hits(kind=kind)
                if not np.isnan(hits).any():
                    curves.append(
                        Curve(
                            f"{policy}, {units.binary(block)}, first pass",
                            [s / 2**20 for s in other.sizes], [100 * v for v in hits],
                            "points", len(curves),
                        )
                    )  # fmt: skip
        if curves:
            figures.append(
                Figure(
                    title, "size of the cache, MiB", "hits, %", curves, log_x=True, y_max=100.0,
                    group="Hit ratio against size",
                )
            )  # fmt: skip
    lru = plan.curves["lru", min(plan.wish.blocks)]
    if lru.writes:
        gb = [float(v) * lru.block / 1e6 for v in lru.first.write_backs]
        curve = Curve(
            f"lru, {units.binary(lru.block)}, first pass", [s / 2**20 for s in lru.sizes], gb
        )
        figures.append(
            Figure(
                "Written back", "size of the cache, MiB", "MB", [curve], log_x=True,
                group="Write-back traffic",
            )
        )  # fmt: skip
    return figures
