"""A scan as an answer: a map, the speed over the address, and the places that are bad."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ssdlab import units
from ssdlab.answer import (
    INTERVAL,
    Answer,
    Cell,
    Curve,
    Figure,
    Number,
    Section,
    Table,
    Verdict,
    finite,
    table,
)
from ssdlab.care.blockio import PIECE_BYTES
from ssdlab.care.scan import REPEATED_MAX, Scan, SlowPiece
from ssdlab.care.scanmap import STATES, State, cells
from ssdlab.units import size_text

COLUMNS = 64
ROWS_MAX = 24
TICKS = 8
STRETCHES = 1000
"""Of the curves, at most."""
ROWS_LISTED_MAX = 1000
"""Of a table; the JSON has all."""
ZONES = 16
MEANING: dict[State, str] = {
    "quick": "usual speed",
    "fair": "over 1.25 times the usual time",
    "weak": "over twice the usual time",
    "zero": "zeros only",
    "late": "late once",
    "slow": "slow place",
    "bad": "unreadable",
    "unread": "not read",
}
RANGES_MAX = 3
"""So many slow stretches are named."""
MUCH_ZERO = 0.02
"""Zeros below this share of what was read are not worth a word."""


def answer(scan: Scan) -> Answer:
    """What is unreadable or slow, where, and how fast the rest is."""
    said = [units.sentence(one) for one in (_scanned(scan), *sentences(scan))]
    code = "unreadable" if scan.errors else "slow" if scan.slow_places() else "sound"
    numbers = [
        Number("speed", finite(scan.bytes_per_s() / 1e6), "MB/s", "higher"),
        Number("unreadable", float(scan.unreadable_bytes), "B", "lower"),
        Number("slow places", float(len(scan.slow_places())), "", "lower"),
    ]
    lead = Section(
        said,
        numbers,
        _tables(scan),
        _Charts.of(scan).all(),
        "map",
        "Map and speed",
        verdict=Verdict(code, {"unreadable_bytes": float(scan.unreadable_bytes)}),
    )
    notes = [f"Ended early: {scan.stopped}."] if scan.stopped else []
    return Answer(f"Scan of {scan.target}", "scan", [lead], notes=notes, data=document(scan))


def sentences(scan: Scan) -> list[str]:
    """The findings, most important first."""
    said = [] if scan.kind == "sim" else [_errors(scan)]
    said += _slow(scan)
    said += _zones(scan)
    if scan.zero_share >= MUCH_ZERO:
        said.append(
            f"{units.percent(scan.zero_share)} of what was read is zeros only: a drive answers "
            "blocks that hold no data without touching flash, so their speed says nothing"
        )
    if not scan.direct:
        said.append("the page cache could not be bypassed here, so the speed may be that of memory")
    if scan.kind == "file":
        said.append("a file is scanned where it lies; holes in it come from no drive")
    if scan.kind == "sim":
        said.append(
            "simulated: unreadable blocks are not simulated, nothing else is at work, and what is "
            "slow is slow each time"
        )
    return said


def _errors(scan: Scan) -> str:
    if not scan.errors:
        return f"no read errors in {size_text(scan.read_bytes)}"
    places = "place" if len(scan.errors) == 1 else "places"
    return (
        f"{len(scan.errors)} unreadable {places}, {size_text(scan.unreadable_bytes)} in all, in "
        f"{size_text(scan.read_bytes)}: what lies there is lost; back up the rest"
    )


def _slow(scan: Scan) -> list[str]:
    median, limit = scan.limits
    if math.isnan(median):
        return []
    said = []
    slow = len(scan.slow_places())
    late = sum(piece.slow_place is False for piece in scan.slow)
    unknown = len(scan.slow) - slow - late
    bound = f"{limit / 1e6:.3g} ms, where {median / 1e6:.3g} ms is usual"
    if slow:
        again = "" if scan.kind == "sim" else ", each time they were read"
        said.append(f"{_pieces(slow, 'slow ')} of 1 MiB took more than {bound}{again}")
    if late:
        said.append(
            f"{_pieces(late)} took more than {bound}, but not when read again: a chance delay "
            "by other work or the drive's housekeeping, not the place"
        )
    if unknown:
        why = (
            "the scan was stopped before"
            if scan.stopped
            else f"only the slowest {REPEATED_MAX} are"
        )
        said.append(f"{_pieces(unknown)} took more than {bound}, and were not read again: {why}")
    return said or [f"no slow places: no piece of 1 MiB took more than {bound}"]


def _pieces(count: int, kind: str = "") -> str:
    return f"{count} {kind}piece" + ("" if count == 1 else "s")


def _zones(scan: Scan) -> list[str]:
    if not scan.slow_zones:
        return []
    median, _ = scan.limits
    ranges: list[list[int]] = []
    for zone in scan.slow_zones:
        if ranges and ranges[-1][1] == zone.offset:
            ranges[-1][1] += zone.length
        else:
            ranges.append([zone.offset, zone.offset + zone.length])
    places = [f"from {size_text(start)} to {size_text(end)}" for start, end in ranges]
    where = ", ".join(places[:RANGES_MAX]) + (" and elsewhere" if places[RANGES_MAX:] else "")
    times = [zone.ns for zone in scan.slow_zones]
    slow, usual = (PIECE_BYTES * 1e3 / ns for ns in (sum(times) / len(times), median))
    repeated = all(zone.again_ns is not None for zone in scan.slow_zones)
    again = ", and was so when read again" if repeated else ""
    return [
        f"the speed is uneven: {where} it is about {slow:,.0f} MB/s, where {usual:,.0f} MB/s is "
        f"usual{again}; data that random writes have scattered read so (ssdlab refresh)"
    ]


def document(scan: Scan) -> dict[str, Any]:
    """What is found as JSON; numbers that are not known are null."""
    median, limit = scan.limits
    own = (
        "target kind size_bytes wanted_bytes read_bytes piece_bytes block_bytes direct seconds "
        "again_seconds stopped zero_share unreadable_bytes"
    )
    places: dict[str, list[Any]] = {
        "errors": scan.errors,
        "slow": scan.slow,
        "slow_zones": scan.slow_zones,
    }
    document: dict[str, Any] = finite(
        {name: getattr(scan, name) for name in own.split()}
        | {"bytes_per_s": scan.bytes_per_s(), "median_ns": median, "limit_ns": limit}
        | {name: [asdict(one) for one in getattr(scan, name)] for name in places}
        | {"zones": [asdict(zone) for zone in scan.zones()], "findings": sentences(scan)}
    )
    return document


def _scanned(scan: Scan) -> str:
    virtual = " of simulated time" if scan.kind == "sim" else ""
    whole = "all" if scan.wanted_bytes == scan.size_bytes else "the first"
    if scan.stopped:
        whole = "only the first"
    again = scan.again_seconds > 0.1 * scan.seconds
    return (
        f"scanned {whole} {size_text(scan.read_bytes)} of {scan.target} in "
        f"{units.duration(scan.seconds)}{virtual}, one read of 1 MiB at a time; reads alone ran at "
        f"{units.bytes_per_s(scan.bytes_per_s())}"
        + (f"; {units.duration(scan.again_seconds)} more for what was slow" if again else "")
    )


@dataclass(frozen=True)
class _Charts:
    """The charts of a scan, with the unit of their addresses."""

    found: Scan
    unit: float
    name: str

    @classmethod
    def of(cls, scan: Scan) -> _Charts:
        size = max(scan.wanted_bytes, 1)
        unit, name = next((u, n) for u, n in units.SIZES if size >= 2 * u or u == 1)
        return cls(scan, unit, name)

    def all(self) -> list[Figure]:
        known = bool(np.isfinite(self.found.ns).any())
        return [self._map(), *([self._speed(), self._time()] if known else [])]

    def _address(self, offset: int) -> str:
        digits = 2 if self.found.wanted_bytes < 20 * self.unit else 0
        return f"{offset / self.unit:.{digits}f} {self.name}"

    def _map(self) -> Figure:
        shown = cells(self.found, COLUMNS * ROWS_MAX)
        rows = -(-len(shown) // COLUMNS)
        every = max(1, -(-rows // TICKS))
        names = [self._address(shown[row * COLUMNS].offset) for row in range(rows)]
        curves = []
        for state in STATES:
            own = [place for place, cell in enumerate(shown) if cell.state == state]
            if own:
                curves.append(
                    Curve(
                        f"{MEANING[state]} ({len(own):,})",
                        [float(place % COLUMNS) for place in own],
                        [float(rows - 1 - place // COLUMNS) for place in own],
                        "fields",
                        state,
                    )
                )
        length = size_text(shown[0].length)
        return Figure(
            "Map",
            "",
            "address of the row",
            curves,
            x_names=[""] * COLUMNS,
            y_names=[
                name if row % every == 0 else "" for row, name in enumerate(names)
            ][::-1],
            wide=True,
            note=f"From left to right, then down; a cell is {length} and is as bad as the worst "
            "piece of 1 MiB in it.",
        )  # fmt: skip

    def _speed(self) -> Figure:
        zones = self.found.zones(STRETCHES)
        x = [(zone.offset + zone.length / 2) / self.unit for zone in zones]
        y = [zone.bytes_per_s / 1e6 for zone in zones]
        length = size_text(zones[0].length)
        return Figure(
            "Speed over address",
            f"address, {self.name}",
            "MB/s",
            [Curve("speed", x, y)],
            wide=True,
            note=f"Mean of each stretch of {length}. Reads go one at a time, so this is not the "
            "most that the drive can do.",
        )

    def _time(self) -> Figure:
        scan = self.found
        median, limit = scan.limits
        x, low, high = _extremes(scan.ns, STRETCHES)
        x = x * PIECE_BYTES / self.unit
        end = scan.wanted_bytes / self.unit
        curves = [
            Curve("slowest piece", list(x), list(high / 1e6)),
            Curve("fastest piece", list(x), list(low / 1e6), colour=1),
            Curve("suspect from here", [0.0, end], [limit / 1e6] * 2, "dashed", "limit"),
        ]
        for wanted, state in ((False, "late"), (True, "slow")):
            marked = [piece for piece in scan.slow if bool(piece.slow_place) is wanted]
            if marked:
                places = [piece.offset / self.unit for piece in marked]
                curves.append(
                    Curve(_verdict_of(wanted), places, [piece.ns / 1e6 for piece in marked],
                          "dots", state)
                )  # fmt: skip
        errors = scan.errors[:ROWS_LISTED_MAX]
        if errors:
            places = [error.offset / self.unit for error in errors]
            curves.append(Curve("unreadable", places, [limit / 1e6] * len(errors), "dots", "bad"))
        return Figure(
            "Time of each piece over address",
            f"address, {self.name}",
            "time of 1 MiB, ms",
            curves,
            log_y=True,
            wide=True,
            note=f"Slowest and fastest piece of each stretch. Suspect from "
            f"{units.latency(limit)}, where {units.latency(median)} is usual.",
        )


def _tables(scan: Scan) -> list[Table]:
    def place(at: int) -> Cell:
        return Cell(at, text=f"{at:,}")

    def end(at: int) -> Cell:
        return Cell(at, text=size_text(at))

    unreadable = table(
        "Unreadable",
        scan.errors[:ROWS_LISTED_MAX],
        {
            "unreadable from byte [=B]": lambda one: place(one.offset),
            "bytes [=B]": lambda one: Cell(float(one.length), text=f"{one.length:,}"),
            "block": lambda one: place(one.offset // scan.block_bytes),
            "reason": lambda one: one.reason + "; not narrowed down further" * (not one.exact),
        },
    )
    slow = table(
        "Slow places and late pieces",
        sorted(scan.slow, key=lambda piece: -piece.ns)[:ROWS_LISTED_MAX],
        {
            "slow from byte [=B]": lambda piece: place(piece.offset),
            "took [=ns]": lambda piece: _time_cell(piece.ns),
            "read again [=ns]": lambda piece: _again(piece.again_ns),
            "what it is": _verdict,
        },
        parts={"read again": INTERVAL},
    )
    zones = table(
        "Zones",
        scan.zones(ZONES),
        {
            "from [=B]": lambda zone: end(zone.offset),
            "to [=B]": lambda zone: end(zone.offset + zone.length),
            "speed [MB/s]": lambda zone: Cell(finite(zone.bytes_per_s / 1e6)),
            "slowest piece [=ns]": lambda zone: _time_cell(zone.slowest_ns),
        },
    )
    return [*(one for one in (unreadable, slow) if one.rows), zones]


def _again(times: Sequence[float]) -> Cell | None:
    """Each time; for programs the least and the greatest."""
    text = ", ".join(map(units.latency, times))
    return Cell(None, text=text, low=min(times), high=max(times)) if times else None


def _time_cell(ns: float) -> Cell:
    return Cell(finite(ns), text=units.latency(ns))


def _verdict(piece: SlowPiece) -> str:
    return "not read again" if piece.slow_place is None else _verdict_of(piece.slow_place)


def _verdict_of(place: bool) -> str:
    return "a slow place" if place else "a chance delay"


def _extremes(values: Any, count: int) -> tuple[Any, Any, Any]:
    """Place, least and greatest of each of at most ``count`` stretches; NaN where nothing is."""
    each = max(1, -(-len(values) // count))
    rows = -(-len(values) // each)
    padded = np.full(rows * each, np.nan)
    padded[: len(values)] = values
    table = padded.reshape(rows, each)
    known = np.isfinite(table)
    low = np.where(known, table, np.inf).min(axis=1)
    high = np.where(known, table, -np.inf).max(axis=1)
    empty = ~known.any(axis=1)
    low[empty] = high[empty] = np.nan
    return (np.arange(rows) + 0.5) * each, low, high
