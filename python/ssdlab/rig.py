"""What ``--on TARGET`` means: a profile's name, a rig file, a plain file, or a block device."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from ssdlab import _core, units
from ssdlab.errors import InputError, known_name, unknown_name
from ssdlab.jobfile import read_text
from ssdlab.opened import as_text

if TYPE_CHECKING:
    from ssdlab.target import Sim, Target

SUPERBLOCKS_MIN = 128
"""Of a drive made smaller: what is collected has to be chosen among many."""
SCALE_MISSES: Mapping[str, tuple[float, float]] = {
    "lab-reference": (1.003, 0.949),
    "intel-660p-1024": (1.003, 1.117),
}
"""Drives whose steady random writes depend on their size: write amplification and rate at 1/32, to
those at 1/8. docs/experiments.md says what is known of them; a test holds these and all others."""
PERIOD_MISSES: Mapping[str, float] = {"intel-dc-s3700-200": 1.14, "intel-dc-s3700-800": 1.11}
"""The same of the time from dip to dip, of those that dip."""


@dataclass(frozen=True)
class Profile:
    """A drive model: one that ships with the package, or a user's."""

    name: str
    text: str

    @cached_property
    def summary(self) -> str:
        """What it says that it is."""
        return self.rig().summary

    def rig(self) -> _core.Rig:
        """It as a rig."""
        return _core.Rig(self.text, rig_name=self.name)


def registered(kind: str) -> dict[str, str]:
    """What the core has of a kind, such as ``"replacement policy"``: summaries by name."""
    entries = (entry for entry in _core.registries() if entry["kind"] == kind)
    return {entry["name"]: entry["summary"] for entry in entries}


@cache
def profiles() -> tuple[Profile, ...]:
    """All shipped profiles, by name. Being in the folder ``profiles`` is all it takes."""
    return tuple(Profile(name, text) for name, text in shipped_in("profiles"))


def shipped_in(folder: str) -> Iterator[tuple[str, str]]:
    """Names and texts of the TOML files of a folder of the package, in their order."""
    place = resources.files("ssdlab") / folder
    for file in sorted(place.iterdir(), key=lambda file: file.name) if place.is_dir() else ():
        if file.name.endswith(".toml"):
            yield file.name.removesuffix(".toml"), file.read_text("utf-8")


def of_file(path: Path) -> Profile:
    """The rig of a user's file; raises InputError where that is none."""
    found = _rig_file(path)
    _core.rig_check(found.rig, rig_name=found.source)
    return Profile(found.name, found.rig)


def profile(name: str) -> Profile:
    """The profile called ``name``."""
    known = {one.name: one for one in profiles()}
    return known[known_name("drive profile", name, known)]


def is_profile(name: str) -> bool:
    """Whether a shipped drive is called so."""
    return any(one.name == name for one in profiles())


def capacity_of(drive: str) -> int:
    """Capacity of a profile in bytes."""
    return profile(drive).rig().bytes("capacity") or 0


def reduced(drive: str, factor: int, *, fewest: int = 1) -> dict[str, str]:
    """Overrides that make a profile ``factor`` times smaller, every ratio kept
    (:meth:`ssdlab._core.Rig.scale`), of at least ``fewest`` superblocks; none for a factor of 1."""
    return dict(profile(drive).rig().scale(factor, fewest=fewest))


def scale_doubt(target: Target, factor: int) -> str | None:
    """In what a rig changes as its drives are made smaller, as a sentence; None where nothing is
    known."""
    from ssdlab.target import sim

    name, found = target.name, sim(target)
    if factor == 1 or found is None:
        return None
    rig = found.tree()
    if card := _card_with_much_ram(rig, factor):
        return (
            f"{name}: the RAM of its card is simulated at {card}, so that writes gather in it, and "
            f"holds more of drives at 1/{factor} of their size than it would"
        )
    if not is_profile(name):
        return None
    off = []
    if name in SCALE_MISSES:
        wa, rate = SCALE_MISSES[name]
        off += [f"random writes amplify {wa:g} times as much", f"are {rate:g} times as fast"]
    if name in PERIOD_MISSES:
        off += [f"dips, times the factor, are {PERIOD_MISSES[name]:g} times as far apart"]
    if not off:
        return None
    return f"{name} changes with its size: at 1/32 {' and '.join(off)} as at 1/8"


def _card_with_much_ram(rig: _core.Rig, factor: int) -> str | None:
    """The RAM of a card that shrinks by less than its drives; None where none does."""
    cards = {key: rig.bytes(key) or 0 for key in (f"{p}cache.size" for p in rig.find("controller"))}
    if not any(cards.values()):
        return None
    small = {key: units.parse_bytes(key, size) for key, size in rig.scale(factor) if key in cards}
    much = [size for key, size in small.items() if size > cards[key] // factor]
    return units.size_text(max(much)) if much else None


def smaller(drive: str, factor: int) -> dict[str, str]:
    """As :func:`reduced`, but less where too few superblocks would be left for the reserve."""
    return smaller_rig(profile(drive).text, drive, factor)


def smaller_rig(text: str, name: str, factor: int) -> dict[str, str]:
    """As :func:`smaller`, of a rig as text."""
    while factor > 1:
        try:
            found = dict(_core.Rig(text, rig_name=name).scale(factor, fewest=SUPERBLOCKS_MIN))
            _core.rig_check(text, rig_name=name, overrides=list(found.items()))
        except InputError:
            factor //= 2
        else:
            return found
    return {}


def set_over(small: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """What makes drives smaller, and over it what is set on them: what is given a size of its own
    stands for no other drive."""
    sized = any(key.rpartition(".")[2] in ("capacity", "namespace") for key in own)
    kept = {
        key: value for key, value in small.items() if not (sized and key.endswith("full_capacity"))
    }
    return {**kept, **own}


def resolve(
    target: str | Path | Target,
    *,
    destroy: str | None = None,
    use_existing: bool = False,
    redact: bool = False,
    setup: str = "none",
) -> Target:
    """The target that ``target`` names: a shipped profile, a rig file (``*.toml``), a block device
    or a plain file, tried in this order. A plain file needs a folder or a dot in its name, so that
    a misspelt profile is not made a file."""
    from ssdlab import tuning

    if isinstance(target, (str, Path)):
        found = _resolved(target, destroy, use_existing, redact, setup)
    else:
        found = target
    if destroy is not None and found.simulated:
        label = target if isinstance(target, (str, Path)) else target.name
        raise InputError(f"{label}: --destroy is for real drives; this one is simulated")
    if not isinstance(target, (str, Path)):
        return found
    if tuning.parse(setup) and found.simulated:
        raise InputError(
            f"{target}: --setup is for real drives; a simulated one has --set KEY=VALUE"
        )
    return found


def _resolved(
    target: str | Path, destroy: str | None, use_existing: bool, redact: bool, setup: str
) -> Target:
    from ssdlab.target import Fio, Sim

    text = str(target)
    if not text.strip():
        raise InputError(
            "the target is empty; name a drive profile, a rig file, a file or a device"
        )
    known = {one.name: one for one in profiles()}
    if isinstance(target, str) and text in known:
        return Sim(text, known[text].text)
    path = Path(target)
    if path.suffix == ".toml":
        return _rig_file(path)
    mode = _mode(path)
    if mode is None and isinstance(target, str) and "/" not in text and "." not in text:
        more = f"; a rig file ends in .toml, a plain file is written ./{text}"
        raise unknown_name("drive profile", text, known, more)
    if mode is not None and stat.S_ISDIR(mode):
        raise InputError(f"{text}: is a folder; name a file in it, such as {path / 'scratch.bin'}")
    if mode is not None and not (stat.S_ISREG(mode) or stat.S_ISBLK(mode)):
        raise InputError(f"{text}: is neither a plain file nor a block device")
    if mode is None and path.parent == Path("/dev"):
        raise InputError(f"{text}: there is no such device")
    return Fio(path, destroy=destroy, use_existing=use_existing, redact=redact, setup=setup)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be examined ({reason})") from None


def _rig_file(path: Path) -> Sim:
    from ssdlab.target import Sim

    return Sim(as_text(path.stem), read_text(path, "rig file"), source=as_text(path))
