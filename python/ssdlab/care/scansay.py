"""What a scan found, in sentences and as a document."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from ssdlab.answer import finite
from ssdlab.care.blockio import PIECE_BYTES
from ssdlab.care.scan import REPEATED_MAX, Scan
from ssdlab.units import size_text

RANGES_MAX = 3
"""So many slow stretches are named."""
MUCH_ZERO = 0.02
"""Zeros below this share of what was read are not worth a word."""


def sentences(found: Scan) -> list[str]:
    """The findings, most important first."""
    said = [] if found.kind == "sim" else [_errors(found)]
    said += _slow(found)
    said += _zones(found)
    if found.zero_share >= MUCH_ZERO:
        said.append(
            f"{found.zero_share:.0%} of what was read is zeros only: a drive answers blocks "
            "that hold no data without touching flash, so their speed says nothing"
        )
    if not found.direct:
        said.append("the page cache could not be bypassed here, so the speed may be that of memory")
    if found.kind == "file":
        said.append("a file is scanned where it lies; holes in it come from no drive")
    if found.kind == "sim":
        said.append(
            "simulated: unreadable blocks are not simulated, nothing else is at work, and what is "
            "slow is slow each time"
        )
    return said


def _errors(found: Scan) -> str:
    if not found.errors:
        return f"no read errors in {size_text(found.read_bytes)}"
    places = "place" if len(found.errors) == 1 else "places"
    return (
        f"{len(found.errors)} unreadable {places}, {size_text(found.unreadable_bytes)} in all, in "
        f"{size_text(found.read_bytes)}: what lies there is lost; back up the rest"
    )


def _slow(found: Scan) -> list[str]:
    median, limit = found.limits
    if math.isnan(median):
        return []
    said = []
    slow = len(found.slow_places())
    late = sum(one.slow_place is False for one in found.slow)
    unknown = len(found.slow) - slow - late
    bound = f"{limit / 1e6:.3g} ms, where {median / 1e6:.3g} ms is usual"
    if slow:
        again = "" if found.kind == "sim" else ", each time they were read"
        said.append(f"{_pieces(slow, 'slow ')} of 1 MiB took more than {bound}{again}")
    if late:
        said.append(
            f"{_pieces(late)} took more than {bound}, but not when read again: a chance delay "
            "by other work or the drive's housekeeping, not the place"
        )
    if unknown:
        why = (
            "the scan was stopped before"
            if found.stopped
            else f"only the slowest {REPEATED_MAX} are"
        )
        said.append(f"{_pieces(unknown)} took more than {bound}, and were not read again: {why}")
    return said or [f"no slow places: no piece of 1 MiB took more than {bound}"]


def _pieces(count: int, kind: str = "") -> str:
    return f"{count} {kind}piece" + ("" if count == 1 else "s")


def _zones(found: Scan) -> list[str]:
    if not found.slow_zones:
        return []
    median, _ = found.limits
    ranges: list[list[int]] = []
    for zone in found.slow_zones:
        if ranges and ranges[-1][1] == zone.offset:
            ranges[-1][1] += zone.length
        else:
            ranges.append([zone.offset, zone.offset + zone.length])
    places = [f"from {size_text(start)} to {size_text(end)}" for start, end in ranges]
    where = ", ".join(places[:RANGES_MAX]) + (" and elsewhere" if places[RANGES_MAX:] else "")
    times = [zone.ns for zone in found.slow_zones]
    slow, usual = (PIECE_BYTES * 1e3 / ns for ns in (sum(times) / len(times), median))
    repeated = all(zone.again_ns is not None for zone in found.slow_zones)
    again = ", and was so when read again" if repeated else ""
    return [
        f"the speed is uneven: {where} it is about {slow:,.0f} MB/s, where {usual:,.0f} MB/s is "
        f"usual{again}; data that random writes have scattered read so (ssdlab refresh)"
    ]


def document(found: Scan) -> dict[str, Any]:
    """What is found as JSON; numbers that are not known are null."""
    median, limit = found.limits
    own = (
        "target kind size_bytes wanted_bytes read_bytes piece_bytes block_bytes direct seconds "
        "again_seconds stopped zero_share unreadable_bytes"
    )
    places: dict[str, list[Any]] = {
        "errors": found.errors,
        "slow": found.slow,
        "slow_zones": found.slow_zones,
    }
    document: dict[str, Any] = finite(
        {name: getattr(found, name) for name in own.split()}
        | {"bytes_per_s": found.bytes_per_s(), "median_ns": median, "limit_ns": limit}
        | {name: [asdict(one) for one in getattr(found, name)] for name in places}
        | {"zones": [asdict(one) for one in found.zones()], "findings": sentences(found)}
    )
    return document
