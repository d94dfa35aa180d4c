"""What lies between the host and the members of an array: a controller card, a bus they share."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from ssdlab.errors import InputError, unknown_name
from ssdlab.jobfile import read_text

_RATE = re.compile(r"[0-9.]+ *[kKMGT]i?B/s\Z")
_PLACES = ("controller", "bus")


@dataclass(frozen=True)
class Attachment:
    """Keys of the card and of the bus, as they stand in a rig; what is None is not there."""

    name: str = ""
    summary: str = ""
    controller: Mapping[str, Any] | None = None
    bus: Mapping[str, Any] | None = None

    def __bool__(self) -> bool:
        return self.controller is not None or self.bus is not None

    def around(self, array: Mapping[str, Any]) -> dict[str, Any]:
        """The table of an array, with its bus and below its card."""
        keys = dict(array)
        if self.bus is not None:
            # The tables of members come last, so that the rig reads from the outside inwards.
            places = [key for key in ("member", "members") if key in keys]
            members: dict[str, Any] = {key: keys.pop(key) for key in places}
            keys = {**keys, "bus": dict(self.bus), **members}
        if self.controller is None:
            return keys
        return {"kind": "controller", **self.controller, "below": keys}

    def without_ram(self) -> Attachment:
        """The same card passing everything through."""
        if self.controller is None:
            return self
        return replace(self, controller={k: v for k, v in self.controller.items() if k != "cache"})

    def with_ram(self, size: int) -> Attachment:
        """The same card with so many bytes of RAM."""
        cache = {**(self.controller or {}).get("cache", {}), "size": f"{size}B"}
        return replace(self, controller={**(self.controller or {}), "cache": cache})


DIRECT = Attachment()
"""Members at the host, each by itself."""


def shipped_attachments() -> dict[str, Attachment]:
    """Those that ship with ssdlab, by name. Being in the folder ``controllers`` is all it takes."""
    folder = resources.files("ssdlab") / "controllers"
    files = [f for f in folder.iterdir() if f.name.endswith(".toml")] if folder.is_dir() else []
    found = {}
    for file in sorted(files, key=lambda f: f.name):
        name = file.name.removesuffix(".toml")
        found[name] = parse(file.read_text("utf-8"), name)
    return found


def attachment(name: str) -> Attachment:
    """The one that ``name`` means: a shipped one, or a file (``*.toml``).

    Raises InputError where there is none, or the file says something else.
    """
    if name.endswith(".toml"):
        return parse(read_text(Path(name), "controller file"), name)
    known = shipped_attachments()
    if name not in known:
        raise unknown_name("controller", name, known)
    return known[name]


def parse(text: str, place: str) -> Attachment:
    """An attachment from TOML; its keys are those of the core, which checks them."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{place}: is not TOML ({error}), so it describes no controller") from None
    unknown = sorted(set(table) - {"name", "summary", *_PLACES})
    parts = {key: table.get(key) for key in _PLACES}
    wrong = [key for key, part in parts.items() if part is not None and not isinstance(part, dict)]
    if unknown or wrong or not any(parts.values()):
        found = (unknown + wrong or ["nothing of both"])[0]
        raise InputError(
            f"{place}: found {found}, expected tables [controller] or [bus] (docs/arrays.md)"
        )
    name = Path(place).name.removesuffix(".toml")
    return Attachment(
        str(table.get("name", name)), str(table.get("summary", "")), parts["controller"],
        parts["bus"],
    )  # fmt: skip


def with_bus(found: Attachment, rate: str) -> Attachment:
    """The same with a bus of ``rate``, such as ``2GB/s``.

    Raises InputError where that is no rate.
    """
    if not _RATE.match(rate):
        raise InputError(f'--bus "{rate}": expected a rate with its unit, such as 2GB/s')
    name = " and ".join(part for part in (found.name, f"a bus of {rate}") if part)
    return replace(found, name=name, bus={**(found.bus or {}), "bandwidth": rate})
