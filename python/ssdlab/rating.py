"""How much may be written to a drive in its life, and who says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ssdlab.errors import InputError
from ssdlab.units import size_text

Number = TypeVar("Number", int, float)

UBER, UBER_MORE = 1e-17, 1e-15
"""Unrecoverable errors per bit read: as data sheets of data centre SSDs promise, and as those of
server disks do and JESD218 asks of client SSDs (of enterprise SSDs 1e-16)."""
_CLIENTS = ("client", "oem")
"""Classes of drives that are sold for PCs and notebooks."""
_UNITS = {"GB": 1e9, "TB": 1e12, "PB": 1e15}


@dataclass(frozen=True)
class Rating:
    """The rated endurance of a drive."""

    bytes: float
    """That the host may write."""
    source: str
    """Such as ``--tbw``."""


def uber(drive_class: str | None, *, disk: bool) -> tuple[float, str]:
    """Unrecoverable errors per bit read of a drive by its class, and of what kind that is."""
    if disk:
        return UBER_MORE, "a disk"
    return (UBER_MORE, "a client SSD") if drive_class in _CLIENTS else (UBER, "a data centre SSD")


def parse_tbw(text: str) -> float:
    """Bytes of a rating such as ``600TB`` or ``1.2PBW``; a bare number is in TB; InputError where
    it is none."""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d+)?)\s*(GB|TB|PB)?W?\s*", text, re.IGNORECASE)
    size = 0.0 if match is None else float(match[1])
    if match is None or size == 0:
        raise InputError(f'--tbw "{text}": expected a size such as 600TB, 1.2PB or 800 (TB)')
    return size * _UNITS[(match[2] or "TB").upper()]


def share_text(low: float, high: float, rating: Rating | None) -> str:
    """Which share of the endurance of a drive so many bytes are, for people."""
    if rating is None:
        return "its share of the endurance is unknown, because the rated TBW is (--tbw 600TB)"
    shares = between(low / rating.bytes, high / rating.bytes, _percent)
    return f"{shares} of the endurance of {size_text(rating.bytes)} ({rating.source})"


def drive_writes(times: float) -> str:
    """How often a drive is written over, as a number for people."""
    return f"{times:.2g}" if times < 99.5 else f"{times:,.0f}"


def between(low: Number, high: Number, text: Callable[[Number], str]) -> str:
    """A range for people; one value where both read alike."""
    first, last = text(low), text(high)
    if first == last:
        return first
    if not low:
        return last if last.startswith("under") else f"up to {last}"
    return f"{first} to {last}"


def _percent(share: float) -> str:
    if 0 < share < 1e-5:
        return "under 0.001 %"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"
