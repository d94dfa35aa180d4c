"""What is mounted where, and how much room it has: the one reader of the kernel's mount table.

Paths are bytes to the kernel and need not be UTF-8. They are decoded as Python decodes its own
arguments (``os.fsdecode``), so that a path read here can be opened and compared.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ssdlab.units import size_text

MOUNTINFO = Path("/proc/self/mountinfo")


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
        for one in self.options:
            if one in names or one.partition("=")[0] in names:
                return one
        return None


@dataclass(frozen=True)
class Space:
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


def space(point: str) -> Space:
    """The room of the file system mounted at ``point``.

    Raises:
        OSError: there is no such path, or no permission to reach it.
    """
    found = os.statvfs(point)
    unit = found.f_frsize
    return Space(found.f_blocks * unit, found.f_bfree * unit, found.f_bavail * unit)


def mounts(table: Path = MOUNTINFO) -> list[Mount]:
    """The lines of a mount table in the order of mounting; none where it cannot be read."""
    try:
        lines = table.read_bytes().split(b"\n")
    except OSError:
        return []
    return [one for one in map(_mount, lines) if one is not None]


def holding(table: list[Mount], path: str) -> Mount | None:
    """The file system of ``table`` that holds an absolute path without links."""
    best: Mount | None = None
    for one in table:
        inside = one.point == "/" or path == one.point or path.startswith(one.point + "/")
        # The last mount at a point hides those before.
        if inside and (best is None or len(one.point) >= len(best.point)):
            best = one
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
