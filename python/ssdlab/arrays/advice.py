"""Which array to take, in words, with reasons and with what would change them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ssdlab import units
from ssdlab.analysis.differences import rivals
from ssdlab.analysis.names import part_phrase
from ssdlab.arrays.offer import ArrayRow

ALIKE = 0.01
"""Spaces that differ by less than this share are the same."""
CLOSE = 0.9
"""An array with this share of the fastest one's rate is about as fast, so that space decides."""
GAIN = 1.25
"""Times as many drives ought to give at least so many times the rate for each doubling."""
SAID = 0.05
"""Share of the time from which a cause is worth a sentence."""
BUSY = 0.95
"""What is busy for so much of the time holds up everything."""
UNSAFE = ("0", "linear")
CAUSES = ("slowest_member", "parity", "stripe_wait", "card", "bus", "cache")
"""Parts of the time that arrays differ by."""
SHARED = {
    "bus": "the bus that the members share",
    "card": "the processor of the controller card",
    "host bus": "the bandwidth of the controller card",
}
"""What may be busy for all members (:attr:`ssdlab.arrays.performance.Performance.shared`)."""


def contenders(rows: Sequence[ArrayRow]) -> list[ArrayRow]:
    """Those among which the choice is close: of each level the fastest, where it is about as fast
    as one that is about as fast as the fastest; none where there are no two."""
    here, safe = _compared(rows) if rows else ([], [])
    by_level = {row.level: row for row in sorted(safe or here, key=lambda row: row.did.iops)}
    fastest = max((row.did.iops for row in by_level.values()), default=0.0)
    close = [row for row in by_level.values() if row.did.iops >= CLOSE * CLOSE * fastest]
    return close if len(close) > 1 else []


def advise(rows: Sequence[ArrayRow]) -> Iterator[str]:
    """Sentences: the choice first, then its reasons, then what would change it."""
    if not rows:
        return
    here, safe = _compared(rows)
    chosen = choose(rows)
    yield _headline(chosen, alone=not safe)
    yield from _reasons(chosen, here, safe)
    yield from _seeds(chosen, rows)
    yield from _time(chosen)
    yield from _drives(chosen, rows)
    yield from _price(rows)
    yield _change(chosen)


def _compared(rows: Sequence[ArrayRow]) -> tuple[list[ArrayRow], list[ArrayRow]]:
    """The arrays of the most drives, and those of them that tolerate a failure."""
    count = max(row.count for row in rows)
    here = [row for row in rows if row.count == count]
    return here, [row for row in here if row.level not in UNSAFE]


def choose(rows: Sequence[ArrayRow]) -> ArrayRow:
    """The one with the most space among those that are about as fast as the fastest."""
    here, safe = _compared(rows)
    rows = safe or here
    rows = [row for row in rows if row.did.by_seed] or rows
    fastest = max(row.did.iops for row in rows)
    near = [row for row in rows if row.did.iops >= CLOSE * fastest]
    space = max(row.usable_bytes for row in near)
    # Of those with as much space, the fastest; of equals, that with the shorter tail.
    roomy = [row for row in near if row.usable_bytes >= (1 - ALIKE) * space]
    return max(roomy, key=lambda row: (row.did.iops, -row.did.max_ns))


def _headline(row: ArrayRow, *, alone: bool) -> str:
    performance = row.did
    p99 = performance.percentile_ns(99.0)
    share, within = ("all", performance.max_ns) if p99 is None else ("99 % of the", p99)
    text = (
        f"For this load take {row.name}: {units.number(performance.iops)} IOPS "
        f"({units.number(performance.bytes_per_s / 1e6)} MB/s), {row.speedup:.2f} times one drive "
        f"and {100 * row.efficiency:.0f} % of {row.count} drives; {share} I/Os within "
        f"{units.latency(within)}; {units.size_text(row.usable_bytes)} usable"
        f"{performance.doubt and f'; {performance.doubt}'}."
    )
    if alone:
        text += " It loses everything with any one member: nothing that survives was compared."
    return text


def _reasons(row: ArrayRow, here: Sequence[ArrayRow], safe: Sequence[ArrayRow]) -> Iterator[str]:
    if row.shape is not None and row.level not in UNSAFE:
        yield f"It tolerates the failure of {row.shape.survives}."
    for other in sorted(here, key=lambda r: -r.did.iops):
        if other is row or _alike(other, row, here):
            continue
        rate = _against(other.did.iops / row.did.iops, "as fast", "as fast")
        space = _against(other.usable_bytes / row.usable_bytes, "the space", "as much space")
        danger = ", but it tolerates no failure" if other.level in UNSAFE else ""
        yield f"{other.name}: {rate}, {space}{danger}."
    costs = {r.level: (r.level_name, r.did.member_ios or 0.0) for r in safe}
    if any(ios > 1.5 for _, ios in costs.values()):
        told = (f"{name} {ios:.2g}" for name, ios in costs.values())
        yield f"Back-end I/Os per host I/O of this load: {', '.join(told)}."


def _seeds(chosen: ArrayRow, rows: Sequence[ArrayRow]) -> Iterator[str]:
    """How sure the choice is, of what was run with several seeds."""
    others = [row for row in rows if row.did.by_seed and row is not chosen]
    found = rivals(chosen.did.by_seed, [row.did.by_seed for row in others])
    told, close = [], False
    for row, difference in zip(others, found, strict=True):
        if difference is None or difference.low is None or difference.high is None:
            continue
        told.append(f"{row.name} {difference.told}")
        # With as much space the faster one is taken, else the roomier one that is fast enough.
        space = row.usable_bytes / chosen.usable_bytes
        border = 1.0 if abs(space - 1) < ALIKE else CLOSE if space > 1 else 1 / CLOSE
        close |= 1 + difference.low <= border <= 1 + difference.high
    if told:
        other = ": another seed may choose otherwise" if close else ""
        yield (
            f"Over {len(chosen.did.by_seed)} seeds their rates are above its own by (with 95 % "
            f"intervals): {units.listed(told)}{other}."
        )


def _alike(other: ArrayRow, row: ArrayRow, here: Sequence[ArrayRow]) -> bool:
    """Whether only the chunk differs from a row that is said: the fastest of a level speaks."""
    if other.level == row.level:
        return abs(other.did.iops / row.did.iops - 1) < 0.03
    level = [r for r in here if r.level == other.level]
    return other is not max(level, key=lambda r: r.did.iops)


def _against(factor: float, times: str, same: str) -> str:
    return same if abs(factor - 1) < 0.015 else f"{factor:.2f} times {times}"


def _time(row: ArrayRow) -> Iterator[str]:
    """Where the time went, and what all members share where that is busy most of the time."""
    parts = row.did.parts
    found = [
        f"{100 * parts[cause]:.0f} % went into {part_phrase(cause)}"
        for cause in CAUSES
        if parts.get(cause, 0.0) >= SAID
    ]
    if found:
        yield f"Of the time of its I/Os, {' and '.join(found)}."
    busiest = max(row.did.shared, key=row.did.shared.__getitem__, default="")
    if row.did.shared.get(busiest, 0.0) >= BUSY:
        yield (
            f"The bottleneck is {SHARED[busiest]}, busy {100 * row.did.shared[busiest]:.0f} % of "
            "the time: more or faster drives behind it would not help."
        )


def _drives(chosen: ArrayRow, rows: Sequence[ArrayRow]) -> Iterator[str]:
    same = sorted((r for r in rows if _kind(r) == _kind(chosen)), key=lambda r: r.count)
    if len(same) < 2:
        return
    before, last = same[-2], same[-1]
    gain = last.did.iops / before.did.iops if before.did.iops else 0.0
    grown = f"From {before.count} to {last.count} drives it gains"
    if gain >= 1 + (GAIN - 1) * (last.count / before.count - 1):
        yield f"{grown} {gain:.2f} times."
    else:
        in_flight = last.did.iops * last.did.mean_ns / 1e9
        yield (
            f"{grown} only {gain:.2f} times: "
            f"{in_flight:.0f} I/Os in flight are {in_flight / last.count:.1f} for each drive."
        )


def _kind(row: ArrayRow) -> object:
    """Level and chunk: what arrays of several numbers of drives share."""
    return row.shape and replace(row.shape, count=0)


def _price(rows: Sequence[ArrayRow]) -> Iterator[str]:
    priced = [r for r in rows if r.price_per_kiops is not None and r.level not in UNSAFE]
    if priced:
        fast = min(priced, key=lambda r: r.price_per_kiops or 0.0)
        roomy = min(priced, key=lambda r: r.price_per_gb or 0.0)
        yield (
            f"Of those that survive a failure, a thousand IOPS cost least in {fast.name} "
            f"({units.number(fast.price_per_kiops)}), a GB in {roomy.name} "
            f"({units.number(roomy.price_per_gb)})."
        )


def _change(row: ArrayRow) -> str:
    ios = row.did.member_ios or 1.0
    if row.level in ("5", "6"):
        if ios > 1.5:
            return (
                "What would change this: more small writes make parity dearer, so RAID 10 gains; "
                "requests of whole stripes need no old data, so parity gains."
            )
        return (
            "What would change this: small writes. Each takes RAID 5 four and RAID 6 six back-end "
            "I/Os, RAID 10 two; under reads and whole stripes they cost nothing."
        )
    if row.level in ("1", "10"):
        return (
            "What would change this: if space or its price counts for more than speed, RAID 5 or 6 "
            "hold more; if most I/Os are reads or fill whole stripes, they are as fast, too."
        )
    return "What would change this: any need for the data to survive a drive."
