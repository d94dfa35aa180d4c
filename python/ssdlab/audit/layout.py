"""Where the partitions and the data lie: alignment, unused space, room in the file system."""

from __future__ import annotations

from collections.abc import Iterator

from ssdlab.audit.model import Finding, Status
from ssdlab.audit.scene import Drive, Layer, Scene
from ssdlab.system import Evidence, System

OK, ADVICE, PROBLEM, UNKNOWN = Status.OK, Status.ADVICE, Status.PROBLEM, Status.UNKNOWN

SECTOR = 512
"""The unit of sizes and starts in /sys, whatever the drive's own."""
FLASH_PAGE = 4096
GRAIN = 1 << 20
"""What partitioning tools align to: a multiple of every flash page and of most RAID stripes."""
FULL, NEARLY_FULL = 0.05, 0.15
"""Shares of free space below which it is a problem, and advice."""


def alignment(scene: Scene) -> Iterator[Finding]:
    """Whether partitions begin where a flash page does."""
    system = scene.system
    turning = all(drive.rotational for drive in scene.drives)
    inside = [(one.below[0], one.name) for one in scene.layers if one.kind == "partition"]
    if not inside:
        # Of a whole drive or array, all of its partitions.
        tops = [one for one in scene.tops if one.kind in ("disk", "raid", "loop")]
        inside = [(top, name) for top in tops for name in _partitions(system, top)]
    for parent, name in inside:
        yield _aligned(system, parent, name, turning=turning)


def _aligned(system: System, parent: Layer, name: str, *, turning: bool) -> Finding:
    place = f"{parent.place}/{name}"
    start, off = system.number(f"{place}/start"), system.number(f"{place}/alignment_offset")
    evidence = system.evidence(
        f"{place}/start",
        f"{place}/alignment_offset",
        f"{parent.place}/queue/physical_block_size",
        f"{parent.place}/queue/optimal_io_size",
    )
    if start is None:
        return Finding("alignment", name, UNKNOWN, "its start could not be read", evidence)
    at = start * SECTOR
    optimal = system.number(f"{parent.place}/queue/optimal_io_size") or 0
    # Some adapters report an odd number of sectors, such as 33553920 bytes, which aligns nothing.
    optimal = optimal if optimal > 0 and optimal % FLASH_PAGE == 0 else 0
    why = (
        "a 4 KiB request that straddles two pages costs two programs, twice the wear, and a read "
        "before each write on drives that map by 4 KiB"
    )
    fix = f"back up, then: parted /dev/{parent.name} rm N mkpart ... 1MiB 100%"
    if at % FLASH_PAGE or (off or 0) > 0:
        what = f"starts at byte {at:,}, not at a multiple of 4 KiB"
        if at % FLASH_PAGE == 0:
            what = f"starts {off} bytes off a physical block of the drive"
        status = ADVICE if turning else PROBLEM
        return Finding("alignment", name, status, what, evidence, why, fix)
    if optimal and at % optimal:
        why = "requests that straddle two stripes keep two members busy"
        what = f"starts at byte {at:,}, not at a multiple of the optimal {optimal:,} bytes"
        return Finding("alignment", name, ADVICE, what, evidence, why, fix)
    if at % GRAIN:
        what = f"starts at byte {at:,}: at a multiple of 4 KiB, though not of 1 MiB"
        return Finding("alignment", name, OK, what, evidence)
    return Finding("alignment", name, OK, "starts at a multiple of 1 MiB", evidence)


def unpartitioned(scene: Scene) -> Iterator[Finding]:
    """How much of a drive no partition covers; never written, it serves as spare area."""
    system = scene.system
    for drive in scene.drives:
        size = system.number(f"{drive.place}/size")
        partitions = _partitions(system, drive)
        if not size or not partitions or drive.rotational:
            continue
        places = [f"{drive.place}/{name}/size" for name in partitions]
        covered = sum(system.number(place) or 0 for place in places)
        free = max(0, size - covered) / size
        yield Finding(
            "unpartitioned",
            drive.name,
            OK,
            f"{free:.1%} of the drive is in no partition",
            system.evidence(f"{drive.place}/size", *places),
            "under sustained random writes, space that is never written (after a TRIM of it) "
            "adds to the spare area: an X25-M was faster the smaller its partition was",
        )


def _partitions(system: System, drive: Drive | Layer) -> list[str]:
    names = system.listed(drive.place)
    return [one for one in names if system.exists(f"{drive.place}/{one}/partition")]


def free_space(scene: Scene) -> Iterator[Finding]:
    """Whether the file system has room left."""
    if scene.mount is None or "ro" in scene.mount.options:
        return
    point = scene.mount.point
    space = scene.system.space(point)
    if space is None or not space.size_bytes:
        yield Finding("free-space", point, UNKNOWN, "its free space could not be checked")
        return
    share = space.available_bytes / space.size_bytes
    evidence = (Evidence(f"statvfs {point}", space.sentence),)
    what = f"{share:.0%} of the file system is free for users"
    why = (
        "a full file system fragments what is written, and leaves the drive no trimmed space, so "
        "that garbage collection (GC) relocates more pages per write"
    )
    fix = f"du -xh --max-depth=1 {point} | sort -h"
    if share < FULL:
        yield Finding("free-space", point, PROBLEM, what, evidence, why, fix)
    elif share < NEARLY_FULL:
        yield Finding("free-space", point, ADVICE, what, evidence, why, fix)
    else:
        yield Finding("free-space", point, OK, what, evidence)
