"""Drives at reduced size: fewer blocks per plane, every ratio kept."""

from __future__ import annotations

import tomllib

from ssdlab.rig import leaves, profile

UNIT = 4096
"""Capacities are whole mapping units."""


def capacity_of(drive: str) -> int:
    """Capacity of a profile in bytes."""
    return _size(_values(drive)["capacity"])


def reduced(drive: str, factor: int) -> dict[str, str]:
    """Overrides that make a drive ``factor`` times smaller; none for 1.

    A die keeps its planes, pages and timing and has fewer blocks. Blocks are whole, so the
    capacity is not quite the full one divided by ``factor``, but chosen such that reserve and data
    fill whole superblocks and over-provisioning stays exactly what it was. An SLC cache becomes
    smaller by the same factor.
    """
    if factor == 1:
        return {}
    values = _values(drive)
    capacity = _size(values["capacity"])
    reserve = 1 + float(values["ftl.over_provisioning"])
    dies = int(values["nand.channels"]) * int(values["nand.ways"])
    block = _size(values["nand.page"]) * int(values["nand.pages_per_block"])
    stripe = dies * block * int(values["nand.planes"])
    superblocks = max(1, round(capacity * reserve / stripe / factor))
    smaller = {"capacity": f"{int(superblocks * stripe / reserve) // UNIT * UNIT}B"}
    for key in ("ftl.slc_cache.static_size", "ftl.slc_cache.dynamic_size"):
        if key in values:
            smaller[key] = f"{_size(values[key]) // factor}B"
    return smaller


def _values(drive: str) -> dict[str, str]:
    found = leaves(tomllib.loads(profile(drive).text).get("device", {}))
    return {key.replace("below.", ""): value for key, value, _ in found}


def _size(text: str) -> int:
    units = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "GB": 10**9, "MB": 10**6, "kB": 1000, "B": 1}
    for suffix, unit in units.items():
        if text.endswith(suffix):
            return int(float(text.removesuffix(suffix)) * unit)
    raise ValueError(f"a size of a profile: {text}")
