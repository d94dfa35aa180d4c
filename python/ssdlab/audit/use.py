"""How a drive is used: mount options, swap, arrays, loop devices, and its own health."""

from __future__ import annotations

from collections.abc import Iterator

from ssdlab.audit.model import Finding, Status
from ssdlab.audit.queue import MEASURE
from ssdlab.audit.scene import Drive, Scene, look
from ssdlab.errors import SsdlabError
from ssdlab.health import Severity, judge
from ssdlab.system import Evidence

OK, ADVICE, PROBLEM, UNKNOWN = Status.OK, Status.ADVICE, Status.PROBLEM, Status.UNKNOWN


def mount_options(scene: Scene) -> Iterator[Finding]:
    """Whether mount options make reads write, or every write wait."""
    mount = scene.mount
    if mount is None:
        return
    evidence = (Evidence.of_mount(mount),)

    def say(status: Status, what: str, why: str = "", option: str = "") -> Finding:
        fix = f"mount -o remount,{option} {mount.point}   # and in /etc/fstab" if option else None
        return Finding("mount-options", mount.point, status, what, evidence, why, fix)

    odd = False
    if mount.has("sync"):
        odd = True
        why = "each write waits for the drive, so that writes are not merged"
        yield say(ADVICE, "every write waits for the drive (sync)", why, "async")
    if mount.has("data") == "data=journal":
        odd = True
        why = "all data is written twice, to the journal and in place, which doubles wear"
        yield say(ADVICE, "data goes through the journal (data=journal)", why)
    atime = mount.has("noatime", "relatime", "strictatime", "lazytime")
    if "ro" not in mount.options and atime in (None, "strictatime"):
        odd = True
        why = f"each read of a file causes a write; {MEASURE}"
        yield say(
            ADVICE,
            "every file read updates its access time (no noatime or relatime)",
            why,
            "relatime",
        )
    if not odd:
        told = atime or ("ro" if "ro" in mount.options else "")
        yield say(OK, f"no writes of access times on every read, no synchronous writes ({told})")


def swap(scene: Scene) -> Iterator[Finding]:
    """Whether swap lies on the same drive."""
    system = scene.system
    here = {drive.name for drive in scene.drives if not drive.rotational or drive.virtual}
    if not here:
        return
    found = False
    for area in system.swaps():
        try:
            below = look(system, area.path, scene.ask)
        except SsdlabError:
            continue  # in memory, or not to be seen
        shared = sorted(here & {drive.name for drive in below.drives})
        if not shared:
            continue
        found = True
        value = f"{area.path}: {area.used_bytes:,} of {area.size_bytes:,} bytes used"
        evidence = (Evidence("/proc/swaps", value), *system.evidence("proc/sys/vm/swappiness"))
        where = ", ".join(shared)
        if area.used_bytes == 0:
            what = f"swap {area.path} is on it and unused"
            yield Finding("swap", where, OK, what, evidence)
            continue
        yield Finding(
            "swap",
            where,
            ADVICE,
            f"swap {area.path} is on it and in use",
            evidence,
            "swapping is small random writes, which wear most, and it disturbs a measurement",
            f"swapoff {area.path}   # for a measurement; more RAM or zram for good",
        )
    if not found:
        what = "there is no swap on it"
        evidence = system.evidence("proc/swaps")
        yield Finding("swap", ", ".join(sorted(here)), OK, what, evidence)


def array_state(scene: Scene) -> Iterator[Finding]:
    """Whether md arrays are whole and at rest."""
    system = scene.system
    for layer in scene.layers:
        if layer.kind != "raid":
            continue
        base = f"{layer.place}/md"
        files = [f"{base}/{one}" for one in ("level", "degraded", "sync_action", "chunk_size")]
        evidence = system.evidence(*files)
        degraded, action = system.number(f"{base}/degraded"), system.read(f"{base}/sync_action")
        level = system.read(f"{base}/level")
        if degraded:
            yield Finding(
                "array-state",
                layer.name,
                PROBLEM,
                f"the array is degraded: {degraded} of its members missing",
                evidence,
                "the next failure may lose the data, and reads of missing data cost reads of all "
                "other members",
                f"mdadm --detail /dev/{layer.name}",
            )
        elif action not in (None, "idle", "frozen"):
            why = "the members are busy with it, so a measurement now measures that too"
            what = f"the array has background work under way ({action})"
            fix = "cat /proc/mdstat   # shows its progress"
            yield Finding("array-state", layer.name, ADVICE, what, evidence, why, fix)
        elif level == "raid0":
            why = "RAID 0 loses everything with one member"
            what = "the array is complete; it has no redundancy"
            yield Finding("array-state", layer.name, OK, what, evidence, why)
        else:
            yield Finding("array-state", layer.name, OK, "the array is complete", evidence)


def loop_cache(scene: Scene) -> Iterator[Finding]:
    """Whether loop devices keep data in RAM a second time."""
    system = scene.system
    for layer in scene.layers:
        if layer.kind != "loop":
            continue
        file = f"{layer.place}/loop/dio"
        direct = system.read(file)
        evidence = system.evidence(file, f"{layer.place}/loop/backing_file")
        if direct == "1":
            what = "the loop device bypasses the cache of the file below it"
            yield Finding("loop-cache", layer.name, OK, what, evidence)
        elif direct == "0":
            yield Finding(
                "loop-cache",
                layer.name,
                ADVICE,
                "the loop device goes through the page cache",
                evidence,
                "data is kept in RAM twice, and a measurement through it measures RAM",
                f"losetup --direct-io=on /dev/{layer.name}",
            )


def health(scene: Scene) -> Iterator[Finding]:
    """What each drive says of its own health."""
    for drive in scene.drives:
        yield from _health_of(scene, drive)


def _health_of(scene: Scene, drive: Drive) -> Iterator[Finding]:
    try:
        told = scene.ask(drive.name)
    except SsdlabError as error:
        reason = error.message.removeprefix(f"/dev/{drive.name}: ")
        what, _, install = f"its health could not be checked: {reason}".partition(": sudo ")
        fix = f"sudo {install}" if install else None
        yield Finding("health", drive.name, UNKNOWN, what, fix=fix)
        return
    status = {
        Severity.GOOD: OK,
        Severity.UNKNOWN: UNKNOWN,
        Severity.WATCH: ADVICE,
        Severity.REPLACE: PROBLEM,
    }
    said = judge(told)
    bad = [one for one in said if one.severity is not Severity.GOOD]
    fix = f"ssdlab health /dev/{drive.name}"
    for one in bad:
        seen = (Evidence("SMART", one.evidence),)
        yield Finding("health", drive.name, status[one.severity], one.what, seen, "", fix)
    if not bad:
        evidence = tuple(Evidence("SMART", one.evidence) for one in said)
        what = "the drive reports no failure, and its rated endurance is not used up"
        yield Finding("health", drive.name, OK, what, evidence)
    if told.is_ssd and drive.rotational and not drive.virtual:
        file = f"{drive.place}/queue/rotational"
        what = "the drive reports that it is an SSD, the kernel treats it as a hard disk"
        evidence = scene.system.evidence(file)
        yield Finding("health", drive.name, PROBLEM, what, evidence, "", f"echo 0 > /{file}")
