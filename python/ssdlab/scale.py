"""Drives at reduced size: fewer blocks per plane, every ratio kept."""

from __future__ import annotations

import tomllib

from ssdlab.rig import leaves, profile

UNIT = 4096
"""Capacities are whole mapping units."""


FEWEST = 400
"""Superblocks of a drive that erases many dies together: their number decides how finely it can
choose what to collect."""


def capacity_of(drive: str) -> int:
    """Capacity of a profile in bytes."""
    return _size(_values(drive)["capacity"])


def reduced(drive: str, factor: int, *, fewest: int = 1) -> dict[str, str]:
    """Overrides that make a drive ``factor`` times smaller; none for 1.

    A die keeps its planes, pages and timing and has fewer blocks. Blocks are whole, so the
    capacity is not quite the full one divided by ``factor``, but chosen such that reserve and data
    fill whole superblocks and over-provisioning stays exactly what it was. Where the drive erases
    blocks of many dies together, too few superblocks would remain; then blocks have fewer pages,
    and are erased in less time. The same is done where fewer than ``fewest`` would remain: a drive
    of ten superblocks has no reserve left but those that are being written. The table of an extent
    map, an SLC cache and the marks of periodic collection
    shrink with the drive. So do the caches of a hard disk, whose seeks are shares of its stroke.
    """
    if factor == 1:
        return {}
    values = _values(drive)
    capacity = _size(values["capacity"])
    if values["kind"] == "hdd":
        caches = {key: _size(values[key]) // factor for key in ("read_cache", "write_cache")}
        sizes = caches | {"capacity": capacity // factor // UNIT * UNIT}
        return {key: f"{size}B" for key, size in sizes.items()}
    reserve = 1 + float(values["ftl.over_provisioning"])
    dies = int(values["nand.channels"]) * int(values["nand.ways"])
    together = {"drive": dies, "channel": int(values["nand.ways"])}
    pages = int(values["nand.pages_per_block"])
    stripe = dies * _size(values["nand.page"]) * int(values["nand.planes"])
    own = {}
    shorter = 1
    if values.get("ftl.gc.scope") in together:
        fewest = max(fewest, FEWEST)
    while capacity * reserve / stripe / pages / factor < fewest and pages % 2 == 0:
        pages //= 2
        shorter *= 2
    if shorter > 1:
        own["nand.pages_per_block"] = str(pages)
        own["nand.t_erase"] = f"{_nanoseconds(values['nand.t_erase']) // shorter}ns"
    superblocks = max(1, round(capacity * reserve / stripe / pages / factor))
    own["capacity"] = f"{int(superblocks * stripe * pages / reserve) // UNIT * UNIT}B"
    if values.get("ftl.map.kind") == "extent":
        own["ftl.map.entries"] = str(int(values["ftl.map.entries"]) // factor)
    if values.get("ftl.gc.pace") == "periodic":
        # Its marks are a share of the drive, but above the reserve of collection.
        start, end = (float(values[f"ftl.gc.batch.{mark}"]) for mark in ("start", "end"))
        begin = max(start / factor, float(values.get("ftl.gc.low", "1")) + 0.5)
        own["ftl.gc.batch.start"] = f"{begin:.6g}"
        own["ftl.gc.batch.end"] = f"{begin + (end - start) / factor:.6g}"
    for key in ("ftl.slc_cache.static_size", "ftl.slc_cache.dynamic_size"):
        if key in values:
            own[key] = f"{_size(values[key]) // factor}B"
    return own


def _values(drive: str) -> dict[str, str]:
    found = leaves(tomllib.loads(profile(drive).text).get("device", {}))
    return {key.replace("below.", ""): value for key, value, _ in found}


def _size(text: str) -> int:
    units = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "GB": 10**9, "MB": 10**6, "kB": 1000, "B": 1}
    for suffix, unit in units.items():
        if text.endswith(suffix):
            return int(float(text.removesuffix(suffix)) * unit)
    raise ValueError(f"a size of a profile: {text}")


def _nanoseconds(text: str) -> int:
    for suffix, unit in (("ns", 1), ("us", 1000), ("ms", 1_000_000)):
        if text.endswith(suffix):
            return round(float(text.removesuffix(suffix)) * unit)
    raise ValueError(f"a time of a profile: {text}")
