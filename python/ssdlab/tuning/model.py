"""What can be set before a run, at which places, and what became of it, also in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ssdlab.audits import System, SystemDrive

Scope = Literal["drive", "cpus"]


@dataclass(frozen=True)
class SetupSubject:
    """What is set up: a drive and the processors of its system."""

    system: System
    drive: SystemDrive | None
    """None where nobody knows which drive it is."""


@dataclass(frozen=True)
class Knob:
    """A value at one place."""

    means: str
    """How it is read and written: a key of :data:`ssdlab.tuning.means.MEANS`."""
    place: str
    """A file below the root of the system, or a node."""
    want: str | None
    """None where it is not to be set, only restored if setting another one changes it."""


@dataclass(frozen=True)
class Closed:
    """A place where nothing can be set, and why."""

    place: str
    why: str
    holds: bool = False
    """Whether what is wanted holds all the same: off is what a cache is that is not there."""
    wrong: bool = False
    """Whether it is the value's fault: there is no such value, or none here."""


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
    plan: Callable[[SetupSubject, str], Iterator[Knob | Closed]]
    """Where a value would go."""
    scope: Scope = "drive"

    @property
    def in_pts(self) -> str:
        """Its values in the presets of the PTS, for people."""
        values = dict.fromkeys(self.presets.values())
        return " (client: ".join(values) + (")" if len(values) > 1 else "")


@dataclass(frozen=True)
class SetupWish:
    """What one setting is to be."""

    value: str
    named: bool
    """Asked for by name: it is an error where it cannot be had."""


SetupRequest = Mapping[str, SetupWish]
"""What ``--setup`` asks for, by setting; empty where everything is to stay as it is."""


def grouped(records: Sequence[Record]) -> list[tuple[Record, int]]:
    """Places of a setting with the same values as one, and how many they are."""
    found: dict[tuple[str | None, ...], list[Record]] = {}
    for record in records:
        key = record.setting, record.before, record.set, record.after, record.why_not
        found.setdefault(key, []).append(record)
    return [(same[0], len(same)) for same in found.values()]


def sentences(text: str, target: str, records: Sequence[Record]) -> list[str]:
    """What was set, in one line, and a line for each thing that was not."""
    done = [_done(record, count) for record, count in grouped(records) if record.why_not is None]
    said = [f"setup {text} for {target}: {', '.join(done) or 'nothing could be set'}"]
    return said + [
        f"  not set: {record.setting}, {_places(record, count)}: {record.why_not}"
        for record, count in grouped(records)
        if record.why_not is not None
    ]


def rows(records: Sequence[Record]) -> list[list[str]]:
    """Setting, now, would become, place or why not: the table of a plan."""
    return [
        [
            record.setting,
            record.before or "-",
            "-"
            if record.set is None
            else "the same"
            if record.set == record.before
            else record.set,
            _places(record, count) + (f": {record.why_not}" if record.why_not else ""),
        ]
        for record, count in grouped(records)
    ]


def readable(setup: Mapping[str, Any] | None) -> dict[str, str]:
    """The record of a run for tables of reports: by setting."""
    if not setup:
        return {}
    found: dict[str, list[str]] = {}
    for one, count in grouped([Record(**record) for record in setup.get("settings", [])]):
        if one.why_not is not None:
            words = f"not set, {_places(one, count)}: {one.why_not}"
        else:
            words = _done(one, count).removeprefix(f"{one.setting} ")
        found.setdefault(one.setting, []).append(words)
    return {"asked": str(setup.get("asked", ""))} | {
        name: "; ".join(words) for name, words in found.items()
    }


def _done(record: Record, count: int) -> str:
    times = f", {count} places" if count > 1 else ""
    if record.set is None:
        return f"{record.setting}: {record.before}"
    was = "as before" if record.set == record.before else f"was {record.before}"
    return f"{record.setting} {record.after or record.set} ({was}{times})"


def _places(record: Record, count: int) -> str:
    return record.place + (f" and {count - 1} more" if count > 1 else "")
