"""What commands write alike: words for people, and documents as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from ssdlab.cli.console import stderr, stdout
from ssdlab.store import check_writable, write_whole


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
