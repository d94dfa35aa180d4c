"""Who uses a block device or a file: the one question that is asked before anything is written.

Looked at are mounts of all mount namespaces, swap, what the kernel has stacked on a device (RAID,
LVM, encryption, bcache, loop devices, also on a part of it), programs that have it open for
writing, exported targets (LIO, nvmet) and imported ZFS pools. What lies below a device is asked
too: the file behind a loop device, the members of a stack.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import stat
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssdlab.errors import SsdlabError
from ssdlab.opened import descriptor_of
from ssdlab.system import CLASS, Key, System, key_of

_LOOP_GET_STATUS64 = 0x4C05
_DEEPEST = 16
_CONFIG = "sys/kernel/config"
# Of a file, behind the address: mode, offset, device, inode and path (proc(5)).
_MAPPING = re.compile(rb" (\S{4}) \S+ (\S+) ([0-9]+) +/")
_SHARED = re.compile(rb" (\S{3}s) \S+ (\S+) ([0-9]+) +/")


@dataclass(frozen=True)
class Use:
    """One use of a device or file."""

    kind: str
    """``mount``, ``swap``, ``holder``, ``bcache``, ``loop``, ``open``, ``export``, ``zfs`` or
    ``partition``."""
    sentence: str
    """What goes after the name of what was asked about: ``is mounted at /srv; unmount it``."""
    partition: str = ""
    """Of a partition table: the first partition."""


def of_device(system: System, name: str, *, mounted: bool = False) -> list[Use]:
    """Who uses the block device that the kernel calls ``name``; ``mounted``: other than by mounts
    of itself."""
    uses = list(_used(system, name, "", mounted=mounted))
    held = system.partitions(name)
    for part in held:
        uses += _used(system, part, f"its partition {part} ")
    if system.is_partition(name):
        disk = system.disk_of(name)
        uses += _reached(system, disk, f"its drive {disk} ")
    uses += _below(system, name, 0)
    if held:
        named = f"holds a partition table (partitions {', '.join(held)})"
        uses.append(Use("partition", named, held[0]))
    return uses


def of_file(system: System, path: str) -> list[Use]:
    """Who uses the plain file at an absolute path."""
    key = system.key(path)
    return [] if key is None else list(_file(system, key, "", None))


def open_elsewhere(path: Path) -> bool:
    """Whether anybody has a plain file open for writing, the kernel included, by a read lease
    (fcntl(2), F_SETLEASE), which the kernel grants only where nobody has, and which is given back
    at once. False also where the file system knows no leases."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        # Should somebody open it just now, the signal that tells of it must not end this process.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        return False
    finally:
        os.close(descriptor)


def _used(system: System, name: str, who: str, *, mounted: bool = False) -> Iterator[Use]:
    """Uses of one device or partition by itself."""
    if not mounted:
        yield from _mounts(system, name, who)
    if any(system.key(swap.path) == system.device_key(name) for swap in system.swaps()):
        yield Use("swap", f"{who}is in use as swap; swapoff it first")
    if holders := system.listed(f"{CLASS}/{name}/holders"):
        stacked = ", ".join(_titled(system, holder) for holder in holders)
        yield Use("holder", f"{who}is in use by {stacked}")
    elif system.exists(f"{CLASS}/{name}/bcache"):
        yield Use("bcache", f"{who}is registered with bcache")
    yield from _reached(system, name, who)


def _reached(system: System, name: str, who: str) -> Iterator[Use]:
    """Uses by those who reach all of a device past what the kernel has stacked on it."""
    key = system.device_key(name)
    if key is None:
        return
    yield from _loops(system, key, who, None)
    # The client behind a network block device is what makes it, not who uses it.
    own = system.number(f"{CLASS}/{name}/pid")
    yield from _open(system, key, who, own)
    yield from _exports(system, key, who)
    yield from _pools(system, key, who)


def _below(system: System, name: str, depth: int, above: str = "") -> Iterator[Use]:
    """Uses of what a device is made of, by others than the device."""
    if depth > _DEEPEST:
        return
    backing = system.backing_file(name)
    key = _behind(system, name) if backing else None
    if backing and key and key[0] == stat.S_IFBLK:
        who = f"{above}its backing device {backing} "
        yield from _loops(system, key, who, name)
        yield from _open(system, key, who, None)
    elif backing and key:
        yield from _file(system, key, f"{above}its backing file {backing} ", name)
    for slave in system.listed(f"{CLASS}/{name}/slaves"):
        yield from _reached(system, slave, f"{above}its member {slave} ")
        yield from _below(system, slave, depth + 1, f"{above}its member {slave}: ")


def _file(system: System, key: Key, who: str, above: str | None) -> Iterator[Use]:
    if any(system.key(swap.path) == key for swap in system.swaps()):
        yield Use("swap", f"{who}is in use as swap; swapoff it first")
    yield from _loops(system, key, who, above)
    yield from _open(system, key, who, None)
    yield from _exports(system, key, who)
    yield from _pools(system, key, who)


def _mounts(system: System, name: str, who: str) -> Iterator[Use]:
    for process, mount in system.mounts_everywhere():
        if system.is_on(mount, name):
            where = "" if process is None else f" in the mount namespace of process {process}"
            yield Use("mount", f"{who}is mounted at {mount.point}{where}; unmount it first")
            return


def _loops(system: System, key: Key, who: str, above: str | None) -> Iterator[Use]:
    for name in system.listed(CLASS):
        if name == above or system.backing_file(name) is None:
            continue
        if _behind(system, name) == key:
            offset = system.number(f"{CLASS}/{name}/loop/offset") or 0
            at = f" (from byte {offset})" if offset else ""
            yield Use(
                "loop", f"{who}is behind the loop device {name}{at}; losetup --detach it first"
            )


def _behind(system: System, loop: str) -> Key | None:
    """What a loop device is set up on."""
    found = system.key(system.backing_file(loop) or "")
    if found is not None or not system.live:
        return found
    # Deleted, or named in another mount namespace: the kernel knows it all the same.
    try:
        with descriptor_of(Path("/dev") / loop, os.O_RDONLY | os.O_NONBLOCK) as descriptor:
            status = fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, bytes(232))
    except (OSError, SsdlabError):
        return None
    device, inode, number = struct.unpack_from("QQQ", status)
    return (stat.S_IFBLK, number) if number else (stat.S_IFREG, device, inode)


def _open(system: System, key: Key, who: str, own: int | None) -> Iterator[Use]:
    writers = [opener for opener in openers(system, key) if opener.writes and opener.pid != own]
    if writers:
        names = ", ".join(sorted({str(writer) for writer in writers}))
        yield Use("open", f"{who}is open for writing by {names}; stop that first")


def _exports(system: System, key: Key, who: str) -> Iterator[Use]:
    """Targets that the kernel serves to other machines: LIO (iSCSI, FC) and nvmet."""
    for core in system.listed(f"{_CONFIG}/target/core"):
        for name in system.listed(f"{_CONFIG}/target/core/{core}"):
            path = system.read(f"{_CONFIG}/target/core/{core}/{name}/udev_path")
            if path and system.key(path) == key:
                yield Use("export", f"{who}is exported by the SCSI target (LIO) as {core}/{name}")
    for subsystem in system.listed(f"{_CONFIG}/nvmet/subsystems"):
        place = f"{_CONFIG}/nvmet/subsystems/{subsystem}/namespaces"
        for number in system.listed(place):
            path = system.read(f"{place}/{number}/device_path")
            if path and system.key(path) == key:
                yield Use(
                    "export", f"{who}is exported by nvmet as namespace {number} of {subsystem}"
                )


def _pools(system: System, key: Key, who: str) -> Iterator[Use]:
    """ZFS shows its vdevs nowhere but in its own program."""
    if not system.exists("proc/spl"):
        return
    for line in (system.program("zpool", "list", "-vHPL") or "").splitlines():
        if any(one.startswith("/") and system.key(one) == key for one in line.split("\t")):
            yield Use("zfs", f"{who}is a member of an imported ZFS pool")


def _titled(system: System, name: str) -> str:
    """A device that the kernel has stacked on another, for people."""
    if (kind := system.mapped_by(name)) is not None:
        return f"{name} ({kind} {system.of(name, 'dm/name')})"
    if (level := system.of(name, "md/level")) is not None:
        return f"{name} (md {level})"
    return f"{name} (bcache)" if name.startswith("bcache") else name


# --- who has it open, as far as /proc shows that to this user


@dataclass(frozen=True)
class Opener:
    """A process that has the file open."""

    pid: int
    program: str
    writes: bool
    """Whether it opened the file for writing, or maps it so."""

    def __str__(self) -> str:
        return f"{self.program} (process {self.pid})"


def openers_of(path: Path) -> list[Opener]:
    """The other processes that have ``path`` open. Other users' are seen by root alone."""
    return openers(System(), key_of(path.stat()))


def openers(system: System, wanted: Key) -> list[Opener]:
    """The other processes that have open what ``wanted`` identifies; in a recorded system the
    descriptors are links to the names of devices and files there. A system is looked at once: who
    asks again makes another one."""
    mapped = (pid for pid, _ in _mapped(system, system.maps, wanted))
    found = []
    for pid in sorted({*system.descriptors.get(wanted, ()), *mapped}):
        # Asked before the second look: what was a copy of this process at the first, and is another
        # program by now, has none of its descriptors left.
        if system.live and _is_own(system, pid):
            continue
        if modes := list(_modes(system, pid, wanted)):
            program = system.read(f"proc/{pid}/comm") or "a program"
            found.append(Opener(pid, program, any(modes)))
    return found


def _is_own(system: System, pid: int) -> bool:
    """Whether it is this process, or a copy of it that is about to become another program."""
    if pid == os.getpid():
        return True
    # After the program's name, which may hold anything, in brackets: state and parent (proc(5)).
    fields = (system.read(f"proc/{pid}/stat") or "").rpartition(")")[2].split()
    own = system.read("proc/self/cmdline")
    return fields[1:2] == [str(os.getpid())] and system.read(f"proc/{pid}/cmdline") == own


def unseen(system: System) -> bool:
    """Whether there are processes whose descriptors this user may not see."""
    return any(not os.access(system.root / f"proc/{pid}/fd", os.R_OK) for pid in system.processes())


def _modes(system: System, pid: int, wanted: Key) -> Iterator[bool]:
    """For each descriptor or mapping of a process that is the file: whether it can be written."""
    for key, name in system.descriptors_of(pid):
        if key == wanted:
            yield _writes(system.read(f"proc/{pid}/fdinfo/{name}") or "")
    # A mapping outlives its descriptor.
    yield from (mode for _, mode in _mapped(system, [(pid, system.maps_of(pid))], wanted))


def _mapped(
    system: System, tables: Sequence[tuple[int, bytes]], wanted: Key
) -> Iterator[tuple[int, bool]]:
    """The processes that map the file by these tables, and whether what they write reaches it."""
    block = wanted[0] == stat.S_IFBLK
    # What is no node of the device in one process is none in another; nodes may lie anywhere.
    others: set[tuple[bytes, bytes]] = set()
    for pid, maps in tables:
        # Those of a file have its inode. The maps of a machine are megabytes.
        if not block and b" %d " % wanted[2] not in maps:
            continue
        # What is written to a private mapping of a device does not reach it.
        for found in (_SHARED if block else _MAPPING).finditer(maps):
            mode, device, inode = found.groups()
            if (device, inode) in others:
                continue
            if block:
                place = maps[maps.rfind(b"\n", 0, found.start()) + 1 : found.start()]
                key = system.key(f"/proc/{pid}/map_files/{os.fsdecode(place)}")
            else:
                key = stat.S_IFREG, _device(device), int(inode)
            if key == wanted:
                yield pid, b"w" in mode and mode.endswith(b"s")
            elif key is not None:
                others.add((device, inode))


def _writes(fdinfo: str) -> bool:
    match = re.search(r"^flags:\s*(\d+)", fdinfo, re.MULTILINE)
    return match is not None and int(match[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _device(text: bytes) -> int:
    major, _, minor = text.partition(b":")
    return os.makedev(int(major, 16), int(minor, 16))
