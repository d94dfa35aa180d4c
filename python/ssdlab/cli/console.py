"""Consoles, progress and tables for people."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ssdlab.api.watching import console_on, shown
from ssdlab.progress import ProgressCallback


def stdout() -> Console:
    """The console for results; wide where nobody's window limits it."""
    return console_on(sys.stdout)


def stderr() -> Console:
    """The console for messages."""
    return console_on(sys.stderr)


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()
) -> Table:
    """A plain table; ``right`` are the places of columns that are set to the right."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, head in enumerate(heads):
        grid.add_column(head, justify="right" if place in right else "left", overflow="fold")
    for row in rows:
        # Names may hold what rich would read as markup.
        grid.add_row(*(Text(cell) for cell in row))
    return grid


def progress(title: str, *, quiet: bool = False) -> AbstractContextManager[ProgressCallback]:
    """A callback that shows how far a run is, on stderr, unless ``quiet``."""
    return shown(not quiet, title)
