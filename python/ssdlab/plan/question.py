"""What is asked of a plan of caches, and what it finds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ssdlab.jobfile import JobText
from ssdlab.plan.candidates import CacheGrid
from ssdlab.plan.curves import SHARES, HitCurve
from ssdlab.plan.prices import Prices
from ssdlab.plan.ram import Ram
from ssdlab.plan.rows import CLOSE, GAIN_MIN, REUSE_MIN, CacheRow, Choice, Rules
from ssdlab.plan.stores import Store
from ssdlab.plan.workload import Load
from ssdlab.tracefile import Reading

FINE = 4096
"""Block of the curve that says what data is asked for again."""
LISTS = ("blocks", "thresholds", "policies", "modes", "presets")
"""What a question lists besides sizes."""


@dataclass(frozen=True, kw_only=True)
class CacheQuestion(CacheGrid):
    """A pool, what may cache it, and the load."""

    pool: Store
    prices: Prices
    trace: Path | None = None
    reading: Reading = field(default_factory=Reading)
    fit: str = "as-is"
    job: JobText | None = None
    sampled: float = 1.0
    """Share of the addresses that the trace holds."""
    ram: Ram | None = None
    """Of the host, before the pool, each fast device and each cache alike."""
    disk_cache: bool = False
    """Whether disks acknowledge writes in their volatile caches."""
    depth: int = 32
    passes: int = 3
    seed: int = 1
    quick: bool = False
    rules: Rules = field(default_factory=Rules)


@dataclass(frozen=True)
class CachePlan:
    """The answer."""

    asked: CacheQuestion
    load: Load
    sizes: Sequence[int]
    curves: Mapping[tuple[str, int], HitCurve]
    """At all sizes for LRU, at the candidates' for other policies."""
    dropped: Sequence[str]
    """What was not simulated, and why."""
    pool: CacheRow
    rows: Sequence[CacheRow]
    """The pool, the fast devices, the caches."""
    choice: Choice
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def caches(self) -> list[CacheRow]:
        """The rows of caches."""
        return [row for row in self.rows if row.kind == "cache"]

    def rigs(self) -> dict[str, str]:
        """All storages as rigs, by the names of files: letter, size, block, policy, mode."""
        return {
            f"{re.sub(r'[^A-Za-z0-9.]+', '-', row.full).strip('-')}.toml": row.rig
            for row in self.rows
        }

    @property
    def volatile(self) -> bool:
        """Whether the pool acknowledges what a loss of power takes with it."""
        return self.asked.disk_cache and self.asked.pool.has_disk

    @property
    def main(self) -> HitCurve | None:
        """The curve that the working set is read from: LRU in blocks of 4 KiB."""
        return self.curves.get(("lru", FINE))

    def as_json(self) -> dict[str, Any]:
        """What scripts find beside the answer."""
        asked, load, choice, main = self.asked, self.load, self.choice, self.main
        stream = load.stream
        best = choice.best and choice.best.candidate
        return {
            "load": {
                "name": load.name,
                "kind": "job" if load.is_job else "trace",
                "requests": stream and len(stream),
                "reads": stream and stream.reads,
                "read_bytes": stream and stream.read_bytes,
                "write_bytes": stream and stream.write_bytes,
                "mean_request_bytes": stream and stream.mean_bytes,
                "recorded_s": load.span_s,
                "footprint_bytes": main and main.footprint,
                "first_touch_share": main and main.first_touch,
                "attainable_hit_ratio": main and main.attainable,
                "working_set_bytes": main
                and {f"{100 * share:.0f} %": main.working_set(share) for share in SHARES},
            },
            "pool": asked.pool.text,
            "caches": [store.text for store in asked.fasts],
            "disk_cache": asked.disk_cache,
            **({} if asked.ram is None else {"ram": asdict(asked.ram)}),
            "depth": asked.depth,
            "passes": len(self.pool.passes.passes),
            "seed": asked.seed,
            "currency": asked.prices.currency,
            "asked": {
                "sizes": list(self.sizes),
                **{name: list(getattr(asked, name)) for name in LISTS},
            },
            "criterion": {
                "goal": asked.rules.goal,
                "sentence": asked.rules.sentence,
                "as_good_from_share": CLOSE,
                "gain_min": GAIN_MIN,
                "reuse_min": REUSE_MIN,
                "accept_loss": asked.rules.accept_loss,
                "years_min": asked.rules.years_min,
            },
            "recommended": choice.best and choice.best.name,
            "sampled_share": asked.sampled,
            "recommended_bytes_for_the_whole": best and round(best.size / asked.sampled),
            "runners_up": [row.name for row in choice.runners],
            "refused": dict(choice.refused),
            "why_none": choice.why_none or None,
            "pays_off_only_when_repeated": choice.only_again,
            "rows": [row.as_json() for row in self.rows],
            "dropped": list(self.dropped),
            "curves": [curve.as_json() for curve in self.curves.values()],
        }
