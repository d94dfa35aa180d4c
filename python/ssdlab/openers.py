"""Who has a file or device open, as far as /proc shows it to this user."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class Opener:
    """A process with the file open."""

    pid: int
    program: str
    writes: bool
    """Whether it opened the file for writing, or maps it so."""

    def __str__(self) -> str:
        return f"{self.program} (process {self.pid})"


def openers_of(path: Path) -> list[Opener]:
    """The other processes that have ``path`` open. Other users' are seen by root alone."""
    wanted = _key(path.stat())
    found = []
    for place in _PROC.iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            modes = list(_modes(place, wanted))
            if modes:
                found.append(Opener(int(place.name), _program(place), any(modes)))
    return sorted(found, key=lambda one: one.pid)


def _modes(place: Path, wanted: tuple[int, ...]) -> Iterator[bool]:
    """For each descriptor of a process that is the file: whether it is open for writing."""
    try:
        descriptors = list((place / "fd").iterdir())
    except OSError:
        return  # ended, or another user's
    for one in descriptors:
        try:
            if _key(one.stat()) == wanted:
                yield _writes((place / "fdinfo" / one.name).read_text("ascii"))
        except (OSError, ValueError):
            continue
    # A mapping outlives its descriptor.
    if wanted[0] != stat.S_IFBLK:
        try:
            lines = (place / "maps").read_text("utf-8", "replace").splitlines()
        except OSError:
            return
        inode = str(wanted[2])
        for fields in (line.split(maxsplit=5) for line in lines):
            if len(fields) == 6 and fields[4] == inode and _device(fields[3]) == wanted[1]:
                yield "w" in fields[1] and fields[1].endswith("s")


def _key(info: os.stat_result) -> tuple[int, ...]:
    """What makes two descriptors the same file, or the same block device."""
    if stat.S_ISBLK(info.st_mode):
        return stat.S_IFBLK, info.st_rdev
    return stat.S_IFREG, info.st_dev, info.st_ino


def _writes(fdinfo: str) -> bool:
    match = re.search(r"^flags:\s*(\d+)", fdinfo, re.MULTILINE)
    return match is not None and int(match[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _device(text: str) -> int:
    major, _, minor = text.partition(":")
    return os.makedev(int(major, 16), int(minor, 16))


def _program(place: Path) -> str:
    try:
        return (place / "comm").read_text("utf-8", "replace").strip() or "a program"
    except OSError:
        return "a program"
