"""Misses of caches of blocks or objects as an answer: by policy and size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
)
from ssdlab.studies.caches import Found
from ssdlab.studies.objects import ObjectsFound

BOUND = "optimal"
LOG_FROM = 20
"""A chart of sizes farther apart than this factor has a logarithmic axis."""


def answer(found: Found | ObjectsFound) -> Answer:
    """From what :meth:`ssdlab.studies.caches.CacheStudy.carry_out` found."""
    return _objects(found) if isinstance(found, ObjectsFound) else _blocks(found)


def _blocks(found: Found) -> Answer:
    first = found.working_set / max(1, found.accesses)
    block = units.binary(found.block)
    lead = Section(
        [
            f"The working set is {units.binary(found.working_set * found.block)}: "
            f"{found.working_set:,} blocks of {block}. First touches are {units.percent(first)} of "
            f"{found.accesses:,} block accesses and miss in a cache of any size.",
            *_best(found),
        ],
        [
            Number("working set", float(found.working_set * found.block), "B"),
            Number("first touches", 100 * first, "%"),
        ],
        [_ratios(found)],
        [_chart(found)],
        key="misses",
        title="Misses by policy and size",
        rows=found.rows(),
        verdict=Verdict("measured", {"working_set_blocks": float(found.working_set)}),
    )
    followed = (
        "every access was followed"
        if found.share == 1.0
        else f"sampled: {units.percent(found.share)} of the blocks were followed, so misses are "
        "estimates with a standard error"
    )
    note = (
        f"{found.requests:,} requests ({found.reads:,} blocks read, {found.writes:,} written); "
        "each block of a request is looked up by itself, in order; caches begin empty, and a miss "
        f"brings the block in, whether it is read or written; {followed}."
    )
    every = Section(tables=[_all(found)], key="caches", title="Every cache")
    return Answer(f"Caches for {found.trace}", "cache", [lead, every], notes=[note])


def _objects(found: ObjectsFound) -> Answer:
    first = found.count / max(1, found.requests)
    first_bytes = found.working_set_bytes / max(1, found.bytes)
    lead = Section(
        [
            f"The working set is {units.binary(found.working_set_bytes)}: {found.count:,} objects. "
            f"First touches are {units.percent(first)} of {found.requests:,} requests and "
            f"{units.percent(first_bytes)} of the bytes, and miss in a cache of any size.",
            *_best(found),
        ],
        [
            Number("working set", float(found.working_set_bytes), "B"),
            Number("first touches", 100 * first, "%"),
        ],
        [_ratios(found), _ratios(found, found.byte_ratio, "Byte miss ratio")],
        [_chart(found), _chart(found, found.byte_ratio, "Byte miss ratio", "bytes")],
        key="misses",
        title="Misses by policy and size",
        rows=found.rows(),
        verdict=Verdict("measured", {"working_set_bytes": float(found.working_set_bytes)}),
    )
    note = (
        f"{found.requests:,} requests for objects ({found.writes:,} of them writes), "
        f"{units.binary(found.bytes)} in all; caches begin empty; what misses comes in as a whole, "
        "unless it is larger than the cache or not admitted; every request was followed."
    )
    heads = columns(
        "policy | cache | requests | misses | miss ratio [%] | byte miss ratio [%] | expired | "
        "not let in"
    )
    rows: list[Sequence[Cell | str | None]] = [
        [
            one.policy,
            units.binary(one.size),
            *map(Cell, (found.requests, one.misses, 100 * found.ratio(one))),
            *map(Cell, (100 * found.byte_ratio(one), one.expired, one.passed)),
        ]
        for one in found.points
    ]
    every = Section(tables=[Table("Misses", heads, rows)], key="caches", title="Every cache")
    return Answer(f"Caches for {found.trace}", "cache", [lead, every], notes=[note])


Ratio = Callable[[Any], float]


def _by_size(found: Found | ObjectsFound) -> dict[int, list[Any]]:
    sizes: dict[int, list[Any]] = {}
    for one in found.points:
        sizes.setdefault(one.size, []).append(one)
    return sizes


def _bytes(found: Found | ObjectsFound, size: int) -> int:
    return size * found.block if isinstance(found, Found) else size


def _size(found: Found | ObjectsFound, size: int) -> str:
    whole = found.working_set if isinstance(found, Found) else found.working_set_bytes
    share = units.percent(size / max(1, whole))
    return f"{units.binary(_bytes(found, size))} ({share} of the working set)"


def _best(found: Found | ObjectsFound) -> list[str]:
    """Who misses least at the size in the middle."""
    sizes = _by_size(found)
    middle = sorted(sizes)[(len(sizes) - 1) // 2]
    online = [one for one in sizes[middle] if one.policy != BOUND]
    if len(online) < 2:
        return []
    best = min(online, key=lambda one: one.misses)
    worst = max(online, key=lambda one: one.misses)
    shares = [units.percent(found.ratio(one)) for one in (best, worst)]
    if shares[0] == shares[1]:
        return [f"At {_size(found, middle)} the policies hardly differ: {shares[0]} miss."]
    of = "accesses" if isinstance(found, Found) else "requests"
    return [
        f"At {_size(found, middle)} {best.policy} misses least, "
        f"{shares[0]} of the {of}; {worst.policy} most, {shares[1]}."
    ]


def _ratios(
    found: Found | ObjectsFound, ratio: Ratio | None = None, title: str = "Miss ratio"
) -> Table:
    names = list(dict.fromkeys(one.policy for one in found.points))
    counted = isinstance(found, Found)
    heads = [*columns("cache | blocks" if counted else "cache"), *(Column(n, "%") for n in names)]
    rows: list[Sequence[Cell | str | None]] = []
    for size, points in sorted(_by_size(found).items()):
        shares = {one.policy: 100 * (ratio or found.ratio)(one) for one in points}
        count = [Cell(size)] if counted else []
        rows.append(
            [units.binary(_bytes(found, size)), *count, *(Cell(shares[name]) for name in names)]
        )
    return Table(title, heads, rows)


def _all(found: Found) -> Table:
    heads = columns(
        "policy | blocks | requests | misses | miss ratio [%] | read misses | write misses | "
        "write-backs | standard error [%]"
    )
    rows: list[Sequence[Cell | str | None]] = [
        [
            one.policy,
            *map(Cell, (one.blocks, found.accesses, one.misses, 100 * found.ratio(one))),
            *map(Cell, (one.reads, one.writes, one.write_backs, 100 * one.error)),
        ]
        for one in found.points
    ]
    return Table("Misses", heads, rows)


def _chart(
    found: Found | ObjectsFound,
    ratio: Ratio | None = None,
    title: str = "Miss ratio",
    of: str = "requests",
) -> Figure:
    sizes = sorted(_by_size(found))
    named: dict[str, list[float]] = {}
    points: Sequence[Any] = found.points
    for one in sorted(points, key=lambda one: one.size):
        named.setdefault(one.policy, []).append(100 * (ratio or found.ratio)(one))
    return Figure(
        title,
        "cache, MiB",
        f"misses, % of {'block accesses' if isinstance(found, Found) else of}",
        family([_bytes(found, size) / (1 << 20) for size in sizes], named),
        log_x=sizes[-1] > LOG_FROM * sizes[0],
        wide=True,
    )
