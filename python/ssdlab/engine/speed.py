"""How fast a drive is expected to be, low and high, by what it is asked for."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from ssdlab.engine.setup import KIB
from ssdlab.engine.steps import Job, Shape
from ssdlab.errors import InputError
from ssdlab.fio.job import FASTEST
from ssdlab.results import Result

WITHIN = 1.45
"""Speeds that were measured or given hold within this factor, down and up: high / low is 2.1."""
PURE = 0.02
"""Shares of writes below this, or as near to 1, are those of one direction alone."""

Source = Literal["assumed", "profile", "earlier", "probe", "guess"]


class SpeedBounds(NamedTuple):
    """A lower and an upper bound."""

    low: float
    high: float

    def __add__(self, other: object) -> SpeedBounds:
        """The bounds of a sum."""
        assert isinstance(other, SpeedBounds)
        return SpeedBounds(self.low + other.low, self.high + other.high)

    def times(self, factor: float) -> SpeedBounds:
        """Both, so many times."""
        return SpeedBounds(self.low * factor, self.high * factor)

    @property
    def middle(self) -> float:
        """Their geometric mean."""
        return math.sqrt(self.low * self.high)


def around(value: float, down: float = WITHIN, up: float = WITHIN) -> SpeedBounds:
    """From so many times less than ``value`` to so many times more."""
    return SpeedBounds(value / down, value * up)


@dataclass(frozen=True)
class SpeedPoint:
    """What a job moved: a point of measured speed."""

    shape: Shape
    bytes: int
    seconds: float

    def document(self) -> dict[str, Any]:
        """As a line of the journal keeps it."""
        return {**asdict(self.shape), "bytes": self.bytes, "seconds": self.seconds}

    @staticmethod
    def read(document: Mapping[str, Any]) -> SpeedPoint | None:
        """What :meth:`document` wrote; None where it says nothing."""
        try:
            fields = dict(document)
            moved, seconds = int(fields.pop("bytes")), float(fields.pop("seconds"))
            shape = Shape(**fields)
        except (KeyError, TypeError, ValueError):
            return None
        return SpeedPoint(shape, moved, seconds) if moved > 0 and seconds > 0 else None


def moved_by(job: Job, result: Result) -> SpeedPoint | None:
    """What a finished job moved; None where that was nothing."""
    direction_stats = [stats for job in result.jobs for stats in job.directions()]
    moved = sum(stats.io_bytes for stats in direction_stats)
    seconds = max((stats.runtime_s for stats in direction_stats), default=0.0)
    return SpeedPoint(job.shape, moved, seconds) if moved and seconds else None


@dataclass(frozen=True)
class Speeds:
    """What a drive is expected to do."""

    known: Mapping[Shape, SpeedBounds]
    """Bytes per second."""
    source: Source
    words: str
    """Where that comes from, for people."""

    def of(self, shape: Shape) -> SpeedBounds:
        """Bytes per second of jobs of that shape."""
        if shape in self.known:
            return self.known[shape]
        share = shape.write_share
        if PURE < share < 1 - PURE:
            # Reads and writes take turns, so their times add up.
            reads, writes = (self._pure(shape, one) for one in (False, True))
            return SpeedBounds(
                *(1 / ((1 - share) / r + share / w) for r, w in zip(reads, writes, strict=True))
            )
        return self._pure(shape, share > 0.5)

    def guessed(self, shape: Shape) -> bool:
        """Whether nothing is known of jobs like that."""
        if self.source == "guess":
            return True
        ways = {True, False} if PURE < shape.write_share < 1 - PURE else {shape.write_share > 0.5}
        return shape not in self.known and any(not self._like(shape, way) for way in ways)

    def _like(self, shape: Shape, writes: bool) -> list[tuple[Shape, SpeedBounds]]:
        """What is known of the same pattern in one direction, as near in depth as there is."""
        alike = [
            (one, span)
            for one, span in self.known.items()
            if one.random == shape.random and abs(one.write_share - float(writes)) <= PURE
        ]
        if not alike:
            return []
        distance = {
            one.in_flight: abs(math.log(one.in_flight / shape.in_flight)) for one, _ in alike
        }
        nearest = min(distance, key=lambda depth: distance[depth])
        found = [(shape, span) for shape, span in alike if shape.in_flight == nearest]
        return sorted(found, key=lambda point: point[0].bs)

    def _pure(self, shape: Shape, writes: bool) -> SpeedBounds:
        points = self._like(shape, writes)
        if not points:
            return GUESS._pure(shape, writes)
        sizes = [shape.bs for shape, _ in points]
        if shape.bs <= sizes[0]:
            # Smaller I/Os are as many; in order they are merged, so there the bytes are as many.
            return points[0][1].times(shape.bs / sizes[0] if shape.random else 1.0)
        for (one, a), (other, b) in itertools.pairwise(points):
            if shape.bs <= other.bs:
                part = math.log(shape.bs / one.bs) / math.log(other.bs / one.bs)
                return SpeedBounds(*(x ** (1 - part) * y**part for x, y in zip(a, b, strict=True)))
        return points[-1][1]

    def with_measured(self, points: Iterable[SpeedPoint], words: str) -> Speeds:
        """The same, but where something has been measured, that."""
        known = {**self.known, **measured(points)}
        return Speeds(known, "earlier", words)

    def document(self) -> dict[str, Any]:
        """As a run's manifest keeps it."""
        known = [{**asdict(shape), "span": list(span)} for shape, span in self.known.items()]
        return {"source": self.source, "words": self.words, "known": known}


def read(document: Mapping[str, Any] | None) -> Speeds:
    """What :meth:`Speeds.document` wrote; the guess where nothing was kept."""
    if not document:
        return GUESS
    known = {}
    for one in document["known"]:
        fields = dict(one)
        span = SpeedBounds(*fields.pop("span"))
        known[Shape(**fields)] = span
    return Speeds(known, document["source"], document["words"])


def measured(points: Iterable[SpeedPoint]) -> dict[Shape, SpeedBounds]:
    """Speeds by shape: all bytes over all the time that they took."""
    sums: dict[Shape, tuple[int, float]] = {}
    for point in points:
        moved, seconds = sums.get(point.shape, (0, 0.0))
        sums[point.shape] = moved + point.bytes, seconds + point.seconds
    return {shape: around(moved / seconds) for shape, (moved, seconds) in sums.items()}


GUESS = Speeds(
    # From a hard disk's to what PCIe carries.
    {
        Shape(random, bs, 1, share): SpeedBounds(low, high)
        for share in (0.0, 1.0)
        for random, bs, low, high in (
            (False, 4 * KIB, 50e6, FASTEST),
            (True, 4 * KIB, 100 * 4 * KIB, 2e6 * 4 * KIB),
            (True, 128 * KIB, 10e6, FASTEST),
        )
    },
    "guess",
    "no speed known: between 50 MB/s and 14 GB/s sequential, 100 and 2,000,000 IOPS random 4 KiB; "
    "--assume-speed, --like or an earlier run of the drive narrow that",
)

_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}


def assumed(text: str) -> Speeds:
    """The speeds that ``--assume-speed`` gives: ``200MB/s``, ``5000iops``, or both. Sequential I/O
    goes by the bandwidth, random I/O by the IOPS as long as its bytes are not more than that.
    Raises InputError where it is none."""
    said: dict[str, float] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)(i?)(b/s|iops)\s*", part, re.IGNORECASE)
        value = 0.0
        if match is not None:
            number, prefix, binary, unit = (group.lower() for group in match.groups())
            # In "5kiops" the letter belongs to the unit.
            binary = "" if unit == "iops" else binary
            value = float(number) * _UNITS.get(prefix + binary, 0)
        if match is None or value <= 0 or unit in said:
            raise InputError(
                f'--assume-speed "{text}": expected a speed above 0 such as 200MB/s, 5000iops or '
                "both, 500MB/s,20kiops"
            )
        said[unit] = value
    bandwidth, iops = said.get("b/s"), said.get("iops")
    known: dict[Shape, SpeedBounds] = {}
    for share in (0.0, 1.0):
        if bandwidth is not None:
            known[Shape(False, 4 * KIB, 1, share)] = around(bandwidth)
        if iops is not None:
            most = bandwidth or FASTEST
            known[Shape(True, 4 * KIB, 1, share)] = around(min(iops * 4 * KIB, most))
            if (corner := int(most / iops)) > 4 * KIB:
                known[Shape(True, corner, 1, share)] = around(most)
    return Speeds(known, "assumed", f"{text.strip()}, as --assume-speed says")
