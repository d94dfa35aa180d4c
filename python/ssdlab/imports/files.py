"""The files that an import may read: regular ones, at or below the places that are named."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

from ssdlab.errors import InputError
from ssdlab.opened import opening
from ssdlab.store import MANIFEST

BYTES_MAX = 512 << 20
"""A larger file is no document of fio."""
GZIP = b"\x1f\x8b"


def text_of(path: Path) -> str:
    """The text of a regular file, also one that gzip has compressed; bytes that are none are
    replaced; InputError where it is no such file, too large, or cannot be read."""
    with opening(path):
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise InputError(f"{path}: is no plain file, and nothing else is read")
        if about.st_size > BYTES_MAX:
            raise InputError(f"{path}: is larger than {BYTES_MAX >> 20} MiB, so no result of fio")
        # Between the look and the opening it may have become something else.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError(f"{path}: is no plain file, and nothing else is read")
            data = file.read()
    if data.startswith(GZIP):
        data = _unpacked(path, data)
    if b"\0" in data[:4096]:
        return ""
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def _unpacked(path: Path, data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        found = unpacker.decompress(data, BYTES_MAX)
    except zlib.error as error:
        raise InputError(f"{path}: is compressed by gzip and damaged ({error})") from None
    if unpacker.unconsumed_tail:
        raise InputError(f"{path}: is larger than {BYTES_MAX >> 20} MiB, so no result of fio")
    if not unpacker.eof:
        raise InputError(f"{path}: is compressed by gzip and breaks off")
    return found


def below(folder: Path) -> Iterator[Path]:
    """The regular files below a folder in order, without following links; of a run of ssdlab, its
    manifest alone; InputError where it cannot be read."""
    with opening(folder):
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    names = {entry.name for entry in entries}
    for entry in entries:
        if MANIFEST in names and entry.name != MANIFEST:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from below(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
