"""The result of a run: the same shape whether a drive was simulated or measured.

Files and columns are described in ``docs/results.md``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from ssdlab import units
from ssdlab.errors import known_name
from ssdlab.histogram import KINDS, NOTHING, Histogram

if TYPE_CHECKING:
    from bokeh.models import LayoutDOM

    from ssdlab.analysis.measurement import Measurement
    from ssdlab.answer import Number, Verdict
    from ssdlab.api.chart import Chart
    from ssdlab.api.report import Report

DIRECTIONS = ("read", "write", "trim")
SYNC = "sync"
"""The direction of flushes: fsync, fdatasync, sync_file_range."""
SET = "set for this run"
"""The source of values of a rig that come from no source."""
TargetKind = Literal["sim", "file", "device", "unknown"]
"""``unknown``: of what others measured without saying on what."""

SERIES_SCHEMA: dict[str, type[pl.DataType]] = {
    "time_s": pl.Float64,
    "job": pl.String,
    "ddir": pl.String,
    "ios": pl.UInt64,
    "iops": pl.Float64,
    "bytes": pl.UInt64,
    "bw_bytes": pl.Float64,
    "lat_min_ns": pl.UInt64,
    "lat_mean_ns": pl.Float64,
    "lat_max_ns": pl.UInt64,
    "lat_p50_ns": pl.UInt64,
    "lat_p99_ns": pl.UInt64,
}
"""Columns every series has; simulated ones add ``part_<name>_ns``."""

LATENCY_SCHEMA = pl.Schema(
    [
        ("time_s", pl.Float64()),
        ("length_s", pl.Float64()),
        ("job", pl.String()),
        ("ddir", pl.String()),
        ("kind", pl.String()),
        ("ios", pl.UInt64()),
        ("sum_ns", pl.Float64()),
        ("min_ns", pl.UInt64()),
        ("max_ns", pl.UInt64()),
        ("bins", pl.List(pl.UInt16())),
        ("counts", pl.List(pl.UInt64())),
    ]
)
"""Columns of the latencies by segment: ``time_s`` is its end, ``bins`` are fio's indices."""
CLASS_SCHEMA = pl.Schema(
    [
        ("class_upper_ns", pl.List(pl.UInt64())),
        ("class_ios", pl.List(pl.UInt64())),
        ("class_parts_ns", pl.List(pl.UInt64())),
    ]
)
"""More of them where the target tells where the time goes: by latency class, and in the last by
class and part."""


def of_jobs(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Entries of fio's ``jobs`` without the nameless and idle one that it adds where only later
    sections of a group say group_reporting."""
    idle = {ddir: {"total_ios": 0} for ddir in DIRECTIONS}
    return [
        one
        for one in entries
        if one.get("jobname") or any((idle | dict(one))[ddir]["total_ios"] for ddir in DIRECTIONS)
    ]


@dataclass(frozen=True)
class DirectionStats:
    """What one job did in one direction, from its beginning to its end, as fio's document says."""

    job: str
    ddir: str
    ios: int
    io_bytes: int
    runtime_s: float
    iops: float
    bw_bytes: float
    raw: Mapping[str, Any] = field(repr=False)
    """The direction's object in the document."""

    @cached_property
    def latencies(self) -> Mapping[str, Histogram]:
        """By kind (:data:`ssdlab.histogram.KINDS`), as far as the document has them."""
        found = {kind: Histogram.of_document(self.raw, kind) for kind in KINDS}
        if found["lat"] is None and found["clat"] is not None and "lat_ns" in self.raw:
            # With disable_lat fio does not take the instant that slat counts from.
            found["slat"] = None
        return {kind: one for kind, one in found.items() if one is not None}

    @property
    def clat(self) -> Histogram:
        """Completion latencies: what fio shows by default, on every target."""
        return self.latencies.get("clat", NOTHING)


@dataclass(frozen=True)
class JobResult:
    """One entry of ``jobs`` in the fio document; with group_reporting, one group."""

    name: str
    raw: Mapping[str, Any]

    @property
    def error(self) -> int:
        """fio's error number; 0 is good."""
        return int(self.raw.get("error", 0))

    @property
    def options(self) -> Mapping[str, str]:
        """The job's own options, as fio lists them."""
        options: Mapping[str, str] = self.raw.get("job options", {})
        return options

    def directions(self) -> Iterator[DirectionStats]:
        """The directions in which the job did any I/O."""
        for ddir in DIRECTIONS:
            stats = self.raw.get(ddir) or {}
            if stats.get("total_ios", 0) > 0:
                yield _direction(self.name, ddir, stats)

    def sync(self) -> Histogram | None:
        """How long its flushes took (fsync, fdatasync, sync_file_range); None without any."""
        histogram = Histogram.of_document(self.raw.get("sync") or {}, "lat")
        return histogram if histogram is not None and histogram.ios else None


@dataclass(frozen=True)
class JobShape:
    """What a section of a job file is called and how it loads the target."""

    name: str
    rw: str
    """fio's word alone, without a suffix such as ``:64k``."""
    iodepth: int
    numjobs: int
    bs: str = "4k"

    @staticmethod
    def of(name: str, options: Mapping[str, str | None], iodepth: int, numjobs: int) -> JobShape:
        """Of a section with these options, those of all sections among them."""
        rw = "replay" if "read_iolog" in options else options.get("rw") or "read"
        bs = options.get("bs") or "4k"
        return JobShape(name, rw.split(":")[0].strip(), iodepth, numjobs, bs)


@dataclass(frozen=True)
class JobLogs:
    """fio's logs of one section: (``bw.1.log``, text), its threads counted from 1."""

    shape: JobShape
    files: Sequence[tuple[str, str]]


@dataclass(eq=False)
class Result:
    """What a run left: the fio JSON+ document, per-second series, and what it was run on.

    ``document`` is the fio JSON+ document with the extra object ``ssdlab``. ``name`` is the label
    used in tables and reports (the target's name unless set otherwise).
    """

    name: str
    document: dict[str, Any] = field(repr=False)
    job_text: str = field(repr=False)
    series_frame: pl.DataFrame = field(repr=False)
    device_frame: pl.DataFrame | None = field(default=None, repr=False)
    latency_frame: pl.DataFrame | None = field(default=None, repr=False)
    """Histograms of the run's segments; columns: :data:`LATENCY_SCHEMA`, of simulated runs
    also :data:`CLASS_SCHEMA`. None in old runs."""
    rig_toml: str | None = field(default=None, repr=False)
    logs: Sequence[tuple[str, str]] = field(default=(), repr=False)
    """The logs that the job itself asked for: (file name, text)."""
    job_logs: Sequence[JobLogs] = field(default=(), repr=False)
    """All of fio's logs, where the run was asked for them; not kept with the run."""
    folder: Path | None = None

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, wherever they are kept."""
        if not isinstance(other, Result):
            return NotImplemented
        return (
            (self.name, self.document, self.job_text, self.rig_toml)
            == (other.name, other.document, other.job_text, other.rig_toml)
            and [*self.logs] == [*other.logs]
            and all(
                (a is None and b is None) or (a is not None and b is not None and a.equals(b))
                for a, b in zip(self._frames(), other._frames(), strict=True)
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def _frames(self) -> tuple[pl.DataFrame | None, ...]:
        return self.series_frame, self.device_frame, self.latency_frame

    @property
    def interval_s(self) -> float:
        """Length of an interval of the series."""
        return float(self.ssdlab.get("interval_ms") or 1000) / 1000

    @property
    def ssdlab(self) -> dict[str, Any]:
        """The object ``ssdlab`` of the document: target, seed, counters, attribution."""
        found: dict[str, Any] = self.document.get("ssdlab", {})
        return found

    @property
    def imported(self) -> dict[str, Any] | None:
        """Where it was read, of a run that others measured: ``file``, ``layout``, ``sha256`` and
        what it leaves open (docs/import.md); None for those of ssdlab."""
        found: dict[str, Any] | None = self.ssdlab.get("imported")
        return found

    @property
    def resized(self) -> str:
        """`` (1.07 GB)``: the capacity of a simulated drive where the run set one, since its name
        says another; empty for others."""
        target = self.ssdlab.get("target") or {}
        values = (self.ssdlab.get("profile") or {}).get("values", [])
        given = {str(v["key"]).rpartition(".")[-1] for v in values if v.get("source") == SET}
        # In a rig without sources nothing is known of what the file said.
        sourced = any(v.get("source") != SET for v in values)
        known = sourced and "capacity" in given and "capacity_bytes" in target
        return f" ({units.number(target['capacity_bytes'], 'B')})" if known else ""

    @property
    def kind(self) -> str:
        """``"sim"`` for a simulated drive, ``"fio"`` for a real one."""
        return str(self.ssdlab.get("target", {}).get("kind", "fio"))

    @property
    def target_kind(self) -> TargetKind:
        """The same, where a plain file is told from a device."""
        if self.kind == "sim":
            return "sim"
        if (imported := self.imported) is not None and "target_kind" in imported:
            told: TargetKind = imported["target_kind"]
            return told
        known = self.ssdlab.get("surroundings") or {}
        is_file = "file_system" in known or "file" in (known.get("observed") or {})
        return "file" if is_file else "device"

    @property
    def jobs(self) -> list[JobResult]:
        """The jobs, in the order of the document."""
        return [JobResult(str(raw.get("jobname", "")), raw) for raw in self.document["jobs"]]

    @property
    def attribution(self) -> dict[str, Any] | None:
        """Where the time went (see docs/results.md); None for a real drive, which cannot tell."""
        found: dict[str, Any] | None = self.ssdlab.get("attribution")
        return found

    @property
    def waf(self) -> float | None:
        """Write amplification over the whole run; None where it is not known."""
        found = self.ssdlab.get("waf")
        return None if found is None else float(found)

    @cached_property
    def measurement(self) -> Measurement:
        """Rates, latencies and write amplification of each job, over its measurement window."""
        from ssdlab.analysis.measurement import measure

        return measure(self)

    def summary(self) -> list[dict[str, Any]]:
        """The numbers of the run, one entry per job and direction: what every command shows.

        Each is of the job's measurement window (``window_s``, seconds since the job began): from
        where it is steady (``steady``), else the whole job. See docs/results.md.
        """
        return self.measurement.summary()

    def frame(self) -> pl.DataFrame:
        """One row per job and direction, of the whole job as fio's document has it: counts, rates,
        completion latencies. :meth:`summary` has those of the measurement window."""
        sides = [stats for job in self.jobs for stats in job.directions()]
        columns = {name: [value(side) for side in sides] for name, (_, value) in _FRAME.items()}
        return pl.DataFrame(columns, schema={name: kind for name, (kind, _) in _FRAME.items()})

    def series(self, job: str | None = None, ddir: str | None = None) -> pl.DataFrame:
        """The job series, one row per interval, job and direction; optionally only some of it.

        Raises InputError where there is no such job or direction."""
        frame = self.series_frame
        if job is not None:
            known_name(
                "job of this run", job, [*frame["job"].unique(), *(one.name for one in self.jobs)]
            )
            frame = frame.filter(pl.col("job") == job)
        if ddir is not None:
            known_name("direction", ddir, (*DIRECTIONS, SYNC))
            frame = frame.filter(pl.col("ddir") == ddir)
        return frame

    def device_series(self) -> pl.DataFrame | None:
        """The device's cumulative counters, one row per interval and where a job begins or ends;
        None for a real drive."""
        return self.device_frame

    def json(self, indent: int | None = 2) -> str:
        """The document as JSON text, the way ``fio --output-format=json+`` writes it, with
        :meth:`summary` in its object ``ssdlab``."""
        return json.dumps(self.told(), indent=indent)

    def told(self) -> dict[str, Any]:
        """The document with the summary."""
        return {**self.document, "ssdlab": {**self.ssdlab, "summary": self.summary()}}

    def save(self, root: Path | str | None = None) -> Path:
        """Stores the run as a folder under ``root`` (default: the user's store); its path."""
        from ssdlab.store import RunStore

        return RunStore(root).save(self)

    @staticmethod
    def load(folder: Path | str) -> Result:
        """Reads the stored run of a job file."""
        from ssdlab.store import open_run

        return open_run(Path(folder)).result()

    @cached_property
    def report(self) -> Report:
        """What it says, as commands and pages show it: tables, charts, doubts."""
        from ssdlab.api.report import of_results

        return of_results([self])

    @property
    def numbers(self) -> dict[str, Number]:
        """The few numbers that it is about, by name (:attr:`ssdlab.Report.numbers`)."""
        return self.report.numbers

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """What is found of the run and of each job (:attr:`ssdlab.Report.verdicts`)."""
        return self.report.verdicts

    def plot(self, title: str | None = None) -> LayoutDOM:
        """A chart of it, as :meth:`ssdlab.Report.plot`."""
        return self.report.plot(title)

    def chart(self, title: str) -> Chart:
        """A chart of it, as :meth:`ssdlab.Report.chart`."""
        return self.report.chart(title)

    def page(self, path: str | Path, *, title: str | None = None) -> None:
        """Writes its page, as :meth:`ssdlab.Report.page`."""
        self.report.page(path, title=title)

    def _repr_html_(self) -> str:
        """The first screen of its page, for notebooks."""
        return self.report._repr_html_()


_FRAME: dict[str, tuple[type[pl.DataType], Callable[[DirectionStats], Any]]] = {
    "job": (pl.String, lambda stats: stats.job),
    "ddir": (pl.String, lambda stats: stats.ddir),
    "ios": (pl.UInt64, lambda stats: stats.ios),
    "io_bytes": (pl.UInt64, lambda stats: stats.io_bytes),
    "runtime_s": (pl.Float64, lambda stats: stats.runtime_s),
    # What took no time has no rate; the 0 of the document would read as a standstill.
    "iops": (pl.Float64, lambda stats: stats.iops if stats.runtime_s else None),
    "bw_bytes": (pl.Float64, lambda stats: stats.bw_bytes if stats.runtime_s else None),
    "clat_mean_ns": (pl.Float64, lambda stats: stats.clat.mean_ns),
    "clat_p50_ns": (pl.Float64, lambda stats: stats.clat.percentile_ns(50.0)),
    "clat_p99_ns": (pl.Float64, lambda stats: stats.clat.percentile_ns(99.0)),
    "clat_p999_ns": (pl.Float64, lambda stats: stats.clat.percentile_ns(99.9)),
    "clat_max_ns": (pl.Float64, lambda stats: stats.clat.max_ns if stats.clat.ios else None),
}
"""Columns of :meth:`Result.frame`: type, and where the value is found."""


def _direction(job: str, ddir: str, raw: Mapping[str, Any]) -> DirectionStats:
    return DirectionStats(
        job=job,
        ddir=ddir,
        ios=int(raw["total_ios"]),
        io_bytes=int(raw["io_bytes"]),
        runtime_s=float(raw.get("runtime", 0)) / 1000.0,
        iops=float(raw["iops"]),
        bw_bytes=float(raw["bw_bytes"]),
        raw=raw,
    )
