"""Who runs what, where several processes or machines fill one folder.

Each process has a file of its own, which it touches again and again. A run is claimed by a hard
link to it under the run's key: made by one process alone, as fresh as the file, and locked as long
as its process lives. What a killed process had claimed is taken over: at once on the same machine,
elsewhere when the file has not been touched for a while. The worst that a file system without links
or locks leads to is that a run is done twice, with the same numbers.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ssdlab.output import make_folder, writing
from ssdlab.system import System

TOUCH_S = 5.0
EXPIRED_S = 60.0
"""A claimant that has not touched its file for so long is gone."""


class Claims:
    """The claims of this process in a folder; closed, it leaves none. Threads may share it. Raises
    InputError where the folder cannot be written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = folder / f".claimant-{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._mine: set[str] = set()
        self._closed = threading.Event()
        self._links = True
        self._file = self._made()
        with contextlib.suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX)
        self._inode = os.fstat(self._file).st_ino
        threading.Thread(target=self._touch, daemon=True).start()

    def _made(self) -> int:
        """The file of this process, open."""
        for last in (False, False, True):
            make_folder(self._folder)
            with writing(self._folder):
                try:
                    file = os.open(self._own, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
                except FileNotFoundError:
                    if last:
                        raise
                    continue  # another process was the last one there, and removed the folder
                os.write(file, _machine().encode())
                return file
        raise AssertionError("the last try raises")

    def take(self, key: str) -> bool:
        """Claims a run; False where another process that is alive has."""
        with self._lock:
            if key in self._mine or not self._links:
                return True
            place = self._folder / key
            # Twice: a claim that has expired is removed before.
            for _ in range(2):
                try:
                    os.link(self._own, place)
                except FileExistsError:
                    if not self._removed(place):
                        return False
                except OSError:
                    self._links = False  # this file system has none
                    return True
                else:
                    self._mine.add(key)
                    return True
            return False

    def release(self, key: str) -> None:
        """Gives a claim up, as what was claimed is done or cannot be."""
        with self._lock:
            if key in self._mine:
                self._mine.remove(key)
                with contextlib.suppress(OSError):
                    (self._folder / key).unlink()

    def others(self) -> bool:
        """Whether another process that is alive works in the folder."""
        with self._lock:
            return any(
                path != self._own and not self._expired(path)
                for path in self._folder.glob(".claimant-*")
            )

    def close(self) -> None:
        """Gives all claims up."""
        for key in list(self._mine):
            self.release(key)
        self._closed.set()
        for other in self._folder.glob(".claimant-*"):
            if self._expired(other):
                other.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._own.unlink()
            self._folder.rmdir()
        os.close(self._file)

    def _removed(self, place: Path) -> bool:
        """Whether a claim was one of a process that is gone, and is gone too."""
        try:
            with self._turn():
                inode = place.stat().st_ino
                if not self._expired(place):
                    return False
                # Without locks another may take it over now: what was moved away is looked at.
                away = self._folder / f".gone-{secrets.token_hex(8)}"
                place.rename(away)
                if away.stat().st_ino != inode:
                    with contextlib.suppress(FileExistsError):
                        os.link(away, place)
                    away.unlink()
                    return False
                away.unlink()
        except FileNotFoundError:
            return True  # given up meanwhile
        return True

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """One of all processes removes claims, where folders can be locked."""
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):
                fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _expired(self, place: Path) -> bool:
        """Whether the process of a claim is gone."""
        try:
            with place.open("r") as file:
                status = os.fstat(file.fileno())
                if status.st_ino == self._inode:
                    return False
                if file.read() == _machine():
                    return _unlocked(file.fileno())
                # The clock of who keeps the files, which may be none of this machine.
                return os.fstat(self._file).st_mtime - status.st_mtime > EXPIRED_S
        except OSError:
            return False

    def _touch(self) -> None:
        while not self._closed.wait(TOUCH_S):
            with contextlib.suppress(OSError):
                os.utime(self._file)


def _machine() -> str:
    """The same for all processes of a machine until it is started again."""
    return System().boot or f"unknown {time.time_ns()}"


def _unlocked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    fcntl.flock(file, fcntl.LOCK_UN)
    return True
