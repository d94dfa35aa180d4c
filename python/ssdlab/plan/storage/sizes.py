"""Candidates as they are simulated: flash made smaller where no rate depends on its amount.

Disks keep their size: their rates depend on how far the heads go, and an idle surface costs
nothing. SSDs keep their dies, channels and reserve and have fewer blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ssdlab import _core
from ssdlab.arrays.rigs import LEVELS, ArrayShape
from ssdlab.errors import InputError
from ssdlab.plan.storage.candidates import Candidate
from ssdlab.plan.stores import Store
from ssdlab.rig import capacity_of, smaller

LEVEL_OF = {rig: short for short, rig in LEVELS.items()}


def drive_of(one: Store) -> str:
    """The drive that a store is made of."""
    return next(iter(one.bill))


def shipped(one: Store) -> bool:
    """Whether its drive is a shipped profile, whose size is known and can be changed."""
    return one.profile is not None


def has_disk(one: Store) -> bool:
    """Whether any of it is a hard disk."""
    return bool(one.tree.find("hdd"))


def flash(one: Store) -> bool:
    """Whether all of it is flash."""
    return bool(one.tree.find("ssd")) and not has_disk(one)


def shape_of(one: Store) -> ArrayShape | None:
    """The level and the number of drives; None for a drive alone, or an array of a rig file."""
    rig = one.tree
    if rig.get("kind") != "array" or rig.part("member") is None:
        return None
    level = LEVEL_OF.get(rig.get("level") or "")
    return None if level is None else ArrayShape(level, int(rig.get("count") or 0))


def usable_bytes(one: Store) -> int:
    """What the host sees of it at full size."""
    if not shipped(one):
        return one.tree.capacity_bytes
    shape = shape_of(one)
    capacity = capacity_of(drive_of(one))
    return capacity if shape is None else round(shape.usable_share * shape.count * capacity)


@cache
def overrides(drive: str, bytes_min: int) -> Mapping[str, str]:
    """What makes a shipped SSD about ``bytes_min`` large, more where it has many dies."""
    return smaller(drive, capacity_of(drive) // max(bytes_min, 1))


def simulated_bytes(one: Store, bytes_min: int) -> int:
    """The capacity of a drive of it when :func:`resized`."""
    if not shipped(one) or not flash(one):
        return capacity_of(drive_of(one)) if shipped(one) else usable_bytes(one)
    size = overrides(drive_of(one), bytes_min).get("capacity")
    return capacity_of(drive_of(one)) if size is None else int(size.removesuffix("B"))


def resized(one: Store, bytes_min: int | None = None, *, disk_cache: bool = False) -> _core.Rig:
    """The rig of a store with SSDs of about ``bytes_min`` each; None leaves them as they are.

    Disks have no volatile write cache unless ``disk_cache``: what is acknowledged is to be safe.
    """
    rig = one.tree.copy()
    if not disk_cache:
        set_all(rig, "hdd", {"write_cache": "0B"})
    if bytes_min is not None and shipped(one) and flash(one):
        set_all(rig, "ssd", overrides(drive_of(one), bytes_min))
    return rig


def set_all(rig: _core.Rig, kind: str, values: Mapping[str, str]) -> None:
    """Sets keys of every device of a kind."""
    for place in rig.find(kind):
        for key, value in values.items():
            rig.set(place + key, value)


def check(one: Candidate) -> None:
    """Raises InputError where the core would not build a candidate (made small)."""
    fast = None if one.fast is None else resized(one.fast, 1 << 30)
    rig = one.tree(resized(one.pool, 1 << 30), fast, one.card).to_toml()
    try:
        _core.rig_check(rig, rig_name=one.text)
    except InputError as error:
        raise InputError(f'candidate "{one.text}": {error}') from None
