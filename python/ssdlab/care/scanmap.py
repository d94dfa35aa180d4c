"""A scan as a map: equal cells in the order of addresses, each as bad as the worst piece in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ssdlab.care.blockio import PIECE_BYTES
from ssdlab.care.scan import Scan

State = Literal["quick", "fair", "weak", "zero", "late", "slow", "bad", "unread"]

STATES: tuple[State, ...] = ("quick", "fair", "weak", "zero", "late", "slow", "bad", "unread")
FAIR, WEAK = 1.25, 2.0
"""From these many times the usual time on a cell is no longer quick, and weak."""


@dataclass(frozen=True)
class MapCell:
    """A stretch of the map."""

    offset: int
    length: int
    state: State
    mean_ns: float
    """Of its pieces that were read; NaN where none was."""
    slowest_ns: float
    bad_bytes: int


def cells(scan: Scan, count: int) -> list[MapCell]:
    """The scan in at most ``count`` cells of equal length, the last perhaps shorter."""
    pieces = len(scan.ns)
    each = max(1, -(-pieces // count))
    median, _ = scan.limits
    slow = {place.offset // PIECE_BYTES for place in scan.slow_places()}
    late = {piece.offset // PIECE_BYTES for piece in scan.slow} - slow
    bad = _lost(scan)
    out = []
    for first in range(0, pieces, each):
        after = min(first + each, pieces)
        own = range(first, after)
        part = scan.ns[first:after]
        read = part[np.isfinite(part)]
        mean = float(read.mean()) if len(read) else float("nan")
        slowest = float(read.max()) if len(read) else float("nan")
        lost = sum(bad.get(i, 0) for i in own)
        state: State
        if lost:
            state = "bad"
        elif any(i in slow for i in own):
            state = "slow"
        elif any(i in late for i in own):
            state = "late"
        elif not len(read):
            # A piece that failed and then came whole in halves has no time of its own.
            state = "late" if first < scan.pieces_done else "unread"
        elif scan.zero[first:after][np.isfinite(part)].all():
            state = "zero"
        else:
            state = _speed(mean / median)
        end = min(after * PIECE_BYTES, scan.wanted_bytes)
        start = first * PIECE_BYTES
        out.append(MapCell(start, end - start, state, mean, slowest, lost))
    return out


def _lost(scan: Scan) -> dict[int, int]:
    """Unreadable bytes of each piece that has any."""
    lost: dict[int, int] = {}
    for error in scan.errors:
        at, end = error.offset, error.offset + error.length
        while at < end:
            piece = at // PIECE_BYTES
            after = min(end, (piece + 1) * PIECE_BYTES)
            lost[piece] = lost.get(piece, 0) + after - at
            at = after
    return lost


def _speed(times: float) -> State:
    return "quick" if times <= FAIR else "fair" if times <= WEAK else "weak"
