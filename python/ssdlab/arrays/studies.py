"""Studies of one question each: size of a chunk, number of drives, depth, degradation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
)
from ssdlab.arrays.compare import Subject
from ssdlab.arrays.grid import run_all
from ssdlab.arrays.predict import Predicted, foretell
from ssdlab.arrays.readings import Reading
from ssdlab.arrays.rigs import CHUNK, STRIPED, Shape
from ssdlab.arrays.workloads import job
from ssdlab.errors import InputError
from ssdlab.histogram import us
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.units import binary

CHUNKS_KIB = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
STRIPES_S = 8.0
"""Seconds of the runs at depth 1: few I/Os a second, and the slow ones among them are rare."""
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
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
    order: Subject, levels: Sequence[str], count: int, load: JobText,
    progress: ProgressCallback | None = None,
) -> Section:  # fmt: skip
    """The job on arrays that differ in the size of a chunk, 4 to 1024 KiB."""
    striped = [Shape(one, count) for one in levels if one in STRIPED]
    levels = [one.level for one in striped if one.possible()]
    if not levels:
        raise InputError(
            f"--study chunk: none of these levels has chunks with {count} drives; "
            "give one of 0, 10, 5, 6 to --levels, and enough drives to --count"
        )
    shapes = [Shape(level, count, kib << 10) for level in levels for kib in CHUNKS_KIB]
    found = run_all(
        [order.variant(one, load) for one in shapes], seed=order.seed, progress=progress
    )
    by = dict(zip(shapes, found, strict=True))
    rows: list[Cells] = []
    rates, said = {}, []
    for level in levels:
        own = {kib: by[Shape(level, count, kib << 10)] for kib in CHUNKS_KIB}
        rows += [
            [f"RAID {level}, {kib} KiB", *_numbers(one), *numbers(one.member_ios)]
            for kib, one in own.items()
        ]
        rates[f"RAID {level}"] = [one.iops for one in own.values()]
        said.append(_best_chunk(f"RAID {level} of {count}", own))
    heads = columns(f"chunk | {_SPEEDS} | member I/Os per I/O")
    curves, title = family(CHUNKS_KIB, rates), "Rate against the size of a chunk"
    figure = Figure(title, "chunk, KiB", "IOPS", curves, log_x=True, wide=True)
    return Section(
        said, (), [Table("By chunk", heads, rows)], [figure], "chunk",
        f"Size of a chunk: {load.name.removesuffix('.fio')}",
        [{"level": s.level, "chunk_bytes": s.chunk, **r.as_json()} for s, r in by.items()],
    )  # fmt: skip


def _best_chunk(name: str, own: Mapping[int, Reading]) -> str:
    best, slowest = (pick(own, key=lambda kib: own[kib].iops) for pick in (max, min))
    near = [kib for kib in own if own[kib].iops >= (1 - ALIKE) * own[best].iops]
    rate = units.number(own[best].iops)
    if len(near) == len(own):
        return f"{name}: the size of a chunk does not matter here, all within 5 % of {rate} IOPS."
    return (
        f"{name}: fastest with chunks of {best} KiB ({rate} IOPS); within 5 % of it: "
        f"{', '.join(str(kib) for kib in near)} KiB; slowest with {slowest} KiB "
        f"({units.number(own[slowest].iops)} IOPS)."
    )


def scaling(
    order: Subject, counts: Sequence[int], chunk: int = CHUNK, depth: int = 1,
    direction: str = "write", progress: ProgressCallback | None = None,
) -> Section:  # fmt: skip
    """Requests of a chunk for each of N members, against N: from means, from minima, simulated."""
    counts = sorted(set(counts))
    shapes = [Shape("0", count, chunk) for count in counts]
    loads = [_whole_stripes(direction, n * chunk, depth) for n in (1, *counts)]
    variants = [order.variant(None, loads[0])]
    variants += [order.variant(s, one) for s, one in zip(shapes, loads[1:], strict=True)]
    alone, *found = run_all(variants, seed=order.seed, progress=progress)
    rows: list[Cells] = []
    runs, lines = [], []
    told = [foretell(alone.latency, n, chunk, depth) for n in counts]
    for n, one, simulated in zip(counts, told, found, strict=True):
        line = n * alone.bytes_per_s
        values = (line, one.by_slowest / one.by_means * line, simulated.bytes_per_s)
        lines.append([value / 1e6 for value in values])
        used = simulated.utilisation
        changes = (round(100 * (value / line - 1), 6) + 0.0 for value in values[1:])
        busy = (100 * used.least, 100 * used.mean) if used else (None, None)
        rows.append([f"{n}", *numbers(*lines[-1], *changes, *busy)])
        predicted = {"from_means_bytes_per_s": values[0], "from_slowest_bytes_per_s": values[1]}
        runs.append({"count": n, **predicted, **simulated.as_json()})
    heads = columns(
        "drives | N x mean [MB/s] | N x slowest [MB/s] | simulated [MB/s] | slowest to mean [%] | "
        "simulated to mean [%] | member busy least [%] | member busy mean [%]"
    )
    kinds: tuple[tuple[str, Style], ...] = (
        ("N x mean", "dashed"), ("N x slowest", "dotted"), ("simulated", "points"),
    )  # fmt: skip
    curves = [
        Curve(name, [float(n) for n in counts], [values[place] for values in lines], style, place)
        for place, (name, style) in enumerate(kinds)
    ]
    last, n = found[-1], counts[-1]
    lost = 1 - last.bytes_per_s / (n * alone.bytes_per_s)
    said = _scaled(n, last, told[-1], lost, f"{direction} {binary(n * chunk)} at a time")
    kind = direction.capitalize()
    return Section(
        said, (), [Table("Scaling", heads, rows)],
        [Figure("Throughput vs number of drives", "drives", "MB/s", curves, wide=True)],
        "scaling", f"{kind}s of whole stripes against the number of drives, depth {depth}", runs,
    )  # fmt: skip


def _scaled(n: int, last: Reading, told: Predicted, lost: float, how: str) -> list[str]:
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
    order: Subject, shapes: Sequence[Shape], options: str, name: str,
    progress: ProgressCallback | None = None,
) -> Section:  # fmt: skip
    """A load at depths 1 to 256 on arrays and on the drive alone."""
    places = [None, *shapes]
    keys = [(shape, depth) for shape in places for depth in DEPTHS]
    variants = [order.variant(s, job(options, name, depth=d, seconds=1.0)) for s, d in keys]
    by = dict(zip(keys, run_all(variants, seed=order.seed, progress=progress), strict=True))
    named = {
        "one drive" if shape is None else shape.name: [by[shape, d].iops for d in DEPTHS]
        for shape in places
    }
    alone, *arrays = named.items()
    said = []
    for label, rates in arrays:
        gains = [rate / base for rate, base in zip(rates, alone[1], strict=True)]
        first = next((d for d, gain in zip(DEPTHS, gains, strict=True) if gain >= 1.1), None)
        begins = "at no depth" if first is None else f"from depth {first} on"
        said.append(
            f"{label} is 10 % faster than one drive {begins}; at depth 1 it does {gains[0]:.2f} "
            f"times as many, at depth {DEPTHS[-1]} {gains[-1]:.2f} times."
        )
    heads = columns("IOPS at depth | " + " | ".join(str(d) for d in DEPTHS))
    rows: list[Cells] = [[label, *numbers(*rates)] for label, rates in named.items()]
    curves = family(DEPTHS, named)
    runs = [
        {"array": s and s.name, "depth": d, **reading.as_json()} for (s, d), reading in by.items()
    ]
    return Section(
        said, (), [Table("By depth", heads, rows)],
        [Figure("IOPS vs queue depth", "depth", "IOPS", curves, True, True, wide=True)],
        "depth", f"Depth: {name}", runs,
    )  # fmt: skip


def degradation(order: Subject, shape: Shape, progress: ProgressCallback | None = None) -> Section:
    """4 KiB random writes fresh, used, rested, trimmed: alone, in arrays with and without TRIM."""
    load = job("rw=randwrite\nbs=4k", "degradation", depth=32)
    passed = Shape(shape.level, shape.count, shape.chunk, True)
    stopped = Shape(shape.level, shape.count, shape.chunk, False)
    places = [None, passed, stopped]
    keys = [(place, state) for place in places for state, _ in STATES]
    steps = dict(STATES)
    variants = [order.variant(place, load, steps[state]) for place, state in keys]
    by = dict(zip(keys, run_all(variants, seed=order.seed, progress=progress), strict=True))
    kind = f"{shape.level_name} of {shape.count}"
    names = {
        None: "one drive",
        passed: f"{kind}, TRIM passed on",
        stopped: f"{kind}, TRIM not passed on",
    }
    states = [state for state, _ in STATES]
    named = {names[place]: [by[place, state].iops for state in states] for place in places}
    said = []
    rows: list[Cells] = []
    for name, rates in named.items():
        rows.append([name, *numbers(*rates, *(100 * r / rates[0] for r in rates[1:]))])
        said.append(
            f"{name}: {units.number(rates[0])} IOPS fresh, {100 * rates[1] / rates[0]:.0f} "
            f"% of that when used, {100 * rates[2] / rates[0]:.0f} % after rest, "
            f"{100 * rates[3] / rates[0]:.0f} % after TRIM of everything."
        )
    heads = columns(
        "device | fresh [IOPS] | used [IOPS] | rested [IOPS] | trimmed [IOPS] | used [%] | "
        "rested [%] | trimmed [%]"
    )
    runs = [{"array": names[p], "state": s, **r.as_json()} for (p, s), r in by.items()]
    figure = by_name("Random writes by state", "IOPS", states, named, wide=True)
    title = f"Degradation: {shape.name}"
    return Section(said, (), [Table("By state", heads, rows)], [figure], "degradation", title, runs)


_SPEEDS = "rate [IOPS] | throughput [MB/s] | mean [us] | p99 [us] | p99.9 [us]"


def _numbers(one: Reading) -> Cells:
    tails = (us(one.percentile_ns(99.0)), us(one.percentile_ns(99.9)))
    return numbers(one.iops, one.bytes_per_s / 1e6, one.mean_ns / 1e3, *tails)


def _whole_stripes(direction: str, size: int, depth: int) -> JobText:
    return job(f"rw={direction}\nbs={size}", f"stripes-{direction}", depth=depth, seconds=STRIPES_S)
