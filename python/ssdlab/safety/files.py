"""Plain files as targets: made for a run or named for it, locked, and nobody else's."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from ssdlab.errors import ExperimentError, InputError, RefusedError
from ssdlab.opened import descriptor_of, opening
from ssdlab.safety import uses
from ssdlab.safety.held import Held
from ssdlab.system import System
from ssdlab.units import sizes_apart

_FLOCK = struct.Struct("hhqqixxxx")
"""``struct flock`` on 64-bit Linux: type, whence, start, length, process."""


@contextlib.contextmanager
def make_file(
    path: Path, size: int, *, shown: Path | None = None, reserve: bool = True, keep: bool = False
) -> Iterator[Held]:
    """A new file of ``size`` bytes at an absolute path, removed at the end unless ``keep``.
    ``reserve`` takes its space at once, as fio does by default; else it is a hole. fio never makes
    it longer, for it would remove it first and make another. Raises InputError where it exists,
    cannot be made there, or there is no room for it."""
    name = shown or path
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise exists(name) from None
    except FileNotFoundError:
        raise InputError(f"{name}: there is no folder {path.parent}") from None
    except OSError as error:
        raise InputError(
            f"{name}: cannot make this file ({error.strerror}); choose another folder"
        ) from None
    held = _held(path, name, descriptor, size, fresh=True)
    whole = False
    try:
        _lock(descriptor, name)
        check_room(path, size, name)
        _grow(descriptor, size, name, reserve)
        whole = True
        yield held
    finally:
        if not (keep and whole):
            held.remove()
        os.close(descriptor)


@contextlib.contextmanager
def hold_file(path: Path, *, shown: Path | None = None, size: int = 0) -> Iterator[Held]:
    """A file that is there, to be overwritten; made as long as ``size`` where it is shorter. Raises
    InputError where it is no plain file, or may not be written; RefusedError where somebody uses
    it, or its content has other names too."""
    name = shown or path
    info = _plain(path, name)
    if info.st_nlink > 1:
        raise RefusedError(
            f"{name}: has {info.st_nlink} names (hard links), and all of them would lose their "
            "data; choose another file"
        )
    if used := why_used(path):
        raise RefusedError(f"{name}: {used}")
    with descriptor_of(path, os.O_RDWR | os.O_NOFOLLOW, shown=name) as descriptor:
        _lock(descriptor, name)
        before = os.fstat(descriptor).st_size
        if before < size:
            check_room(path, size - before, name)
            _grow(descriptor, size, name, reserve=True)
        yield _held(path, name, descriptor, max(before, size), fresh=before < size)


@contextlib.contextmanager
def look_at_file(path: Path, *, shown: Path | None = None) -> Iterator[Held]:
    """A file that is there, to be read; for that nobody need be asked."""
    name = shown or path
    _plain(path, name)
    with descriptor_of(path, os.O_RDONLY | os.O_NOFOLLOW, shown=name) as descriptor:
        yield Held(name, descriptor, os.fstat(descriptor).st_size, None)


def why_used(path: Path) -> str | None:
    """Who uses a plain file, as a piece of a sentence; None where nobody is found to."""
    if found := uses.of_file(System(), str(path.resolve())):
        return found[0].sentence
    try:
        if uses.open_elsewhere(path):
            if _open_here(path):
                return "is open for writing by another run of this program; wait for its end"
            return "is open for writing in the kernel or by a hidden program; close it first"
    except OSError:
        pass  # opening it says why
    return None


def _open_here(path: Path) -> bool:
    """Whether this process has it open, as another thread may that is at a run."""
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if one.samefile(path):
                return True
    return False


def why_file_refused(path: Path, *, allowed: bool) -> str | None:
    """Why a file could not be a target that is written; None where it could."""
    if not path.exists():
        return None if path.parent.is_dir() else f"there is no folder {path.parent}"
    if not allowed:
        return exists(path).message
    try:
        if _plain(path, path).st_nlink > 1:
            return f"{path}: has other names (hard links)"
    except InputError as error:
        return error.message
    used = why_used(path)
    return None if used is None else f"{path}: {used}"


def exists(name: Path) -> InputError:
    """The error for a file that would be overwritten though nobody allowed that."""
    return InputError(
        f"{name}: exists and would be overwritten; "
        "choose a new name, or allow it with --use-existing-file"
    )


def check_room(path: Path, size: int, name: Path) -> None:
    """Raises InputError where a file of ``size`` bytes does not fit beside ``path``."""
    room = shutil.disk_usage(path.parent)
    free = room.free
    # A file system in memory may have no size at all.
    if room.total and size > free:
        needs, there = sizes_apart(size, free)
        raise InputError(f"{name}: needs {needs}, but only {there} are free there")


def _held(path: Path, name: Path, descriptor: int, size: int, *, fresh: bool) -> Held:
    def used() -> list[uses.Use]:
        return uses.of_file(System(), str(path))

    return Held(name, descriptor, size, None, uses=used, fresh=fresh)


def _plain(path: Path, name: Path) -> os.stat_result:
    with opening(name):
        info = path.lstat()
    if not stat.S_ISREG(info.st_mode):
        raise InputError(f"{name}: is not a plain file, so it cannot be a target")
    return info


def _lock(descriptor: int, name: Path) -> None:
    """Holds off every other test of the file: locks of open file descriptions (fcntl(2))."""
    whole = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise RefusedError(
                f"{name}: is locked by another program, such as another run of ssdlab; "
                "wait for its end"
            ) from None
        # Some network file systems know no locks; what else is asked must do.


def _grow(descriptor: int, size: int, name: Path, reserve: bool) -> None:
    try:
        if reserve and size:
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.ftruncate(descriptor, size)
    except OSError as error:
        raise ExperimentError(f"{name}: cannot be made so large ({error.strerror})") from None
