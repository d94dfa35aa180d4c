"""What lies between the host and the members of an array: a controller card, a bus they share."""

from __future__ import annotations

import re
from pathlib import Path

from ssdlab._core import Attachment as Attachment
from ssdlab.errors import InputError, known_name
from ssdlab.jobfile import read_text
from ssdlab.rig import shipped_in

_RATE = re.compile(r"[0-9.]+ *[kKMGT]i?B/s\Z")

DIRECT = Attachment()
"""Members at the host, each by itself."""


def shipped_attachments() -> dict[str, Attachment]:
    """Those that ship with ssdlab, by name. Being in the folder ``controllers`` is all it takes."""
    return {name: Attachment(text, file_name=name) for name, text in shipped_in("controllers")}


def attachment(name: str) -> Attachment:
    """The one that ``name`` means: a shipped one, or a file (``*.toml``); InputError where there is
    none, or the file says something else."""
    if name.endswith(".toml"):
        return Attachment(read_text(Path(name), "controller file"), file_name=name)
    texts = dict(shipped_in("controllers"))
    return Attachment(texts[known_name("controller", name, texts)], file_name=name)


def ram_bytes(card: Attachment) -> int:
    """RAM of a card; 0 without one."""
    return card.bytes("controller.cache.size") or 0


def with_ram(card: Attachment, size: int) -> Attachment:
    """The same card with so many bytes of RAM."""
    return card.having("controller.cache.size", f"{size}B")


def without_ram(card: Attachment) -> Attachment:
    """The same card passing everything through."""
    return card.having("controller.cache", None)


def with_bus(found: Attachment, rate: str) -> Attachment:
    """The same with a bus of ``rate``, such as ``2GB/s``; InputError where that is no rate."""
    if not _RATE.match(rate):
        raise InputError(f'--bus "{rate}": expected a rate with its unit, such as 2GB/s')
    name = " and ".join(part for part in (found.name, f"a bus of {rate}") if part)
    return found.having("bus.bandwidth", rate, name=name)
