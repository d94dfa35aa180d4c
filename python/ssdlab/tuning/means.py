"""How a value is read from its place and written there."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from ssdlab import admin
from ssdlab.admin import format_command
from ssdlab.errors import ExperimentError
from ssdlab.system import System

WRITE_CACHE = 6
"""The feature Volatile Write Cache (NVM Express base specification, Set Features)."""
_REREAD_S = 10.0
"""How long the kernel may take to look at a drive again after a format."""


class NotSetError(Exception):
    """A value was not taken; the text says why."""


@dataclass(frozen=True)
class Means:
    """A way to read and write."""

    read: Callable[[System, str], str | None]
    """The value at a place; None where it cannot be read."""
    write: Callable[[System, str, str], None]
    """Raises NotSetError where the value is not taken."""
    lasts: Literal["process", "boot", "drive"]
    """Until the own process ends, until the system is restarted, or until somebody changes it."""
    shown: Callable[[str], str]
    """A place, for people."""


def cpu_set(text: str) -> set[int]:
    """The processors of a list such as ``0-3,8``."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (last or first).isdigit():
            found |= set(range(int(first), int(last or first) + 1))
    return found


def cpu_list(cpus: Iterable[int]) -> str:
    """Processors as the kernel writes them: ``0-3,8``."""
    parts: list[list[int]] = []
    for one in sorted(cpus):
        if parts and parts[-1][1] == one - 1:
            parts[-1][1] = one
        else:
            parts.append([one, one])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def why_not(error: OSError) -> str:
    """Why the kernel did not take a value."""
    known = {
        errno.EACCES: "no permission: only root can",
        errno.EPERM: "no permission: only root can",
        errno.EROFS: "it is read-only here, as in a container",
        errno.ENOENT: "there is no such file",
        errno.EINVAL: "the kernel does not take this value",
        errno.EBUSY: "it is in use",
    }
    return known.get(error.errno or 0, error.strerror or "the kernel refuses")


def _write_file(system: System, place: str, value: str) -> None:
    try:
        # Never makes a file; a recorded one is cut to the new text.
        descriptor = os.open(system.root / place, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, f"{value}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise NotSetError(why_not(error)) from None


def _write_interrupt(system: System, place: str, value: str) -> None:
    try:
        _write_file(system, place, value)
    except NotSetError as error:
        if str(error) in (os.strerror(errno.EIO), os.strerror(errno.EPERM)):
            raise NotSetError(MANAGED) from None
        raise


MANAGED = "the kernel manages this interrupt itself and spreads the queues over the processors"


def _read_affinity(_system: System, _place: str) -> str | None:
    return cpu_list(os.sched_getaffinity(0))


def _write_affinity(_system: System, _place: str, value: str) -> None:
    try:
        os.sched_setaffinity(0, cpu_set(value))
    except OSError as error:
        raise NotSetError(why_not(error)) from None


def _run(command: list[str]) -> admin.Said:
    try:
        said = admin.run(command)
    except ExperimentError as error:
        raise NotSetError(error.message) from None
    if said.status:
        raise NotSetError(f"{command[0]} {command[1]} fails: {said.complaint}")
    return said


def _ask(command: list[str]) -> str | None:
    try:
        return _run(command).out
    except NotSetError:
        return None


def _read_hdparm(_system: System, node: str) -> str | None:
    on = admin.ata_write_cache(_ask(["hdparm", "-W", node]) or "")
    return None if on is None else "on" if on else "off"


def _write_hdparm(_system: System, node: str, value: str) -> None:
    _run(["hdparm", "-W1" if value == "on" else "-W0", node])


def _read_feature(_system: System, node: str) -> str | None:
    command = ["nvme", "get-feature", node, f"--feature-id={WRITE_CACHE}"]
    value = admin.nvme_feature(_ask(command) or "")
    return None if value is None else "on" if value & 1 else "off"


def _write_feature(_system: System, node: str, value: str) -> None:
    number = 1 if value == "on" else 0
    _run(["nvme", "set-feature", node, f"--feature-id={WRITE_CACHE}", f"--value={number}"])


def formats(node: str) -> list[admin.LbaFormat]:
    """The LBA formats of a namespace; empty where nobody tells."""
    return admin.nvme_formats(_ask(["nvme", "id-ns", node, "-o", "json"]) or "")


def _read_format(_system: System, node: str) -> str | None:
    return next((lba_format.name for lba_format in formats(node) if lba_format.in_use), None)


def _write_format(system: System, node: str, value: str) -> None:
    """Formats; all data are lost. Who calls it holds :func:`ssdlab.safety.claim`."""
    fitting = [lba_format for lba_format in formats(node) if lba_format.name == value]
    if not fitting:
        raise NotSetError("the drive does not have this format")
    best = min(fitting, key=lambda lba_format: lba_format.relative_performance)
    _run(format_command(node, f"--lbaf={best.index}", "--ses=0"))
    place = f"sys/class/block/{node.removeprefix('/dev/')}/queue/logical_block_size"
    began = time.monotonic()
    while system.live and system.number(place) != best.data_bytes:
        if time.monotonic() - began > _REREAD_S:
            raise NotSetError("the kernel still sees the blocks of before; unplug and replug it")
        time.sleep(0.1)


def _file(place: str) -> str:
    return f"/{place}"


MEANS = {
    "file": Means(System.chosen, _write_file, "boot", _file),
    "drive-file": Means(System.read, _write_file, "drive", _file),
    "interrupt": Means(System.read, _write_interrupt, "boot", _file),
    "process": Means(_read_affinity, _write_affinity, "process", lambda _place: "fio's processes"),
    "hdparm": Means(_read_hdparm, _write_hdparm, "drive", lambda node: f"hdparm -W {node}"),
    "nvme-feature": Means(
        _read_feature,
        _write_feature,
        "drive",
        lambda node: f"{node}, feature {WRITE_CACHE} (volatile write cache)",
    ),
    "nvme-format": Means(_read_format, _write_format, "drive", lambda node: f"nvme format {node}"),
}
"""Every way; ``drive-file`` is a file of /sys behind which the drive itself keeps the value."""
