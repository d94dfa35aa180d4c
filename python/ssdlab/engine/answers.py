"""What judges build their answers from: numbers, curves, charts, and verdicts with reasons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ssdlab import units
from ssdlab.answer import (
    NOT_DECIDED,
    Better,
    Cell,
    Check,
    Column,
    Curve,
    Figure,
    Number,
    Section,
    Style,
    Table,
    Verdict,
    columns,
)
from ssdlab.engine.readings import Readings

GRADES = ("good", "enough", "poor", "not measured")
UNDECIDING = ("cache", "steady", "load")
"""Checks whose doubt is enough to leave a question open; of others they must be bad."""
REPEAT = "repeat the run"
REMEDIES = {
    "cache": "measure the device itself with direct I/O, not a loop device or through a cache",
    "steady": "run longer, until the drive is steady",
    "quick": "run without --quick",
    "load": "repeat the run with nothing else at work",
    "cpu": "repeat the run with more threads or larger blocks",
    "heat": "cool the drive",
    "errors": "see what the drive reports (ssdlab health)",
    "unwritten": "write the whole range before it is read",
    "span": "measure a larger range",
    "data": "write data that does not compress",
    "pause": "repeat the run without interruption",
    "resumed": "repeat the run without interruption",
}
"""What to do about a doubt, by the name of its check."""
FEW_POINTS = 40
"""A line through so many points at most is drawn with them."""
Rows = list[list[Cell | str | None]]
"""Rows of a table as they are put together."""


def cell(value: float | None, *sources: str) -> Cell:
    """A number of a table."""
    return Cell(value, sources)


def number(name: str, value: float | None, unit: str, better: Better = "", *sources: str) -> Number:
    """One of the few numbers that runs are compared by."""
    return Number(name, value, unit, better, sources)


def curve(
    name: str,
    points: Iterable[tuple[float, float | None]],
    colour: int = 0,
    style: Style = "points",
) -> Curve:
    """A curve through the points that were measured."""
    found = [(x, y) for x, y in points if y is not None and math.isfinite(y)]
    return Curve(name, [x for x, _ in found], [y for _, y in found], style, colour)


def places(values: Iterable[float | None]) -> list[tuple[float, float | None]]:
    """Values at the places 0, 1, 2 ... of an axis with names."""
    return [(float(place), value) for place, value in enumerate(values)]


def charts(*figures: Figure) -> list[Figure]:
    """The charts of which something was measured, without their empty curves.

    A log axis has no place for zeros, so those points are left out. Of a line through few points
    the points are shown too.
    """
    kept = []
    for one in figures:
        curves = [_drawable(each, one.log_x, one.log_y) for each in one.curves]
        curves = [each for each in curves if each.x]
        if curves:
            kept.append(replace(one, curves=curves))
    return kept


def _drawable(one: Curve, log_x: bool, log_y: bool) -> Curve:
    points = [
        (float(x), float(y))
        for x, y in zip(one.x, one.y, strict=True)
        if (x > 0 or not log_x) and (y > 0 or not log_y)
    ]
    few = one.style == "line" and len(points) <= FEW_POINTS
    style: Style = "points" if few else one.style
    return Curve(one.name, [x for x, _ in points], [y for _, y in points], style, one.colour)


@dataclass(frozen=True)
class Demand:
    """Something that a purpose asks of a drive."""

    what: str
    """Before the number: ``99 % of the log writes are safe within``, ``random writes:``."""
    value: float | None
    unit: str
    good: float
    """A drive that reaches this does it well."""
    enough: float
    """One that does not reach this is not fit."""
    why: str
    """Why the limits are what they are, or what happens beyond them."""
    lower: bool = True
    """Whether less is better."""
    sources: tuple[str, ...] = ()

    @property
    def grade(self) -> str:
        """One of ``GRADES``."""
        if self.value is None or not math.isfinite(self.value):
            return "not measured"
        sign = 1 if self.lower else -1
        if sign * self.value <= sign * self.good:
            return "good"
        return "enough" if sign * self.value <= sign * self.enough else "poor"

    @property
    def name(self) -> str:
        """What is asked for, as tables write it."""
        return self.what.removesuffix(":")

    @property
    def found(self) -> str:
        """What was measured, as a clause."""
        return f"{self.what} {units.with_unit(self.value, self.unit)}"

    def said(self) -> str:
        """What was measured, the limit, and why that matters."""
        limit = self.good if self.grade == "enough" else self.enough
        way = "at most" if self.lower else "at least"
        wanted = "would be good" if self.grade == "enough" else "is needed"
        return f"{self.found} ({way} {units.with_unit(limit, self.unit)} {wanted}): {self.why}"


def verdict(purpose: str, demands: Sequence[Demand]) -> tuple[list[str], Table, Verdict]:
    """Whether a drive is fit for a purpose: in words, the demands as a table, and as a code."""
    grades = {grade: [one for one in demands if one.grade == grade] for grade in GRADES}
    if len(grades["not measured"]) == len(demands):
        code = "not-measured"
        said = [f"Nothing has been measured that would say whether the drive is fit for {purpose}."]
    else:
        so_far = "As far as it was measured: " if grades["not measured"] else ""
        if grades["poor"]:
            code, head = "not-fit", f"not fit for {purpose}"
        elif grades["enough"]:
            code, head = "fit-with-reservations", f"fit for {purpose}, with reservations"
        else:
            code, head = "fit", f"well fit for {purpose}"
        said = [units.sentence(f"{so_far}{head}")]
        said += [units.sentence(f"Against it: {one.said()}") for one in grades["poor"]]
        said += [units.sentence(f"A reservation: {one.said()}") for one in grades["enough"]]
        if grades["good"]:
            said.append(units.sentence(f"Good: {units.listed([x.found for x in grades['good']])}"))
    rows = [
        (
            one.name,
            one.why,
            _limit(one, one.good),
            _limit(one, one.enough),
            Cell(one.value, one.sources),
            one.unit,
            one.grade,
        )
        for one in demands
    ]
    heads = ("demand", "why", "good", "enough", "measured", "unit", "grade")
    table = Table(f"What {purpose} asks", [Column(head) for head in heads], rows)
    return said, table, Verdict(code, {one.name: one.value for one in demands})


def undecided(why: str, remedy: str, **values: float | None) -> tuple[list[str], Verdict]:
    """The headline where the noise of a run's own numbers forbids an answer, and its verdict."""
    return [f"Not decided: {why}. {units.sentence(remedy)}"], Verdict(NOT_DECIDED, values)


def weighed(judged: Section, checks: Sequence[Check]) -> Section:
    """What was judged, taken back where a check says that the numbers cannot carry it: with one
    that is bad, or that doubts the path to the drive, its steadiness, or that it was alone."""
    against = [
        one
        for one in checks
        if one.status == "bad" or (one.status == "doubt" and one.name in UNDECIDING)
    ]
    if not against or not judged.sentences or judged.verdict.code == NOT_DECIDED:
        return judged
    names = units.listed(list(dict.fromkeys(one.title for one in against)))
    remedies = dict.fromkeys(REMEDIES.get(one.name, REPEAT) for one in against)
    said, verdict = undecided(f"doubts about {names}", "; ".join(remedies))
    values = {"measured": judged.verdict.code, **judged.verdict.values}
    first, *rest = judged.sentences
    return replace(
        judged,
        sentences=[*said, f"As measured: {first}", *rest],
        verdict=Verdict(verdict.code, values),
    )


def _limit(one: Demand, limit: float) -> str:
    return f"{'at most' if one.lower else 'at least'} {units.number(limit)}"


def demanded(demands: Sequence[Demand]) -> list[Number]:
    """What demands were measured by, as the numbers that runs are compared by."""
    return [
        number(one.name, one.value, one.unit, "lower" if one.lower else "higher", *one.sources)
        for one in demands
    ]


def latency_columns() -> list[Column]:
    """Columns of mean, percentiles and maximum, us."""
    heads = ("mean", "median", "p99", "p99.9", "max")
    return [Column(head, "us") for head in heads]


@dataclass(frozen=True)
class Part:
    """A kind of work within a step: one direction of one job."""

    key: str
    ddir: str
    title: str
    job: str | None = None

    def row(self, found: Readings) -> list[Cell | str | None]:
        """Operations, speed and latencies, as :func:`work_table` has them."""
        at = (self.ddir, self.job)
        values = (
            found.iops(self.key, *at),
            found.mbps(self.key, *at),
            found.mean_us(self.key, *at),
            found.percentile_us(self.key, 99.0, *at),
            found.percentile_us(self.key, 99.9, *at),
            found.max_us(self.key, *at),
        )
        return [self.title, *(cell(value, self.key) for value in values)]


def work_table(rows: Rows) -> Table:
    """A table of what several parts of the work came to."""
    heads = columns("work, operations:IOPS, speed:MB/s, mean latency:us, p99:us, p99.9:us, max:us")
    return Table("What was measured", heads, rows)


def longer_figure(found: Readings, title: str, parts: Sequence[Part], note: str = "") -> Figure:
    """How many I/Os of each part take longer than a time."""
    return Figure(
        title,
        "latency, us",
        "I/Os slower, %",
        [
            curve(
                part.title,
                zip(*found.latencies(part.key, part.ddir, part.job), strict=True),
                place,
                "line",
            )
            for place, part in enumerate(parts)
        ],
        log_x=True,
        log_y=True,
        wide=True,
        sources=tuple(dict.fromkeys(part.key for part in parts)),
        note=note,
    )
