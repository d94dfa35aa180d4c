"""Rigs of arrays: a drive's own rig becomes that of the members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdlab import _core
from ssdlab.arrays.attachment import DIRECT, Attachment
from ssdlab.errors import unknown_name
from ssdlab.jobfile import read_text
from ssdlab.rig import is_profile, profile, profiles
from ssdlab.units import binary

if TYPE_CHECKING:
    from ssdlab.target import Sim

LEVELS: Mapping[str, str] = {
    "0": "raid0",
    "1": "raid1",
    "10": "raid10",
    "5": "raid5",
    "6": "raid6",
    "linear": "linear",
}
"""Levels as people write them, and as rigs do."""
MEMBERS_MIN: Mapping[str, int] = {"0": 1, "1": 2, "10": 2, "5": 3, "6": 4, "linear": 1}
"""Members that a level takes at least (the core checks it again)."""
STRIPED = ("0", "10", "5", "6")
"""Levels for which the size of a chunk matters."""
SURVIVES: Mapping[str, str] = {
    "0": "no member",
    "linear": "no member",
    "1": "all members but one",
    "10": "one member of each mirror pair",
    "5": "one member",
    "6": "two members",
}
"""What may die without loss of data, in words; of RAID 10 where members are even in number."""
CHUNK = 512 << 10
"""Bytes of a chunk by default, as in md."""


def level_of(text: str) -> str:
    """The key of :data:`LEVELS` that ``RAID5``, ``raid5`` or ``5`` is, if there is that level."""
    return text.lower().removeprefix("raid")


@dataclass(frozen=True, order=True)
class ArrayShape:
    """An array without its drives."""

    level: str
    """A key of :data:`LEVELS`."""
    count: int
    chunk: int = CHUNK
    """Bytes; without meaning where the level is not striped."""
    trim: bool | None = None
    """Whether TRIM reaches the members; None for what md does with the level."""

    @property
    def name(self) -> str:
        """Such as ``RAID 5, 8 drives, chunk 64 KiB``."""
        chunk = f", chunk {binary(self.chunk)}" if self.level in STRIPED else ""
        return f"{self.level_name} of {self.count}{chunk}"

    @property
    def level_name(self) -> str:
        """Such as ``RAID 5``."""
        return "linear" if self.level == "linear" else f"RAID {self.level}"

    @property
    def survives(self) -> str:
        """What may die without loss of data, in words."""
        # The copies of an odd number of members overlap all around: there are no pairs.
        paired = self.level != "10" or self.count % 2 == 0
        return SURVIVES[self.level] if paired else "one member"

    @property
    def keys(self) -> dict[str, Any]:
        """Keys of the device ``array``, but for its members and their number."""
        keys: dict[str, Any] = {"level": LEVELS[self.level]}
        if self.level in STRIPED:
            keys["chunk"] = f"{self.chunk}B"
        if self.trim is not None:
            keys["trim"] = self.trim
        return keys

    def possible(self) -> bool:
        """Whether there are enough members for the level."""
        return self.count >= MEMBERS_MIN[self.level]

    @property
    def usable_share(self) -> float:
        """Of the space of all members, what remains for data (whole chunks left aside)."""
        data = {"1": 1.0, "10": self.count / 2, "5": self.count - 1.0, "6": self.count - 2.0}
        return data.get(self.level, float(self.count)) / self.count


def shipped(name: str) -> Sim:
    """The drive of a profile."""
    from ssdlab.target import Sim  # what only offers names does not load it

    return Sim(name, profile(name).text)


def profile_of(drive: Sim) -> str | None:
    """The name of a drive's profile; None where it comes from elsewhere."""
    return drive.name if not drive.source and is_profile(drive.name) else None


def named(name: str, more: str = "") -> Sim:
    """The drive that a user names: a profile, or a rig file (``*.toml``); InputError where there is
    none; ``more`` ends its sentence."""
    from ssdlab.target import Sim

    if name.endswith(".toml"):
        path = Path(name)
        return Sim(path.stem, read_text(path, "rig file"), name)
    if not is_profile(name):
        raise unknown_name("drive profile", name, [one.name for one in profiles()], more)
    return shipped(name)


def array_of(
    drive: _core.Rig, shape: ArrayShape, name: str = "array", summary: str = ""
) -> _core.Rig:
    """An array of drives like ``drive``; what the host takes for an I/O it takes before the array,
    once."""
    keys = {**shape.keys, "count": shape.count}
    array = _core.Rig.wrap("array", keys, name=name, summary=summary, member=drive)
    host = {key: said for key in ("host_time", "host_fill_rate") if (said := drive.get(key))}
    if not host:
        return array
    link = {"bandwidth": "1000GB/s", "queue_slots": 1 << 20, "duplex": "full", **host}
    return _core.Rig.wrap("link", link, name=name, summary=summary, below=array)


def array_rig(drive: Sim, shape: ArrayShape, attachment: Attachment = DIRECT) -> str:
    """The rig of an array of drives like ``drive``, as text, behind ``attachment``, with what the
    drive's rig says passed on as it is, sources included; InputError where that is none."""
    name, summary = (
        f"{LEVELS[shape.level]}-{shape.count}-{drive.name}",
        f"{shape.name}: {drive.name}",
    )
    if attachment:
        summary += f", behind {attachment.name}"
    return attachment.around(array_of(drive.tree(), shape, name, summary)).to_toml()


def mixed_rig(drives: Sequence[Sim], shape: ArrayShape) -> str:
    """The rig of an array whose members differ, as text."""
    summary = f"{shape.name}: {', '.join(dict.fromkeys(drive.name for drive in drives))}"
    return mixed([drive.tree() for drive in drives], shape, summary=summary).to_toml()


def mixed(
    members: Sequence[_core.Rig], shape: ArrayShape, name: str = "array", summary: str = ""
) -> _core.Rig:
    """An array whose members differ, in their order."""
    return _core.Rig.wrap("array", shape.keys, name=name, summary=summary, members=list(members))
