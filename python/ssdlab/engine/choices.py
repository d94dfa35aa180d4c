"""Parameters of a protocol that are lists: block sizes, queue depths, shares."""

from __future__ import annotations

from collections.abc import Iterable

from ssdlab import units
from ssdlab.engine.setup import Setup
from ssdlab.errors import InputError

DEPTH_MAX = 1024
"""More I/Os in flight than any queue of a drive is useful for."""


def counts(setup: Setup, name: str, *, most: int = DEPTH_MAX) -> list[int]:
    """Whole numbers from 1 to ``most`` (:mod:`ssdlab.units` says how), each once, ascending.

    Raises InputError where the parameter is no such list.
    """
    text = setup.text(name)
    expected = f"whole numbers from 1 to {most}, such as 1,4,32 or 1..32x2"
    return units.counts(
        f"--param {name}={text}:", text, expected, lambda number: 1 <= number <= most
    )


def blocks(setup: Setup, name: str) -> list[int]:
    """Block sizes in bytes (:mod:`ssdlab.units` says how), each once, ascending.

    Sizes below the target's logical block are left out: no I/O can have them.
    Raises InputError where the parameter is no such list, or nothing remains of it.
    """
    text = setup.text(name)
    expected = "block sizes in whole sectors of 512 bytes, such as 512,4k,1m or 4k..1mx2"
    sizes = units.sizes(
        f"--param {name}={text}:", text, expected, lambda size: size >= 512 and size % 512 == 0
    )
    smallest = setup.block
    found = [size for size in sizes if size % smallest == 0]
    if not found:
        raise InputError(
            f"--param {name}={text}: the target has logical blocks of {smallest} bytes, "
            "and no size is a multiple of them"
        )
    return found


def in_blocks(setup: Setup, shares: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sizes with their percent, rounded up to whole logical blocks of the target; those that become
    alike are one."""
    found: dict[int, int] = {}
    for size, percent in shares:
        rounded = -(-size // setup.block) * setup.block
        found[rounded] = found.get(rounded, 0) + percent
    return sorted(found.items())


def bssplit(shares: Iterable[tuple[int, int]]) -> str:
    """Sizes with their percent as fio writes them."""
    return ":".join(f"{short(size)}/{percent}" for size, percent in shares)


def short(size: int) -> str:
    """A block size as fio writes it: 512, 4k, 1m."""
    for shift, unit in ((20, "m"), (10, "k")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)
