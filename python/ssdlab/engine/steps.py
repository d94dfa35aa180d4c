"""What a protocol is made of: steps over a target, and what they may ask of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssdlab.engine.records import Records

WINDOW = 5
"""Rounds of a measurement window (PTS)."""
ROUNDS_MAX = 25
"""Rounds after which a test ends without steady state (PTS)."""


@dataclass(frozen=True)
class Job:
    """One fio job run to its end. Made by :meth:`ssdlab.engine.setup.Setup.job`."""

    key: str
    """Unique in a run of the protocol, such as ``round03/r65-4k``."""
    title: str
    """What it does, for people."""
    text: str
    """The job file."""
    seconds: float | None
    """How long it takes; None where an amount of data bounds it."""
    amount: int = 0
    """Bytes that it moves where an amount bounds it."""
    write_share: float = 0.0
    """Share of what it moves that is written."""
    measured: bool = True
    """Whether it is a measurement; otherwise it only brings the drive into a state."""


@dataclass(frozen=True)
class Purge:
    """Brings the drive back to the state fresh out of the box, as far as the target can."""

    key: str = "purge"
    title: str = "purge"


@dataclass(frozen=True)
class Trim:
    """Deallocates a part of the drive, or all of it."""

    key: str
    title: str = "TRIM everything"
    offset: int = 0
    length: int | None = None
    """Bytes; None to the end."""


@dataclass(frozen=True)
class Idle:
    """Leaves the drive alone."""

    key: str
    seconds: float
    title: str = "idle"


@dataclass(frozen=True)
class Tracked:
    """A value that must hold still over the rounds."""

    name: str
    unit: str
    value: Callable[[Records, int], float]
    """From the records and the number of a round (from 1)."""


@dataclass(frozen=True)
class Rounds:
    """The same jobs again and again until every tracked value is steady by the rule of the PTS."""

    key: str
    title: str
    jobs: Callable[[int], Sequence[Job]]
    """The jobs of a round (from 1); their keys tell the rounds apart (:func:`in_round`)."""
    tracked: Sequence[Tracked]
    most: int = ROUNDS_MAX
    window: int = WINDOW


@dataclass(frozen=True)
class Then:
    """Steps that depend on what has been measured before them."""

    key: str
    make: Callable[[Records], Sequence[Step]]
    expected: Sequence[Step] = ()
    """About what they will be, for the estimate."""


Step = Job | Purge | Trim | Idle | Rounds | Then


def in_round(number: int, name: str) -> str:
    """The key of job ``name`` in a round."""
    return f"round{number:02d}/{name}"
