"""The only door to a block device: nothing writes to one except through :func:`claim`.

A drive is refused while it is mounted, in use by RAID, LVM, ZFS, swap or anything else, while it
holds a partition table or a file system, and unless it is named by its serial number. The kernel's
exclusive claim is held for the whole run, so that nothing can be mounted on it meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ssdlab.errors import InputError, MissingProgramError, RefusedError
from ssdlab.fio.job import Plan, size_text
from ssdlab.fio.surroundings import SYS_BLOCK, kernel_name, read_line, serial_of, system_program

_VIRTUAL = re.compile(r"(loop|md|dm-|nbd|zram|ram|ublkb|vd|xvd)\w*$")
"""Devices that have no serial by nature; they are named by their kernel name instead."""


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
def claim(device: BlockDevice, plan: Plan, destroy: str | None) -> Iterator[str]:
    """Holds ``device`` for a job that writes; yields the sentence that says what will be lost.

    Raises:
        RefusedError: the device is in use, holds data, or is not named by ``destroy``.
        InputError: no permission to open it, or it is read-only.
    """
    # Before the claim for the clearer sentence (kernels answer a mounted drive with EBUSY or
    # EPERM), and under it for certain.
    _refuse_if_used(device)
    descriptor = _open_exclusively(device)
    try:
        _refuse_if_used(device)
        _refuse_if_it_holds_data(device)
        _refuse_unless_named(device, plan, destroy)
        yield warning(device, plan)
    finally:
        os.close(descriptor)


def check_readable(device: BlockDevice) -> None:
    """An InputError where the device cannot be opened for reading."""
    try:
        os.close(os.open(device.path, os.O_RDONLY))
    except OSError as error:
        raise _cannot_open(device, error) from None


def warning(device: BlockDevice, plan: Plan) -> str:
    """What a job will do to a drive: bytes, drive writes, and share of its endurance."""
    share = plan.known_bytes / device.capacity_bytes
    fills = f" ({share:.2g} drive writes)" if plan.known_bytes else ""
    return (
        f"{device.path} ({device.names[0]}, {size_text(device.capacity_bytes)}): "
        f"all data on it will be lost; the job {plan.sentence()}{fills}; "
        "the share of its endurance is unknown, because its rated TBW is unknown"
    )


def _open_exclusively(device: BlockDevice) -> int:
    if read_line(SYS_BLOCK / device.name / "ro") == "1":
        raise InputError(f"{device.path}: is read-only, and the job writes")
    try:
        return os.open(device.path, os.O_RDWR | os.O_EXCL)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise RefusedError(
                f"{device.path}: is in use (the kernel refuses an exclusive claim); "
                "stop what uses it first"
            ) from None
        raise _cannot_open(device, error) from None


def _cannot_open(device: BlockDevice, error: OSError) -> InputError:
    if error.errno in (errno.EACCES, errno.EPERM):
        return InputError(
            f"{device.path}: no permission to open it; run as root or join the group that owns it"
        )
    return InputError(f"{device.path}: cannot be opened ({error.strerror})")


def _refuse_if_used(device: BlockDevice) -> None:
    place = SYS_BLOCK / device.name
    if (place / "partition").exists():
        raise RefusedError(f"{device.path}: is a partition; only a whole drive can be a target")
    if point := _mounted_at(device.name):
        raise RefusedError(f"{device.path}: is mounted at {point}; unmount it first")
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
        raise RefusedError(
            f"{device.path}: holds a partition table (partitions {', '.join(partitions)}); "
            "if nothing on it is needed, clear it with wipefs --all"
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


def _refuse_unless_named(device: BlockDevice, plan: Plan, destroy: str | None) -> None:
    if not device.names:
        raise RefusedError(
            f"{device.path}: tells no serial number, so it cannot be named safely; "
            "put a file system on it and use a file there as the target"
        )
    if destroy is None:
        raise RefusedError(
            f"{device.path}: the job {plan.sentence()} and destroys what is on the drive; "
            f"to allow it, name the drive with --destroy {device.names[0]}"
        )
    if destroy not in device.names:
        raise RefusedError(
            f'{device.path}: --destroy names "{destroy}", '
            f'but this drive is "{device.names[0]}"; nothing was written'
        )


def _names(name: str) -> tuple[str, ...]:
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
            return re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), fields[4])
    return None


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
        lines = Path("/proc/swaps").read_text("utf-8").splitlines()[1:]
    except OSError:
        return False
    for line in lines:
        with contextlib.suppress(OSError):
            swap = Path(line.split()[0])
            if swap.is_block_device() and swap.stat().st_rdev == number:
                return True
    return False


def _is_partition(place: Path) -> bool:
    return (place / "partition").exists()


def _listed(place: Path) -> list[str]:
    try:
        return sorted(one.name for one in place.iterdir())
    except OSError:
        return []
