"""What was written to the SSDs of a rig: write amplification, SMART counters, endurance.

Everything is by the device's path in the rig (``below/member0``; empty for the device itself) and
in bytes: units of different SSDs may differ in size, so they are never added up.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ssdlab.numeric import Floats, Indices

if TYPE_CHECKING:
    import polars as pl

    from ssdlab.results import Result


WARRANTY_DAYS = 5 * 365
"""Days over which drive writes per day are reckoned: a warranty of five years."""
PROGRAMS = "programs_"
UNIT_BYTES = 4096
"""Of the mapping unit that drives have by default."""
_HOST = (
    "card_bytes_written",
    "array_bytes_written",
    "cache_host_bytes_written",
    "tier_host_bytes_written",
    "host_bytes_written",
)
"""What devices count of the writes that they are given; those that count none hand them all on."""


@dataclass(frozen=True)
class Flash:
    """The flash of a simulated SSD, as far as its wear depends on it."""

    capacity_bytes: int
    """What the host sees."""
    full_bytes: int
    """The same of the drive that it stands for, if it was made smaller to be simulated."""
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

    @property
    def rated_bytes(self) -> float:
        """What can be programmed until the rated cycles are used up on average, of the drive that
        it stands for."""
        return self.rated_pe_cycles * self.physical_bytes * self.times

    @property
    def times(self) -> float:
        """How many times larger the drive is that it stands for."""
        return self.full_bytes / self.capacity_bytes


@dataclass(frozen=True)
class Smart:
    """The counters of a SMART / Health Information log page, since the drive was new; of a rig with
    several SSDs ``percentage_used``, ``erases_mean`` and ``rated_pe_cycles`` are those of the most
    worn one, the rest of all together."""

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

    @property
    def used(self) -> float:
        """Share of the rated cycles that is used up."""
        return self.erases_mean / self.rated_pe_cycles


@dataclass(frozen=True)
class Endurance:
    """How much the host can write, at the wear of some stretch of a run: to drives as large as
    those that a run stands for, if they were made smaller to be simulated."""

    write_amplification: float
    """Of the cells of the data superblocks: bytes of room used up per byte written. A unit in a
    dynamic SLC cache takes the room of `bits_per_cell` units, and one in a static cache none of
    it."""
    host_bytes: float
    """From new until the rated cycles are used up on average, of the first SSD of a rig."""
    host_bytes_left: float
    """The same from the end of the run on."""
    dwpd_5_years: float | None
    """`host_bytes` as drive writes per day (capacity) over five years; None where nobody can tell
    how large all of the rig is: SSDs in it were made smaller, and other drives may have been."""

    @staticmethod
    def of(waf: float, total: float, left: float, capacity: float | None) -> Endurance:
        """With the drive writes of a ``capacity`` in bytes."""
        return Endurance(waf, total, left, capacity and total / capacity / WARRANTY_DAYS)


@dataclass(frozen=True)
class Member:
    """One SSD of a rig; ``endurance`` is in bytes written to it, None where there were none."""

    flash: Flash
    smart: Smart
    endurance: Endurance | None
    share: float
    """Bytes written to it per byte that the host wrote to the rig; 0 where it wrote nothing."""


@dataclass(frozen=True)
class Wear:
    """How worn the SSDs of a rig are at the end of a run, and how long they last if all goes on
    as in some stretch of it. Superblocks that hold a map's own table are left out."""

    members: Mapping[str, Member]
    """By path; at least one."""
    smart: Smart
    """Of the rig."""
    endurance: Endurance | None
    """Of the rig, in bytes that its host writes, until the first SSD has used up its rated cycles;
    None where it wrote nothing."""

    @property
    def table(self) -> bool:
        """Whether a map has superblocks of its own, which wear apart."""
        return any(member.flash.table for member in self.members.values())

    @property
    def smaller(self) -> bool:
        """Whether an SSD was made smaller to be simulated."""
        return any(member.flash.times != 1 for member in self.members.values())

    @property
    def filled(self) -> tuple[str, Endurance] | None:
        """Path and endurance of the most worn SSD that is written to although the host writes
        nothing: by what a cache brings in. None where the host writes, or there is none."""
        if self.endurance is not None:
            return None
        found = [
            (member.smart.used, path, member.endurance)
            for path, member in self.members.items()
            if member.endurance is not None
        ]
        return max(found, key=lambda one: one[0])[1:] if found else None

    def document(self) -> dict[str, Any]:
        """The object ``wear`` of a result."""
        members = {
            path: _document(member.smart, member.endurance) for path, member in self.members.items()
        }
        return {**_document(self.smart, self.endurance), "members": members}


def _document(smart: Smart, endurance: Endurance | None) -> dict[str, Any]:
    return {**asdict(smart), "endurance": None if endurance is None else asdict(endurance)}


@dataclass(frozen=True)
class Stretch:
    """The counters of a rig at the end of a run, and by how much each grew in a stretch of it."""

    counters: Mapping[str, Any]
    """By path and name, as a result has them."""
    grown: Mapping[str, float]
    capacity_bytes: int | None = None
    """Of the rig; None: of its SSDs together."""

    @staticmethod
    def since_new(counters: Mapping[str, Any]) -> Stretch:
        """The whole life of the rig."""
        return Stretch(counters, counters)

    @staticmethod
    def of(result: Result, from_s: float | None = None, to_s: float | None = None) -> Stretch:
        """Of a simulated run, by default the whole; nothing has grown where that is not known."""
        frame = result.device_series()
        found = {} if frame is None else grown(frame, from_s, to_s)
        about = result.ssdlab
        capacity = about.get("target", {}).get("capacity_bytes")
        return Stretch(about.get("counters") or {}, found, capacity)

    @cached_property
    def by_path(self) -> Mapping[str, FlashWrites]:
        """What each SSD was written and programmed."""
        own = by_path(self.grown)
        units = {path: own.get("unit_bytes") for path, own in by_path(self.counters).items()}
        return {path: writes for path in own if (writes := _written(own[path], units.get(path)))}

    @cached_property
    def written(self) -> FlashWrites:
        """What all SSDs were written and programmed."""
        return sum(self.by_path.values(), FlashWrites(0, {}))

    @property
    def host_bytes(self) -> float:
        """What the host wrote to the rig: to the outermost device that counts it."""
        found = [name for name in self.grown if name.rpartition("/")[2] in _HOST]
        if not found:
            return float(self.written.host)
        return float(self.grown[min(found, key=lambda name: name.count("/"))])

    @property
    def causes(self) -> dict[str, float]:
        """Write amplification by cause (`host`, `collection`, ...), in the order of the counters:
        bytes programmed per byte written to SSDs. Causes of nothing are left out; empty if no SSD
        was written to."""
        host, causes = self.written.host, self.written.causes
        return {cause: done / host for cause, done in causes.items() if host > 0 and done > 0}

    @property
    def amplification(self) -> float | None:
        """Write amplification: bytes programmed for any cause per byte written to SSDs; below 1
        where a write buffer absorbs overwrites."""
        return sum(self.causes.values()) if self.written.host > 0 else None

    @property
    def absorbed(self) -> float | None:
        """Share of the units written to SSDs that replaced one in a write buffer, and so were never
        programmed; None if no SSD with a buffer was written to."""
        own = [one for one in by_path(self.grown).values() if "buffer_overwrites" in one]
        units = sum(one["host_units_written"] for one in own)
        return sum(one["buffer_overwrites"] for one in own) / units if units > 0 else None

    @property
    def wear(self) -> Wear | None:
        """The wear of the SSDs; None where there are none, or in results of versions that did not
        count it."""
        host, states, grew = self.host_bytes, by_path(self.counters), by_path(self.grown)
        members, rooms, lives = {}, 0.0, []
        for path, own in states.items():
            if (flash := _flash(own)) is None:
                continue
            smart, room = _smart(flash, own), _room(flash, grew.get(path, {}))
            written = self.by_path[path].host if path in self.by_path else 0.0
            left = max(0.0, 1 - smart.used)
            lasts = None
            if room > 0 and written > 0:
                total = flash.rated_bytes * written / room
                waf = room / written
                lasts = Endurance.of(waf, total, total * left, flash.full_bytes)
            if room > 0 and host > 0:
                total = flash.rated_bytes * host / room
                rooms += room
                lives.append((total, total * left))
            members[path] = Member(flash, smart, lasts, written / host if host > 0 else 0.0)
        if not members:
            return None
        endurance = None
        if lives:
            total, left = (min(one) for one in zip(*lives, strict=True))
            waf = rooms / (self.written.host or host)
            endurance = Endurance.of(waf, total, left, self.full_bytes)
        return Wear(members, _together([member.smart for member in members.values()]), endurance)

    @property
    def full_bytes(self) -> float | None:
        """Capacity of the rig that this one stands for, if drives of it were made smaller to be
        simulated; None where that is not known."""
        states = by_path(self.counters)
        flashes = {path: flash for path, own in states.items() if (flash := _flash(own))}
        whole = self.capacity_bytes or sum(flash.capacity_bytes for flash in flashes.values())
        if all(flash.times == 1 for flash in flashes.values()):
            return whole
        # What a cache is on adds nothing to it; how large other drives are at full size, none says.
        pool = {path: flash for path, flash in flashes.items() if "cache" not in path.split("/")}
        ends = {path for path, own in states.items() if "host_bytes_written" in own}
        if not pool or ends - flashes.keys():
            return None
        small = sum(flash.capacity_bytes for flash in pool.values())
        return whole * sum(flash.full_bytes for flash in pool.values()) / small


@dataclass(frozen=True)
class FlashWrites:
    """What SSDs were written, and what they programmed by cause: bytes (or columns of them)."""

    host: Any
    causes: Mapping[str, Any]

    @property
    def programmed(self) -> Any:
        """For whatever cause."""
        return sum(self.causes.values())

    def __add__(self, other: FlashWrites) -> FlashWrites:
        """Of both together."""
        names = dict.fromkeys((*self.causes, *other.causes))
        causes = {name: self.causes.get(name, 0) + other.causes.get(name, 0) for name in names}
        return FlashWrites(self.host + other.host, causes)


def rated_bytes(counters: Mapping[str, Any], capacity_bytes: int) -> float | None:
    """What the host can write to a rig of SSDs alone until the rated cycles of the weakest are used
    up, at a write amplification of 1; of several SSDs, which share or copy what is written, as
    much for each byte of the rig as for one of theirs. None where there are other drives."""
    ends = [own for own in by_path(counters).values() if "host_bytes_written" in own]
    flashes = [flash for own in ends if (flash := _flash(own)) is not None]
    if not flashes or len(flashes) < len(ends):
        return None
    if len(flashes) == 1:
        return flashes[0].rated_bytes
    return min(flash.rated_bytes / flash.capacity_bytes for flash in flashes) * capacity_bytes


def by_path(counters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Counters (or columns of them) by the path of their device and by name."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in counters.items():
        path, _, last = name.rpartition("/")
        found.setdefault(path, {})[last] = value
    return found


def unanswered(own: Mapping[str, Any]) -> int:
    """I/Os of a device, by the counters of it, that ended in an error: what they needed is lost."""
    return int(own.get("errors_read", 0)) + int(own.get("errors_write", 0))


def grown(
    frame: pl.DataFrame, from_s: float | None = None, to_s: float | None = None
) -> dict[str, float]:
    """By how much each counter of a device series grew between two instants of the run's clock."""
    if frame.is_empty():
        return {}
    time = frame["time_s"].to_numpy()
    ends = np.array([time[0] if from_s is None else from_s, time[-1] if to_s is None else to_s])
    # Between which rows they lie, alone: a long series of many counters should not be copied.
    rows = np.unique([0, *itertools.chain(*_around(time, ends))])
    # All at once: a question for each of dozens of counters costs more than the answer.
    values = np.nan_to_num(frame[rows].to_numpy().astype(float))
    begin, to = at(time[rows], values, ends)
    found = dict(zip(frame.columns, (to - begin).tolist(), strict=True))
    del found["time_s"]
    return found


def _around(time: Floats, instants: Floats) -> tuple[Indices, Indices]:
    """The rows before and after each instant, or twice the same at the end."""
    before = np.clip(np.searchsorted(time, instants, side="right"), 1, max(len(time) - 1, 1)) - 1
    return before, np.minimum(before + 1, len(time) - 1)


def at(time: Floats, values: Floats, instants: Floats) -> Floats:
    """Cumulative counters at some instants, on straight lines between the rows; 0 at time 0 unless
    there is a row. ``values`` may have a column for each of several counters."""
    if time[0] > 0:
        time, values = np.append(0.0, time), np.append(np.zeros_like(values[:1]), values, axis=0)
    row, after = _around(time, instants)
    spans, into = time[after] - time[row], np.maximum(instants - time[row], 0.0)
    each = (-1, *[1] * (values.ndim - 1))
    slope = (values[after] - values[row]) / np.where(spans > 0, spans, 1.0).reshape(each)
    found: Floats = slope * into.reshape(each) + values[row]
    found[instants >= time[-1]] = values[-1]
    return found


def written_over_time(columns: Mapping[str, Floats]) -> FlashWrites | None:
    """What all SSDs were written and programmed, from the columns of a device series: cumulative
    columns; None where there is no SSD."""
    writes = None
    for own in by_path(columns).values():
        unit = float(own["unit_bytes"][-1]) if "unit_bytes" in own else None
        if (flash_writes := _written(own, unit)) is not None:
            writes = flash_writes if writes is None else writes + flash_writes
    return writes


def _written(own: Mapping[str, Any], unit_bytes: float | None) -> FlashWrites | None:
    """Of the counters (or columns) of one device; None where it is no SSD."""
    units = {n.removeprefix(PROGRAMS): v for n, v in own.items() if n.startswith(PROGRAMS)}
    if "host" not in units:
        return None
    # Versions that did not say how large a unit is did not count bytes alike.
    unit = unit_bytes or UNIT_BYTES
    host = own.get("host_units_written", units["host"]) * unit
    if unit_bytes:
        host = own.get("host_bytes_written", host)
    return FlashWrites(host, {cause: count * unit for cause, count in units.items()})


def _flash(own: Mapping[str, Any]) -> Flash | None:
    if "data_superblocks" not in own:
        return None
    return Flash(
        capacity_bytes=own["capacity_bytes"],
        full_bytes=own.get("full_capacity_bytes", own["capacity_bytes"]),
        superblocks=own["data_superblocks"],
        superblock_units=own["superblock_units"],
        unit_bytes=own["unit_bytes"],
        rated_pe_cycles=own["rated_pe_cycles"],
        bits_per_cell=own.get("slc_bits_per_cell", 1),
        slc_dynamic=own.get("slc_dynamic_superblocks", 0) > 0,
        table=own["map_superblocks"] > 0,
    )


def _smart(flash: Flash, own: Mapping[str, Any]) -> Smart:
    return Smart(
        percentage_used=own["percentage_used"],
        data_units_written=own["data_units_written"],
        data_units_read=own["data_units_read"],
        host_write_commands=own["host_writes"],
        host_read_commands=own["host_reads"],
        erases_min=own["erases_min"],
        erases_mean=own["data_erases_sum"] / flash.superblocks,
        erases_max=own["erases_max"],
        rated_pe_cycles=flash.rated_pe_cycles,
        physical_bytes=flash.physical_bytes,
    )


def _together(all_: list[Smart]) -> Smart:
    def each(name: str) -> list[Any]:
        return [getattr(smart, name) for smart in all_]

    added = ("data_units_written", "data_units_read", "host_write_commands", "host_read_commands")
    return replace(
        max(all_, key=lambda smart: smart.used),
        percentage_used=max(each("percentage_used")),
        erases_min=min(each("erases_min")),
        erases_max=max(each("erases_max")),
        **{name: sum(each(name)) for name in (*added, "physical_bytes")},
    )


def _room(flash: Flash, own: Mapping[str, float]) -> float:
    """Bytes of room in the superblocks for data that were used up."""
    programs = sum(units for name, units in own.items() if name.startswith(PROGRAMS))
    if flash.table:
        programs -= own.get("programs_map", 0)
    cached = own.get("slc_units_written", 0)
    static = cached
    if flash.slc_dynamic:
        # As many as the erases made room for, so that the first filling counts as dynamic.
        room = flash.superblock_units / flash.bits_per_cell
        static = min(cached, own.get("slc_static_erases_sum", 0) * room)
    return (programs - static + (flash.bits_per_cell - 1) * (cached - static)) * flash.unit_bytes
