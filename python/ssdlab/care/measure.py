"""The speed of sequential reads, measured as the experiment `fragmentation` does."""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ssdlab.care.blockio import PIECE_BYTES
from ssdlab.progress import ProgressCallback, Teller

Stretches = Sequence[tuple[int, int]]
"""Start and end of each, ascending."""

MEASURED_MAX_BYTES = 4 << 30
"""What is read to measure, as there; spread evenly where there is more."""
_STRETCH_BYTES = 16 << 20
PASSES = 3
"""Reads of which the best counts, as there."""
PASSES_MAX_S = 60.0
"""No further read once they have taken that long together."""


@dataclass(frozen=True)
class Speed:
    """Sequential direct reads of 1 MiB, one at a time."""

    bytes_per_s: tuple[float, ...]
    """Of each pass."""
    read_bytes: int
    """In one pass."""

    @property
    def best(self) -> float:
        """Of the fastest pass."""
        return max(self.bytes_per_s)

    @property
    def spread(self) -> float:
        """By what share the passes differ."""
        return (self.best - min(self.bytes_per_s)) / self.best


def measure(
    descriptor: int,
    stretches: Stretches,
    block: int,
    progress: ProgressCallback | None,
    when: str,
) -> Speed:
    """Reads the same places in the same order each time; bytes per second of each pass."""
    pieces = [(o, n // block * block) for o, n in pieces_of(_sample(stretches)) if n >= block]
    if not pieces:
        pieces = [(0, block)]
    view = memoryview(mmap.mmap(-1, PIECE_BYTES))
    rates: list[float] = []
    began, teller = time.monotonic(), Teller(progress)
    amount = 0
    while len(rates) < PASSES and (not rates or time.monotonic() - began < PASSES_MAX_S):
        amount, start = 0, time.perf_counter()
        for number, (offset, length) in enumerate(pieces):
            with contextlib.suppress(OSError):
                amount += os.preadv(descriptor, [view[:length]], offset)
            share = (len(rates) + number / len(pieces)) / PASSES
            teller(share, lambda: f"reading to measure the speed {when}")
        rates.append(max(1, amount) / max(1e-9, time.perf_counter() - start))
    return Speed(tuple(rates), amount)


def _sample(stretches: Stretches) -> Stretches:
    """All, or as much as `MEASURED_MAX_BYTES`, in stretches spread evenly."""
    total = sum(end - start for start, end in stretches)
    if total <= MEASURED_MAX_BYTES:
        return stretches
    every = total * _STRETCH_BYTES / MEASURED_MAX_BYTES
    chosen: list[tuple[int, int]] = []
    passed, wanted = 0, 0.0
    for start, end in stretches:
        while wanted < passed + end - start:
            begin = start + max(0, int(wanted) - passed) // PIECE_BYTES * PIECE_BYTES
            chosen.append((begin, min(end, begin + _STRETCH_BYTES)))
            wanted += every
        passed += end - start
    return chosen


def pieces_of(stretches: Stretches) -> Iterator[tuple[int, int]]:
    """Offset and length of each piece of 1 MiB, the last of a stretch perhaps shorter."""
    for start, end in stretches:
        for offset in range(start, end, PIECE_BYTES):
            yield offset, min(PIECE_BYTES, end - offset)
