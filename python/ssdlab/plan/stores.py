"""Storage as planners write it: a drive, an array of equal drives, a cache before either."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdlab.arrays.rigs import (
    CHUNK,
    LEVELS,
    MEMBERS_MIN,
    STRIPED,
    Drive,
    Shape,
    device_of,
    shipped,
    toml_text,
)  # fmt: skip
from ssdlab.errors import InputError, unknown_name
from ssdlab.jobfile import read_text
from ssdlab.rig import profiles
from ssdlab.units import parse_bytes

FORMS = "NAME, FILE.toml, or LEVEL:COUNT:NAME[:CHUNK] such as raid10:6:seagate-constellation-500"
"""What :func:`store` reads, for help texts and messages."""
MODES = ("write-back", "write-through", "write-around", "write-around-fill", "write-only")
"""What becomes of writes in a cache, as in the rigs."""


@dataclass(frozen=True)
class Store:
    """A drive, or an array of equal drives, and what is bought for it."""

    text: str
    """As it was written."""
    title: str
    """Such as ``6 x seagate-constellation-500, RAID 10``."""
    device: Mapping[str, Any]
    """The table ``device`` of its rig."""
    bill: Mapping[str, int]
    """Drives by name."""
    redundant: bool
    """Whether the loss of one drive loses nothing."""

    def rig(self) -> str:
        """A rig of this alone, as TOML."""
        return toml_text({"name": self.text, "summary": self.title, "device": dict(self.device)})


def store(text: str) -> Store:
    """The storage that ``text`` means (:data:`FORMS`).

    Raises InputError where it means none.
    """
    parts = text.strip().split(":")
    if len(parts) == 1 or parts[0].endswith(".toml"):
        drive = _drive(text.strip())
        device = device_of(drive)
        # A rig file may itself be an array; what it survives is its own affair.
        redundant = device.get("kind") == "array" and device.get("level") != "raid0"
        return Store(text, drive.name, device, {drive.name: 1}, redundant)
    if len(parts) not in (3, 4):
        raise InputError(f'"{text}": expected {FORMS}')
    level = parts[0].lower().removeprefix("raid")
    if level not in LEVELS:
        raise unknown_name("RAID level", parts[0], [LEVELS[one] for one in LEVELS])
    if not parts[1].isdecimal() or not MEMBERS_MIN[level] <= int(parts[1]) <= 255:
        raise InputError(
            f'"{text}": found {parts[1]} drives, expected from {MEMBERS_MIN[level]} to 255'
        )
    chunk = CHUNK if len(parts) == 3 else parse_bytes(f'"{text}": chunk', parts[3])
    if not chunk or chunk % 4096:
        raise InputError(f'"{text}": chunk {parts[-1]}, expected a multiple of 4k, such as 64k')
    drive = _drive(parts[2])
    shape = Shape(level, int(parts[1]), chunk)
    keys: dict[str, Any] = {"kind": "array", "level": LEVELS[level], "count": shape.count}
    if level in STRIPED:
        keys["chunk"] = f"{chunk}B"
    title = f"{shape.count} x {drive.name}, {shape.level_name}"
    device = {**keys, "member": device_of(drive)}
    redundant = level not in ("0", "linear")
    return Store(text, title, device, {drive.name: shape.count}, redundant)


def cached(fast: Store, pool: Store, keys: Mapping[str, Any]) -> Store:
    """``pool`` behind a cache on ``fast``; ``keys`` are those of the device ``cache``."""
    device = {
        "kind": "cache", **keys, "cache": dict(fast.device), "below": dict(pool.device),
    }  # fmt: skip
    bill = Counter(pool.bill) + Counter(fast.bill)
    title = f"{pool.title}, cache on {fast.title}"
    return Store(f"{pool.text} + {fast.text}", title, device, bill, pool.redundant)


def tiered(fast: Store, below: Store, keys: Mapping[str, Any]) -> Store:
    """``fast`` and ``below`` as tiers of one device; ``keys`` are those of the device ``tier``."""
    device = {"kind": "tier", **keys, "fast": dict(fast.device), "below": dict(below.device)}
    bill = Counter(below.bill) + Counter(fast.bill)
    title = f"{below.title}, tier on {fast.title}"
    redundant = below.redundant and fast.redundant
    return Store(f"{below.text} + {fast.text}", title, device, bill, redundant)


def _drive(name: str) -> Drive:
    if name.endswith(".toml"):
        path = Path(name)
        return Drive(path.stem, read_text(path, "rig file"), name)
    known = [one.name for one in profiles()]
    if name not in known:
        raise unknown_name("drive profile", name, known, f"; expected {FORMS}")
    return shipped(name)
