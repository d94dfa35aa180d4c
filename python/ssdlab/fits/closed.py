"""What a drive does under a workload, in closed forms: good to some tenths, in microseconds.

Closed-loop queueing (approximate mean value analysis, Schweitzer 1979) over dies, channels,
controller, link and host; write amplification of collection in the order of writing (Desnoyers,
SYSTOR 2012), which greedy choice comes close to where superblocks are large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ssdlab import _core
from ssdlab.fits.observations import FitWorkload
from ssdlab.fits.parameters import PARAMETERS, amount
from ssdlab.numeric import Floats

UNIT = 4096
ENTRY = 4
"""Bytes of the map for a unit."""
ROUNDS = 40
HOST, CONTROLLER, LINK, DIES, CHANNELS = range(5)
"""The stations that a request passes, by their rows in arrays."""
REGULAR = 0.7
"""Of the requests ahead at a station that all pass in turn, which come to it spread out."""


@dataclass(frozen=True)
class DriveFigures:
    """The values of a rig that closed forms take; times in ns."""

    capacity: int
    dies: int
    channels: int
    planes: int
    page: int
    independent: bool
    """Whether planes read by themselves."""
    pages_at_once: int
    """Of a program operation, over planes and bits of a cell."""
    read_ahead: bool
    """Whether reads in order find their data in the controller."""
    read_latency: float
    """Of the controller, during which it does other things."""
    command: float
    """Of the link, per command."""
    relocate: float
    """Of the controller, for each unit that collection moves."""
    slots: int
    unmapped: float
    """Share of the map that the controller's RAM does not hold."""
    overhead: float
    """Flash written by data written, parity included, without collection."""
    values: Mapping[str, float | Floats]
    """Parameters by key; an array has one for each workload that is asked for."""

    @staticmethod
    def of(rig: _core.Rig) -> DriveFigures:
        """Of a rig that is a drive, behind a link or not."""

        def count(key: str, usual: int = 1) -> int:
            return int(rig.get(key) or usual)

        def time(key: str) -> float:
            return amount(key, said) if (said := rig.get(key)) is not None else 0.0

        planes = count("nand.planes")
        bits = count("nand.bits_per_cell", 3) if rig.get("nand.one_shot") == "true" else 1
        stripe = count("ftl.parity.stripe", 0)
        capacity = rig.bytes("capacity") or 1
        entries = ENTRY * capacity / UNIT
        held = (rig.bytes("ftl.map.cache") or 0) if rig.get("ftl.map.kind") == "cached" else entries
        return DriveFigures(
            capacity,
            count("nand.channels") * count("nand.ways"),
            count("nand.channels"),
            planes,
            rig.bytes("nand.page") or 16384,
            rig.get("nand.independent_plane_reads") == "true",
            planes * bits,
            rig.get("controller.read_ahead.size") is not None,
            time("controller.read_latency"),
            time("command_time"),
            time("controller.relocate_time"),
            count("queue_slots", 1024),
            max(0.0, 1.0 - held / entries),
            stripe / (stripe - 1) if stripe > 1 else 1.0,
            {parameter.key: parameter.read(rig) for parameter in PARAMETERS},
        )

    @property
    def at_once(self) -> int:
        """Pages that it can read at the same time."""
        return self.dies * (self.planes if self.independent else 1)

    def having(self, values: Mapping[str, float | Floats]) -> DriveFigures:
        """With other values of some parameters."""
        return replace(self, values={**self.values, **values})


def amplification(alpha: Floats) -> Floats:
    """Write amplification of uniform writes: ``alpha`` is physical by logical space."""
    room = np.maximum(alpha, 1.0 + 1e-6)
    found: Floats = room / (room - 1) / 2 + 0.5
    for _ in range(200):
        found = 1.0 / (1.0 - np.exp(-room / found))
    return np.where(alpha > 1.0, found, np.inf)


def several(
    drive: DriveFigures, loads: Sequence[FitWorkload], values: Mapping[str, Floats]
) -> list[list[Mapping[str, float]]]:
    """The answers of drives that have these values of some parameters, drive by drive, at once."""
    size, count = len(loads), len(next(iter(values.values()), ()))
    each = drive.having({key: np.repeat(own, size) for key, own in values.items()})
    found = answers(each, [*loads] * count)
    return [found[place * size : (place + 1) * size] for place in range(count)]


def answers(drive: DriveFigures, loads: Sequence[FitWorkload]) -> list[Mapping[str, float]]:
    """Rates, mean latencies and, of what writes, write amplification, by workload."""
    waf = _waf(drive, loads)
    rates = _rates(drive, loads, waf)
    found: list[Mapping[str, float]] = []
    for load, rate, own in zip(loads, rates.tolist(), waf.tolist(), strict=True):
        mean = 1e6 * load.depth / rate
        numbers = {"iops": rate, "lat_mean_us": mean, "clat_mean_us": mean}
        found.append(numbers if load.reads == 1 else {**numbers, "waf": own})
    return found


def _waf(drive: DriveFigures, loads: Sequence[FitWorkload]) -> Floats:
    random = np.array([not load.sequential and load.state == "steady" for load in loads])
    writes = np.array([load.reads < 1 for load in loads])
    sizes = np.array([float(load.namespace or drive.capacity) for load in loads])
    room = drive.capacity * (1 + drive.values["ftl.over_provisioning"])
    found: Floats = np.where(random & writes, amplification(room / sizes), 1.0)
    return np.where(writes, found * drive.overhead, 1.0)


def _rates(drive: DriveFigures, loads: Sequence[FitWorkload], waf: Floats) -> Floats:
    """I/Os a second: those of a closed loop over the stations, or of what the dies can program,
    whichever is less."""
    values = drive.values
    t_read, wire = values["nand.t_read"], 1e3 / values["nand.transfer_mts"]
    reads, size, depth, jobs = (
        np.array([float(getattr(load, name)) for load in loads])
        for name in ("reads", "bs", "depth", "numjobs")
    )
    writes, ones = 1 - reads, np.ones(len(loads))
    scattered = np.array([load.state == "steady" and not load.sequential for load in loads])
    in_order = np.array([load.sequential for load in loads])
    # Nothing is read from flash where nothing was written.
    from_flash = reads * np.array([float(load.reads < 1 or load.state != "fob") for load in loads])
    piece = np.where(scattered, UNIT, drive.page)
    pages = np.maximum(1, np.ceil(size / piece))
    if not drive.independent:
        pages = np.where(scattered, pages, np.ceil(pages / drive.planes))
    page_read = t_read + np.minimum(size, piece) * wire
    # Where the map is not in RAM, a request first reads that of where its data lie.
    namespace = np.array([float(load.namespace or drive.capacity) for load in loads])
    unmapped = np.maximum(0.0, 1.0 - (1.0 - drive.unmapped) * drive.capacity / namespace)
    map_reads = unmapped * (1 - in_order)
    map_read = map_reads * (t_read + UNIT * wire)
    moved = np.maximum(0.0, waf - drive.overhead) * size * writes
    relocating = moved / UNIT * drive.relocate
    demands = np.empty((5, len(loads)))
    demands[HOST] = values["host_time"] * ones + 1e9 * size * writes / values["host_fill_rate"]
    demands[CONTROLLER] = (
        values["controller.command_time"] + writes * values["controller.write_time"] + relocating
    )
    demands[LINK] = drive.command + 1e9 * size / values["bandwidth"]
    demands[DIES] = from_flash * pages * page_read + map_read
    demands[CHANNELS] = from_flash * size * wire + map_reads * UNIT * wire
    servers = np.array([jobs, ones, ones, drive.at_once * ones, drive.channels * ones])
    # Requests in order take turns over dies and channels; what is scattered waits for those that
    # happen to be at the same one while others are idle, as jobs do for their own processors.
    shared = np.array([0 * ones, ones, ones, in_order, in_order])
    alone = demands.copy()
    alone[CONTROLLER] -= relocating  # beside the request
    # A request ends with the last of its pages; reads in order have been read ahead.
    waited_for = from_flash * (1.0 - drive.read_ahead * in_order)
    alone[DIES] = waited_for * page_read * (1 + (pages - 1) / drive.at_once) + map_read
    alone[CHANNELS] = waited_for * (size - np.minimum(size, piece)) * wire
    delay = (
        values["latency"] + reads * drive.read_latency + writes * values["controller.write_latency"]
    )
    # Share of the time that a die programs, at one request per ns; a read that comes then waits.
    # What is moved is read by pages of all planes, of which it is but a part.
    programmed = drive.page * drive.pages_at_once / values["nand.t_program"]
    written = waf * size * writes
    valid = np.maximum(moved / np.maximum(written, 1.0), UNIT / drive.page)
    copied = moved * t_read / (drive.page * drive.planes * valid)
    writing = (written / programmed + copied + (written + moved) * wire) / drive.dies
    held = waited_for * values["nand.t_program"] / 2
    depth = np.minimum(depth, drive.slots)
    rates = _closed(demands, servers, shared, alone, delay, depth, writing, held, pages)
    flash = 1 / np.maximum(writing + (writing > 0) * demands[DIES] / drive.at_once, 1e-15)
    both: Floats = 1e9 * (rates**-4 + flash**-4) ** -0.25
    return both


def _closed(
    demands: Floats, servers: Floats, shared: Floats, alone: Floats, delay: Floats, depth: Floats,
    writing: Floats, held: Floats, pages: Floats,
) -> Floats:  # fmt: skip
    """Rates per ns of closed loops over stations (rows) of so many servers, which take from one
    queue where it is ``shared``, else each from its own; ``alone`` is the time at a station where
    nobody else is there. At a die that is ``writing`` a request of so many pages is ``held``."""
    queues = np.broadcast_to(depth / len(demands), demands.shape)
    limit = (servers / np.maximum(demands, 1e-9)).min(axis=0)
    rates: Floats = limit
    met = np.where((shared > 0) & (servers == 1), REGULAR, 1.0)
    for _ in range(ROUNDS):
        seen = queues * (depth - 1) / depth
        # Of the request that is being served half is left, times being constant.
        ahead = seen - 0.5 * np.where(shared > 0, servers - 1, rates * demands)
        times = alone + met * demands / servers * np.maximum(0.0, ahead)
        busy = np.minimum(1.0, rates * writing)
        wait = held * (1 - (1 - busy) ** pages)
        rates = 0.5 * rates + 0.5 * np.minimum(depth / (delay + wait + times.sum(axis=0)), limit)
        queues = rates * times
    return rates
