"""Misses of caches of objects, by replacement policy and bytes: a trace played without time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

import ssdlab.traces
from ssdlab import _core, bench
from ssdlab.errors import Interrupted
from ssdlab.plan.workload import moves
from ssdlab.progress import ProgressCallback, heard, within
from ssdlab.tracefile import Reading

REQUEST_BYTES = 100
"""Memory that a request takes, columns and sorting."""
READING = 0.1
"""Share of the time that reading the trace takes, roughly."""


@dataclass(frozen=True)
class Objects:
    """Reads and writes of objects, in order."""

    key: npt.NDArray[np.uint64]
    bytes: npt.NDArray[np.uint32]
    writes: npt.NDArray[np.bool_]
    time_ns: npt.NDArray[np.int64]
    ttl_ns: npt.NDArray[np.uint64]
    count: int
    """Different objects."""
    total: int
    """Bytes of all of them, each with the size that it had first."""
    least: int
    """Bytes of the smallest."""


@dataclass(frozen=True)
class ObjectPoint:
    """What a cache of one policy and size did."""

    policy: str
    size: int
    """Bytes."""
    misses: int
    write_misses: int
    miss_bytes: int
    expired: int
    passed: int


@dataclass(frozen=True)
class ObjectsFound:
    """All caches, and what holds for each of them."""

    trace: str
    requests: int
    writes: int
    bytes: int
    """Asked for in all."""
    count: int
    """Different objects: each misses when it is asked for first, whatever the cache."""
    working_set: int
    """Bytes of all of them."""
    points: Sequence[ObjectPoint]
    left_out: Sequence[str] = ()
    """What of the trace is not in them, in sentences."""
    block: ClassVar[int] = 1
    """Bytes that a size counts."""
    lookups: ClassVar[str] = "requests"

    def ratio(self, point: ObjectPoint) -> float:
        """Misses per request."""
        return point.misses / max(1, self.requests)

    def byte_ratio(self, point: ObjectPoint) -> float:
        """Bytes that missed per byte asked for."""
        return point.miss_bytes / max(1, self.bytes)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each cache, for scripts."""
        return [
            {
                "policy": point.policy,
                "cache_bytes": point.size,
                "requests": self.requests,
                "misses": point.misses,
                "miss_ratio": self.ratio(point),
                "bytes": self.bytes,
                "miss_bytes": point.miss_bytes,
                "byte_miss_ratio": self.byte_ratio(point),
                "read_misses": point.misses - point.write_misses,
                "write_misses": point.write_misses,
                "expired": point.expired,
                "passed": point.passed,
                "objects": self.count,
                "working_set_bytes": self.working_set,
                "first_touches": self.count,
            }
            for point in self.points
        ]


def named(path: Path, reading: Reading) -> bool:
    """Whether the requests of a trace name objects; raises as :func:`ssdlab.traces.open`."""
    first = next(ssdlab.traces.open(path, reading, batch=1), None)
    return first is not None and first.key is not None


def read_objects(path: Path, reading: Reading, progress: ProgressCallback) -> Objects:
    """All reads and writes of a trace that names objects; InputError as
    :func:`ssdlab.plan.workload.moves`, Interrupted on Ctrl-C, and where ``progress`` answers
    False."""
    too_many = "requests do not fit into memory; take a part of it (--window)"
    parts = []
    try:
        for batch, moving in moves(path, reading, REQUEST_BYTES, too_many, progress):
            assert batch.key is not None and batch.ttl_ns is not None
            writes = batch.kind == ssdlab.traces.WRITE
            columns = (batch.key, batch.length, writes, batch.time_ns, batch.ttl_ns)
            parts.append([column[moving] for column in columns])
    except KeyboardInterrupt:
        raise Interrupted(bench.variant.STOPPED) from None
    key, size, writes, time_ns, ttl_ns = (np.concatenate(one) for one in zip(*parts, strict=True))
    first = np.unique(key, return_index=True)[1]
    total = int(size[first].sum(dtype=np.uint64))
    return Objects(key, size, writes, time_ns, ttl_ns, len(first), total, int(size.min()))


def play(
    trace: str,
    asked: Objects,
    policies: Sequence[str],
    sizes: Sequence[int],
    seed: int,
    progress: ProgressCallback,
) -> ObjectsFound:
    """Plays requests through every cache; ``sizes`` are bytes. Raises as the core does, also for a
    policy that only orders blocks of one size; Interrupted where ``progress`` answers False."""
    jobs = [(policy, size) for policy in policies for size in sizes]
    weight = float(len(asked.key))
    variants = [bench.Variant(partial(_played, asked, *job, seed), weight) for job in jobs]
    counts = bench.run(variants, within(progress, READING, 1.0))
    names = ("misses", "write_misses", "miss_bytes", "expired", "passed")
    return ObjectsFound(
        trace=trace,
        requests=len(asked.key),
        writes=int(asked.writes.sum()),
        bytes=int(asked.bytes.sum(dtype=np.uint64)),
        count=asked.count,
        working_set=asked.total,
        points=[
            ObjectPoint(*job, *(count[name] for name in names))
            for job, count in zip(jobs, counts, strict=True)
        ],
    )


def _played(
    asked: Objects, policy: str, capacity: int, seed: int, seat: bench.Seat
) -> dict[str, int]:
    return heard(
        seat.report,
        lambda report: _core.object_misses(
            policy, capacity, asked.key, asked.bytes, asked.writes, asked.time_ns, asked.ttl_ns,
            count=asked.count, total=asked.total, least=asked.least, seed=seed, progress=report,
        ),
    )  # fmt: skip
