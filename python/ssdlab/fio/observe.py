"""What happened around one fio run: the drive's own counters, processors, pressure, temperature.

A few files of /proc and /sys are read before and after the run; nothing is sampled meanwhile.
What the system does not tell is absent. The keys are described in ``docs/results.md``.
"""

from __future__ import annotations

import errno
import os
import re
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ssdlab.system import CLASS, SECTOR, System

CELLS = 64
"""Equal pieces of a file of which is told how much of each was never written."""
HOLES_TOLD = 64
"""Holes of a file of which each is told; of a file with more, :data:`CELLS` shares."""
HOLES_MAX = 200_000
"""Holes looked at in a file at most; a file with more is not told about."""
_STAT = (
    "read_ios read_merges read_sectors read_ms write_ios write_merges write_sectors write_ms "
    "in_flight io_ms queue_ms discard_ios discard_merges discard_sectors discard_ms "
    "flush_ios flush_ms"
).split()
_CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_PRESSURES = ("cpu", "io", "memory")


@dataclass(frozen=True)
class Snapshot:
    """The counters at one instant."""

    at: float
    """Monotonic clock, s."""
    disk: dict[str, int]
    cpu: dict[str, float]
    """Seconds of all processors together, by what they did."""
    own_cpu_s: float
    """Of ssdlab and of what it has waited for, which is fio."""
    pressure_us: dict[str, int]
    """By ``cpu_some``, ``io_full`` ...: time in which tasks waited, us (Linux PSI)."""
    celsius: float | None
    throttles: int | None
    """How often processors have throttled since the system started."""
    unwritten: dict[str, Any] | None


@dataclass
class Observer:
    """Looks before the run and after it: ``found`` is what changed in between."""

    disk: str | None
    """The kernel's name of the disk below the target."""
    file: Path | None
    """The target where it is a plain file."""
    root: Path = Path("/")
    before: Snapshot = field(init=False)

    def __post_init__(self) -> None:
        self.before = self._snapshot()

    def found(self) -> dict[str, Any]:
        """What changed since the observer was made."""
        first, last = self.before, self._snapshot()
        seen: dict[str, Any] = {"seconds": round(last.at - first.at, 3)}
        if first.disk and last.disk:
            seen["disk"] = _disk_growth(first.disk, last.disk)
        if first.cpu and last.cpu:
            cpu = {name: round(last.cpu[name] - first.cpu[name], 2) for name in first.cpu}
            seen["cpu_seconds"] = cpu | {"own": round(last.own_cpu_s - first.own_cpu_s, 2)}
        waited = {
            name: round((last.pressure_us[name] - at) / 1e6, 3)
            for name, at in first.pressure_us.items()
            if name in last.pressure_us
        }
        if waited:
            seen["pressure_seconds"] = waited
        if last.celsius is not None:
            seen["celsius"] = {"before": first.celsius, "after": last.celsius}
            limit = self._celsius("temp1_max")
            # Some drives tell a limit of 0 or of 65535 K where they have none.
            if limit is not None and 20 < limit < 150:
                seen["celsius"]["limit"] = limit
        if first.throttles is not None and last.throttles is not None:
            seen["cpu_throttles"] = last.throttles - first.throttles
        if self.file is not None and last.unwritten is not None:
            seen["file"] = {"before": first.unwritten, "after": last.unwritten}
        if self.disk is not None:
            seen |= self._layers(self.disk)
        return seen

    def _snapshot(self) -> Snapshot:
        return Snapshot(
            at=time.monotonic(),
            disk=self._disk(),
            cpu=self._cpu(),
            own_cpu_s=_own_cpu(),
            pressure_us=dict(self._pressure()),
            celsius=self._celsius("temp1_input"),
            throttles=self._throttles(),
            unwritten=unwritten(self.file) if self.file is not None else None,
        )

    @property
    def system(self) -> System:
        """The system that is looked at."""
        return System(self.root)

    def _of(self, file: str) -> str | None:
        """What a file of the disk in /sys says."""
        return self.system.of(self.disk, file)

    def _disk(self) -> dict[str, int]:
        if self.disk is None or self._of("queue/iostats") == "0":
            return {}
        # The head of an NVMe namespace with several paths counts nothing before Linux 6.15.
        match = re.fullmatch(r"(nvme\d+)(n\d+)", self.disk)
        paths = self.system.glob(f"{CLASS}/{match[1]}c*{match[2]}/stat") if match else []
        lines = [self.system.read(one) or "" for one in (f"{CLASS}/{self.disk}/stat", *paths)]
        counts = [dict(zip(_STAT, map(int, line.split()), strict=False)) for line in lines]
        own, *others = counts
        return {
            name: max(count, sum(one.get(name, 0) for one in others)) for name, count in own.items()
        }

    def _cpu(self) -> dict[str, float]:
        line = self.system.read("proc/stat") or ""
        fields = line.split("\n", 1)[0].split()[1 : 1 + len(_CPU)]
        tick = os.sysconf("SC_CLK_TCK")
        return {name: int(f) / tick for name, f in zip(_CPU, fields, strict=False)}

    def _pressure(self) -> Iterator[tuple[str, int]]:
        for what in _PRESSURES:
            for line in (self.system.read(f"proc/pressure/{what}") or "").splitlines():
                kind, _, rest = line.partition(" ")
                total = rest.rpartition("total=")[2]
                if total.isdigit():
                    yield f"{what}_{kind}", int(total)

    def _celsius(self, what: str) -> float | None:
        """The drive's own thermometer: an NVMe controller's, or the driver drivetemp's."""
        device = f"{CLASS}/{self.disk}/device"
        places = (f"{device}/hwmon*/{what}", f"{device}/hwmon/hwmon*/{what}")
        sensors = [path for place in places for path in self.system.glob(place)]
        found = self.system.number(min(sensors)) if sensors and self.disk else None
        return None if found is None else found / 1000

    def _throttles(self) -> int | None:
        cpus = "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count"
        counts = [self.system.number(path) for path in self.system.glob(cpus)]
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    def _layers(self, disk: str) -> dict[str, Any]:
        """What lies between the target and flash: a loop device's file, members, the host link."""
        found: dict[str, Any] = {}
        if (direct := self._of("loop/dio")) is not None:
            found["loop_direct"] = direct == "1"
        if members := self.system.listed(f"{CLASS}/{disk}/slaves"):
            found["members"] = members
        if (level := self._of("md/level")) is not None:
            found["raid"] = level
        speed, width = (self._of(f"device/device/current_link_{one}") for one in ("speed", "width"))
        if (rate := link_bytes_per_s(speed, width)) is not None:
            found["link_bytes_per_s"] = rate
        return found


def unwritten(file: Path) -> dict[str, Any] | None:
    """How much of a file holds no data (holes, and extents set aside but never written):
    ``{"bytes": size, "unwritten_bytes": n, "cells": share of each of 64 equal pieces, "holes":
    start and end of each}``, the cells only where something is unwritten, the holes where they are
    few; None where the file system does not tell."""
    try:
        with file.open("rb", buffering=0) as opened:
            size = os.fstat(opened.fileno()).st_size
            stretches = list(islice(data_stretches(opened.fileno(), size), HOLES_MAX + 1))
    except OSError:
        return None
    if len(stretches) > HOLES_MAX:
        return None
    edges = [0, *(edge for stretch in stretches for edge in stretch), size]
    holes = [(at, end - at) for at, end in zip(edges[::2], edges[1::2], strict=True) if end > at]
    total = sum(length for _, length in holes)
    found: dict[str, Any] = {"bytes": size, "unwritten_bytes": total}
    if total:
        found["cells"] = _by_cell(holes, size)
        if len(holes) <= HOLES_TOLD:
            found["holes"] = [[at, at + length] for at, length in holes]
    return found


def data_stretches(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Start and end of each stretch of an open file that holds data; the kernel counts unwritten
    extents as holes. Raises OSError where the file system does not tell."""
    at = 0
    while at < size:
        try:
            start = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # nothing but a hole from here on
            raise
        at = min(size, os.lseek(descriptor, start, os.SEEK_HOLE))
        yield start, at


def _by_cell(holes: list[tuple[int, int]], size: int) -> list[float]:
    cell = size / CELLS
    empty = [0.0] * CELLS
    for offset, length in holes:
        for number in range(int(offset / cell), min(CELLS, int((offset + length) / cell) + 1)):
            low, high = max(offset, number * cell), min(offset + length, (number + 1) * cell)
            empty[number] += max(0.0, high - low)
    return [round(min(1.0, one / cell), 4) for one in empty]


def _disk_growth(first: dict[str, int], last: dict[str, int]) -> dict[str, int]:
    grown = {name: last[name] - first[name] for name in first if name in last}
    return {
        "read_ios": grown.get("read_ios", 0),
        "read_bytes": SECTOR * grown.get("read_sectors", 0),
        "write_ios": grown.get("write_ios", 0),
        "write_bytes": SECTOR * grown.get("write_sectors", 0),
        "discard_bytes": SECTOR * grown.get("discard_sectors", 0),
        "flushes": grown.get("flush_ios", 0),
        "busy_ms": grown.get("io_ms", 0),
    }


def _own_cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def link_bytes_per_s(speed: str | None, width: str | None) -> float | None:
    """What a PCIe link carries in one direction: ``8.0 GT/s PCIe`` and lanes, less its coding
    (8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, 242 bytes of each FLIT of 256 above)."""
    if speed is None or width is None or not width.isdigit():
        return None
    try:
        transfers = float(speed.split()[0]) * 1e9
    except (ValueError, IndexError):
        return None
    coding = 8 / 10 if transfers <= 5e9 else 128 / 130 if transfers <= 32e9 else 242 / 256
    return transfers * coding / 8 * int(width)
