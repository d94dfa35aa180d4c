"""What happened to a drive between two snapshots of its health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ssdlab.errors import InputError
from ssdlab.json_access import at
from ssdlab.smart import smartctl
from ssdlab.smart.model import Health, HealthFinding, Severity

N = TypeVar("N", int, float)
STEPS = 10
"""So many units of a counter must have passed for a ratio of it to be within ten percent."""


@dataclass(frozen=True)
class Counter:
    """A counter that should stand still."""

    growth: Severity
    """What its growth asks for."""
    what: str
    """What happened as often as it says."""
    advice: str = ""
    """What to do about that where it is not 0, whether it grows or not; empty for nothing."""
    one: str = ""
    """What it counts."""


ERRORS: Mapping[str, Counter] = {
    "media_errors": Counter(
        Severity.REPLACE,
        "the drive failed to return data",
        " (media errors); watch whether the count grows",
        "media error",
    ),
    "uncorrectable": Counter(
        Severity.REPLACE,
        "the drive reported uncorrectable errors",
        "; watch whether the count grows",
        "uncorrectable error",
    ),
    "pending": Counter(
        Severity.WATCH,
        "sectors could not be read",
        " and are pending reallocation; read the whole drive once",
        "pending sector",
    ),
    "reallocated": Counter(Severity.WATCH, "sectors or blocks were reallocated to spares"),
    "crc_errors": Counter(
        Severity.WATCH,
        "transfers between drive and host failed their CRC: check the cable and the connector",
        ", not the drive; only growth matters",
        "CRC error",
    ),
    "unsafe_shutdowns": Counter(Severity.GOOD, "power was lost without notice (unsafe shutdown)"),
}
"""By field of a drive's health."""


@dataclass(frozen=True)
class HealthChange:
    """The difference of two snapshots of one drive; None where either does not tell."""

    seconds: float | None
    """By the machine's clock, else by the hours under power."""
    by_clock: bool
    power_on_hours: float | None
    written_bytes: int | None
    read_bytes: int | None
    nand_bytes: int | None
    write_amplification: float | None
    """Of what was written in between; None also where it was too little to tell."""
    used_percent: float | None
    temperature_before_c: int | None
    temperature_after_c: int | None
    minutes_too_warm: int | None
    """Grown by."""
    errors: Mapping[str, int]
    """Counters of :data:`ERRORS` that grew, and by how much."""

    @property
    def findings(self) -> list[HealthFinding]:
        """What grew and should not have; empty where nothing did."""
        since = "since the previous snapshot, "
        found = [
            HealthFinding(ERRORS[name].growth, since + ERRORS[name].what, f"{name} grew by {by:,}")
            for name, by in self.errors.items()
        ]
        if self.minutes_too_warm:
            told = f"{self.minutes_too_warm:,} minutes above its limit"
            words = f"{since}the drive was too hot and may have throttled"
            found.append(HealthFinding(Severity.WATCH, words, told))
        return found


def same_drive(health: Health, other: Health) -> bool:
    """Whether two snapshots can be of one drive: model and serial, as far as they are told."""
    if health.model != other.model or health.capacity_bytes != other.capacity_bytes:
        return False
    serials = {serial for serial in (health.serial, other.serial) if serial and not _struck(serial)}
    return len(serials) < 2


def _struck(serial: str) -> bool:
    return serial.lower().startswith("redact")


def compare(before: Health, after: Health) -> HealthChange:
    """What passed between ``before`` and ``after``; InputError where they are of two drives, or in
    the wrong order."""
    if not same_drive(before, after):
        raise InputError(
            f"the snapshots are of different drives ({_named(before)} and {_named(after)})"
        )
    hours = _grown(after.power_on_hours, before.power_on_hours)
    written = _grown(after.written_bytes, before.written_bytes)
    if (hours is not None and hours < 0) or (written is not None and written < 0):
        raise InputError(
            f"the counters of {_named(after)} go back between the snapshots; "
            "they are in the wrong order or not of one drive"
        )
    clock = _grown(after.taken_s, before.taken_s)
    by_clock = clock is not None and clock > 0
    nand = _grown(after.nand_bytes, before.nand_bytes)
    return HealthChange(
        seconds=float(clock or 0) if by_clock else None if hours is None else hours * 3600,
        by_clock=by_clock,
        power_on_hours=hours,
        written_bytes=written,
        read_bytes=_grown(after.read_bytes, before.read_bytes),
        nand_bytes=nand,
        write_amplification=_amplification(before, after, written, nand),
        used_percent=_grown(after.used_percent, before.used_percent),
        temperature_before_c=before.temperature_c,
        temperature_after_c=after.temperature_c,
        minutes_too_warm=_grown(after.minutes_too_warm, before.minutes_too_warm),
        errors={
            name: grown
            for name in ERRORS
            if (grown := _grown(getattr(after, name), getattr(before, name))) and grown > 0
        },
    )


def amplification(surroundings: Mapping[str, Any]) -> float | None:
    """Write amplification of a run on a real drive by its own counters, from what surrounded the
    run; None where the drive does not count, or moved too little to tell."""
    snapshots = [at(surroundings, "smart", when) for when in ("before", "after")]
    try:
        before, after = (
            smartctl.parse(snapshot, "") for snapshot in snapshots if isinstance(snapshot, Mapping)
        )
        return compare(before, after).write_amplification
    except (InputError, ValueError):  # fewer than two, or they say little
        return None


def _amplification(
    before: Health, after: Health, written: int | None, nand: int | None
) -> float | None:
    host = _grown(after.host_pages, before.host_pages)
    other = _grown(after.other_pages, before.other_pages)
    if host is not None and other is not None:
        return (host + other) / host if host >= STEPS else None
    if written is None or nand is None:
        return None
    enough = written >= STEPS * after.written_step_bytes and nand >= STEPS * after.nand_step_bytes
    return nand / written if enough else None


def _grown(after: N | None, before: N | None) -> N | None:
    return None if after is None or before is None else after - before


def _named(health: Health) -> str:
    serial = f" {health.serial}" if health.serial and not _struck(health.serial) else ""
    return f"{health.model or 'a drive without a model name'}{serial}"
