"""What a simulated drive's SMART page would say of its wear, and how long its cells will last."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ssdlab import _core

DATA_UNIT = 512_000
"""Bytes of `data_units_written` and `data_units_read`: thousands of 512 bytes (NVM Express Base
Specification, SMART / Health Information log page)."""
WARRANTY_DAYS = 5 * 365
"""Days over which drive writes per day are reckoned: a warranty of five years."""

_UNITS: Mapping[str, int] = {"B": 1, "KB": 1000} | {
    prefix + suffix: base**power
    for suffix, base, prefixes in (("B", 1000, "kMGT"), ("iB", 1024, "KMGTP"))
    for power, prefix in enumerate(prefixes, 1)
}


@dataclass(frozen=True)
class Flash:
    """The flash of a rig's SSD, as far as its wear depends on it."""

    capacity_bytes: int
    """What the host sees."""
    superblocks: int
    """Superblocks for data, those that collection keeps free included; not those of a static SLC
    cache and of a map's own table, which are never exchanged with them."""
    superblock_bytes: int
    """In native mode, parity included."""
    rated_pe_cycles: int
    bits_per_cell: int
    slc: bool
    """Whether there is an SLC cache."""
    slc_dynamic: bool
    """Whether some of it is dynamic."""
    mapping_unit_bytes: int
    table: bool
    """Whether the map has superblocks of its own."""

    @property
    def physical_bytes(self) -> int:
        """What the superblocks for data hold in native mode."""
        return self.superblocks * self.superblock_bytes


@dataclass(frozen=True)
class Smart:
    """The counters of a SMART / Health Information log page, since the drive was new."""

    percentage_used: int
    """Of the rated cycles, in percent, rounded down; may exceed 100."""
    data_units_written: int
    """In units of 512 000 bytes, rounded up."""
    data_units_read: int
    """In units of 512 000 bytes, rounded up."""
    host_write_commands: int
    host_read_commands: int
    erases_min: int
    """Of a superblock for data."""
    erases_mean: float | None
    """Of the superblocks for data; None where the counters do not tell them from a map's own."""
    erases_max: int
    """Of any superblock."""
    rated_pe_cycles: int
    physical_bytes: int
    """What the superblocks for data hold."""


@dataclass(frozen=True)
class Endurance:
    """How much the host can write, at the write amplification of some stretch of a run."""

    write_amplification: float
    """Of the cells of the data superblocks: bytes of room used up per byte that the host writes. A
    unit in a dynamic SLC cache takes the room of `bits_per_cell` units, and one in a static cache
    none of it."""
    host_bytes: float
    """From new until the rated cycles are used up on average: rated_pe_cycles x physical_bytes /
    write_amplification."""
    host_bytes_left: float
    """The same from the end of the run on."""
    dwpd_5_years: float
    """`host_bytes` as drive writes per day (capacity_bytes) over five years."""


def flash_of(rig_toml: str | None) -> Flash | None:
    """The flash of the first SSD from the top of a rig as run; None if there is none."""
    device = tomllib.loads(rig_toml or "").get("device", {})
    while device and device.get("kind") != "ssd":
        device = device.get("below", {})
    if not device:
        return None
    keys = _defaults() | dict(_leaves(device))
    try:
        return _flash(keys)
    except (KeyError, ValueError):  # a rig of another version
        return None


def smart(flash: Flash, counters: Mapping[str, Any]) -> Smart | None:
    """The SMART counters among a result's `counters`, wherever in the rig the SSD is; None where
    they are not there."""
    found = {name.rpartition("/")[2]: value for name, value in counters.items()}
    if "percentage_used" not in found:
        return None
    native = found["erases_sum"] - found.get("slc_static_erases_sum", 0)
    return Smart(
        percentage_used=found["percentage_used"],
        data_units_written=found["data_units_written"],
        data_units_read=found["data_units_read"],
        host_write_commands=found["host_writes"],
        host_read_commands=found["host_reads"],
        erases_min=found["erases_min"],
        erases_mean=None if flash.table else native / flash.superblocks,
        erases_max=found["erases_max"],
        rated_pe_cycles=flash.rated_pe_cycles,
        physical_bytes=flash.physical_bytes,
    )


def endurance(flash: Flash, health: Smart, grown: Mapping[str, float]) -> Endurance | None:
    """How long the flash lasts if all goes on as in a stretch of the run.

    `grown` is by how much each counter grew in it, by its last name. None where the host wrote
    nothing. Nothing is said about a map's own superblocks.
    """
    host = grown.get("host_units_written", 0)
    programs = sum(units for name, units in grown.items() if name.startswith("programs_"))
    if flash.table:
        programs -= grown.get("programs_map", 0)
    cached = grown.get("slc_units_written", 0)
    static = _static_units(flash, grown)
    room = programs - static + (flash.bits_per_cell - 1) * (cached - static)
    if host <= 0 or room <= 0:
        return None
    amplification = room / host
    total = flash.rated_pe_cycles * flash.physical_bytes / amplification
    used = health.percentage_used / 100
    if health.erases_mean is not None:
        used = health.erases_mean / flash.rated_pe_cycles
    return Endurance(
        write_amplification=amplification,
        host_bytes=total,
        host_bytes_left=total * max(0.0, 1 - used),
        dwpd_5_years=total / flash.capacity_bytes / WARRANTY_DAYS,
    )


def document(
    rig_toml: str, counters: Mapping[str, Any], grown: Mapping[str, float]
) -> dict[str, Any] | None:
    """The object `wear` of a result; None if the rig has no SSD."""
    flash = flash_of(rig_toml)
    health = None if flash is None else smart(flash, counters)
    if flash is None or health is None:
        return None
    lasts = endurance(flash, health, grown)
    return {**asdict(health), "endurance": None if lasts is None else asdict(lasts)}


def _static_units(flash: Flash, grown: Mapping[str, float]) -> float:
    """Of the units written in SLC mode, those of the static part: beside a dynamic part, as many as
    its erases made room for, so that its first filling counts as dynamic."""
    cached = grown.get("slc_units_written", 0)
    if not flash.slc_dynamic:
        return cached
    room = flash.superblock_bytes / flash.bits_per_cell / flash.mapping_unit_bytes
    return min(cached, grown.get("slc_static_erases_sum", 0) * room)


def _flash(keys: Mapping[str, Any]) -> Flash:
    page, capacity = _bytes(keys["nand.page"]), _bytes(keys["capacity"])
    dies = int(keys["nand.channels"]) * int(keys["nand.ways"])
    regions = {"die": dies, "channel": int(keys["nand.channels"]), "drive": 1}[keys["ftl.gc.scope"]]
    program = page * int(keys["nand.planes"])
    programs = int(keys["nand.pages_per_block"]) * dies // regions
    stripe = int(keys["ftl.parity.stripe"])
    data = programs - (-(-programs // stripe) if stripe else 0)
    # As the drive is built: whole superblocks in each region, and those kept free beside them.
    spare = 1 + float(keys["ftl.over_provisioning"])
    unit = _bytes(keys["ftl.mapping_unit"])
    per_region = capacity // unit * unit / regions / (data * program) * spare
    reserve = int(keys["ftl.gc.low"]) + (keys["ftl.gc.pace"] == "paced")
    static = _bytes(keys["ftl.slc_cache.static_size"])
    cache = static + _bytes(keys["ftl.slc_cache.dynamic_size"])
    return Flash(
        capacity_bytes=capacity,
        superblocks=regions * (math.floor(per_region + 0.5) + reserve),
        superblock_bytes=programs * program,
        rated_pe_cycles=int(keys["nand.rated_pe_cycles"]),
        bits_per_cell=int(keys["nand.bits_per_cell"]),
        slc=cache > 0,
        slc_dynamic=cache > static,
        mapping_unit_bytes=unit,
        table=keys["ftl.map.kind"] == "cached",
    )


def _defaults() -> dict[str, Any]:
    """The keys of an SSD that need not be set, with what they are then."""
    return {
        one["key"]: one["default"]
        for one in _core.device_keys()
        if one["device"] == "ssd" and one["default"]
    }


def _leaves(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            found += _leaves(value, f"{prefix}{name}.")
        else:
            found.append((prefix + name, value))
    return found


def _bytes(text: object) -> int:
    """A size as rigs write it: a number with its unit."""
    found = re.fullmatch(r"([\d.]+)\s*([kKMGTP]?i?B)", str(text).strip())
    if found is None:
        raise ValueError(f"not a size: {text}")
    number, unit = found[1], _UNITS[found[2]]
    return round(float(number) * unit) if "." in number else int(number) * unit
