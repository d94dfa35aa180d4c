"""What runs in a worker process of a cluster: batches of variants, one after the other."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributed import Worker, get_worker

from ssdlab.bench.packing import pack, unpack
from ssdlab.bench.variant import STOPPED, Outcome, Seat, Shelf
from ssdlab.errors import Interrupted, MemoryShortError, SsdlabError
from ssdlab.memory import available_bytes, limit_process
from ssdlab.progress import Progress

TELL_EVERY_S = 0.3
"""Seconds between two messages of a process about how far all of it is."""
PREPARED_MAX = 8
"""Prepared drives that are kept for each thread."""
LIMIT_SHARE = 0.7
"""Of its memory limit that a process may fill: Dask pauses it at 0.8."""


@dataclass(frozen=True)
class WorkItem:
    """A variant of a batch."""

    place: int
    body: Callable[[Seat], Any]
    start: str | None


@dataclass(frozen=True)
class WorkBatch:
    """Variants that are sent together."""

    items: list[WorkItem]
    topic: str
    """Where it is told how far they are."""
    beside: int
    """Worker processes that share the memory of this machine, as far as the caller knows."""
    alone: bool
    """Whether nothing else runs: all of the memory may be taken."""


@dataclass
class _Room:
    """What the batches of a worker process have in common."""

    worker: Worker
    folder: Path
    shelf: Shelf
    free: int | None
    """Bytes of memory when it came to be."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    news: dict[str, dict[int, float]] = field(default_factory=dict)
    """Not yet told, by topic."""
    told: float = 0.0

    def hear(self, key: str, topic: str, place: int, fraction: float) -> bool:
        """Notes how far a variant is and passes it on now and then; False where it has to stop."""
        now = time.monotonic()
        with self.lock:
            self.news.setdefault(topic, {})[place] = fraction
            due = now - self.told >= TELL_EVERY_S
            news = self.news
            if due:
                self.news, self.told = {}, now
        for about, fractions in news.items() if due else ():
            self.worker.log_event(about, list(fractions.items()))
        return not _is_cancelled(self.worker, key)


_rooms: dict[str, _Room] = {}
_entering = threading.Lock()


def keep(content: bytes) -> bytes:
    """A parcel: large contents that many variants need."""
    return content


def work(content: bytes, parcels: Mapping[str, bytes]) -> bytes:
    """Runs a packed :class:`WorkBatch` up to the first that fails, but those that need more memory;
    a packed list of :class:`Outcome`, one of each."""
    worker = get_worker()
    room, key = _room(worker), worker.get_current_task()
    batch: WorkBatch = unpack(content, parcels, room.folder)
    memory = None if batch.alone else _share(room, batch.beside)
    came: list[Outcome] = []
    for item in batch.items:
        outcome = _one(room, key, batch.topic, item, memory)
        came.append(outcome)
        if outcome.error is not None and (
            memory is None or not isinstance(outcome.error, MemoryShortError)
        ):
            break
    return pack(came)


def _one(room: _Room, key: str, topic: str, item: WorkItem, memory: int | None) -> Outcome:
    def report(news: Progress) -> bool:
        return room.hear(key, topic, item.place, news.fraction or 0.0)

    began = time.monotonic()
    try:
        if not report(Progress(0.0)):
            raise Interrupted(STOPPED)
        result = item.body(Seat(report, memory, room.shelf, item.start))
    except SsdlabError as error:
        return Outcome(item.place, error=error, seconds=time.monotonic() - began)
    except Exception as error:
        # It may be one that does not survive the way.
        told = RuntimeError("".join(traceback.format_exception(error)))
        return Outcome(item.place, error=told, seconds=time.monotonic() - began)
    return Outcome(item.place, result, seconds=time.monotonic() - began)


def _room(worker: Worker) -> _Room:
    with _entering:
        if worker.address not in _rooms:
            folder = Path(worker.local_directory) / "ssdlab"
            folder.mkdir(parents=True, exist_ok=True)
            limit = worker.memory_manager.memory_limit
            limit_process(int(limit * LIMIT_SHARE) if limit else None)
            shelf = Shelf(folder, most=PREPARED_MAX * worker.state.nthreads)
            _rooms[worker.address] = _Room(worker, folder, shelf, available_bytes())
        return _rooms[worker.address]


def _share(room: _Room, beside: int) -> int | None:
    """Of the memory for one of several at once."""
    return None if room.free is None else room.free // (beside * room.worker.state.nthreads)


def _is_cancelled(worker: Worker, key: str) -> bool:
    """Whether nobody waits for a task any more: it was cancelled, or who asked for it is gone."""
    task = worker.state.tasks.get(key)
    return task is None or task.state == "cancelled"
