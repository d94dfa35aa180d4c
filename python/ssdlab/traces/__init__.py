"""Block traces: what real systems asked of their drives.

Reads every format of ``ssdlab list traces``, compressed or not, in batches of columns::

    import ssdlab.traces

    with_writes = 0
    for batch in ssdlab.traces.open("cloudPhysicsIO.vscsi.gz"):
        with_writes += int((batch.kind == ssdlab.traces.WRITE).sum())
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ssdlab import _core
from ssdlab.tracefile import Reading, existing

READ, WRITE, TRIM, FLUSH = range(4)
"""Values of the column ``kind``."""
BATCH = 1 << 16
"""Requests of a batch, unless asked otherwise."""

__all__ = ["BATCH", "FLUSH", "READ", "TRIM", "WRITE", "Batch", "Reading", "open"]


@dataclass(frozen=True)
class Batch:
    """Some requests, one after another, as columns of one length."""

    time_ns: npt.NDArray[np.int64]
    """When each was made, ns since the first request of the trace; never goes back."""
    offset: npt.NDArray[np.uint64]
    """First byte on its device."""
    length: npt.NDArray[np.uint32]
    """Bytes; 0 for flushes only."""
    kind: npt.NDArray[np.uint8]
    """0 read, 1 write, 2 trim, 3 flush."""
    device: npt.NDArray[np.uint32]
    """Number of the device, volume or stream."""
    response_ns: npt.NDArray[np.int64]
    """How long it took when it was recorded; -1 where the format does not say."""
    key: npt.NDArray[np.uint64] | None = None
    """The object that is asked for, ``length`` bytes large; None where the format names none."""
    ttl_ns: npt.NDArray[np.uint64] | None = None
    """How long the object is valid once it is stored; 0: for ever."""

    def __len__(self) -> int:
        return len(self.time_ns)


def open(
    path: str | Path, reading: Reading | None = None, *, batch: int = BATCH
) -> Iterator[Batch]:
    """The requests of a trace in batches of at most ``batch``; memory does not grow with the trace.

    Raises:
        InputError: no such file, no known format, a damaged line (with file and line).
    """
    options = (reading or Reading()).options()
    reader = _core.TraceReader(existing(path), options)
    while (columns := reader.batch(max(1, batch))) is not None:
        yield Batch(**columns)
