"""Standard streams that never fail because nobody reads them."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def keep_open() -> None:
    """Has descriptors 0 to 2 open, and what is said to a reader that has left go nowhere.

    A closed one (``>&-``) would be given to the next file that is opened, which would then take
    what is printed. A reader that leaves ends neither a run nor what else was asked for.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout, sys.stderr = _text(1, sys.stdout), _text(2, sys.stderr)


def _text(number: int, before: TextIO | None) -> io.TextIOWrapper:
    raw = _Patient(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=None if before is None else before.encoding,
        # Names of files need not be text.
        errors="backslashreplace",
        line_buffering=number == 2 or raw.isatty(),
    )


class _Patient(io.FileIO):
    """A stream that drops what is said once its reader has left."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return super().write(data)
