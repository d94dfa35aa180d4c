"""What commands write alike: words for people, and documents as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from rich.console import Console

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
        place.write(json.dumps(_finite(document), indent=2, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def say(console: Console, text: str, style: str | None = None) -> None:
    """A sentence, on as many lines as the terminal takes."""
    console.print(text, markup=False, soft_wrap=True, style=style)
