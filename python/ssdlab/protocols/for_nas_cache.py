"""For a cache before disks: random writes that never end, reads, and how long the flash lasts."""

from __future__ import annotations

from ssdlab import units
from ssdlab.answer import Cell, Section
from ssdlab.engine.answers import (
    Demand,
    Part,
    best,
    demands,
    fitness,
    part_distributions,
    percent,
)
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup
from ssdlab.engine.steps import Job, Purge, Rounds, Step, Tracked, in_round
from ssdlab.wear import WARRANTY_DAYS, Stretch

STEADY = "steady-writes"
FRESH, READ, MIXED = "fresh", "reads", "reads-and-writes"
PARTS = (
    Part(FRESH, "write", "writes, fresh"),
    Part(READ, "read", "reads"),
    Part(MIXED, "read", "reads of the mix"),
    Part(MIXED, "write", "writes of the mix"),
)


def plan(setup: Setup) -> list[Step]:
    """Purge, a first look; fill, write everything at random, go on until steady; reads; both."""
    return [
        Purge(),
        _writes(setup, FRESH),
        setup.fill(),
        # A filled drive has its spare area left, which minutes of writes need not use up.
        setup.used(setup.text("bs")),
        Rounds(
            STEADY,
            "random writes until steady",
            lambda n: [_writes(setup, in_round(n, "write"))],
            (Tracked.of("random writes", "iops", "write"),),
            most=setup.rounds,
        ),
        _job(setup, READ, "randread", "random reads"),
        _job(setup, MIXED, "randrw", "reads and writes, half and half", read_percent=50),
    ]


def _writes(setup: Setup, key: str) -> Job:
    return _job(setup, key, "randwrite", "random writes")


def _job(setup: Setup, key: str, rw: str, title: str, read_percent: int | None = None) -> Job:
    return setup.timed(key, title, rw, setup.text("bs"), read_percent=read_percent)


def judge(records: Records, setup: Setup) -> Section:
    """Fit for a cache or not: speed that stays, and life."""
    record = records.rounds.get(STEADY)
    keys = [in_round(n, "write") for n in record.window_rounds()] if record else []
    steady = Part(keys, None, "writes, steady")
    rate = records.cell("iops", keys)
    dwpd, source = _life(records, setup, keys)
    said = []
    if record is not None and not record.steady:
        said.append("The drive was not yet steady, so the writes may fall further.")
    kept = percent(rate, records.cell("iops", FRESH)).value
    if kept is not None:
        said.append(f"Steady random writes are {kept:.0f} % of those of the fresh drive.")
    said.append(_life_said(setup, _capacity(records, setup, keys), dwpd, source))
    shown = part_distributions(
        records, "Latency distribution (CCDF) of the mix", [p for p in PARTS if p.keys == MIXED]
    )
    asked, parts = _demands(records, rate, keys, dwpd), [PARTS[0], steady, *PARTS[1:]]
    return fitness("a cache before disks", asked, records, parts, said, [shown])


def _life(records: Records, setup: Setup, keys: list[str]) -> tuple[float | None, str]:
    """Drive writes per day over five years, and where the number comes from."""
    rated = setup.number("tbw_tb")
    if rated:
        return rated * 1e12 / _capacity(records, setup, keys) / WARRANTY_DAYS, "its rated endurance"
    wear = [
        daily
        for key in keys
        if (lasts := (records.ssdlab(key).get("wear") or {}).get("endurance"))
        if (daily := lasts["dwpd_5_years"]) is not None
    ]
    if wear:
        return sum(wear) / len(wear), "the rated cycles of its flash and what random writes cost"
    return None, ""


def _capacity(records: Records, setup: Setup, keys: list[str]) -> float:
    """Of the drive at full size, if it was made smaller to be simulated."""
    told = (records.ssdlab(key).get("counters") for key in keys)
    counters = next(filter(None, told), None) or {}
    return Stretch(counters, {}, setup.capacity).full_bytes or setup.capacity


def _life_said(setup: Setup, capacity: float, dwpd: float | None, source: str) -> str:
    if dwpd is None:
        return (
            "How long it lasts cannot be said: its rated endurance (TBW) is not known "
            "(--param tbw_tb=..., from the datasheet)."
        )
    daily = setup.number("daily_gb")
    life = "" if not daily else (
        f"; with {units.size_text(daily * 1e9)} a day it lasts "
        f"{units.number(dwpd * capacity * WARRANTY_DAYS / (daily * 1e9) / 365)} years"
    )  # fmt: skip
    return f"By {source} it takes {units.number(dwpd)} drive writes a day for five years{life}."


READS = (
    ("random reads:", "iops", (READ, "read"), 50_000, 10_000,
     "the same twelve disks read 5 000"),
    ("99 % of the reads beside writes take at most", "p99", (MIXED, "read"), 5_000, 20_000,
     "slower than a disk's 10 to 20 ms, a hit is no gain"),
)  # fmt: skip
"""What a cache asks of reads, and why."""


def _demands(records: Records, steady: Cell, keys: list[str], dwpd: float | None) -> list[Demand]:
    return [
        Demand(
            "steady random writes:",
            steady,
            "IOPS",
            20_000,
            5_000,
            "twelve disks of 10 000 turns a minute in RAID 10 write 2 500, and a cache must be "
            "much faster than its disks",
        ),
        *demands(records, READS),
        Demand(
            "999 of 1000 steady writes take at most",
            best((records.cell("p99.9", key, "write") for key in keys), max),
            "us",
            50_000,
            500_000,
            "while the cache stalls, everything behind it does",
        ),
        Demand(
            "drive writes a day for five years:",
            Cell(dwpd, tuple(keys)),
            "",
            3,
            1,
            "everything that is hot is written to a cache again and again; makers of controllers "
            "ask for 3 or more",
        ),
    ]


PROTOCOLS = procedure(
    "preset",
    "for-nas-cache",
    "Fitness for a cache before disks",
    "whether random writes stay fast for ever, and how long the flash lasts",
    "steady state of SNIA PTS; advice on caches by makers of RAID controllers",
    plan,
    judge,
    ProtocolParameter("bs", "4k", "size of the requests"),
    ProtocolParameter("depth", 32, "I/Os in flight"),
    ProtocolParameter("seconds", 60.0, "time of a round and of each part"),
    ProtocolParameter("tbw_tb", 0.0, "rated endurance (TBW), TB; 0: not known"),
    ProtocolParameter("daily_gb", 0.0, "GB that the cache takes every day; 0: not known"),
)
