"""The one way in which ssdlab writes a document to a place that somebody named.

What a place is, is decided once, on a descriptor: a file is replaced whole, so that a reader never
sees half of it; a pipe, a character device or a socket is opened once and written through; a block
device is refused. Descriptors of the program itself (``-``, ``/dev/stdout``, ``/dev/fd/N``) are
written to whatever they are, files included.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import select
import socket
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ssdlab.errors import ExperimentError, InputError, RefusedError, SsdlabError

STDOUT = "-"
"""The place that is the program's standard output."""
_PROBE = bytes(4096)
"""What is written to a file that is taken away at once: on a full disk empty ones can be made."""
_OURS = ".ssdlab-"
"""How files begin that are not what they will be."""
_LINKS_MAX = 40
"""Symbolic links that the kernel follows in one path."""


@contextlib.contextmanager
def writing(place: object) -> Iterator[None]:
    """Turns the ways in which a system refuses a write into one sentence about ``place``."""
    try:
        yield
    except OSError as error:
        raise write_error(place, error) from error


def write_error(place: object, error: OSError) -> SsdlabError:
    """The sentence for a write to or below ``place`` that failed."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ExperimentError(
            f"{place}: the disk is full; free some space or choose another place"
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return InputError(f"{place}: cannot write there ({error.strerror}); choose another folder")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return InputError(f"{place}: is not a folder; choose another one")
    if error.errno == errno.ENOENT:
        return InputError(f"{place}: the folder does not exist")
    if error.errno in _NO_PLACE:
        return InputError(f"{place}: cannot write there ({error.strerror}); choose another place")
    return ExperimentError(f"{place}: cannot write ({error.strerror or error})")


_NO_PLACE = {
    errno.EBADF, errno.EBUSY, errno.ECONNREFUSED, errno.EINVAL, errno.ELOOP, errno.ENAMETOOLONG,
    errno.ENODEV, errno.ENXIO, errno.EPROTOTYPE, errno.ETXTBSY,
}  # fmt: skip
"""Errors that say the place is wrong, not that something went wrong there."""


def make_folder(place: Path) -> Path:
    """Makes a folder, and those above it, where it is not there yet; InputError where it cannot be
    made, ExperimentError if the disk is full."""
    with writing(place):
        place.mkdir(parents=True, exist_ok=True)
    return place


def prove(folder: Path) -> None:
    """Proves that files can be written to a folder, or to the one that it would be made in;
    InputError where they cannot, ExperimentError if the disk is full."""
    with writing(folder):
        above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    with writing(above), tempfile.NamedTemporaryFile(dir=above, prefix=_OURS, buffering=0) as probe:
        probe.write(_PROBE)


def write_to(place: Place, content: str | bytes) -> None:
    """Writes one document to a place: an :class:`Output`, or what one is made of; raises as
    :class:`Output` does."""
    output = place if isinstance(place, Output) else Output(place)
    with contextlib.closing(output):
        output.write(content)


OWN = "# A rig that ssdlab wrote.\n"
"""First line of rig files: what begins so may be replaced by another."""


def check_rigs(folder: Path, names: Iterable[str]) -> None:
    """Raises InputError where one of these files of a folder is there and is no rig that ssdlab
    wrote."""
    for place in (folder / name for name in names):
        with writing(place):
            there = place.exists() or place.is_symlink()
            if there and not (place.is_file() and place.read_bytes().startswith(OWN.encode())):
                raise InputError(
                    f"{place}: is there, and is no rig that ssdlab wrote; choose another folder"
                )


def write_rigs(folder: Path, rigs: Mapping[str, str]) -> None:
    """Writes rigs as files of a folder, by name; replaces such as ssdlab wrote, and nothing else;
    raises as :func:`check_rigs`, before anything is written, and as :class:`Output`."""
    make_folder(folder)
    check_rigs(folder, rigs)
    for name, text in rigs.items():
        write_to(folder / name, OWN + text)


class Output:
    """The place of one document, opened: that it can be written is proved, nothing is written yet.
    Raises InputError where there is no such folder, no permission, or the place is a folder;
    RefusedError where it is a block device; ExperimentError where the disk is full."""

    is_stdout = False
    """Whether the document goes where the program's standard output goes."""

    def __init__(self, place: Path | str) -> None:
        self._name = os.fspath(place)
        self._stream: int | None = None
        self._file: _PlainFile | None = None
        if not self._name or "\0" in self._name:
            raise InputError("the name of a file to write is empty or has a zero byte in it")
        if self._name.endswith("/"):
            raise InputError(f"{self}: is a folder; give the name of a file")
        try:
            with writing(self):
                self._open()
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return "standard output" if self._name == STDOUT else self._name

    @property
    def path(self) -> Path:
        """The place as it was named."""
        return Path(self._name)

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file, there or to be made, that is replaced whole."""
        return self._file is not None

    def is_same(self, path: Path) -> bool:
        """Whether ``path`` is the file that would be replaced."""
        return self._file is not None and self._file.is_same(path)

    def write(self, content: str | bytes) -> None:
        """Writes the whole document and closes the place; a reader that has left is no error.
        Raises ExperimentError where the disk is full or breaks, InputError where the place is no
        longer what it was."""
        # A name that came from a file system need not be text.
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        with writing(self):
            if self._file is not None:
                with self._file.part() as part, part.open("wb") as file:
                    file.write(data)
            else:
                self._send(data)
        self.close()

    @contextlib.contextmanager
    def writer(self) -> Iterator[Path]:
        """A new file for what writes by itself; when the block ends well, it becomes the document;
        raises as :meth:`write`."""
        with writing(self):
            if self._file is not None:
                with self._file.part() as part:
                    yield part
            else:
                with tempfile.TemporaryDirectory(prefix="ssdlab-") as folder:
                    part = Path(folder) / "part"
                    yield part
                    with part.open("rb") as file:
                        while (data := file.read(1 << 20)) and self._send(data):
                            pass
        self.close()

    def close(self) -> None:
        """Lets go of the place; a document that was not written is not there."""
        stream, self._stream = self._stream, None
        if stream is not None:
            os.close(stream)
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _send(self, data: bytes) -> bool:
        """Writes through; False where nobody reads any more."""
        assert self._stream is not None, "a place takes one document"
        if self.is_stdout:
            sys.stdout.flush()  # what was printed before stays before
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._stream, left) :]
            except BlockingIOError:
                # Somebody who shares the pipe has made it non-blocking.
                select.select([], [self._stream], [])
            except (BrokenPipeError, ConnectionResetError):
                return False
        return True

    def _open(self) -> None:
        number = _own_descriptor(self._name)
        if number is not None:
            self._stream = self._own(number)
        else:
            try:
                found = os.open(self._name, os.O_PATH)
            except (FileNotFoundError, NotADirectoryError):
                self._file = _PlainFile(self, os.path.realpath(self._name), None)
                return
            try:
                self._take(found)
            finally:
                os.close(found)
        if self._stream is not None:
            self.is_stdout = _is_open_as(1, os.fstat(self._stream))

    def _take(self, found: int) -> None:
        """Decides by what the descriptor ``found`` is, and opens that and nothing else."""
        status = os.fstat(found)
        self._refuse(status.st_mode)
        again = f"/proc/self/fd/{found}"
        # A file that a standard stream is open on must not be replaced below it.
        standard = next((number for number in (1, 2) if _is_open_as(number, status)), None)
        if standard is not None:
            self._stream = self._own(standard)
        elif stat.S_ISREG(status.st_mode):
            os.close(os.open(again, os.O_WRONLY))
            self._file = _PlainFile(self, str(Path(again).readlink()), status)
        elif stat.S_ISSOCK(status.st_mode):
            self._stream = _connected(again)
        else:
            # Waits for the reader of a FIFO, as a shell does.
            self._stream = os.open(again, os.O_WRONLY | os.O_NOCTTY)

    def _own(self, number: int) -> int:
        """A copy of a descriptor of this program, which may be anything that can be written."""
        try:
            how = fcntl.fcntl(number, fcntl.F_GETFL)
            self._refuse(os.fstat(number).st_mode)
        except OSError:
            raise InputError(f"{self}: nothing is open there") from None
        if how & os.O_ACCMODE == os.O_RDONLY or how & os.O_PATH:
            raise InputError(f"{self}: is not open for writing")
        return os.dup(number)

    def _refuse(self, mode: int) -> None:
        if stat.S_ISBLK(mode):
            raise RefusedError(
                f"{self}: is a block device, which would lose its data; give the name of a file"
            )
        if stat.S_ISDIR(mode):
            raise InputError(f"{self}: is a folder; give the name of a file")


Place = Output | Path | str
"""Where a document goes, opened or by name."""


class _PlainFile:
    """A plain file that is replaced whole, or made. Its folder stays open, so it stays the same."""

    def __init__(self, place: Output, path: str, was: os.stat_result | None) -> None:
        self._parent, self._name = os.path.split(path)
        self._was = was
        try:
            self._folder = os.open(self._parent, os.O_PATH | os.O_DIRECTORY)
        except FileNotFoundError:
            raise InputError(f"{place}: the folder {self._parent} does not exist") from None
        except NotADirectoryError:
            raise InputError(f"{place}: {self._parent} is not a folder") from None
        try:
            self._check()
            self._prove()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        os.close(self._folder)

    def is_same(self, path: Path) -> bool:
        return self._was is not None and os.path.samestat(self._was, path.stat())

    @contextlib.contextmanager
    def part(self) -> Iterator[Path]:
        """A new file beside; when the block ends well, it is on the disk and takes its place."""
        name = self._made()
        try:
            yield Path(self._parent, name)
            descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW, dir_fd=self._folder)
            try:
                self._dress(descriptor)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._check()
            os.replace(name, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=self._folder)
            raise

    def _prove(self) -> None:
        """That a file can be made here, and something written to it."""
        name = self._made()
        try:
            descriptor = os.open(name, os.O_WRONLY | os.O_NOFOLLOW, dir_fd=self._folder)
            try:
                os.write(descriptor, _PROBE)
            finally:
                os.close(descriptor)
        finally:
            os.unlink(name, dir_fd=self._folder)

    def _made(self) -> str:
        """A new empty file, as private as the one that it will replace; its name."""
        name = f"{_OURS}{secrets.token_hex(8)}"
        mode = 0o666 if self._was is None else 0o600
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        os.close(os.open(name, flags, mode, dir_fd=self._folder))
        return name

    def _dress(self, descriptor: int) -> None:
        """Gives the new file the owner and mode of the old one."""
        if self._was is None:
            return
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, self._was.st_uid, self._was.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(self._was.st_mode) & 0o777)

    def _check(self) -> None:
        """Only a plain file, or nothing, is replaced: also not what has come there meanwhile."""
        try:
            there = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        if not stat.S_ISREG(there.st_mode):
            raise InputError(
                f"{self._parent}/{self._name}: something else than a file has taken this place"
            )


def _own_descriptor(place: str) -> int | None:
    """The descriptor of this program that a place names: ``-``, /dev/stdout, /proc/self/fd/N."""
    if place == STDOUT:
        return 1
    own = re.compile(rf"/proc/{Path('/proc/self').readlink()}(?:/task/\d+)?/fd/(\d+)")
    path = Path(place)
    for _ in range(_LINKS_MAX):
        path = Path(os.path.realpath(path.parent)) / path.name
        if (match := own.fullmatch(str(path))) is not None:
            return int(match[1])
        try:
            path = path.parent / path.readlink()
        except OSError:
            return None
    return None


def _is_open_as(number: int, status: os.stat_result) -> bool:
    """Whether a descriptor of this program is open on the file that ``status`` is of."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(number), status)
    return False


def _connected(place: str) -> int:
    """A connection to a listening socket, of a stream or of packets."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        one = socket.socket(socket.AF_UNIX, kind)
        try:
            one.connect(place)
        except OSError as error:
            one.close()
            if error.errno != errno.EPROTOTYPE:
                raise
        else:
            return one.detach()
    raise OSError(errno.EPROTOTYPE, os.strerror(errno.EPROTOTYPE))
