"""How far a run is, shown where somebody looks: on a terminal, in a pipe, in a notebook."""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from ssdlab import units
from ssdlab.progress import Progress, ProgressCallback

PATIENCE_S = 2.0
"""Runs shorter than this show no progress."""
LINE_EVERY_S = 5.0
SHOWN_EVERY_S = 0.25
"""In a notebook every update is a message to the page."""
PIPE_WIDTH = 1000

Watch = ProgressCallback | bool | None
"""Who is told how far a function is: a callback, which stops it by returning False; True for
whoever sees standard error, or the notebook; None for a notebook alone; False for nobody."""


def console_on(stream: object) -> Console:
    """A console for people; wide where nobody's window limits it."""
    wide = None if stream.isatty() else PIPE_WIDTH  # type: ignore[attr-defined]
    return Console(stderr=stream is sys.stderr, width=wide, highlight=False)


@contextlib.contextmanager
def shown(watch: Watch, title: str) -> Iterator[ProgressCallback]:
    """A callback that shows how far a run is, once it takes longer than 2 s.

    A bar on a terminal; a line every few seconds in a pipe; a bar in the cell of a notebook.
    """
    if callable(watch):
        yield watch
        return
    kernel = in_notebook()
    if watch is False or (watch is None and not kernel):
        yield lambda _news: True
        return
    reporter = _reporter(title, kernel=kernel)
    try:
        yield reporter.update
    finally:
        reporter.close()


def in_notebook() -> bool:
    """Whether this is a kernel of Jupyter, which shows what it is handed."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _reporter(title: str, *, kernel: bool) -> _Reporter:
    console = console_on(sys.stderr)
    if kernel:
        return _CellReporter(title, console)
    return (_BarReporter if console.is_terminal else _LineReporter)(title, console)


TELLING = 0.01
"""Share that is done before the time that is left is told: less says little of the pace."""


class _Reporter:
    def __init__(self, title: str, console: Console) -> None:
        self.title, self.console = title, console
        self.started = time.monotonic()
        self.first: tuple[float, float] | None = None
        """Seconds and fraction when one was told first: what went before, such as reading the
        load, says nothing of the pace."""

    def update(self, news: Progress) -> bool:
        elapsed = time.monotonic() - self.started
        if self.first is None and news.fraction is not None:
            self.first = elapsed, news.fraction
        if elapsed >= PATIENCE_S:
            self.show(news, elapsed)
        return True

    def show(self, news: Progress, elapsed: float) -> None:
        raise NotImplementedError

    def left(self, news: Progress, elapsed: float) -> str:
        """Time that is left, by the pace so far; empty while nobody can tell."""
        seconds = news.eta_s
        since, begun = self.first or (0.0, 0.0)
        if seconds is None and news.fraction is not None and news.fraction >= begun + TELLING:
            seconds = (elapsed - since) * (1.0 - news.fraction) / (news.fraction - begun)
        if seconds is None:
            return ""
        return units.duration(seconds) if seconds >= 1.0 else "less than 1 s"

    def close(self) -> None:
        pass


class _LineReporter(_Reporter):
    last = 0.0

    def show(self, news: Progress, elapsed: float) -> None:
        if news.fraction is None or elapsed - self.last < LINE_EVERY_S:
            return
        self.last = elapsed
        left = self.left(news, elapsed)
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
            left = self.left(news, elapsed)
            text = f"{left} left" if left else ""
            self.bar.update(self.task, completed=news.fraction, left=text, news=news.text)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()


class _CellReporter(_Reporter):
    """A bar below the cell, taken away at the end: what stays there is the result."""

    last = 0.0
    handle: Any = None

    def show(self, news: Progress, elapsed: float) -> None:
        if news.fraction is None or elapsed - self.last < SHOWN_EVERY_S:
            return
        self.last = elapsed
        left = self.left(news, elapsed)
        parts = [self.title, f"{news.fraction:.0%}", f"{left} left" if left else "", news.text]
        words = ", ".join(p for p in parts if p)
        self._tell(
            {
                "text/plain": words,
                "text/html": f'<progress max="1" value="{news.fraction:.4f}"></progress> '
                f"<small>{html.escape(words)}</small>",
            }
        )

    def _tell(self, bundle: dict[str, str]) -> None:
        from IPython import display  # there, since this is its kernel

        if self.handle is None:
            show: Any = display.display
            self.handle = show(bundle, raw=True, display_id=True)
        else:
            self.handle.update(bundle, raw=True)

    def close(self) -> None:
        if self.handle is not None:
            self._tell({"text/plain": "", "text/html": ""})
