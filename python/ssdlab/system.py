"""A system as its files tell it: this one, or one recorded below a folder."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ssdlab.fio.mounts import Mount, Space, holding, mounts, plain, space
from ssdlab.fio.surroundings import system_program

CLASS = "sys/class/block"
SECTOR = 512
"""The unit of sizes and starts in /sys, whatever the drive's own."""

Key = tuple[int, ...]
"""What makes two paths or descriptors the same block device, or the same file."""


def key_of(info: os.stat_result) -> Key:
    """The identity of what a path or descriptor leads to."""
    if stat.S_ISBLK(info.st_mode):
        return stat.S_IFBLK, info.st_rdev
    return stat.S_IFREG, info.st_dev, info.st_ino


@dataclass(frozen=True)
class Evidence:
    """A file of the system and what it says."""

    file: str
    value: str

    @classmethod
    def of_mount(cls, mount: Mount) -> Evidence:
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


def _space(point: str) -> Space | None:
    try:
        return space(point)
    except OSError:
        return None


class System:
    """Reads /sys, /proc and /etc below ``root``; never anything outside it, and writes nothing.

    ``space`` tells the room of a mounted file system, which no file does; by default the running
    system is asked, and a recorded one has no answer.
    """

    def __init__(
        self, root: Path | str = "/", space: Callable[[str], Space | None] | None = None
    ) -> None:
        self.root = Path(root)
        self.live = self.root == Path("/")
        self.space: Callable[[str], Space | None] = space or (
            _space if self.live else lambda _point: None
        )

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

    def chosen(self, place: str) -> str | None:
        """The file's text; where it lists choices (``[none] mq-deadline``) the one in brackets."""
        found = self.read(place)
        active = re.search(r"\[([\w-]+)\]", found or "")
        return active[1] if active else found

    def evidence(self, *places: str) -> tuple[Evidence, ...]:
        """What these files say, without those that say nothing."""
        told = ((place, self.read(place)) for place in places)
        return tuple(Evidence(f"/{place}", value) for place, value in told if value is not None)

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
            return sorted(one.name for one in (self.root / place).iterdir())
        except OSError:
            return []

    def resolve(self, place: str) -> str:
        """The place with links followed, still below the root."""
        path = (self.root / place).resolve()
        try:
            return str(path.relative_to(self.root.resolve()))
        except ValueError:
            return place

    def processes(self) -> list[int]:
        """The processes that /proc shows."""
        return sorted(int(name) for name in self.listed("proc") if name.isdigit())

    def mounts_everywhere(self) -> Iterator[tuple[int | None, Mount]]:
        """What is mounted in any mount namespace that /proc shows: the own one first, with None,
        then each other with a process that lives in it."""
        yield from ((None, one) for one in self.mounts())
        seen = {self._link("proc/self/ns/mnt")}
        for process in self.processes():
            namespace = self._link(f"proc/{process}/ns/mnt")
            if namespace is not None and namespace not in seen:
                seen.add(namespace)
                yield from ((process, one) for one in self.mounts(str(process)))

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
        try:
            done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

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
            return key_of(Path(path if self.live else f"{self.root}{path}").stat())
        except OSError:
            return None

    def device_key(self, name: str) -> Key | None:
        """The identity of the block device that the kernel calls ``name``."""
        major, colon, minor = (self.read(f"{CLASS}/{name}/dev") or "").partition(":")
        return (stat.S_IFBLK, os.makedev(int(major), int(minor))) if colon else None

    def device_called(self, path: str) -> str | None:
        """The kernel's name of the block device ``/dev/...``, by name or by device mapper name."""
        if self.live:
            return _name_by_node(path)
        name = path.removeprefix("/dev/")
        if self.exists(f"{CLASS}/{name}"):
            return name
        mapped = name.removeprefix("mapper/")
        for one in self.listed(CLASS):
            if self.read(f"{CLASS}/{one}/dm/name") == mapped:
                return one
        return None

    def device_numbered(self, number: str) -> str | None:
        """The kernel's name of the block device with a number such as ``8:1``."""
        for one in self.listed(CLASS):
            if self.read(f"{CLASS}/{one}/dev") == number:
                return one
        return None


def _name_by_node(path: str) -> str | None:
    try:
        number = Path(path).stat().st_rdev
    except OSError:
        return None
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    return link.resolve().name if number and link.exists() else None
