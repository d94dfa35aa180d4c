"""What a drive's own counters say of a run: snapshots before and after it, and the difference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssdlab.answer import Table, columns
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
    return Table("", columns("counter | change in the run"), rows)


def _rows(change: HealthChange) -> list[tuple[str, str | None]]:
    before, after = change.temperature_before_c, change.temperature_after_c
    return [
        ("written by the host", _size(change.written_bytes)),
        ("read by the host", _size(change.read_bytes)),
        ("written to the flash", _size(change.nand_bytes)),
        ("write amplification", _number(change.write_amplification, "")),
        ("wear", _number(change.used_percent, " % of its life")),
        ("temperature", None if None in (before, after) else f"{before} to {after} °C"),
        ("minutes too warm", _number(change.minutes_too_warm, "")),
        *((name.replace("_", " "), f"{grown:,}") for name, grown in change.errors.items()),
    ]


def _size(count: int | None) -> str | None:
    return None if count is None else size_text(count)


def _number(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:.3g}{unit}"
