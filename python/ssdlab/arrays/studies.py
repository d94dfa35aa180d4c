"""Studies of one question each: size of a chunk, number of drives, depth, degradation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ssdlab import units
from ssdlab.answer import (
    Cells,
    Curve,
    Figure,
    Section,
    Style,
    Table,
    by_name,
    columns,
    family,
    numbers,
    table,
)
from ssdlab.arrays.grid import ONE, ArrayCase, DriveSetup, doubts
from ssdlab.arrays.performance import Performance
from ssdlab.arrays.predict import Predicted, foretell
from ssdlab.arrays.rigs import CHUNK, STRIPED, ArrayShape
from ssdlab.arrays.workloads import NamedLoad, job
from ssdlab.errors import InputError
from ssdlab.histogram import us
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.units import binary

CHUNKS_KIB = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
STRIPES_S = 8.0
"""Seconds of the runs at depth 1: few I/Os a second, and the slow ones among them are rare."""
SHALLOW_S = 16.0
"""I/Os that are rarely slow are slow too rarely in a second at depth 1 to say how fast they are:
such runs are longer, by their depth."""
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
WORN_DEPTH = 32
"""Of the writes in each state of a degradation."""
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16)
STATES = (
    ("fresh", "fob"),
    ("after everything was written twice", "random:2"),
    ("after 30 minutes of rest", "random:2,idle:1800s"),
    ("after TRIM of everything", "random:2,trim"),
)
"""States of the degradation test of SNIA PTS, and how they are prepared."""
ALIKE_LOSS = 0.01
"""A loss below this share is none."""
MORE = 1.5
"""A predicted loss so many times the simulated one is worth a sentence."""
ALIKE = 0.05
"""Differences below this share are none worth a choice."""


def chunk_sizes(
    setup: DriveSetup, levels: Sequence[str], count: int, load: JobText,
    progress: ProgressCallback | None = None,
) -> Section:  # fmt: skip
    """The job on arrays that differ in the size of a chunk, 4 to 1024 KiB."""
    striped = [ArrayShape(level, count) for level in levels if level in STRIPED]
    levels = [shape.level for shape in striped if shape.possible()]
    if not levels:
        raise InputError(
            f"--study chunk: none of these levels has chunks with {units.counted(count, 'drive')}; "
            "give one of 0, 10, 5, 6 to --levels, and enough drives to --count"
        )
    shapes = [ArrayShape(level, count, kib << 10) for level in levels for kib in CHUNKS_KIB]
    cases = {shape: ArrayCase(shape, load) for shape in shapes}
    by = setup.measure(cases, progress)
    rates: dict[str, dict[int, float]] = {}
    for shape, did in by.items():
        rates.setdefault(shape.level_name, {})[shape.chunk >> 10] = did.iops
    speeds = table(
        "By chunk",
        by.items(),
        {
            "chunk": lambda row: f"{row[0].level_name}, {row[0].chunk >> 10} KiB",
            "rate [IOPS]": lambda row: row[1].iops,
            "throughput [MB/s]": lambda row: row[1].bytes_per_s / 1e6,
            "mean [us]": lambda row: us(row[1].mean_ns),
            "p99 [us]": lambda row: us(row[1].percentile_ns(99.0)),
            "p99.9 [us]": lambda row: us(row[1].percentile_ns(99.9)),
            "member I/Os per I/O": lambda row: row[1].member_ios,
        },
    )
    curves = family(CHUNKS_KIB, {name: list(own.values()) for name, own in rates.items()})
    title = "Rate against the size of a chunk"
    return Section(
        [_best_chunk(f"{name} of {count}", own) for name, own in rates.items()],
        tables=[speeds],
        figures=[Figure(title, "chunk, KiB", "IOPS", curves, log_x=True, wide=True)],
        key="chunk",
        title=f"Size of a chunk: {load.name.removesuffix('.fio')}",
        rows=[{"level": s.level, "chunk_bytes": s.chunk, **did.as_json()} for s, did in by.items()],
        checks=doubts(cases, by),
    )


def _best_chunk(name: str, rates: Mapping[int, float]) -> str:
    best, slowest = (pick(rates, key=lambda kib: rates[kib]) for pick in (max, min))
    near = [kib for kib, rate in rates.items() if rate >= (1 - ALIKE) * rates[best]]
    rate = units.number(rates[best])
    if len(near) == len(rates):
        return f"{name}: the size of a chunk does not matter here, all within 5 % of {rate} IOPS."
    others = ", ".join(str(kib) for kib in near if kib != best)
    return (
        f"{name}: fastest with chunks of {best} KiB ({rate} IOPS); within 5 % of it: "
        f"{f'{others} KiB' if others else 'no other'}; slowest with {slowest} KiB "
        f"({units.number(rates[slowest])} IOPS). Each ran once: with another --seed the order may "
        "be another."
    )


def scaling(
    setup: DriveSetup, counts: Iterable[int], chunk: int = CHUNK,
    progress: ProgressCallback | None = None,
) -> Section:  # fmt: skip
    """Writes of a chunk for each of N members at depth 1, against N: from means, from minima,
    simulated."""
    counts = sorted(set(counts))
    cases = {0: ArrayCase(None, whole_stripes(chunk))}
    cases |= {n: ArrayCase(ArrayShape("0", n, chunk), whole_stripes(n * chunk)) for n in counts}
    by = setup.measure(cases, progress)
    alone, *performances = by.values()
    told = [foretell(alone.latency, n, chunk) for n in counts]
    rows = [
        {
            "count": n,
            "from_means_bw_bytes": n * alone.bytes_per_s,
            "from_slowest_bw_bytes": predicted.by_slowest
            / predicted.by_means
            * (n * alone.bytes_per_s),
            **simulated.as_json(),
        }
        for n, predicted, simulated in zip(counts, told, performances, strict=True)
    ]
    named: dict[str, tuple[str, Style]] = {
        "N x mean": ("from_means_bw_bytes", "dashed"),
        "N x slowest": ("from_slowest_bw_bytes", "dotted"),
        "simulated": ("bw_bytes", "points"),
    }
    curves = [
        Curve(name, [float(n) for n in counts], [row[key] / 1e6 for row in rows], style, colour)
        for colour, (name, (key, style)) in enumerate(named.items())
    ]
    last, n = performances[-1], counts[-1]
    lost = 1 - last.bytes_per_s / (n * alone.bytes_per_s)
    return Section(
        _scaled(n, last, told[-1], lost, f"write {binary(n * chunk)} at a time"),
        tables=[_scaling_table(rows)],
        figures=[Figure("Throughput vs number of drives", "drives", "MB/s", curves, wide=True)],
        key="scaling",
        title="Writes of whole stripes against the number of drives, depth 1",
        rows=rows,
        checks=doubts(cases, by),
    )


def _scaling_table(rows: Sequence[dict[str, Any]]) -> Table:
    def change(key: str) -> Callable[[dict[str, Any]], float]:
        """How far it is from N times the mean; a zero without a sign."""
        return lambda row: round(100 * (row[key] / row["from_means_bw_bytes"] - 1), 6) + 0.0

    def busy(end: str) -> Callable[[dict[str, Any]], float | None]:
        key = "member_utilisation"
        return lambda row: None if row[key] is None else 100 * row[key][end]

    return table(
        "Scaling",
        rows,
        {
            "drives": lambda row: f"{row['count']}",
            "N x mean [MB/s]": lambda row: row["from_means_bw_bytes"] / 1e6,
            "N x slowest [MB/s]": lambda row: row["from_slowest_bw_bytes"] / 1e6,
            "simulated [MB/s]": lambda row: row["bw_bytes"] / 1e6,
            "slowest to mean [%]": change("from_slowest_bw_bytes"),
            "simulated to mean [%]": change("bw_bytes"),
            "member busy least [%]": busy("min"),
            "member busy mean [%]": busy("mean"),
        },
    )


def _scaled(n: int, last: Performance, told: Predicted, lost: float, how: str) -> list[str]:
    does = f"{n} drives {how}: {units.number(last.bytes_per_s / 1e6)} MB/s"
    predicted = f"One drive's latencies alone predicted a loss of {100 * told.loss:.0f} %."
    if lost < ALIKE_LOSS and told.loss < ALIKE_LOSS:
        said = [
            f"{does}, as much as {n} times one drive: no member is ever much slower than the "
            f"others. {predicted}"
        ]
    elif lost < ALIKE_LOSS:
        said = [
            f"{does}, as much as {n} times one drive: the members, equal and with the same "
            f"history, are slow at the same moments. {predicted} Drives that were written at "
            "random are not in step (--prepare random:1)."
        ]
    else:
        said = [
            f"{does}, {100 * lost:.0f} % less than {n} times one drive, because every request "
            f"waits for the slowest member. {predicted}"
        ]
        if told.loss > MORE * lost:
            said.append(
                "The loss is smaller than predicted because a member that waits for another one "
                "goes on with what it has queued; latencies alone do not know that."
            )
    return [
        *said,
        "Requests that need not all end together do not suffer: independent ones, or more of them "
        "in flight.",
    ]


def depths(
    setup: DriveSetup, shapes: Sequence[ArrayShape], load: NamedLoad,
    progress: ProgressCallback | None = None,
) -> Section:  # fmt: skip
    """A load at depths 1 to 256 on arrays and on the drive alone."""
    places = {ONE: None, **{shape.name: shape for shape in shapes}}
    cases = {
        (name, depth): ArrayCase(shape, load.job(depth, seconds=max(1.0, SHALLOW_S / depth)))
        for name, shape in places.items()
        for depth in DEPTHS
    }
    performances = setup.measure(cases, progress)
    named = {name: [performances[name, depth].iops for depth in DEPTHS] for name in places}
    said = []
    for label, rates in list(named.items())[1:]:
        gains = [rate / base for rate, base in zip(rates, named[ONE], strict=True)]
        first = next((d for d, gain in zip(DEPTHS, gains, strict=True) if gain >= 1.1), None)
        begins = "at no depth" if first is None else f"from depth {first} on"
        said.append(
            f"{label} is 10 % faster than one drive {begins}; at depth 1 it does {gains[0]:.2f} "
            f"times as many, at depth {DEPTHS[-1]} {gains[-1]:.2f} times."
        )
    curves = family(DEPTHS, named)
    return Section(
        said,
        tables=[_rates("By depth", "IOPS at depth", [str(d) for d in DEPTHS], named)],
        figures=[Figure("IOPS vs queue depth", "depth", "IOPS", curves, True, True, wide=True)],
        key="depth",
        title=f"Depth: {load.name}",
        rows=[
            {"array": places[name] and name, "depth": depth, **did.as_json()}
            for (name, depth), did in performances.items()
        ],
        checks=doubts(cases, performances),
    )


def degradation(
    setup: DriveSetup, shape: ArrayShape, progress: ProgressCallback | None = None
) -> Section:
    """4 KiB random writes fresh, used, rested, trimmed: alone, in arrays with and without TRIM."""
    load = job("rw=randwrite\nbs=4k", "degradation", depth=WORN_DEPTH)
    kind = f"{shape.level_name} of {shape.count}"
    places = {
        ONE: None,
        f"{kind}, TRIM passed on": replace(shape, trim=True),
        f"{kind}, TRIM not passed on": replace(shape, trim=False),
    }
    cases = {
        (name, state): ArrayCase(place, load, steps)
        for name, place in places.items()
        for state, steps in STATES
    }
    performances = setup.measure(cases, progress)
    states = [state for state, _ in STATES]
    named = {name: [performances[name, state].iops for state in states] for name in places}
    said: list[str] = []
    told = {}
    for name, rates in named.items():
        shares = [100 * rate / rates[0] for rate in rates[1:]]
        told[name] = [*rates, *shares]
        load_of = "" if said else f"4 KiB random writes at depth {WORN_DEPTH}, "
        said.append(
            f"{load_of}{name}: {units.number(rates[0])} IOPS fresh, "
            f"{shares[0]:.0f} % of that when used, {shares[1]:.0f} % after rest, "
            f"{shares[2]:.0f} % after TRIM of everything."
        )
    heads = [f"{state} [IOPS]" for state in ("fresh", "used", "rested", "trimmed")]
    heads += [f"{state} [%]" for state in ("used", "rested", "trimmed")]
    return Section(
        said,
        tables=[_rates("By state", "device", heads, told)],
        figures=[by_name("Random writes by state", "IOPS", states, named, wide=True)],
        key="degradation",
        title=f"Degradation: {shape.name}",
        rows=[
            {"array": name, "state": state, **did.as_json()}
            for (name, state), did in performances.items()
        ],
        checks=doubts(cases, performances),
    )


def _rates(
    title: str, first: str, heads: Sequence[str], named: Mapping[str, Sequence[float]]
) -> Table:
    """A row of numbers for each name."""
    rows: list[Cells] = [[name, *numbers(*values)] for name, values in named.items()]
    return Table(title, columns(" | ".join([first, *heads])), rows)


def whole_stripes(size: int) -> JobText:
    """The writes of :func:`scaling`."""
    return job(f"rw=write\nbs={size}", "stripes-write", depth=1, seconds=STRIPES_S)
