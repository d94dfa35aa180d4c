"""What was found of a pool, of a fast device and of each cache, and which to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from ssdlab import units
from ssdlab.arrays.offer import Offer
from ssdlab.plan.bed import Found, JobOutcome, Passes
from ssdlab.plan.candidates import DEFERRING, CacheCandidate
from ssdlab.plan.lifetime import CacheLife
from ssdlab.plan.stores import Store
from ssdlab.plan.warmup import Formula, WarmUp, warm_up, warm_up_of_job

Kind = Literal["pool", "fast", "cache"]

GOALS = ("iops", "p99", "price")
CLOSE = 0.95
"""What reaches this share of the best is as good; price and size decide among those."""
STEADY = 0.02
"""Steps in which the speed with an empty cache decides among what is as good otherwise."""
GAIN_MIN = 1.1
"""A cache that is not this much better than the pool alone does not pay off."""
REUSE_MIN = 0.1
"""Attainable hit ratio below which a load asks for nothing twice."""


@dataclass(frozen=True)
class CacheRow(Offer):
    """A storage under the load."""

    kind: Kind
    name: str
    store: Store
    passes: Passes
    rig: str
    unpriced: Sequence[str]
    """Drives without a price."""
    candidate: CacheCandidate | None = None
    formula: Formula | None = None
    """The published lower bound of the warm-up, and what went into it."""
    life: CacheLife | None = None
    note: str = ""
    mark: str = ""
    """A letter for tables; of caches."""

    @property
    def full(self) -> str:
        """Its name with the letter."""
        return f"{self.mark}: {self.name}" if self.mark else self.name

    @property
    def short(self) -> str:
        """Letter, size and mode: for tables that stand beside one with the full names."""
        candidate = self.candidate
        if candidate is None:
            return self.name
        return f"{self.mark}: {units.binary(candidate.size)}, {candidate.mode or candidate.preset}"

    @cached_property
    def warm(self) -> WarmUp:
        """When it was warm; unknown without a cache."""
        if self.kind != "cache":
            return WarmUp()
        if self.passes.job:
            did = self.passes
            rate, length = did.last.did.iops, did.first.seconds
            return warm_up_of_job(did.measured, rate, length, rising=did.rising)
        return warm_up([pass_.ramp for pass_ in self.passes.passes])

    @property
    def iops(self) -> float:
        """At full speed in the last pass; of a trace in a single one on a cache without times, at
        the pace at its end."""
        last = self.passes.last
        settles = self.kind == "cache" and self.passes.recorded is None
        settles &= not self.passes.job
        if len(self.passes.passes) == 1 and settles:
            quarter_s = float(last.ramp.times(4)[-1])
            if quarter_s > 0:
                return float(last.ramp.ios.sum()) / 4 / quarter_s
        return last.did.iops

    @property
    def first_iops(self) -> float:
        """At full speed in the first pass."""
        return self.passes.first.did.iops

    def latency_ns(self, percent: float) -> float | None:
        """A percentile at recorded times, else at full speed."""
        return self.passes.calm.did.percentile_ns(percent)

    def hits(
        self, kind: str, what: Found = "hits", outcome: JobOutcome | None = None
    ) -> float | None:
        """Of the ``read``s or ``write``s, cut at blocks, the share that found all (or a part)
        of their data in the cache, in the last pass or in ``outcome``; None without any, or a
        cache."""
        return (outcome or self.passes.last).found(what, kind) if self.kind == "cache" else None

    def ram_hits(self, kind: str, outcome: JobOutcome | None = None) -> float | None:
        """Of the ``read``s or ``write``s, cut at pages, the share that found their data in RAM
        before the storage, in the last pass or in ``outcome``; None without any, or RAM."""
        return (outcome or self.passes.last).found_in_ram(kind)

    def mean_past_ram_ns(self, kind: str) -> float:
        """Mean latency of a read or write in the last pass, of those that RAM did not answer, which
        takes next to no time."""
        past = 1 - (self.ram_hits(kind) or 0.0) if kind == "read" else 1.0
        return self.passes.last.mean_ns(kind) / past if past else 0.0

    @property
    def defers(self) -> bool:
        """Whether the newest data may lie in the cache alone."""
        if self.candidate is None:
            return False
        deferred = self.passes.last.counters.get("dirty_bytes_most", 0) > 0
        return deferred or self.candidate.mode in DEFERRING

    @property
    def dirty_most(self) -> int:
        """Most bytes that lay in the cache alone, at any time."""
        most = self.passes.calm.counters.get("dirty_bytes_most", 0)
        return max(most, self.passes.dirty_recorded)

    @property
    def ram_dirty_most(self) -> int:
        """Most bytes that lay in RAM before the storage alone, at any time."""
        return self.passes.calm.front.get("dirty_bytes_most", 0)

    @property
    def price_per_kiops(self) -> float | None:
        """Of a thousand I/Os a second of this load."""
        return self.price_of_kiops(self.iops)

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``."""
        candidate, first, recorded = self.candidate, self.passes.first, self.passes.recorded
        ram = {
            "ram_read_hit_ratio": self.ram_hits("read"),
            "ram_write_hit_ratio": self.ram_hits("write"),
            "first_pass_ram_read_hit_ratio": self.ram_hits("read", first),
            "first_pass_ram_write_hit_ratio": self.ram_hits("write", first),
            "ram_dirty_bytes_most": self.ram_dirty_most,
        }
        return {
            "kind": self.kind,
            "name": self.name,
            "mark": self.mark or None,
            "storage": self.store.text,
            "cache_bytes": candidate and candidate.size,
            "keys": candidate and candidate.keys,
            "iops": self.iops,
            "clat_p50_ns": self.latency_ns(50.0),
            "clat_p99_ns": self.latency_ns(99.0),
            "clat_p999_ns": self.latency_ns(99.9),
            "read_hit_ratio": self.hits("read"),
            "write_hit_ratio": self.hits("write"),
            "read_partly_ratio": self.hits("read", "partial"),
            "first_pass_read_hit_ratio": self.hits("read", outcome=first),
            "first_pass_write_hit_ratio": self.hits("write", outcome=first),
            **(ram if first.front else {}),
            "warm_up_s": self.warm.seconds,
            "warm_up_passes": self.warm.passes,
            "still_rising": self.warm.rising,
            "still_falling": self.passes.falling,
            "dirty_bytes_grown_per_s": self.passes.deferred_per_s,
            "warm_up_formula": self.formula
            and {**asdict(self.formula), "seconds": self.formula.seconds},
            "life": self.life and asdict(self.life),
            "capacity_bytes": self.usable_bytes,
            "price": self.price,
            "without_price": list(self.unpriced),
            "price_per_gb": self.price_per_gb,
            "price_per_1000_iops": self.price_per_kiops,
            "defers_writes": self.defers,
            "dirty_bytes_most": self.dirty_most,
            "dirty_bytes_most_at_recorded_times": self.passes.dirty_recorded,
            "cache_survives_a_drive": candidate and candidate.fast.redundant,
            "first_pass": first.did.as_json(members=False),
            "last_pass": self.passes.last.did.as_json(members=False),
            "recorded_times": recorded and recorded.did.as_json(members=False),
            "note": self.note,
            "rig": self.rig,
        }


@dataclass(frozen=True)
class Rules:
    """What makes a cache the one to take."""

    goal: str = "iops"
    accept_loss: bool = False
    """Whether a single failure may lose data that the pool would have kept."""
    years_min: float = 5.0

    def value(self, row: CacheRow) -> float | None:
        """More is better; None where it is not known."""
        if self.goal == "iops":
            return row.iops
        if self.goal == "p99":
            p99 = row.latency_ns(99.0)
            return 1e9 / p99 if p99 else None
        cost = row.price_per_kiops
        return 1.0 / cost if cost else None

    @property
    def sentence(self) -> str:
        """The rules in words."""
        goal = {
            "iops": "most IOPS at full speed once warm",
            "p99": "lowest 99th percentile at recorded times",
            "price": "lowest price per 1000 IOPS",
        }[self.goal]
        loss = (
            "" if self.accept_loss else ", the loss of one drive loses nothing that the pool keeps"
        )
        return (
            f"{goal}; of those within {100 * (1 - CLOSE):.0f} % of the best the cheapest, then the "
            "smallest, then the one that is fastest with an empty cache; the cache lasts "
            f"{self.years_min:g} years or more{loss}"
        )

    def refuses(self, row: CacheRow, pool: Store) -> str | None:
        """Why a cache may not be taken; None where it may."""
        if row.candidate is None:
            return "not a cache"
        if (
            not self.accept_loss
            and row.defers
            and pool.redundant
            and not row.candidate.fast.redundant
        ):
            return "loses the newest data with one drive"
        life = row.life
        if life and life.recording_is_long_enough and life.years < self.years_min:
            return f"is worn out before {self.years_min:g} years are over"
        if self.value(row) is None:
            return "has no price" if self.goal == "price" else "was not measured"
        return None


@dataclass(frozen=True)
class Choice:
    """The row to take, those behind it, and those that may not be taken."""

    best: CacheRow | None
    """None where no cache pays off."""
    runners: Sequence[CacheRow]
    refused: Mapping[str, str]
    """Reason by name."""
    why_none: str = ""
    only_again: bool = False
    """Whether the best pays off only where the load comes again on the same data."""


def choose(
    caches: Sequence[CacheRow], pool: CacheRow, rules: Rules, attainable: float | None,
    *, close: float = CLOSE, gain: float = GAIN_MIN,
) -> Choice:  # fmt: skip
    """The cache to take; ``attainable`` is the hit ratio that the load itself allows, if known."""
    refused = {row.name: why for row in caches if (why := rules.refuses(row, pool.store))}
    good = [row for row in caches if row.name not in refused]
    ranked = _ranked(good, rules, close)
    cold = max((_times(row.first_iops, pool.first_iops) for row in caches), default=0.0)
    if attainable is not None and attainable < REUSE_MIN and cold < gain:
        return Choice(None, (ranked or _ranked(caches, rules, close))[:2], refused, "reuse")
    if not ranked:
        return Choice(None, [], refused, "every cache that was simulated is refused")
    best = ranked[0]
    if _times(rules.value(best), rules.value(pool)) < gain:
        return Choice(None, ranked[:2], refused, "gain")
    # A job goes on; it is a trace that asks for the same all over again.
    again = (
        not best.passes.job
        and len(best.passes.passes) > 1
        and _times(best.first_iops, pool.first_iops) < gain
    )
    return Choice(best, ranked[1:3], refused, only_again=again)


def near_choices(
    caches: Sequence[CacheRow], pool: CacheRow, rules: Rules, attainable: float | None, off: float
) -> list[Choice]:
    """What would be chosen with rates off by a share, where that is another outcome, each once."""
    found: dict[tuple[str, bool], Choice] = {}
    for factor in (1.0, 1 - off, 1 + off):
        for close, gain in ((min(1.0, CLOSE * factor), GAIN_MIN), (CLOSE, GAIN_MIN * factor)):
            choice = choose(caches, pool, rules, attainable, close=close, gain=gain)
            name = "" if choice.best is None else choice.best.name
            found.setdefault((name, choice.only_again), choice)
    return list(found.values())[1:]


def _times(value: float | None, base: float | None) -> float:
    return (value or 0.0) / base if base else float("inf")


def _ranked(rows: Sequence[CacheRow], rules: Rules, close: float) -> list[CacheRow]:
    """The best first; of those about as good by price, size and speed while cold."""
    left, cache_rows = list(rows), []
    while left:
        most = max(rules.value(row) or 0.0 for row in left)
        near = [row for row in left if (rules.value(row) or 0.0) >= close * most]
        cold = max(1.0, *(row.first_iops for row in near))
        best = min(
            near,
            key=lambda row: (
                float("inf") if row.price is None else row.price,
                row.candidate.size if row.candidate else 0,
                -round(row.first_iops / (STEADY * cold)),
                row.candidate.threshold or 1 if row.candidate else 1,
            ),
        )
        cache_rows.append(best)
        left.remove(best)
    return cache_rows
