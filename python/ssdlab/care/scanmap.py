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


def cells(scan: Scan, count: int) -> list[MapCell]:
    """The scan in at most ``count`` cells of equal length, the last perhaps shorter."""
    pieces = len(scan.ns)
    each = max(1, -(-pieces // count))
    median, _ = scan.limits
    slow = {place.offset // PIECE_BYTES for place in scan.slow_places()}
    late = {piece.offset // PIECE_BYTES for piece in scan.slow} - slow
    bad = {
        piece
        for error in scan.errors
        for piece in range(
            error.offset // PIECE_BYTES, -(-(error.offset + error.length) // PIECE_BYTES)
        )
    }
    out = []
    for first in range(0, pieces, each):
        after = min(first + each, pieces)
        own = range(first, after)
        part = scan.ns[first:after]
        read = part[np.isfinite(part)]
        state: State
        if any(i in bad for i in own):
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
            times = float(read.mean()) / median
            state = "quick" if times <= FAIR else "fair" if times <= WEAK else "weak"
        out.append(MapCell(*scan.stretch(first, after), state))
    return out
