"""What a protocol is made of: steps over a target, and what they may ask of each other.

A step has its key, then its title, then what is its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from ssdlab.errors import InputError
from ssdlab.given import in_python

if TYPE_CHECKING:
    from ssdlab.engine.records import Records

S = TypeVar("S")
WINDOW = 5
"""Rounds of a measurement window (PTS)."""
ROUNDS_MAX = 25
"""Rounds after which a test ends without steady state (PTS)."""


def looked_at(kind: type[S]) -> type[S]:
    """A step whose values are of its types and all there, or a sentence says which is not: who
    writes a protocol may take one for another."""
    make = in_python(kind.__init__)

    @functools.wraps(kind.__init__)
    def made(self: S, *args: object, **kwargs: object) -> None:
        try:
            make(self, *args, **kwargs)
        except InputError as error:
            raise InputError(f"{kind.__name__}: {error.message}") from None
        except TypeError as error:
            # Python's own words: what is missing, or that it takes no such thing.
            _, ours, said = str(error).partition(f"{kind.__name__}.__init__() ")
            if not ours:
                raise
            key = next(iter((*args, kwargs.get("key", "without a key"))))
            raise InputError(f"{kind.__name__} ({key}): {said}") from None

    kind.__init__ = made  # type: ignore[assignment]
    return kind


@dataclass(frozen=True)
class Shape:
    """How a job asks a drive for I/O: what its speed depends on."""

    random: bool = False
    bs: int = 128 << 10
    """Bytes of an I/O; of a list of sizes, the largest."""
    in_flight: int = 1
    """I/Os in flight, of all threads."""
    write_share: float = 0.0
    """Share of what is moved that is written."""


@looked_at
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
    shape: Shape = Shape()
    most_s: float | None = None
    """Where an amount bounds it: it ends after so long even so."""
    measured: bool = True
    """Whether it is a measurement; otherwise it only brings the drive into a state."""


@looked_at
@dataclass(frozen=True)
class Purge:
    """Brings the drive back to the state fresh out of the box, as far as the target can."""

    key: str = "purge"
    title: str = "purge"


@looked_at
@dataclass(frozen=True)
class Trim:
    """Deallocates a part of the drive, or all of it."""

    key: str
    title: str = "TRIM everything"
    offset: int = 0
    length: int | None = None
    """Bytes; None to the end."""


@looked_at
@dataclass(frozen=True)
class Idle:
    """Leaves the drive alone."""

    key: str
    title: str = "idle"
    seconds: float = field(kw_only=True)


@dataclass(frozen=True)
class Tracked:
    """A value that must hold still over the rounds."""

    name: str
    unit: str
    value: Callable[[Records, int], float | None]
    """From the records and the number of a round (from 1); None counts as nothing moved."""
    job: str = ""
    """The job of each round that it is of; empty where it is of several."""

    @staticmethod
    def of(title: str, what: str, name: str) -> Tracked:
        """A quantity of job ``name`` of each round."""
        unit = {"iops": "IOPS", "mbps": "MB/s", "mean": "us"}[what]
        return Tracked(title, unit, lambda records, n: records.value(what, in_round(n, name)), name)


@looked_at
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
class Repeated:
    """Jobs alike that follow one another until an amount is moved, the drive is steady, or there
    were enough of them: what a :class:`Then` may expect."""

    job: Job
    """Any one of them, bounded by time."""
    amount: int
    """Bytes that all move together before they end."""
    least: int
    """How many there are if the drive is steady as soon as it can be."""
    most: int
    """How many there are at most."""


@looked_at
@dataclass(frozen=True)
class Then:
    """Steps that depend on what has been measured before them."""

    key: str
    make: Callable[[Records], Sequence[Step]]
    expected: Sequence[Step | Repeated] = ()
    """About what they will be, for the estimate."""


Step = Job | Purge | Trim | Idle | Rounds | Then


def in_round(number: int, name: str) -> str:
    """The key of job ``name`` in a round."""
    return f"round{number:02d}/{name}"
