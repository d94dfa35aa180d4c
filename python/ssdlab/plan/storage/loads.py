"""The loads of a price table as fio jobs: random I/O in a hot set, I/O in order, warming."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssdlab.jobfile import JobText

BLOCK = 4096
"""Bytes of a random I/O."""
ORDERED = 1 << 20
"""Bytes of an I/O in order."""
ORDERED_DEPTH = 32
DEPTH = 256
WRITES_PER_DAY = 1e12
"""Bytes that the host writes in a day, where nothing else is said; assumed."""
HOT_BYTES = 20_000_000 * 512
"""The hot set of an article on SSD caches: 20 million sectors."""
PIECES = 25
"""Of a hot set that lies all over the store; a whole percentage of the I/Os goes to each."""


@dataclass(frozen=True)
class HotSet:
    """Where random I/O goes."""

    bytes: int
    spread: bool = True
    """Whether it lies in :data:`PIECES` pieces all over the store, or at its beginning."""

    def on(self, capacity: int) -> HotSet:
        """The same on a store of so many bytes, which it may fill."""
        return HotSet(min(self.bytes, capacity), self.spread)

    def fills(self, capacity: int) -> bool:
        """Whether it is all of the store."""
        return self.bytes >= capacity - PIECES * BLOCK


@dataclass(frozen=True)
class Timing:
    """How long to measure, and what goes before it unmeasured; seconds."""

    seconds: float
    ramp: float


def random_job(name: str, rw: str, hot: HotSet, capacity: int, depth: int, time: Timing) -> JobText:
    """4 KiB at random in the hot set, each place as often as any other."""
    return _job(name, f"{_place(rw, hot, capacity, depth)}{_timed(time)}")


def writes_job(name: str, hot: HotSet, capacity: int, depth: int, count: int) -> JobText:
    """So many random writes in the hot set."""
    return _job(name, f"{_place('randwrite', hot, capacity, depth)}number_ios={count}\n")


def ordered_job(name: str, rw: str, time: Timing) -> JobText:
    """1 MiB after 1 MiB from the beginning."""
    return _job(name, f"rw={rw}\nbs={ORDERED}\niodepth={ORDERED_DEPTH}\nsize=100%\n{_timed(time)}")


def covering_job(
    name: str, rw: str, hot: HotSet, capacity: int, depth: int, *, times: int, most: int
) -> JobText:
    """Every 4 KiB of the hot set ``times`` times in random order, but at most ``most`` I/Os."""
    piece, stride = _pieces(hot, capacity)
    count = min(most // PIECES, times * (piece // BLOCK))
    return _job(
        name,
        f"rw={rw}\nbs={BLOCK}\nnumjobs={PIECES}\niodepth={max(1, depth // PIECES)}\n"
        f"size={piece}\noffset_increment={stride}\nloops={times}\nnumber_ios={max(1, count)}\n"
        "group_reporting\n",
    )


def following(first: JobText, second: JobText) -> JobText:
    """One job file: the second when the first has ended."""
    head, _, options = second.text.partition("\n\n[")[2].partition("]\n")
    return JobText(second.name, f"{first.text}\n[{head}]\nstonewall\n{options}", second.folder)


def _pieces(hot: HotSet, capacity: int) -> tuple[int, int]:
    """Bytes of a piece, and from the beginning of one to that of the next."""
    piece = max(BLOCK, hot.bytes // PIECES // BLOCK * BLOCK)
    stride = capacity // PIECES // BLOCK * BLOCK
    return piece, max(piece, stride) if hot.spread else piece


def _place(rw: str, hot: HotSet, capacity: int, depth: int) -> str:
    text = f"rw={rw}\nbs={BLOCK}\niodepth={depth}\nnorandommap\n"
    if hot.fills(capacity):
        return f"{text}size=100%\n"
    piece, stride = _pieces(hot, capacity)
    if not hot.spread or stride == piece:
        return f"{text}size={hot.bytes // BLOCK * BLOCK}\n"
    zones = ":".join([f"{100 // PIECES}/{piece}:0/{stride - piece}"] * PIECES)
    return f"{text}size=100%\nrandom_distribution=zoned_abs:{zones}\n"


def _timed(time: Timing) -> str:
    ramp = f"ramp_time={round(time.ramp * 1000)}ms\n" if time.ramp else ""
    return f"time_based\nruntime={max(1, round(time.seconds * 1000))}ms\n{ramp}"


def _job(name: str, options: str) -> JobText:
    text = f"[global]\nioengine=libaio\ndirect=1\nrefill_buffers\n\n[{name}]\n{options}"
    return JobText(f"{name}.fio", text, Path.cwd())
