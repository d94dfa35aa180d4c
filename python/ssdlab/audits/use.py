"""How a drive is used: mount options, swap, arrays, loop devices, and its own health."""

from __future__ import annotations

from collections.abc import Iterator

from ssdlab.audits.model import ADVICE, OK, PROBLEM, UNKNOWN, Finding, FindingsAt
from ssdlab.audits.queue import MEASURE
from ssdlab.audits.scene import Scene, SystemDrive, each_drive, look
from ssdlab.errors import SsdlabError
from ssdlab.smart import Severity, judge
from ssdlab.system import Seen

_STATUS = {
    Severity.GOOD: OK,
    Severity.UNKNOWN: UNKNOWN,
    Severity.WATCH: ADVICE,
    Severity.REPLACE: PROBLEM,
}


def mount_options(scene: Scene) -> Iterator[Finding]:
    """Whether mount options make reads write, or every write wait."""
    mount = scene.mount
    if mount is None:
        return
    say = FindingsAt(mount.point, (Seen.of_mount(mount),))
    remount = f"mount -o remount,{{}} {mount.point}   # and in /etc/fstab"
    atime = mount.has("noatime", "relatime", "strictatime", "lazytime")
    odd = []
    if mount.has("sync"):
        why = "each write waits for the drive, so that writes are not merged"
        what = "every write waits for the drive (sync)"
        odd.append(say(ADVICE, what, why, remount.format("async")))
    if mount.has("data") == "data=journal":
        why = "all data is written twice, to the journal and in place, which doubles wear"
        odd.append(say(ADVICE, "data goes through the journal (data=journal)", why))
    if "ro" not in mount.options and atime in (None, "strictatime"):
        why = f"each read of a file causes a write; {MEASURE}"
        what = "every file read updates its access time (no noatime or relatime)"
        odd.append(say(ADVICE, what, why, remount.format("relatime")))
    told = atime or ("ro" if "ro" in mount.options else "")
    fine = f"no writes of access times on every read, no synchronous writes ({told})"
    yield from odd or [say(OK, fine)]


def swap(scene: Scene) -> Iterator[Finding]:
    """Whether swap lies on the same drive."""
    system = scene.system
    here = {drive.name for drive in scene.drives if not drive.rotational or drive.virtual}
    if not here:
        return
    found = False
    for area in system.swaps():
        try:
            below = look(system, area.path)
        except SsdlabError:
            continue  # in memory, or not to be seen
        shared = sorted(here & {drive.name for drive in below.drives})
        if not shared:
            continue
        found = True
        value = f"{area.path}: {area.used_bytes:,} of {area.size_bytes:,} bytes used"
        seen = (Seen("/proc/swaps", value), *system.evidence("proc/sys/vm/swappiness"))
        say = FindingsAt(", ".join(shared), seen)
        if area.used_bytes == 0:
            yield say(OK, f"swap {area.path} is on it and unused")
            continue
        yield say(
            ADVICE,
            f"swap {area.path} is on it and in use",
            "swapping is small random writes, which wear most, and it disturbs a measurement",
            f"swapoff {area.path}   # for a measurement; more RAM or zram for good",
        )
    if not found:
        say = FindingsAt(", ".join(sorted(here)), system.evidence("proc/swaps"))
        yield say(OK, "there is no swap on it")


def array_state(scene: Scene) -> Iterator[Finding]:
    """Whether md arrays are whole and at rest."""
    for layer in scene.layers:
        if layer.kind != "raid":
            continue
        base = f"{layer.place}/md"
        files = [f"{base}/{one}" for one in ("level", "degraded", "sync_action", "chunk_size")]
        degraded, action = scene.system.number(files[1]), scene.system.read(files[2])
        say = scene.about(layer, *files)
        if degraded:
            yield say(
                PROBLEM,
                f"the array is degraded: {degraded} of its members missing",
                "the next failure may lose the data, and reads of missing data cost reads of all "
                "other members",
                f"mdadm --detail /dev/{layer.name}",
            )
        elif action not in (None, "idle", "frozen"):
            why = "the members are busy with it, so a measurement now measures that too"
            what = f"the array has background work under way ({action})"
            yield say(ADVICE, what, why, "cat /proc/mdstat   # shows its progress")
        elif scene.system.read(files[0]) == "raid0":
            why = "RAID 0 loses everything with one member"
            yield say(OK, "the array is complete; it has no redundancy", why)
        else:
            yield say(OK, "the array is complete")


def loop_cache(scene: Scene) -> Iterator[Finding]:
    """Whether loop devices keep data in RAM a second time."""
    for layer in scene.layers:
        direct = scene.system.read(f"{layer.place}/loop/dio") if layer.kind == "loop" else None
        say = scene.about(layer, f"{layer.place}/loop/dio", f"{layer.place}/loop/backing_file")
        if direct == "1":
            yield say(OK, "the loop device bypasses the cache of the file below it")
        elif direct == "0":
            yield say(
                ADVICE,
                "the loop device goes through the page cache",
                "data is kept in RAM twice, and a measurement through it measures RAM",
                f"losetup --direct-io=on /dev/{layer.name}",
            )


@each_drive
def health(scene: Scene, drive: SystemDrive) -> Iterator[Finding]:
    """What a drive says of its own health."""
    try:
        told = scene.ask(drive.name)
    except SsdlabError as error:
        reason = error.message.removeprefix(f"/dev/{drive.name}: ")
        what, _, install = f"its health could not be checked: {reason}".partition(": sudo ")
        yield scene.about(drive)(UNKNOWN, what, fix=f"sudo {install}" if install else None)
        return
    said = judge(told)
    bad = [finding for finding in said if finding.severity is not Severity.GOOD]
    for finding in bad:
        say = FindingsAt(drive.name, (Seen("SMART", finding.evidence),))
        yield say(_STATUS[finding.severity], finding.what, fix=f"ssdlab health /dev/{drive.name}")
    if not bad:
        say = FindingsAt(drive.name, tuple(Seen("SMART", finding.evidence) for finding in said))
        yield say(OK, "the drive reports no failure, and its rated endurance is not used up")
    if told.is_ssd and drive.rotational and not drive.virtual:
        file = f"{drive.place}/queue/rotational"
        what = "the drive reports that it is an SSD, the kernel treats it as a hard disk"
        yield scene.about(drive, file)(PROBLEM, what, fix=f"echo 0 > /{file}")
