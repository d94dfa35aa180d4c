"""A scan: every piece of a drive or file read once, what cannot be read found to the block, what is
slow told apart from what was late once.

The maker's quick scan reads the first 1.5 GB (Intel SSD Toolbox), the full one everything.
"""

from __future__ import annotations

import errno
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from ssdlab.care.blockio import PIECE_BYTES, Reader, all_zero
from ssdlab.errors import ExperimentError, Interrupted
from ssdlab.numeric import Floats
from ssdlab.progress import ProgressCallback, Teller, tell
from ssdlab.units import bytes_per_s

QUICK_BYTES = 1_500_000_000
"""What a quick scan reads, as the maker's does."""
SPREADS = 8.0
"""A piece is suspect beyond the median by this many robust standard deviations (1.4826 MAD)."""
TIMES_MEDIAN = 3.0
"""Nor is it suspect within this many times the median, however even the rest."""
FEW = 16
"""Fewer pieces with data than that say nothing about the rest."""
REPEATS_MIN, REPEATS_MAX = 3, 10
"""How often a suspect piece is read again; slow each time, it is a slow place."""
FALSE_ALARMS = 0.01
"""How many pieces of a scan may be called slow that were late by chance each time."""
REST_S, REST_MAX_S = 0.3, 5.0
"""Before the first round of that; twice as long before each further one."""
REPEATED_MAX = 256
"""Of so many suspects at most, the slowest first."""
FAILURES_MAX = 128
"""Failed reads in one piece after which it is not narrowed down further: each may take seconds."""
ZONES = 64
ZONES_COMPARED = 16
"""Parts of which each is compared with the rest."""
UNEVEN = 1.4
"""A part is slow where its median piece takes this many times the usual time."""
_GONE = (errno.ENODEV, errno.ENXIO, errno.ENOMEDIUM)

Clock = Callable[[], int]


@dataclass(frozen=True)
class Unreadable:
    """A stretch that could not be read."""

    offset: int
    length: int
    reason: str
    exact: bool = True
    """Whether all of it was tried block by block."""


@dataclass(frozen=True)
class SlowPiece:
    """A piece that took suspiciously long."""

    offset: int
    length: int
    ns: float
    again_ns: tuple[float, ...] = ()
    """What it took when it was read again."""
    slow_place: bool | None = None
    """Whether the place is slow; False where it was a chance delay; None where not repeated."""


@dataclass(frozen=True)
class Zone:
    """One of the equal parts of what was scanned."""

    offset: int
    length: int
    bytes_per_s: float
    """NaN where nothing of it was read."""
    slowest_ns: float


@dataclass(frozen=True)
class SlowZone:
    """One of the equal parts, most of whose pieces took suspiciously long."""

    offset: int
    length: int
    ns: float
    """Median time of a piece."""
    again_ns: float | None
    """Median of some of them read again; None where that was not done."""


@dataclass
class Scan:
    """What a scan found."""

    target: str
    kind: Literal["device", "file", "sim"]
    size_bytes: int
    """Of the whole target."""
    wanted_bytes: int
    """What was to be scanned, from the beginning on; of more than there is, all of it."""
    block_bytes: int
    direct: bool
    ns: Floats = field(init=False)
    """Time of each piece of 1 MiB (the last may be shorter); NaN where unread or unreadable."""
    zero: npt.NDArray[np.bool_] = field(init=False)
    """Pieces that hold zeros only."""
    errors: list[Unreadable] = field(default_factory=list)
    slow: list[SlowPiece] = field(default_factory=list)
    slow_zones: list[SlowZone] = field(default_factory=list)
    """Slow when they were read again too, or not read again."""
    pieces_done: int = 0
    seconds: float = 0.0
    """Of reading everything once."""
    again_seconds: float = 0.0
    """Of reading again what was slow, with the rests."""
    stopped: str | None = None
    """Why it ended early; None where it is whole."""

    def __post_init__(self) -> None:
        self.wanted_bytes = min(self.wanted_bytes, self.size_bytes)
        pieces = -(-self.wanted_bytes // PIECE_BYTES)
        self.ns, self.zero = np.full(pieces, np.nan), np.zeros(pieces, dtype=np.bool_)

    @property
    def piece_bytes(self) -> int:
        """Length of a piece."""
        return PIECE_BYTES

    @property
    def read_bytes(self) -> int:
        """What was looked at, readable or not."""
        return min(self.pieces_done * PIECE_BYTES, self.wanted_bytes)

    @property
    def unreadable_bytes(self) -> int:
        """What could not be read."""
        return sum(error.length for error in self.errors)

    @property
    def limits(self) -> tuple[float, float]:
        """Median and suspicion limit of the time of a piece, ns; NaN where nothing was read."""
        return limits(self.ns, self.zero)

    @property
    def zero_share(self) -> float:
        """Share of the pieces read that hold zeros only."""
        read = np.isfinite(self.ns)
        return float(self.zero[read].mean()) if read.any() else 0.0

    def stretch(self, first: int, after: int | None = None) -> tuple[int, int]:
        """Offset and length of a piece, or of all from it to the one before ``after``."""
        start, end = (i * PIECE_BYTES for i in (first, first + 1 if after is None else after))
        return start, min(end, self.wanted_bytes) - start

    def bytes_per_s(self) -> float:
        """Speed of all that was read; NaN where nothing was."""
        return _speed(self, 0, len(self.ns))

    def slow_places(self) -> list[SlowPiece]:
        """Pieces that were slow each time."""
        return [piece for piece in self.slow if piece.slow_place]

    def zones(self, count: int = ZONES) -> list[Zone]:
        """The scan in equal parts, from the beginning on."""
        count = max(1, min(count, len(self.ns)))
        edges = [len(self.ns) * i // count for i in range(count + 1)]
        zones = []
        for first, after in itertools.pairwise(edges):
            part = self.ns[first:after]
            read = part[np.isfinite(part)]
            slowest = float(read.max()) if len(read) else float("nan")
            zones.append(Zone(*self.stretch(first, after), _speed(self, first, after), slowest))
        return zones


def limits(ns: Floats, zero: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Median and the time beyond which a piece is suspect; where enough pieces that hold data were
    read, they alone say so, for a drive answers the others without touching flash."""
    read = np.isfinite(ns)
    data = ns[read & ~zero]
    used = data if len(data) >= FEW else ns[read]
    if not len(used):
        return float("nan"), float("nan")
    median = float(np.median(used))
    spread = 1.4826 * float(np.median(np.abs(used - median)))
    return median, max(median + SPREADS * spread, TIMES_MEDIAN * median)


def scan(
    reader: Reader,
    found: Scan,
    *,
    progress: ProgressCallback | None = None,
    clock: Clock = time.perf_counter_ns,
    rest_s: float = REST_S,
) -> Scan:
    """Reads all that ``found`` wants with ``reader`` and writes down what happens. Ctrl-C, a
    callback that returns False, or a device that goes away end it early: what was found so far is
    kept, and ``stopped`` says why."""
    began = time.monotonic()
    passed: float | None = None
    try:
        _pass(reader, found, progress, clock)
        passed = time.monotonic()
        suspect(found)
        _repeat(reader, found, progress, clock, rest_s)
        find_slow_zones(found, lambda pieces: _again(reader, found, pieces, clock, rest_s))
    except KeyboardInterrupt:
        found.stopped = Interrupted.sentence()
        if found.pieces_done < len(found.ns):
            suspect(found)
    except _GoneError as error:
        found.stopped = str(error)
        suspect(found)
    found.errors = _joined(found.errors)
    ended = time.monotonic()
    found.seconds = (passed or ended) - began
    found.again_seconds = ended - (passed or ended)
    return found


class _GoneError(Exception):
    """The device no longer answers at all."""


def _pass(reader: Reader, found: Scan, progress: ProgressCallback | None, clock: Clock) -> None:
    teller = Teller(progress)

    def text() -> str:
        places = f", {len(found.errors)} unreadable places" if found.errors else ""
        return f"{bytes_per_s(found.bytes_per_s())}{places}"

    for piece in range(len(found.ns)):
        offset, length = found.stretch(piece)
        before = clock()
        try:
            view = reader.read(offset, length)
        except OSError as error:
            _narrow(reader, found, offset, length, error)
        else:
            found.ns[piece] = clock() - before
            found.zero[piece] = all_zero(view)
        found.pieces_done = piece + 1
        teller((piece + 1) / len(found.ns), text)


# --- errors


def _narrow(reader: Reader, found: Scan, offset: int, length: int, error: OSError) -> None:
    """Halves a piece that cannot be read until the blocks are known that cannot."""
    if error.errno in _GONE:
        raise _GoneError(f"the device went away at {offset} ({error.strerror})") from None
    bad: list[Unreadable] = []
    budget = FAILURES_MAX
    waiting = [(offset, length, _reason(error))]  # known to fail as a whole; the first comes last
    while waiting:
        start, size, reason = waiting.pop()
        if size <= found.block_bytes or budget <= 0:
            bad.append(Unreadable(start, size, reason, size <= found.block_bytes))
            continue
        blocks = -(-size // found.block_bytes)
        half = blocks // 2 * found.block_bytes
        failed = []
        for begin, count in ((start, half), (start + half, size - half)):
            try:
                reader.read(begin, count)
            except OSError as again:
                if again.errno in _GONE:
                    found.errors += _joined(bad)
                    raise _GoneError(f"the device went away at {begin}") from None
                budget -= 1
                failed.append((begin, count, _reason(again)))
        waiting += reversed(failed)
    # Read in halves all of it may come: then the piece failed by chance, and is not an error.
    found.errors += _joined(bad)


def _joined(bad: list[Unreadable]) -> list[Unreadable]:
    """Neighbours as one stretch."""
    out: list[Unreadable] = []
    for one in bad:
        last = out[-1] if out else None
        if last and last.offset + last.length == one.offset and last.exact == one.exact:
            out[-1] = Unreadable(last.offset, last.length + one.length, last.reason, one.exact)
        else:
            out.append(one)
    return out


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


# --- slow places


def suspect(found: Scan, slow_place: bool | None = None) -> None:
    """Notes the pieces that took suspiciously long, and whether that is known to be the place."""
    # Nothing is above a limit that is NaN.
    pieces = map(int, np.flatnonzero(np.nan_to_num(found.ns) > found.limits[1]))
    found.slow = [SlowPiece(*found.stretch(i), float(found.ns[i]), (), slow_place) for i in pieces]


def _repeat(
    reader: Reader, found: Scan, progress: ProgressCallback | None, clock: Clock, rest_s: float
) -> None:
    """Reads suspects again, after the pass (right away the drive's memory might answer), in rounds
    with rests between them, so that one burst of other work does not meet them all."""
    _, limit = found.limits
    left = sorted(range(len(found.slow)), key=lambda i: -found.slow[i].ns)[:REPEATED_MAX]
    for number in range(_rounds(found)):
        if left:
            time.sleep(min(rest_s * 2**number, REST_MAX_S))
        still = []
        for place in sorted(left):
            piece = found.slow[place]
            if (took := _timed(reader, piece.offset, piece.length, clock)) is not None:
                again, slow = (*piece.again_ns, took), took > limit
                found.slow[place] = replace(piece, again_ns=again, slow_place=slow)
                still += [place] * slow
            tell(progress, 1.0, f"reading {len(left)} slow pieces again, round {number + 1}")
        left = still


def _rounds(found: Scan) -> int:
    """Rounds after which no piece is left that was late by chance alone: if all suspects were,
    their share is the chance of being late."""
    count = len(found.slow)
    chance = count / max(1, int(np.isfinite(found.ns).sum()))
    if not 0 < chance < 1:
        return REPEATS_MIN if chance == 0 else REPEATS_MAX
    needed = math.ceil(math.log(FALSE_ALARMS / count) / math.log(chance))
    return min(max(needed, REPEATS_MIN), REPEATS_MAX)


def find_slow_zones(
    found: Scan, again: Callable[[Sequence[int]], float | None] | None = None
) -> None:
    """Looks for parts that are slow as a whole; ``again`` reads some of their pieces once more and
    tells their median time, ns."""
    pieces = len(found.ns)
    if pieces < ZONES_COMPARED * FEW:
        return
    median, _ = found.limits
    for i in range(ZONES_COMPARED):
        first, after = pieces * i // ZONES_COMPARED, pieces * (i + 1) // ZONES_COMPARED
        part = found.ns[first:after]
        data = np.flatnonzero(np.isfinite(part) & ~found.zero[first:after])
        if len(data) < FEW or float(np.median(part[data])) <= UNEVEN * median:
            continue
        some = data[np.linspace(0, len(data) - 1, FEW).astype(int)]
        repeated = again([first + int(one) for one in some]) if again is not None else None
        if repeated is None or repeated > UNEVEN * median:
            usual = float(np.median(part[data]))
            found.slow_zones.append(SlowZone(*found.stretch(first, after), usual, repeated))


def _again(
    reader: Reader, found: Scan, pieces: Sequence[int], clock: Clock, rest_s: float
) -> float | None:
    """The least median of some rounds: a burst of other work does not meet them all."""
    medians = []
    for number in range(REPEATS_MIN):
        time.sleep(rest_s * 2**number)
        times = [_timed(reader, *found.stretch(i), clock) for i in pieces]
        took = [one for one in times if one is not None]
        medians += [float(np.median(took))] if took else []
    return min(medians, default=None)


def _timed(reader: Reader, offset: int, length: int, clock: Clock) -> float | None:
    """How long a read takes, ns; None where it fails."""
    before = clock()
    try:
        reader.read(offset, length)
    except OSError:
        return None
    return float(clock() - before)


def _speed(found: Scan, first: int, after: int) -> float:
    part = found.ns[first:after]
    read = np.isfinite(part)
    spent = float(part[read].sum())
    if spent <= 0:
        return float("nan")
    last = len(found.ns) - 1
    size = int(read.sum()) * PIECE_BYTES
    if first <= last < after and read[last - first]:
        size -= PIECE_BYTES - found.stretch(last)[1]
    return 1e9 * size / spent


def require_whole(found: Scan) -> None:
    """Raises ExperimentError where nothing at all was read."""
    if not found.pieces_done:
        raise ExperimentError(f"{found.target}: nothing was read ({found.stopped})")
