"""Reading past the page cache, and the facts of a file or device that care works on."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from ssdlab.errors import InputError
from ssdlab.opened import cannot_open, opening
from ssdlab.system import System

PIECE_BYTES = 1 << 20
"""What is read at a time, one piece after another: as in the experiment `fragmentation`."""

_BLKSSZGET = 0x1268
_BLKGETSIZE64 = 0x80081272


class Reader(Protocol):
    """Something that can be read piece by piece."""

    @property
    def size_bytes(self) -> int:
        """How much there is."""
        ...

    @property
    def block_bytes(self) -> int:
        """The least that can be read alone."""
        ...

    @property
    def direct(self) -> bool:
        """Whether reads pass by the page cache."""
        ...

    def read(self, offset: int, length: int) -> memoryview:
        """The bytes there, valid until the next read; OSError where they cannot be read."""
        ...


class PathReader:
    """Reads a file or block device with O_DIRECT, or without where it must."""

    def __init__(self, path: Path, buffer_bytes: int = PIECE_BYTES) -> None:
        """Raises InputError where the path cannot be read."""
        self.path = path
        self.direct = True
        self._fd = _open_for_reading(path, direct=True)
        if self._fd < 0:
            self._without_direct()
        self.size_bytes = size_of(self._fd)
        self.block_bytes = block_of(self._fd, path)
        # A mapping begins on a page, which O_DIRECT wants.
        self._buffer = mmap.mmap(-1, max(buffer_bytes, self.block_bytes))
        self._view = memoryview(self._buffer)
        if self.direct and self.size_bytes:
            try:
                os.preadv(self._fd, [self._view[: self.block_bytes]], 0)
            except OSError as error:
                if error.errno == errno.EINVAL:
                    self.close()
                    self._without_direct()

    def read(self, offset: int, length: int) -> memoryview:
        """The bytes there; fewer only at the end. OSError where they cannot be read."""
        length = min(length, self.size_bytes - offset)
        if not self.direct:
            os.posix_fadvise(self._fd, offset, length, os.POSIX_FADV_DONTNEED)
        # The end of a file is seldom on a block: asked for whole, it is answered as far as it goes.
        asked = -(-length // self.block_bytes) * self.block_bytes
        transfer(os.preadv, self._fd, self._view[:asked], offset, length)
        return self._view[:length]

    def close(self) -> None:
        """Closes the file; reads are over."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _without_direct(self) -> None:
        self.direct = False
        self._fd = _open_for_reading(self.path, direct=False)
        os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_RANDOM)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[PathReader]:
    """A reader that is closed at the end."""
    reader = PathReader(path)
    try:
        yield reader
    finally:
        reader.close()


def transfer(
    call: Callable[[int, Sequence[memoryview], int], int],
    descriptor: int,
    view: memoryview,
    offset: int,
    least: int | None = None,
) -> None:
    """Reads or writes (``os.preadv``, ``os.pwritev``) until all of ``view`` has passed, or at least
    so much of it. Raises OSError."""
    done = 0
    while done < (len(view) if least is None else least):
        count = call(descriptor, [view[done:]], offset + done)
        if count == 0:
            raise OSError(errno.EIO, "ends before its size")
        done += count


def all_zero(view: memoryview) -> bool:
    """Whether there is zeros only: what a drive answers for blocks that hold no data."""
    whole = len(view) // 8 * 8
    words = np.frombuffer(view[:whole], dtype=np.uint64)
    # Data shows at the first word as a rule.
    if whole and words[0]:
        return False
    return not words.any() and not any(view[whole:])


def size_of(descriptor: int) -> int:
    """Bytes of an open file or block device."""
    info = os.fstat(descriptor)
    if stat.S_ISBLK(info.st_mode):
        (size,) = struct.unpack("Q", fcntl.ioctl(descriptor, _BLKGETSIZE64, bytes(8)))
        return int(size)
    return info.st_size


def block_of(descriptor: int, path: Path) -> int:
    """Bytes of a logical block of a device, or of the one below a file."""
    if stat.S_ISBLK(os.fstat(descriptor).st_mode):
        (size,) = struct.unpack("i", fcntl.ioctl(descriptor, _BLKSSZGET, bytes(4)))
        return int(size)
    system = System()
    return int(system.of(system.disk_holding(path.resolve()), "queue/logical_block_size") or 4096)


@dataclass(frozen=True)
class Place:
    """What a path is and what it lies on."""

    path: Path
    is_device: bool
    size_bytes: int
    kind: str
    """The file system's kind; for a device ``block device``."""
    disk: str | None
    """The kernel's name of the drive below, if it is one."""
    disk_bytes: int | None


def place_of(path: Path) -> Place:
    """Looks at a file or device; InputError where it is neither or cannot be looked at."""
    with opening(path):
        info = path.stat()
    system, whole = System(), path.resolve()
    if stat.S_ISBLK(info.st_mode):
        name = system.device_called(str(whole))
        size = system.bytes_of(name)
        return Place(path, True, size, "block device", name and system.disk_of(name), size)
    if stat.S_ISDIR(info.st_mode):
        raise InputError(f"{path}: is a folder; name a file in it")
    if not stat.S_ISREG(info.st_mode):
        raise InputError(f"{path}: is neither a plain file nor a block device")
    disk, mount = system.disk_holding(whole), system.mount_of(str(whole))
    kind = mount.kind if mount else "an unknown file system"
    return Place(path, False, info.st_size, kind, disk, system.bytes_of(disk) or None)


def _open_for_reading(path: Path, *, direct: bool) -> int:
    """A descriptor; -1 where only O_DIRECT is refused."""
    try:
        return os.open(path, os.O_RDONLY | (os.O_DIRECT if direct else 0))
    except OSError as error:
        if direct and error.errno == errno.EINVAL:
            return -1
        raise cannot_open(path, error) from None
