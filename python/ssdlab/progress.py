"""Progress of a run, the same for simulated and real targets."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ssdlab import _core
from ssdlab.errors import Interrupted

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """How far a run is. ``fraction`` (0 to 1) and ``eta_s`` are None while nobody can tell."""

    fraction: float | None = None
    eta_s: float | None = None
    text: str = ""


ProgressCallback = Callable[[Progress], bool]
"""Called now and then during a run; returning False stops it."""
Notice = Callable[[str], None]
"""Takes a sentence for people beside the results."""
Report = TypeVar("Report", ProgressCallback, ProgressCallback | None)
TELL_EVERY_S = 0.1


def unheard(_sentence: str) -> None:
    """For whoever needs no notice."""


def tell(progress: ProgressCallback | None, fraction: float | None, text: str) -> None:
    """Tells a callback how far something is; KeyboardInterrupt where it wants to stop."""
    if progress is not None and not progress(Progress(fraction, text=text)):
        raise KeyboardInterrupt


class Teller:
    """Tells a callback how far something is, a few times per second at most."""

    def __init__(self, progress: ProgressCallback | None) -> None:
        self._progress, self._told = progress, time.monotonic()

    def __call__(self, fraction: float, text: Callable[[], str]) -> None:
        """As :func:`tell`; ``text`` is asked for only where it is told."""
        if self._progress is not None and time.monotonic() - self._told >= TELL_EVERY_S:
            self._told = time.monotonic()
            tell(self._progress, fraction, text())


def within(report: Report, start: float, end: float, text: str = "") -> Report:
    """The callback of a part of something, from ``start`` to ``end`` of the whole (0 to 1), under
    its own words unless ``text`` is said of it; None of nobody who listens."""
    if report is None:
        return report

    def tell(news: Progress) -> bool:
        fraction = None if news.fraction is None else start + (end - start) * news.fraction
        return report(Progress(fraction, None, text or news.text))

    return tell


def stage(report: Report, place: int, of: int) -> Report:
    """The callback of one of several parts of the same length."""
    return within(report, place / of, (place + 1) / of)


@contextlib.contextmanager
def answering_ctrl_c(kept: str = "; nothing was kept", of: object = "") -> Iterator[None]:
    """Makes an Interrupted of Ctrl-C, that says what is kept, and ``of`` what."""
    try:
        yield
    except KeyboardInterrupt:
        who = f"{of}: " if of else ""
        raise Interrupted(f"{who}{Interrupted.sentence()}{kept}") from None


def heard(
    progress: ProgressCallback | None,
    work: Callable[[Callable[[_core.Progress], bool]], T],
    *,
    phases: Sequence[str] = (),
) -> T:
    """What ``work`` of the core gives, to which the callback is handed that it reports to;
    ``phases`` are those that it goes through, where it tells how far each of them is. Raises
    Interrupted on Ctrl-C, and where ``progress`` answers False."""
    stopped = False

    def report(news: _core.Progress) -> bool:
        nonlocal stopped
        stopped = progress is not None and not progress(_progress(news, phases))
        return not stopped

    try:
        with answering_ctrl_c():
            return work(report)
    except Interrupted:
        raise
    except Exception:
        if stopped:
            raise Interrupted("stopped; nothing was kept") from None
        raise


def phases_of(steps: str) -> list[str]:
    """The phases that the core goes through in a preparation that take long."""
    random = any(step.startswith(("random", "steady")) for step in steps.split(","))
    filled = random or "sequential" in steps.split(",")
    return ["sequential fill"] * filled + ["random writes"] * random


def _progress(news: _core.Progress, phases: Sequence[str]) -> Progress:
    """What the core says of a run, for people: phases count alike, whatever they take."""
    fraction = news["fraction"]
    if news["phase"] in phases:
        fraction = (phases.index(news["phase"]) + fraction) / len(phases)
    return Progress(
        fraction=fraction,
        text=f"{news['phase']}, {news['simulated_s']:,.1f} s simulated, {news['ios']:,} I/Os",
    )
