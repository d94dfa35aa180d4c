"""For a database: random pages, a log that must be safe, a scan, and all of it together."""

from __future__ import annotations

from ssdlab.answer import Section
from ssdlab.engine.answers import Part, demands, fitness, part_distributions, percent
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup
from ssdlab.engine.steps import Job, Step
from ssdlab.protocols.synced_writes import LOG_BYTES

PAGE = "8k"
READS = 67
"""Percent of reads in the mix: that of IOmeter's database."""
MIX, LOG, SCAN, BOTH = "mix", "log", "scan", "mix-and-log"


def plan(setup: Setup) -> list[Step]:
    """Fill and use the drive; each part of the work alone, then the mix and the log together."""
    return [
        setup.fill(),
        setup.used(PAGE),
        _mix(setup),
        _log(setup),
        setup.timed(SCAN, "a full scan: sequential reads", "read", "1m", depth=4),
        setup.together(BOTH, "random pages and the log at once", [_mix(setup), _log(setup)]),
    ]


def _mix(setup: Setup) -> Job:
    return setup.timed(
        MIX, f"random pages of 8 KiB, {READS} % reads", "randrw", PAGE, read_percent=READS
    )


def _log(setup: Setup) -> Job:
    return setup.timed(
        LOG,
        "a log: 8 KiB sequential, each flushed",
        "write",
        PAGE,
        region=(0, setup.area(LOG_BYTES)),
        options={"fdatasync": 1},
        depth=1,
    )


DEMANDS = (
    ("random pages read and written:", "iops", (MIX,), 20_000, 5_000,
     "twelve disks of 10 000 turns a minute in RAID 10, which a drive is bought to replace, do "
     "about 5 000"),
    ("99 % of the pages are read within", "p99", (MIX, "read"), 2_000, 10_000,
     "a query reads tens of pages one after another, and a disk takes about 10 ms for each"),
    ("999 of 1000 pages are read within", "p99.9", (MIX, "read"), 10_000, 50_000,
     "longer stalls are seen by people"),
    ("99 % of the log records are safe within", "commit p99", (LOG,), 1_000, 10_000,
     "every transaction waits for its log record; etcd asks for 10 ms"),
    ("99 % of the log records beside the random pages are safe within",
     "commit p99", (BOTH, "write", "log"), 3_000, 20_000,
     "the log must not wait behind the pages"),
    ("a scan reads", "mbps", (SCAN, "read"), 400, 150,
     "a backup of 100 GB takes 11 minutes at 150 MB/s"),
)  # fmt: skip
"""What a database asks, and why."""


def judge(records: Records, setup: Setup) -> Section:
    """Fit for a database or not, and why."""
    kept = percent(records.cell("iops", BOTH, "read", "mix"), records.cell("iops", MIX, "read"))
    said = []
    if kept.value is not None:
        rate = "all" if kept.value >= 99.5 else f"{kept.value:.0f} %"
        said = [f"With the log running the random reads keep {rate} of their rate."]
    shown = part_distributions(
        records,
        "Page latency distribution (CCDF)",
        [part for part in PARTS if part.keys != SCAN],
        note="Writes of the log without their flush.",
    )
    return fitness("a database", demands(records, DEMANDS), records, PARTS, said, [shown])


PARTS = (
    Part(MIX, "read", "page reads"),
    Part(MIX, "write", "page writes"),
    Part(LOG, "write", "log writes"),
    Part(SCAN, "read", "scan"),
    Part(BOTH, "read", "page reads beside the log", MIX),
    Part(BOTH, "write", "page writes beside the log", MIX),
    Part(BOTH, "write", "log writes beside the pages", LOG),
)

PROTOCOLS = procedure(
    "preset",
    "for-database",
    "Fitness for a database",
    "whether random pages, the log and scans are fast and even enough for a database",
    "IOmeter's database mix and etcd's test of the log; limits give their reasons",
    plan,
    judge,
    ProtocolParameter("depth", 32, "pages in flight"),
    ProtocolParameter("seconds", 120.0, "time for each part"),
)
