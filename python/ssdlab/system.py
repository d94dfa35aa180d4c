"""A system as its files tell it: this one, or one recorded below a folder; the one reader of /sys,
/proc and the mount table.

Paths are bytes to the kernel and need not be UTF-8. They are decoded as Python decodes its own
arguments (``os.fsdecode``), so that a path read here can be opened and compared.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ssdlab.units import size_text

CLASS = "sys/class/block"
_PAGE = 1 << 16
SECTOR = 512
"""The unit of sizes and starts in /sys, whatever the drive's own."""
COPY_ON_WRITE = frozenset({"btrfs", "zfs", "bcachefs", "nilfs2", "f2fs"})
"""File systems that never write in place."""

Key = tuple[int, ...]
"""What makes two paths or descriptors the same block device, or the same file."""


def key_of(info: os.stat_result) -> Key:
    """The identity of what a path or descriptor leads to."""
    if stat.S_ISBLK(info.st_mode):
        return stat.S_IFBLK, info.st_rdev
    return stat.S_IFREG, info.st_dev, info.st_ino


@dataclass(frozen=True)
class Seen:
    """A file of the system and what it says."""

    file: str
    value: str

    @classmethod
    def of_mount(cls, mount: Mount) -> Seen:
        """The options that a file system is mounted with."""
        return cls("/proc/self/mountinfo", f"{mount.point}: {','.join(mount.options)}")


@dataclass(frozen=True)
class Swap:
    """A line of /proc/swaps."""

    path: str
    kind: str
    """``partition`` or ``file``."""
    size_bytes: int
    used_bytes: int


@dataclass(frozen=True)
class Mount:
    """A mounted file system."""

    point: str
    kind: str
    source: str
    device: str
    """major:minor."""
    options: tuple[str, ...]
    """Of the mount and of the file system."""

    def has(self, *names: str) -> str | None:
        """The first option that is one of ``names`` or starts with one and ``=``."""
        for option in self.options:
            if option in names or option.partition("=")[0] in names:
                return option
        return None


@dataclass(frozen=True)
class FileSystemSpace:
    """Room in a file system."""

    size_bytes: int
    free_bytes: int
    """In free blocks (statvfs's ``f_bfree``): what a TRIM of the whole file system covers."""
    available_bytes: int
    """Free for users (``f_bavail``, what df calls Avail): without the blocks reserved for root."""

    @property
    def sentence(self) -> str:
        """Both kinds of free space, by name."""
        return (
            f"{size_text(self.available_bytes)} free for users, "
            f"{size_text(self.free_bytes)} in free blocks, of {size_text(self.size_bytes)}"
        )


def space(point: str) -> FileSystemSpace:
    """The room of the file system mounted at ``point``; OSError where there is no such path, or no
    permission to reach it."""
    found = os.statvfs(point)
    unit = found.f_frsize
    return FileSystemSpace(found.f_blocks * unit, found.f_bfree * unit, found.f_bavail * unit)


def mounts(table: Path) -> list[Mount]:
    """The lines of a mount table in the order of mounting; none where it cannot be read."""
    try:
        lines = table.read_bytes().split(b"\n")
    except OSError:
        return []
    return [mount for mount in map(_mount, lines) if mount is not None]


def holding(table: list[Mount], path: str) -> Mount | None:
    """The file system of ``table`` that holds an absolute path without links."""
    best: Mount | None = None
    for mount in table:
        inside = mount.point == "/" or path == mount.point or path.startswith(mount.point + "/")
        # The last mount at a point hides those before.
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def plain(field: bytes) -> str:
    """A path in a table of the kernel or in /etc/fstab, its octal escapes undone."""
    return os.fsdecode(re.sub(rb"\\([0-3][0-7]{2})", lambda m: bytes([int(m[1], 8)]), field))


def _mount(line: bytes) -> Mount | None:
    # Only blanks separate fields; other white space may be part of a name.
    left, _, right = line.partition(b" - ")
    fields, more = left.split(b" "), right.split(b" ")
    if len(fields) < 6 or len(more) < 2:
        return None
    options = b",".join((fields[5], *more[2:3])).split(b",")
    return Mount(
        point=plain(fields[4]),
        kind=os.fsdecode(more[0]),
        source=plain(more[1]),
        device=os.fsdecode(fields[2]),
        options=tuple(dict.fromkeys(map(os.fsdecode, options))),
    )


def system_program(name: str) -> str | None:
    """The path of an administrator's program, also where sbin is not on the user's PATH."""
    path = os.environ.get("PATH", os.defpath)
    return shutil.which(name, path=f"{path}:/usr/sbin:/sbin")


def printed(command: list[str]) -> tuple[int, str]:
    """Exit status and output of a program that answers at once; 127 and nothing where it cannot be
    started or takes longer than 20 s."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return 127, ""
    return done.returncode, done.stdout


class System:
    """Reads /sys, /proc and /etc below ``root``; never anything outside it, and writes nothing.
    ``space`` tells the room of a mounted file system, which no file does: by default the running
    system is asked, and a recorded one has no answer."""

    def __init__(
        self, root: Path | str = "/", space: Callable[[str], FileSystemSpace | None] | None = None
    ) -> None:
        self.root = Path(root)
        self.live = self.root == Path("/")
        self._space = space

    def space(self, point: str) -> FileSystemSpace | None:
        """The room of the file system mounted there; None where nobody tells."""
        if self._space is not None or not self.live:
            return self._space(point) if self._space is not None else None
        try:
            return space(point)
        except OSError:
            return None

    def read(self, place: str) -> str | None:
        """The text of a small file, such as ``sys/class/block/sda/size``; None where there is none
        or it cannot be read."""
        try:
            content = (self.root / place).read_bytes()[:4096]
        except OSError:
            return None
        return content.decode("utf-8", "replace").strip(" \n\t\x00") or None

    def number(self, place: str) -> int | None:
        """The file's text as a whole number."""
        found = self.read(place)
        return int(found) if found is not None and re.fullmatch(r"-?[0-9]{1,30}", found) else None

    def of(self, name: str | None, file: str) -> str | None:
        """What a file of a block device says, such as ``queue/scheduler``; None without one."""
        return None if name is None else self.read(f"{CLASS}/{name}/{file}")

    def bytes_of(self, name: str | None) -> int:
        """The size of a block device; 0 where there is none."""
        return SECTOR * int(self.of(name, "size") or 0)

    def chosen(self, place: str) -> str | None:
        """The file's text; where it lists choices (``[none] mq-deadline``) the one in brackets."""
        found = self.read(place)
        active = re.search(r"\[([\w-]+)\]", found or "")
        return active[1] if active else found

    def evidence(self, *places: str) -> tuple[Seen, ...]:
        """What these files say, without those that say nothing."""
        told = ((place, self.read(place)) for place in places)
        return tuple(Seen(f"/{place}", value) for place, value in told if value is not None)

    def exists(self, place: str) -> bool:
        """Whether there is such a file, or a link of that name wherever it points to."""
        path = self.root / place
        try:
            return path.exists() or path.is_symlink()
        except OSError:
            return False

    def listed(self, place: str) -> list[str]:
        """The names in a folder; none where it cannot be read."""
        try:
            return sorted(os.listdir(self.root / place))
        except OSError:
            return []

    def glob(self, pattern: str) -> list[str]:
        """The places that a pattern fits, such as ``sys/class/block/nvme0n*``."""
        return sorted(str(path.relative_to(self.root)) for path in self.root.glob(pattern))

    def resolve(self, place: str) -> str:
        """The place with links followed, still below the root."""
        path = (self.root / place).resolve()
        try:
            return str(path.relative_to(self.root.resolve()))
        except ValueError:
            return place

    @property
    def boot(self) -> str | None:
        """What tells one start of the system from another."""
        return self.read("proc/sys/kernel/random/boot_id")

    def processes(self) -> list[int]:
        """The processes that /proc shows."""
        return sorted(int(name) for name in self.listed("proc") if name.isdigit())

    @cached_property
    def descriptors(self) -> Mapping[Key, Sequence[int]]:
        """The processes that have it open at the first look, for all that is open."""
        found: dict[Key, list[int]] = {}
        for pid in self.processes():
            for key, _ in self.descriptors_of(pid):
                found.setdefault(key, []).append(pid)
        return found

    def descriptors_of(self, pid: int) -> Iterator[tuple[Key, str]]:
        """What a process has open now, and the numbers of its descriptors."""
        for name in self.listed(f"proc/{pid}/fd"):
            link = f"{self.root}/proc/{pid}/fd/{name}"
            with contextlib.suppress(OSError):  # closed meanwhile
                key = self.key(link if self.live else os.readlink(link))  # noqa: PTH115
                if key is not None:
                    yield key, name

    @cached_property
    def maps(self) -> Sequence[tuple[int, bytes]]:
        """The processes and their tables of mappings at the first look."""
        return [(pid, self.maps_of(pid)) for pid in self.processes()]

    def maps_of(self, pid: int) -> bytes:
        """What a process maps now (proc(5)); empty where it has ended, or is another user's."""
        # By descriptor: what Python's files ask besides takes half as long again.
        try:
            descriptor = os.open(f"{self.root}/proc/{pid}/maps", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            return b"".join(iter(lambda: os.read(descriptor, _PAGE), b""))
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    def mounts_everywhere(self) -> Iterator[tuple[int | None, Mount]]:
        """What is mounted in any mount namespace that /proc shows: the own one first, with None,
        then each other with a process that lives in it."""
        yield from ((None, mount) for mount in self.mounts())
        seen = {self._link("proc/self/ns/mnt")}
        for process in self.processes():
            namespace = self._link(f"proc/{process}/ns/mnt")
            if namespace is not None and namespace not in seen:
                seen.add(namespace)
                yield from ((process, mount) for mount in self.mounts(str(process)))

    def _link(self, place: str) -> str | None:
        try:
            return str((self.root / place).readlink())
        except OSError:
            return None  # ended, or another user's

    def program(self, name: str, *arguments: str) -> str | None:
        """What an administrator's program prints; None where it is missing or fails. A recorded
        system has the answer in ``programs/NAME``."""
        if not self.live:
            return self.read(f"programs/{name}")
        path = system_program(name)
        if path is None:
            return None
        status, text = printed([path, *arguments])
        return text if status == 0 else None

    def path(self, place: str) -> str | None:
        """The path that a file of /sys holds, which need not be UTF-8."""
        try:
            return os.fsdecode((self.root / place).read_bytes().removesuffix(b"\n")) or None
        except OSError:
            return None

    def table(self, place: str) -> list[list[bytes]]:
        """The fields of a file in columns, such as /proc/swaps or /etc/fstab."""
        try:
            lines = (self.root / place).read_bytes().split(b"\n")
        except OSError:
            return []
        return [re.findall(rb"[^ \t]+", line) for line in lines]

    def mounts(self, process: str = "self") -> list[Mount]:
        """What is mounted, as a process sees it, in the order of mounting."""
        return mounts(self.root / f"proc/{process}/mountinfo")

    def mount_of(self, path: str) -> Mount | None:
        """The mounted file system that holds an absolute path."""
        return holding(self.mounts(), path)

    def is_on(self, mount: Mount, name: str) -> bool:
        """Whether a file system lies on the device called ``name``."""
        # btrfs mounts under a number of its own; only its source tells the device.
        return mount.device == self.of(name, "dev") or (
            mount.source.startswith("/") and self.device_called(mount.source) == name
        )

    def mount_on(self, name: str) -> Mount | None:
        """The file system on the device called ``name``, as this process sees it."""
        return next((mount for mount in self.mounts() if self.is_on(mount, name)), None)

    def mapped_by(self, name: str) -> str | None:
        """What made a device of the device mapper; None of any other device."""
        if self.of(name, "dm/name") is None:
            return None
        uuid = self.of(name, "dm/uuid") or ""
        kinds = {"LVM-": "LVM", "CRYPT-": "dm-crypt", "mpath-": "multipath"}
        found = (word for start, word in kinds.items() if uuid.startswith(start))
        return next(found, "device mapper")

    def swaps(self) -> list[Swap]:
        """The swap areas in use."""
        found = []
        for fields in self.table("proc/swaps")[1:]:
            if len(fields) >= 4 and fields[2].isdigit() and fields[3].isdigit():
                sizes = int(fields[2]) * 1024, int(fields[3]) * 1024
                found.append(Swap(plain(fields[0]), os.fsdecode(fields[1]), *sizes))
        return found

    def key(self, path: str) -> Key | None:
        """The identity of the block device or file at an absolute path; None where none is."""
        if not self.live and (name := self.device_called(path)) is not None:
            return self.device_key(name)
        try:
            # By text instead of Path, as a system has tens of thousands of descriptors.
            return key_of(os.stat(path if self.live else f"{self.root}{path}"))  # noqa: PTH116
        except OSError:
            return None

    def device_key(self, name: str) -> Key | None:
        """The identity of the block device that the kernel calls ``name``."""
        major, colon, minor = (self.of(name, "dev") or "").partition(":")
        return (stat.S_IFBLK, os.makedev(int(major), int(minor))) if colon else None

    def device_called(self, path: str) -> str | None:
        """The kernel's name of the block device ``/dev/...``, by name or by device mapper name."""
        if self.live:
            try:
                number = Path(path).stat().st_rdev
            except OSError:
                return None
            return self.device_numbered(f"{os.major(number)}:{os.minor(number)}")
        name = path.removeprefix("/dev/")
        if self.exists(f"{CLASS}/{name}"):
            return name
        mapped = name.removeprefix("mapper/")
        for one in self.listed(CLASS):
            if self.of(one, "dm/name") == mapped:
                return one
        return None

    def device_numbered(self, number: str) -> str | None:
        """The kernel's name of the block device with a number such as ``8:1``."""
        if self.live:
            place = f"sys/dev/block/{number}"
            return Path(self.resolve(place)).name if number and self.exists(place) else None
        return next((one for one in self.listed(CLASS) if self.of(one, "dev") == number), None)

    def is_partition(self, name: str) -> bool:
        """Whether the device called ``name`` is a part of a disk."""
        return self.exists(f"{CLASS}/{name}/partition")

    def partitions(self, disk: str) -> list[str]:
        """The partitions of a disk."""
        names = self.listed(f"{CLASS}/{disk}")
        return [name for name in names if self.exists(f"{CLASS}/{disk}/{name}/partition")]

    def disk_of(self, name: str) -> str:
        """The disk of a partition; the name itself otherwise."""
        place = self.resolve(f"{CLASS}/{name}")
        return Path(place).parent.name if self.is_partition(name) else name

    def disk_holding(self, path: Path) -> str | None:
        """The kernel's name of the one disk below the file system of ``path``, if it is one."""
        try:
            number = path.stat().st_dev
        except OSError:
            return None
        name = self.device_numbered(f"{os.major(number)}:{os.minor(number)}")
        if name is None and (mount := self.mount_of(str(path))) and mount.source.startswith("/"):
            name = self.device_called(mount.source)
        return None if name is None else self.disk_of(name)

    def disk_below(self, path: Path) -> str | None:
        """The kernel's name of the disk that ``path`` is, or lies on, or would if it were made."""
        try:
            if path.is_block_device():
                name = self.device_called(str(path))
                return None if name is None else self.disk_of(name)
        except OSError:
            return None
        whole = path.absolute()
        return self.disk_holding(whole if whole.exists() else whole.parent)

    def backing_file(self, name: str) -> str | None:
        """The path of the file that a loop device is; None where it is no loop device."""
        return self.path(f"{CLASS}/{name}/loop/backing_file")
