"""What a simulated drive's SMART page would say of its wear, and how long its cells will last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

WARRANTY_DAYS = 5 * 365
"""Days over which drive writes per day are reckoned: a warranty of five years."""


@dataclass(frozen=True)
class Flash:
    """The flash of a simulated SSD, as far as its wear depends on it."""

    capacity_bytes: int
    """What the host sees."""
    superblocks: int
    """Superblocks for data, those that collection keeps free included; not those of a static SLC
    cache and of a map's own table, which are never exchanged with them."""
    superblock_units: int
    """In native mode, parity included."""
    unit_bytes: int
    """Of a physical unit."""
    rated_pe_cycles: int
    bits_per_cell: int
    """With an SLC cache; 1 without one."""
    slc: bool
    """Whether there is an SLC cache."""
    slc_dynamic: bool
    """Whether some of it is dynamic."""
    table: bool
    """Whether the map has superblocks of its own."""

    @property
    def superblock_bytes(self) -> int:
        """What a superblock holds in native mode."""
        return self.superblock_units * self.unit_bytes

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
    erases_mean: float
    """Of the superblocks for data."""
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


def flash_of(counters: Mapping[str, Any]) -> Flash | None:
    """The flash of the SSD that a result's `counters` are of, wherever in the rig it is; None if
    there is none, or in a result of a version that did not count it."""
    found = _by_last_name(counters)
    if "data_superblocks" not in found:
        return None
    return Flash(
        capacity_bytes=found["capacity_bytes"],
        superblocks=found["data_superblocks"],
        superblock_units=found["superblock_units"],
        unit_bytes=found["unit_bytes"],
        rated_pe_cycles=found["rated_pe_cycles"],
        bits_per_cell=found.get("slc_bits_per_cell", 1),
        slc="slc_bits_per_cell" in found,
        slc_dynamic=found.get("slc_dynamic_superblocks", 0) > 0,
        table=found["map_superblocks"] > 0,
    )


def smart(flash: Flash, counters: Mapping[str, Any]) -> Smart:
    """The SMART counters of the SSD with that flash among a result's `counters`."""
    found = _by_last_name(counters)
    return Smart(
        percentage_used=found["percentage_used"],
        data_units_written=found["data_units_written"],
        data_units_read=found["data_units_read"],
        host_write_commands=found["host_writes"],
        host_read_commands=found["host_reads"],
        erases_min=found["erases_min"],
        erases_mean=found["data_erases_sum"] / flash.superblocks,
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
    used = health.erases_mean / flash.rated_pe_cycles
    return Endurance(
        write_amplification=amplification,
        host_bytes=total,
        host_bytes_left=total * max(0.0, 1 - used),
        dwpd_5_years=total / flash.capacity_bytes / WARRANTY_DAYS,
    )


def amplification(counters: Mapping[str, Any]) -> float | None:
    """Units programmed per unit that the host wrote since the drive was new; None where it wrote
    nothing."""
    found = _by_last_name(counters)
    host = found.get("host_units_written", 0)
    programs = sum(units for name, units in found.items() if name.startswith("programs_"))
    return programs / host if host else None


def document(counters: Mapping[str, Any], grown: Mapping[str, float]) -> dict[str, Any] | None:
    """The object `wear` of a result; None if the rig has no SSD."""
    flash = flash_of(counters)
    if flash is None:
        return None
    health = smart(flash, counters)
    lasts = endurance(flash, health, grown)
    return {**asdict(health), "endurance": None if lasts is None else asdict(lasts)}


def grown(series: Mapping[str, Any]) -> dict[str, float]:
    """By how much each counter grew while the run went on, by its last name."""
    return {
        name.rpartition("/")[2]: float(values[-1]) - float(values[0])
        for name, values in series.items()
        if len(values)
    }


def _static_units(flash: Flash, grown: Mapping[str, float]) -> float:
    """Of the units written in SLC mode, those of the static part: beside a dynamic part, as many as
    its erases made room for, so that its first filling counts as dynamic."""
    cached = grown.get("slc_units_written", 0)
    if not flash.slc_dynamic:
        return cached
    room = flash.superblock_units / flash.bits_per_cell
    return min(cached, grown.get("slc_static_erases_sum", 0) * room)


def _by_last_name(counters: Mapping[str, Any]) -> dict[str, Any]:
    return {name.rpartition("/")[2]: value for name, value in counters.items()}
