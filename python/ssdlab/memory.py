"""How much memory a simulation may take before the system kills it."""

from __future__ import annotations

import os
import resource
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
_STATM = Path("/proc/self/statm")


_ADDRESSES = 512 << 20, 400 << 20
"""Bytes of addresses that libraries reserve as they load, and for each core: measured with one and
with two cores. Where they are refused, the process is aborted and nothing can be said any more."""

_most: int | None = None


def limit_process(most: int | None) -> None:
    """Holds what this process may take to so many bytes; None takes that back."""
    global _most
    _most = most


def available_bytes(most: int | None = None) -> int | None:
    """The least of what is free, what the container may still take, what the process may, and
    ``most``; None where the system does not tell."""
    amounts = (_free(), _of_container(), _of_process(), most)
    known = [amount for amount in amounts if amount is not None]
    return max(0, min(known)) if known else None


def why_short() -> str | None:
    """That the limit on addresses (``ulimit -v``) is less than libraries may reserve; None where it
    is not."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    least = _ADDRESSES[0] + _ADDRESSES[1] * len(os.sched_getaffinity(0))
    if limit == resource.RLIM_INFINITY or limit >= least:
        return None
    return (
        f"ulimit -v allows {limit / 1e9:.1f} GB of addresses; the libraries of ssdlab may reserve "
        f"{least / 1e9:.1f} GB on so many cores, and are aborted where they cannot (status 134)"
    )


def _free() -> int | None:
    for line in _text(_MEMINFO).splitlines():
        name, _, amount = line.partition(":")
        if name == "MemAvailable":
            return int(amount.split()[0]) * 1024
    return None


def _of_container() -> int | None:
    most, used = _text(_CGROUP / "memory.max").strip(), _text(_CGROUP / "memory.current").strip()
    return int(most) - int(used) if most.isdigit() and used.isdigit() else None


def _of_process() -> int | None:
    """What is left of the limits on this process: on addresses by the system, on memory by
    :func:`limit_process`."""
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    limits = (None if space == resource.RLIM_INFINITY else space), _most
    if limits == (None, None):
        return None
    pages = [int(one) * resource.getpagesize() for one in _text(_STATM).split()[:2]] or [0, 0]
    left = [most - used for most, used in zip(limits, pages, strict=True) if most is not None]
    return min(left)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""
