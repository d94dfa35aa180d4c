"""Storage as planners write it: a drive, an array of equal drives, a cache before either."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from ssdlab import _core
from ssdlab.arrays.rigs import (
    CHUNK,
    LEVELS,
    MEMBERS_MIN,
    ArrayShape,
    array_of,
    level_of,
    named,
    profile_of,
)
from ssdlab.errors import InputError, unknown_name
from ssdlab.rig import capacity_of, smaller
from ssdlab.units import counted, parse_bytes

if TYPE_CHECKING:
    from ssdlab.target import Sim

FORMS = "NAME, FILE.toml, or LEVEL:COUNT:NAME[:CHUNK] such as raid10:6:seagate-constellation-500"
"""What :func:`store` reads, for help texts and messages."""
MODES = ("write-back", "write-through", "write-around", "write-around-fill", "write-only")
"""What becomes of writes in a cache, as in the rigs."""
RAM_MODES = ("write-through", "write-back")
"""Those of RAM, the safe one first."""
LEVEL_OF = {rig: short for short, rig in LEVELS.items()}


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
    def drive(self) -> str:
        """What it is made of."""
        return next(iter(self.bill))

    @property
    def shipped(self) -> bool:
        """Whether its drive is a shipped profile, whose size is known and can be changed."""
        return self.profile is not None

    @property
    def drive_bytes(self) -> int:
        """Capacity of one drive; of all of it where its drive is no shipped one."""
        return self.capacity_bytes if self.profile is None else capacity_of(self.profile)

    @property
    def has_disk(self) -> bool:
        """Whether any of it is a hard disk."""
        return bool(self.tree.find("hdd"))

    @property
    def flash(self) -> bool:
        """Whether all of it is flash."""
        return bool(self.tree.find("ssd")) and not self.has_disk

    @property
    def shape(self) -> ArrayShape | None:
        """The level and the number of drives; None for a drive alone, or an array of a rig file."""
        rig = self.tree
        if rig.get("kind") != "array" or rig.part("member") is None:
            return None
        level = LEVEL_OF.get(rig.get("level") or "")
        return None if level is None else ArrayShape(level, int(rig.get("count") or 0))

    @property
    def usable_bytes(self) -> int:
        """What the host sees of it at full size."""
        if self.profile is None:
            return self.tree.capacity_bytes
        share = 1.0 if self.shape is None else self.shape.usable_share * self.shape.count
        return round(share * capacity_of(self.profile))

    def simulated_bytes(self, bytes_min: int) -> int:
        """The capacity of one of its drives when :meth:`resized`."""
        if self.profile is None or not self.flash:
            return self.drive_bytes
        size = smaller_ssd(self.profile, bytes_min).get("capacity")
        return self.drive_bytes if size is None else int(size.removesuffix("B"))

    def resized(self, bytes_min: int | None = None, *, disk_cache: bool = False) -> _core.Rig:
        """Its rig with SSDs of about ``bytes_min`` each (None: as they are), with their dies,
        channels and reserve and fewer blocks: no rate depends on those. Disks keep their size,
        since their rates depend on how far the heads go, and have no volatile write cache unless
        ``disk_cache``: what is acknowledged is to be safe."""
        rig = self.tree.copy()
        if not disk_cache:
            set_all(rig, "hdd", {"write_cache_enabled": "false"})
        if bytes_min is not None and self.profile is not None and self.flash:
            set_all(rig, "ssd", smaller_ssd(self.profile, bytes_min))
        return rig

    @property
    def reads_flash(self) -> bool:
        """Whether what lies in it lies in SSDs, caches and tiers before it left aside."""
        places = [place.split(".") for place in self.tree.find("ssd")]
        return any("cache" not in place and "fast" not in place for place in places)


@cache
def smaller_ssd(drive: str, bytes_min: int) -> Mapping[str, str]:
    """What makes a shipped SSD about ``bytes_min`` large, more where it has many dies."""
    return smaller(drive, capacity_of(drive) // max(bytes_min, 1))


def set_all(rig: _core.Rig, kind: str, values: Mapping[str, str]) -> None:
    """Sets keys of every device of a kind."""
    for place in rig.find(kind):
        for key, value in values.items():
            rig.set(place + key, value)


def store(text: str | Sim) -> Store:
    """The storage that ``text`` means (:data:`FORMS`), or that is one rig; InputError where it
    means none."""
    if not isinstance(text, str):
        return _of_rig(text.name, text)
    parts = text.strip().split(":")
    if len(parts) == 1 or parts[0].endswith(".toml"):
        return _of_rig(text, named(text.strip(), f"; expected {FORMS}"))
    if len(parts) not in (3, 4):
        raise InputError(f'"{text}": expected {FORMS}')
    level = level_of(parts[0])
    if level not in LEVELS:
        raise unknown_name("RAID level", parts[0], LEVELS.values())
    if not parts[1].isdecimal() or not MEMBERS_MIN[level] <= int(parts[1]) <= 255:
        raise InputError(
            f'"{text}": found {counted(parts[1], "drive")}, '
            f"expected from {MEMBERS_MIN[level]} to 255"
        )
    if level == "10" and int(parts[1]) % 2:
        found = counted(parts[1], "drive")
        raise InputError(f'"{text}": found {found}, expected pairs, an even number')
    chunk = CHUNK if len(parts) == 3 else parse_bytes(f'"{text}": chunk', parts[3])
    if not chunk or chunk % 4096:
        raise InputError(f'"{text}": chunk {parts[-1]}, expected a multiple of 4k, such as 64k')
    drive = named(parts[2], f"; expected {FORMS}")
    shape = ArrayShape(level, int(parts[1]), chunk)
    title = f"{shape.count} x {drive.name}, {shape.level_name}"
    tree = array_of(drive.tree(), shape, text)
    redundant, bill = level not in ("0", "linear"), {drive.name: shape.count}
    return Store(text, title, tree, bill, redundant, profile_of(drive))


def _of_rig(text: str, drive: Sim) -> Store:
    tree = drive.tree()
    # It may itself be an array; what that survives is its own affair.
    redundant = tree.get("kind") == "array" and tree.get("level") != "raid0"
    return Store(text, drive.name, tree, {drive.name: 1}, redundant, profile_of(drive))


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
