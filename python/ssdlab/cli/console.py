"""Consoles and progress for people."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

from rich.console import Console

from ssdlab.api.watching import console_on, shown
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
