"""What ``--setup`` may say."""

from __future__ import annotations

import re

from ssdlab.errors import InputError, unknown_name
from ssdlab.tuning.model import Request, Wish
from ssdlab.tuning.settings import PRESETS, SETTINGS, block_bytes

NONE = "none"


def parse(text: str) -> Request:
    """Reads ``pts``, ``none``, or ``NAME=VALUE`` joined by commas; later ones win.

    Raises:
        InputError: no such preset, setting or value.
    """
    known = {one.name: one for one in SETTINGS}
    wishes: dict[str, Wish] = {}
    for part in _parts(text):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            if name not in PRESETS:
                more = "; a single setting is written NAME=VALUE"
                raise unknown_name("setup", name, PRESETS, more)
            for one in SETTINGS:
                if name in one.presets:
                    wishes[one.name] = Wish(one.presets[name], named=False)
            continue
        if name not in known:
            raise unknown_name("setting", name, known)
        if not known[name].check(value):
            raise InputError(f'--setup {name}: found "{value}", expected {known[name].values}')
        wishes[name] = Wish(value, named=True)
    return Request(text, wishes)


def _parts(text: str) -> list[str]:
    """The pieces between commas; those of a list of processors stay together."""
    parts: list[str] = []
    for piece in text.split(","):
        if parts and re.fullmatch(r"\s*\d+(-\d+)?\s*", piece):
            parts[-1] += f",{piece.strip()}"
        else:
            parts.append(piece)
    return parts


def for_client(text: str) -> str:
    """The same with the write cache as the PTS asks for it with client settings."""
    return ",".join("pts-client" if one.strip() == "pts" else one for one in text.split(","))


def wanted_block(text: str) -> int | None:
    """Bytes of the logical block that a drive is to be formatted to; None where it is not."""
    wish = parse(text).wishes.get("lba")
    return None if wish is None else block_bytes(wish.value)


def consent(text: str) -> str:
    """What a sentence about the loss of data must add; empty where nothing is formatted."""
    block = wanted_block(text)
    if block is None:
        return ""
    return (
        f"; before that the drive is formatted to blocks of {block} bytes, and when the run ends "
        "it is formatted back to what it was: each format erases it"
    )
