"""Queue depth and access time: what more I/Os in flight bring, and how long a lone one takes."""

from __future__ import annotations

from collections.abc import Mapping

from ssdlab import units
from ssdlab.answer import Cell, Figure, Section, Verdict
from ssdlab.engine.answers import (
    Part,
    best,
    charts,
    figure,
    number,
    part_distributions,
    ratio,
    undecided,
    work_table,
)
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup, bytes_of, short
from ssdlab.engine.steps import Job, Step

WAYS = (("read", "randread"), ("write", "randwrite"))
SCALING_MAX = 110.0
"""Percent of perfect scaling that noise explains."""
NEARLY = 0.9
"""Beyond the depth that has this share of the most, waiting grows more than the rate."""
ANY_GAIN = 1.01
"""What deeper queues gain beyond that is told from here."""
Cells = dict[int, Cell]
"""Values by depth."""
ACCESS = (("read", "randread", "4k"), ("write", "randwrite", "512"))
"""AS SSD reads 4 KiB anywhere and writes 512 B; a target with larger blocks is written in those."""


def plan_depths(setup: Setup) -> list[Step]:
    """Fill, write everything once at random; all depths of reads, then of writes."""
    return [
        setup.fill(),
        setup.used(setup.text("bs")),
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
            measured=False,
        ),
        *_depths(setup, "write", "randwrite"),
    ]


def _depths(setup: Setup, way: str, rw: str) -> list[Job]:
    return [
        setup.timed(
            f"{way}-qd{depth}",
            f"random {way}s of {setup.text('bs')}, {depth} in flight",
            rw,
            setup.text("bs"),
            depth=depth,
        )
        for depth in setup.counts("depths")
    ]


def judge_depths(records: Records, setup: Setup) -> Section:
    """Operations and latency by depth, and how well the drive scales."""
    depths = setup.counts("depths")
    rates, waits = (
        {w: {d: records.cell(what, f"{w}-qd{d}", w) for d in depths} for w, _ in WAYS}
        for what in ("iops", "mean")
    )
    ideal = {w: {d: _scaling(rates[w], d) for d in depths} for w, _ in WAYS}
    said = [line for w, _ in WAYS if (line := _scales(w, rates[w], waits[w], ideal[w]))]
    tables, numbers = [], []
    for way, _ in WAYS:
        parts = [Part(f"{way}-qd{depth}", way, str(depth)) for depth in depths]
        scaled = {str(depth): cell for depth, cell in ideal[way].items()}
        tables.append(
            work_table(
                records,
                parts,
                "iops mean p99 p99.9 max",
                title=f"Random {way}s by queue depth",
                corner="in flight",
                more={"scaling efficiency [%]": scaled},
            )
        )
        lone = f"random {way}s, {depths[0]} in flight"
        numbers += [
            number(f"random {way}s, most", best(rates[way].values()), "IOPS", "higher"),
            number(lone, rates[way][depths[0]], "IOPS", "higher"),
        ]
    scaling = f"Scaling efficiency vs QD {depths[0]}"
    figures = by_depth(
        {
            title: {f"{way}s": of[way] for way, _ in WAYS}
            for title, of in (("Operations", rates), ("Mean latency", waits), (scaling, ideal))
        }
    )
    too_good = _contaminated(ideal)
    verdict = Verdict("scales" if said else "not-measured")
    if too_good is not None:
        way, depth, share = too_good
        head, verdict = undecided(
            f"{way}s at depth {depth} have a scaling efficiency of {share:.0f} %, so the {way}s "
            f"at depth {depths[0]} were slowed by something else (a cold cache, power saving, the "
            "drive's own work)",
            "repeat with longer steps (--param seconds=...) on a drive that has come to rest",
            scaling_percent=share,
        )
        said = [*head, *said]
    said = said or ["No queue depth has been measured yet."]
    return Section(said, numbers, tables, figures, verdict=verdict)


def by_depth(found: Mapping[str, Mapping[str, Cells]]) -> list[Figure]:
    """Charts of values by name and depth, side by side; the axis of the latency is logarithmic."""
    axes = {"Operations": "IOPS", "Mean latency": "us"}
    return charts(
        *(
            figure(
                title,
                "I/Os in flight",
                axes.get(title, "%"),
                {name: cells.values() for name, cells in curves.items()},
                x_names=[str(depth) for depth in next(iter(curves.values()))],
                log_y=title == "Mean latency",
                group="By queue depth",
            )
            for title, curves in found.items()
        )
    )


def least_depth(rates: Cells) -> int:
    """The smallest depth that comes near the highest rate."""
    most = best(rates.values()).value or 0.0
    return min(d for d, rate in rates.items() if (rate.value or 0.0) >= NEARLY * most)


def _contaminated(ideal: dict[str, Cells]) -> tuple[str, int, float] | None:
    """Kind, depth and percent of what scales better than perfectly: its base cannot be right."""
    found = [
        (way, depth, cell.value)
        for way, shares in ideal.items()
        for depth, cell in shares.items()
        if cell.value is not None and cell.value > SCALING_MAX
    ]
    return max(found, key=lambda one: one[2], default=None)


def _scaling(rates: Cells, depth: int) -> Cell:
    """Percent of what the smallest depth would give if every I/O in flight added as much."""
    first = min(rates)
    return ratio(rates[depth], rates[first], 100 * first / depth)


def _scales(way: str, rates: Cells, waits: Cells, ideal: Cells) -> str | None:
    if best(rates.values()).value is None:
        return None
    enough = least_depth(rates)
    first, last = min(rates), max(d for d, rate in rates.items() if rate.value is not None)
    gain = ratio(best(rates.values()), rates[enough]).value
    more = "" if gain is None or gain < ANY_GAIN else units.percent(gain - 1)
    if enough == first:
        faster = f"at most {more} faster" if more else "no faster"
        return (
            f"Random {way}s are {faster} with more in flight than with {first}: "
            f"{units.iops(rates[first].value)}."
        )
    grown = (
        f" Deeper queues {f'add at most {more}, and' if more else 'only add'} latency: "
        f"{units.microseconds(waits[last].value)} on average at depth {last}."
        if last > enough
        else " The deepest queue measured is still the best."
    )
    scaled = ideal[enough].value
    return (
        f"Random {way}s reach {units.iops(rates[enough].value)} with {enough} in flight, "
        f"{units.times(ratio(rates[enough], rates[first]).value)} what {first} in flight gives"
        f"{'' if scaled is None else f' (scaling efficiency {scaled:.0f} %)'}.{grown}"
    )


def plan_access(setup: Setup) -> list[Step]:
    """Fill, then lone reads anywhere and lone small writes."""
    steps: list[Step] = [setup.fill()]
    for way, rw, bs in ACCESS:
        size = max(bytes_of(bs), setup.block)
        steps.append(
            setup.timed(
                way,
                f"random {way}s of {units.binary(size)}, one at a time",
                rw,
                short(size),
            )
        )
    return steps


def judge_access(records: Records, setup: Setup) -> Section:
    """Mean, percentiles and the whole distribution of lone accesses."""
    said, numbers = [], []
    parts = [
        Part(way, way, f"{way} {units.binary(max(bytes_of(bs), setup.block))}")
        for way, _, bs in ACCESS
    ]
    for part in parts:
        way = part.title.partition(" ")[0]
        mean, tail, longest = (records.cell(w, way, way) for w in ("mean", "p99.9", "max"))
        numbers += [
            number(f"{way} access time", mean, "us", "lower"),
            number(f"{way} access time, p99.9", tail, "us", "lower"),
        ]
        if mean.value is not None:
            ends = [("p99.9", tail.value), ("max", longest.value)]
            told = [f"{name} {units.microseconds(us)}" for name, us in ends if us is not None]
            said.append(
                f"A lone {way} of {part.title.removeprefix(way + ' ')} takes "
                f"{units.microseconds(mean.value)} on average; {', '.join(told)}."
            )
    table = work_table(
        records, parts, "mean p50 p99 p99.9 max", title="Access time", corner="access"
    )
    shown = part_distributions(
        records, "Access latency distribution (CCDF)", parts, x_label="access time, us"
    )
    return Section(said or ["No access has been measured yet."], numbers, [table], charts(shown))


PROTOCOLS = (
    *procedure(
        "article",
        "queue-depth",
        "Queue depth",
        "IOPS and latency vs queue depth",
        "Tom's Hardware, Samsung 840 Pro: one SSD against two in RAID 0, 2013",
        plan_depths,
        judge_depths,
        ProtocolParameter("bs", "4k", "block size"),
        ProtocolParameter("depths", "1,2,4,8,16,32,64,128,256", "I/Os in flight"),
        ProtocolParameter("seconds", 60.0, "time for each depth"),
        ProtocolParameter("settle_s", 600.0, "seconds of random writes before those are measured"),
    ),
    *procedure(
        "article",
        "access-time",
        "Access time",
        "how long a lone read or write takes, as AS SSD measures it",
        "AS SSD Benchmark; Tom's Hardware, one SSD against two in RAID 0, 2013",
        plan_access,
        judge_access,
        ProtocolParameter("seconds", 30.0, "time for reads and for writes"),
    ),
)
