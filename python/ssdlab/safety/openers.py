"""Who has a file or block device open, as far as /proc shows it to this user."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ssdlab.system import Key, System, key_of


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
    """The other processes that have open what ``wanted`` identifies.

    In a recorded system the descriptors are links to the names of devices and files there.
    """
    found = []
    for pid in system.processes():
        if system.live and _is_own(system, pid):
            continue
        modes = list(_modes(system, pid, wanted))
        if modes:
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
    place = system.root / f"proc/{pid}"
    for name in system.listed(f"proc/{pid}/fd"):
        if _is(system, place / "fd" / name, wanted):
            yield _writes(system.read(f"proc/{pid}/fdinfo/{name}") or "")
    # A mapping outlives its descriptor.
    for line in _lines(place / "maps"):
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/") and _maps(place, fields, wanted):
            yield "w" in fields[1] and fields[1].endswith("s")


def _is(system: System, link: Path, wanted: Key) -> bool:
    try:
        if system.live:
            return key_of(link.stat()) == wanted
        return system.key(str(link.readlink())) == wanted
    except OSError:
        return False  # closed meanwhile


def _maps(place: Path, fields: list[str], wanted: Key) -> bool:
    if wanted[0] == stat.S_IFBLK:
        try:
            return key_of((place / "map_files" / fields[0]).stat()) == wanted
        except OSError:
            return False
    return fields[4] == str(wanted[2]) and _device(fields[3]) == wanted[1]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []  # ended, or another user's


def _writes(fdinfo: str) -> bool:
    match = re.search(r"^flags:\s*(\d+)", fdinfo, re.MULTILINE)
    return match is not None and int(match[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _device(text: str) -> int:
    major, _, minor = text.partition(":")
    return os.makedev(int(major, 16), int(minor, 16))
