"""Misses of caches of blocks or objects as an answer: by policy and size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ssdlab import units
from ssdlab.answer import (
    Answer,
    Cell,
    Column,
    Figure,
    Number,
    Section,
    Table,
    Verdict,
    columns,
    family,
    size_cell,
    table,
)
from ssdlab.studies.caches import COUNTED_ONLY, LIKE_LIBCACHESIM, MissRatios
from ssdlab.studies.objects import ObjectsFound

NO_ROOM_BELOW = {"2q": 4, "s3-fifo": 20, "w-tinylfu": 100}
"""Blocks below which a queue of libCacheSim's has room for none, and lets nothing in."""
LIRS_BELOW = 200
"""Blocks below which libCacheSim's LIRS holds more than it may."""
ALIKE = 1.01
"""Policies whose misses differ by no more than this factor are as good as each other."""
LOG_FROM = 20
"""A chart of sizes farther apart than this factor has a logarithmic axis."""


Found = MissRatios | ObjectsFound
Ratio = Callable[[Any], float]


def answer(found: Found) -> Answer:
    """From what :meth:`ssdlab.studies.caches.MissRatioStudy.carry_out` found."""
    return _objects(found) if isinstance(found, ObjectsFound) else _blocks(found)


def _blocks(ratios: MissRatios) -> Answer:
    first = ratios.working_set / max(1, ratios.accesses)
    block = units.binary(ratios.block)
    lead = Section(
        [
            f"The working set is {units.binary(ratios.working_set * ratios.block)}: "
            f"{units.counted(ratios.working_set, 'block')} of {block}. "
            f"First touches are {units.percent(first)} of {ratios.accesses:,} block "
            "accesses and miss in a cache of any size.",
            *_best(ratios),
            *ratios.left_out,
        ],
        [
            Number("working set", ratios.working_set * ratios.block / 2**30, "GiB"),
            Number("first touches", 100 * first, "%"),
        ],
        [_ratios(ratios)],
        [_chart(ratios)],
        key="misses",
        title="Misses by policy and size",
        rows=ratios.rows(),
        verdict=Verdict("measured", {"working_set_blocks": float(ratios.working_set)}),
    )
    followed = (
        "every access was followed"
        if ratios.share == 1.0
        else f"sampled: {units.percent(ratios.share)} of the blocks were followed, so misses are "
        "estimates with a standard error"
    )
    note = (
        f"{units.counted(ratios.requests, 'request')} "
        f"({ratios.reads:,} blocks read, {ratios.writes:,} written); "
        "each block of a request is looked up by itself, in order; caches begin empty, and a miss "
        f"brings the block in, whether it is read or written; {followed}."
    )
    every = Section(tables=[_all(ratios)], key="caches", title="Every cache")
    notes = [note, *_small(ratios)]
    return Answer(f"Caches for {ratios.trace}", "cache", [lead, every], notes=notes)


def _small(ratios: MissRatios) -> list[str]:
    """Where misses are not those of libCacheSim, which breaks down in small caches."""
    least: dict[str, int] = {}
    for point in ratios.points:
        policy = point.policy.partition("+")[0]
        least[policy] = min(point.size, least.get(policy, point.size))
    starved = [
        f"{policy} below {below} blocks"
        for policy, below in NO_ROOM_BELOW.items()
        if least.get(policy, below) < below
    ]
    notes = []
    if least.get("lirs", LIRS_BELOW) < LIRS_BELOW:
        notes.append(
            f"Below {LIRS_BELOW} blocks libCacheSim's LIRS holds more than it may; lirs does not, "
            f"and --policies {LIKE_LIBCACHESIM} has its misses."
        )
    if starved:
        notes.append(
            f"libCacheSim lets nothing in, and misses everything, with {', '.join(starved)}: a "
            "queue of its has no room for a block there; here it has room for one."
        )
    return notes


def _objects(objects: ObjectsFound) -> Answer:
    first = objects.count / max(1, objects.requests)
    first_bytes = objects.working_set / max(1, objects.bytes)
    lead = Section(
        [
            f"The working set is {units.binary(objects.working_set)}: "
            f"{units.counted(objects.count, 'object')}. First touches are {units.percent(first)} "
            f"of {units.counted(objects.requests, 'request')} and "
            f"{units.percent(first_bytes)} of the bytes, and miss in a cache of any size.",
            *_best(objects),
            *objects.left_out,
        ],
        [
            Number("working set", objects.working_set / 2**30, "GiB"),
            Number("first touches", 100 * first, "%"),
        ],
        [_ratios(objects), _ratios(objects, objects.byte_ratio, "Byte miss ratio")],
        [_chart(objects), _chart(objects, objects.byte_ratio, "Byte miss ratio", "bytes")],
        key="misses",
        title="Misses by policy and size",
        rows=objects.rows(),
        verdict=Verdict("measured", {"working_set_bytes": float(objects.working_set)}),
    )
    note = (
        f"{units.counted(objects.requests, 'request')} for objects "
        f"({objects.writes:,} of them writes), "
        f"{units.binary(objects.bytes)} in all; caches begin empty; what misses comes in as a "
        "whole, unless it is larger than the cache or not admitted; every request was followed."
    )
    misses = table(
        "Misses",
        objects.points,
        {
            "policy": lambda point: point.policy,
            "cache [=B]": lambda point: size_cell(point.size),
            "requests": lambda _point: objects.requests,
            "misses": lambda point: point.misses,
            "miss ratio [%]": lambda point: 100 * objects.ratio(point),
            "byte miss ratio [%]": lambda point: 100 * objects.byte_ratio(point),
            "expired": lambda point: point.expired,
            "not let in": lambda point: point.passed,
        },
    )
    every = Section(tables=[misses], key="caches", title="Every cache")
    return Answer(f"Caches for {objects.trace}", "cache", [lead, every], notes=[note])


def _by_size(found: Found) -> dict[int, list[Any]]:
    sizes: dict[int, list[Any]] = {}
    for point in found.points:
        sizes.setdefault(point.size, []).append(point)
    return sizes


def _size(found: Found, size: int) -> str:
    share = units.percent(size / max(1, found.working_set))
    return f"{units.binary(size * found.block)} ({share} of the working set)"


def _best(found: Found) -> list[str]:
    """Who misses least at which sizes, and by how much."""
    ranked: dict[int, list[Any]] = {
        size: sorted((p for p in points if p.policy not in COUNTED_ONLY), key=lambda p: p.misses)
        for size, points in sorted(_by_size(found).items())
    }
    if any(len(points) < 2 for points in ranked.values()):
        return []

    def text(point: Any) -> str:
        return units.percent(found.ratio(point))

    def told(size: int, of: str = "") -> str:
        least, *_, most = ranked[size]
        return f"{text(least)}{of}, {most.policy} {text(most)}"

    def where(own: Sequence[int]) -> str:
        return _sizes(found, own, list(ranked))

    alike = [size for size, (least, *_, most) in ranked.items() if _near(most, least)]
    leaders = _leaders({size: points for size, points in ranked.items() if size not in alike})
    said, more = [], []
    for policy, own in leaders[:1]:
        clear = _widest(ranked, own)
        most = f", by most at {_size(found, clear)}" if len(own) > 1 else ""
        nearly = any(ranked[size][0].policy != policy for size in own)
        least = f"misses least{', or within 1 % of that,' * nearly} at {where(own)}"
        said.append(f"{policy} {least}{most}: {told(clear, f' of the {found.lookups}')}.")
    for policy, own in leaders[1:]:
        more.append(f"{policy} does at {where(own)} ({told(_widest(ranked, own))})")
    if alike:
        ends = [text(ranked[size][place]) for size, place in ((alike[-1], 0), (alike[0], -1))]
        shares = " to ".join(dict.fromkeys(ends))
        at = "at" if more else "At"
        more.append(f"{at} {where(alike)} the policies hardly differ: {shares} miss")
    return [*said, f"{'; '.join(more)}."] if more else said


def _near(point: Any, least: Any) -> bool:
    return bool(point.misses <= ALIKE * least.misses)


def _widest(ranked: Mapping[int, Sequence[Any]], own: Sequence[int]) -> int:
    """Where the policies differ most."""
    return max(own, key=lambda size: ranked[size][-1].misses - ranked[size][0].misses)


def _leaders(ranked: Mapping[int, Sequence[Any]]) -> list[tuple[str, list[int]]]:
    """Few policies of which one is as good as the best at each size, and where."""
    good: dict[str, set[int]] = {}
    for size, points in ranked.items():
        for point in points:
            if _near(point, points[0]):
                good.setdefault(point.policy, set()).add(size)
    left, found = set(ranked), []
    while left:
        policy = max(good, key=lambda name: len(good[name] & left))
        found.append((policy, sorted(good[policy] & left)))
        left -= good[policy]
    return found


def _sizes(found: Found, own: Sequence[int], sizes: Sequence[int]) -> str:
    """Some of the sizes, in words."""
    if len(sizes) == 1:
        return _size(found, own[0])
    if len(own) < 3:
        return units.listed([units.binary(size * found.block) for size in own])
    ends = " to ".join(units.binary(size * found.block) for size in (own[0], own[-1]))
    if len(own) == len(sizes):
        return f"all {len(sizes)} sizes ({ends})"
    gapless = sizes.index(own[-1]) - sizes.index(own[0]) < len(own)
    return f"{len(own)} of {len(sizes)} sizes ({'' if gapless else 'among '}{ends})"


def _ratios(found: Found, ratio: Ratio | None = None, title: str = "Miss ratio") -> Table:
    names = list(dict.fromkeys(point.policy for point in found.points))
    counted = isinstance(found, MissRatios)
    heads = [*columns("cache [=B]" + " | blocks" * counted), *(Column(n, "%") for n in names)]
    rows: list[Sequence[Cell | str | None]] = []
    for size, points in sorted(_by_size(found).items()):
        shares = {point.policy: 100 * (ratio or found.ratio)(point) for point in points}
        count = [Cell(size)] if counted else []
        rows.append(
            [size_cell(size * found.block), *count, *(Cell(shares[name]) for name in names)]
        )
    return Table(title, heads, rows)


def _all(ratios: MissRatios) -> Table:
    return table(
        "Misses",
        ratios.points,
        {
            "policy": lambda point: point.policy,
            "blocks": lambda point: point.size,
            "requests": lambda _point: ratios.accesses,
            "misses": lambda point: point.misses,
            "miss ratio [%]": lambda point: 100 * ratios.ratio(point),
            "read misses": lambda point: point.reads,
            "write misses": lambda point: point.writes,
            "write-backs": lambda point: point.write_backs,
            "standard error [%]": lambda point: 100 * point.error,
        },
    )


def _chart(
    found: Found,
    ratio: Ratio | None = None,
    title: str = "Miss ratio",
    of: str = "requests",
) -> Figure:
    sizes = sorted(_by_size(found))
    named: dict[str, list[float]] = {}
    points: Sequence[Any] = found.points
    for point in sorted(points, key=lambda one: one.size):
        named.setdefault(point.policy, []).append(100 * (ratio or found.ratio)(point))
    return Figure(
        title,
        "cache, MiB",
        f"misses, % of {'block accesses' if isinstance(found, MissRatios) else of}",
        family([size * found.block / (1 << 20) for size in sizes], named),
        log_x=sizes[-1] > LOG_FROM * sizes[0],
        wide=True,
    )
