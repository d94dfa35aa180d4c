"""Consoles, progress and tables for people."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Collection, Iterator, Sequence

from rich import box
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from ssdlab import units
from ssdlab.progress import Progress, ProgressCallback

PATIENCE_S = 2.0
"""Runs shorter than this show no progress."""

_LINE_EVERY_S = 5.0
PIPE_WIDTH = 1000


def stdout() -> Console:
    """The console for results; wide where nobody's window limits it."""
    return _console(sys.stdout)


def stderr() -> Console:
    """The console for messages."""
    return _console(sys.stderr)


def _console(stream: object) -> Console:
    wide = None if stream.isatty() else PIPE_WIDTH  # type: ignore[attr-defined]
    return Console(stderr=stream is sys.stderr, width=wide, highlight=False)


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


@contextlib.contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[ProgressCallback]:
    """A callback that shows how far a run is, on stderr, once it takes longer than 2 s.

    A bar on a terminal; a line every few seconds in a pipe.
    """
    if quiet:
        yield lambda _news: True
        return
    console = stderr()
    reporter = (
        _BarReporter(title, console) if console.is_terminal else _LineReporter(title, console)
    )
    try:
        yield reporter.update
    finally:
        reporter.close()


class _Reporter:
    def __init__(self, title: str, console: Console) -> None:
        self.title, self.console = title, console
        self.started = time.monotonic()

    def update(self, news: Progress) -> bool:
        elapsed = time.monotonic() - self.started
        if elapsed >= PATIENCE_S:
            self.show(news, elapsed)
        return True

    def show(self, news: Progress, elapsed: float) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


class _LineReporter(_Reporter):
    last = 0.0

    def show(self, news: Progress, elapsed: float) -> None:
        if news.fraction is None or elapsed - self.last < _LINE_EVERY_S:
            return
        self.last = elapsed
        left = _left(news, elapsed)
        done = f"{news.fraction:.0%}"
        parts = [f"{self.title}: {done}", f"{left} left" if left else "", news.text]
        self.console.print(", ".join(p for p in parts if p), markup=False, soft_wrap=True)


class _BarReporter(_Reporter):
    bar: Bar | None = None

    def show(self, news: Progress, elapsed: float) -> None:
        if self.bar is None:
            self.bar = Bar(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %  {task.fields[left]}  {task.fields[news]}"),
                console=self.console,
                transient=True,
            )
            self.task = self.bar.add_task(self.title, total=1.0, left="", news="")
            self.bar.start()
        if news.fraction is not None:
            left = _left(news, elapsed)
            text = f"{left} left" if left else ""
            self.bar.update(self.task, completed=news.fraction, left=text, news=news.text)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()


def _left(news: Progress, elapsed: float) -> str:
    seconds = news.eta_s
    if seconds is None and news.fraction:
        seconds = elapsed * (1.0 - news.fraction) / news.fraction
    return "" if seconds is None else units.duration(seconds)
