"""The measured numbers that the simulator is held to (`cells.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, cast

from ssdlab.experiments.base import Kind


@dataclass(frozen=True)
class Source:
    """Where numbers come from."""

    what: str
    licence: str
    procedure: str
    """What was done, in a sentence or two."""


@dataclass(frozen=True)
class Circumstance:
    """What a drive was measured behind, or which state its data was in."""

    what: str
    keys: Mapping[str, str]
    """Of the drive's profile, which are others here: of its link for a host."""


@dataclass(frozen=True)
class Cause:
    """Why some numbers are missed, as far as that is known."""

    title: str
    quantities: Sequence[str]
    """How their names begin."""
    why: str
    drives: Sequence[str] = ()
    """Whose they are; all drives where empty."""

    def about(self, drive: str, quantity: str) -> bool:
        """Whether it is about this number."""
        return (not self.drives or drive in self.drives) and quantity.startswith(
            tuple(self.quantities)
        )


@dataclass(frozen=True)
class MeasuredCell:
    """One quantity of one drive, as measured."""

    drive: str
    quantity: str
    """What it is, a comma, and under which conditions."""
    run: str
    """Name of the run that is to show it."""
    read: str
    """What is read of that run (`readings.py`)."""
    value: float
    unit: str
    source: str
    kind: Kind = "predicted"
    follows: str = ""
    """Quantity of the same drive that this one follows from by arithmetic."""

    @property
    def counts_as(self) -> Kind:
        """Its kind; a number that follows from another one is no prediction of its own."""
        return "consequence" if self.follows else self.kind


@dataclass(frozen=True)
class MeasuredTable:
    """All of it."""

    sources: Mapping[str, Source]
    hosts: Mapping[str, Circumstance]
    conditions: Mapping[str, Circumstance]
    """Of the data on a drive."""
    runs: Mapping[str, Mapping[str, Mapping[str, Any]]]
    """By drive and name: the procedure and what it takes."""
    cells: tuple[MeasuredCell, ...]
    causes: tuple[Cause, ...]
    excluded: Mapping[str, str]
    """What was measured and is not used, and why."""

    def why(self, cell: MeasuredCell) -> str:
        """Why a number is missed; empty where that is not known."""
        found = (cause.why for cause in self.causes if cause.about(cell.drive, cell.quantity))
        return next(found, "")

    def of(self, drive: str) -> list[MeasuredCell]:
        """Those of a drive."""
        return [cell for cell in self.cells if cell.drive == drive]


@cache
def table() -> MeasuredTable:
    """The cells, read once."""
    text = (resources.files(__package__) / "cells.toml").read_text("utf-8")
    raw = cast(Mapping[str, Any], tomllib.loads(text))
    return MeasuredTable(
        {key: Source(**one) for key, one in raw["sources"].items()},
        {key: Circumstance(**one) for key, one in raw["hosts"].items()},
        {key: Circumstance(**one) for key, one in raw["conditions"].items()},
        {drive: one["runs"] for drive, one in raw["drives"].items()},
        tuple(
            MeasuredCell(drive, quantity, **cell)
            for drive, one in raw["drives"].items()
            for quantity, cell in one["cells"].items()
        ),
        tuple(Cause(**one) for one in raw["causes"]),
        raw["excluded"],
    )
