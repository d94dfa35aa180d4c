"""What the finished steps of a protocol's run have left, by their keys."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from ssdlab.analysis.steady import PtsWindow, pts_window
from ssdlab.histogram import Histogram, merge, us
from ssdlab.results import DirectionStats, Result

KEPT = 128
"""Results held in memory at a time."""


@dataclass(frozen=True)
class RoundsRecord:
    """What the rounds of a test came to."""

    key: str
    title: str
    count: int
    values: Mapping[str, list[float]]
    """By tracked name, a value for each round."""
    units: Mapping[str, str]
    window: int
    most: int
    keys: tuple[str, ...] = ()
    """Of the jobs of all rounds."""

    @property
    def steady(self) -> bool:
        """Whether the last rounds were steady in every tracked value."""
        return self.count >= self.window and all(w.steady for w in self.windows().values())

    def first_of_window(self) -> int:
        """The first round (from 1) of the measurement window: of the last rounds."""
        return max(1, self.count - self.window + 1)

    def window_rounds(self) -> range:
        """The rounds of the measurement window."""
        return range(self.first_of_window(), self.count + 1)

    def keys_of(self, rounds: range) -> tuple[str, ...]:
        """The keys of the jobs of some rounds; each round has as many."""
        each = len(self.keys) // self.count if self.count else 0
        return self.keys[each * (rounds.start - 1) : each * (rounds.stop - 1)]

    def windows(self) -> dict[str, PtsWindow]:
        """The measurement window of each tracked value; empty while there are too few rounds."""
        if self.count < self.window:
            return {}
        return {name: pts_window(v[-self.window :]) for name, v in self.values.items()}


@dataclass
class Records(Mapping[str, Result]):
    """Results by the key of their job, in the order in which they were measured."""

    load: Callable[[str], Result]
    """Reads the result of a key from where it is kept."""
    keys_: list[str] = field(default_factory=list)
    rounds: dict[str, RoundsRecord] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """What steps that leave no result had to say: how the drive was purged."""
    _cache: OrderedDict[str, Result] = field(default_factory=OrderedDict)

    def __getitem__(self, key: str) -> Result:
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        if key not in self.keys_:
            raise KeyError(key)
        self._cache[key] = found = self.load(key)
        if len(self._cache) > KEPT:
            self._cache.popitem(last=False)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys_)

    def __len__(self) -> int:
        return len(self.keys_)

    def add(self, key: str, result: Result) -> None:
        """Notes a result that has just been measured."""
        self.keys_.append(key)
        self._cache[key] = result

    def directions(
        self, key: str, ddir: str | None = None, job: str | None = None
    ) -> list[DirectionStats]:
        """What the jobs of a step did, by job and direction."""
        return [
            stats
            for one in self[key].jobs
            if job in (None, one.name)
            for stats in one.directions()
            if ddir in (None, stats.ddir)
        ]

    def iops(self, key: str, ddir: str | None = None, job: str | None = None) -> float:
        """I/Os per second of a step: reads and writes added up unless ``ddir`` names one."""
        return sum(stats.iops for stats in self.directions(key, ddir, job))

    def mbps(self, key: str, ddir: str | None = None, job: str | None = None) -> float:
        """10^6 bytes per second of a step."""
        return sum(stats.bw_bytes for stats in self.directions(key, ddir, job)) / 1e6

    def latency(
        self, key: str, ddir: str | None = None, job: str | None = None
    ) -> Histogram | None:
        """Completion latencies of a step; None where there was no I/O."""
        return merge(stats.clat for stats in self.directions(key, ddir, job))

    def mean_us(self, key: str, ddir: str | None = None, job: str | None = None) -> float | None:
        """Mean completion latency of a step, us; None where there was no I/O."""
        found = self.latency(key, ddir, job)
        return None if found is None else us(found.mean_ns)

    def max_us(self, key: str, ddir: str | None = None, job: str | None = None) -> float | None:
        """The largest completion latency of a step, us; None where there was no I/O."""
        found = self.latency(key, ddir, job)
        return None if found is None else us(found.max_ns)

    def percentile_us(
        self, key: str, percent: float, ddir: str | None = None, job: str | None = None
    ) -> float | None:
        """The latency that ``percent`` of the I/Os of a step did not exceed, us (+-0.8 %)."""
        found = self.latency(key, ddir, job)
        return None if found is None else found.percentile_us(percent)

    def series(self, key: str, ddir: str | None = None, job: str | None = None) -> pl.DataFrame:
        """The series of a step; columns as in ``docs/results.md``."""
        return self[key].series(job=job, ddir=ddir)

    def ssdlab(self, key: str) -> dict[str, Any]:
        """The object ``ssdlab`` of a step's result."""
        return self[key].ssdlab

    def mean_over(self, keys: list[str], what: Callable[[str], float | None]) -> float | None:
        """Mean of a value over several steps, such as the rounds of a window."""
        found = [value for key in keys if (value := what(key)) is not None]
        return sum(found) / len(found) if found else None
