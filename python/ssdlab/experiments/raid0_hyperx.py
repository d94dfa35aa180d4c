"""RAID 0 of two SandForce drives: what use does to it when TRIM does not reach the members."""

from __future__ import annotations

from ssdlab.answer import Figure, by_name, family
from ssdlab.arrays.attachment import attachment
from ssdlab.arrays.performance import Performance
from ssdlab.arrays.rigs import ArrayShape, array_rig, shipped
from ssdlab.arrays.studies import STATES
from ssdlab.arrays.workloads import job
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.rig import reduced

SMALL, LARGE, PAIR = "kingston-hyperx-120", "kingston-hyperx-240", "2 x kingston-hyperx-120"
STRIPES_KIB = (4, 8, 16, 32, 64, 128)
DEFAULT_KIB = 128
STATE_KEYS = ("fresh", "used", "rested", "trimmed")
FRESH = {
    "seq-read": ("rw=read\nbs=1m", 8),
    "seq-write": ("rw=write\nbs=1m", 8),
    "read-1": ("rw=randread\nbs=4k", 1),
    "read-64": ("rw=randread\nbs=4k", 64),
}
CHIPSET = "intel-dmi2"
"""What all ports share; one drive alone stands behind it, too."""
SIDES = {
    "seq-read": ("rw=read bs=1m", 8),
    "seq-write": ("rw=write bs=1m", 8),
    "write-32": ("rw=randwrite bs=4k", 32),
}
SHRINKS = {"zeros": 100, "random": 0}
"""Percent by which the data of the two sides shrinks: zeros, and what does not compress."""
WORDS = "the article shows a picture and says it in words: alike is taken as a ratio of 1"
ERASE_WHY = "what TRIM emptied is still to be erased before it is written"


def plan(factor: int) -> list[Task]:
    """Degradation of one and of two drives; the fresh pair against the larger drive; stripes."""
    chipset = attachment(CHIPSET)
    pair = {
        kib: array_rig(shipped(SMALL), ArrayShape("0", 2, kib << 10, False), chipset)
        for kib in STRIPES_KIB
    }
    devices = {one: array_rig(shipped(one), ArrayShape("0", 1), chipset) for one in (SMALL, LARGE)}
    devices[PAIR] = pair[DEFAULT_KIB]
    small, large = (reduced(one, factor, fewest=128) for one in (SMALL, LARGE))
    random = job("rw=randwrite\nbs=4k", "random", depth=32, seconds=2.0).text
    fresh = {
        name: job(f"{options}\nsize=25%", name, depth=depth, seconds=0.5).text
        for name, (options, depth) in FRESH.items()
    }
    loads = [
        *((key, random, steps) for key, (_, steps) in zip(STATE_KEYS, STATES, strict=True)),
        *((name, text, "sequential") for name, text in fresh.items()),
        *(
            (f"{one}-{side}", _sided(one, percent), "fob")
            for side, percent in SHRINKS.items()
            for one in SIDES
        ),
    ]
    tasks = [
        Task(
            f"{device}/{key}", device, text, large if device == LARGE else small,
            cost=1.0 if device == SMALL else 2.0, rig=rig, prepare=state,
        )
        for device, rig in devices.items()
        for key, text, state in loads
    ]  # fmt: skip
    tasks += [
        Task(f"stripe-{kib}/{name}", PAIR, text, small, cost=0.5, rig=rig, prepare="sequential")
        for kib, rig in pair.items()
        for name, text in fresh.items()
    ]
    return tasks


def _sided(name: str, percent: int) -> str:
    """A load in a quarter of the device that was filled with data of the same kind."""
    options, depth = SIDES[name]
    return job_file(
        "A quarter of the device is filled with the same kind of data.",
        f"size=25% refill_buffers buffer_compress_percentage={percent} norandommap",
        {
            "fill": "rw=write bs=1m iodepth=8",
            name: f"{options} iodepth={depth} runtime=500ms ramp_time=100ms",
        },
    )


def judge(runs: Runs, factor: int) -> Reproduced:
    """What the article says of the shape, as ratios."""
    performances = {key: Performance.of(result) for key, result in runs.items()}

    def ratio(one: str, key: str, other: str, base: str) -> float:
        return performances[f"{one}/{key}"].iops / performances[f"{other}/{base}"].iops

    lines = []
    for one in (SMALL, PAIR):
        rest, again = "after 30 min of rest / used (alike)", ratio(one, "rested", one, "used")
        used = ratio(one, "used", one, "fresh")
        lines.append(Line(one, "used / fresh (a fraction)", None, "", used))
        lines.append(Line(one, rest, 1.0, "", again, WORDS))
    trimmed = (
        (SMALL, "after TRIM / fresh (restored)", 1.0, SMALL, "fresh", ERASE_WHY),
        (PAIR, "after TRIM / used (TRIM does not arrive)", 1.0, PAIR, "used", WORDS),
        (PAIR, "the used pair / one fresh drive (can fall below 1)", None, SMALL, "trimmed", ""),
    )
    for one, quantity, value, other, base, why in trimmed:
        lines.append(Line(one, quantity, value, "", ratio(one, "trimmed", other, base), why))
    for name, said, value in (
        ("seq-read", "above 1", None),
        ("seq-write", "above 1", None),
        ("read-64", "above 1", None),
        ("read-1", "slightly below 1", 1.0),
    ):
        quantity = f"fresh, {name}: pair / one of 240 GB ({said})"
        lines.append(Line(PAIR, quantity, value, "", ratio(PAIR, name, LARGE, name), WORDS))
    for one in (SMALL, PAIR):
        for name in SIDES:
            quantity = f"{name}: zeros / data that does not compress (a range)"
            both = ratio(one, f"{name}-zeros", one, f"{name}-random")
            lines.append(Line(one, quantity, None, "", both))
    spreads = {
        name: [performances[f"stripe-{kib}/{name}"].iops for kib in STRIPES_KIB] for name in FRESH
    }
    lines += [
        Line(
            PAIR, f"{name}: worst / best stripe of 4 to 128 KiB (small)", None, "",
            min(rates) / max(rates),
        )
        for name, rates in spreads.items()
    ]  # fmt: skip
    return Reproduced(lines, _figures(performances, spreads), _remarks(performances, spreads))


def _figures(performances: dict[str, Performance], spreads: dict[str, list[float]]) -> list[Figure]:
    rates = {
        one: [performances[f"{one}/{key}"].iops for key in STATE_KEYS]
        for one in (SMALL, LARGE, PAIR)
    }
    states = [name for name, _ in STATES]
    shares = {name: [rate / max(own) for rate in own] for name, own in spreads.items()}
    curves = family(STRIPES_KIB, shares)
    return [
        by_name("4 KiB random writes by state", "IOPS", states, rates, wide=True),
        Figure("Size of a stripe", "KiB", "of the best", curves, log_x=True, wide=True),
    ]


def _remarks(performances: dict[str, Performance], spreads: dict[str, list[float]]) -> list[str]:
    said = []
    for device in (SMALL, LARGE, PAIR):
        rates = {key: performances[f"{device}/{key}"].iops for key in STATE_KEYS}
        said.append(
            f"{device}: {rates['fresh']:,.0f} IOPS fresh, {rates['used']:,.0f} used, "
            f"{rates['rested']:,.0f} after rest, {rates['trimmed']:,.0f} after TRIM of everything."
        )
    best = {
        name: STRIPES_KIB[max(range(len(rates)), key=rates.__getitem__)]
        for name, rates in spreads.items()
    }
    listed = ", ".join(f"{name} {kib} KiB" for name, kib in best.items())
    said.append(f"Best stripe: {listed}. Published: 32 KiB, with small differences.")
    for device in (SMALL, PAIR):
        sides = ", ".join(
            f"{name} {performances[f'{device}/{name}-zeros'].bytes_per_s / 1e6:,.0f} and "
            f"{performances[f'{device}/{name}-random'].bytes_per_s / 1e6:,.0f}"
            for name in SIDES
        )
        said.append(f"{device}, MB/s with zeros and with data that does not compress: {sides}.")
    said.append("Not repeated: scenarios from traces (PCMark 7, NASPT) with their pauses.")
    return said


EXPERIMENT = experiment("raid0-hyperx", plan, judge)
