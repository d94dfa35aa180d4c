"""What can be set before a run, at which places, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ssdlab.audit import Drive, System

Scope = Literal["drive", "cpus"]


@dataclass(frozen=True)
class Subject:
    """What is set up: a drive and the processors of its system."""

    system: System
    drive: Drive | None
    """None where nobody knows which drive it is."""


@dataclass(frozen=True)
class Knob:
    """A value at one place."""

    setting: str
    means: str
    """How it is read and written: a key of :data:`ssdlab.tuning.means.MEANS`."""
    place: str
    """A file below the root of the system, or a node."""
    want: str | None
    """None where it is not to be set, only restored if setting another one changes it."""


@dataclass(frozen=True)
class Closed:
    """A place where nothing can be set, and why."""

    setting: str
    place: str
    why: str
    holds: bool = False
    """Whether what is wanted holds all the same: off is what a cache is that is not there."""


@dataclass(frozen=True)
class Record:
    """What became of one value, for people and for the record of the run."""

    setting: str
    place: str
    before: str | None
    set: str | None
    """What was written, or in a plan would be; None where nothing is."""
    after: str | None
    """What the place said then; None in a plan."""
    why_not: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The object in results."""
        return asdict(self)


@dataclass(frozen=True)
class Setting:
    """An entry of the registry."""

    name: str
    summary: str
    values: str
    """What may be given, for people."""
    check: Callable[[str], bool]
    """Whether a text is such a value."""
    presets: Mapping[str, str]
    """Its value in the presets that have it."""
    source: str
    """Who asks for it, or where it is described."""
    plan: Callable[[Subject, str], Iterator[Knob | Closed]]
    """Where a value would go."""
    scope: Scope = "drive"

    @property
    def in_pts(self) -> str:
        """Its values in the presets of the PTS, for people."""
        values = dict.fromkeys(self.presets.values())
        return " (client: ".join(values) + (")" if len(values) > 1 else "")


@dataclass(frozen=True)
class Wish:
    """What one setting is to be."""

    value: str
    named: bool
    """Asked for by name: it is an error where it cannot be had."""


@dataclass(frozen=True)
class Request:
    """What ``--setup`` asks for."""

    text: str
    wishes: Mapping[str, Wish]
    """By setting; empty where everything is to stay as it is."""
