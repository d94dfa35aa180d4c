"""Parameters of a protocol that are lists: block sizes, queue depths, shares."""

from __future__ import annotations

from ssdlab.engine.setup import Setup, bytes_of
from ssdlab.errors import InputError

DEPTH_MAX = 1024
"""More I/Os in flight than any queue of a drive is useful for."""


def counts(setup: Setup, name: str, *, most: int = DEPTH_MAX) -> list[int]:
    """Whole numbers from 1 to ``most``, separated by commas, each once, ascending.

    Raises InputError where the parameter is no such list.
    """
    text = setup.text(name)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    good = [int(part) for part in parts if part.isdecimal() and 1 <= int(part) <= most]
    if not parts or len(good) != len(parts):
        raise InputError(
            f"--param {name}={text}: expected whole numbers from 1 to {most}, such as 1,4,32"
        )
    return sorted(set(good))


def blocks(setup: Setup, name: str) -> list[int]:
    """Block sizes in bytes, separated by commas, each once, ascending.

    Sizes below the target's logical block are left out: no I/O can have them.
    Raises InputError where the parameter is no such list, or nothing remains of it.
    """
    text = setup.text(name)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    sizes = [bytes_of(part) for part in parts]
    if not parts or any(size < 512 or size % 512 for size in sizes):
        raise InputError(
            f"--param {name}={text}: expected block sizes in whole sectors of 512 bytes, "
            "such as 512,4k,1m"
        )
    smallest = setup.block
    found = sorted({size for size in sizes if size % smallest == 0})
    if not found:
        raise InputError(
            f"--param {name}={text}: the target has logical blocks of {smallest} bytes, "
            "and no size is a multiple of them"
        )
    return found


def short(size: int) -> str:
    """A block size as fio writes it: 512, 4k, 1m."""
    for shift, unit in ((20, "m"), (10, "k")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)
