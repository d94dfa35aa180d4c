"""How the drives were measured, as job files at a factor of scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ssdlab.experiments.base import Task, job_file
from ssdlab.experiments.measured.cells import table
from ssdlab.rig import profile, reduced

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10
DIE_BYTES = 30 * 10**9
"""Drives with larger dies are divided by so many times more."""
LATENCY_BYTES = 480 * 10**9
"""The same for drives of which latencies are read, by all they hold."""
LARGER = {"steady": 5, "latency": 5, "streams": 10}
"""How much larger than others drives of these procedures are. Of its reserve a die loses the
superblocks being written, and of each one that is collected part of a program unit; so both have to
be many. Zones shrink as superblocks do: there are as many of them as of the full drive's where the
superblocks keep their number."""
SUPERBLOCKS = {"steady": 128, "latency": 16, "streams": 320}
"""Of a die of theirs, at least."""
SUPERBLOCKS_ELSE = 96
SETTLED = 0.06
"""Share of the capacity that is written to a drive in its drawn steady state."""
SECONDS = 60.0
"""Of a point."""
SECONDS_MIN = 0.5
"""Of a point on a small drive."""
FILE_BYTES_MIN = 512 * MIB
"""Least size of a file on a small drive: all its dies have to have a part in it."""
RECORD_MS = 4000
"""Interval of the course of writes."""
PROBE_IOPS = 10_000
"""Of the probe of latencies, half of them reads."""
THREADS = 6
"""That write beside it."""
STREAM_BYTES = 512 * KIB
STATES = {"sequential": "sequential", "random": "sequential,random:1", "steady": "steady"}
"""What preconditioning means to the simulator; other states are fresh or made by the job."""


@dataclass(frozen=True)
class Bench:
    """A drive at its scale, and a run on it."""

    drive: str
    name: str
    keys: Mapping[str, Any]
    """The run, as the table has it."""
    factor: int

    @cached_property
    def procedure(self) -> str:
        """Its name."""
        return str(self.keys["procedure"])

    @cached_property
    def divisor(self) -> int:
        """How many times smaller the drive is."""
        if self.factor == 1 or self.procedure == "position":
            return 1
        held = self._full()
        if self.procedure == "latency":
            more = round(held / LATENCY_BYTES)
        else:
            more = round(held / self._dies() / DIE_BYTES)
        return max(1, self.factor * max(1, more) // LARGER.get(self.procedure, 1))

    @cached_property
    def small(self) -> Mapping[str, str]:
        """What makes it smaller."""
        fewest = SUPERBLOCKS.get(self.procedure, SUPERBLOCKS_ELSE)
        return reduced(self.drive, self.divisor, fewest=fewest)

    @cached_property
    def whole(self) -> int:
        """Bytes of all of it."""
        size = self.small.get("capacity")
        return int(size.removesuffix("B")) if size else self._full()

    @cached_property
    def capacity(self) -> int:
        """Bytes that the host has: a namespace, or all of it."""
        namespace = self.keys.get("namespace_gib")
        if namespace is None:
            return self.whole
        share = int(namespace) * GIB / self._full()
        return int(self.whole * share) // MIB * MIB

    @property
    def circumstances(self) -> Mapping[str, str]:
        """What the host and the state of the data change of the drive's profile."""
        known = {"host": table().hosts, "condition": table().conditions}
        named = [(what, str(self.keys[what])) for what in known if what in self.keys]
        return {key: value for what, name in named for key, value in known[what][name].keys.items()}

    @cached_property
    def shorter(self) -> int:
        """How many times smaller its superblocks are."""
        pages = self.small.get("nand.pages_per_block")
        full = profile(self.drive).rig().get("nand.pages_per_block")
        return int(full or 1) // int(pages) if pages else 1

    def _dies(self) -> int:
        rig = profile(self.drive).rig()
        return int(rig.get("nand.channels") or 1) * int(rig.get("nand.ways") or 1)

    def _full(self) -> int:
        return profile(self.drive).rig().bytes("capacity") or 0

    def seconds(self, least: float = SECONDS_MIN) -> str:
        """How long a point lasts, as fio writes it."""
        return f"{max(SECONDS / self.divisor, least) * 1000:.0f}ms"

    def task(self) -> Task:
        """The run as one to be simulated."""
        overrides = {**self.small, **self.circumstances}
        if self.capacity != self.whole:
            overrides["namespace"] = f"{self.capacity}B"
        return Task(
            key=f"{self.drive}/{self.name}",
            drive=self.drive,
            job=PROCEDURES[self.procedure](self),
            overrides=overrides,
            interval_ms=max(1, RECORD_MS // self.divisor),
            cost=COSTS.get(self.procedure, 0.2),
            prepare=STATES.get(self.state),
        )

    @property
    def drawn(self) -> bool:
        """Whether it is found in the steady state that the job brings about at full size."""
        return self.procedure == "steady" and self.factor > 1

    @cached_property
    def state(self) -> str:
        """In which the drive is found."""
        if self.drawn or self.procedure == "latency":
            return "steady"
        return str(self.keys.get("state", "sequential" if self.procedure == "read" else "fresh"))


FILL = f"rw=write bs={STREAM_BYTES // KIB}k iodepth=128"
SCATTERED = "rw=randwrite bs=4k iodepth=128"
"""Each block once, in random order: neighbours come to lie far apart, all reserve stays free."""
WRITES = "rw=randwrite bs=4k iodepth=128 norandommap group_reporting"


def _fresh(bench: Bench) -> str:
    note = (
        "A sanitised drive, filled sequentially: the first tenth of the random writes after that."
    )
    options = f"{WRITES} numjobs=4 io_size={bench.capacity // 40 // KIB * KIB}"
    return job_file(note, "", {"fill": FILL, "random": options})


def _steady(bench: Bench) -> str:
    if bench.drawn:
        note = "A drive in its steady state, written on."
        size = int(SETTLED * bench.capacity / 4) // KIB * KIB
        return job_file(note, "", {"random": f"{WRITES} numjobs=4 io_size={size}"})
    return _overwrite(bench)


def _overwrite(bench: Bench) -> str:
    law = str(bench.keys.get("distribution", "random"))
    # The places of a skewed load are neighbours here; those of fio's zipf are scattered anyway.
    fill = SCATTERED if law.startswith("zoned") else FILL
    options = f"{WRITES} numjobs={bench.keys['passes']} random_distribution={law}"
    note = "A sanitised drive, filled, then overwritten at random."
    return job_file(note, "", {"fill": fill, "random": options})


def _streams(bench: Bench) -> str:
    zones = int(bench.keys["zones"])
    zone = int(bench.keys["zone_gib"]) * GIB // bench.shorter // STREAM_BYTES * STREAM_BYTES
    options = (
        f"rw=randwrite:{zone // STREAM_BYTES} rw_sequencer=sequential bs={STREAM_BYTES} ba={zone} "
        f"norandommap numjobs={zones} group_reporting "
        f"size={bench.capacity // zone * zone} io_size={4 * bench.capacity // zones // zone * zone}"
    )
    note = "Zones drawn at random and written sequentially, one I/O at a time in each open one."
    return job_file(note, "", {"fill": FILL, "random": options})


def _latency(bench: Bench) -> str:
    half = PROBE_IOPS // 2
    load = (int(bench.keys["rate"]) - half) // THREADS
    common = (
        f"bs=4k iodepth=64 rw=randrw rate_process=poisson norandommap runtime={bench.seconds(2.0)}"
    )
    probe = f"rwmixread=50 rate_iops={half},{half}"
    writes = f"numjobs={THREADS} rwmixread=1 rate_iops={load // 100},{load - load // 100}"
    note = "A probe of reads and writes beside Poisson writes, after three random passes."
    return job_file(note, common, {"probe": probe, "load": writes}, together=True)


def _random(bench: Bench, reads: int) -> str:
    keys = bench.keys
    kind = {0: "randwrite", 100: "randread"}.get(reads, f"randrw rwmixread={reads}")
    block, jobs = keys.get("block_kib", 4), keys.get("jobs", 1)
    options = (
        f"rw={kind} bs={block}k iodepth={keys['depth']} numjobs={jobs} group_reporting "
        f"norandommap runtime={bench.seconds()}"
    )
    if bench.state == "steady":
        # What the write buffer takes in at first is a share of a short run.
        options += f" ramp_time={bench.seconds()}"
    note = f"Random I/Os of {block} KiB at depth {keys['depth']}."
    if "file_gib" not in keys:
        return job_file(note, "", {"random": options})
    file = max(int(keys["file_gib"]) * GIB // bench.divisor, min(FILE_BYTES_MIN, bench.whole))
    return job_file(note, f"size={file}", {"fill": FILL, "random": options})


def _stream(bench: Bench) -> str:
    kind = "write" if bench.keys.get("write") else "read"
    options = f"rw={kind} bs=1m iodepth=32 ramp_time={bench.seconds()} runtime={bench.seconds()}"
    text = {"random": options}
    fill = {"fill": FILL} if bench.state == "file" else {}
    return job_file("A stream of 1 MiB requests.", "", fill | text)


def _position(bench: Bench) -> str:
    options = f"rw=read bs=1m iodepth=1 offset={bench.keys['at_gb'] * 10**9} size=1g"
    return job_file("One GiB sequentially from a place of the disk.", "", {"random": options})


PROCEDURES: Mapping[str, Callable[[Bench], str]] = {
    "fill": lambda _bench: job_file(
        "A sanitised drive, written from end to end.", "", {"fill": FILL}
    ),
    "fresh": _fresh,
    "steady": _steady,
    "overwrite": _overwrite,
    "streams": _streams,
    "latency": _latency,
    "read": lambda bench: _random(bench, 100),
    "mixed": lambda bench: _random(bench, 100 - int(bench.keys["writes"])),
    "stream": _stream,
    "position": _position,
}
COSTS = {"overwrite": 3.0, "steady": 2.0, "streams": 1.0, "latency": 1.0}
"""Rough shares of the work."""
