"""What the finished steps of a protocol's run have left, by their keys."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from ssdlab.analysis.measurement import NEAR, together
from ssdlab.analysis.series import per_second, start_s
from ssdlab.analysis.steady import PtsWindow, pts_window
from ssdlab.answer import Cell
from ssdlab.histogram import Histogram, merge, us
from ssdlab.numeric import Floats
from ssdlab.results import DirectionStats, Result
from ssdlab.smart.change import amplification
from ssdlab.wear import Stretch

Keys = str | Sequence[str]
"""The key of a step, or those of several."""
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
    jobs: Mapping[str, str] = field(default_factory=dict)
    """By tracked name, the job of each round that it is of, where it is of one."""

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

    def keys_of(self, name: str, rounds: range) -> tuple[str, ...]:
        """The keys of the jobs that a tracked value is of in some rounds; each has as many."""
        each = len(self.keys) // self.count if self.count else 0
        keys = self.keys[each * (rounds.start - 1) : each * (rounds.stop - 1)]
        job = self.jobs.get(name)
        return tuple(key for key in keys if job is None or key.rpartition("/")[2] == job)

    def windows(self) -> dict[str, PtsWindow]:
        """The measurement window of each tracked value; empty while there are too few rounds."""
        if self.count < self.window:
            return {}
        return {name: pts_window(v[-self.window :]) for name, v in self.values.items()}


@dataclass(frozen=True)
class Series:
    """What a step did in each interval, on its own clock; intervals without I/O are zeros."""

    time: Floats
    """Ends of the intervals, seconds since the step began."""
    iops: Floats
    mbps: Floats
    written: Floats
    """Bytes moved up to the end of each interval."""
    step: float
    """Length of an interval, seconds."""

    def records(self, seconds: float) -> tuple[Floats, Floats, Floats]:
        """Means over records of so many seconds: their ends, IOPS and MB/s; a last one of less than
        half of that is left out."""
        each = max(1, round(seconds / self.step))
        whole = len(self.time) // each
        cuts = [slice(n * each, (n + 1) * each) for n in range(whole)]
        if len(self.time) - whole * each >= each / 2:
            cuts.append(slice(whole * each, len(self.time)))
        return (
            np.array([self.time[cut][-1] for cut in cuts]),
            np.array([self.iops[cut].mean() for cut in cuts]),
            np.array([self.mbps[cut].mean() for cut in cuts]),
        )


@dataclass
class Records(Mapping[str, Result]):
    """Results by the key of their job, in the order in which they were measured; values are None
    where a step was not run or moved nothing. ``ddir`` and ``job`` pick a direction and one of the
    jobs of a step; without them it is all that the step did."""

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
        self._cache[key] = result = self.load(key)
        if len(self._cache) > KEPT:
            self._cache.popitem(last=False)
        return result

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
        """What the jobs of a step did, by job and direction; nothing where it was not run."""
        return [
            stats
            for result in (self[key].jobs if key in self.keys_ else ())
            if job in (None, result.name)
            for stats in result.directions()
            if ddir in (None, stats.ddir)
        ]

    def iops(self, key: str, ddir: str | None = None, job: str | None = None) -> float | None:
        """I/Os per second of a step: reads and writes added up unless ``ddir`` names one."""
        return sum(stats.iops for stats in self.directions(key, ddir, job)) or None

    def mbps(self, key: str, ddir: str | None = None, job: str | None = None) -> float | None:
        """10^6 bytes per second of a step."""
        return sum(stats.bw_bytes for stats in self.directions(key, ddir, job)) / 1e6 or None

    def written(self, key: str) -> int:
        """Bytes that a step wrote."""
        return sum(stats.io_bytes for stats in self.directions(key, "write"))

    def passes(self, key: str, length: int) -> float:
        """How often a step wrote a range of so many bytes, as far as steady state asks for it:
        hard disks are no slower where they wrote before, so that any writes are enough."""
        return math.inf if self.on_disks(key) else self.written(key) / length

    def on_disks(self, key: str) -> bool:
        """Whether a step ran on hard disks alone."""
        about = self.ssdlab(key) if key in self.keys_ else {}
        simulated = any(name.endswith("heads_busy_ns") for name in about.get("counters") or {})
        drive = (about.get("surroundings") or {}).get("drive") or {}
        return (simulated and not about.get("built")) or bool(drive.get("rotational"))

    def runtime_s(self, key: str) -> float:
        """How long a step did I/O, seconds."""
        return max((stats.runtime_s for stats in self.directions(key)), default=0.0)

    def latency(
        self, keys: Keys, ddir: str | None = None, job: str | None = None
    ) -> Histogram | None:
        """Completion latencies of a step, or of several together."""
        return merge(s.clat for key in _each(keys) for s in self.directions(key, ddir, job))

    def latency_from(
        self, key: str, from_s: float, ddir: str | None = None
    ) -> tuple[float, Histogram | None]:
        """Completion latencies of a step from an instant of its clock on, and where they begin:
        they are kept by segments, so with that in which it lies. None where nobody kept them."""
        rows, frame = self._rows(key, ddir), self[key].latency_frame
        if frame is None or rows.is_empty():
            return from_s, None
        own = frame.filter(
            (pl.col("kind") == "clat") & pl.col("ddir").is_in(rows["ddir"].unique().to_list())
        ).with_columns(begins=pl.col("time_s") - pl.col("length_s") - self._start_s(key, rows))
        before = own.filter(pl.col("begins") <= from_s + NEAR)
        if before.is_empty():
            return from_s, None
        begin = float(before["begins"].max())  # type: ignore[arg-type]
        return begin, together(own.filter(pl.col("begins") >= begin - NEAR))

    def value(
        self, what: str, keys: Keys, ddir: str | None = None, job: str | None = None
    ) -> float | None:
        """A quantity of a step: ``iops``, ``mbps``, of its latencies (us) ``mean``, ``max`` or a
        percentile such as ``p99.9``, or ``waf``, its write amplification; ``flush max`` is of its
        flushes, ``commit p99`` of write and flush together.

        Of several steps rates are the mean, one that moved nothing included; all else is of their
        I/Os together.
        """
        there = [key for key in _each(keys) if key in self.keys_]
        if what in ("iops", "mbps"):
            rates = [(self.iops if what == "iops" else self.mbps)(key, ddir, job) for key in there]
            return sum(rate or 0.0 for rate in rates) / len(rates) or None if rates else None
        if what == "waf":
            return self._waf(there)
        of, _, quantity = what.rpartition(" ")
        if of == "commit":
            return self._commit(float(quantity.removeprefix("p")), there, job)
        return time_us(self.sync(there) if of else self.latency(there, ddir, job), quantity)

    def _commit(self, percent: float, keys: Sequence[str], job: str | None) -> float | None:
        """An upper bound of the latency of write and flush together that so many percent keep, us.

        fio times the two apart. At most (100 - percent)/2 % of the writes and as many of the
        flushes are above their own percentiles, so at most 100 - percent % are above the sum.
        """
        each = f"p{100 - (100 - percent) / 2}"
        write = time_us(self.latency(keys, "write", job), each)
        flush = time_us(self.sync(keys), each)
        return None if write is None or flush is None else write + flush

    def _waf(self, keys: Sequence[str]) -> float | None:
        """Of a simulated drive by its counters, of a real one by those that it tells."""
        programmed = written = 0.0
        for key in keys:
            told = self[key].waf
            if told is None:
                told = amplification(self.ssdlab(key).get("surroundings", {}))
            own = self.written(key)
            if told is not None:
                programmed, written = programmed + told * own, written + own
        return programmed / written if written else None

    def waf_from(self, key: str, from_s: float) -> float | None:
        """Write amplification of a step from an instant of its clock on; None where nobody counts
        while it runs."""
        rows = self._rows(key, "write")
        if rows.is_empty():
            return None
        return Stretch.of(self[key], self._start_s(key, rows) + from_s).amplification

    def cell(self, what: str, keys: Keys, ddir: str | None = None, job: str | None = None) -> Cell:
        """A quantity (:meth:`value`) that knows its steps."""
        return Cell(self.value(what, keys, ddir, job), tuple(_each(keys)))

    def sync(self, keys: Keys) -> Histogram | None:
        """How long the flushes of a step took (fio's ``sync``), or of several together."""
        there = [key for key in _each(keys) if key in self.keys_]
        return merge(job.sync() for key in there for job in self[key].jobs)

    def series(self, key: str, ddir: str | None = None, job: str | None = None) -> Series | None:
        """The series of a step on its own clock."""
        if key not in self.keys_:
            return None
        rows = self._rows(key, ddir, job)
        if rows.is_empty():
            return None
        step = self[key].interval_s
        frame = per_second(rows, step, self._start_s(key, rows), bin_s=step)
        return Series(
            time=frame["time_s"].to_numpy(),
            iops=frame["iops"].to_numpy(),
            mbps=frame["bw_bytes"].to_numpy() / 1e6,
            written=np.cumsum(frame["bytes"].to_numpy()),
            step=step,
        )

    def _rows(self, key: str, ddir: str | None, job: str | None = None) -> pl.DataFrame:
        rows = self[key].series(job=job, ddir=ddir)
        return rows if ddir is not None else rows.filter(rows["ddir"].is_in(["read", "write"]))

    def _start_s(self, key: str, rows: pl.DataFrame) -> float:
        """When the step began on the clock of its series: what the result says, if plausible."""
        jobs = self.ssdlab(key).get("jobs", [])
        starts = [float(one["started_s"]) for one in jobs if "started_s" in one]
        told = min(starts, default=float("inf"))
        first = float(rows["time_s"].min())  # type: ignore[arg-type]
        return told if told <= first else start_s(rows, self[key].interval_s)

    def ssdlab(self, key: str) -> dict[str, Any]:
        """The object ``ssdlab`` of a step's result."""
        return self[key].ssdlab


def _each(keys: Keys) -> Sequence[str]:
    return (keys,) if isinstance(keys, str) else keys


def time_us(latencies: Histogram | None, what: str) -> float | None:
    """The ``mean``, ``max`` or a percentile such as ``p99.9`` of latencies, in us."""
    if latencies is None:
        return None
    if what.startswith("p"):
        return latencies.percentile_us(float(what[1:]))
    return us({"mean": latencies.mean_ns, "max": latencies.max_ns}[what])
