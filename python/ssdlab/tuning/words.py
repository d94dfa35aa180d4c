"""What was set up, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ssdlab.tuning.model import Record


def grouped(records: Sequence[Record]) -> list[tuple[Record, int]]:
    """Places of a setting with the same values as one, and how many they are."""
    found: dict[tuple[str | None, ...], list[Record]] = {}
    for one in records:
        key = one.setting, one.before, one.set, one.after, one.why_not
        found.setdefault(key, []).append(one)
    return [(same[0], len(same)) for same in found.values()]


def sentences(text: str, target: str, records: Sequence[Record]) -> list[str]:
    """What was set, in one line, and a line for each thing that was not."""
    done = [_done(one, count) for one, count in grouped(records) if one.why_not is None]
    said = [f"setup {text} for {target}: {', '.join(done) or 'nothing could be set'}"]
    return said + [
        f"  not set: {one.setting}, {_places(one, count)}: {one.why_not}"
        for one, count in grouped(records)
        if one.why_not is not None
    ]


def rows(records: Sequence[Record]) -> list[list[str]]:
    """Setting, now, would become, place or why not: the table of a plan."""
    return [
        [
            one.setting,
            one.before or "-",
            "-" if one.set is None else "the same" if one.set == one.before else one.set,
            _places(one, count) + (f": {one.why_not}" if one.why_not else ""),
        ]
        for one, count in grouped(records)
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


def _done(one: Record, count: int) -> str:
    times = f", {count} places" if count > 1 else ""
    if one.set is None:
        return f"{one.setting}: {one.before}"
    was = "as before" if one.set == one.before else f"was {one.before}"
    return f"{one.setting} {one.after or one.set} ({was}{times})"


def _places(one: Record, count: int) -> str:
    return one.place + (f" and {count - 1} more" if count > 1 else "")
