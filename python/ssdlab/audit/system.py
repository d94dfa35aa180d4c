"""A system as its files tell it: this one, or one recorded below a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ssdlab.audit.model import Evidence

CLASS = "sys/class/block"


@dataclass(frozen=True)
class Mount:
    """A mounted file system."""

    point: str
    kind: str
    source: str
    device: str
    """major:minor."""
    options: tuple[str, ...]

    @property
    def evidence(self) -> Evidence:
        """Its options."""
        return Evidence("/proc/self/mountinfo", f"{self.point}: {','.join(self.options)}")

    def has(self, *names: str) -> str | None:
        """The first option that is one of ``names`` or begins with one and ``=``."""
        for one in self.options:
            if one in names or one.partition("=")[0] in names:
                return one
        return None


@dataclass(frozen=True)
class Swap:
    """A line of /proc/swaps."""

    path: str
    kind: str
    """``partition`` or ``file``."""
    size_bytes: int
    used_bytes: int


@dataclass(frozen=True)
class Space:
    """Room in a file system."""

    size_bytes: int
    free_bytes: int
    """For users."""


def _statvfs(point: str) -> Space | None:
    try:
        found = os.statvfs(point)
    except OSError:
        return None
    return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


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
            _statvfs if self.live else lambda _point: None
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

    def mounts(self) -> list[Mount]:
        """What is mounted, as the own process sees it, in the order of mounting."""
        try:
            text = (self.root / "proc/self/mountinfo").read_text("utf-8", errors="replace")
        except OSError:
            return []
        found = []
        for line in text.splitlines():
            left, _, right = line.partition(" - ")
            fields, more = left.split(), right.split()
            if len(fields) < 6 or len(more) < 2:
                continue
            options = fields[5].split(",") + (more[2].split(",") if len(more) > 2 else [])
            found.append(
                Mount(
                    point=_plain(fields[4]),
                    kind=more[0],
                    source=_plain(more[1]),
                    device=fields[2],
                    options=tuple(dict.fromkeys(options)),
                )
            )
        return found

    def mount_of(self, path: str) -> Mount | None:
        """The mounted file system that holds an absolute path."""
        best: Mount | None = None
        for one in self.mounts():
            inside = one.point == "/" or path == one.point or path.startswith(one.point + "/")
            # The last mount at a point hides those before.
            if inside and (best is None or len(one.point) >= len(best.point)):
                best = one
        return best

    def swaps(self) -> list[Swap]:
        """The swap areas in use."""
        found = []
        for line in (self.read("proc/swaps") or "").splitlines()[1:]:
            fields = line.split()
            if len(fields) >= 4 and fields[2].isdigit() and fields[3].isdigit():
                sizes = int(fields[2]) * 1024, int(fields[3]) * 1024
                found.append(Swap(_plain(fields[0]), fields[1], *sizes))
        return found

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


def _plain(text: str) -> str:
    """A field of /proc with its octal escapes undone."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)
