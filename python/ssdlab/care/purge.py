"""Purging: the drive erases all that it holds, or comes as near to that as it can."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ssdlab import admin, safety
from ssdlab.admin import controller, format_command
from ssdlab.care.methods import KINDS, Method, available, remark, security_of
from ssdlab.care.trim import UnsupportedError, allocated_bytes, discard, punch
from ssdlab.errors import ExperimentError, InputError, RefusedError, known_name
from ssdlab.progress import Notice, ProgressCallback, answering_ctrl_c, tell, unheard
from ssdlab.rating import Rating
from ssdlab.safety import BlockDevice, Work
from ssdlab.units import size_text

_PASSWORD = "ssdlab"  # noqa: S105 - set for the length of an erase, and told where it stays
_AS_USER = ("hdparm", "--user-master", "u")
_DISCARD_STEP = 1 << 30
_PUNCH_STEP = 256 << 20
_POLL_S = 1.0
_BLKFLSBUF = 0x1261
_IN_PART = "; a part of it is purged, the rest is as it was"


@dataclass(frozen=True)
class Purged:
    """What a purge was."""

    method: str
    real: bool
    """Whether the drive erased all it held; False where data may survive."""
    sentence: str
    seconds: float
    tried: tuple[str, ...] = ()
    """What failed or was closed before, in words."""


def purge(
    device: BlockDevice,
    *,
    destroy: str | None,
    method: str | None = None,
    rating: Rating | None = None,
    progress: ProgressCallback | None = None,
    notice: Notice = unheard,
) -> Purged:
    """Claims ``device`` and purges it; all data on it are lost.

    ``method`` names one of :data:`ssdlab.care.methods.KINDS`; without it the strongest is taken.
    ``rating`` is for the sentence that says what it costs.

    Raises:
        RefusedError: the device is in use, holds data, or is not named by ``destroy``.
        InputError: no such method, or the drive does not have it.
        ExperimentError: it failed.
        Interrupted: Ctrl-C, or the progress callback returned False.
    """
    if method is not None:
        _known(method)
    with safety.claim(device, work_of(device, rating), destroy) as held:
        notice(held.sentence)
        return purge_claimed(device, method=method, progress=progress, notice=notice)


def work_of(device: BlockDevice, rating: Rating | None = None) -> Work:
    """What a purge does to a drive: the host writes nothing, but each block is erased once, which
    wears it at most as one drive write does."""
    return Work(
        "the purge",
        "erases every block, which wears it like one drive write at most though nothing is written",
        0,
        device.capacity_bytes,
        rating,
    )


def purge_claimed(
    device: BlockDevice,
    *,
    method: str | None = None,
    progress: ProgressCallback | None = None,
    notice: Notice = unheard,
) -> Purged:
    """Purges a device whose claim is held already; raises as :func:`purge` does."""
    started = time.monotonic()
    tried: list[str] = []
    for one in _choice(device, method, tried):
        long = f", which takes about {one.expected_s / 60:.0f} min" if one.expected_s else ""
        notice(f"{device.path}: purging by {one.kind.summary}{long}")
        try:
            _WAYS[one.name](device, one, progress)
        except UnsupportedError as error:
            if method is not None:
                raise
            # The drive refused before it began; the next weaker way may do.
            tried.append(f"{one.kind.summary}: {error}")
            continue
        _forget_cached(device)
        sentence = f"purged {device.path} by {one.kind.summary}: {one.kind.outcome}"
        return Purged(one.name, one.real, sentence, time.monotonic() - started, tuple(tried))
    raise ExperimentError(f"{device.path}: cannot be purged; {'; '.join(tried)}")


def purge_file(
    path: Path, *, progress: ProgressCallback | None = None, allowed: bool = False
) -> Purged:
    """Makes all of a plain file a hole; its size stays, its data are lost. No real purge. Raises
    RefusedError where that is not ``allowed`` or somebody uses the file, InputError where it is no
    plain file, without permission, or on a file system without holes."""
    if path.is_symlink() or not path.is_file():
        raise InputError(f"{path}: is neither a plain file nor a block device")
    if not allowed:
        raise RefusedError(
            f"{path}: the purge destroys what is in this file; allow it with --use-existing-file"
        )
    started = time.monotonic()
    kind = KINDS["punch"]
    try:
        with answering_ctrl_c(_IN_PART, path), safety.hold_file(path) as held:
            before = allocated_bytes(path)
            for offset in range(0, held.capacity, _PUNCH_STEP):
                punch(held.descriptor, offset, min(_PUNCH_STEP, held.capacity - offset))
                tell(progress, offset / held.capacity, "punching")
            os.fsync(held.descriptor)
    except UnsupportedError as error:
        raise InputError(f"{path}: {error}") from None
    freed = size_text(max(0, before - allocated_bytes(path)))
    sentence = f"purged {path}: {kind.summary}, {freed} freed; {kind.outcome}"
    return Purged("punch", False, sentence, time.monotonic() - started)


def _known(method: str) -> None:
    known_name("way to purge a device", method, [name for name in KINDS if name != "punch"])


def _choice(device: BlockDevice, method: str | None, tried: list[str]) -> Iterator[Method]:
    methods = available(device)
    if method is not None:
        _known(method)
        found = next((one for one in methods if one.name == method), None)
        obstacle = "this kind of device does not have it" if found is None else found.obstacle
        if found is None or obstacle is not None:
            raise InputError(f"{device.path}: --method {method}: {obstacle}")
        yield found
        return
    if said := remark(device):
        tried.append(said)
    for one in methods:
        if one.obstacle is None:
            yield one
        else:
            tried.append(f"{one.kind.summary}: {one.obstacle}")


def _forget_cached(device: BlockDevice) -> None:
    """What the kernel still has in memory of the device is no longer there."""
    with contextlib.suppress(OSError), device.path.open("rb", buffering=0) as file:
        fcntl.ioctl(file, _BLKFLSBUF, 0)


# --- the ways


def _discard(device: BlockDevice, method: Method, progress: ProgressCallback | None) -> None:
    secure = method.name == "secure-discard"
    size = device.capacity_bytes
    with (
        safety.opened(device, os.O_RDWR) as descriptor,
        answering_ctrl_c(_IN_PART, device.path),
    ):
        for offset in range(0, size, _DISCARD_STEP):
            discard(descriptor, offset, min(_DISCARD_STEP, size - offset), secure=secure)
            tell(progress, offset / size, method.kind.summary)


def _nvme_format(device: BlockDevice, method: Method, progress: ProgressCallback | None) -> None:
    command = format_command(
        str(device.path), f"--ses={2 if method.name.endswith('crypto') else 1}"
    )
    with _to_the_end(device):
        said = admin.run(command, _waiting(method, progress))
    if said.status:
        raise UnsupportedError(f"nvme format failed: {said.complaint}")


def _nvme_sanitize(device: BlockDevice, method: Method, progress: ProgressCallback | None) -> None:
    control = controller(device.name)
    action = 4 if method.name.endswith("crypto") else 2
    said = admin.run(["nvme", "sanitize", control, f"--sanact={action}"])
    if said.status:
        raise UnsupportedError(f"nvme sanitize failed: {said.complaint}")
    began = time.monotonic()
    with _to_the_end(device, stays="it goes on by itself and cannot be stopped"):
        while True:
            log = admin.run(["nvme", "sanitize-log", control, "-o", "json"])
            state = admin.nvme_sanitize(log.out)
            if state is None:
                raise ExperimentError(
                    f"{device.path}: the sanitize has begun, but nvme sanitize-log fails: "
                    f"{log.complaint}"
                )
            if state.state == "done":
                return
            if state.state == "failed":
                raise ExperimentError(
                    f"{device.path}: the drive says that its sanitize failed; it takes nothing "
                    "else until one succeeds: try again, or nvme sanitize --sanact=1 to leave "
                    "the failure"
                )
            # Idle right after the start: the log is not up to date yet.
            if state.state == "idle" and time.monotonic() - began > 60:
                raise ExperimentError(f"{device.path}: the drive took the sanitize and did nothing")
            tell(progress, state.fraction, method.kind.summary)
            time.sleep(_POLL_S)


def _ata_erase(device: BlockDevice, method: Method, progress: ProgressCallback | None) -> None:
    path = str(device.path)
    option = "--security-erase-enhanced" if method.name.endswith("enhanced") else "--security-erase"
    said = admin.run([*_AS_USER, "--security-set-pass", _PASSWORD, path])
    if said.status:
        raise UnsupportedError(f"setting the password that an erase needs failed: {said.complaint}")
    try:
        with _to_the_end(device):
            said = admin.run([*_AS_USER, option, _PASSWORD, path], _waiting(method, progress))
    finally:
        # A whole erase clears the password; whatever else happened must not leave the drive locked.
        _clear_password(device)
    if said.status:
        raise UnsupportedError(f"hdparm {option} failed: {said.complaint}")


def _clear_password(device: BlockDevice) -> None:
    def is_set() -> bool:
        security = security_of(device.path)
        return security is None or security.enabled

    if not is_set():
        return
    for option in ("--security-unlock", "--security-disable"):
        admin.run([*_AS_USER, option, _PASSWORD, str(device.path)])
    if is_set():
        raise ExperimentError(
            f"{device.path}: the erase did not end well, and the drive may keep the password "
            f'"{_PASSWORD}"; clear it with hdparm --user-master u --security-disable {_PASSWORD} '
            f"{device.path}"
        )


def _to_the_end(
    device: BlockDevice, stays: str = "it was waited for"
) -> AbstractContextManager[None]:
    return answering_ctrl_c(f", but the drive had the erase already and {stays}", device.path)


def _waiting(method: Method, progress: ProgressCallback | None) -> Callable[[float], None]:
    def report(seconds: float) -> None:
        share = None if not method.expected_s else min(0.99, seconds / method.expected_s)
        tell(progress, share, method.kind.summary)

    return report


_WAYS: dict[str, Callable[[BlockDevice, Method, ProgressCallback | None], None]] = {
    "nvme-sanitize": _nvme_sanitize,
    "nvme-format": _nvme_format,
    "nvme-sanitize-crypto": _nvme_sanitize,
    "nvme-format-crypto": _nvme_format,
    "ata-erase-enhanced": _ata_erase,
    "ata-erase": _ata_erase,
    "secure-discard": _discard,
    "discard": _discard,
}
