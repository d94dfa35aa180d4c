"""What a plan says: what to take, why, what others would cost or gain, what would change it."""

from __future__ import annotations

from collections.abc import Iterator

from ssdlab import units
from ssdlab.analysis.names import part_phrase
from ssdlab.plan.candidates import CacheCandidate
from ssdlab.plan.curves import SAMPLES, SHARES, HitCurve
from ssdlab.plan.question import CachePlan
from ssdlab.plan.rows import GAIN_MIN, CacheRow, near_choices
from ssdlab.plan.warmup import RISING

SAID = 0.05
"""Share of the time from which a part is worth a sentence."""
ROOMY = 4.0
"""A drive so many times as large as everything that is touched is worth a sentence."""
NOTABLE = 0.03
"""Differences below this share are none."""


def advise(plan: CachePlan) -> list[str]:
    """Sentences: the answer first."""
    best = plan.choice.best
    return [
        *(_none(plan) if best is None else _taken(plan, best)),
        *_close(plan),
        *_refused(plan),
        *_volatile(plan),
        *_volatile_ram(plan),
        *(() if best is None else _runners(plan, best)),
        *_change(plan, best),
    ]


def _taken(plan: CachePlan, row: CacheRow) -> Iterator[str]:
    """What to take, and why."""
    yield _headline(plan, row)
    yield from _whole(plan, row)
    yield f"The rule: {plan.asked.rules.sentence}."
    yield from _ram(plan, row)
    yield _hits(plan, row)
    for fast in (row for row in plan.rows if row.kind == "fast"):
        share = 100 * row.iops / fast.iops if fast.iops else 0.0
        scaled = f" ({fast.note})" if fast.note else ""
        yield (
            f"That is {share:.0f} % of what {fast.store.title} does with all of the load on it"
            f"{scaled}: {units.number(fast.iops)} IOPS."
        )
    yield from _warm(plan, row)
    yield from _wear(row, plan.asked.rules.years_min)
    parts = row.passes.last.did.parts
    long = sorted(((s, p) for p, s in parts.items() if s >= SAID), reverse=True)[:3]
    if long:
        told = [f"{100 * share:.0f} % went into {part_phrase(part)}" for share, part in long]
        yield f"Of the time of its I/Os at full speed, {', '.join(told)}."


def _close(plan: CachePlan) -> Iterator[str]:
    """What would be said instead, where that hangs on no more than another seed changes."""
    main, said = plan.main, []
    attainable = None if main is None else main.attainable
    for other in near_choices(plan.caches, plan.pool, plan.asked.rules, attainable, NOTABLE):
        if other.best is None:
            said.append("no cache would pay off")
        elif other.best is not plan.choice.best:
            said.append(f"{other.best.name} would be taken")
        else:
            when = "only if the same data is asked for again" if other.only_again else "at once"
            said.append(f"the cache would pay off {when}")
    if said:
        yield (
            f"A close call: with rates {100 * NOTABLE:.0f} % off, as another seed may have them, "
            f"{' or '.join(said)}."
        )


def _whole(plan: CachePlan, row: CacheRow) -> Iterator[str]:
    """What a sample says of the whole."""
    share = plan.asked.sampled
    if row.candidate is None or share == 1.0:
        return
    size = row.candidate.size / share
    drive = row.candidate.fast.capacity_bytes
    more = "" if size <= drive else f", more than {row.candidate.fast.title} has"
    yield (
        f"The trace holds {units.percent(share)} of the addresses: for all of them take "
        f"{units.binary(size)}{more}. Rates are those of the sample; hits are those of the whole."
    )


def _headline(plan: CachePlan, row: CacheRow) -> str:
    assert row.candidate is not None
    price = "" if row.price is None else f" It costs {_money(plan, row.price)} with the pool."
    where = f" on {row.candidate.fast.title}" if len(plan.asked.fasts) == 1 else ""
    lead = "Take"
    if plan.choice.only_again:
        lead = (
            f"In a single pass of this load no cache pays off ({row.name}: "
            f"{_times(row.first_iops, plan.pool.first_iops):.2f} times the "
            "pool alone). If the same data is asked for again, as in the passes here, take"
        )
    return (
        f"{lead} the cache {row.name}{where}: {units.number(row.iops)} IOPS once warm, "
        f"{_times(row.iops, plan.pool.iops):.2f} times "
        f"the pool alone ({units.number(plan.pool.iops)}); {_pace(plan)} 50 % of the I/Os within "
        f"{_tail(row, 50.0)} and 99 % within {_tail(row)} (pool alone "
        f"{_tail(plan.pool, 50.0)} and {_tail(plan.pool)}).{price}"
    )


def _pace(plan: CachePlan) -> str:
    return "at the recorded pace" if plan.load.recorded is not None else "at full speed"


def _tail(row: CacheRow, percent: float = 99.0) -> str:
    return units.latency(row.latency_ns(percent))


def _times(value: float, base: float) -> float:
    return value / base if base else 0.0


def _none(plan: CachePlan) -> Iterator[str]:
    main, best = plan.main, plan.choice.runners[0] if plan.choice.runners else None
    if plan.choice.why_none == "reuse" and main is not None and best is not None:
        yield (
            f"No cache pays off: {100 * main.first_touch:.1f} % of {_lookups(plan)} are the first "
            f"of their 4 KiB block, so at most {100 * main.attainable:.1f} % can hit, however "
            f"large the cache is. In the first pass the best, {best.name}, makes "
            f"{units.number(best.first_iops)} IOPS, the pool alone "
            f"{units.number(plan.pool.first_iops)}."
        )
        yield (
            f"Only if the same data is asked for all over again does a cache help: {best.name} "
            f"then makes {units.number(best.iops)} IOPS."
        )
    elif best is not None:
        barred = _barred(plan)
        lead = (
            f"No cache that may be taken pays off: the best of them, {best.name},"
            if barred
            else f"No cache pays off: the best, {best.name},"
        )
        yield (
            f"{lead} makes {units.number(best.iops)} IOPS and "
            f"the pool alone {units.number(plan.pool.iops)}; {_pace(plan)} 99 % of the I/Os take "
            f"up to {_tail(best)}, with the pool alone {_tail(plan.pool)}: below the "
            f"{100 * (GAIN_MIN - 1):.0f} % improvement threshold.{barred}"
        )
        yield f"The rule: {plan.asked.rules.sentence}."
        yield from _otherwise(plan)
    else:
        reasons = "; ".join(dict.fromkeys(plan.choice.refused.values()))
        yield f"No cache can be recommended: {reasons}."


def _barred(plan: CachePlan) -> str:
    """The best that pays off and may not be taken, as a sentence; empty where none does."""
    value, base = plan.asked.rules.value, plan.asked.rules.value(plan.pool)
    rows = [row for row in plan.caches if row.name in plan.choice.refused]
    row = max(rows, key=lambda row: value(row) or 0.0, default=None)
    if row is None or base is None or _times(value(row) or 0.0, base) < GAIN_MIN:
        return ""
    return (
        f" {row.name} would make {units.number(row.iops)} IOPS, 99 % within {_tail(row)}, but "
        f"{plan.choice.refused[row.name]}."
    )


def _otherwise(plan: CachePlan) -> Iterator[str]:
    """Whether a cache would pay off for its latency, where it does not for its speed."""
    pool = plan.pool.latency_ns(99.0) or 0
    rows = [row for row in plan.caches if row.name not in plan.choice.refused]
    best = min(rows, key=lambda row: row.latency_ns(99.0) or pool, default=None)
    if plan.asked.rules.goal == "p99" or best is None:
        return
    if (best.latency_ns(99.0) or pool) * GAIN_MIN <= pool:
        yield (
            f"For the tail of latency one does (--goal p99): {best.name}, {_pace(plan)} 99 % of "
            f"the I/Os within {_tail(best)} instead of {_tail(plan.pool)}."
        )


def _hits(plan: CachePlan, row: CacheRow) -> str:
    shares = {f"{kind}s": row.hits(kind) for kind in ("read", "write")}
    found = " and ".join(
        f"{100 * share:.1f} % of the {what}" for what, share in shares.items() if share is not None
    )
    first = f"{units.number(row.first_iops)} IOPS (pool alone {units.number(plan.pool.first_iops)})"
    what = "as the job begins" if plan.load.is_job else "in the first pass"
    with_ = "an empty cache" if plan.load.before is None else "what the stages before left in it"
    return f"Warm, {found} find their data in the cache; {what}, with {with_}, it makes {first}."


def _ram(plan: CachePlan, row: CacheRow) -> Iterator[str]:
    """What RAM before it answers."""
    ram, share = plan.asked.ram, row.ram_hits("read")
    if ram is not None and share is not None:
        yield (
            f"Warm, {100 * share:.1f} % of the reads find their data in RAM ({ram.title}), which "
            "stands before the pool alone as well; hits in the cache are of what is left."
        )


def _warm(plan: CachePlan, row: CacheRow) -> Iterator[str]:
    warm, span_s = row.warm, plan.load.span_s
    if warm.seconds == 0:
        yield "It is within 90 % of its final speed from the start."
    elif warm.seconds is not None and warm.passes is not None:
        pace = f", {units.duration(warm.passes * span_s)} at the recorded pace" if span_s else ""
        yield (
            "It is warm (90 % of the final speed for good) after "
            f"{units.duration(warm.seconds)} at "
            f"full speed, {units.number(warm.passes)} "
            f"{'times the length of the job' if plan.load.is_job else 'passes of the load'}{pace}."
        )
    longer = "give the job more time." if plan.load.is_job else "give more --passes."
    for moves, way, bound in (
        (warm.rising, "rising", "a lower"),
        (row.passes.falling, "falling", "an upper"),
    ):
        if moves:
            yield f"Its speed was still {way} at the end, so that is {bound} bound: {longer}"
    yield from deferred(row)
    if row.formula is not None:
        yield (
            f"The published formula C P / (I S D) says {units.duration(row.formula.seconds)} for "
            "filling it by random reads, each disk one at a time "
            f"({units.number(row.formula.disk_iops)} a second), which is a lower bound for such a "
            "load; writes, runs and queued reads fill faster."
        )


def deferred(row: CacheRow) -> Iterator[str]:
    """That a cache is faster as long as it can put writes off."""
    most = max(done.did.iops for done in row.passes.passes)
    if row.defers and row.iops < RISING * most:
        yield (
            f"It was faster before, {units.number(most)} IOPS, as long as it could put off writing "
            "to the pool; that it cannot for good."
        )
    if row.passes.deferred_per_s:
        yield (
            f"What only it holds still grew at the end, by "
            f"{units.bytes_per_s(row.passes.deferred_per_s)} to "
            f"{units.binary(row.passes.last.dirty_bytes())}: once that may grow no further, writes "
            "wait for the pool, and its speed may fall."
        )


def _wear(row: CacheRow, years_min: float) -> Iterator[str]:
    life = row.life
    if life is None:
        return
    dwpd, telling = life.drive_writes_per_day, life.recording_is_long_enough
    years = "more than a century" if life.years > 100 else f"{units.number(life.years)} years"
    day = "" if telling else ", if the load went on like that all day and every day"
    if not telling and life.years < years_min:
        day += f"; too short a load to be held to the {years_min:g} years of the rule"
    most = "" if row.passes.job else "up to "
    yield (
        f"Each cache drive is written {most}{100 * dwpd:.3g} % of its capacity a day "
        f"({units.number(dwpd)} DWPD, write amplification "
        f"{units.number(life.write_amplification)}) and lasts {years} by its rated cycles{day}."
    )


def _refused(plan: CachePlan) -> Iterator[str]:
    """What is faster but may not be taken."""
    best, rules = plan.choice.best, plan.asked.rules
    first = best or (plan.choice.runners[0] if plan.choice.runners else plan.pool)
    base = rules.value(first) or 0.0
    for why in dict.fromkeys(plan.choice.refused.values()):
        rows = [row for row in plan.caches if plan.choice.refused.get(row.name) == why]
        row = max(rows, key=lambda row: rules.value(row) or 0.0)
        better = (rules.value(row) or 0.0) > (1 + NOTABLE) * base
        text = (
            f"Not taken, since it {why}: {row.name}, {units.number(row.iops)} IOPS, 99 % within "
            f"{_tail(row)} ({'better' if better else 'no better'} by the rule)."
        )
        if row.defers and why.startswith("loses"):
            text += (
                f" WARNING: if its cache drive fails, up to {units.binary(row.dirty_most)} of "
                "acknowledged writes are lost for good, and the pool is left with old data among "
                "new." + _mirrored(plan, row)
            )
        yield text
    if best is not None and best.defers:
        safe = best.candidate is not None and best.candidate.fast.redundant
        ending = (
            "the cache tolerates the failure of one drive, not of two"
            if safe
            else "WARNING: if the cache drive fails, they are lost for good"
        )
        yield (
            f"Up to {units.binary(best.dirty_most)} of acknowledged writes lie in the cache alone: "
            f"{ending}."
        )


def _volatile(plan: CachePlan) -> Iterator[str]:
    if plan.volatile:
        yield (
            "WARNING: the disks acknowledge writes in their volatile caches, so even a cache that "
            "writes through loses acknowledged writes with the power, as the pool alone does; "
            "without --disk-cache these are off."
        )


def _volatile_ram(plan: CachePlan) -> Iterator[str]:
    if plan.asked.ram is not None and plan.asked.ram.defers:
        most = max(row.ram_dirty_most for row in plan.rows)
        yield (
            "WARNING: RAM acknowledges writes that only it has (--ram-mode write-back): a loss of "
            f"power takes up to {units.binary(most)} of them, whatever stands behind; "
            "--ram-mode write-through is safe."
        )


def _mirrored(plan: CachePlan, row: CacheRow) -> str:
    names = list(row.candidate.fast.bill) if row.candidate else []
    if len(names) != 1:
        return ""
    one = plan.asked.prices.of({names[0]: 1})
    cost = "" if one is None else f" for {_money(plan, one)} more"
    return f" Two of them in a mirror (--cache raid1:2:{names[0]}) would make it safe{cost}."


def _runners(plan: CachePlan, best: CacheRow) -> Iterator[str]:
    for rank, row in zip(("Second", "Third"), plan.choice.runners, strict=False):
        p99, own = row.latency_ns(99.0) or 0, best.latency_ns(99.0) or 1
        wear, other = (
            cache_row.life and cache_row.life.drive_writes_per_day for cache_row in (row, best)
        )
        said = [
            _factor(_times(row.iops, best.iops), "as fast"),
            _factor(p99 / own, "the p99"),
            *([_factor(wear / other, "the wear")] if wear and other else []),
            *_dearer(plan, row, best),
        ]
        yield f"{rank}: {row.name}: {', '.join(said)}."


def _factor(value: float, what: str) -> str:
    return (
        f"{value:.2f} times {what}"
        if abs(value - 1) >= NOTABLE
        else f"the same {what.replace('as fast', 'speed').replace('the ', '')}"
    )


def _dearer(plan: CachePlan, row: CacheRow, best: CacheRow) -> Iterator[str]:
    if row.price is None or best.price is None:
        return
    more = row.price - best.price
    dearer = f"{_money(plan, abs(more))} {'more' if more > 0 else 'less'}"
    yield "at the same price" if abs(more) < 0.005 else dearer


def _change(plan: CachePlan, best: CacheRow | None) -> Iterator[str]:
    row = best or (plan.choice.runners[0] if plan.choice.runners else None)
    if row is None or row.candidate is None or plan.choice.why_none == "reuse":
        return
    candidate, main = row.candidate, plan.main
    known = plan.curves.get((candidate.policy or "lru", candidate.block or 0)) or main
    if known is not None:
        yield _other_size(candidate, known)
    yield from _modes(plan)
    touched = plan.curves.get(("lru", candidate.block or 0)) or main
    if best is not None and touched is not None:
        times = candidate.fast.capacity_bytes / touched.footprint
        if times >= ROOMY:
            yield (
                f"All that this load touches takes {units.binary(touched.footprint)}; "
                f"{candidate.fast.title} has {units.number(times)} times as much, so for this "
                "load a smaller drive of its speed would do as well."
            )
    if main is not None and not plan.load.is_job and main.first_touch >= 0.3:
        yield (
            f"{100 * main.first_touch:.0f} % of the 4 KiB look-ups in the trace are first touches. "
            "The warm numbers take it that the same data is asked for again in the next pass; if "
            "each day brings new data, those of the first pass hold."
        )


def _other_size(candidate: CacheCandidate, curve: HitCurve) -> str:
    """What a working set or a cache twice as large would change."""
    hits, size = curve.hits(warm=True), candidate.size
    now, half, more = (curve.at(s, hits) for s in (size, size / 2, 2 * size))
    text = (
        f"What would change this: if the working set doubled, a cache of {units.binary(size)} "
        f"would hit {100 * half:.0f} % of the look-ups once warm instead of {100 * now:.0f} %"
        if now - half >= 0.005
        else f"What would change this: not the working set; if it doubled, a cache of "
        f"{units.binary(size)} would still hit {100 * now:.0f} % of the look-ups once warm"
    )
    if more > now + 0.01:
        text += f"; twice the cache would hit {100 * more:.0f} %"
    fits = "still fit on" if 2 * size <= candidate.fast.capacity_bytes else "take more than"
    return f"{text}; {units.binary(2 * size)} would {fits} {candidate.fast.title}."


def _modes(plan: CachePlan) -> Iterator[str]:
    """What it would cost that writes survive the loss of the cache, or gain that they need not."""
    safe = [cache for cache in plan.caches if not cache.defers]
    unsafe = [cache for cache in plan.caches if cache.defers]
    if not safe or not unsafe:
        return
    cache_row, other = (max(rows, key=lambda row: row.iops) for rows in (safe, unsafe))
    change = cache_row.iops / other.iops - 1 if other.iops else 0.0
    size = f"{abs(100 * change):.0f} %"
    costs = f"is {size} {'slower' if change < 0 else 'faster here'}"
    why = "" if change < 0 else _slower(other, cache_row)
    yield (
        f"If writes must survive the loss of the cache: the fastest that does not defer them "
        f"({cache_row.name}, {units.number(cache_row.iops)} IOPS) {costs} than the fastest that "
        f"does ({other.name}, {units.number(other.iops)} IOPS){why}; {_pace(plan)} their 99th "
        f"percentiles are {_tail(cache_row)} and {_tail(other)}."
    )


def _slower(slow: CacheRow, fast: CacheRow) -> str:
    """What the I/Os of one row wait longer for than those of another."""
    performance, other = slow.passes.last.did, fast.passes.last.did
    longer = {
        part: share * performance.mean_ns - other.parts.get(part, 0.0) * other.mean_ns
        for part, share in performance.parts.items()
    }
    part = max(longer, key=lambda name: longer[name], default="")
    if not part or longer[part] <= 0:
        return ""
    return f", whose I/Os spend {units.latency(longer[part])} more in {part_phrase(part)}"


def about_load(plan: CachePlan) -> Iterator[str]:
    """Sentences about the load itself."""
    stream, main = plan.load.stream, plan.main
    if main is None:
        yield "Nothing is known of what the load asks for twice; hit ratios come from time alone."
        return
    if stream is not None:
        yield (
            f"{len(stream):,} requests, {100 * stream.reads / len(stream):.0f} % reads, "
            f"{units.number(stream.mean_bytes / 1024)} KiB on average; "
            f"{units.binary(main.footprint)} of different data in blocks of 4 KiB."
        )
    yield (
        f"First touches are {100 * main.first_touch:.1f} % of {_lookups(plan)}: within the load at "
        f"most {100 * main.attainable:.1f} % can hit, whatever the cache."
    )
    sizes = [(share, main.working_set(share)) for share in SHARES]
    if all(size is not None for _, size in sizes):
        told = [f"{100 * share:.0f} % with {units.binary(size or 0)}" for share, size in sizes]
        yield f"Working set (LRU, 4 KiB): of these hits {', '.join(told)}."
    if main.rate < 1:
        yield (
            f"Curves are of {100 * main.rate * SAMPLES:.0f} % of the blocks, chosen by a hash "
            f"(SHARDS); the standard error is at most {100 * float(main.error.max()):.2g} % of the "
            "look-ups."
        )


def _lookups(plan: CachePlan) -> str:
    """What curves are of."""
    ram = plan.asked.ram
    if ram is None:
        return "the look-ups"
    # Writes that RAM defers pass later, and fewer of them.
    return f"the look-ups past RAM{' (its writes at most)' if ram.defers else ''}"


def _money(plan: CachePlan, amount: float) -> str:
    return f"{amount:,.0f} {plan.asked.prices.currency}"
