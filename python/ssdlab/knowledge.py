"""How well the values of a drive are known: published, measured, derived, fitted or assumed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ssdlab import _core, units
from ssdlab.rig import Profile, registered

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
class KnownValue:
    """A value of a drive; ``origin`` is empty, the NAND part or the host interface that
    supplies it, or ``dies``."""

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


def values(rig: _core.Rig) -> list[KnownValue]:
    """All values of a rig, those that NAND parts and host interfaces supply included."""
    origins = dict(rig.supplied())
    return [KnownValue(key, text, why, origins.get(key, "")) for key, text, why in rig.values()]


def sourced(profile: Profile) -> list[KnownValue]:
    """The values of a drive that are knowledge about it: all that come from somewhere."""
    return [value for value in values(profile.rig()) if value.source]


def tally(known_values: Sequence[KnownValue]) -> dict[str, int]:
    """How many values there are of each class."""
    counted = Counter(value.known for value in known_values)
    return {name: counted[name] for name in CLASSES}


def assumed_share(known_values: Sequence[KnownValue]) -> float:
    """The share of values that are assumed."""
    return tally(known_values)["assumed"] / max(1, len(known_values))


def family(drive: str) -> str:
    """The models that differ from a drive in capacity alone, by their common name."""
    return re.sub(r"-\d+$", "", drive)


def fitted(profiles: Sequence[Profile]) -> dict[str, dict[tuple[str, str], KnownValue]]:
    """The fitted values of each family of models that has any, by key and value; of an interface,
    which is that of many families, by its own name."""
    found: dict[str, dict[tuple[str, str], KnownValue]] = {}
    interfaces = registered("host interface")
    for profile in profiles:
        for value in sourced(profile):
            if value.known == "fitted":
                owner = value.origin if value.origin in interfaces else family(profile.name)
                found.setdefault(owner, {})[value.own_key, value.text] = value
    return found


def told(profile: Profile) -> list[str]:
    """Which numbers of a drive are put in, fitted and predicted, and how well it is known."""
    known_values = sourced(profile)
    if not known_values:
        return ["no value says where it comes from"]
    counts = [f"{n} {name}" for name, n in tally(known_values).items() if n]
    share = units.percent(assumed_share(known_values))
    fits = [value for value in known_values if value.known == "fitted"]
    above = {key for keys, _ in QUANTITIES.values() for key in keys}
    ceilings = [value for value in known_values if value.own_key in above and value not in fits]
    by_hand = (
        units.listed([f"{ceiling.own_key} ({ceiling.text})" for ceiling in ceilings]) or "none"
    )
    to = "; ".join(f"{fit.own_key} ({fit.text}) to {fit.measurement}" for fit in fits) or "none"
    # What a part's value was fitted to on another drive is a prediction of this one.
    model = re.split(r":| \(", profile.summary)[0].partition(" ")[2]
    own = [fit for fit in fits if not fit.origin or model in fit.measurement]
    predicted = units.listed(list(_predicted(ceilings, own))) or "nothing"
    return [
        f"put in by hand, ceilings: {by_hand}",
        f"fitted: {to}",
        f"predicted: {predicted}",
        f"of {len(known_values)} values {units.listed(counts)}; {share} are assumed",
    ]


def _predicted(ceilings: Sequence[KnownValue], fits: Sequence[KnownValue]) -> Iterator[str]:
    """What is asked of a drive and nothing was fitted to, with the ceilings above it."""
    for quantity, (keys, words) in QUANTITIES.items():
        if any(re.search(words, fit.measurement) for fit in fits):
            continue
        above = [ceiling.own_key for ceiling in ceilings if ceiling.own_key in keys]
        yield f"{quantity} (up to {' and '.join(above)})" if above else quantity
