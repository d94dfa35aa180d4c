"""How the kernel hands requests to a drive: scheduler, depth, cache, read-ahead."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ssdlab.audit.model import Finding, Status
from ssdlab.audit.scene import Drive, Scene
from ssdlab.system import Evidence, System

OK, ADVICE, PROBLEM, UNKNOWN = Status.OK, Status.ADVICE, Status.PROBLEM, Status.UNKNOWN

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


def scheduler(scene: Scene) -> Iterator[Finding]:
    """Whether the I/O scheduler suits the kind of drive."""
    for drive in scene.drives:
        file = f"{drive.place}/queue/scheduler"
        line = scene.system.read(file)
        evidence = scene.system.evidence(file, f"{drive.place}/queue/rotational")
        name = scene.system.chosen(file) or ""
        if not re.fullmatch(r"[\w-]+", name):
            yield Finding(
                "scheduler", drive.name, UNKNOWN, "the I/O scheduler could not be checked", evidence
            )
            continue
        better, why = _better(drive, name, line or "")
        what = f"the scheduler is {name}"
        if better is None:
            yield Finding("scheduler", drive.name, OK, f"{what}, which suits it", evidence)
            continue
        fix = f"echo {better} > /{drive.place}/queue/scheduler"
        yield Finding("scheduler", drive.name, ADVICE, f"{what}; try {better}", evidence, why, fix)


def _better(drive: Drive, name: str, line: str) -> tuple[str | None, str]:
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


def queue_depth(scene: Scene) -> Iterator[Finding]:
    """Whether enough requests may wait in the kernel and at the drive."""
    for drive in scene.drives:
        requests = scene.system.number(f"{drive.place}/queue/nr_requests")
        files = (f"{drive.place}/queue/nr_requests", f"{drive.place}/device/queue_depth")
        evidence = scene.system.evidence(*files)
        if requests is None:
            yield Finding(
                "queue-depth", drive.name, UNKNOWN, "the queue depth could not be checked", evidence
            )
        elif requests < FEW_REQUESTS and drive.ssd:
            yield Finding(
                "queue-depth",
                drive.name,
                ADVICE,
                f"the queue holds only {requests} requests",
                evidence,
                "an SSD works on many requests at once; a short queue leaves its dies idle",
                f"echo 256 > /{files[0]}",
            )
        else:
            what = f"the queue holds {requests} requests"
            yield Finding("queue-depth", drive.name, OK, what, evidence)


def native_queueing(scene: Scene) -> Iterator[Finding]:
    """Whether a SATA, SAS or USB drive is given more than one request at a time (NCQ)."""
    for drive in scene.drives:
        file = f"{drive.place}/device/queue_depth"
        depth = scene.system.number(file)
        if depth is None or drive.bus not in ("SATA", "SAS", "USB"):
            continue
        evidence = scene.system.evidence(file)
        if depth > 1:
            what = f"queue depth of the drive: {depth}"
            yield Finding("ncq", drive.name, OK, what, evidence)
            continue
        usb = drive.bus == "USB"
        yield Finding(
            "ncq",
            drive.name,
            ADVICE if usb else PROBLEM,
            "queue depth of the drive: 1, as "
            + ("the adapter does not speak UAS" if usb else "native command queueing is off"),
            evidence,
            "one request keeps one die busy while the other dies idle",
            "use an adapter that speaks UAS"
            if usb
            else f"echo 31 > /{file}   # if it stays at 1: AHCI in the firmware setup, "
            "no libata.force=noncq on the kernel's command line",
        )


def write_cache(scene: Scene) -> Iterator[Finding]:
    """Whether the drive's write cache is on, and whether it is flushed."""
    for drive in scene.drives:
        yield _write_cache(scene, drive)


def _write_cache(scene: Scene, drive: Drive) -> Finding:
    system = scene.system
    file = f"{drive.place}/queue/write_cache"
    kernel = system.read(file)
    scsi = scsi_cache(system, drive)
    evidence = system.evidence(file, f"{drive.place}/queue/fua", *scsi[:1])
    own = system.read(scsi[0]) if scsi else None
    option = scene.mount.has("nobarrier", "barrier") if scene.mount else None
    dropped = option in ("nobarrier", "barrier=0")
    if scene.mount is not None and dropped and kernel != "write through":
        return Finding(
            "write-cache",
            scene.mount.point,
            PROBLEM,
            f"the file system sends no flushes ({option}), and the drive may hold data in RAM",
            (Evidence.of_mount(scene.mount), *evidence),
            FLUSH,
            f"mount -o remount,barrier {scene.mount.point}   # and mend /etc/fstab",
        )
    if kernel is None:
        return Finding(
            "write-cache", drive.name, UNKNOWN, "the write cache could not be checked", evidence
        )
    if kernel == "write through" and own is not None and own.startswith("write back"):
        return Finding(
            "write-cache",
            drive.name,
            PROBLEM,
            "the drive has a volatile write cache, but the kernel does not flush it",
            evidence,
            FLUSH,
            f"echo write back > /{file}",
        )
    if kernel == "write back":
        what = "the volatile write cache is on, and the kernel flushes it"
        return Finding("write-cache", drive.name, OK, what, evidence)
    if drive.bus == "SATA" and drive.ssd:
        return Finding(
            "write-cache",
            drive.name,
            ADVICE,
            "the write cache is off, or the drive reports that it needs no flushes",
            evidence,
            "with its cache off an SSD programs a page for every small write; drives with "
            "power-loss protection lose nothing by having it on",
            f"hdparm -W1 /dev/{drive.name}",
        )
    what = "no flushes needed: the write cache is off or protected against power loss"
    return Finding("write-cache", drive.name, OK, what, evidence)


def scsi_cache(system: System, drive: Drive) -> list[str]:
    """The file that tells a SCSI disk's own cache."""
    base = f"{drive.place}/device/scsi_disk"
    return [f"{base}/{one}/cache_type" for one in system.listed(base)]


def read_ahead(scene: Scene) -> Iterator[Finding]:
    """Whether the kernel reads ahead, and not far too much."""
    tops = {layer.name: layer.place for layer in scene.tops if layer.kind != "partition"}
    tops |= {drive.name: drive.place for drive in scene.drives}
    ssd = {drive.name for drive in scene.drives if drive.ssd}
    for name, place in tops.items():
        file = f"{place}/queue/read_ahead_kb"
        kb = scene.system.number(file)
        evidence = scene.system.evidence(file)
        if kb is None:
            continue
        fix = f"echo 128 > /{file}"
        if kb == 0:
            why = "sequential buffered reads wait for every block; databases may want it so"
            what = "read-ahead is off"
            yield Finding("read-ahead", name, ADVICE, what, evidence, why, fix)
        elif kb > LARGE_READ_AHEAD_KB and name in ssd:
            why = f"buffered random reads may fetch data that is not used; {MEASURE}"
            what = f"read-ahead is {kb:,} KiB, much for an SSD"
            yield Finding("read-ahead", name, ADVICE, what, evidence, why, fix)
        else:
            what = f"read-ahead is {kb:,} KiB"
            yield Finding("read-ahead", name, OK, what, evidence)


def rotational(scene: Scene) -> Iterator[Finding]:
    """Whether the kernel takes an SSD for one."""
    for drive in scene.drives:
        file = f"{drive.place}/queue/rotational"
        evidence = scene.system.evidence(file, f"{drive.place}/device/model")
        fix = f"echo 0 > /{file}"
        why = "file systems and swap choose other algorithms for hard disks"
        named = re.search(r"(?i)\bssd|ssd\b|nvme|solid.?state", drive.model or "") is not None
        if drive.rotational is None:
            what = "whether it is rotational could not be checked"
            yield Finding("rotational", drive.name, UNKNOWN, what, evidence)
        elif not drive.rotational:
            yield Finding("rotational", drive.name, OK, "the kernel treats it as an SSD", evidence)
        elif drive.virtual:
            what = "a virtual disk reported as a hard disk; the drive below it cannot be seen"
            yield Finding("rotational", drive.name, ADVICE, what, evidence, why, fix)
        elif named or drive.bus in ("NVMe", "MMC"):
            what = "the kernel treats this SSD as a hard disk"
            yield Finding("rotational", drive.name, PROBLEM, what, evidence, why, fix)
        elif drive.bus == "USB":
            what = "the adapter reports a hard disk; if it is an SSD, set the flag"
            yield Finding("rotational", drive.name, ADVICE, what, evidence, why, fix)
        else:
            yield Finding("rotational", drive.name, OK, "a hard disk", evidence)
