"""Misses of caches of blocks as an answer: by policy and size."""

from __future__ import annotations

from collections.abc import Sequence

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
from ssdlab.studies.caches import Found, Point

BOUND = "optimal"
LOG_FROM = 20
"""A chart of sizes farther apart than this factor has a logarithmic axis."""


def answer(found: Found) -> Answer:
    """From what :meth:`ssdlab.studies.caches.CacheStudy.carry_out` found."""
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


def _by_size(found: Found) -> dict[int, list[Point]]:
    sizes: dict[int, list[Point]] = {}
    for one in found.points:
        sizes.setdefault(one.blocks, []).append(one)
    return sizes


def _size(found: Found, blocks: int) -> str:
    of_all = units.percent(blocks / max(1, found.working_set))
    return f"{units.binary(blocks * found.block)} ({of_all} of the working set)"


def _best(found: Found) -> list[str]:
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
    return [
        f"At {_size(found, middle)} {best.policy} misses least, "
        f"{shares[0]} of the accesses; {worst.policy} most, {shares[1]}."
    ]


def _ratios(found: Found) -> Table:
    names = list(dict.fromkeys(one.policy for one in found.points))
    heads = [*columns("cache | blocks"), *(Column(name, "%") for name in names)]
    rows: list[Sequence[Cell | str | None]] = []
    for blocks, points in sorted(_by_size(found).items()):
        ratio = {one.policy: 100 * found.ratio(one) for one in points}
        size = units.binary(blocks * found.block)
        rows.append([size, Cell(blocks), *(Cell(ratio[name]) for name in names)])
    return Table("Miss ratio", heads, rows)


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


def _chart(found: Found) -> Figure:
    sizes = sorted(_by_size(found))
    named: dict[str, list[float]] = {}
    for one in sorted(found.points, key=lambda one: one.blocks):
        named.setdefault(one.policy, []).append(100 * found.ratio(one))
    return Figure(
        "Miss ratio",
        "cache, MiB",
        "misses, % of block accesses",
        family([size * found.block / (1 << 20) for size in sizes], named),
        log_x=sizes[-1] > LOG_FROM * sizes[0],
        wide=True,
    )
