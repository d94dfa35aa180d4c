"""Random writes over time: blocks of 2 to 128 KiB, for hours each, from the new state."""

from __future__ import annotations

import numpy as np

from ssdlab import units
from ssdlab.answer import Cell, Cells, Section, Table, columns
from ssdlab.engine.answers import both_scales, in_the_end, number, too_little
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup, short
from ssdlab.engine.steps import Purge, Step
from ssdlab.experiments.measure import at, last_quarter

RECORD_S = 60.0
"""The article notes a record a minute."""
MARKS_MIN = (1, 3, 4, 10, 40, 120, 240)
"""Minutes at which the table reads the curves."""
SAME = 0.1
"""Two speeds closer than this share are alike."""


def plan(setup: Setup) -> list[Step]:
    """For each block size: purge, lay out if asked for, write at random."""
    steps: list[Step] = []
    for size in setup.blocks():
        name = short(size)
        steps.append(Purge(f"purge-{name}", "purge"))
        if setup.text("layout") == "filled":
            steps.append(setup.fill(f"layout-{name}"))
        steps.append(
            setup.timed(
                f"write-{name}",
                f"random writes of {units.binary(size)}",
                "randwrite",
                name,
                seconds=3600 * setup.number("hours"),
            )
        )
    return steps


def judge(records: Records, setup: Setup) -> Section:
    """The curves by the minute, what is left at their ends, and how fast they fell."""
    whole = 3600 * setup.number("hours")
    scale = setup.seconds(whole) / whole if whole else 1.0
    rows: list[Cells] = []
    numbers, keys = [], []
    curves = {}
    said: list[str] = []
    finals: list[tuple[int, float]] = []
    least = np.inf
    marks = [mark for mark in MARKS_MIN if mark * 60 <= whole]
    for size in setup.blocks():
        name, key = units.binary(size), f"write-{short(size)}"
        series = records.series(key, "write")
        if series is None:
            continue
        time, _, rate = series.records(RECORD_S * scale)
        if not len(rate):
            continue
        minutes = time / scale / 60
        first = float(rate[0])
        last = last_quarter(minutes, rate)
        below = np.flatnonzero(rate < rate[0] / 2)
        half = float(minutes[below[0]]) if len(below) else None
        keys.append(key)
        finals.append((size, last or 0.0))
        least = min(least, records.passes(key, setup.active))
        curves[name] = [*zip(minutes, rate, strict=True)]
        reached = (
            at(minutes, rate, mark) if mark <= minutes[-1] * 1.01 else None for mark in marks
        )
        values = (first, *reached, float(rate.min()), last, half)
        rows.append([name, *(Cell(value, (key,)) for value in values)])
        numbers.append(number(f"{name}, kept up", Cell(last, (key,)), "MB/s", "higher"))
        fell = "" if half is None else f"; below half after {units.number(half)} min"
        share = f"{100 * (last or 0.0) / first:.0f} % is left" if first else "nothing at first"
        said.append(
            f"Blocks of {name}: from {units.speed(first)} in the first minute to "
            f"{units.speed(last)} in the last quarter of the time ({share}{fell})."
        )
    if not rows:
        return Section(["No random writes have been measured yet."])
    heads = columns(
        " | ".join(
            [
                "block | first record [MB/s]",
                *(f"at {mark} min [MB/s]" for mark in marks),
                "lowest [MB/s] | last quarter [MB/s] | minutes to half [min]",
            ]
        )
    )
    shortened = "; in a quick run the minutes are shortened alike" if setup.quick else ""
    figures = both_scales(
        "Random writes over time",
        "time, min",
        "MB/s",
        curves,
        style="line",
        from_steps=keys,
        note=f"One record a minute{shortened}.",
    )
    table = Table("Random writes, MB/s", heads, rows)
    return Section([_overall(finals, least), *said[:1], *said[1:][-1:]], numbers, [table], figures)


def _overall(finals: list[tuple[int, float]], least: float) -> str:
    """From which size on the block does not matter any more, ``least`` being how often the range
    was written with the size that wrote least."""
    biggest = finals[-1][1]
    alike = [size for size, rate in finals if abs(rate - biggest) <= SAME * biggest]
    start = next(
        size
        for place, (size, _) in enumerate(finals)
        if all(other in alike for other, _ in finals[place:])
    )
    if len(finals) == 1 or start == finals[-1][0]:
        which, slower = f"blocks of {units.binary(finals[-1][0])} are written at random at", ""
    elif start != finals[0][0]:
        which = f"all blocks from {units.binary(start)} on are written at random at about"
        slower = "; smaller ones are slower"
    else:
        which, slower = "all these blocks are written at random at about", ""
    said = f"{in_the_end(least).capitalize()} {which} {units.speed(biggest)}{slower}."
    return said + too_little(least)


PROTOCOLS = procedure(
    "article",
    "write-over-time",
    "Random writes over time",
    "how far and how fast random writing falls from the new state, by size of block",
    "KomputerPress 9/2010, Intel X25-M G2 with IOmeter",
    plan,
    judge,
    ProtocolParameter("blocks", "2k,4k,8k,16k,32k,64k,128k", "block sizes"),
    ProtocolParameter("hours", 4.0, "hours for each block size"),
    ProtocolParameter("depth", 4, "writes in flight"),
    ProtocolParameter(
        "layout",
        "raw",
        "raw: the drive is new; filled: written sequentially before, as through a partition",
        ("raw", "filled"),
    ),
    quick_divisor=240.0,
)
