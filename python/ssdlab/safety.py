"""The only doors to a block device: nothing writes to one except through :func:`claim`, which lets
its data be lost, or :func:`claim_for_rewrite`, behind which every byte is written as it was read.

A drive is refused while it is mounted, in use by RAID, LVM, ZFS, swap or anything else, while it
holds a partition table or a file system, and unless it is named by its serial number. The kernel's
exclusive claim is held for the whole run, so that nothing can be mounted on it meanwhile. For
rewriting a file system may be there, and even be mounted, but then it is frozen for every slice.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ssdlab.errors import InputError, MissingProgramError, RefusedError
from ssdlab.fio.surroundings import (
    SYS_BLOCK,
    kernel_name,
    mount_of,
    read_line,
    serial_of,
    system_program,
    whole_disk,
)
from ssdlab.freeze import Freezer
from ssdlab.openers import openers_of
from ssdlab.units import size_text

_VIRTUAL = re.compile(r"(loop|md|dm-|nbd|zram|ram|ublkb|vd|xvd)\w*$")
"""Devices that have no serial by nature; they are named by their kernel name instead."""

STILL_WHEN_FROZEN = frozenset({"ext2", "ext3", "ext4", "xfs"})
"""File systems whose freeze leaves everything on the device and nothing under way: all data and
metadata written, the journal or log emptied, every writer held off. What they have in memory may
still be ahead of the device, so writing must not go by way of it (:mod:`ssdlab.care.livewrite`)."""


@dataclass(frozen=True)
class Work:
    """What is about to be done to a device, in words for people."""

    who: str
    """Such as ``the job``."""
    does: str
    """Such as ``writes up to 8 GB``."""
    written_bytes: int = 0
    """As far as known; 0 where it writes nothing or nobody knows."""


@dataclass(frozen=True)
class BlockDevice:
    """A block device as the kernel knows it."""

    path: Path
    """Its node, links resolved."""
    name: str
    capacity_bytes: int
    names: tuple[str, ...]
    """What ``--destroy`` may call it: its serial; without one its kernel name or backing file."""


def inspect(path: Path) -> BlockDevice:
    """What ``path`` is; an InputError where it is no usable whole block device."""
    real = path.resolve()
    name = kernel_name(real)
    if name is None:
        raise InputError(f"{path}: the kernel does not know this block device")
    place = SYS_BLOCK / name
    capacity = int(read_line(place / "size") or 0) * 512
    if capacity == 0:
        raise InputError(f"{path}: is a block device without a medium (its size is 0)")
    return BlockDevice(real, name, capacity, _names(name))


@contextlib.contextmanager
def claim(device: BlockDevice, work: Work, destroy: str | None) -> Iterator[str]:
    """Holds ``device`` for ``work``; yields the sentence that says what will be lost.

    Raises:
        RefusedError: the device is in use, holds data, or is not named by ``destroy``.
        InputError: no permission to open it, or it is read-only.
    """
    # Before the claim for the clearer sentence (kernels answer a mounted drive with EBUSY or
    # EPERM), and under it for certain.
    _refuse_if_used(device)
    descriptor = _open(device, os.O_RDWR | os.O_EXCL)
    try:
        _refuse_if_used(device)
        _refuse_if_it_holds_data(device)
        _refuse_unless_named(device, work, "--destroy", destroy, "destroys what is on the drive")
        yield warning(device, work)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Rewriting:
    """Leave to write to a device what was read from it, slice by slice."""

    sentence: str
    """What will be done, for people."""
    mounted_at: str | None
    """Where its file system is mounted, which every slice freezes."""
    slice: Callable[[], AbstractContextManager[int]]
    """Holds everybody else off; what is read from the descriptor it yields may be written there
    again as long as it lasts, and not a moment longer."""
    held_longest_s: Callable[[], float]
    """The longest that a slice has kept others waiting so far; 0 where nobody was kept."""


@contextlib.contextmanager
def claim_for_rewrite(
    device: BlockDevice, work: Work, rewrite: str | None, *, freeze: bool, limit_s: float
) -> Iterator[Rewriting]:
    """Holds ``device``, a whole drive or a partition, for being rewritten with its own data.

    Not mounted, it is claimed exclusively like any other. Mounted, its file system is frozen for
    each slice if ``freeze`` allows that, and thawed after ``limit_s`` seconds whatever happens.

    Raises:
        RefusedError: the device is in use otherwise, or is not named by ``rewrite``.
        InputError: no permission to open it, or it is read-only.
    """
    _refuse_if_used(device, partition=True, mounted=freeze)
    point = _mounted_at(device.name)
    flags = os.O_RDWR | os.O_DIRECT
    with contextlib.ExitStack() as stack:
        descriptor = _open(device, flags if point else flags | os.O_EXCL)
        stack.callback(os.close, descriptor)
        _refuse_if_used(device, partition=True, mounted=freeze)
        if _mounted_at(device.name) != point:
            raise RefusedError(f"{device.path}: was just mounted or unmounted; nothing was written")
        _refuse_if_opened_for_writing(device)
        if point is not None:
            _refuse_unless_still_when_frozen(device, point)
        _refuse_unless_named(device, work, "--rewrite", rewrite, "keeps what is on it")
        how = f"mounted at {point}, frozen for each slice" if point else "not mounted"
        sentence = (
            f"{_described(device)}, {how}: {work.who} {work.does}"
            f"{_fills(device, work)}, every byte as it was read"
        )
        if point is None:
            yield Rewriting(sentence, None, lambda: contextlib.nullcontext(descriptor), lambda: 0.0)
            return
        freezer = stack.enter_context(Freezer(point, limit_s))

        @contextlib.contextmanager
        def frozen() -> Iterator[int]:
            with freezer.frozen():
                yield descriptor

        yield Rewriting(sentence, point, frozen, lambda: freezer.longest_s)


def why_refused(device: BlockDevice) -> str | None:
    """Why :func:`claim` would refuse this device whoever names it; None where it would not."""
    try:
        _refuse_if_used(device)
        _refuse_if_it_holds_data(device)
    except RefusedError as error:
        return error.message
    return None


def check_readable(device: BlockDevice) -> None:
    """An InputError where the device cannot be opened for reading."""
    try:
        os.close(os.open(device.path, os.O_RDONLY))
    except OSError as error:
        raise _cannot_open(device, error) from None


def warning(device: BlockDevice, work: Work) -> str:
    """What ``work`` will do to a drive: bytes, drive writes, and share of its endurance."""
    worn = "; the share of its endurance is unknown, because its rated TBW is unknown"
    return (
        f"{_described(device)}: all data on it will be lost; {work.who} {work.does}"
        f"{_fills(device, work)}{worn if work.written_bytes else ''}"
    )


def _described(device: BlockDevice) -> str:
    return f"{device.path} ({device.names[0]}, {size_text(device.capacity_bytes)})"


def _fills(device: BlockDevice, work: Work) -> str:
    share = work.written_bytes / device.capacity_bytes
    return f" ({share:.2g} drive writes)" if work.written_bytes else ""


def _open(device: BlockDevice, flags: int) -> int:
    if read_line(SYS_BLOCK / device.name / "ro") == "1":
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
        raise _cannot_open(device, error) from None


def _cannot_open(device: BlockDevice, error: OSError) -> InputError:
    if error.errno in (errno.EACCES, errno.EPERM):
        return InputError(
            f"{device.path}: no permission to open it; run as root or join the group that owns it"
        )
    return InputError(f"{device.path}: cannot be opened ({error.strerror})")


def _refuse_if_used(
    device: BlockDevice, *, partition: bool = False, mounted: bool | None = None
) -> None:
    """``partition``: it may be one. ``mounted``: it may be; None where that is out of question."""
    place = SYS_BLOCK / device.name
    if _is_partition(place) and not partition:
        raise RefusedError(f"{device.path}: is a partition; only a whole drive can be a target")
    if not mounted and (point := _mounted_at(device.name)):
        more = "" if mounted is None else ", or allow it to be frozen for moments with --freeze"
        raise RefusedError(f"{device.path}: is mounted at {point}; unmount it first{more}")
    if _is_swap(device.path):
        raise RefusedError(f"{device.path}: is in use as swap; swapoff it first")
    if holders := _listed(place / "holders"):
        raise RefusedError(
            f"{device.path}: is in use by {', '.join(holders)} (RAID, LVM, encryption or the like)"
        )
    partitions = [one.name for one in sorted(place.resolve().iterdir()) if _is_partition(one)]
    for name in partitions:
        if point := _mounted_at(name):
            raise RefusedError(f"{device.path}: its partition {name} is mounted at {point}")
        if _is_swap(Path("/dev") / name):
            raise RefusedError(f"{device.path}: its partition {name} is in use as swap")
        if holders := _listed(place / name / "holders"):
            raise RefusedError(
                f"{device.path}: its partition {name} is in use by {', '.join(holders)}"
            )
    if partitions:
        clear = (
            f"name one of them, such as /dev/{partitions[0]}"
            if partition
            else "if nothing on it is needed, clear it with wipefs --all"
        )
        raise RefusedError(
            f"{device.path}: holds a partition table (partitions {', '.join(partitions)}); {clear}"
        )


def _refuse_if_opened_for_writing(device: BlockDevice) -> None:
    """Programs that write past the file system are held off by no claim and no freeze."""
    if writers := [one for one in openers_of(device.path) if one.writes]:
        names = ", ".join(sorted({str(one) for one in writers}))
        raise RefusedError(f"{device.path}: is open for writing by {names}; stop that first")


def _refuse_unless_still_when_frozen(device: BlockDevice, point: str) -> None:
    mount = mount_of(Path(point))
    kind = mount.kind if mount else "unknown"
    if kind not in STILL_WHEN_FROZEN:
        raise RefusedError(
            f"{device.path}: is mounted at {point} as {kind}, which may write while it is frozen; "
            f"only {', '.join(sorted(STILL_WHEN_FROZEN))} are known not to; unmount it first"
        )
    # The kernel writes to the blocks of a swap file past the file system and past its freeze.
    number = Path(point).stat().st_dev
    for swap in _swaps():
        with contextlib.suppress(OSError):
            if swap.stat().st_dev == number and not swap.is_block_device():
                raise RefusedError(
                    f"{device.path}: holds the swap file {swap}, which no freeze holds still; "
                    "swapoff it first"
                )


def _refuse_if_it_holds_data(device: BlockDevice) -> None:
    """Refuses a partition table, file system or member signature, as libblkid sees them."""
    program = system_program("wipefs")
    if program is None:
        raise MissingProgramError(
            "wipefs is not installed, and without it nobody can tell whether the drive holds "
            "data: sudo apt install util-linux"
        )
    command = [program, "--json", "--no-act", str(device.path)]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        # Without any signature some versions print nothing at all.
        answer = json.loads(done.stdout) if done.stdout.strip() else {"signatures": []}
        found = [str(one["type"]) for one in answer["signatures"]]
    except (ValueError, KeyError, TypeError):
        done.returncode, found = 1, []
    if done.returncode != 0:
        raise RefusedError(
            f"{device.path}: wipefs cannot tell whether it holds data ({done.stderr.strip()})"
        )
    if found:
        kinds = ", ".join(dict.fromkeys(found))
        raise RefusedError(
            f"{device.path}: holds data (signatures found: {kinds}); "
            "if nothing on it is needed, clear it with wipefs --all"
        )


def _refuse_unless_named(
    device: BlockDevice, work: Work, option: str, name: str | None, fate: str
) -> None:
    if not device.names:
        raise RefusedError(
            f"{device.path}: tells no serial number, so it cannot be named safely; "
            "put a file system on it and use a file there as the target"
        )
    if name is None:
        raise RefusedError(
            f"{device.path}: {work.who} {work.does} and {fate}; "
            f"to allow it, name the drive with {option} {device.names[0]}"
        )
    if name not in device.names:
        raise RefusedError(
            f'{device.path}: {option} names "{name}", '
            f'but this drive is "{device.names[0]}"; nothing was written'
        )


def _names(name: str) -> tuple[str, ...]:
    name = whole_disk(name)
    if serial := serial_of(name):
        return (serial,)
    if not _VIRTUAL.match(name):
        return ()
    backing = read_line(SYS_BLOCK / name / "loop" / "backing_file")
    return (name, backing) if backing else (name,)


def _mounted_at(name: str) -> str | None:
    """Where device ``name`` is mounted, in this mount namespace."""
    number = read_line(SYS_BLOCK / name / "dev")
    for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines():
        fields = line.split()
        source = line.partition(" - ")[2].split()[1]
        if fields[2] == number or _same_device(source, name):
            return _unescaped(fields[4])
    return None


def _unescaped(text: str) -> str:
    """A path of the kernel's, which writes blanks in octal."""
    return re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), text)


def _same_device(source: str, name: str) -> bool:
    # btrfs mounts under a number of its own; only its source tells the device.
    path = Path(source)
    try:
        return source.startswith("/") and path.is_block_device() and kernel_name(path) == name
    except OSError:
        return False


def _is_swap(path: Path) -> bool:
    try:
        number = path.stat().st_rdev
    except OSError:
        return False
    for swap in _swaps():
        with contextlib.suppress(OSError):
            if swap.is_block_device() and swap.stat().st_rdev == number:
                return True
    return False


def _swaps() -> list[Path]:
    """The devices and files in use as swap."""
    try:
        lines = Path("/proc/swaps").read_text("utf-8").splitlines()[1:]
    except OSError:
        return []
    return [Path(_unescaped(line.split()[0])) for line in lines]


def _is_partition(place: Path) -> bool:
    return (place / "partition").exists()


def _listed(place: Path) -> list[str]:
    try:
        return sorted(one.name for one in place.iterdir())
    except OSError:
        return []
