"""Where the partitions and the data lie: alignment, unused space, room in the file system."""

from __future__ import annotations

from collections.abc import Iterator

from ssdlab.audits.model import ADVICE, OK, PROBLEM, UNKNOWN, Finding, FindingsAt
from ssdlab.audits.scene import Layer, Scene, SystemDrive, each_drive
from ssdlab.system import SECTOR, Seen
from ssdlab.units import percent

FLASH_PAGE = 4096
GRAIN = 1 << 20
"""What partitioning tools align to: a multiple of every flash page and of most RAID stripes."""
FULL, NEARLY_FULL = 0.05, 0.15
"""Shares of free space below which it is a problem, and advice."""


def alignment(scene: Scene) -> Iterator[Finding]:
    """Whether partitions begin where a flash page does."""
    turning = all(drive.rotational for drive in scene.drives)
    inside = [(layer.below[0], layer.name) for layer in scene.layers if layer.kind == "partition"]
    if not inside:
        # Of a whole drive or array, all of its partitions.
        tops = [layer for layer in scene.tops if layer.kind in ("disk", "raid", "loop")]
        inside = [(top, name) for top in tops for name in scene.system.partitions(top.name)]
    for parent, name in inside:
        yield _aligned(scene, parent, name, turning=turning)


def _aligned(scene: Scene, parent: Layer, name: str, *, turning: bool) -> Finding:
    system, place, queue = scene.system, f"{parent.place}/{name}", f"{parent.place}/queue"
    start, off = system.number(f"{place}/start"), system.number(f"{place}/alignment_offset")
    files = [f"{place}/start", f"{place}/alignment_offset"]
    files += [f"{queue}/physical_block_size", f"{queue}/optimal_io_size"]
    say = FindingsAt(name, system.evidence(*files))
    if start is None:
        return say(UNKNOWN, "its start could not be read")
    at = start * SECTOR
    optimal = system.number(f"{queue}/optimal_io_size") or 0
    # Some adapters report an odd number of sectors, such as 33553920 bytes, which aligns nothing.
    optimal = optimal if optimal > 0 and optimal % FLASH_PAGE == 0 else 0
    fix = f"back up, then: parted /dev/{parent.name} rm N mkpart ... 1MiB 100%"
    if at % FLASH_PAGE or (off or 0) > 0:
        what = f"starts at byte {at:,}, not at a multiple of 4 KiB"
        if at % FLASH_PAGE == 0:
            what = f"starts {off} bytes off a physical block of the drive"
        why = (
            "a 4 KiB request that straddles two pages costs two programs, twice the wear, and a "
            "read before each write on drives that map by 4 KiB"
        )
        return say(ADVICE if turning else PROBLEM, what, why, fix)
    if optimal and at % optimal:
        what = f"starts at byte {at:,}, not at a multiple of the optimal {optimal:,} bytes"
        return say(ADVICE, what, "requests that straddle two stripes keep two members busy", fix)
    if at % GRAIN:
        return say(OK, f"starts at byte {at:,}: at a multiple of 4 KiB, though not of 1 MiB")
    return say(OK, "starts at a multiple of 1 MiB")


@each_drive
def unpartitioned(scene: Scene, drive: SystemDrive) -> Iterator[Finding]:
    """How much of a drive no partition covers; never written, it serves as spare area."""
    system = scene.system
    size = system.number(f"{drive.place}/size")
    places = [f"{drive.place}/{name}/size" for name in system.partitions(drive.name)]
    if not size or not places or drive.rotational:
        return
    free = max(0, size - sum(system.number(place) or 0 for place in places)) / size
    yield scene.about(drive, f"{drive.place}/size", *places)(
        OK,
        f"{free:.1%} of the drive is in no partition",
        "under sustained random writes, space that is never written (after a TRIM of it) "
        "adds to the spare area: an X25-M was faster the smaller its partition was",
    )


def free_space(scene: Scene) -> Iterator[Finding]:
    """Whether the file system has room left."""
    if scene.mount is None or "ro" in scene.mount.options:
        return
    point = scene.mount.point
    space = scene.system.space(point)
    if space is None or not space.size_bytes:
        yield FindingsAt(point)(UNKNOWN, "its free space could not be checked")
        return
    share = space.available_bytes / space.size_bytes
    status = PROBLEM if share < FULL else ADVICE if share < NEARLY_FULL else OK
    say = FindingsAt(point, (Seen(f"statvfs {point}", space.sentence),))
    more = (
        "a full file system fragments what is written, and leaves the drive no trimmed space, so "
        "that garbage collection (GC) relocates more pages per write",
        f"du -xh --max-depth=1 {point} | sort -h",
    )
    what = f"{percent(share)} of the file system is free for users"
    yield say(status, what) if status is OK else say(status, what, *more)
