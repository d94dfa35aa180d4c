"""What commands write alike: words for people, and documents as JSON."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console

from ssdlab.answer import finite
from ssdlab.cli.console import stderr, stdout
from ssdlab.output import Output


def on_stdout(*documents: Output | None) -> bool:
    """Whether one of the documents goes to standard output, where words would spoil it."""
    return any(one is not None and one.is_stdout for one in documents)


def results(*documents: Output | None) -> Console:
    """Where the words for people go: not among a document on standard output."""
    return stderr() if on_stdout(*documents) else stdout()


def write_json(place: Output | None, document: Any) -> None:
    """Writes ``document`` where ``--json`` says; what is no finite number is null."""
    if place is not None:
        place.write(json.dumps(finite(document), indent=2, allow_nan=False) + "\n")


def notice(sentence: str) -> None:
    """Tells it beside the results."""
    say(stderr(), sentence)


def say(console: Console, text: str, style: str | None = None) -> None:
    """A sentence, on as many lines as the terminal takes."""
    console.print(text, markup=False, soft_wrap=True, style=style)
