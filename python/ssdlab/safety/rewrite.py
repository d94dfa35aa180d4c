"""Devices that are rewritten with their own data, slice by slice, while nobody else writes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ssdlab.errors import RefusedError
from ssdlab.freeze import Freezer
from ssdlab.safety import uses
from ssdlab.safety.device import (
    BlockDevice,
    Work,
    described,
    fills,
    held,
    opened,
    refuse_unless_named,
)
from ssdlab.safety.uses import Use
from ssdlab.system import System

STILL_WHEN_FROZEN = frozenset({"ext2", "ext3", "ext4", "xfs"})
"""File systems whose freeze leaves everything on the device and nothing under way: all data and
metadata written, the journal or log emptied, every writer held off. What they have in memory may
still be ahead of the device, so writing must not go by way of it (:mod:`ssdlab.care.livewrite`)."""


@dataclass(frozen=True)
class Rewriting:
    """Leave to write to a device what was read from it, slice by slice."""

    sentence: str
    """What will be done, for people."""
    mounted_at: str | None
    """Where its file system is mounted, which every slice freezes."""
    slice: Callable[[], AbstractContextManager[int]]
    """Holds everybody else off, or asks before and after whether anybody uses the device; what is
    read from the descriptor it yields may be written there again as long as it lasts, and not a
    moment longer. Raises RefusedError where somebody uses it."""
    held_longest_s: Callable[[], float]
    """The longest that a slice has kept others waiting so far; 0 where nobody was kept."""


@contextlib.contextmanager
def claim_for_rewrite(
    device: BlockDevice, work: Work, rewrite: str | None, *, freeze: bool, limit_s: float
) -> Iterator[Rewriting]:
    """Holds ``device``, a whole drive or a partition, for being rewritten with its own data.

    Not mounted, it is claimed exclusively like any other, and every slice asks again who uses it:
    a claim keeps mounts and other claims away, but no program that opens it without one. Mounted,
    its file system is frozen for each slice if ``freeze`` allows that, and thawed after
    ``limit_s`` seconds whatever happens.

    Raises:
        RefusedError: the device is in use otherwise, or is not named by ``rewrite``.
        InputError: no permission to open it, or it is read-only.
    """
    _refuse_if_used(device, freeze)
    point = _mounted_at(device)
    flags = os.O_RDWR | os.O_DIRECT
    with contextlib.ExitStack() as stack:
        descriptor = stack.enter_context(opened(device, flags if point else flags | os.O_EXCL))
        _refuse_if_used(device, freeze)
        if _mounted_at(device) != point:
            raise RefusedError(f"{device.path}: was just mounted or unmounted; nothing was written")
        if point is not None:
            _refuse_unless_still_when_frozen(device, point)
        refuse_unless_named(device, work, "--rewrite", rewrite, "keeps what is on it")
        how = f"mounted at {point}, frozen for each slice" if point else "not mounted"
        sentence = (
            f"{described(device)}, {how}: {work.who} {work.does}"
            f"{fills(device, work)}, every byte as it was read"
        )
        hold = held(device, descriptor, sentence, lambda: _uses(device, mounted=point is not None))
        if point is None:

            @contextlib.contextmanager
            def alone() -> Iterator[int]:
                hold.check()
                yield descriptor
                hold.check()

            yield Rewriting(sentence, None, alone, lambda: 0.0)
            return
        freezer = stack.enter_context(Freezer(point, limit_s))

        @contextlib.contextmanager
        def frozen() -> Iterator[int]:
            hold.check()
            with freezer.frozen():
                yield descriptor

        yield Rewriting(sentence, point, frozen, lambda: freezer.longest_s)


def why_rewrite_refused(device: BlockDevice, *, freeze: bool) -> str | None:
    """Why :func:`claim_for_rewrite` would refuse this device whoever names it; None where it
    would not."""
    try:
        _refuse_if_used(device, freeze)
        point = _mounted_at(device)
        if point is not None:
            _refuse_unless_still_when_frozen(device, point)
    except RefusedError as error:
        return error.message
    return None


def _mounted_at(device: BlockDevice) -> str | None:
    mount = System().mount_on(device.name)
    return None if mount is None else mount.point


def _uses(device: BlockDevice, *, mounted: bool) -> list[Use]:
    return uses.of_device(System(), device.name, mounted=mounted)


def _refuse_if_used(device: BlockDevice, freeze: bool) -> None:
    found = _uses(device, mounted=freeze)
    if not found:
        return
    first = found[0]
    more = ""
    if first.kind == "mount":
        more = ", or allow it to be frozen for moments with --freeze"
    elif first.kind == "partition":
        more = f"; name one of them, such as /dev/{first.partition}"
    raise RefusedError(f"{device.path}: {first.sentence}{more}")


def _refuse_unless_still_when_frozen(device: BlockDevice, point: str) -> None:
    mount = System().mount_of(point)
    kind = mount.kind if mount else "unknown"
    if kind not in STILL_WHEN_FROZEN:
        raise RefusedError(
            f"{device.path}: is mounted at {point} as {kind}, which may write while it is frozen; "
            f"only {', '.join(sorted(STILL_WHEN_FROZEN))} are known not to; unmount it first"
        )
    # The kernel writes to the blocks of a swap file past the file system and past its freeze.
    number = Path(point).stat().st_dev
    for swap in System().swaps():
        with contextlib.suppress(OSError):
            info = Path(swap.path).stat()
            if info.st_dev == number and swap.kind == "file":
                raise RefusedError(
                    f"{device.path}: holds the swap file {swap.path}, which no freeze holds still; "
                    "swapoff it first"
                )
