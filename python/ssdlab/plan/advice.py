"""What a plan says: what to take, why, what others would cost or gain, what would change it."""

from __future__ import annotations

from ssdlab import units
from ssdlab.analysis.names import part_phrase
from ssdlab.plan.curves import SAMPLES, SHARES
from ssdlab.plan.question import CachePlan
from ssdlab.plan.rows import GAIN_MIN, CacheRow

SAID = 0.05
"""Share of the time from which a part is worth a sentence."""
ROOMY = 4.0
"""A drive so many times as large as everything that is touched is worth a sentence."""
NOTABLE = 0.03
"""Differences below this share are none."""


def advise(plan: CachePlan) -> list[str]:
    """Sentences: the answer first."""
    best = plan.choice.best
    said = _none(plan) if best is None else [_headline(plan, best), *_reasons(plan, best)]
    said += _refused(plan)
    if best is not None:
        said += _runners(plan, best)
    said += _change(plan, best)
    return said


def _headline(plan: CachePlan, row: CacheRow) -> str:
    candidate = row.candidate
    assert candidate is not None
    price = "" if row.price is None else f" It costs {_money(plan, row.price)} with the pool."
    gain = row.iops / plan.pool.iops if plan.pool.iops else 0.0
    lead = "Take"
    if plan.choice.only_again:
        first = row.first_iops / plan.pool.first_iops if plan.pool.first_iops else 0.0
        lead = (
            f"In a single pass of this load no cache pays off ({row.name}: {first:.2f} times the "
            "pool alone). If the same data is asked for again, as in the passes here, take"
        )
    return (
        f"{lead} {_named(plan, row)}: {units.number(row.iops)} IOPS once warm, {gain:.2f} times "
        f"the pool alone ({units.number(plan.pool.iops)}); {_pace(plan)} 50 % of the I/Os within "
        f"{units.latency(row.latency_ns(50.0) or 0)} and 99 % within "
        f"{units.latency(row.latency_ns(99.0) or 0)} (pool alone "
        f"{units.latency(plan.pool.latency_ns(50.0) or 0)} and "
        f"{units.latency(plan.pool.latency_ns(99.0) or 0)}).{price}"
    )


def _pace(plan: CachePlan) -> str:
    return "at the recorded pace" if plan.load.recorded is not None else "at full speed"


def _named(plan: CachePlan, row: CacheRow) -> str:
    candidate = row.candidate
    assert candidate is not None
    where = "" if len(plan.asked.fasts) > 1 else f" on {candidate.fast.title}"
    return f"the cache {row.name}{where}"


def _none(plan: CachePlan) -> list[str]:
    main, best = plan.main, plan.choice.runners[0] if plan.choice.runners else None
    if plan.choice.why_none == "reuse" and main is not None and best is not None:
        return [
            f"No cache pays off: {100 * main.first_touch:.1f} % of the look-ups are the first of "
            f"their 4 KiB block, so at most {100 * main.attainable:.1f} % can hit, however large "
            f"the cache is. In the first pass the best, {best.name}, makes "
            f"{units.number(best.first_iops)} IOPS, the pool alone "
            f"{units.number(plan.pool.first_iops)}.",
            f"Only if the same data is asked for all over again does a cache help: {best.name} "
            f"then makes {units.number(best.iops)} IOPS.",
        ]
    if best is not None:
        return [
            f"No cache pays off: the best, {best.name}, makes {units.number(best.iops)} IOPS and "
            f"the pool alone {units.number(plan.pool.iops)}; {_pace(plan)} 99 % of the I/Os take "
            f"up to {units.latency(best.latency_ns(99.0) or 0)}, with the pool alone "
            f"{units.latency(plan.pool.latency_ns(99.0) or 0)}: below the "
            f"{100 * (GAIN_MIN - 1):.0f} % improvement as good.",
            f"The rule: {plan.asked.rules.sentence}.",
            *_otherwise(plan),
        ]
    reasons = "; ".join(dict.fromkeys(plan.choice.refused.values()))
    return [f"No cache can be recommended: {reasons}."]


def _otherwise(plan: CachePlan) -> list[str]:
    """Whether a cache would pay off for its latency, where it does not for its speed."""
    pool = plan.pool.latency_ns(99.0) or 0
    rows = [row for row in plan.caches if row.name not in plan.choice.refused]
    best = min(rows, key=lambda row: row.latency_ns(99.0) or pool, default=None)
    if plan.asked.rules.goal == "p99" or best is None:
        return []
    p99 = best.latency_ns(99.0) or pool
    if p99 * GAIN_MIN > pool:
        return []
    return [
        f"For the tail of latency one does (--goal p99): {best.name}, {_pace(plan)} 99 % of the "
        f"I/Os within {units.latency(p99)} instead of {units.latency(pool)}."
    ]


def _reasons(plan: CachePlan, row: CacheRow) -> list[str]:
    said = [f"The rule: {plan.asked.rules.sentence}."]
    hits = row.hits
    if hits is not None:
        found = []
        if hits.read is not None:
            found.append(f"{100 * hits.read:.1f} % of the reads")
        if hits.write is not None:
            found.append(f"{100 * hits.write:.1f} % of the writes")
        first = (
            f"{units.number(row.first_iops)} IOPS (pool alone {units.number(plan.pool.first_iops)})"
        )
        if plan.load.is_job:
            said.append(
                f"Over all of the job, {' and '.join(found)} find their data in the cache, which "
                f"was empty at first: {first}."
            )
        else:
            said.append(
                f"Warm, {' and '.join(found)} find their data in the cache; in the first pass, "
                f"with an empty cache, it makes {first}."
            )
    for fast in (one for one in plan.rows if one.kind == "fast"):
        share = 100 * row.iops / fast.iops if fast.iops else 0.0
        scaled = f" ({fast.note})" if fast.note else ""
        said.append(
            f"That is {share:.0f} % of what {fast.store.title} does with all of the load on it"
            f"{scaled}: {units.number(fast.iops)} IOPS."
        )
    return said + _warm(plan, row) + _wear(row) + _time(row)


def _warm(plan: CachePlan, row: CacheRow) -> list[str]:
    said = []
    if row.warm.seconds is not None and row.warm.passes is not None:
        if row.warm.seconds == 0:
            said.append("It is within 90 % of its final speed from the start.")
        else:
            pace = ""
            if plan.load.span_s:
                pace = (
                    f", {units.duration(row.warm.passes * plan.load.span_s)} at the recorded pace"
                )
            said.append(
                "It is warm (90 % of the final speed for good) after "
                f"{units.duration(row.warm.seconds)} at "
                f"full speed, {row.warm.passes:.2g} passes of the load{pace}."
            )
        if row.warm.rising:
            said.append(
                "Its speed was still rising at the end, so the final speed is a lower bound: "
                + ("give the job more time." if plan.load.is_job else "give more --passes.")
            )
    if row.formula is not None:
        said.append(
            f"The published formula C P / (I S D) says {units.duration(row.formula.seconds)} for "
            "filling it by random reads, each disk one at a time "
            f"({units.number(row.formula.disk_iops)} a second), which is a lower bound for such a "
            "load; writes, runs and queued reads fill faster."
        )
    return said


def _wear(row: CacheRow) -> list[str]:
    life = row.life
    if life is None:
        return []
    dwpd, telling = life.drive_writes_per_day, life.recording_is_long_enough
    years = "more than a century" if life.years > 100 else f"{life.years:.1f} years"
    day = "" if telling else ", if the load went on like that all day and every day"
    return [
        f"Each cache drive is written up to {100 * dwpd:.3g} % of its capacity a day "
        f"({units.number(dwpd)} DWPD, write amplification "
        f"{life.write_amplification:.2f}) and lasts {years} by its rated cycles{day}."
    ]


def _time(row: CacheRow) -> list[str]:
    parts = row.passes.last.did.parts
    long = sorted(((s, p) for p, s in parts.items() if s >= SAID), reverse=True)[:3]
    if not long:
        return []
    told = [f"{100 * share:.0f} % in {part_phrase(part)}" for share, part in long]
    return [f"Of the time of its I/Os at full speed, {', '.join(told)}."]


def _refused(plan: CachePlan) -> list[str]:
    """What is faster but may not be taken."""
    best, rules = plan.choice.best, plan.asked.rules
    others = [best] if best else [*plan.choice.runners[:1], plan.pool]
    base = rules.value(others[0]) or 0.0
    said = []
    for why in dict.fromkeys(plan.choice.refused.values()):
        rows = [row for row in plan.caches if plan.choice.refused.get(row.name) == why]
        row = max(rows, key=lambda one: rules.value(one) or 0.0)
        better = (rules.value(row) or 0.0) > (1 + NOTABLE) * base
        p99 = units.latency(row.latency_ns(99.0) or 0)
        text = (
            f"Not taken, since it {why}: {row.name}, {units.number(row.iops)} IOPS, 99 % within "
            f"{p99} ({'better' if better else 'no better'} by the rule)."
        )
        if row.defers and why.startswith("loses"):
            text += (
                f" WARNING: if its cache drive fails, up to {units.binary(row.dirty_most)} of "
                "acknowledged writes are lost for good, and the pool is left with old data among "
                "new." + _mirrored(plan, row)
            )
        said.append(text)
    if best is not None and best.defers:
        safe = best.candidate is not None and best.candidate.fast.redundant
        ending = (
            "the cache tolerates the failure of one drive, not of two"
            if safe
            else "WARNING: if the cache drive fails, they are lost for good"
        )
        said.append(
            f"Up to {units.binary(best.dirty_most)} of acknowledged writes lie in the cache alone: "
            f"{ending}."
        )
    return said


def _mirrored(plan: CachePlan, row: CacheRow) -> str:
    names = list(row.candidate.fast.bill) if row.candidate else []
    if len(names) != 1:
        return ""
    one = plan.asked.prices.of({names[0]: 1})
    cost = "" if one is None else f" for {_money(plan, one)} more"
    return f" Two of them in a mirror (--cache raid1:2:{names[0]}) would make it safe{cost}."


def _runners(plan: CachePlan, best: CacheRow) -> list[str]:
    said = []
    for place, row in enumerate(plan.choice.runners):
        rank = ("Second", "Third")[place]
        rate = row.iops / best.iops if best.iops else 0.0
        p99, own = row.latency_ns(99.0) or 0, best.latency_ns(99.0) or 1
        said.append(
            f"{rank}: {row.name}: {_factor(rate, 'as fast')}, {_factor(p99 / own, 'the p99')}"
            f"{_years(row, best)}{_dearer(plan, row, best)}."
        )
    return said


def _factor(value: float, what: str) -> str:
    return (
        f"{value:.2f} times {what}"
        if abs(value - 1) >= NOTABLE
        else f"the same {what.replace('as fast', 'speed').replace('the ', '')}"
    )


def _years(row: CacheRow, best: CacheRow) -> str:
    own, other = (one.life and one.life.drive_writes_per_day for one in (row, best))
    return f", {_factor(own / other, 'the wear')}" if own and other else ""


def _dearer(plan: CachePlan, row: CacheRow, best: CacheRow) -> str:
    if row.price is None or best.price is None:
        return ""
    if abs(row.price - best.price) < 0.005:
        return ", at the same price"
    more = row.price - best.price
    return f", {_money(plan, abs(more))} {'more' if more > 0 else 'less'}"


def _change(plan: CachePlan, best: CacheRow | None) -> list[str]:
    said: list[str] = []
    row = best or (plan.choice.runners[0] if plan.choice.runners else None)
    if row is None or row.candidate is None or plan.choice.why_none == "reuse":
        return said
    found = plan.curves.get((row.candidate.policy or "lru", row.candidate.block or 0))
    found = found or plan.main
    if found is not None:
        hits = found.hits(warm=True)
        size = row.candidate.size
        now, half, more = (found.at(s, hits) for s in (size, size / 2, 2 * size))
        text = (
            f"What would change this: if the working set doubled, a cache of {units.binary(size)} "
            f"would hit {100 * half:.0f} % of the look-ups once warm instead of {100 * now:.0f} %"
            if now - half >= 0.005
            else f"What would change this: not the working set; if it doubled, a cache of "
            f"{units.binary(size)} would still hit {100 * now:.0f} % of the look-ups once warm"
        )
        if more > now + 0.01:
            text += f"; twice the cache would hit {100 * more:.0f} %"
        grown = 2 * size
        fits = grown <= row.candidate.fast.capacity_bytes
        where = row.candidate.fast.title
        text += (
            f"; {units.binary(grown)} would still fit on {where}." if fits else
            f"; {units.binary(grown)} would take more than {where}."
        )  # fmt: skip
        said.append(text)
    said += _modes(plan, row)
    said += [] if best is None else _smaller_drive(plan, row)
    said += _larger_gain(plan)
    return said


def _modes(plan: CachePlan, row: CacheRow) -> list[str]:
    """What it would cost that writes survive the loss of the cache, or gain that they need not."""
    safe = [one for one in plan.caches if not one.defers]
    unsafe = [one for one in plan.caches if one.defers]
    if not safe or not unsafe:
        return []
    one = max(safe, key=lambda r: r.iops)
    other = max(unsafe, key=lambda r: r.iops)
    change = one.iops / other.iops - 1 if other.iops else 0.0
    size = f"{abs(100 * change):.0f} %"
    costs = f"is {size} {'slower' if change < 0 else 'faster here'}"
    why = "" if change < 0 else _slower(other, one)
    return [
        f"If writes must survive the loss of the cache: the fastest that does not defer them "
        f"({one.name}, {units.number(one.iops)} IOPS) {costs} than the fastest that does "
        f"({other.name}, {units.number(other.iops)} IOPS){why}; {_pace(plan)} their 99th "
        f"percentiles are {units.latency(one.latency_ns(99.0) or 0)} and "
        f"{units.latency(other.latency_ns(99.0) or 0)}."
    ]


def _slower(slow: CacheRow, fast: CacheRow) -> str:
    """What the I/Os of one row wait longer for than those of another."""
    one, other = slow.passes.last.did, fast.passes.last.did
    longer = {
        part: share * one.mean_ns - other.parts.get(part, 0.0) * other.mean_ns
        for part, share in one.parts.items()
    }
    part = max(longer, key=lambda name: longer[name], default="")
    if not part or longer[part] <= 0:
        return ""
    return f", whose I/Os spend {units.latency(longer[part])} more in {part_phrase(part)}"


def _smaller_drive(plan: CachePlan, row: CacheRow) -> list[str]:
    """Where the drive is far larger than anything that the load touches."""
    found = plan.curves.get(("lru", (row.candidate and row.candidate.block) or 0)) or plan.main
    if found is None or row.candidate is None:
        return []
    times = row.candidate.fast.capacity_bytes / found.footprint
    if times < ROOMY:
        return []
    return [
        f"All that this load touches takes {units.binary(found.footprint)}; "
        f"{row.candidate.fast.title} has {units.number(times)} times as much, so for this "
        "load a smaller drive of its speed would do as well."
    ]


def _larger_gain(plan: CachePlan) -> list[str]:
    main = plan.main
    if main is None or plan.load.is_job or main.first_touch < 0.3:
        return []
    return [
        f"{100 * main.first_touch:.0f} % of the 4 KiB look-ups in the trace are first touches. The "
        "warm numbers take it that the same data is asked for again in the next pass; if each day "
        "brings new data, those of the first pass hold."
    ]


def about_load(plan: CachePlan) -> list[str]:
    """Sentences about the load itself."""
    load, main = plan.load, plan.main
    said = []
    if main is None:
        return [
            "Nothing is known of what the load asks for twice; hit ratios come from time alone."
        ]
    if load.stream is not None:
        stream = load.stream
        reads = 100 * stream.reads / len(stream)
        said.append(
            f"{len(stream):,} requests, {reads:.0f} % reads, "
            f"{units.number(stream.mean_bytes / 1024)} KiB on average; "
            f"{units.binary(main.footprint)} of different data in blocks of 4 KiB."
        )
    said.append(
        f"First touches are {100 * main.first_touch:.1f} % of the look-ups: within the load at "
        f"most {100 * main.attainable:.1f} % can hit, whatever the cache."
    )
    sizes = [(share, main.working_set(share)) for share in SHARES]
    if all(size is not None for _, size in sizes):
        told = [f"{100 * share:.0f} % with {units.binary(size or 0)}" for share, size in sizes]
        said.append(f"Working set (LRU, 4 KiB): of these hits {', '.join(told)}.")
    if main.rate < 1:
        said.append(
            f"Curves are of {100 * main.rate * SAMPLES:.0f} % of the blocks, chosen by a hash "
            f"(SHARDS); the standard error is at most {100 * float(main.error.max()):.2g} % of the "
            "look-ups."
        )
    return said


def _money(plan: CachePlan, amount: float) -> str:
    return f"{amount:,.0f} {plan.asked.prices.currency}"
