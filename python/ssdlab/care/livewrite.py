"""Writing to the blocks of a file system that is mounted, without touching what it has in memory.

A frozen file system has written everything it must, yet what it holds in memory may be ahead of
the device all the same: ext4 keeps the bitmap of a group that was never used only in memory, as
long as the group is marked so. Its blocks are cached as pages of the block device, and a direct
write that meets such a page in use goes by way of it (the kernel falls back to a buffered write):
what was read from the device would replace what is in memory, and the bitmap would be lost.

A write that may not wait (RWF_NOWAIT, pwritev2(2)) is refused with EAGAIN where any page of its
range is cached, before anything happens. Such pages are left alone: they are the file system's own
blocks, a small part, and no data of files, which are cached elsewhere.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

from ssdlab.errors import InputError
from ssdlab.system import CLASS, System

SLICE_S = 0.25
"""How long a mounted file system is frozen at a time; it rests as long between two slices."""

STEP_MAX_BYTES = 128 << 10
"""A write that may not wait must not need splitting."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TRIES = 4
_REST_S = 0.0005


def step_bytes(path: Path) -> int:
    """How much a device takes in one write that may not wait."""
    system = System()
    disk = system.disk_below(path)
    most = system.number(f"{CLASS}/{disk}/queue/max_sectors_kb")
    limit = STEP_MAX_BYTES if most is None else most * 1024
    return max(PAGE_BYTES, min(STEP_MAX_BYTES, limit) // PAGE_BYTES * PAGE_BYTES)


def write_past_cache(descriptor: int, view: memoryview, offset: int, step: int) -> int:
    """Writes ``view`` at ``offset``, which is on a page, where no page is cached; how many bytes
    were left alone. Raises OSError where writing fails, InputError where the device cannot be asked
    not to wait."""
    left = 0
    for start in range(0, len(view), step):
        left += _step(descriptor, view[start : start + step], offset + start)
    return left


def _step(descriptor: int, view: memoryview, offset: int) -> int:
    if _taken(descriptor, view, offset):
        return 0
    if len(view) <= PAGE_BYTES:
        return len(view)
    half = len(view) // 2 // PAGE_BYTES * PAGE_BYTES or PAGE_BYTES
    return _step(descriptor, view[:half], offset) + _step(descriptor, view[half:], offset + half)


def _taken(descriptor: int, view: memoryview, offset: int) -> bool:
    """Whether all of it was written; a full queue is answered like a cached page, but passes."""
    done = 0
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_REST_S)
        try:
            while done < len(view):
                done += os.pwritev(descriptor, [view[done:]], offset + done, os.RWF_NOWAIT)
            return True
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                raise InputError(
                    "this device or kernel knows no writes that do not wait (RWF_NOWAIT), without "
                    "which a mounted file system cannot be rewritten safely; unmount it first"
                ) from None
            if error.errno != errno.EAGAIN:
                raise
    return False
