"""Block sizes: reading and writing in blocks of 512 B to 1 MiB, on a new and on a used drive."""

from __future__ import annotations

from ssdlab import units
from ssdlab.answer import Cell, Section
from ssdlab.engine.answers import best, charts, grid, number, percent
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, ProtocolParameter, Setup, short
from ssdlab.engine.steps import Purge, Step

SWEEPS = (
    ("new-write", "write", "sequential write, new"),
    ("read", "read", "sequential read, used"),
    ("randread", "randread", "random read, used"),
    ("write", "write", "sequential write, used"),
)
"""Prefix of the keys, fio's rw, what people call it; in the order of the run."""
USE = "use"
NEARLY = 0.95
"""A sweep has reached its top where it has this share of it."""
PEOPLE = 4 * KIB


def plan(setup: Setup) -> list[Step]:
    """Writing new, a purge before each size; then use the drive, and sweep thrice."""
    steps: list[Step] = []
    for size in setup.blocks():
        steps.append(Purge(f"purge-{short(size)}", "purge"))
        steps.append(_job(setup, "new-write", "write", size))
    steps.append(Purge("purge-use", "purge"))
    steps.append(
        setup.timed(
            USE,
            "use the drive: 32 KiB random writes",
            "randwrite",
            "32k",
            seconds=3600 * setup.number("use_hours"),
            measured=False,
        )
    )
    for prefix, rw, _ in SWEEPS[1:]:
        steps += [_job(setup, prefix, rw, size) for size in setup.blocks()]
    return steps


def _key(prefix: str, size: int) -> str:
    return f"{prefix}-{short(size)}"


def _job(setup: Setup, prefix: str, rw: str, size: int) -> Step:
    title = next(words_ for name, _, words_ in SWEEPS if name == prefix)
    return setup.timed(
        _key(prefix, size), f"{title}: blocks of {units.binary(size)}", rw, short(size)
    )


def judge(records: Records, setup: Setup) -> Section:
    """Tops, from which block on they are reached, and what use has cost."""
    sizes = {size: units.binary(size) for size in setup.blocks()}
    sweeps = {prefix: title for prefix, _, title in SWEEPS}
    speed = grid(sizes, sweeps, lambda size, prefix: records.cell("mbps", _key(prefix, size)))
    rates = grid(sizes, sweeps, lambda size, prefix: records.cell("iops", _key(prefix, size)))
    tops = {prefix: best(speed.column(prefix).values()) for prefix in sweeps}
    said = [
        _top_said(title, speed.column(prefix), tops[prefix].value)
        for prefix, title in sweeps.items()
        if tops[prefix].value is not None
    ]
    left = (percent(speed[size, "write"], speed[size, "new-write"]).value for size in sizes)
    if kept := [share for share in left if share is not None]:
        span = f"{min(kept):.0f}" + (f" to {max(kept):.0f}" if len(kept) > 1 else "")
        said.insert(
            0,
            f"Used by random writes, the drive writes sequentially at {span} % of the speed that "
            f"it had when it was new{', depending on the block' if len(kept) > 1 else ''}.",
        )
    if PEOPLE in sizes:
        small = percent(speed[PEOPLE, "randread"], tops["randread"]).value
        if small is not None:
            said.append(
                f"Small pieces cost: 4 KiB random reads move {small:.0f} % of what the best block "
                "does."
            )
    numbers = [
        number(f"{title}, highest", tops[prefix], "MB/s", "higher")
        for prefix, title in sweeps.items()
    ]
    title = "Speed by size of block"
    figures = charts(
        speed.figure(title, "block", "MB/s"),
        rates.figure("Operations by size of block", "block", "IOPS", log_y=True),
    )
    table = speed.table(title, "block", "MB/s")
    return Section(said or ["No block size has been measured yet."], numbers, [table], figures)


def _top_said(title: str, rates: dict[int, Cell], top: float | None) -> str:
    reached = [size for size, rate in rates.items() if top and (rate.value or 0.0) >= NEARLY * top]
    return units.sentence(
        f"{title}: at most {units.speed(top)}, reached by blocks of {units.binary(min(reached))}"
    )


PROTOCOLS = procedure(
    "article",
    "block-size",
    "Block sizes",
    "how fast blocks of each size are read and written, new and after long use",
    "KomputerPress 9/2010, Intel X25-M G2 with IOmeter",
    plan,
    judge,
    ProtocolParameter("blocks", "512,1k,2k,4k,8k,16k,32k,64k,128k,256k,512k,1m", "block sizes"),
    ProtocolParameter("depth", 4, "I/Os in flight"),
    ProtocolParameter("seconds", 300.0, "time for each block size"),
    ProtocolParameter("use_hours", 18.0, "hours of 32 KiB random writes that make the drive used"),
    quick_divisor=240.0,
)
