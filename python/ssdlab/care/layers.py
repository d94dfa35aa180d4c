"""What lies below a file system, layer by layer, and whether a TRIM passes through to the drive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ssdlab.fio.mounts import Mount
from ssdlab.fio.surroundings import (
    SYS_BLOCK,
    backing_file,
    kernel_name,
    mount_of,
    read_line,
    whole_disk,
)
from ssdlab.units import size_text

_DEPTH_MAX = 16


@dataclass(frozen=True)
class Layer:
    """One layer on the way down from a file system to a drive."""

    name: str
    sentence: str
    passes: bool | None
    """Whether it takes a TRIM and hands it on; None where nobody can tell."""


def below_mount(mount: Mount) -> list[Layer]:
    """The layers below a mounted file system, from the top."""
    source = Path(mount.source)
    name = kernel_name(source) if _is_block(source) else None
    if name is None:
        return [
            Layer(
                mount.source,
                f"{mount.source} is no block device: what is below it could not be checked",
                None,
            )
        ]
    return list(_device(name, 0))


def discard_limit(name: str) -> int:
    """Bytes that a device takes in one discard; 0 where it takes none."""
    text = read_line(SYS_BLOCK / whole_disk(name) / "queue" / "discard_max_bytes")
    return int(text) if text and text.isdigit() else 0


def _device(name: str, depth: int) -> Iterator[Layer]:
    if depth > _DEPTH_MAX:
        return
    place = SYS_BLOCK / name
    passes = discard_limit(name) > 0
    parents = sorted(one.name for one in (place / "slaves").iterdir()) if _has_slaves(place) else []
    backing = backing_file(whole_disk(name))
    if backing is not None:
        yield from _loop(name, backing, passes, depth)
    elif parents:
        on = ", ".join(parents)
        said = f"{_kind(place)}{name} on {on} " + (
            "passes TRIM on" if passes else "stops TRIM here"
        )
        yield Layer(name, said, passes)
        if passes:
            for parent in parents:
                yield from _device(parent, depth + 1)
    else:
        yield _drive(name, passes)


def _loop(name: str, backing: str, passes: bool, depth: int) -> Iterator[Layer]:
    if not passes:
        yield Layer(
            name, f"{name} is the file {backing}, whose file system cannot punch holes", False
        )
        return
    yield Layer(name, f"{name} is the file {backing}: what is trimmed becomes holes in it", True)
    mount = mount_of(Path(backing))
    if mount is None:
        yield Layer(backing, f"{backing}: which file system it is on could not be checked", None)
        return
    freed = f"the holes become free space of the {mount.kind} at {mount.point}"
    if mount.has("discard"):
        yield Layer(mount.point, f"{freed}, which trims it by itself (mounted with discard)", True)
        source = Path(mount.source)
        under = kernel_name(source) if _is_block(source) else None
        if under is not None:
            yield from _device(under, depth + 1)
    else:
        yield Layer(
            mount.point, f"{freed}; ssdlab trim {mount.point} passes them further down", False
        )


def _drive(name: str, passes: bool) -> Layer:
    disk = whole_disk(name)
    model = read_line(SYS_BLOCK / disk / "device" / "model")
    what = f"{disk} ({model})" if model else disk
    if not passes:
        return Layer(disk, f"{what} does not support TRIM", False)
    limit = size_text(discard_limit(disk))
    return Layer(disk, f"{what} supports TRIM, up to {limit} per command", True)


def _kind(place: Path) -> str:
    uuid = read_line(place / "dm" / "uuid") or ""
    if uuid.startswith("CRYPT-"):
        return "the encryption "
    if uuid.startswith("LVM-"):
        return "the logical volume "
    if (place / "md").exists():
        return f"the {read_line(place / 'md' / 'level') or 'md'} array "
    return ""


def _has_slaves(place: Path) -> bool:
    try:
        return any((place / "slaves").iterdir())
    except OSError:
        return False


def _is_block(path: Path) -> bool:
    try:
        return path.is_absolute() and path.is_block_device()
    except OSError:
        return False
