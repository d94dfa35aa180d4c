"""Rigs of arrays as TOML text: a drive's own table becomes the table of the members."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssdlab.arrays.attachment import DIRECT, Attachment
from ssdlab.errors import InputError
from ssdlab.rig import profile

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
"""What may die without loss of data, in words."""
CHUNK = 512 << 10
"""Bytes of a chunk by default, as in md."""

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True)
class Drive:
    """One drive: its rig, and what it is called."""

    name: str
    rig: str
    """Text in TOML."""
    source: str = ""
    """The file it came from, for messages."""


@dataclass(frozen=True, order=True)
class Shape:
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
        chunk = f", chunk {size_text(self.chunk)}" if self.level in STRIPED else ""
        return f"{self.level_name} of {self.count}{chunk}"

    @property
    def level_name(self) -> str:
        """Such as ``RAID 5``."""
        return "linear" if self.level == "linear" else f"RAID {self.level}"

    def possible(self) -> bool:
        """Whether there are enough members for the level."""
        return self.count >= MEMBERS_MIN[self.level]

    @property
    def usable_share(self) -> float:
        """Of the space of all members, what remains for data (whole chunks left aside)."""
        data = {"1": 1.0, "10": self.count / 2, "5": self.count - 1.0, "6": self.count - 2.0}
        return data.get(self.level, float(self.count)) / self.count


def size_text(size: int) -> str:
    """A size for people, binary."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def shipped(name: str) -> Drive:
    """The drive of a profile."""
    return Drive(name, profile(name).text)


def array_rig(drive: Drive, shape: Shape, attachment: Attachment = DIRECT) -> str:
    """The rig of an array of drives like ``drive``, as text, behind ``attachment``.

    What the drive's table says is passed on as it is, sources included; nothing of it is read.

    Raises InputError where the drive's rig is no TOML or has no table ``device``.
    """
    keys: dict[str, Any] = {"level": LEVELS[shape.level], "count": shape.count}
    if shape.level in STRIPED:
        keys["chunk"] = f"{shape.chunk}B"
    if shape.trim is not None:
        keys["trim"] = shape.trim
    summary = f"{shape.name}: {drive.name}"
    head = {"name": f"{LEVELS[shape.level]}-{shape.count}-{drive.name}", "summary": summary}
    if attachment:
        head["summary"] += f", behind {attachment.name or 'a controller'}"
    device = attachment.around({"kind": "array", **keys, "member": device_of(drive)})
    return toml_text({**head, "device": device})


def mixed_rig(drives: Sequence[Drive], shape: Shape) -> str:
    """The rig of an array whose members differ: ``drives``, in their order."""
    keys: dict[str, Any] = {"level": LEVELS[shape.level]}
    if shape.level in STRIPED:
        keys["chunk"] = f"{shape.chunk}B"
    members = [device_of(drive) for drive in drives]
    summary = f"{shape.name}: {', '.join(dict.fromkeys(drive.name for drive in drives))}"
    device = {"kind": "array", **keys, "members": members}
    return toml_text({"name": "array", "summary": summary, "device": device})


def device_of(drive: Drive) -> dict[str, Any]:
    """The table ``device`` of a drive's rig."""
    place = drive.source or drive.name
    try:
        device = tomllib.loads(drive.rig).get("device")
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{place}: is not TOML ({error}), so it cannot be a rig") from None
    if not isinstance(device, dict):
        raise InputError(f"{place}: has no table [device]; a rig describes its device there")
    return device


def toml_text(table: Mapping[str, Any], path: str = "") -> str:
    """A table as TOML: its values, then its tables under headings of their own."""
    plain = {key: value for key, value in table.items() if not _is_table(value)}
    lines = [f"{_key(key)} = {_value(value)}\n" for key, value in plain.items()]
    for key, value in table.items():
        place = f"{path}.{_key(key)}" if path else _key(key)
        if isinstance(value, dict) and _is_table(value):
            lines.append(f"\n[{place}]\n{toml_text(value, place)}")
        elif _is_table(value):
            lines += [f"\n[[{place}]]\n{toml_text(one, place)}" for one in value]
    return "".join(lines)


def _is_table(value: object) -> bool:
    """Whether a value stands under a heading; one with its source does not."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, dict) for one in value)
    return isinstance(value, dict) and not set(value) <= {"value", "source"}


def _key(key: str) -> str:
    return key if _BARE.match(key) else json.dumps(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)  # TOML's basic strings know the escapes of JSON
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())} }}"
    return repr(value) if isinstance(value, float) else str(value)
