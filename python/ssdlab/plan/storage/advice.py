"""What to buy, in words: what is cheapest by which measure, and what would change that."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from ssdlab import units
from ssdlab.plan.prices import Prices
from ssdlab.plan.rows import CLOSE
from ssdlab.plan.storage.loads import WRITES_PER_DAY
from ssdlab.plan.storage.measure import LOADS
from ssdlab.plan.storage.needs import NOTHING, Needs, guaranteed
from ssdlab.plan.storage.rows import StorageOffer
from ssdlab.wear import WARRANTY_DAYS

NEAR = 1.25
"""A rival within this factor may win by a change of prices."""
ROOMY = 0.9
"""With this share of the space a rival holds about as much."""
LIFE_SHORT = WARRANTY_DAYS / 365
"""Years of an SSD from which on its wear needs no sentence."""
HOURS_LONG = 1.0
FLATTERS = 1.25
"""Writes in the hot set that are so many times those all over the store need a sentence."""


def advise(
    rows: Sequence[StorageOffer],
    keys: Sequence[str],
    prices: Prices,
    writes_per_day: float = WRITES_PER_DAY,
    needs: Needs = NOTHING,
) -> list[str]:
    """Sentences: what gives all that is needed, what is cheapest per IOPS and per TB and soon worn
    out, what for what, what would change it."""
    random = [key for key in keys if LOADS[key][1] == "IOPS"]
    said = [*_enough(rows, random, prices, writes_per_day, needs)] if needs else []
    said += [*_cheapest(rows, random, prices, writes_per_day)]
    said += [*_wear(rows, writes_per_day), *_for_what(rows, random)]
    said += [*_flattered(rows), *_caches(rows, random), *_risks(rows)]
    said += _changes(rows, random)
    return said


def _flattered(rows: Sequence[StorageOffer]) -> Iterator[str]:
    """What a small hot set makes of the writes of SSDs."""
    known = [
        row for row in rows if row.everywhere and _rate(row, "write") > FLATTERS * row.everywhere
    ]
    if known:
        parts = [
            f"{row.letter} does {units.number(_rate(row, 'write'))} random write IOPS in the hot "
            f"set and {units.number(row.everywhere)} when all of its room is written"
            for row in known
        ]
        yield f"A small hot set flatters SSDs: {'; '.join(parts)}."


def _enough(
    rows: Sequence[StorageOffer],
    random: Sequence[str],
    prices: Prices,
    writes_per_day: float,
    needs: Needs,
) -> Iterator[str]:
    """What to take for all that is needed, and what the others lack."""
    asked, verb = str(needs), "gives" if str(needs) else "costs"
    if needs.years:
        asked += f" at {units.size_text(writes_per_day)} of writes a day"
    if needs.budget:
        money = f"{units.number(needs.budget)} {prices.currency}"
        asked = f"{asked} within {money}" if asked else f"at most {money}"
    missing = [(row, needs.missing(row, random)) for row in rows]
    enough = [row for row, lacks in missing if not lacks]
    short = "; ".join(f"{row.letter} {_short_of(lacks)}" for row, lacks in missing if lacks)
    if not enough:
        yield f"None of the candidates {verb} {asked}: {short}."
        return
    priced = [row for row in enough if row.price is not None]

    def cost(row: StorageOffer) -> float:
        if needs.budget:
            return -guaranteed(row, random)
        return _price(row) if priced else _drives(row)

    best = min(priced or enough, key=lambda row: (cost(row), _price(row), _drives(row)))
    text = f"For {asked} take {best.letter} ({best.candidate.title})"
    if priced:
        text += f", {units.number(best.price)} {prices.currency}"
    others = [row for row in priced or enough if row is not best]
    dearer = [row.letter for row in others if cost(row) > cost(best)]
    alike = [row.letter for row in others if cost(row) == cost(best)]
    more, same = ("of fewer drives than", "of as many as")
    if priced:
        more, same = ("cheaper than", "as cheap as")
    if needs.budget:
        more, same = ("faster than", "as fast as")
    by = [f"{word} {units.listed(few)}" for word, few in ((more, dearer), (same, alike)) if few]
    if by:
        also = "can be had for that too" if needs.budget else "would do as well"
        text += f": it is {units.listed(by)}, which {also}"
    cold = [best.rate(key, cold=True) or 0.0 for key in random if key in best.did.cold]
    if any(rate < needs.iops for rate in cold):
        text += "; it gives these IOPS once its cache is warm"
    if best.doubts:
        text += "; a check puts its numbers in doubt"
    yield f"{text}."
    flash = any(part.tree.find("ssd") for part in best.candidate.stores)
    if needs.years and best.life is None and flash:
        yield (
            f"How long the SSDs of {best.letter} last is not known: nothing that the host writes "
            "under this load reaches them."
        )
    unpriced = [row.letter for row in enough if priced and row.price is None]
    if unpriced:
        yield f"Enough as well, but without a price: {units.listed(unpriced)}."
    if short:
        yield f"Not enough: {short}."


def _short_of(lacks: Mapping[str, str]) -> str:
    gives = units.listed([said for what, said in lacks.items() if what != "price"])
    parts = [f"gives {gives}" if gives else "", lacks.get("price", "")]
    return units.listed([part for part in parts if part])


def _cheapest(
    rows: Sequence[StorageOffer], random: Sequence[str], prices: Prices, writes_per_day: float
) -> Iterator[str]:
    priced = [row for row in rows if row.price is not None]
    if not priced:
        yield "None of the candidates has a price: put what they cost into a file (--prices FILE)."
        return
    space = min(priced, key=lambda row: row.price_per_tb or 0.0)
    parts = [f"{space.letter} ({space.candidate.title}): {units.number(space.price_per_tb)}"]
    named = [space]
    for key in random:
        best = next(iter(_by_kiops(priced, key)), None)
        if best is not None:
            cost = units.number(best.per_kiops(key))
            parts.append(f"a thousand {_load(key)}IOPS in {best.letter} ({cost})")
            named.append(best)
    worn = [
        f"those of {row.letter} {units.number(years)} years"
        for row in rows
        if row in named and (years := _short_life(row)) is not None
    ]
    if worn:
        written = units.size_text(writes_per_day)
        parts.append(f"at {written} of writes a day SSDs last: {', '.join(worn)}")
    yield f"In {prices.currency}, a TB costs least in {'; '.join(parts)}."


def _short_life(row: StorageOffer) -> float | None:
    """Years until the SSDs are worn out, where that is soon."""
    years = None if row.life is None else row.life.years
    return None if years is None or years >= LIFE_SHORT else years


def _load(key: str) -> str:
    return {"read": "random read ", "write": "random write "}.get(key, "")


def _by_kiops(rows: Sequence[StorageOffer], key: str) -> list[StorageOffer]:
    """Those whose price of I/Os is known, the cheapest first."""
    known = [row for row in rows if row.per_kiops(key) is not None]
    return sorted(known, key=lambda row: row.per_kiops(key) or 0.0)


def _price(row: StorageOffer) -> float:
    return row.price or 0.0


def _drives(row: StorageOffer) -> float:
    return float(sum(row.candidate.bill.values()))


def _rate(row: StorageOffer, key: str) -> float:
    return row.rate(key) or 0.0


def _what(key: str) -> str:
    return "rate" if key == "load" else LOADS[key][0]


def _for_what(rows: Sequence[StorageOffer], random: Sequence[str]) -> Iterator[str]:
    """What more money buys, and who is beaten in everything at once."""
    priced = [row for row in rows if row.price]
    if len(priced) < 2 or not random:
        return
    cheapest, *others = sorted(priced, key=_price)
    parts = []
    for row in others:
        gains = " and ".join(
            f"{units.number(_rate(row, key) / (_rate(cheapest, key) or 1.0))} times the "
            f"{_what(key)}"
            for key in random
        )
        dear = units.number(_price(row) / _price(cheapest))
        parts.append(f"{row.letter} gives {gains} for {dear} times the price")
    yield f"Against {cheapest.letter}, the cheapest: {'; '.join(parts)}."
    yield _choice(priced, random)
    for row in priced:
        rival = _rival(row, priced, random)
        if rival is not None:
            space = rival.usable_bytes / row.usable_bytes
            warm = ", once its cache is warm" if rival.did.cold else ""
            yield (
                f"{row.letter} is beaten by {rival.letter}{warm}: as fast or faster at random, "
                f"{space:.2f} times the space, {_price(rival) / _price(row):.2f} times the price."
            )


def _choice(priced: Sequence[StorageOffer], random: Sequence[str]) -> str:
    """One for space, one for I/Os, one for both at once, and what lies between them."""
    key = random[0]
    space = min(priced, key=lambda row: row.price_per_tb or 0.0)
    most = max(_rate(row, key) for row in priced)
    fastest = [row for row in priced if _rate(row, key) >= CLOSE * most]
    fast = min(fastest, key=_price)
    if space is fast:
        return f"Take {space.letter}: most I/Os and the cheapest space."
    text = f"For space take {space.letter}, for as many I/Os as can be had {fast.letter}"
    roomy = [row for row in fastest if row.usable_bytes >= ROOMY * space.usable_bytes]
    both = min(roomy, key=_price, default=fast)
    text += "." if both is fast else f", for both {both.letter}{_fits(both)}."
    between = [
        row
        for row in priced
        if row not in (space, fast)
        and _price(row) < _price(fast)
        and _rate(row, key) > _rate(space, key)
        and _rival(row, priced, random) is None
    ]
    middle = next(iter(_by_kiops(between, key)), None)
    if middle is None:
        return text
    share = 100 * _rate(middle, key) / (_rate(fast, key) or 1.0)
    cost = 100 * _price(middle) / _price(fast)
    return (
        f"{text} Between them stands {middle.letter}: {units.number(share)} % of the {_what(key)} "
        f"of {fast.letter} for {units.number(cost)} % of its price{_fits(middle)}."
    )


def _fits(row: StorageOffer) -> str:
    return " while the hot set fits its cache" if row.did.cold else ""


def _rival(
    row: StorageOffer, priced: Sequence[StorageOffer], random: Sequence[str]
) -> StorageOffer | None:
    """The cheapest that costs less, holds about as much, and is no slower at random."""
    better = [
        offer
        for offer in priced
        if offer is not row
        and _price(offer) < _price(row)
        and offer.usable_bytes >= ROOMY * row.usable_bytes
        and all(_rate(offer, key) >= _rate(row, key) for key in random)
    ]
    return min(better, key=_price, default=None)


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


def _wear(rows: Sequence[StorageOffer], writes_per_day: float) -> Iterator[str]:
    """What is worn out too soon, and the drive writes a day that would take."""
    parts = []
    for row in rows:
        years, life = _short_life(row), row.life
        if years is not None and life is not None:
            needed = life.dwpd_5_years * LIFE_SHORT / years
            parts.append(
                f"{row.letter} ({life.of}) after {units.number(years)} years, at {needed:.2g} "
                f"drive writes a day (DWPD) where it endures {life.dwpd_5_years:.2g}"
            )
    if parts:
        yield (
            f"At {units.size_text(writes_per_day)} of writes a day SSDs wear out within "
            f"{LIFE_SHORT:g} years: {'; '.join(parts)}."
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
    for key in random:
        known = [(row, row.per_kiops(key) or 0.0) for row in _by_kiops(rows, key)]
        for (first, cost), (second, dearer) in itertools.islice(itertools.pairwise(known), 1):
            if cost and dearer / cost < NEAR:
                said.append(
                    f"prices a quarter off put {second.letter} before {first.letter} per "
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
