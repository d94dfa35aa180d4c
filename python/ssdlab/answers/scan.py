"""A scan as an answer: a map, the speed over the address, and the places that are bad."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ssdlab import units
from ssdlab.answer import (
    Answer,
    Cell,
    Cells,
    Curve,
    Figure,
    Number,
    Section,
    Table,
    Verdict,
    finite,
)
from ssdlab.answer import columns as columns_of
from ssdlab.care.blockio import PIECE_BYTES
from ssdlab.care.scan import REPEATED_MAX, Scan, Slow
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
_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def answer(found: Scan) -> Answer:
    """What is unreadable or slow, where, and how fast the rest is."""
    said = [units.sentence(one) for one in (_scanned(found), *sentences(found))]
    code = "unreadable" if found.errors else "slow" if found.slow_places() else "sound"
    numbers = [
        Number("speed", finite(found.bytes_per_s() / 1e6), "MB/s", "higher"),
        Number("unreadable", float(found.unreadable_bytes), "B", "lower"),
        Number("slow places", float(len(found.slow_places())), "", "lower"),
    ]
    lead = Section(
        said,
        numbers,
        _tables(found),
        _Charts.of(found).all(),
        "map",
        "Map and speed",
        verdict=Verdict(code, {"unreadable_bytes": float(found.unreadable_bytes)}),
    )
    notes = [f"Ended early: {found.stopped}."] if found.stopped else []
    return Answer(f"Scan of {found.target}", "scan", [lead], notes=notes, data=document(found))


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


def _scanned(found: Scan) -> str:
    virtual = " of simulated time" if found.kind == "sim" else ""
    whole = "all" if found.wanted_bytes == found.size_bytes else "the first"
    if found.stopped:
        whole = "only the first"
    again = found.again_seconds > 0.1 * found.seconds
    return (
        f"scanned {whole} {size_text(found.read_bytes)} of {found.target} in "
        f"{units.duration(found.seconds)}{virtual} at {units.bytes_per_s(found.bytes_per_s())}, "
        "one read of 1 MiB at a time"
        + (f"; {units.duration(found.again_seconds)} more for what was slow" if again else "")
    )


@dataclass(frozen=True)
class _Charts:
    """The charts of a scan, with the unit of their addresses."""

    found: Scan
    unit: int
    name: str

    @classmethod
    def of(cls, found: Scan) -> _Charts:
        size = max(found.wanted_bytes, 1)
        unit, name = next(((u, n) for u, n in _UNITS if size >= 2 * u), (1, "B"))
        return cls(found, unit, name)

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
        x = [(one.offset + one.length / 2) / self.unit for one in zones]
        y = [one.bytes_per_s / 1e6 for one in zones]
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
        found = self.found
        median, limit = found.limits
        x, low, high = _extremes(found.ns, STRETCHES)
        x = x * PIECE_BYTES / self.unit
        end = found.wanted_bytes / self.unit
        curves = [
            Curve("slowest piece", list(x), list(high / 1e6)),
            Curve("fastest piece", list(x), list(low / 1e6), colour=1),
            Curve("suspect from here", [0.0, end], [limit / 1e6] * 2, "dashed", "limit"),
        ]
        for wanted, state in ((False, "late"), (True, "slow")):
            marked = [one for one in found.slow if bool(one.slow_place) is wanted]
            if marked:
                places = [one.offset / self.unit for one in marked]
                curves.append(
                    Curve(_verdict_of(wanted), places, [one.ns / 1e6 for one in marked],
                          "dots", state)
                )  # fmt: skip
        errors = found.errors[:ROWS_LISTED_MAX]
        if errors:
            places = [one.offset / self.unit for one in errors]
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


def _tables(found: Scan) -> list[Table]:
    tables = []
    if found.errors:
        rows: list[Cells] = [
            [
                Cell(one.offset, text=f"{one.offset:,}"),
                Cell(float(one.length), text=f"{one.length:,}"),
                Cell(block, text=f"{block:,}"),
                one.reason + ("" if one.exact else "; not narrowed down further"),
            ]
            for one in found.errors[:ROWS_LISTED_MAX]
            for block in (one.offset // found.block_bytes,)
        ]
        heads = columns_of("unreadable from byte [=B] | bytes [=B] | block | reason")
        tables.append(Table("Unreadable", heads, rows))
    if found.slow:
        worst = sorted(found.slow, key=lambda one: -one.ns)[:ROWS_LISTED_MAX]
        rows = [
            [
                Cell(one.offset, text=f"{one.offset:,}"),
                _time_cell(one.ns),
                ", ".join(units.latency(ns) for ns in one.again_ns) or None,
                _verdict(one),
            ]
            for one in worst
        ]
        heads = columns_of("slow from byte [=B] | took [=ns] | read again | what it is")
        tables.append(Table("Slow places and late pieces", heads, rows))
    rows = [
        [
            *(Cell(end, text=size_text(end)) for end in (one.offset, one.offset + one.length)),
            Cell(finite(one.bytes_per_s / 1e6)),
            _time_cell(one.slowest_ns),
        ]
        for one in found.zones(ZONES)
    ]
    tables.append(
        Table("Zones", columns_of("from [=B] | to [=B] | speed [MB/s] | slowest piece [=ns]"), rows)
    )
    return tables


def _time_cell(ns: float) -> Cell:
    return Cell(finite(ns), text=units.latency(ns))


def _verdict(one: Slow) -> str:
    return "not read again" if one.slow_place is None else _verdict_of(one.slow_place)


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
