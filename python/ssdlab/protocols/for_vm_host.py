"""For a host of virtual machines: many mixed loads at once, and a quiet neighbour among them."""

from __future__ import annotations

from ssdlab import units
from ssdlab.answer import Section
from ssdlab.engine.answers import Part, demands, fitness, part_distributions, ratio
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup
from ssdlab.engine.steps import Job, Step

SIZES = "4k/50:8k/20:16k/15:64k/15"
"""Sizes of the machines' requests and their percent; two thirds of the bytes are in large ones."""
READS = 70
ALONE, CROWD, BESIDE, COPY = "quiet-alone", "crowd", "quiet-in-crowd", "quiet-beside-copy"
QUIET, LOUD, COPIER = "quiet", "crowd", "copy"
PARTS = (
    Part(ALONE, "read", "quiet machine alone", QUIET),
    Part(CROWD, "read", "crowd, reads", LOUD),
    Part(CROWD, "write", "crowd, writes", LOUD),
    Part(BESIDE, "read", "quiet machine in the crowd", QUIET),
    Part(COPY, "read", "quiet machine beside a copy", QUIET),
    Part(COPY, "write", "the copy", COPIER),
)


def plan(setup: Setup) -> list[Step]:
    """Fill and use the drive; the quiet machine alone, the crowd, and the two together."""
    seconds = setup.number("seconds")
    copy = setup.job(
        COPY, "a machine is copied", "write", "1m", depth=8, seconds=seconds, name=COPIER
    )
    return [
        setup.fill(),
        setup.used("16k"),
        _quiet(setup, ALONE),
        _crowd(setup, CROWD),
        setup.together(
            BESIDE, "the quiet machine in the crowd", [_quiet(setup, BESIDE), _crowd(setup, BESIDE)]
        ),
        setup.together(
            COPY, "the quiet machine while another is copied", [_quiet(setup, COPY), copy]
        ),
    ]


def _quiet(setup: Setup, key: str) -> Job:
    return setup.timed(
        key, "a quiet machine: one small read at a time", "randread", "4k", name=QUIET, depth=1
    )


def _crowd(setup: Setup, key: str) -> Job:
    return setup.timed(
        key,
        f"a crowd of machines: 4 to 64 KiB at random, {READS} % reads",
        "randrw",
        "4k",
        threads=setup.count("machines"),
        read_percent=READS,
        name=LOUD,
        options={"bssplit": SIZES, "ba": 4096},
    )


DEMANDS = (
    ("operations of the whole crowd:", "iops", (CROWD,), 20_000, 5_000,
     "a machine with 500 a second feels like one with a drive of its own; 5 000 are ten"),
    ("99 % of the crowd's reads take at most", "p99", (CROWD, "read"), 10_000, 50_000,
     "in a deep queue each waits for the others, but a guest that waits longer shows it"),
    ("99 % of the quiet machine's reads in the crowd take at most",
     "p99", (BESIDE, "read", QUIET), 5_000, 20_000,
     "one machine must not stop the others; a disk of its own would take 10 to 20 ms"),
    ("99 % of the quiet machine's reads beside a copy take at most",
     "p99", (COPY, "read", QUIET), 5_000, 20_000,
     "machines are copied and backed up while others work"),
    ("999 of 1000 of the quiet machine's reads in the crowd take at most",
     "p99.9", (BESIDE, "read", QUIET), 20_000, 100_000,
     "rare stalls are what users complain of"),
)  # fmt: skip
"""What a host of virtual machines asks, and why."""


def judge(records: Records, setup: Setup) -> Section:
    """Fit for a host of virtual machines or not, and what neighbours do to each other."""
    said = []
    alone = records.cell("p99", ALONE, "read", QUIET)
    for key, company in ((BESIDE, "in the crowd"), (COPY, "beside a copy")):
        grown = ratio(records.cell("p99", key, "read", QUIET), alone).value
        if grown is not None:
            said.append(
                "A quiet machine that has 99 % of its reads within "
                f"{units.microseconds(alone.value)} when alone waits {units.times(grown)} as long "
                f"{company}."
            )
    shown = part_distributions(
        records,
        "Read latency distribution (CCDF) of the quiet machine",
        [part for part in PARTS if part.job == QUIET],
    )
    purpose = "a host of virtual machines"
    return fitness(purpose, demands(records, DEMANDS), records, PARTS, said, [shown])


PROTOCOLS = procedure(
    "preset",
    "for-vm-host",
    "Fitness for a host of virtual machines",
    "whether many mixed loads are served at once without starving a quiet neighbour",
    "mixes of 4 to 64 KiB as hypervisors produce them; limits are explained beside them",
    plan,
    judge,
    ProtocolParameter("machines", 8, "machines of the crowd"),
    ProtocolParameter("depth", 8, "I/Os in flight of each"),
    ProtocolParameter("seconds", 120.0, "time for each part"),
)
