"""Queue depth and access time: what more I/Os in flight bring, and how long a lone one takes."""

from __future__ import annotations

from ssdlab import units
from ssdlab.answer import Column, Figure, Section, Table, Verdict, columns
from ssdlab.engine import choices
from ssdlab.engine.answers import (
    Rows,
    cell,
    charts,
    curve,
    latency_columns,
    number,
    places,
    undecided,
)
from ssdlab.engine.preparation import used
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.readings import Readings, best, ratio
from ssdlab.engine.records import Records
from ssdlab.engine.setup import Parameter, Setup, bytes_of
from ssdlab.engine.steps import Job, Step

WAYS = (("read", "randread"), ("write", "randwrite"))
SCALING_MAX = 110.0
"""Percent of perfect scaling that noise explains."""
NEARLY = 0.9
"""Beyond the depth that has this share of the most, only waiting grows."""
PERCENTILES = (50.0, 99.0, 99.9)
ACCESS = (("read", "randread", "4k"), ("write", "randwrite", "512"))
"""AS SSD reads 4 KiB anywhere and writes 512 B; a target with larger blocks is written in those."""


def plan_depths(setup: Setup) -> list[Step]:
    """Fill, write everything once at random; all depths of reads, then of writes."""
    return [
        setup.fill(),
        used(setup, setup.text("bs")),
        *_depths(setup, "read", "randread"),
        # The reads have given it time to collect; what the depth of writes brings is asked of a
        # drive that has to collect as it writes.
        setup.job(
            "settle",
            "random writes until it collects as it writes",
            "randwrite",
            setup.text("bs"),
            depth=32,
            seconds=setup.number("settle_s"),
            compressible=setup.count("compressible"),
            measured=False,
        ),
        *_depths(setup, "write", "randwrite"),
    ]


def _depths(setup: Setup, way: str, rw: str) -> list[Job]:
    return [
        setup.job(
            f"{way}-qd{depth}",
            f"random {way}s of {setup.text('bs')}, {depth} in flight",
            rw,
            setup.text("bs"),
            depth=depth,
            seconds=setup.number("seconds"),
            compressible=setup.count("compressible"),
        )
        for depth in choices.counts(setup, "depths")
    ]


def judge_depths(records: Records, setup: Setup) -> Section:
    """Operations and latency by depth, and how well the drive scales."""
    found = Readings(records)
    depths = choices.counts(setup, "depths")
    rates = {w: {d: found.iops(f"{w}-qd{d}", w) for d in depths} for w, _ in WAYS}
    waits = {w: {d: found.mean_us(f"{w}-qd{d}", w) for d in depths} for w, _ in WAYS}
    ideal = {w: {d: _scaling(rates[w], d) for d in depths} for w, _ in WAYS}
    said = [line for w, _ in WAYS if (line := _scales(w, rates[w], waits[w], ideal[w]))]
    heads = columns(
        "in flight, operations:IOPS, scaling efficiency:%, mean latency:us, p99 latency:us, "
        "p99.9 latency:us, max:us"
    )
    tables = []
    for way, _ in WAYS:
        rows: Rows = [
            [
                str(depth),
                cell(rates[way][depth], key),
                cell(ideal[way][depth], key, f"{way}-qd{depths[0]}"),
                cell(waits[way][depth], key),
                cell(found.percentile_us(key, 99.0, way), key),
                cell(found.percentile_us(key, 99.9, way), key),
                cell(found.max_us(key, way), key),
            ]
            for depth in depths
            for key in (f"{way}-qd{depth}",)
        ]
        tables.append(Table(f"Random {way}s by queue depth", heads, rows))
    numbers = []
    for way, _ in WAYS:
        keys = [f"{way}-qd{depth}" for depth in depths]
        first = rates[way][depths[0]]
        numbers += [
            number(f"random {way}s, most", best(rates[way].values()), "IOPS", "higher", *keys),
            number(f"random {way}s, {depths[0]} in flight", first, "IOPS", "higher", keys[0]),
        ]
    keys_all = tuple(f"{way}-qd{depth}" for way, _ in WAYS for depth in depths)

    def chart(
        title: str, unit: str, values: dict[str, dict[int, float | None]], log: bool
    ) -> Figure:
        return Figure(
            title,
            "I/Os in flight",
            unit,
            [curve(f"{w}s", places(values[w].values()), n) for n, (w, _) in enumerate(WAYS)],
            x_names=[str(depth) for depth in depths],
            log_y=log,
            group="By queue depth",
            sources=keys_all,
        )  # fmt: skip

    figures = charts(
        chart("Operations", "IOPS", rates, False),
        chart("Mean latency", "us", waits, True),
        chart(f"Scaling efficiency vs QD {depths[0]}", "%", ideal, False),
    )
    too_good = _contaminated(ideal)
    verdict = Verdict("scales" if said else "not-measured")
    if too_good is not None:
        way, depth, share = too_good
        head, verdict = undecided(
            f"{way}s at depth {depth} have a scaling efficiency of {share:.0f} %, so the {way}s "
            "at depth "
            f"{depths[0]} were slowed by something else (a cold cache, power saving, the drive's "
            "own work)",
            "repeat with longer steps (--param seconds=...) on a drive that has come to rest",
            scaling_percent=share,
        )
        said = [*head, *said]
    return Section(
        said or ["No queue depth has been measured yet."],
        numbers,
        tables,
        figures,
        verdict=verdict,
    )


def _contaminated(ideal: dict[str, dict[int, float | None]]) -> tuple[str, int, float] | None:
    """Kind, depth and percent of what scales better than perfectly: its base cannot be right."""
    found = [
        (way, depth, share)
        for way, shares in ideal.items()
        for depth, share in shares.items()
        if share is not None and share > SCALING_MAX
    ]
    return max(found, key=lambda one: one[2], default=None)


def _scaling(rates: dict[int, float | None], depth: int) -> float | None:
    """Percent of what the smallest depth would give if every I/O in flight added as much."""
    first = min(rates)
    share = ratio(rates[depth], rates[first])
    return None if share is None else 100 * share * first / depth


def _scales(
    way: str,
    rates: dict[int, float | None],
    waits: dict[int, float | None],
    ideal: dict[int, float | None],
) -> str | None:
    most = best(rates.values())
    if most is None:
        return None
    enough = min(d for d, rate in rates.items() if rate is not None and rate >= NEARLY * most)
    first, last = min(rates), max(d for d, rate in rates.items() if rate is not None)
    gain = ratio(rates[enough], rates[first])
    if enough == first:
        return (
            f"Random {way}s are no faster with more in flight than with {first}: "
            f"{units.iops(rates[first])}."
        )
    grown = (
        f" Deeper queues only add latency: {units.microseconds(waits[last])} on average "
        f"at depth {last}."
        if last > enough
        else " The deepest queue measured is still the best."
    )
    scaled = ideal[enough]
    return (
        f"Random {way}s reach {units.iops(rates[enough])} with {enough} in flight, "
        f"{units.times(gain)} what {first} in flight gives"
        f"{'' if scaled is None else f' (scaling efficiency {scaled:.0f} %)'}.{grown}"
    )


def plan_access(setup: Setup) -> list[Step]:
    """Fill, then lone reads anywhere and lone small writes."""
    steps: list[Step] = [setup.fill()]
    for way, rw, bs in ACCESS:
        size = max(bytes_of(bs), setup.block)
        steps.append(
            setup.job(
                way,
                f"random {way}s of {units.binary(size)}, one at a time",
                rw,
                choices.short(size),
                seconds=setup.number("seconds"),
                compressible=setup.count("compressible"),
            )
        )
    return steps


def judge_access(records: Records, setup: Setup) -> Section:
    """Mean, percentiles and the whole distribution of lone accesses."""
    found = Readings(records)
    rows: Rows = []
    said, numbers, curves = [], [], []
    for place, (way, _, bs) in enumerate(ACCESS):
        size = units.binary(max(bytes_of(bs), setup.block))
        mean_us = found.mean_us(way, way)
        percentiles = [found.percentile_us(way, percent, way) for percent in PERCENTILES]
        longest = found.max_us(way, way)
        rows.append([f"{way} {size}", *(cell(v, way) for v in (mean_us, *percentiles, longest))])
        numbers += [
            number(f"{way} access time", mean_us, "us", "lower", way),
            number(f"{way} access time, p99.9", percentiles[-1], "us", "lower", way),
        ]
        if mean_us is not None:
            said.append(
                f"A lone {way} of {size} takes {units.microseconds(mean_us)} on average; "
                f"p99.9 {units.microseconds(percentiles[-1])}, "
                f"max {units.microseconds(longest)}."
            )
        value, longer = found.latencies(way, way)
        curves.append(curve(f"{way} {size}", zip(value, longer, strict=True), place, "line"))
    figure = Figure(
        "Access latency distribution (CCDF)",
        "access time, us",
        "I/Os slower, %",
        curves,
        log_x=True,
        log_y=True,
        wide=True,
        sources=tuple(way for way, _, _ in ACCESS),
    )
    table = Table("Access time", [Column("access"), *latency_columns()], rows)
    return Section(said or ["No access has been measured yet."], numbers, [table], charts(figure))


COMPRESSIBLE = Parameter("compressible", 0, "percent by which the data shrinks")

PROTOCOLS = (
    Protocol(
        name="queue-depth",
        title="Queue depth",
        summary="IOPS and latency vs queue depth",
        source="Tom's Hardware, Samsung 840 Pro: one SSD against two in RAID 0, 2013",
        group="article",
        plan=plan_depths,
        judge=judge_depths,
        parameters=(
            Parameter("bs", "4k", "block size"),
            Parameter("depths", "1,2,4,8,16,32,64,128,256", "I/Os in flight"),
            Parameter("seconds", 60.0, "time for each depth"),
            Parameter("settle_s", 600.0, "seconds of random writes before those are measured"),
            COMPRESSIBLE,
        ),
    ),
    Protocol(
        name="access-time",
        title="Access time",
        summary="how long a lone read or write takes, as AS SSD measures it",
        source="AS SSD Benchmark; Tom's Hardware, one SSD against two in RAID 0, 2013",
        group="article",
        plan=plan_access,
        judge=judge_access,
        parameters=(Parameter("seconds", 30.0, "time for reads and for writes"), COMPRESSIBLE),
    ),
)
