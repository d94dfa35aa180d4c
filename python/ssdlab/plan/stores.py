"""Storage as planners write it: a drive, an array of equal drives, a cache before either."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ssdlab import _core
from ssdlab.arrays.rigs import CHUNK, LEVELS, MEMBERS_MIN, ArrayShape, array_of, named
from ssdlab.errors import InputError, unknown_name
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
    tree: _core.Rig = field(compare=False, repr=False)
    """Its rig; whoever changes it takes a copy."""
    bill: Mapping[str, int]
    """Drives by name."""
    redundant: bool
    """Whether the loss of one drive loses nothing."""
    profile: str | None = None
    """The shipped drive that all of it is made of; None where it is made of others."""

    @cached_property
    def capacity_bytes(self) -> int:
        """All of it; raises InputError where the core refuses its rig."""
        return self.tree.copy(name=self.text).capacity_bytes

    def rig(self) -> str:
        """A rig of this alone, as TOML."""
        return self.tree.copy(name=self.text, summary=self.title).to_toml()

    @property
    def reads_flash(self) -> bool:
        """Whether what lies in it lies in SSDs, caches and tiers before it left aside."""
        places = [place.split(".") for place in self.tree.find("ssd")]
        return any("cache" not in place and "fast" not in place for place in places)


def store(text: str) -> Store:
    """The storage that ``text`` means (:data:`FORMS`).

    Raises InputError where it means none.
    """
    parts = text.strip().split(":")
    if len(parts) == 1 or parts[0].endswith(".toml"):
        drive = named(text.strip(), f"; expected {FORMS}")
        tree = drive.tree()
        # A rig file may itself be an array; what it survives is its own affair.
        redundant = tree.get("kind") == "array" and tree.get("level") != "raid0"
        return Store(text, drive.name, tree, {drive.name: 1}, redundant, drive.profile)
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
    drive = named(parts[2], f"; expected {FORMS}")
    shape = ArrayShape(level, int(parts[1]), chunk)
    title = f"{shape.count} x {drive.name}, {shape.level_name}"
    tree = array_of(drive.tree(), shape, text)
    redundant, bill = level not in ("0", "linear"), {drive.name: shape.count}
    return Store(text, title, tree, bill, redundant, drive.profile)


def cached(fast: Store, pool: Store, keys: Mapping[str, Any]) -> Store:
    """``pool`` behind a cache on ``fast``; ``keys`` are those of the device ``cache``."""
    text = f"{pool.text} + {fast.text}"
    tree = _core.Rig.wrap("cache", dict(keys), name=text, cache=fast.tree, below=pool.tree)
    title = f"{pool.title}, cache on {fast.title}"
    return Store(text, title, tree, Counter(pool.bill) + Counter(fast.bill), pool.redundant)


def tiered(fast: Store, below: Store, keys: Mapping[str, Any]) -> Store:
    """``fast`` and ``below`` as tiers of one device; ``keys`` are those of the device ``tier``."""
    text = f"{below.text} + {fast.text}"
    tree = _core.Rig.wrap("tier", dict(keys), name=text, fast=fast.tree, below=below.tree)
    title = f"{below.title}, tier on {fast.title}"
    redundant = below.redundant and fast.redundant
    return Store(text, title, tree, Counter(below.bill) + Counter(fast.bill), redundant)


def letter(place: int) -> str:
    """What a candidate is called in tables: A, B, ... Z, AA, AB ..."""
    rest, last = divmod(place, 26)
    return (letter(rest - 1) if rest else "") + chr(ord("A") + last)
