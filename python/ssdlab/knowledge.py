"""How well the values of a drive are known: published, measured, derived, fitted or assumed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ssdlab import _core, units
from ssdlab.rig import Profile

CLASSES = {
    "published": ("datasheet", "paper", "announced", "SATA", "SAS", "PCIe", "ONFI"),
    "measured": ("measured",),
    "derived": ("from ",),
    "fitted": ("fitted to ",),
    "assumed": ("assumed", "as the "),
}
"""How a source begins, by how well what it tells is known: documents and standards; somebody's
measurement or teardown; arithmetic on such; a value that makes the model give a number that was
measured; a guess, or what another drive has."""
QUANTITIES = {
    "sequential reads": (("bandwidth", "sustained_outer"), "sequential read|first read"),
    "sequential writes": (
        ("bandwidth", "controller.write_limit", "sustained_outer"),
        "sequential write",
    ),
    "random reads": (("controller.command_time",), "random read"),
    "sustained random writes": ((), "random.* write"),
    "write amplification": ((), "amplif|programmed for each byte"),
    "latencies": ((), "latenc"),
    "mixed loads": ((), "mixed"),
}
"""What is asked of a drive; the keys that are its ceilings, and how a measurement is told."""


@dataclass(frozen=True)
class Value:
    """A value of a drive; ``origin`` is empty, the NAND part that supplies it, or ``dies``."""

    key: str
    text: str
    source: str
    origin: str

    @property
    def known(self) -> str:
        """How well: a key of :data:`CLASSES`; what names no source of these is assumed."""
        return next(
            (k for k, starts in CLASSES.items() if self.source.startswith(starts)), "assumed"
        )

    @property
    def own_key(self) -> str:
        """The key without the places of the devices above."""
        return self.key.replace("below.", "")

    @property
    def measurement(self) -> str:
        """What a fitted value was fitted to."""
        return self.source.removeprefix("fitted to ")


def values(rig: _core.Rig) -> list[Value]:
    """All values of a rig, those that a NAND part supplies included."""
    origins = dict(rig.supplied())
    return [Value(key, text, why, origins.get(key, "")) for key, text, why in rig.values()]


def sourced(profile: Profile) -> list[Value]:
    """The values of a drive that are knowledge about it: all that come from somewhere."""
    return [one for one in values(profile.rig()) if one.source]


def tally(found: Sequence[Value]) -> dict[str, int]:
    """How many values there are of each class."""
    counted = Counter(one.known for one in found)
    return {name: counted[name] for name in CLASSES}


def assumed_share(found: Sequence[Value]) -> float:
    """The share of values that are assumed."""
    return tally(found)["assumed"] / max(1, len(found))


def family(drive: str) -> str:
    """The models that differ from a drive in capacity alone, by their common name."""
    return re.sub(r"-\d+$", "", drive)


def fitted(profiles: Sequence[Profile]) -> dict[str, dict[tuple[str, str], Value]]:
    """The fitted values of each family of models that has any, by key and value."""
    found: dict[str, dict[tuple[str, str], Value]] = {}
    for profile in profiles:
        for one in sourced(profile):
            if one.known == "fitted":
                found.setdefault(family(profile.name), {})[one.own_key, one.text] = one
    return found


def told(profile: Profile) -> list[str]:
    """Which numbers of a drive are put in, fitted and predicted, and how well it is known."""
    found = sourced(profile)
    counts = [f"{n} {name}" for name, n in tally(found).items() if n]
    share = units.percent(assumed_share(found))
    fits = [one for one in found if one.known == "fitted"]
    above = {key for keys, _ in QUANTITIES.values() for key in keys}
    ceilings = [one for one in found if one.own_key in above and one not in fits]
    by_hand = units.listed([f"{one.own_key} ({one.text})" for one in ceilings]) or "none"
    to = "; ".join(f"{one.own_key} ({one.text}) to {one.measurement}" for one in fits) or "none"
    # What a part's value was fitted to on another drive is a prediction of this one.
    model = re.split(r":| \(", profile.summary)[0].partition(" ")[2]
    own = [one for one in fits if not one.origin or model in one.measurement]
    predicted = units.listed(list(_predicted(ceilings, own))) or "nothing"
    return [
        f"put in by hand, ceilings: {by_hand}",
        f"fitted: {to}",
        f"predicted: {predicted}",
        f"of {len(found)} values {units.listed(counts)}; {share} are assumed",
    ]


def _predicted(ceilings: Sequence[Value], fits: Sequence[Value]) -> Iterator[str]:
    """What is asked of a drive and nothing was fitted to, with the ceilings above it."""
    for quantity, (keys, words) in QUANTITIES.items():
        if any(re.search(words, one.measurement) for one in fits):
            continue
        above = [one.own_key for one in ceilings if one.own_key in keys]
        yield f"{quantity} (up to {' and '.join(above)})" if above else quantity
