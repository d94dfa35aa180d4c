"""``ssdlab.Rig``: a simulated drive, array or cache as it is put together, to change and to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ssdlab import _core
from ssdlab.arrays.rigs import CHUNK, LEVELS, ArrayShape, array_of, level_of, mixed, shipped
from ssdlab.errors import InputError, unknown_name
from ssdlab.given import Size, number, size, text
from ssdlab.rig import is_profile, resolve
from ssdlab.target import Sim, Terms, sim


class Rig:
    """A rig: a tree of simulated devices. It never changes; :meth:`set` gives another one.

    Wherever a function takes a target, it takes a rig.
    """

    __slots__ = ("_core",)

    def __init__(self, drive: str | Path) -> None:
        """The rig of a profile, of a rig file (``*.toml``), or of the text of one.

        Raises:
            InputError: there is no such drive or file, or it is no rig.
        """
        if isinstance(drive, str) and "\n" in drive:
            self._core = _core.Rig(drive, rig_name="rig")
            return
        found = sim(resolve(drive))
        if found is None:
            raise InputError(f"{drive}: is no rig; name a drive profile or a rig file (.toml)")
        self._core = found.tree().copy(name=found.name)

    @classmethod
    def _of(cls, rig: _core.Rig) -> Rig:
        made = cls.__new__(cls)
        made._core = rig
        return made

    @classmethod
    def wrap(
        cls,
        kind: str,
        keys: Mapping[str, object] | None = None,
        *,
        name: str = "",
        summary: str = "",
        **parts: Rig | Sequence[Rig],
    ) -> Rig:
        """A device of a kind around others.

        Args:
            kind: From ``ssdlab.devices``, such as ``"cache"``.
            keys: Of the device, as ``ssdlab show KIND`` lists them.
            name: Of the rig.
            summary: What it is, in a line.
            parts: ``below``, ``cache``, ``fast`` and ``member`` each take a rig, ``members``
                several.

        Raises:
            InputError: there is no such kind, key or part.
        """
        own = {
            part: rigs[0]._core if isinstance(given, Rig) else [rig._core for rig in rigs]
            for part, given in parts.items()
            for rigs in [_rigs(part, given)]
        }
        rig = _core.Rig.wrap(kind, dict(keys or {}), name=name or kind, summary=summary, **own)
        _core.rig_check(rig.to_toml(), rig_name=name or kind)
        return cls._of(rig)

    @classmethod
    def array(
        cls,
        level: str | int,
        drives: Rig | Sequence[Rig],
        count: int | None = None,
        *,
        chunk: Size = CHUNK,
    ) -> Rig:
        """An array of drives.

        Args:
            level: 0, 1, 10, 5, 6 or ``"linear"``.
            drives: One drive, of which there are ``count``, or all of them.
            count: Drives of an array of equal ones.
            chunk: Bytes of a chunk; without meaning where the level is not striped.

        Raises:
            InputError: there is no such level, or too few drives for it.
        """
        known = level_of(text(level))
        if known not in LEVELS:
            raise unknown_name("RAID level", text(level), LEVELS)
        members = _rigs("drives", drives)
        if isinstance(drives, Rig) == (count is None):
            raise InputError("an array takes one drive and a count, or all of its drives")
        members_count = len(members) if count is None else int(number("count", count, whole=True))
        shape = ArrayShape(known, members_count, size("chunk", chunk))
        if not members:
            raise InputError("an array without drives has no capacity; give its drives")
        names = dict.fromkeys(member.name for member in members)
        name = f"{LEVELS[known]}-{shape.count}-{'-'.join(names)}"
        summary = f"{shape.name}: {', '.join(names)}"
        if isinstance(drives, Rig):
            rig = array_of(drives._core, shape, name, summary)
        else:
            rig = mixed([member._core for member in members], shape, name, summary)
        _core.rig_check(rig.to_toml(), rig_name=name)
        return cls._of(rig)

    def set(
        self, key: str | Mapping[str, object] | None = None, value: object = None, **keys: object
    ) -> Rig:
        """Another rig with keys set: ``set("ftl.over_provisioning", 0.28)``, ``set({...})``,
        ``set(capacity="4GiB")``.

        Raises:
            InputError: the rig has no such key, or it takes no such value.
        """
        if isinstance(key, str) and value is None:
            raise InputError(f"{key}: expected a value beside it")
        given = {**({key: value} if isinstance(key, str) else key or {}), **keys}
        rig = self._core.copy()
        rig.set_all([(name, text(wanted)) for name, wanted in given.items()])
        return Rig._of(rig)

    def get(self, key: str) -> str | None:
        """The value of a key as text, with its unit; None where the rig does not say it.

        Raises:
            InputError: the rig has no such key.
        """
        found = self._core.get(key)
        if found is None:
            self._core.check_key(key)
        return found

    def values(self) -> dict[str, str]:
        """All values that it says, by key; ``ssdlab show`` tells their sources."""
        return {key: value for key, value, _ in self._core.values()}

    @property
    def name(self) -> str:
        """The label in tables and reports."""
        return self._core.name or "rig"

    @property
    def summary(self) -> str:
        """What it is, in a line."""
        return self._core.summary

    @property
    def drive_class(self) -> str | None:
        """The class of drive that it says it is (``class`` of its file): client, oem, enterprise or
        data-centre; None where it is unknown. An array has that of its members, if they agree."""
        return self._core.drive_class

    @property
    def capacity(self) -> int:
        """Bytes that the host can address. Raises InputError where it cannot be built, or takes
        more memory than there is."""
        return self.target().open(Terms()).capacity

    @property
    def memory(self) -> int:
        """Bytes of memory that a run on it takes, estimated. Raises InputError as
        :attr:`capacity`."""
        return self._core.memory_bytes

    def to_toml(self) -> str:
        """It as the text of a rig file."""
        return self._core.to_toml()

    def target(self) -> Sim:
        """It as what a job runs on."""
        return Sim(self.name, self.to_toml())

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, under the same name."""
        if not isinstance(other, Rig):
            return NotImplemented
        return self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[type[Rig], tuple[str]]:
        return Rig, (self.to_toml() + "\n",)

    def __repr__(self) -> str:
        return f"<ssdlab.Rig {self.name}{': ' if self.summary else ''}{self.summary}>"


def _rigs(part: str, given: Rig | Sequence[Rig]) -> list[Rig]:
    """One rig or several; raises InputError, which names the part, where it is something else."""
    found = [given] if isinstance(given, Rig | str) else list(given)
    for one in found:
        if not isinstance(one, Rig):
            raise InputError(f"{part}: found {one!r}, expected a Rig, as ssdlab.Rig(NAME) makes it")
    return [one for one in found if isinstance(one, Rig)]


Drive = str | Path | Rig
"""A drive profile's name, a rig file, or a rig."""


def named_or_rigs(given: Drive | Sequence[Drive] | None) -> list[str | Sim]:
    """Drives as options name them, and as rigs; rigs of one name are told apart by a number."""
    found: list[str | Sim] = []
    taken: dict[str, Rig] = {}
    for one in [given] if isinstance(given, str | Path | Rig) else given or []:
        if not isinstance(one, Rig):
            found.append(str(one))
            continue
        if is_profile(one.name) and one == Rig(one.name):
            found.append(shipped(one.name))
            continue
        name, count = one.name, 1
        while taken.setdefault(name, one) != one:
            count += 1
            name = f"{one.name}-{count}"
        found.append(Sim(name, one.to_toml(), name))
    return found
