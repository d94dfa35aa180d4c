"""Candidates beside each other: a row each, with speed, life, safety and price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssdlab.analysis.reliability import HOURS_PER_YEAR, Array, Hazards, p_loss
from ssdlab.arrays.readings import Reading
from ssdlab.errors import InputError
from ssdlab.plan.bed import Worn
from ssdlab.plan.prices import Prices
from ssdlab.plan.storage.candidates import Candidate
from ssdlab.plan.storage.loads import WRITES_PER_DAY
from ssdlab.plan.storage.measure import LOADS, Measured
from ssdlab.plan.storage.sizes import drive_of, has_disk, shape_of, shipped, usable_bytes
from ssdlab.plan.stores import Store, letter
from ssdlab.rig import capacity_of
from ssdlab.wear import WARRANTY_DAYS

FAILURES_PER_YEAR = 0.01
"""Of a drive, assumed; about 1 % in field studies of disks and of SSDs."""
UBER_DISK, UBER_SSD = 1e-15, 1e-17
"""Unrecoverable errors per bit read, as data sheets of server disks and SSDs promise."""
REBUILD_DISK, REBUILD_SSD = 100e6, 204.8e6
"""Bytes per second of a rebuild: a disk on its inner tracks; md's limit."""
REPLACE_HOURS = 24.0


@dataclass(frozen=True)
class SsdLife:
    """How long the SSDs of a candidate last."""

    of: str
    """Their name."""
    worn: Worn
    years: float | None
    """At the bytes a day that were asked for; None where the host writes nothing to them."""

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""
        return {
            "of": self.of,
            "write_amplification": self.worn.write_amplification,
            "dwpd_5_years": self.worn.dwpd,
            "written_per_host_byte": self.worn.share,
            "years": self.years,
        }


@dataclass(frozen=True)
class Offer:
    """A candidate and all that is said of it."""

    letter: str
    candidate: Candidate
    found: Measured
    usable_bytes: float
    price: float | None
    relative: float | None
    """Price by that of the first candidate."""
    life: SsdLife | None
    loss_per_year: float | None
    """The chance of losing data within a year, failures of drives alone."""

    @property
    def per_tb(self) -> float | None:
        """Price of 10^12 usable bytes."""
        return None if self.price is None else self.price / (self.usable_bytes / 1e12)

    def per_kiops(self, load: str) -> float | None:
        """Price of a thousand I/Os a second under a load."""
        iops = self.found.rates[load].iops if load in self.found.rates else 0.0
        return None if self.price is None or not iops else self.price / (iops / 1e3)

    def rate(self, load: str) -> float | None:
        """What a load is judged by: IOPS or MB/s."""
        return rate_of(self.found.rates.get(load), load)

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""
        found = self.found
        return {
            "candidate": self.candidate.text,
            "letter": self.letter,
            "title": self.candidate.title,
            "drives": self.candidate.bill,
            "usable_bytes": self.usable_bytes,
            "loads": {key: one.as_json() for key, one in found.rates.items()},
            "cold": {key: one.as_json() for key, one in found.cold.items()},
            "hit_ratio": dict(found.hits),
            "warmed": {
                key: {"seconds": one.seconds, "whole_hot_set": one.whole}
                for key, one in found.warmth.items()
            },
            "dirty_bytes": found.dirty_bytes,
            "life": None if self.life is None else self.life.as_json(),
            "loss_per_year": self.loss_per_year,
            "price": self.price,
            "relative_price": self.relative,
            "price_per_tb": self.per_tb,
            "price_per_1000_iops": {
                key: self.per_kiops(key) for key in found.rates if LOADS[key][1] == "IOPS"
            },
            "simulated": list(found.notes),
        }


def rate_of(reading: Reading | None, load: str) -> float | None:
    """IOPS or MB/s of a reading, as the load is judged."""
    if reading is None:
        return None
    return reading.iops if LOADS[load][1] == "IOPS" else reading.bytes_per_s / 1e6


def rows(
    candidates: Sequence[Candidate],
    found: Sequence[Measured],
    prices: Prices,
    writes_per_day: float = WRITES_PER_DAY,
) -> list[Offer]:
    """A row for each candidate."""
    costs = [prices.of(one.bill) for one in candidates]
    first = costs[0]
    return [
        Offer(
            letter(place),
            one,
            measured,
            usable_bytes(one.pool),
            cost,
            None if cost is None or not first else cost / first,
            _life(one, measured, writes_per_day),
            loss_per_year(one, measured.dirty_bytes > 0),
        )
        for place, (one, measured, cost) in enumerate(zip(candidates, found, costs, strict=True))
    ]


def _life(one: Candidate, found: Measured, writes_per_day: float) -> SsdLife | None:
    """Of the SSDs that are worn out first."""
    parts: list[tuple[Store, Worn]] = []
    if found.worn is not None:
        parts.append((one.pool, found.worn))
    if found.worn_cache is not None and one.fast is not None:
        parts.append((one.fast, found.worn_cache))
    lives = [
        SsdLife(drive_of(part), worn, _years(part, worn, writes_per_day)) for part, worn in parts
    ]
    return min(lives, key=lambda life: life.years or float("inf"), default=None)


def _years(part: Store, worn: Worn, writes_per_day: float) -> float | None:
    if not shipped(part):
        return None
    total = worn.dwpd * WARRANTY_DAYS * capacity_of(drive_of(part))
    daily = writes_per_day * worn.share
    return total / daily / 365 if daily > 0 else None


def loss_per_year(one: Candidate, dirty: bool) -> float | None:
    """The chance of losing data within a year; of the cache's too, where only that has some.

    None for arrays of rig files, whose drives are not known.
    """
    pool = _store_loss(one.pool)
    if pool is None or one.fast is None or not dirty:
        return pool
    fast = _store_loss(one.fast)
    return None if fast is None else 1 - (1 - pool) * (1 - fast)


def _store_loss(one: Store) -> float | None:
    if not shipped(one):
        return None
    shape, capacity = shape_of(one), float(capacity_of(drive_of(one)))
    disk = has_disk(one)
    hours = REPLACE_HOURS + capacity / (REBUILD_DISK if disk else REBUILD_SSD) / 3600
    hazards = Hazards(FAILURES_PER_YEAR / HOURS_PER_YEAR, hours, UBER_DISK if disk else UBER_SSD)
    level, count = ("0", 1) if shape is None else (shape.level, shape.count)
    level = {"linear": "0"}.get(level, level)
    if level == "10" and count == 2:
        level = "1"
    try:
        return p_loss(Array(level, count, capacity), hazards, HOURS_PER_YEAR)
    except InputError:
        return None  # an odd number of drives in RAID 10: no closed form


def assumptions() -> Mapping[str, float]:
    """What the chances of loss rest on."""
    return {
        "failures_per_drive_year": FAILURES_PER_YEAR,
        "uber_disk": UBER_DISK,
        "uber_ssd": UBER_SSD,
        "rebuild_bytes_per_s_disk": REBUILD_DISK,
        "rebuild_bytes_per_s_ssd": REBUILD_SSD,
        "replace_hours": REPLACE_HOURS,
    }
