"""What to buy, in words: what is cheapest by which measure, and what would change that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ssdlab import units
from ssdlab.plan.prices import Prices
from ssdlab.plan.storage.measure import LOADS
from ssdlab.plan.storage.rows import StorageOffer

NEAR = 1.25
"""A rival within this factor may win by a change of prices."""
ROOMY = 0.9
"""With this share of the space a rival holds about as much."""
LIFE_SHORT = 3.0
"""Years of an SSD from which on its wear needs no sentence."""
HOURS_LONG = 1.0


def advise(rows: Sequence[StorageOffer], keys: Sequence[str], prices: Prices) -> list[str]:
    """Sentences: what is cheapest per IOPS and per TB, what for what, what would change it."""
    random = [key for key in keys if LOADS[key][1] == "IOPS"]
    said = [*_cheapest(rows, random, prices), *_for_what(rows, random)]
    said += [*_caches(rows, random), *_wear(rows), *_risks(rows)]
    said += _changes(rows, random)
    return said


def _name(row: StorageOffer) -> str:
    return f"{row.letter} ({row.candidate.title})"


def _cheapest(rows: Sequence[StorageOffer], random: Sequence[str], prices: Prices) -> Iterator[str]:
    priced = [row for row in rows if row.price is not None]
    if not priced:
        yield "None of the candidates has a price: put what they cost into a file (--prices FILE)."
        return
    space = min(priced, key=lambda row: row.price_per_tb or 0.0)
    parts = []
    for key in random:
        best = _least(priced, lambda row, key=key: row.per_kiops(key))  # type: ignore[misc]
        if best is not None:
            cost = units.number(best.per_kiops(key))
            parts.append(f"a thousand {_load(key)}IOPS in {best.letter} ({cost})")
    per_tb = units.number(space.price_per_tb)
    yield (
        f"In {prices.currency}, a TB costs least in {_name(space)}: {per_tb}"
        + (f"; {'; '.join(parts)}." if parts else ".")
    )


def _load(key: str) -> str:
    return {"read": "random read ", "write": "random write "}.get(key, "")


def _least(
    rows: Sequence[StorageOffer], of: Callable[[StorageOffer], float | None]
) -> StorageOffer | None:
    known = [row for row in rows if of(row) is not None]
    return min(known, key=lambda row: of(row) or 0.0, default=None)


def _for_what(rows: Sequence[StorageOffer], random: Sequence[str]) -> Iterator[str]:
    """What more money buys, and who is beaten in everything at once."""
    priced = [row for row in rows if row.price]
    if len(priced) < 2 or not random:
        return
    cheapest = min(priced, key=lambda row: row.price or 0.0)
    parts = []
    for row in sorted(priced, key=lambda row: row.price or 0.0):
        if row is not cheapest:
            gains = " and ".join(
                f"{units.number((row.rate(key) or 0.0) / (cheapest.rate(key) or 1.0))} times the "
                f"{'rate' if key == 'load' else LOADS[key][0]}"
                for key in random
            )
            dear = units.number((row.price or 0.0) / (cheapest.price or 1.0))
            parts.append(f"{row.letter} gives {gains} for {dear} times the price")
    yield f"Against {cheapest.letter}, the cheapest: {'; '.join(parts)}."
    yield _choice(priced, random)
    for row in priced:
        rival = _rival(row, priced, random)
        if rival is None:
            continue
        space = rival.usable_bytes / row.usable_bytes
        warm = ", once its cache is warm" if rival.did.cold else ""
        yield (
            f"{row.letter} is beaten by {rival.letter}{warm}: as fast or faster at random, "
            f"{space:.2f} times the space, {(rival.price or 0.0) / (row.price or 1.0):.2f} times "
            "the price."
        )


def _choice(priced: Sequence[StorageOffer], random: Sequence[str]) -> str:
    """One for space, one for I/Os, and what lies between both."""
    key = random[0]
    space = min(priced, key=lambda row: row.price_per_tb or 0.0)
    fast = max(priced, key=lambda row: row.rate(key) or 0.0)
    if space is fast:
        return f"Take {space.letter}: most I/Os and the cheapest space."
    text = f"For space take {space.letter}, for as many I/Os as can be had {fast.letter}."
    between = [
        row
        for row in priced
        if row not in (space, fast)
        and (row.price or 0.0) < (fast.price or 0.0)
        and (row.rate(key) or 0.0) > (space.rate(key) or 0.0)
        and _rival(row, priced, random) is None
    ]
    middle = _least(between, lambda row: row.per_kiops(key))
    if middle is None:
        return text
    share = 100 * (middle.rate(key) or 0.0) / (fast.rate(key) or 1.0)
    cost = 100 * (middle.price or 0.0) / (fast.price or 1.0)
    fits = " while the hot set fits its cache" if middle.did.cold else ""
    of = "rate" if key == "load" else LOADS[key][0]
    return (
        f"{text} Between them stands {middle.letter}: {units.number(share)} % of the {of} of "
        f"{fast.letter} for {units.number(cost)} % of its price{fits}."
    )


def _rival(
    row: StorageOffer, priced: Sequence[StorageOffer], random: Sequence[str]
) -> StorageOffer | None:
    """The cheapest that costs less, holds about as much, and is no slower at random."""
    better = [
        one
        for one in priced
        if one is not row
        and (one.price or 0.0) < (row.price or 0.0)
        and one.usable_bytes >= ROOMY * row.usable_bytes
        and all((one.rate(key) or 0.0) >= (row.rate(key) or 0.0) for key in random)
    ]
    return min(better, key=lambda one: one.price or 0.0, default=None)


def _caches(rows: Sequence[StorageOffer], random: Sequence[str]) -> Iterator[str]:
    for row in rows:
        if not row.did.cold or not random:
            continue
        key = random[0]
        cold, warm = row.did.cold[key].iops, row.did.rates[key].iops
        warmth = row.did.warmth.get(key)
        text = (
            f"{row.letter} gives {units.number(warm)} {_load(key)}IOPS once its cache is warm and "
            f"{units.number(cold)} before"
        )
        if warmth is not None and warmth.seconds > HOURS_LONG * 3600:
            text += f"; under this load that takes {units.number(warmth.seconds / 3600)} hours"
        hits = row.did.hits.get(key, 1.0)
        if hits < 0.9:
            text += f"; the hot set does not fit ({100 * hits:.0f} % hits)"
        yield f"{text}."


def _wear(rows: Sequence[StorageOffer]) -> Iterator[str]:
    for row in rows:
        life = row.life
        if life is not None and life.years is not None and life.years < LIFE_SHORT:
            yield (
                f"The SSDs of {row.letter} ({life.of}) last {units.number(life.years)} years only "
                f"at these writes: take drives for more of them than {life.worn.dwpd:.2g} drive "
                "writes a day."
            )


def _risks(rows: Sequence[StorageOffer]) -> Iterator[str]:
    bare = [row.letter for row in rows if not row.candidate.pool.redundant]
    if bare:
        many = "lose" if len(bare) > 1 else "loses"
        yield f"{', '.join(bare)} {many} everything with one drive."
    for row in rows:
        fast = row.candidate.fast
        if fast is not None and not fast.redundant and row.did.dirty_bytes > 0:
            size = units.number(row.did.dirty_bytes / 1e9)
            yield (
                f"{row.letter} loses up to {size} GB of writes with its one cache drive: mirror "
                "the cache, or let it write through."
            )


def _changes(rows: Sequence[StorageOffer], random: Sequence[str]) -> Iterator[str]:
    """What would make another answer."""
    said = []
    priced = [row for row in rows if row.price is not None]
    for key in random:
        known = sorted(
            (row for row in priced if row.per_kiops(key)), key=lambda row: row.per_kiops(key) or 0.0
        )
        if len(known) > 1:
            ratio = (known[1].per_kiops(key) or 0.0) / (known[0].per_kiops(key) or 1.0)
            if ratio < NEAR:
                said.append(
                    f"prices a quarter off put {known[1].letter} before {known[0].letter} per "
                    f"{_load(key)}IOPS"
                )
    if any(row.candidate.fast is not None for row in rows):
        said.append("a hot set larger than the cache, or one that moves before it is warm")
    disks = any(row.candidate.pool.has_disk for row in rows)
    flash = any(not row.candidate.pool.has_disk for row in rows)
    if disks and flash:
        said.append("more space at the same rate favours disks, a larger hot set SSDs")
    if said:
        yield f"What would change this: {'; '.join(said)}."
