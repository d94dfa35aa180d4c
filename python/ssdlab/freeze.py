"""Freezes a mounted file system for moments, and has it thawed whatever happens to this process.

A frozen file system stops everyone who writes to it, so leaving it frozen stops the machine. A
second process keeps watch: it freezes and thaws on demand, and thaws by itself when the first ends
in whatever way. Should the first hang while the file system is frozen (a device that does not
answer, a stop signal), it is killed before the thaw, so that what it was about to write cannot land
on top of what somebody writes afterwards.

The ioctls are FIFREEZE and FITHAW of ``linux/fs.h``, which fsfreeze(8) uses too.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import TracebackType

from ssdlab.errors import ExperimentError, InputError

FITHAW = 0xC0045878

_WATCH = r"""
import ctypes, fcntl, os, select, signal, sys
place, talk, worker = map(int, sys.argv[1:4])
limit = float(sys.argv[4])
FREEZE, THAW = 0xC0045877, 0xC0045878
for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
    signal.signal(sign, signal.SIG_IGN)
# Nothing of this process may have to be read back from a device that hangs.
ctypes.CDLL(None).mlockall(3)

def ask(request):
    try:
        fcntl.ioctl(place, request, 0)
    except OSError as error:
        return error.errno
    return 0

def say(number):
    try:
        os.write(talk, b"%03d" % number)
    except OSError:
        pass

frozen = killed = False
say(0)
while True:
    # A dead worker's end of the talk closes only once its last write has left the kernel.
    wait = limit if frozen and not killed else None
    if not select.select([talk], [], [], wait)[0]:
        if os.getppid() == worker:
            os.kill(worker, signal.SIGKILL)
        killed = True
        continue
    try:
        word = os.read(talk, 1)
    except OSError:
        word = b""
    if not word:
        break
    if word == b"F":
        number = ask(FREEZE)
        frozen = frozen or number == 0
    else:
        number = ask(THAW) if frozen else 0
        frozen = False
    say(number)
if frozen:
    ask(THAW)
if killed:
    os.write(2, b"ssdlab: the file system stayed frozen for more than %g s, so the program was "
             b"ended and the file system thawed; nothing was changed\n" % limit)
"""


class Freezer:
    """Freezes the file system mounted at ``point``, for at most ``limit_s`` seconds at a time."""

    def __init__(self, point: str, limit_s: float) -> None:
        self.point, self.limit_s = point, limit_s
        self.longest_s = 0.0
        """The longest that it was frozen so far, with what freezing and thawing took."""
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Freezer:
        with contextlib.ExitStack() as stack:
            self._place = os.open(self.point, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, self._place)
            self._talk, theirs = socket.socketpair()
            # A session of its own: Ctrl-C and Ctrl-Z in the terminal do not reach the watch.
            with theirs:
                arguments = [self._place, theirs.fileno(), os.getpid(), self.limit_s]
                self._watch = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _WATCH, *map(str, arguments)],
                    pass_fds=[self._place, theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )
            stack.callback(self._watch.wait)
            stack.callback(self._talk.close)  # runs first: the watch thaws and leaves
            self._answer()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Freezes for the length of a block, in which nothing may write to that file system, be it
        a message to a redirected terminal. Raises InputError where this file system cannot be
        frozen, ExperimentError where it is frozen already, or the watch has been killed."""
        # Most of what a freeze waits for is done before it holds anybody up.
        ctypes.CDLL(None).syncfs(self._place)
        with _no_terminal_stop():
            began = time.monotonic()
            try:
                self._talk.sendall(b"F")
                number = self._answer()
                if number:
                    raise self._cannot_freeze(number)
                yield
            finally:
                self._thaw()
                self.longest_s = max(self.longest_s, time.monotonic() - began)

    def _thaw(self) -> None:
        try:
            self._talk.sendall(b"T")
            self._answer()
        except (OSError, ExperimentError):
            # Nobody keeps watch any more.
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._place, FITHAW, 0)
            raise ExperimentError(
                f"{self.point}: the process that keeps watch over the frozen file system was "
                "killed; it was thawed, and nothing was changed"
            ) from None

    def _answer(self) -> int:
        said = b""
        while len(said) < 3:
            more = self._talk.recv(3 - len(said))
            if not more:
                raise ExperimentError(f"{self.point}: the watch over the freeze has ended")
            said += more
        return int(said)

    def _cannot_freeze(self, number: int) -> Exception:
        if number == errno.EBUSY:
            return ExperimentError(
                f"{self.point}: is frozen already by another program; wait, or fsfreeze -u it"
            )
        if number in (errno.EPERM, errno.EACCES):
            return InputError(f"{self.point}: no permission to freeze it; run as root")
        return InputError(
            f"{self.point}: this file system cannot be frozen ({os.strerror(number)}); "
            "unmount it first"
        )


@contextlib.contextmanager
def _no_terminal_stop() -> Iterator[None]:
    """Ctrl-Z must not stop the process that everybody else waits for."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)
