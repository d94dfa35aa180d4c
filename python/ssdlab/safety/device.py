"""Block devices as targets: claimed for a run, or held for being rewritten with their own data."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssdlab.errors import InputError, MissingProgramError, RefusedError
from ssdlab.fio.surroundings import serial_of
from ssdlab.opened import cannot_open, descriptor_of
from ssdlab.rating import Rating, between, drive_writes, share_text
from ssdlab.safety import uses
from ssdlab.safety.held import Held, sequence_of
from ssdlab.safety.uses import Use, unseen
from ssdlab.system import System, printed, system_program
from ssdlab.units import counted, size_text

_VIRTUAL = re.compile(r"(loop|md|dm-|nbd|zram|ram|ublkb|vd|xvd)\w*$")
"""Devices that have no serial by nature; they are named by their kernel name instead."""


@dataclass(frozen=True)
class Work:
    """What is about to be done to a device, in words for people."""

    who: str
    """Such as ``the job``."""
    does: str
    """Such as ``writes up to 8 GB``."""
    written_bytes: int = 0
    """At least, as far as known."""
    written_most_bytes: int = 0
    """At most; what is less than `written_bytes` says nothing. 0 for both where it writes nothing
    or nobody knows."""
    rating: Rating | None = None
    """What may be written to the drive in its life; None where nobody tells."""


@dataclass(frozen=True)
class BlockDevice:
    """A block device as the kernel knows it."""

    path: Path
    """Its node, links resolved."""
    name: str
    capacity_bytes: int
    names: tuple[str, ...]
    """What ``--destroy`` may call it: its serial; without one its kernel name or backing file."""
    number: int | None = None
    """Its device number when it was inspected."""
    sequence: str | None = None
    """The kernel's sequence number of its medium then."""

    def is_called(self, name: str) -> bool:
        """Whether ``--destroy`` names it by that; a backing file also by a path from here."""
        return name in self.names or str(Path(name).resolve()) in self.names


def inspect(path: Path) -> BlockDevice:
    """What ``path`` is; an InputError where it is no usable whole block device."""
    real = path.resolve()
    name = System().device_called(str(real))
    if name is None:
        raise InputError(f"{path}: the kernel does not know this block device")
    capacity = System().bytes_of(name)
    if capacity == 0:
        raise InputError(f"{path}: is a block device without a medium (its size is 0)")
    number = real.stat().st_rdev
    return BlockDevice(real, name, capacity, _names(name), number, sequence_of(name))


@contextlib.contextmanager
def claim(device: BlockDevice, work: Work, destroy: str | None) -> Iterator[Held]:
    """Holds ``device`` for ``work``; its sentence says what will be lost. Raises RefusedError where
    the device is in use, holds data, or is not named by ``destroy``; InputError without permission
    to open it, or where it is read-only."""
    # Before the claim for the clearer sentence (kernels answer a mounted drive with EBUSY or
    # EPERM), and under it for certain.
    _refuse_if_used(device)
    with opened(device, os.O_RDWR | os.O_EXCL) as descriptor:
        _refuse_if_used(device)
        _refuse_if_it_holds_data(device)
        refuse_unless_named(device, work, "--destroy", destroy, "destroys what is on the drive")
        sentence = warning(device, work)
        if unseen(System()):
            sentence += "; whether programs of other users have it open could not be checked"
        yield held(device, descriptor, sentence)


@contextlib.contextmanager
def look(device: BlockDevice) -> Iterator[Held]:
    """Holds ``device`` to be read; for that nobody need be asked; InputError where it cannot be
    opened for reading."""
    with descriptor_of(device.path, os.O_RDONLY) as descriptor:
        yield Held(
            device.path, descriptor, device.capacity_bytes, device.name, sequence=device.sequence
        )


def why_refused(device: BlockDevice) -> str | None:
    """Why :func:`claim` would refuse this device whoever names it; None where it would not."""
    try:
        _refuse_if_used(device)
        _refuse_if_it_holds_data(device)
        _refuse_if_nameless(device)
    except (RefusedError, MissingProgramError) as error:
        return error.message
    return None


def refusal(reason: str | None) -> list[str]:
    """The sentence of a plan that would be refused as it is now; none where it would not."""
    return [] if reason is None else [f"but as it is now it would be refused: {reason}"]


def why_unnamed(device: BlockDevice, destroy: str | None) -> str | None:
    """Why :func:`claim` would refuse ``destroy`` as the name of this device; None where not."""
    if not device.names or (destroy is not None and device.is_called(destroy)):
        return None
    return f"{device.path}: is not named; to allow it, add --destroy {device.names[0]}"


def warning(device: BlockDevice, work: Work) -> str:
    """What ``work`` will do to a drive: bytes, drive writes, and share of its endurance."""
    return (
        f"{described(device)}: all data on it will be lost; {work.who} {work.does}"
        f"{fills(device, work)}"
    )


def amount(low: int, high: int) -> str:
    """How many bytes are written, for people."""
    return between(low, high, size_text)


def described(device: BlockDevice) -> str:
    """A device by its node, its name for ``--destroy``, and its size."""
    return f"{device.path} ({device.names[0]}, {size_text(device.capacity_bytes)})"


def fills(device: BlockDevice, work: Work) -> str:
    """Drive writes and share of the endurance of what is written; nothing where nobody knows."""
    low, high = work.written_bytes, max(work.written_bytes, work.written_most_bytes)
    if not high:
        return ""
    times = between(low / device.capacity_bytes, high / device.capacity_bytes, drive_writes)
    return f" ({counted(times, 'drive write')}), {share_text(low, high, work.rating)}"


def held(
    device: BlockDevice,
    descriptor: int,
    sentence: str,
    used: Callable[[], Sequence[Use]] | None = None,
) -> Held:
    """``device`` as it is held; ``used`` asks who else uses it, of a whole drive unless given."""
    return Held(
        device.path,
        descriptor,
        device.capacity_bytes,
        device.name,
        sentence,
        uses=used or (lambda: uses.of_device(System(), device.name)),
        sequence=device.sequence,
    )


@contextlib.contextmanager
def opened(device: BlockDevice, flags: int) -> Iterator[int]:
    """The open device, which is what was inspected."""
    descriptor = _open(device, flags | os.O_CLOEXEC)
    try:
        if device.number not in (None, os.fstat(descriptor).st_rdev):
            raise RefusedError(f"{device.path}: was replaced just now; nothing was written")
        yield descriptor
    finally:
        os.close(descriptor)


def _open(device: BlockDevice, flags: int) -> int:
    if System().of(device.name, "ro") == "1":
        raise InputError(f"{device.path}: is read-only, and this writes")
    try:
        return os.open(device.path, flags)
    except OSError as error:
        if error.errno == errno.EBUSY and flags & os.O_EXCL:
            raise RefusedError(
                f"{device.path}: is in use (the kernel refuses an exclusive claim); "
                "stop what uses it first"
            ) from None
        if error.errno in (errno.EBUSY, errno.EPERM) and os.geteuid() == 0:
            raise RefusedError(
                f"{device.path}: this kernel lets nobody write to a mounted device "
                "(CONFIG_BLK_DEV_WRITE_MOUNTED); unmount it first"
            ) from None
        raise cannot_open(device.path, error) from None


def _refuse_if_used(device: BlockDevice) -> None:
    if System().is_partition(device.name):
        raise RefusedError(f"{device.path}: is a partition; only a whole drive can be a target")
    if found := uses.of_device(System(), device.name):
        first = found[0]
        clear = "; if nothing on it is needed, clear it with wipefs --all"
        more = clear if first.kind == "partition" else ""
        raise RefusedError(f"{device.path}: {first.sentence}{more}")


def _refuse_if_it_holds_data(device: BlockDevice) -> None:
    """Refuses a partition table, file system or member signature, as libblkid sees them."""
    program = system_program("wipefs")
    if program is None:
        raise MissingProgramError(
            "wipefs is not installed, and without it nobody can tell whether the drive holds "
            "data: sudo apt install util-linux"
        )
    status, text = printed([program, "--json", "--no-act", str(device.path)])
    try:
        # Without any signature some versions print nothing at all.
        answer = json.loads(text) if text.strip() else {"signatures": []}
        found = [str(one["type"]) for one in answer["signatures"]]
    except (ValueError, KeyError, TypeError):
        status, found = 1, []
    if status:
        raise RefusedError(f"{device.path}: wipefs fails, so whether it holds data is not known")
    if found:
        kinds = ", ".join(dict.fromkeys(found))
        raise RefusedError(
            f"{device.path}: holds data (signatures found: {kinds}); "
            "if nothing on it is needed, clear it with wipefs --all"
        )


def refuse_unless_named(
    device: BlockDevice, work: Work, option: str, name: str | None, fate: str
) -> None:
    """Raises RefusedError unless ``name`` is one of the drive's; the sentence tells which is."""
    _refuse_if_nameless(device)
    if name is None:
        raise RefusedError(
            f"{device.path}: {work.who} {work.does} and {fate}; "
            f"to allow it, name the drive with {option} {device.names[0]}"
        )
    if not device.is_called(name):
        raise RefusedError(
            f'{device.path}: {option} names "{name}", '
            f'but this drive is "{device.names[0]}"; nothing was written'
        )


def _refuse_if_nameless(device: BlockDevice) -> None:
    if not device.names:
        raise RefusedError(
            f"{device.path}: reports no serial number, so it cannot be named safely; "
            "put a file system on it and use a file there as the target"
        )


def _names(name: str) -> tuple[str, ...]:
    name = System().disk_of(name)
    if serial := serial_of(name):
        return (serial,)
    if not _VIRTUAL.match(name):
        return ()
    backing = System().backing_file(name)
    return (name, backing) if backing else (name,)
