"""Hands variants to the workers of a cluster, in batches, until all are done.

Whose worker died is run again alone in a batch, then alone in the whole cluster; what ends its
worker there too is given up.
"""

from __future__ import annotations

import itertools
import math
import queue
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from distributed import Future, KilledWorker

from ssdlab.bench.cluster import Cluster
from ssdlab.bench.packing import Parcels, pack, unpack
from ssdlab.bench.variant import (
    STOPPED,
    Agenda,
    BatchProgress,
    Outcome,
    Take,
    Tolerant,
    Variant,
    WorkerLostError,
)
from ssdlab.bench.worker import WorkBatch, WorkItem, keep, work
from ssdlab.errors import ExperimentError, Interrupted, MemoryShortError
from ssdlab.progress import ProgressCallback

TICK_S = 0.1
"""Seconds between two looks whether Ctrl-C was pressed."""
LOOK_EVERY_S = 0.5
"""Seconds between two looks at which workers there are."""
BATCH_S = 0.5
"""What a batch should take: far more than handing it over."""
BATCH_MAX = 256
AHEAD = 2
"""Batches for each thread of a worker, of which one waits."""
GONE_S = 3.0
"""A scheduler that is out of reach for so long is gone."""
NOBODY_S = 60.0
"""Without any worker for so long, nobody will come."""
FETCH_S = 5.0
LEARNT = 0.3
"""Weight of the newest batch in what a variant takes."""
ALMOST = 0.999
"""A variant is done when what came of it is here."""


@dataclass(eq=False)
class _Sent:
    """A batch on its way."""

    places: list[int]
    worker: str
    future: Future
    alone: bool


class Dispatch:
    """What becomes of one list of variants."""

    def __init__(
        self,
        cluster: Cluster,
        variants: Sequence[Variant[Any]],
        take: Take[Any],
        progress: ProgressCallback | None,
    ) -> None:
        self._cluster, self._variants, self._take = cluster, variants, take
        self._agenda, self._tally = Agenda(variants), BatchProgress(variants, progress)
        uses = Counter(variant.start for variant in variants if variant.start is not None)
        self._shared = {start for start, count in uses.items() if count > 1}
        self._again: deque[int] = deque()
        """What is run again, each in a batch of its own."""
        self._last: list[int] = []
        """What runs when all else is done, with the whole cluster to itself."""
        self._tried: set[int] = set()
        """What was in a batch of its own when its worker died."""
        self._sent: dict[str, _Sent] = {}
        self._come: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._workers: dict[str, tuple[int, int]] = {}
        self._threads: dict[str, int] = {}
        """Of all workers there ever were."""
        self._looked = self._seen = time.monotonic() - LOOK_EVERY_S
        self._seconds: float | None = None
        self._topic = f"ssdlab-{secrets.token_hex(8)}"
        self._numbers = itertools.count()
        self._heard: dict[int, float] = {}
        self._hearing = threading.Lock()
        self._parcels = Parcels(self._keep)
        self._kept: dict[str, Future] = {}

    def work(self) -> None:
        """Runs all of them; raises as :meth:`ssdlab.bench.variant.Engine.work`."""
        client = self._cluster.client
        client.subscribe_topic(self._topic, self._hear)
        try:
            while self._sent or self._agenda.left or self._again or self._last:
                self._look()
                self._hand_out()
                self._collect()
                self._say()
            self._say()
        except (OSError, RuntimeError) as error:
            if client.status == "running":
                raise
            raise self._gone() from error
        finally:
            if client.status == "running":
                client.cancel([one.future for one in self._sent.values()], force=True)
                client.unsubscribe_topic(self._topic)

    def _look(self) -> None:
        """Which workers there are; what the others had is given to them."""
        client, now = self._cluster.client, time.monotonic()
        if client.status == "running" and now - self._looked < LOOK_EVERY_S:
            return
        try:
            if client.status != "running":
                raise OSError(client.status)
            self._workers = self._cluster.workers()
        except OSError:
            if now - self._looked > GONE_S:
                raise self._gone() from None
            time.sleep(TICK_S)
            return
        self._looked = now
        self._threads |= {worker: count for worker, (count, _) in self._workers.items()}
        if self._workers:
            self._seen = now
        elif now - self._seen > NOBODY_S:
            raise ExperimentError(
                f"cluster {self._cluster.address}: no worker for {NOBODY_S:.0f} s; what came is "
                "kept, and the same command goes on from there"
            )
        for worker in {one.worker for one in self._sent.values()} - set(self._workers):
            self._lose(worker)

    def _gone(self) -> ExperimentError:
        return ExperimentError(
            f"cluster {self._cluster.address}: the scheduler is gone; what came is kept, and the "
            "same command goes on from there"
        )

    def _hand_out(self) -> None:
        if not (self._agenda.left or self._again):
            if self._last and not self._sent and self._workers:
                largest = max(self._workers, key=lambda worker: self._workers[worker][1])
                self._send([self._last.pop(0)], largest, alone=True)
            return
        busy = Counter(one.worker for one in self._sent.values())
        threads = sum(count for count, _ in self._workers.values())
        # One round of batches, then another, so that none gets two while another has none.
        for ahead in range(1, AHEAD + 1):
            for worker, (count, _) in self._workers.items():
                while busy[worker] < ahead * count:
                    places = self._next(worker, threads)
                    if not places:
                        return
                    self._send(places, worker)
                    busy[worker] += 1

    def _next(self, worker: str, threads: int) -> list[int]:
        if self._again:
            return [self._again.popleft()]
        while places := self._taken(worker, threads):
            if wanted := [place for place in places if self._wanted(place)]:
                return wanted
        return []

    def _wanted(self, place: int) -> bool:
        wanted = self._variants[place].wanted
        if wanted is None or wanted():
            return True
        self._take(place, None)
        self._tally.note({place: 1.0})
        return False

    def _taken(self, worker: str, threads: int) -> list[int]:
        if self._seconds is None:
            return self._agenda.take(worker)
        most = math.ceil(self._agenda.left / (AHEAD * threads))
        wanted = int(BATCH_S / max(self._seconds, 1e-6))
        return self._agenda.take(worker, max(1, min(wanted, most, BATCH_MAX)))

    def _send(self, places: list[int], worker: str, *, alone: bool = False) -> None:
        items = [self._item(place) for place in places]
        batch = WorkBatch(items, self._topic, self._cluster.beside, alone)
        content = pack(batch, self._parcels)
        key = f"{self._topic}-{next(self._numbers)}"
        # Of parcels only what the batch needs: the others need not be there.
        parcels = {name: one for name, one in self._kept.items() if name.encode() in content}
        future = self._cluster.client.submit(work, content, parcels, key=key, workers=[worker])
        self._sent[key] = _Sent(places, worker, future, alone)
        future.add_done_callback(lambda one: self._come.put(one.key))

    def _item(self, place: int) -> WorkItem:
        variant = self._variants[place]
        return WorkItem(
            place, variant.body, variant.start if variant.start in self._shared else None
        )

    def _keep(self, name: str, content: bytes) -> None:
        self._kept[name] = self._cluster.client.submit(
            keep, content, key=f"ssdlab-{name}", workers=list(self._workers),
            allow_other_workers=True,
        )  # fmt: skip

    def _collect(self) -> None:
        """Takes what has come, or waits a moment."""
        try:
            key = self._come.get(timeout=TICK_S)
            while True:
                self._settle(key)
                key = self._come.get_nowait()
        except queue.Empty:
            return

    def _settle(self, key: str) -> None:
        sent = self._sent.get(key)
        if sent is None:
            return  # given to another worker meanwhile
        if sent.future.status == "finished":
            try:
                content = sent.future.result(timeout=FETCH_S)
            except (TimeoutError, OSError):
                self._come.put(key)  # its worker may just have died
                return
            del self._sent[key]
            self._take_all(sent, unpack(content))
        elif sent.future.status == "error":
            error = sent.future.exception(timeout=FETCH_S)
            del self._sent[key]
            if not isinstance(error, KilledWorker):
                raise ExperimentError(f"the worker {sent.worker}: {error}")
            self._died(sent)
        elif self._cluster.client.status == "running":
            del self._sent[key]
            self._again.extend(sent.places)

    def _take_all(self, sent: _Sent, came: Sequence[Outcome]) -> None:
        wrong: list[BaseException] = []
        for outcome in came:
            if outcome.error is None:
                self._take(outcome.place, outcome.result)
                self._tally.note({outcome.place: 1.0})
            elif isinstance(outcome.error, MemoryShortError) and not sent.alone:
                self._last.append(outcome.place)
            else:
                wrong.append(outcome.error)
        if wrong:
            raise wrong[0]
        seconds = sum(outcome.seconds for outcome in came) / len(came)
        before = seconds if self._seconds is None else self._seconds
        self._seconds = (1 - LEARNT) * before + LEARNT * seconds

    def _lose(self, worker: str) -> None:
        """What a worker had that is gone: it was at the first, the others only waited."""
        threads = self._threads.get(worker, 1)
        own = [(key, one) for key, one in self._sent.items() if one.worker == worker]
        self._cluster.client.cancel([one.future for _, one in own], force=True)
        for place, (key, one) in enumerate(own):
            del self._sent[key]
            if place < threads:
                self._died(one)
            else:
                self._again.extend(one.places)

    def _died(self, sent: _Sent) -> None:
        """Runs a batch again whose worker died."""
        if sent.alone:
            (place,) = sent.places
            lost = WorkerLostError(
                f"run {place + 1} of {len(self._variants)} ended each worker that it ran on, most "
                "likely for want of memory"
            )
            if not isinstance(self._variants[place].body, Tolerant):
                raise lost
            self._take(place, lost)
            self._tally.note({place: 1.0})
        elif self._tried.issuperset(sent.places):
            self._last += sent.places
        else:
            self._tried.update(sent.places if len(sent.places) == 1 else ())
            self._again.extend(sent.places)

    def _hear(self, event: tuple[float, Iterable[tuple[int, float]]]) -> None:
        """What a worker tells; in the thread of the client."""
        with self._hearing:
            self._heard.update((place, min(fraction, ALMOST)) for place, fraction in event[1])

    def _say(self) -> None:
        with self._hearing:
            heard, self._heard = self._heard, {}
        if not self._tally.note(heard):
            raise Interrupted(STOPPED)
