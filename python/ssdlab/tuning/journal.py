"""What runs have set, on the disk before they set it: what a killed run leaves can be restored.

A run has a journal and a lock that ends with its process. One lock over all makes what a run finds,
notes and restores one step, so that two runs at once do not restore over each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ssdlab.fio.surroundings import serial_of
from ssdlab.leftovers import folder
from ssdlab.opened import is_locked
from ssdlab.output import make_folder, write_error, write_to, writing
from ssdlab.store import sync_folder
from ssdlab.system import System
from ssdlab.tuning.model import Scope

SCHEMA = 1


@dataclass(frozen=True)
class Identity:
    """Which drive it is, also when another one has its name."""

    name: str
    serial: str | None
    """Its serial number, or the file behind a loop device."""
    instance: str | None
    """The kernel's number of this appearance of a drive (diskseq)."""

    def is_still(self, other: Identity, *, same_boot: bool) -> bool:
        """Whether ``other``, seen now, is this drive."""
        if self.serial != other.serial:
            return False
        if not same_boot:
            return self.serial is not None
        return (self.name, self.instance) == (other.name, other.instance)

    def may_be(self, other: Identity) -> bool:
        """Whether ``other`` is this drive, or now has its name."""
        return self.name == other.name or self.is_still(other, same_boot=False)


def identify(system: System, name: str) -> Identity:
    """The drive with a kernel's name."""
    serial = system.backing_file(name) or serial_of(name, system)
    return Identity(name, serial, system.of(name, "diskseq"))


@dataclass(frozen=True)
class SetValue:
    """A value that a run has set or is about to set."""

    setting: str
    means: str
    place: str
    before: str
    set: str | None
    """None where it is only restored after something else that changes it."""
    scope: Scope
    after: str | None = None
    """What the place said after it was set."""

    @property
    def key(self) -> tuple[str, str, bool]:
        """What is set, and whether it is."""
        return self.means, self.place, self.set is None


@dataclass
class Journal:
    """What one run has set."""

    path: Path
    pid: int
    boot: str | None
    target: str
    """What was asked for, for people."""
    drive: Identity | None
    began_ns: int
    """On the clock of this start of the system; tells which of two runs began first."""
    entries: list[SetValue] = field(default_factory=list)
    alive: bool = False
    """Whether its run still goes on."""

    def save(self) -> None:
        """Has it on the disk when this returns."""
        kept = {key: one for key, one in asdict(self).items() if key not in ("path", "alive")}
        write_to(self.path, json.dumps({"schema": SCHEMA, **kept}, indent=1) + "\n")
        with writing(self.path):
            sync_folder(self.path.parent)

    def settle(self) -> None:
        """Keeps what is left to restore; removes the journal where nothing is."""
        if self.entries:
            self.save()
            return
        self.path.unlink(missing_ok=True)
        self.path.with_suffix(".lock").unlink(missing_ok=True)


@contextlib.contextmanager
def exclusively() -> Iterator[None]:
    """Nobody else looks at journals or restores anything meanwhile."""
    place = make_folder(folder())
    with writing(place):
        file = (place / "all.lock").open("w")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def started(system: System, target: str, drive: Identity | None) -> Iterator[Journal]:
    """A new journal, alive as long as this lasts, within :func:`exclusively`; not on the disk
    before it is saved, and removed by whoever ends it."""
    stem = f"{os.getpid()}-{secrets.token_hex(4)}"
    path = folder() / f"{stem}.json"
    try:
        lock = path.with_suffix(".lock").open("w")
    except OSError as error:
        raise write_error(folder(), error) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            began = time.monotonic_ns()
            yield Journal(path, os.getpid(), system.boot, target, drive, began, alive=True)
        finally:
            if not path.exists():
                path.with_suffix(".lock").unlink(missing_ok=True)


def journals() -> list[Journal]:
    """All of them, the oldest first; within :func:`exclusively`."""
    found = [journal for path in folder().glob("*.json") if (journal := load(path)) is not None]
    found.sort(key=lambda journal: journal.began_ns)
    return [replace(one, alive=is_locked(one.path.with_suffix(".lock"))) for one in found]


def load(path: Path) -> Journal | None:
    """One from its file; None where it cannot be read."""
    try:
        document: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if document.pop("schema") != SCHEMA:
            return None
        drive = document.pop("drive")
        document |= {key: int(document[key]) for key in ("pid", "began_ns")}
        entries = [SetValue(**one) for one in document.pop("entries")]
        return Journal(
            path, **document, drive=None if drive is None else Identity(**drive), entries=entries
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
