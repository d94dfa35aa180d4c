"""Opening files and devices: what the system refuses is one sentence, wherever it is met."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ssdlab.errors import InputError, RefusedError, SsdlabError


def as_text(name: object) -> str:
    """A name as texts have it: names of files need not be UTF-8, what is not is escaped."""
    return str(name).encode("utf-8", "backslashreplace").decode("utf-8")


def cannot_open(path: object, error: OSError) -> SsdlabError:
    """The sentence for a file or device that could not be opened, or looked at."""
    if error.errno == errno.ETXTBSY:
        return RefusedError(f"{path}: is a running program or swap in use")
    if error.errno in (errno.EACCES, errno.EPERM):
        return InputError(
            f"{path}: no permission to open it; run as root or join the group that owns it"
        )
    if error.errno == errno.EINVAL:
        return InputError(f"{path}: its file system cannot read and write past the page cache")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return InputError(f"{path}: there is no such file or device")
    return InputError(f"{path}: cannot be opened ({error.strerror})")


@contextlib.contextmanager
def opening(path: object) -> Iterator[None]:
    """Turns the ways in which a system refuses to open ``path`` into one sentence about it."""
    try:
        yield
    except OSError as error:
        raise cannot_open(path, error) from None


def is_locked(file: Path) -> bool:
    """Whether a process that is alive holds a lock on a file; False where it cannot be asked."""
    try:
        with file.open() as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


@contextlib.contextmanager
def descriptor_of(path: Path, flags: int, *, shown: Path | None = None) -> Iterator[int]:
    """A file or device opened and closed again; ``shown`` is what people call it; InputError where
    it cannot be opened, RefusedError for a program that runs."""
    with opening(shown or path):
        descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
