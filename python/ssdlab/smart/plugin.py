"""The answer of a monitoring plug-in, as Nagios, Icinga and others start them.

Form and statuses: Monitoring Plugins Development Guidelines, "Plugin Output for Nagios" and
"Performance data"; several states are combined as by their ``max_state_alt``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import PurePath

from ssdlab.smart.model import Health, Severity
from ssdlab.smart.report import Reading, Unread
from ssdlab.smart.verdict import SPARE_NEAR, USED_WATCH
from ssdlab.units import DAY_S

MOST_LETTERS = 300
"""Of what is said before the performance data; older servers cut the first line at a few kB."""


class State(IntEnum):
    """The exit status of a plug-in."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


STATES = {
    Severity.GOOD: State.OK,
    Severity.UNKNOWN: State.UNKNOWN,
    Severity.WATCH: State.WARNING,
    Severity.REPLACE: State.CRITICAL,
}


def severity(reading: Reading) -> Severity:
    """The verdict on a drive; unknown where it could not be read."""
    return Severity.UNKNOWN if isinstance(reading, Unread) else reading.verdict


def state(readings: Sequence[Reading]) -> State:
    """The worst: critical, then warning, then unknown, then ok."""
    return STATES[max(map(severity, readings), key=lambda one: one.rank)]


def first_line(readings: Sequence[Reading]) -> str:
    """The state, what it rests on, and the performance data of every drive that was read."""
    names = _names(readings)
    if len(readings) == 1:
        said = f"1 drive, {_about(readings[0], names[0])}"
    else:
        count = Counter(STATES[severity(reading)] for reading in readings)
        order = (State.CRITICAL, State.WARNING, State.UNKNOWN, State.OK)
        counts = ", ".join(f"{count[one]} {one.name.lower()}" for one in order if count[one])
        said = f"{len(readings)} drives: {counts}"
        worst = max(range(len(readings)), key=lambda one: severity(readings[one]).rank)
        if severity(readings[worst]) is not Severity.GOOD:
            said += f"; {_about(readings[worst], names[worst])}"
    data = [
        f"{what if len(readings) == 1 else f'{_word(name)}_{what}'}={value}"
        for name, reading in zip(names, readings, strict=True)
        if not isinstance(reading, Unread)
        for what, value in _performance(reading.health, reading.projection.days_left)
    ]
    return _line(state(readings), said) + (f" | {' '.join(data)}" if data else "")


def failure(message: str) -> str:
    """The line where nothing could be looked at."""
    return _line(State.UNKNOWN, message)


def plain(text: str) -> str:
    """Text without the sign that starts performance data, which counts in further lines too."""
    return text.replace("|", "¦")


def _line(state: State, said: str) -> str:
    shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in plain(said))
    if len(shown) > MOST_LETTERS:
        shown = f"{shown[: MOST_LETTERS - 3]}..."
    return f"SSD {state.name} - {shown}"


def _about(reading: Reading, name: str) -> str:
    if isinstance(reading, Unread):
        message = reading.error.message
        return message if name in message else f"{name}: {message}"
    model = reading.health.model
    worst = reading.findings[0]
    if worst.severity is not Severity.GOOD:
        said = f"{worst.what} ({worst.evidence})"
    elif (used := reading.health.used_percent) is not None:
        said = f"{used:.3g} % used"
    else:
        said = "good"
    return f"{name} ({model}): {said}" if model else f"{name}: {said}"


def _names(readings: Sequence[Reading]) -> list[str]:
    """A short name for each, all of them different."""
    short = [
        PurePath(reading.name).name.removesuffix(".json") or reading.name for reading in readings
    ]
    count = Counter(_word(one) for one in short)
    given: set[str] = set()
    names = []
    for number, one in enumerate(short, 1):
        name = one if count[_word(one)] == 1 and _word(one) not in given else f"{one} #{number}"
        given.add(_word(name))
        names.append(name)
    return names


def _word(name: str) -> str:
    """The name as part of a label, such that no quotes are needed."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name).strip("_") or "drive"


def _performance(health: Health, days_left: float | None) -> Iterator[tuple[str, str]]:
    """Labels and values with their limits: ``value[unit];warning;critical``."""
    if health.used_percent is not None:
        yield "used", f"{_number(health.used_percent)}%;{USED_WATCH:.0f};100"
    if health.spare_percent is not None:
        limit = health.spare_threshold_percent
        near = f"{_number((limit or 0) + SPARE_NEAR)}:"
        bounds = near if limit is None else f"{near};{_number(limit)}:"
        yield "spare", f"{_number(health.spare_percent)}%;{bounds}"
    if health.temperature_c is not None:
        limits = (health.temperature_limit_c, health.temperature_critical_c)
        bounds = ";".join("" if limit is None else str(limit) for limit in limits)
        yield "temp", f"{health.temperature_c};{bounds}".rstrip(";")
    for what, count, unit in (
        ("media_errors", health.media_errors, ""),
        ("uncorrectable", health.uncorrectable, ""),
        ("reallocated", health.reallocated, ""),
        ("pending", health.pending, ""),
        ("crc_errors", health.crc_errors, ""),
        ("written", health.written_bytes, "c"),
        ("nand_written", health.nand_bytes, "c"),
        ("write_amplification", health.write_amplification, ""),
        ("life", None if days_left is None else round(days_left * DAY_S), "s"),
    ):
        if count is not None:
            yield what, f"{_number(count)}{unit}"


def _number(value: float) -> str:
    """Digits, a point and a sign, without an exponent."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.3f}".rstrip("0").rstrip(".")
