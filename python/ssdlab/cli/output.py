"""What commands write alike: words and progress for people, and documents as JSON."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.console import Console

from ssdlab.answer import finite
from ssdlab.api.watching import console_on, shown
from ssdlab.errors import InputError, SsdlabError
from ssdlab.output import Output
from ssdlab.progress import ProgressCallback


def stdout() -> Console:
    """The console for results; wide where nobody's window limits it."""
    return console_on(sys.stdout)


def stderr() -> Console:
    """The console for messages."""
    return console_on(sys.stderr)


def progress(title: str, *, quiet: bool = False) -> AbstractContextManager[ProgressCallback]:
    """A callback that shows how far a run is, on stderr, unless ``quiet``."""
    return shown(not quiet, title)


def on_stdout(*documents: Output | None) -> bool:
    """Whether one of the documents goes to standard output, where words would spoil it."""
    return any(document is not None and document.is_stdout for document in documents)


def check_stdout(documents: Mapping[str, Output | None], taken: str | None = None) -> None:
    """Raises InputError where two documents want standard output, or one that is ``taken`` by
    something else; ``documents`` by the options that name their places."""
    wanting = [option for option, place in documents.items() if on_stdout(place)]
    wanting += [taken] if taken else []
    if len(wanting) > 1:
        one, other = wanting[:2]
        raise InputError(
            f"{one} - and {other} both write to standard output; name a file for {one}"
        )


def results(*documents: Output | None) -> Console:
    """Where the words for people go: not among a document on standard output."""
    return stderr() if on_stdout(*documents) else stdout()


def write_json(place: Output | None, document: Any) -> None:
    """Writes ``document`` where ``--json`` says; what is no finite number is null."""
    if place is not None:
        place.write(json.dumps(finite(document), indent=2, allow_nan=False) + "\n")


@contextlib.contextmanager
def keeping(kept: Path | None) -> Iterator[None]:
    """Says, where a document cannot be written, where that is kept which it tells of."""
    try:
        yield
    except SsdlabError as error:
        if kept is not None:
            error.message += f"; the results are kept in {kept}"
            error.args = (error.message, *error.args[1:])
        raise


def notice(sentence: str) -> None:
    """Tells it beside the results."""
    say(stderr(), sentence)


def say(console: Console, text: str, style: str | None = None) -> None:
    """A sentence, on as many lines as the terminal takes."""
    console.print(text, markup=False, soft_wrap=True, style=style)
