"""Candidates beside each other: a row each, with speed, life, safety and price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ssdlab.analysis.reliability import HOURS_PER_YEAR, Array, Hazards, p_loss
from ssdlab.answer import Check
from ssdlab.arrays.offer import Offer
from ssdlab.engine.ratings import of_profile
from ssdlab.errors import InputError
from ssdlab.plan.bed import SsdWear
from ssdlab.plan.prices import Prices
from ssdlab.plan.storage.candidates import Candidate
from ssdlab.plan.storage.loads import WRITES_PER_DAY
from ssdlab.plan.storage.measure import LOADS, CandidateRun
from ssdlab.plan.stores import Store, letter
from ssdlab.rating import UBER, UBER_MORE, uber
from ssdlab.rig import profile
from ssdlab.wear import WARRANTY_DAYS

FAILURES_PER_YEAR = 0.01
"""Of a drive, assumed; about 1 % in field studies of disks and of SSDs."""
REBUILD_DISK, REBUILD_SSD = 100e6, 204.8e6
"""Bytes per second of a rebuild: a disk on its inner tracks; md's limit."""
REPLACE_HOURS = 24.0


@dataclass(frozen=True)
class SsdLife(SsdWear):
    """How long the SSDs of a candidate last."""

    of: str
    """Their name."""
    years: float | None
    """At the bytes a day that were asked for; None where the host writes nothing to them."""


@dataclass(frozen=True)
class StorageOffer(Offer):
    """A candidate and all that is said of it."""

    letter: str
    candidate: Candidate
    did: CandidateRun
    relative: float | None
    """Price by that of the first candidate."""
    life: SsdLife | None
    """By writes all over the store where they were run: those of a small hot set are spared most
    of the copying."""
    life_hot: SsdLife | None
    """By those in the hot set."""
    loss_per_year: float | None
    """The chance of losing data within a year, failures of drives alone."""

    def per_kiops(self, load: str) -> float | None:
        """Price of a thousand I/Os a second under a load."""
        performance = self.did.rates.get(load)
        return None if performance is None else self.price_of_kiops(performance.iops)

    @property
    def everywhere(self) -> float | None:
        """IOPS of random writes all over a store of SSDs; None where they were not run."""
        return None if self.did.everywhere is None else self.did.everywhere.iops

    @property
    def doubts(self) -> list[Check]:
        """What puts its numbers in doubt, under its letter; known of loads of the user's own on
        SSDs without a cache."""
        return [
            replace(check, title=f"{self.letter}: {check.title}", affects=(self.letter,))
            for did in self.did.rates.values()
            for check in did.troubles
        ]

    def rate(self, load: str, *, cold: bool = False) -> float | None:
        """What a load is judged by, IOPS or MB/s; None where it was not run."""
        performance = (self.did.cold if cold else self.did.rates).get(load)
        if performance is None:
            return None
        return performance.iops if LOADS[load][1] == "IOPS" else performance.bytes_per_s / 1e6

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""
        did = self.did
        return {
            "candidate": self.candidate.text,
            "letter": self.letter,
            "title": self.candidate.title,
            "drives": self.candidate.bill,
            "usable_bytes": self.usable_bytes,
            "loads": {key: rate.as_json() for key, rate in did.rates.items()},
            "write_everywhere": did.everywhere and did.everywhere.as_json(),
            "cold": {key: performance.as_json() for key, performance in did.cold.items()},
            "hit_ratio": dict(did.hits),
            "warmed": {key: warmth.as_json() for key, warmth in did.warmth.items()},
            "dirty_bytes": did.dirty_bytes,
            "life": self.life and asdict(self.life),
            "life_in_hot_set": self.life_hot and asdict(self.life_hot),
            "loss_per_year": self.loss_per_year,
            "price": self.price,
            "relative_price": self.relative,
            "price_per_tb": self.price_per_tb,
            "price_per_1000_iops": {
                key: self.per_kiops(key) for key in did.rates if LOADS[key][1] == "IOPS"
            },
            "simulated": list(did.notes),
        }


def rows(
    candidates: Sequence[Candidate],
    runs: Sequence[CandidateRun],
    prices: Prices,
    writes_per_day: float = WRITES_PER_DAY,
) -> list[StorageOffer]:
    """A row for each candidate."""
    first = prices.of(candidates[0].bill)
    table = []
    for place, (candidate, did) in enumerate(zip(candidates, runs, strict=True)):
        cost = prices.of(candidate.bill)
        table.append(
            StorageOffer(
                letter(place),
                candidate,
                did,
                None if cost is None or not first else cost / first,
                _life(candidate, did.worn_everywhere or did.worn, did.worn_cache, writes_per_day),
                _life(candidate, did.worn, did.worn_cache, writes_per_day),
                loss_per_year(candidate, did.dirty_bytes > 0),
                price=cost,
                usable_bytes=candidate.pool.usable_bytes,
            )
        )
    return table


def _life(
    candidate: Candidate, store: SsdWear | None, cache: SsdWear | None, writes_per_day: float
) -> SsdLife | None:
    """Of the SSDs that are worn out first."""
    lives = [
        SsdLife(**asdict(own), of=part.drive, years=_years(part, own, writes_per_day))
        for part, worn in zip(candidate.stores, (store, cache), strict=False)
        if worn is not None
        for own in [_at_full_size(part, worn)]
    ]
    return min(lives, key=lambda life: life.years or float("inf"), default=None)


def _at_full_size(part: Store, worn: SsdWear) -> SsdWear:
    rating = of_profile(profile(part.drive), part.drive_bytes) if part.shipped else None
    if rating is None:
        return worn
    total = rating.bytes / worn.write_amplification
    return replace(worn, dwpd_5_years=total / part.drive_bytes / WARRANTY_DAYS)


def _years(part: Store, worn: SsdWear, writes_per_day: float) -> float | None:
    if not part.shipped:
        return None
    total = worn.dwpd_5_years * WARRANTY_DAYS * part.drive_bytes
    daily = writes_per_day * worn.written_per_host_byte
    return total / daily / 365 if daily > 0 else None


def loss_per_year(candidate: Candidate, dirty: bool) -> float | None:
    """The chance of losing data within a year; of the cache's too, where only that has some; None
    for arrays of rig files, whose drives are not known."""
    pool = _store_loss(candidate.pool)
    if pool is None or candidate.fast is None or not dirty:
        return pool
    fast = _store_loss(candidate.fast)
    return None if fast is None else 1 - (1 - pool) * (1 - fast)


def _store_loss(store: Store) -> float | None:
    if not store.shipped:
        return None
    shape, capacity = store.shape, float(store.drive_bytes)
    disk = store.has_disk
    hours = REPLACE_HOURS + capacity / (REBUILD_DISK if disk else REBUILD_SSD) / 3600
    assert store.profile is not None
    errors, _kind = uber(profile(store.profile).rig().drive_class, disk=disk)
    hazards = Hazards(FAILURES_PER_YEAR / HOURS_PER_YEAR, hours, errors)
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
        "uber_disk": UBER_MORE,
        "uber_ssd": UBER,
        "uber_client_ssd": UBER_MORE,
        "rebuild_bytes_per_s_disk": REBUILD_DISK,
        "rebuild_bytes_per_s_ssd": REBUILD_SSD,
        "replace_hours": REPLACE_HOURS,
    }
