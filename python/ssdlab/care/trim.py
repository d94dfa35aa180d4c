"""TRIM: telling a drive which blocks hold nothing any more, so that it need not preserve them."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ssdlab.audits.scene import Layer, below_mount, stack
from ssdlab.errors import ExperimentError, InputError, RefusedError
from ssdlab.opened import descriptor_of, opening
from ssdlab.system import FileSystemSpace, Mount, System, space
from ssdlab.units import size_text

BLKDISCARD = 0x1277
BLKSECDISCARD = 0x127D
_FITRIM = 0xC0185879
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS)


class UnsupportedError(ExperimentError):
    """The device or file system knows no such command. Exit status 1."""


@dataclass(frozen=True)
class Passage:
    """A layer between a file system and a drive, and whether a TRIM passes it."""

    name: str
    sentence: str
    passes: bool | None
    """Whether it takes a TRIM and hands it on; None where nobody can tell."""


@dataclass(frozen=True)
class Trimmed:
    """What trimming a file system did, or would do."""

    mount: Mount
    space: FileSystemSpace
    """Before it."""
    trimmed_bytes: int | None
    """As the file system counts them; None in a dry run."""
    seconds: float
    layers: list[Passage]
    refused: str | None = None
    """Of a dry run: why trimming would fail as it is now."""

    @property
    def reaches_a_drive(self) -> bool | None:
        """Whether what is trimmed reaches the lowest layer; None where nobody can tell."""
        told = [layer.passes for layer in self.layers]
        return False if False in told else None if None in told else True


def trim(path: Path, *, min_bytes: int = 0, dry_run: bool = False) -> Trimmed:
    """Trims the free space of the file system that holds ``path`` (ioctl FITRIM, as fstrim(8)), but
    stretches shorter than ``min_bytes``. Raises RefusedError where the path is a block device,
    whose blocks are not known to be free; InputError where there is no such path, no permission, or
    nothing that can be trimmed."""
    mount = _mount(path)
    room = space(mount.point)
    layers = way_down(mount)
    started = time.monotonic()
    trimmed = None if dry_run else _fitrim(mount, min_bytes)
    refused = _obstacle(mount, layers) if dry_run else None
    return Trimmed(mount, room, trimmed, time.monotonic() - started, layers, refused)


def way_down(mount: Mount) -> list[Passage]:
    """The layers below a mounted file system, from the top."""
    system = System()
    tops = [stack(system, name) for name in below_mount(system, mount)]
    if not tops:
        said = f"{mount.source} is no block device: what is below it could not be checked"
        return [Passage(mount.source, said, None)]
    return [passage for top in tops for passage in _passages(system, top)]


def _passages(system: System, layer: Layer) -> Iterator[Passage]:
    passes = bool(layer.takes_trim(system))
    goes_on = passes or layer.kind == "partition"
    if layer.kind == "loop":
        through = list(_through_loop(system, layer, passes))
        goes_on = through[-1].passes is True
        yield from through
    elif layer.kind != "partition":
        yield Passage(
            layer.name, f"{_titled(system, layer)} {_does(system, layer, passes)}", passes
        )
    for one in layer.below if goes_on else ():
        yield from _passages(system, one)


def _titled(system: System, layer: Layer) -> str:
    if layer.below:
        return f"{layer.title} on {', '.join(one.name for one in layer.below)}"
    model = system.of(layer.name, "device/model")
    return f"{layer.name} ({model})" if model else layer.name


def _does(system: System, layer: Layer, passes: bool) -> str:
    if layer.below:
        return "passes TRIM on" if passes else "stops TRIM here"
    most = system.number(f"{layer.place}/queue/discard_max_bytes") or 0
    return (
        f"supports TRIM, up to {size_text(most)} per command" if passes else "does not support TRIM"
    )


def _through_loop(system: System, layer: Layer, passes: bool) -> Iterator[Passage]:
    backing = system.backing_file(layer.name) or "a file"
    said = f"{layer.name} is the file {backing}"
    if not passes:
        yield Passage(layer.name, f"{said}, whose file system cannot punch holes", False)
        return
    yield Passage(layer.name, f"{said}: what is trimmed becomes holes in it", True)
    mount = system.mount_of(backing)
    if mount is None:
        said = f"{backing}: which file system it is on could not be checked"
        yield Passage(backing, said, None)
        return
    said = f"the holes become free space of the {mount.kind} at {mount.point}"
    if mount.has("discard"):
        said += ", which trims it by itself (mounted with discard)"
    else:
        said += f"; ssdlab trim {mount.point} passes them further down"
    yield Passage(mount.point, said, bool(mount.has("discard")))


def _mount(path: Path) -> Mount:
    with opening(path):
        mode = path.stat().st_mode
    if stat.S_ISBLK(mode):
        raise RefusedError(
            f"{path}: is a block device, and which of its blocks are free only a file system "
            f"knows; name the folder where it is mounted, or give up all data on it with "
            f"ssdlab purge {path}"
        )
    mount = System().mount_of(str(path.resolve()))
    if mount is None:
        raise InputError(f"{path}: which file system holds it could not be determined")
    return mount


def _fitrim(mount: Mount, min_bytes: int) -> int:
    with descriptor_of(Path(mount.point), os.O_RDONLY) as descriptor:
        asked = struct.pack("QQQ", 0, 2**64 - 1, min_bytes)
        try:
            answer: bytes = fcntl.ioctl(descriptor, _FITRIM, asked)
        except OSError as error:
            raise _cannot_trim(mount, error) from None
    return int(struct.unpack("QQQ", answer)[1])


def _obstacle(mount: Mount, layers: list[Passage]) -> str | None:
    """Why :func:`_fitrim` would fail, as far as that shows without trying."""
    number = 0
    if os.geteuid() != 0:
        number = errno.EPERM
    elif not Path(mount.source).is_block_device() or layers[0].passes is False:
        number = errno.EOPNOTSUPP
    return str(_cannot_trim(mount, OSError(number, ""))) if number else None


def _cannot_trim(mount: Mount, error: OSError) -> Exception:
    if error.errno in (errno.EPERM, errno.EACCES):
        return InputError(f"{mount.point}: no permission to trim it; run as root")
    if error.errno == errno.EROFS:
        return InputError(f"{mount.point}: is mounted read-only, so it cannot be trimmed")
    if error.errno == errno.EINVAL:
        return InputError(f"{mount.point}: --min is more than this file system can take")
    if error.errno in _UNSUPPORTED:
        stops = next(
            (passage.sentence for passage in way_down(mount) if passage.passes is False), ""
        )
        reason = f"; {stops}" if stops else ""
        return InputError(f"{mount.point}: {mount.kind} there cannot be trimmed{reason}")
    return ExperimentError(f"{mount.point}: trimming failed ({error.strerror})")


def discard(descriptor: int, offset: int, length: int, *, secure: bool = False) -> None:
    """Deallocates blocks of an open block device, which must be held by a claim; ``secure`` asks
    for the copies too that the device made of them (eMMC and SD cards know that). Raises
    UnsupportedError where the device knows no discard, ExperimentError where it failed."""
    request = BLKSECDISCARD if secure else BLKDISCARD
    try:
        fcntl.ioctl(descriptor, request, struct.pack("QQ", offset, length))
    except OSError as error:
        what = "secure discard" if secure else "discard (TRIM)"
        if error.errno in _UNSUPPORTED:
            raise UnsupportedError(f"the device knows no {what}") from None
        raise ExperimentError(f"{what} at {offset} failed ({error.strerror})") from None


def punch(descriptor: int, offset: int, length: int) -> None:
    """Makes a stretch of an open plain file a hole; its size stays; UnsupportedError where the file
    system knows no holes, ExperimentError where it failed."""
    libc = ctypes.CDLL(None, use_errno=True)
    mode = _PUNCH_HOLE | _KEEP_SIZE
    status = libc.fallocate64(
        descriptor, mode, ctypes.c_longlong(offset), ctypes.c_longlong(length)
    )
    if status:
        number = ctypes.get_errno()
        if number in _UNSUPPORTED:
            raise UnsupportedError("its file system cannot punch holes into a file")
        raise ExperimentError(f"punching a hole at {offset} failed ({os.strerror(number)})")


def allocated_bytes(path: Path) -> int:
    """What a file takes on its file system; 0 where it cannot be asked."""
    with contextlib.suppress(OSError):
        return path.stat().st_blocks * 512
    return 0
