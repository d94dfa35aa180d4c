"""Candidates of a purchase under one load, beside each other: ``ssdlab plan storage``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ssdlab import units
from ssdlab.answer import Answer, marked
from ssdlab.arrays.grid import depends_on_size
from ssdlab.plan.prices import Prices
from ssdlab.plan.rounds import Rounds
from ssdlab.plan.storage.candidates import Candidate
from ssdlab.plan.storage.loads import WRITES_PER_DAY
from ssdlab.plan.storage.measure import CandidateRun, TableLoads, measured
from ssdlab.plan.storage.needs import NOTHING, Needs
from ssdlab.plan.storage.own import OwnLoad
from ssdlab.plan.storage.rows import assumptions, rows
from ssdlab.plan.storage.tables import chapter

WHOLE = 1 << 62
"""A hot set that is larger than any store fills it."""


@dataclass(frozen=True)
class StoragePlanner:
    """Candidates, the load, and what they cost."""

    candidates: Sequence[Candidate]
    load: TableLoads | OwnLoad
    prices: Prices
    writes_per_day: float = WRITES_PER_DAY
    needs: Needs = NOTHING

    @property
    def subject(self) -> str:
        """What it is about, for the line of progress."""
        return units.counted(len(self.candidates), "candidate")

    def variants(self) -> Rounds[list[CandidateRun]]:
        """What each candidate does."""
        return measured(self.candidates, self.load.pieces)

    def judge(self, runs: Sequence[CandidateRun]) -> Answer:
        """The candidates beside each other."""
        table = rows(self.candidates, runs, self.prices, self.writes_per_day)
        said = chapter(table, self.prices, self.writes_per_day, self.needs)
        rough = ", quick run: rough" if self.load.quick else ""
        caches = "on" if self.load.disk_cache else "off"
        notes = [f"{self._load_text()}; volatile caches of disks {caches}{rough}"]
        smaller = dict.fromkeys(note for run in runs for note in run.notes)
        notes += [f"simulated smaller: {'; '.join(smaller)}"] if smaller else []
        if smaller and isinstance(self.load, OwnLoad) and (why := depends_on_size(self.load.job)):
            notes.append(why)
        checks = [check for row in table for check in row.doubts]
        own = {self.load.job.name: self.load.job.text} if isinstance(self.load, OwnLoad) else {}
        return Answer(
            "Which storage to buy",
            "plan",
            [said],
            checks=checks,
            marks=marked(checks, ()),
            notes=notes,
            texts=own | {candidate.text: candidate.rig() for candidate in self.candidates},
            data={**self._asked(), "candidates": list(said.rows)},
        )

    def _load_text(self) -> str:
        if isinstance(self.load, OwnLoad):
            return self.load.job.name.removesuffix(".fio")
        hot, where = self.load.hot, "all of the store"
        if hot.bytes < WHOLE:
            place = "all over the store" if hot.spread else "at its beginning"
            where = f"a hot set of {units.number(hot.bytes / 1e9)} GB {place}"
        return (
            f"4 KiB at random with {self.load.depth} in flight in {where}; 1 MiB sequential with 32"
        )

    def _asked(self) -> dict[str, Any]:
        """What was asked, for scripts."""
        load = self.load
        own, hot = (load.job, None) if isinstance(load, OwnLoad) else (None, load.hot)
        return {
            "load": self._load_text(),
            "job": own and own.text,
            "depth": load.depth,
            "hot_bytes": None if hot is None or hot.bytes >= WHOLE else hot.bytes,
            "hot_spread": hot and hot.spread,
            "seed": load.seed,
            "quick": load.quick,
            "disk_cache": load.disk_cache,
            "writes_per_day_bytes": self.writes_per_day,
            "needs": asdict(self.needs) if self.needs else None,
            "currency": self.prices.currency,
            "prices": self.prices.source,
            "loss_assumes": dict(assumptions()),
        }
