"""Candidates as they are simulated: flash made smaller where no rate depends on its amount.

Disks keep their size: their rates depend on how far the heads go, and an idle surface costs
nothing. SSDs keep their dies, channels and reserve and have fewer blocks.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from ssdlab import _core
from ssdlab.arrays.rigs import LEVELS, Shape, toml_text
from ssdlab.errors import InputError
from ssdlab.plan.storage.candidates import Candidate, drives, plain
from ssdlab.plan.stores import Store
from ssdlab.rig import profile, profiles
from ssdlab.scale import capacity_of, reduced

SUPERBLOCKS_MIN = 128
"""Of an SSD: what is collected has to be chosen among many."""
LEVEL_OF = {rig: short for short, rig in LEVELS.items()}


def drive_of(one: Store) -> str:
    """The drive that a store is made of."""
    return next(iter(one.bill))


def shipped(one: Store) -> bool:
    """Whether its drive is a shipped profile, whose size is known and can be changed."""
    return drive_of(one) in {known.name for known in profiles()}


def has_disk(one: Store) -> bool:
    """Whether any of it is a hard disk."""
    return any(table["kind"] == "hdd" for table in drives(one.device))


def flash(one: Store) -> bool:
    """Whether all of it is flash."""
    found = [table["kind"] for table in drives(one.device)]
    return bool(found) and "hdd" not in found


def shape_of(one: Store) -> Shape | None:
    """The level and the number of drives; None for a drive alone, or an array of a rig file."""
    device = one.device
    if device.get("kind") != "array" or "member" not in device or "count" not in device:
        return None
    level = LEVEL_OF.get(str(plain(device.get("level"))))
    return None if level is None else Shape(level, int(plain(device["count"])))


def usable_bytes(one: Store) -> int:
    """What the host sees of it at full size."""
    if not shipped(one):
        return _core.Drive(one.rig(), rig_name=one.text).capacity_bytes
    shape = shape_of(one)
    capacity = capacity_of(drive_of(one))
    return capacity if shape is None else round(shape.usable_share * shape.count * capacity)


@cache
def overrides(drive: str, bytes_min: int) -> tuple[tuple[str, str], ...]:
    """What makes a shipped SSD about ``bytes_min`` large, more where it has many dies."""
    factor = max(1, capacity_of(drive) // max(bytes_min, 1))
    while factor > 1:
        found = reduced(drive, factor, fewest=SUPERBLOCKS_MIN)
        try:
            _core.rig_check(profile(drive).text, rig_name=drive, overrides=list(found.items()))
        except InputError:
            factor //= 2  # too few superblocks for its reserve
        else:
            return tuple(found.items())
    return ()


def simulated_bytes(one: Store, bytes_min: int) -> int:
    """The capacity of a drive of it when :func:`resized`."""
    if not shipped(one) or not flash(one):
        return capacity_of(drive_of(one)) if shipped(one) else usable_bytes(one)
    size = dict(overrides(drive_of(one), bytes_min)).get("capacity")
    return capacity_of(drive_of(one)) if size is None else int(size.removesuffix("B"))


def resized(
    one: Store, bytes_min: int | None = None, *, disk_cache: bool = False
) -> dict[str, Any]:
    """The device of a store with SSDs of about ``bytes_min`` each; None leaves them as they are.

    Disks have no volatile write cache unless ``disk_cache``: what is acknowledged is to be safe.
    """
    device = copy.deepcopy(dict(one.device))
    found = drives(device)
    own: Mapping[str, str] = {}
    if bytes_min is not None and shipped(one) and flash(one):
        own = dict(overrides(drive_of(one), bytes_min))
    for table in found:
        if table["kind"] == "hdd" and not disk_cache:
            table["write_cache"] = "0B"
        for key, value in own.items():
            _set(table, key, value)
    return device


def check(one: Candidate) -> None:
    """Raises InputError where the core would not build a candidate (made small)."""
    fast = None if one.fast is None else resized(one.fast, 1 << 30)
    device = one.device(resized(one.pool, 1 << 30), fast, one.card)
    try:
        _core.rig_check(toml_text({"name": "candidate", "device": device}), rig_name=one.text)
    except InputError as error:
        raise InputError(f'candidate "{one.text}": {error}') from None


def _set(table: dict[str, Any], key: str, value: str) -> None:
    *path, last = key.split(".")
    for part in path:
        table = table.setdefault(part, {})
    try:
        table[last] = tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        table[last] = value  # a size or a time with its unit
