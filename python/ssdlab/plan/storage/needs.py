"""What a buyer needs of a store, and what of it a candidate does not give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssdlab import units
from ssdlab.plan.storage.rows import StorageOffer

SHOWN = 0.005
"""What falls short by less than three figures tell is enough."""


@dataclass(frozen=True)
class Needs:
    """What a store must give; zeros ask for nothing."""

    iops: float = 0.0
    """Of each kind of random I/O, or of the load."""
    space_bytes: float = 0.0
    years: float = 0.0
    """Until its SSDs are worn out."""
    budget: float = 0.0
    """What it may cost."""

    def __bool__(self) -> bool:
        return bool(self.iops or self.space_bytes or self.years or self.budget)

    def __str__(self) -> str:
        """What it must give, in words."""
        years = units.counted(units.number(self.years), "year") if self.years else ""
        iops = f"{units.number(self.iops)} IOPS" if self.iops else ""
        space = units.size_text(self.space_bytes) if self.space_bytes else ""
        return units.listed([part for part in (iops, space, years) if part])

    def missing(self, row: StorageOffer, random: Sequence[str]) -> dict[str, str]:
        """What a candidate does not give, by ``iops``, ``space``, ``life`` and ``price``: what it
        gives instead, and what it costs."""
        found = {}
        slowest = _slowest(row, random)
        if slowest is not None and _rate(row, slowest) < self.iops * (1 - SHOWN):
            kind = "" if slowest == "load" else f"{slowest} "
            found["iops"] = f"{units.number(_rate(row, slowest))} {kind}IOPS"
        size = units.size_text(row.usable_bytes)
        if row.usable_bytes < self.space_bytes and size != units.size_text(self.space_bytes):
            found["space"] = size
        life = row.life
        if self.years and life is not None and life.written_per_host_byte > 0:
            if life.years is None:
                found["life"] = "a life that is not known"
            elif life.years < self.years * (1 - SHOWN):
                found["life"] = f"a life of {units.number(life.years)} years"
        if self.budget and row.price is None:
            found["price"] = "has no price"
        elif self.budget and row.price is not None and row.price > self.budget:
            found["price"] = f"costs {units.number(row.price)}"
        return found


NOTHING = Needs()
"""Of a buyer who compares."""


def guaranteed(row: StorageOffer, random: Sequence[str]) -> float:
    """IOPS of whichever kind of random I/O has fewest."""
    slowest = _slowest(row, random)
    return 0.0 if slowest is None else _rate(row, slowest)


def _slowest(row: StorageOffer, random: Sequence[str]) -> str | None:
    return min(random, key=lambda key: _rate(row, key), default=None)


def _rate(row: StorageOffer, key: str) -> float:
    """IOPS; of writes to all of a store of SSDs, where they are fewer."""
    rate = row.rate(key) or 0.0
    return rate if key != "write" or row.everywhere is None else min(rate, row.everywhere)
