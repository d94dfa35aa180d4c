"""What a drive's own counters say of a run: snapshots before and after it, and the difference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssdlab.answer import Cell, Column, Table
from ssdlab.errors import InputError
from ssdlab.output import write_to
from ssdlab.smart.change import HealthChange, compare
from ssdlab.smart.sources import PROTOCOL_SNAPSHOTS as FILE
from ssdlab.smart.sources import of_protocol, protocol_snapshots
from ssdlab.units import size_text

__all__ = ["FILE", "counted", "keep"]


def keep(folder: Path, snapshot: Mapping[str, Any] | None) -> None:
    """Keeps a snapshot: the first as the one before the run, each later one as the one after."""
    if snapshot is None:
        return
    found = protocol_snapshots(folder)
    found["after" if "before" in found else "before"] = dict(snapshot)
    write_to(folder / FILE, json.dumps(found) + "\n")


def counted(folder: Path, name: str) -> Table | None:
    """What the drive counted in a run, as a table; None without two snapshots of it."""
    if len(protocol_snapshots(folder)) < 2:
        return None
    try:
        before, after = of_protocol(folder, name)
        change = compare(before, after)
    except (InputError, ValueError):  # a drive that says little, or was changed for another
        return None
    rows = [(what, told) for what, told in _rows(change) if told is not None]
    grown = Column("change in the run", parts=("value", "unit"))
    return Table("", [Column("counter"), grown], rows)


def _rows(change: HealthChange) -> list[tuple[str, Cell | None]]:
    before, after = change.temperature_before_c, change.temperature_after_c
    known = before is not None and after is not None
    return [
        ("written by the host", _size(change.written_bytes)),
        ("read by the host", _size(change.read_bytes)),
        ("written to the flash", _size(change.nand_bytes)),
        ("write amplification", _number(change.write_amplification, "")),
        ("wear", _number(change.used_percent, "% of its life")),
        ("temperature before", _number(before if known else None, "°C")),
        ("temperature after", _number(after if known else None, "°C")),
        ("minutes too warm", _number(change.minutes_too_warm, "")),
        *(
            (name.replace("_", " "), Cell(float(grown), text=f"{grown:,}"))
            for name, grown in change.errors.items()
        ),
    ]


def _size(count: int | None) -> Cell | None:
    return None if count is None else Cell(float(count), text=size_text(count), unit="B")


def _number(value: float | None, unit: str) -> Cell | None:
    if value is None:
        return None
    return Cell(float(value), text=f"{value:.3g} {unit}".rstrip(), unit=unit)
