"""A block device or file that is held for a run: what was checked is what is written to."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ssdlab.errors import RefusedError
from ssdlab.safety.uses import Use
from ssdlab.system import System, key_of


@dataclass(frozen=True)
class Held:
    """An open device or file for as long as a run lasts."""

    shown: Path
    """What people call it."""
    descriptor: int
    capacity: int
    """Bytes."""
    name: str | None
    """The kernel's name of the block device; None of a file."""
    sentence: str = ""
    """What will be lost, for people; empty where nothing is."""
    uses: Callable[[], Sequence[Use]] = tuple
    """Asks who else uses it now."""
    fresh: bool = False
    """Of a file: whether some of it was never written."""
    sequence: str | None = None
    """The kernel's number of the disk when it was opened: another one, another medium."""

    @property
    def path(self) -> Path:
        """What a program that this one starts opens to get to just this medium, whatever has
        meanwhile become of the name in the folder."""
        return Path(f"/proc/{os.getpid()}/fd/{self.descriptor}")

    def again(self) -> Held:
        """The same device after it was formatted, which may have changed its size."""
        size = os.lseek(self.descriptor, 0, os.SEEK_END)
        sequence = None if self.name is None else sequence_of(self.name)
        return replace(self, capacity=size, sequence=sequence)

    def remove(self) -> None:
        """Removes the file that was made for a run, unless another stands there now."""
        with contextlib.suppress(OSError):
            info = self.shown.lstat()
            mine = key_of(info) == key_of(os.fstat(self.descriptor))
            if mine and stat.S_ISREG(info.st_mode):
                self.shown.unlink()

    def check(self) -> None:
        """Asked before each step: it is still there, still what was checked, and nobody else's;
        RefusedError where it is not."""
        try:
            same = key_of(self.shown.stat()) == key_of(os.fstat(self.descriptor))
        except OSError:
            same = False
        if not same:
            raise RefusedError(
                f"{self.shown}: was removed or replaced while the run went on; nothing is written "
                "to what stands there now"
            )
        if self.name is not None and self.sequence != sequence_of(self.name):
            raise RefusedError(f"{self.shown}: holds another medium than when the run began")
        if used := self.uses():
            raise RefusedError(f"{self.shown}: {used[0].sentence}")


def sequence_of(name: str) -> str | None:
    """The kernel's sequence number of a disk, which changes with the medium (Linux 5.15)."""
    return System().of(name, "diskseq")
