"""What commands take and write alike: sizes, and documents as JSON."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from ssdlab.cli.console import stderr, stdout
from ssdlab.errors import InputError
from ssdlab.store import check_writable, write_whole

_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}


def parse_bytes(option: str, text: str) -> int:
    """A size such as ``1.5GB`` (decimal) or ``2GiB`` (binary), in bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?)(b?)", text.strip().lower())
    unit = match[2] if match else "?"
    factor = (_DECIMAL | _BINARY).get(unit)
    if match is None or factor is None or (unit and not match[3]):
        raise InputError(f'{option} "{text}": write it as a size, such as 1.5GB or 512MiB')
    return int(float(match[1]) * factor)


def check_place(place: str | None) -> None:
    """Raises InputError where ``--json`` names a file that cannot be written."""
    if place not in (None, "-"):
        check_writable(Path(place or ""))


def results(place: str | None) -> Console:
    """Where the words for people go: not among the JSON on stdout."""
    return stderr() if place == "-" else stdout()


def write_json(place: str | None, document: Any) -> None:
    """Writes ``document`` where ``--json`` says."""
    if place is None:
        return
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    if place == "-":
        sys.stdout.write(text)
    else:
        write_whole(Path(place), text)


def say(console: Console, text: str, style: str | None = None) -> None:
    """A sentence, on as many lines as the terminal takes."""
    console.print(text, markup=False, soft_wrap=True, style=style)
