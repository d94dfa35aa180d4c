"""Many simulations: the one way to run them.

Several run at once, in threads, since the core lets go of Python. Each gets its share of the
memory; what needs more runs alone, after the others. What comes out is in the order asked for, and
does not depend on how many run at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from ssdlab.errors import InputError, Interrupted, MemoryShortError
from ssdlab.jobfile import JobText
from ssdlab.memory import available_bytes
from ssdlab.progress import Progress, ProgressCallback
from ssdlab.results import Result
from ssdlab.target import Settings, Sim, SimSession, Terms

T = TypeVar("T")
SIGNALS_S = 0.1
"""Seconds between two looks whether Ctrl-C was pressed."""


@dataclass(frozen=True)
class Seat:
    """What a variant runs with."""

    report: ProgressCallback
    """Told how far the variant is; what it runs stops where this answers False."""
    memory_bytes: int | None = None
    """What it may take of the memory; None for all that is available."""

    def run(self, target: Sim, job: JobText, settings: Settings) -> Result:
        """Runs a job on a simulated drive; raises as :meth:`ssdlab.target.Sim.run`."""
        own = replace(settings, progress=self.report, memory_bytes=self.memory_bytes)
        return target.run(job, own)

    def drive(self, rig: str, name: str, seed: int) -> SimSession:
        """A simulated drive that several jobs run on, one after the other."""
        return Sim(name, rig).open(Terms(seed=seed, memory_bytes=self.memory_bytes))


@dataclass(frozen=True)
class Variant(Generic[T]):
    """One of many: ``body`` runs it and says what came of it."""

    body: Callable[[Seat], T]
    cost: float = 1.0
    """Rough share of the whole, for the time left and the order."""


def tolerant(body: Callable[[Seat], T]) -> Callable[[Seat], T | InputError]:
    """A body whose InputError is what came of it, and not the end of all."""

    def tried(seat: Seat) -> T | InputError:
        try:
            return body(seat)
        except MemoryShortError as error:
            if seat.memory_bytes is not None:
                raise  # all of the memory may be enough
            return error
        except InputError as error:
            return error

    return tried


def run(variants: Sequence[Variant[T]], progress: ProgressCallback | None = None) -> list[T]:
    """What comes of the variants, in their order.

    Raises:
        InputError: the first that a variant raised; MemoryShortError where one needs more memory
            than there is.
        Interrupted: Ctrl-C, or the progress callback returned False; nothing is left running.
    """
    crew = _Crew(variants, progress)
    found: dict[int, T] = {}
    # The longest first, so that no thread is left alone with one at the end.
    waiting = sorted(range(len(variants)), key=lambda i: -variants[i].cost)
    at_once = max(1, min(len(os.sched_getaffinity(0)), len(variants)))
    free = available_bytes()
    share = None if free is None or at_once == 1 else free // at_once
    waiting = crew.work(waiting, at_once, share, found)
    crew.work(waiting, 1, None, found)
    return [found[place] for place in range(len(variants))]


class _Crew(Generic[T]):
    """Threads at work on variants, and how far all of them are."""

    def __init__(self, variants: Sequence[Variant[T]], progress: ProgressCallback | None) -> None:
        self._variants = variants
        self._done = [0.0] * len(variants)
        self._cost = sum(one.cost for one in variants)
        self._whole = 0.0  # kept up, since there may be very many variants
        self._finished = 0
        self._progress = progress
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def work(
        self, places: Sequence[int], at_once: int, memory: int | None, found: dict[int, T]
    ) -> list[int]:
        """Runs the variants at these places, and answers those that need more memory."""
        if not places:
            return []
        with ThreadPoolExecutor(at_once) as pool:
            futures: dict[int, Future[T]] = {}
            try:
                # Ctrl-C may come while the first are at work and the last are not yet handed over.
                for place in places:
                    futures[place] = pool.submit(self._one, place, memory)
                # A signal need not break off a wait without an end: polars has waits restart.
                while wait(futures.values(), SIGNALS_S).not_done:
                    pass
            except BaseException as stopped:
                self._stop.set()  # before the pool waits for its threads
                pool.shutdown(cancel_futures=True)
                if isinstance(stopped, KeyboardInterrupt):
                    raise Interrupted("stopped by Ctrl-C; nothing was kept") from None
                raise
        short: list[int] = []
        wrong: list[BaseException] = []
        for place, future in sorted(futures.items(), key=lambda one: one[0]):
            error = future.exception()
            if error is None:
                found[place] = future.result()
            elif isinstance(error, MemoryShortError) and memory is not None:
                short.append(place)
            else:
                wrong.append(error)
        if wrong:
            # What was stopped because of another says less than the other.
            raise min(wrong, key=lambda error: isinstance(error, Interrupted))
        return short

    def _one(self, place: int, memory: int | None) -> T:
        try:
            # Asked here too: a short one may end before the core reports for the first time.
            if not self._tell(place, 0.0):
                raise Interrupted("stopped; nothing was kept")
            seat = Seat(lambda news: self._tell(place, news.fraction or 0.0), memory)
            result = self._variants[place].body(seat)
        except BaseException as error:
            if memory is None or not isinstance(error, MemoryShortError):
                self._stop.set()
            raise
        self._tell(place, 1.0)
        return result

    def _tell(self, place: int, fraction: float) -> bool:
        """Notes how far a variant is; False when it has to stop."""
        with self._lock:
            before = self._done[place]
            self._done[place] = max(before, fraction)  # steps may begin anew
            self._whole += self._variants[place].cost * (self._done[place] - before)
            self._finished += before < 1.0 <= fraction
            text = f"{self._finished} of {len(self._done)} runs done"
            news = Progress(fraction=min(self._whole / self._cost, 1.0), text=text)
            if self._progress is not None and not self._progress(news):
                self._stop.set()
        return not self._stop.is_set()
