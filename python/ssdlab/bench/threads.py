"""Variants in threads of this process, since the core lets go of Python."""

from __future__ import annotations

import os
import queue
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from ssdlab.bench.variant import STOPPED, Agenda, BatchProgress, Outcome, Seat, Shelf, Take, Variant
from ssdlab.errors import Interrupted, MemoryShortError
from ssdlab.memory import available_bytes
from ssdlab.progress import Progress, ProgressCallback

SIGNALS_S = 0.1
"""Seconds between two looks whether Ctrl-C was pressed."""
AHEAD_MAX = 64
"""Results that wait to be taken; more of them hold the threads up."""


Outcomes = queue.Queue[Outcome | None]
"""Of a thread's variants, and None at its end."""


class Threads:
    """As many at once as there are cores. Each gets its share of the memory; what needs more runs
    alone, after the others."""

    def work(
        self, variants: Sequence[Variant[Any]], take: Take[Any], progress: ProgressCallback | None
    ) -> None:
        """As :meth:`ssdlab.bench.variant.Engine.work`."""
        if not variants:
            return
        at_once = max(1, min(len(os.sched_getaffinity(0)), len(variants)))
        free = available_bytes()
        share = None if free is None or at_once == 1 else free // at_once
        uses = Counter(variant.start for variant in variants if variant.start is not None)
        shared = {start: count for start, count in uses.items() if count > 1}
        with tempfile.TemporaryDirectory(prefix="ssdlab-") as folder:
            crew = _Crew(variants, take, progress, Shelf(Path(folder), shared), shared)
            short = crew.work(Agenda(variants), at_once, share)
            crew.work(Agenda(variants, short), 1, None)


class _Crew:
    """Threads at work on variants."""

    def __init__(
        self,
        variants: Sequence[Variant[Any]],
        take: Take[Any],
        progress: ProgressCallback | None,
        shelf: Shelf,
        shared: dict[str, int],
    ) -> None:
        self._variants, self._take, self._shelf, self._shared = variants, take, shelf, shared
        self._tally = BatchProgress(variants, progress)
        self._next = threading.Lock()
        self._stop = threading.Event()

    def work(self, agenda: Agenda, at_once: int, memory: int | None) -> list[int]:
        """Runs what is on the agenda, and answers the places of what needs more memory."""
        if not agenda.left:
            return []
        came: Outcomes = queue.Queue(AHEAD_MAX)
        wrong: list[Outcome] = []
        with ThreadPoolExecutor(at_once) as pool:
            gone = threading.Event()
            try:
                for holder in range(at_once):
                    pool.submit(self._serve, agenda, holder, memory, came, gone)
                self._gather(came, at_once, wrong)
            except BaseException:
                self._stop.set()  # before the pool waits for its threads
                gone.set()
                raise
        short = [finished for finished in wrong if memory is not None and _short(finished)]
        if bad := [finished for finished in wrong if finished not in short]:
            # What was stopped because of another says less than the other.
            first = min(
                bad, key=lambda finished: (isinstance(finished.error, Interrupted), finished.place)
            )
            assert first.error is not None
            raise first.error
        if agenda.left:
            raise Interrupted(STOPPED)  # between two of them
        return sorted(finished.place for finished in short)

    def _gather(self, came: Outcomes, at_work: int, wrong: list[Outcome]) -> None:
        while at_work:
            try:
                # A signal need not break off a wait without an end: polars has waits restart.
                finished = came.get(timeout=SIGNALS_S)
            except queue.Empty:
                continue
            if finished is None:
                at_work -= 1
            elif finished.error is not None:
                wrong.append(finished)
            else:
                self._take(finished.place, finished.result)

    def _serve(
        self, agenda: Agenda, holder: int, memory: int | None, came: Outcomes,
        gone: threading.Event,
    ) -> None:  # fmt: skip
        """What one of the threads does."""

        def hand_over(finished: Outcome | None) -> None:
            while not gone.is_set():
                try:
                    return came.put(finished, timeout=SIGNALS_S)
                except queue.Full:
                    pass
            return None

        while not self._stop.is_set():
            with self._next:
                places = agenda.take(holder)
            if not places:
                break
            hand_over(self._one(places[0], memory))
        hand_over(None)

    def _one(self, place: int, memory: int | None) -> Outcome:
        variant = self._variants[place]
        try:
            # Asked here too: a short one may end before the core reports for the first time.
            if not self._tell(place, 0.0):
                raise Interrupted(STOPPED)
            if variant.wanted is not None and not variant.wanted():
                self._tell(place, 1.0)
                return Outcome(place, None)
            start = variant.start if variant.start in self._shared else None
            result = variant.body(Seat(partial(self._hear, place), memory, self._shelf, start))
            self._tell(place, 1.0)
        except BaseException as error:
            finished = Outcome(place, error=error)
            if memory is None or not _short(finished):
                self._stop.set()
            return finished
        return Outcome(place, result)

    def _hear(self, place: int, news: Progress) -> bool:
        return self._tell(place, news.fraction or 0.0)

    def _tell(self, place: int, fraction: float) -> bool:
        if not self._tally.note({place: fraction}):
            self._stop.set()
        return not self._stop.is_set()


def _short(finished: Outcome) -> bool:
    return isinstance(finished.error, MemoryShortError)
