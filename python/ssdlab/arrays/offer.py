"""Storage that may be had, with what it does and what it costs by space and by rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ssdlab.arrays.grid import ONE, DriveSetup
from ssdlab.arrays.performance import Performance
from ssdlab.arrays.rigs import ArrayShape


@dataclass(frozen=True, kw_only=True)
class Offer:
    """Storage with a price."""

    price: float | None
    """Of everything that is bought; None where it is not known."""
    usable_bytes: float
    """What the host can use, at full size."""

    @property
    def price_per_gb(self) -> float | None:
        """Price of 10^9 usable bytes."""
        return None if self.price is None else self.price / (self.usable_bytes / 1e9)

    @property
    def price_per_tb(self) -> float | None:
        """Price of 10^12 usable bytes."""
        return None if self.price is None else self.price / (self.usable_bytes / 1e12)

    def price_of_kiops(self, iops: float) -> float | None:
        """Price of a thousand I/Os a second where it does so many; None where it does none."""
        return None if self.price is None or not iops else self.price / (iops / 1e3)


@dataclass(frozen=True)
class ArrayRow(Offer):
    """An array or the drive alone, what it did, and what that is beside the drive alone."""

    shape: ArrayShape | None
    """None for the drive alone."""
    did: Performance
    speedup: float
    """IOPS by those of the drive alone."""
    space: float
    """Usable share of the space of all drives."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return ONE if self.shape is None else self.shape.name

    @property
    def level(self) -> str:
        """Its RAID level, as people write it; empty for the drive alone."""
        return "" if self.shape is None else self.shape.level

    @property
    def level_name(self) -> str:
        """Such as ``RAID 5``."""
        return ONE if self.shape is None else self.shape.level_name

    @property
    def count(self) -> int:
        """Number of drives."""
        return 1 if self.shape is None else self.shape.count

    @property
    def efficiency(self) -> float:
        """IOPS by N times those of the drive alone."""
        return self.speedup / self.count

    @property
    def price_per_kiops(self) -> float | None:
        """Price of a thousand I/Os a second under this load."""
        return self.price_of_kiops(self.did.iops)

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""
        return {
            "array": self.shape and self.shape.name,
            "level": self.level or None,
            "count": self.count,
            "chunk_bytes": self.shape and self.shape.chunk,
            "speedup": self.speedup,
            "efficiency": self.efficiency,
            "usable_bytes": self.usable_bytes,
            "price": self.price,
            "price_per_gb": self.price_per_gb,
            "price_per_1000_iops": self.price_per_kiops,
            **self.did.as_json(),
        }


def rows_of(setup: DriveSetup, did: Mapping[ArrayShape | None, Performance]) -> list[ArrayRow]:
    """A row for the drive alone, which must be among them, and one for each array."""
    alone = did[None]
    full = float(setup.capacity_bytes or alone.capacity_bytes)
    rows = []
    for shape, performance in did.items():
        count = 1 if shape is None else shape.count
        usable = performance.capacity_bytes / alone.capacity_bytes * full
        rows.append(
            ArrayRow(
                shape,
                performance,
                performance.iops / alone.iops if alone.iops else 0.0,
                usable / (full * count),
                price=None if setup.price is None else setup.price * count,
                usable_bytes=usable,
            )
        )
    return rows
