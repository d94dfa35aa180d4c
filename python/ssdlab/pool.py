"""Several pieces of simulation at once, in threads, since the core lets go of Python."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from ssdlab.errors import Interrupted
from ssdlab.progress import Progress, ProgressCallback

T = TypeVar("T")


@dataclass(frozen=True)
class Piece(Generic[T]):
    """One piece: ``work`` is given the callback that it reports to while it runs."""

    work: Callable[[ProgressCallback], T]
    cost: float = 1.0
    """Rough share of the whole, for the time left and the order."""


def threads() -> int:
    """How many pieces run at once."""
    return len(os.sched_getaffinity(0))


def run(
    pieces: Sequence[Piece[T]],
    progress: ProgressCallback | None = None,
    *,
    at_once: int | None = None,
) -> list[T]:
    """What the pieces give, in their order.

    Raises:
        Interrupted: Ctrl-C, or the progress callback returned False; nothing is left running.
    """
    tally = _Tally([piece.cost for piece in pieces], progress)
    # The longest first, so that no thread is left alone with one at the end.
    order = sorted(range(len(pieces)), key=lambda i: -pieces[i].cost)

    def one(index: int) -> T:
        # Asked here too: a short piece may end before the core reports for the first time.
        if not tally.tell(index, 0.0):
            raise Interrupted("stopped; nothing was kept")
        found = pieces[index].work(lambda news: tally.tell(index, news.fraction or 0.0))
        tally.tell(index, 1.0)
        return found

    with ThreadPoolExecutor(at_once or threads()) as pool:
        futures = {index: pool.submit(one, index) for index in order}
        try:
            for index in order:
                futures[index].result()
        except BaseException:
            tally.stop.set()  # before the pool waits for its threads
            pool.shutdown(cancel_futures=True)
            raise
    return [futures[index].result() for index in range(len(pieces))]


class _Tally:
    """How far all pieces together are."""

    def __init__(self, costs: Sequence[float], progress: ProgressCallback | None) -> None:
        self.stop = threading.Event()
        self._costs = costs
        self._done = [0.0] * len(costs)
        self._progress = progress
        self._lock = threading.Lock()

    def tell(self, index: int, fraction: float) -> bool:
        """Notes how far a piece is; False when it has to stop."""
        with self._lock:
            self._done[index] = fraction
            whole = sum(c * f for c, f in zip(self._costs, self._done, strict=True))
            finished = sum(f >= 1.0 for f in self._done)
            text = f"{finished} of {len(self._done)} runs done"
            news = Progress(fraction=whole / sum(self._costs), text=text)
            if self._progress is not None and not self._progress(news):
                self.stop.set()
        return not self.stop.is_set()
