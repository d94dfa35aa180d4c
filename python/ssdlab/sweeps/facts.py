"""What is known of a rig before anything runs on it: what filters ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from ssdlab import _core
from ssdlab.sweeps.formula import FormulaValue, value

DRIVES = ("ssd", "hdd")


def members(rig: _core.Rig) -> int:
    """The drives that it is made of."""
    return sum(_times(rig, place) for kind in DRIVES for place in rig.find(kind))


def _times(rig: _core.Rig, place: str) -> int:
    """How often the device at a place is there: arrays above it have so many of it."""
    found, above = 1, ""
    for step in place.split(".")[:-1]:
        if step == "member":
            found *= int(rig.get(f"{above}count") or 1)
        above += f"{step}."
    return found


FACTS: Mapping[str, Callable[[_core.Rig], FormulaValue | None]] = {
    "capacity": lambda rig: _bytes(rig.bytes("capacity")),
    "usable": lambda rig: _bytes(rig.capacity_bytes),
    "members": lambda rig: FormulaValue(float(members(rig))),
    "memory": lambda rig: _bytes(rig.memory_bytes),
}
"""Of one drive, of the whole rig; the number of drives; what simulating it takes."""


def _bytes(count: int | None) -> FormulaValue | None:
    return None if count is None else FormulaValue(float(count), "B")


@functools.cache
def _defaults() -> Mapping[str, Mapping[str, str]]:
    """The values that keys have where a rig does not say them, by kind of device."""
    found: dict[str, dict[str, str]] = {}
    for key in _core.device_keys():
        if key["default"]:
            found.setdefault(key["device"], {})[key["key"]] = key["default"]
    return found


def _unsaid(rig: _core.Rig) -> dict[str, str]:
    """Keys that a rig leaves at their defaults, and those."""
    return {
        place + key: default
        for kind, keys in _defaults().items()
        for place in rig.find(kind)
        for key, default in keys.items()
        if rig.get(place + key) is None
    }


def names(rig: _core.Rig) -> set[str]:
    """What may be asked of it: its keys, also without the devices that stand above them."""
    found = set(FACTS)
    for key in (*(key for key, _, _ in rig.values()), *_unsaid(rig)):
        steps = key.split(".")
        found |= {".".join(steps[start:]) for start in range(len(steps))}
    return found


def fact(rig: _core.Rig, name: str) -> FormulaValue | None:
    """What is known by that name; None where the rig does not say."""
    if name in FACTS:
        return FACTS[name](rig)
    text = rig.get(name)
    if text is None:
        unsaid = _unsaid(rig)
        ends = (key for key in unsaid if key == name or key.endswith(f".{name}"))
        text = unsaid.get(min(ends, key=len, default=""))
    return None if text is None else value(text)
