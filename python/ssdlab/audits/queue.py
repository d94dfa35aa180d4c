"""How the kernel hands requests to a drive: scheduler, depth, cache, read-ahead."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ssdlab.audits.model import ADVICE, OK, PROBLEM, UNKNOWN, Finding, FindingsAt
from ssdlab.audits.scene import Layer, Scene, SystemDrive, each_drive
from ssdlab.system import Seen, System
from ssdlab.units import counted

MEASURE = (
    "of nine such settings measured on an Intel X25-M and an OCZ Vertex 2, most changed nothing in "
    "speed: measure before and after"
)
FLUSH = (
    "without flushes the Intel X25-M was half as fast (4 KiB writes fell to 4 MB/s) and an OCZ "
    "Vertex 2 was none the worse; and what a power failure finds in the drive's cache is lost"
)
FEW_REQUESTS = 32
LARGE_READ_AHEAD_KB = 4096


@each_drive
def scheduler(scene: Scene, drive: SystemDrive) -> Iterator[Finding]:
    """Whether the I/O scheduler suits the kind of drive."""
    file = f"{drive.place}/queue/scheduler"
    say = scene.about(drive, file, f"{drive.place}/queue/rotational")
    name = scene.system.chosen(file) or ""
    if not re.fullmatch(r"[\w-]+", name):
        yield say(UNKNOWN, "the I/O scheduler could not be checked")
        return
    better, why = _better(drive, name, scene.system.read(file) or "")
    if better is None:
        yield say(OK, f"the scheduler is {name}, which suits it")
    else:
        what = f"the scheduler is {name}; try {better}"
        yield say(ADVICE, what, why, f"echo {better} > /{file}")


def _better(drive: SystemDrive, name: str, line: str) -> tuple[str | None, str]:
    """The scheduler to try, and why; None where the one in use is fine."""
    if drive.rotational and not drive.virtual and name == "none":
        there = next((one for one in ("mq-deadline", "bfq") if one in line), None)
        return there, "a hard disk gains much from requests sorted by position"
    if drive.bus == "NVMe" and name in ("bfq", "mq-deadline") and "none" in line:
        return "none", (
            "an NVMe drive orders requests itself, and a scheduler costs CPU time for each, which "
            f"is noticeable from some 100,000 IOPS on; {MEASURE}"
        )
    return None, ""


@each_drive
def queue_depth(scene: Scene, drive: SystemDrive) -> Iterator[Finding]:
    """Whether enough requests may wait in the kernel and at the drive."""
    file = f"{drive.place}/queue/nr_requests"
    requests = scene.system.number(file)
    say = scene.about(drive, file, f"{drive.place}/device/queue_depth")
    if requests is None:
        yield say(UNKNOWN, "the queue depth could not be checked")
    elif requests < FEW_REQUESTS and drive.ssd:
        why = "an SSD works on many requests at once; a short queue leaves its dies idle"
        what = f"the queue holds only {counted(requests, 'request')}"
        yield say(ADVICE, what, why, f"echo 256 > /{file}")
    else:
        yield say(OK, f"the queue holds {counted(requests, 'request')}")


@each_drive
def native_queueing(scene: Scene, drive: SystemDrive) -> Iterator[Finding]:
    """Whether a SATA, SAS or USB drive is given more than one request at a time (NCQ)."""
    file = f"{drive.place}/device/queue_depth"
    depth, say = scene.system.number(file), scene.about(drive, file)
    if depth is None or drive.bus not in ("SATA", "SAS", "USB"):
        return
    why = "one request keeps one die busy while the other dies idle"
    if depth > 1:
        yield say(OK, f"queue depth of the drive: {depth}")
    elif drive.bus == "USB":
        what = "queue depth of the drive: 1, as the adapter does not speak UAS"
        yield say(ADVICE, what, why, "use an adapter that speaks UAS")
    else:
        fix = (
            f"echo 31 > /{file}   # if it stays at 1: AHCI in the firmware setup, "
            "no libata.force=noncq on the kernel's command line"
        )
        what = "queue depth of the drive: 1, as native command queueing is off"
        yield say(PROBLEM, what, why, fix)


@each_drive
def write_cache(scene: Scene, drive: SystemDrive) -> Iterator[Finding]:
    """Whether the drive's write cache is on, and whether it is flushed."""
    system, mount = scene.system, scene.mount
    file = f"{drive.place}/queue/write_cache"
    kernel, scsi = system.read(file), scsi_cache(system, drive)
    say = scene.about(drive, file, f"{drive.place}/queue/fua", *scsi[:1])
    own = (system.read(scsi[0]) if scsi else None) or ""
    option = mount.has("nobarrier", "barrier") if mount else None
    if mount is not None and option in ("nobarrier", "barrier=0") and kernel != "write through":
        yield FindingsAt(mount.point, (Seen.of_mount(mount), *say.evidence))(
            PROBLEM,
            f"the file system sends no flushes ({option}), and the drive may hold data in RAM",
            FLUSH,
            f"mount -o remount,barrier {mount.point}   # and mend /etc/fstab",
        )
    elif kernel is None:
        yield say(UNKNOWN, "the write cache could not be checked")
    elif kernel == "write through" and own.startswith("write back"):
        what = "the drive has a volatile write cache, but the kernel does not flush it"
        yield say(PROBLEM, what, FLUSH, f"echo write back > /{file}")
    elif kernel == "write back":
        yield say(OK, "the volatile write cache is on, and the kernel flushes it")
    elif drive.bus == "SATA" and drive.ssd:
        yield say(
            ADVICE,
            "the write cache is off, or the drive reports that it needs no flushes",
            "with its cache off an SSD programs a page for every small write; drives with "
            "power-loss protection lose nothing by having it on",
            f"hdparm -W1 /dev/{drive.name}",
        )
    else:
        yield say(OK, "no flushes needed: the write cache is off or protected against power loss")


def scsi_cache(system: System, drive: SystemDrive) -> list[str]:
    """The file that tells a SCSI disk's own cache."""
    base = f"{drive.place}/device/scsi_disk"
    return [f"{base}/{one}/cache_type" for one in system.listed(base)]


def read_ahead(scene: Scene) -> Iterator[Finding]:
    """Whether the kernel reads ahead, and not far too much."""
    drives = scene.drives
    tops = [layer for layer in scene.tops if layer.kind != "partition"]
    ssd = {drive.name for drive in drives if drive.ssd}
    devices: dict[str, Layer | SystemDrive] = {layer.name: layer for layer in tops}
    for one in (devices | {drive.name: drive for drive in drives}).values():
        file = f"{one.place}/queue/read_ahead_kb"
        kb, say = scene.system.number(file), scene.about(one, file)
        fix = f"echo 128 > /{file}"
        if kb == 0:
            why = "sequential buffered reads wait for every block; databases may want it so"
            yield say(ADVICE, "read-ahead is off", why, fix)
        elif kb is not None and kb > LARGE_READ_AHEAD_KB and one.name in ssd:
            why = f"buffered random reads may fetch data that is not used; {MEASURE}"
            yield say(ADVICE, f"read-ahead is {kb:,} KiB, much for an SSD", why, fix)
        elif kb is not None:
            yield say(OK, f"read-ahead is {kb:,} KiB")


@each_drive
def rotational(scene: Scene, drive: SystemDrive) -> Iterator[Finding]:
    """Whether the kernel takes an SSD for one."""
    file = f"{drive.place}/queue/rotational"
    say = scene.about(drive, file, f"{drive.place}/device/model")
    more = "file systems and swap choose other algorithms for hard disks", f"echo 0 > /{file}"
    named = re.search(r"(?i)\bssd|ssd\b|nvme|solid.?state", drive.model or "") is not None
    if drive.rotational is None:
        yield say(UNKNOWN, "whether it is rotational could not be checked")
    elif not drive.rotational:
        yield say(OK, "the kernel treats it as an SSD")
    elif drive.virtual:
        what = "a virtual disk reported as a hard disk; the drive below it cannot be seen"
        yield say(ADVICE, what, *more)
    elif named or drive.bus in ("NVMe", "MMC"):
        yield say(PROBLEM, "the kernel treats this SSD as a hard disk", *more)
    elif drive.bus == "USB":
        what = "the adapter reports a hard disk; if it is an SSD, set the flag"
        yield say(ADVICE, what, *more)
    else:
        yield say(OK, "a hard disk")
