"""Shipped drives at reduced size."""

from __future__ import annotations

from ssdlab import _core
from ssdlab.rig import profile


def capacity_of(drive: str) -> int:
    """Capacity of a profile in bytes."""
    return _rig(drive).bytes("capacity") or 0


def reduced(drive: str, factor: int, *, fewest: int = 1) -> dict[str, str]:
    """Overrides that make a drive ``factor`` times smaller, of at least ``fewest`` superblocks.

    Every ratio is kept (:meth:`ssdlab._core.Rig.scale`); none for a factor of 1.
    """
    return dict(_rig(drive).scale(factor, fewest=fewest))


def _rig(drive: str) -> _core.Rig:
    return _core.Rig(profile(drive).text, rig_name=drive)
