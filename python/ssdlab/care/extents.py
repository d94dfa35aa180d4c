"""How a file lies on its file system: where it has data, what it shares, who may not open it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import struct
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ssdlab.errors import RefusedError
from ssdlab.fio.observe import data_stretches
from ssdlab.opened import descriptor_of
from ssdlab.safety.uses import openers_of

_FIEMAP = 0xC020660B
_SYNC = 1
_LAST, _ENCODED, _SHARED = 0x1, 0x8, 0x2000
_BATCH = 512
_HEAD, _EXTENT = struct.Struct("=QQIIII"), struct.Struct("=QQQQQIIII")


@dataclass(frozen=True)
class FileLayout:
    """A file's extents, as FIEMAP tells them (Documentation/filesystems/fiemap.rst)."""

    extents: int
    shared_bytes: int
    """What other files or snapshots hold too."""
    compressed_bytes: int


def stretches_of(descriptor: int, size: int) -> list[tuple[int, int]]:
    """Start and end of each stretch of an open file that is no hole; all of it where the file
    system does not tell."""
    try:
        return list(data_stretches(descriptor, size))
    except OSError:
        return [(0, size)]


def layout(descriptor: int) -> FileLayout | None:
    """How an open file lies; None where its file system does not tell."""
    extents = shared = compressed = at = 0
    while True:
        head = _HEAD.pack(at, 2**64 - 1 - at, _SYNC, 0, _BATCH, 0)
        buffer = bytearray(head + bytes(_BATCH * _EXTENT.size))
        try:
            fcntl.ioctl(descriptor, _FIEMAP, buffer)
        except OSError:
            return None
        mapped = _HEAD.unpack_from(buffer)[3]
        for i in range(mapped):
            start, _, length, _, _, flags, *_ = _EXTENT.unpack_from(
                buffer, _HEAD.size + i * _EXTENT.size
            )
            extents += 1
            shared += length if flags & _SHARED else 0
            compressed += length if flags & _ENCODED else 0
            at = start + length
            if flags & _LAST:
                return FileLayout(extents, shared, compressed)
        if not mapped:
            return FileLayout(extents, shared, compressed)


class Hold:
    """Nobody else has the file open as long as this answers that it is held."""

    def __init__(self, path: Path, *, leased: bool) -> None:
        self.path, self.leased = path, leased
        self._asked = False

    def held(self) -> bool:
        """Whether going on is safe; False once another program wants the file."""
        if self.leased:
            return not self._asked
        return not any(opener.writes for opener in openers_of(self.path))

    def ask(self, _signal: int, _frame: FrameType | None) -> None:
        """The kernel's signal: somebody waits to open the file."""
        self._asked = True


@contextlib.contextmanager
def alone_with(descriptor: int, path: Path) -> Iterator[Hold]:
    """Holds everybody else off an open file with a write lease (fcntl(2), F_SETLEASE): whoever
    opens it waits until this ends, which should be soon after :meth:`Hold.held` turns False. On a
    file system without leases /proc is asked instead. Raises RefusedError where others have the
    file open, or nobody could be held off."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread is told by a signal.
        yield _unleased(path)
        return
    hold = Hold(path, leased=True)
    before = signal.signal(signal.SIGIO, hold.ask)
    try:
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EBUSY):
                raise _opened(path) from None
            if error.errno == errno.EACCES:
                raise RefusedError(
                    f"{path}: only its owner and root can hold others off while it is rewritten; "
                    "run as one of them"
                ) from None
            yield _unleased(path)
            return
        try:
            yield hold
        finally:
            with contextlib.suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    finally:
        signal.signal(signal.SIGIO, before)


def _unleased(path: Path) -> Hold:
    if any(opener.writes for opener in openers_of(path)):
        raise _opened(path)
    return Hold(path, leased=False)


def _opened(path: Path) -> RefusedError:
    names = ", ".join(sorted({str(opener) for opener in openers_of(path)}))
    return RefusedError(
        f"{path}: is open in {names or 'the kernel (a loop device or swap) or a hidden program'}; "
        "what is written there meanwhile would be lost; close it first"
    )


def open_for_rewrite(path: Path) -> AbstractContextManager[int]:
    """A descriptor for direct reads and writes of a plain file; InputError or RefusedError where
    that cannot be, in one sentence."""
    whole = path.resolve() if path.is_symlink() else path
    return descriptor_of(whole, os.O_RDWR | os.O_DIRECT | os.O_NOFOLLOW, shown=path)
