"""What identifies a medium: whether a device or file is still the one that a run was started on.

The kernel's name and the size do not: names are given anew at each start, and a loop device, a slot
or a card reader takes another medium under the same one. What a drive or file is born with does; so
do, within a boot, the kernel's sequence number of the disk, and blocks that the run itself wrote.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import mmap
import os
import stat
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ssdlab.fio.surroundings import serial_of
from ssdlab.system import System

SAMPLES = 16
"""Blocks of a medium that its fingerprint looks at."""
SAMPLE_BYTES = 4096
_GOLDEN = 0.6180339887498949
"""Multiples of it, without their whole part, lie evenly wherever one stops."""
_FS_IOC_GETVERSION = 0x80087601
_PLACES = {
    "wwid": ("wwid", "device/wwid"),
    "eui": ("eui",),
    "nguid": ("nguid",),
    "uuid": ("uuid",),
    "namespace": ("nsid",),
    "card": ("device/cid",),
    "device mapper": ("dm/uuid",),
    "md": ("md/uuid",),
}
_UNIQUE = frozenset({"serial", "backing file", "file", *_PLACES}) - {"namespace"}
"""Two media never share one of these."""
_NOBODY = frozenset({"", "0" * 16, "0" * 32, "00000000-0000-0000-0000-000000000000"})


def ids_of_device(name: str, *, redact: bool = False) -> dict[str, str]:
    """What the block device that the kernel calls ``name`` is born with, and its disk sequence
    number in this boot. ``redact``: as digests."""
    system = System()
    found = {"serial": serial_of(system.disk_of(name)) or ""}
    for what, places in _PLACES.items():
        lines = (system.of(name, place) for place in places)
        found[what] = next((line for line in lines if line), "")
    if backing := system.backing_file(name):
        behind = _ids_of_path(Path(backing))
        found |= {f"backing {one}": behind.get(one, "") for one in ("file", "file system")}
        for limit in ("offset", "sizelimit"):
            found[f"loop {limit}"] = system.of(name, f"loop/{limit}") or ""
    found |= _boot_bound("disk sequence", system.of(name, "diskseq"))
    return _kept(found, redact)


def ids_of_file(descriptor: int, *, redact: bool = False) -> dict[str, str]:
    """What an open plain file is born with."""
    return _kept(_ids_of_descriptor(descriptor), redact)


def fingerprint(descriptor: int, size: int) -> list[str]:
    """Digests of blocks spread evenly over the first ``size`` bytes of an open device or file;
    empty for a block that cannot be read or holds one value all over, as blocks never written
    do."""
    blocks = size // SAMPLE_BYTES
    if blocks == 0:
        return []
    with os.fdopen(_reopened(descriptor), "rb", 0) as file, mmap.mmap(-1, SAMPLE_BYTES) as buffer:
        return [
            _digest(file.fileno(), buffer, int(blocks * (number * _GOLDEN % 1)) * SAMPLE_BYTES)
            for number in range(1, SAMPLES + 1)
        ]


@dataclass(frozen=True)
class Likeness:
    """Whether a medium is the one it was."""

    verdict: Literal["same", "another", "unproved"]
    reason: str = ""
    """Why not ``same``, for people."""


def compare(
    before: Mapping[str, str],
    now: Mapping[str, str],
    written: Sequence[str],
    found: Sequence[str],
    *,
    at_rest: bool,
) -> Likeness:
    """Whether the medium with the ids ``now`` and the fingerprint ``found`` is that of ``before``.
    ``at_rest``: the run wrote nothing after its fingerprint ``written`` was taken, so that all of
    it must still be there."""
    same_boot = before.get("boot") == now.get("boot")
    for what, value in before.items():
        bound = what in ("boot", "disk sequence", "file system", "backing file system")
        if not bound and what in now and now[what] != value:
            return Likeness("another", f"its {what} is {now[what]}, and that of the run {value}")
        if what.endswith("file system") and same_boot and now.get(what, value) != value:
            return Likeness("another", "its file lies on another file system")
    known = [(one, other) for one, other in zip(written, found, strict=False) if one]
    if any(one == other for one, other in known):
        return Likeness("same")
    if known and at_rest:
        return Likeness("unproved", "none of the blocks that the run wrote is there any more")
    if any(before.get(what) == now.get(what) for what in _UNIQUE & before.keys()):
        return Likeness("same")
    sequence = before.get("disk sequence")
    if same_boot and sequence and sequence == now.get("disk sequence"):
        return Likeness("same")
    return Likeness("unproved", "nothing but its name and size says that it is")


def proof(state: Mapping[str, Any]) -> list[str]:
    """The fingerprint in a state that was kept; none where it was kept by an older version."""
    found = state.get("fingerprint")
    return [str(one) for one in found] if isinstance(found, list) else []


def _kept(found: Mapping[str, str], redact: bool) -> dict[str, str]:
    kept = {what: value for what, value in found.items() if value not in _NOBODY}
    if not redact:
        return kept
    return {
        what: hashlib.blake2b(value.encode(), digest_size=8).hexdigest()
        for what, value in kept.items()
    }


def _boot_bound(what: str, value: str | None) -> dict[str, str]:
    return {"boot": System().boot or "", what: value or ""}


def _ids_of_path(path: Path) -> dict[str, str]:
    with contextlib.suppress(OSError):
        if stat.S_ISBLK(path.stat().st_mode):
            return {"file": f"device {path.stat().st_rdev}"}
        with path.open("rb", buffering=0) as file:
            return _ids_of_descriptor(file.fileno())
    return {}


def _ids_of_descriptor(descriptor: int) -> dict[str, str]:
    info = os.fstat(descriptor)
    # Numbers of inodes are used again; their generation tells one use from the next.
    generation = ""
    with contextlib.suppress(OSError):
        answer = fcntl.ioctl(descriptor, _FS_IOC_GETVERSION, bytes(8))
        generation = str(struct.unpack("I", answer[:4])[0])
    file = f"{info.st_ino}.{generation}"
    return {"file": file} | _boot_bound("file system", str(info.st_dev))


def _reopened(descriptor: int) -> int:
    """The same thing opened to read past the page cache, where that can be."""
    place = f"/proc/self/fd/{descriptor}"
    try:
        return os.open(place, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return os.open(place, os.O_RDONLY)


def _digest(descriptor: int, buffer: mmap.mmap, offset: int) -> str:
    try:
        if os.preadv(descriptor, [buffer], offset) < SAMPLE_BYTES:
            return ""
    except OSError:
        return ""
    data = buffer[:]
    if data == data[:1] * SAMPLE_BYTES:
        return ""
    return hashlib.blake2b(data, digest_size=8).hexdigest()
