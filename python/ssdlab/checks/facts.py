"""The facts of a result that checks look at, taken out of it once and small enough to keep."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from ssdlab import _core
from ssdlab.analysis.comparison import Workload, until, workloads
from ssdlab.analysis.measurement import RateNoise, Window, rate_noise, rate_trend
from ssdlab.analysis.stats import Estimate
from ssdlab.checks.warming import NOTHING, Regions, Yet, yet_to_come
from ssdlab.errors import InputError
from ssdlab.results import DIRECTIONS, Result
from ssdlab.wear import by_path, unanswered

_FILES = frozenset({"filename", "directory", "nrfiles", "filename_format", "read_iolog"})
"""Options that say what files are called: the target stands for all of them."""
GAP = 1.5
"""A row that covers more than so many intervals has swallowed one."""
TOGETHER = 0.5
"""Rows whose ends are nearer than this share of an interval belong together."""


@dataclass(frozen=True)
class Sampling:
    """What the series of one direction of a job looks like."""

    seconds: float
    """Length of the series."""
    zero_s: float
    """Time of intervals in which nothing completed."""
    gap_s: float
    """Time by which rows cover more than their interval."""
    longest_gap_s: float
    first: float
    """Mean IOPS of the first quarter."""
    last: float
    """Mean IOPS of the last quarter."""


@dataclass(frozen=True)
class Moved:
    """What a job did in one direction."""

    ddir: str
    ios: int
    bytes: int
    bw_bytes: float
    lat_mean_ns: float
    short_ios: int
    drop_ios: int
    sampling: Sampling | None


@dataclass(frozen=True)
class JobFacts(Workload):
    """One job name of a fio run, with all its workers, and what they did."""

    error: int
    cpu_percent: float
    """User and system time of a worker, percent of one processor."""
    moved: tuple[Moved, ...]
    regions: Regions
    """Offset and length in bytes of what each worker works on, each once; none where nobody can
    tell."""
    window: Window | None = None
    """Where its numbers are from; None where nobody asked."""
    noise: RateNoise | None = None
    """How sure its rate is; None where nobody asked or can tell."""
    trend: Estimate | None = None
    """What a steady rate would change by in as long again; None where nobody asked or can tell."""
    copied: float = 0.0
    """Bytes that collection copies for each that is written, in the window; 0 where nobody asked
    or counts."""
    warming: Yet = NOTHING
    """What caches and tiers had yet to do in a steady window; nothing where nobody asked."""
    known: bool = True
    """Whether its options are: a document of others may not list them."""
    timed: bool = True
    """Whether fio told the processor time of its workers."""

    @property
    def offset(self) -> int:
        """Where the first worker begins."""
        return min((offset for offset, _ in self.regions), default=0)

    @property
    def length(self) -> int | None:
        """Bytes from there to the end of the last; None where nobody can tell."""
        ends = [offset + length for offset, length in self.regions]
        return max(ends) - self.offset if ends else None

    @property
    def direct(self) -> bool:
        """Whether it goes past the page cache; fio's default does not."""
        if self.option("buffered"):
            return not self.flag("buffered")
        return self.flag("direct") or self.flag("atomic")

    def direction(self, ddir: str) -> Moved | None:
        """What it did in one direction; None without any I/O."""
        return next((moved for moved in self.moved if moved.ddir == ddir), None)


PARITY = {"raid0": 0, "raid1": 0, "raid10": 0, "raid5": 1, "raid6": 2}
"""Levels of arrays that spread what is written over all members, with their units of parity."""


@dataclass(frozen=True)
class RigFacts:
    """What checks know of a simulated drive."""

    compresses: bool
    buffer_bytes: int
    slc_bytes: int
    flash: bool
    """False where not all of it is: with a hard disk, or a device that is none."""


@dataclass(frozen=True)
class Room:
    """The flash of one simulated SSD, or of all members of an array of such."""

    target: int
    """Bytes of data that the host can write there."""
    capacity: int
    spare: float
    data: int = 1
    parity: int = 0
    """Units of a stripe that hold data, and parity of them."""
    chunk: int = 0
    """Bytes of a unit of a stripe with parity."""

    def programmed(self, block: int) -> float:
        """Bytes that go to flash for each of writes of so many: of a part of a stripe, its parity
        as well."""
        copied = self.capacity / self.target
        if not self.parity or not block:
            return copied
        return max(copied, 1.0 + self.parity * min(1.0, self.chunk / block))

    def empty(self, share: float) -> float:
        """How much of it was never written, where of the data a ``share`` was not, here and there:
        parity was with any of its stripe."""
        never = self.data * share + self.parity * share**self.data
        return self.capacity * never / (self.data + self.parity)


@dataclass(frozen=True)
class Facts:
    """The facts of one result."""

    key: str
    works: tuple[JobFacts, ...]
    fills: frozenset[str]
    """Names of jobs that only fill: sequential writes with another job after them."""
    capacity: int | None
    surroundings: Mapping[str, Any]
    rig: RigFacts | None
    flash: bool = True
    """False where it is known that not all of it is flash: a hard disk reads what was never written
    as it reads all else."""
    built: Mapping[str, Any] = field(default_factory=dict)
    """By path, what was built of a simulated SSD, and what over-provisioning was asked for."""
    room: Room | None = None
    """None where nobody knows it: not all of it is of one kind, or the array takes other ways."""
    broken_off: str = ""
    """Why it ended before its time, where it did."""
    stopped: bool = False
    """Whether somebody had wanted that."""
    unanswered: int = 0
    """I/Os of a simulated run that ended in an error: what they needed was lost with a device."""

    @property
    def observed(self) -> Mapping[str, Any]:
        """What changed around the run (``surroundings.observed``)."""
        found: Mapping[str, Any] = self.surroundings.get("observed") or {}
        return found

    @property
    def drive(self) -> Mapping[str, Any]:
        """The drive below the target."""
        found: Mapping[str, Any] = self.surroundings.get("drive") or {}
        return found

    @property
    def file_system(self) -> str:
        """Kind of the file system below a plain file; empty on a device."""
        return str((self.surroundings.get("file_system") or {}).get("type", ""))

    @property
    def iops(self) -> float:
        """Of all jobs in all directions together."""
        moved = [m for work in self.works for m in work.moved if m.bytes]
        return sum(m.ios * m.bw_bytes / m.bytes for m in moved)

    def total(self, ddir: str) -> int:
        """Bytes moved in one direction by all jobs."""
        return sum(m.bytes for work in self.works if (m := work.direction(ddir)))


def facts(
    key: str,
    result: Result,
    capacity: int | None,
    *,
    rig: str | None = None,
    surroundings: Mapping[str, Any] | None = None,
    judged: bool = False,
    noise: bool = False,
) -> Facts:
    """The facts of a result. ``capacity``, ``rig`` and ``surroundings`` are those of the session
    where it knows them; ``judged`` asks whether each series is steady, which takes longer than all
    the rest, and ``noise`` how sure its rate is."""
    about = result.ssdlab
    size = capacity or about.get("target", {}).get("capacity_bytes")
    bare = _bare(result.job_text)
    found = [
        replace(
            workload,
            options={**bare.get("global", {}), **bare.get(workload.name, {}), **workload.options},
        )
        for workload in workloads(0, result.document)
    ]
    regions = {workload.name: _regions(workload, size) for workload in found}
    works = tuple(_work(workload, result, found, regions, judged, noise) for workload in found)
    text = (result.rig_toml or rig) if result.kind == "sim" else None
    known = _rig(text)
    return Facts(
        key=key,
        works=works,
        fills=frozenset(w.name for w in works if w.fills(found[-1].name)),
        capacity=size,
        surroundings={**(surroundings or {}), **(about.get("surroundings") or {})},
        rig=known,
        flash=not text or (known is not None and known.flash),
        built=as_built(about.get("built") or {}, text),
        room=_room(list((about.get("built") or {}).values()), text),
        broken_off=about.get("broken_off", ""),
        stopped=about.get("status") == "stopped",
        unanswered=sum(map(unanswered, by_path(about.get("counters") or {}).values())),
    )


def as_built(built: Mapping[str, Any], text: str | None) -> Mapping[str, Any]:
    """What was built, with the over-provisioning that was asked for, where the rig is one drive."""
    if text is None or len(built) != 1:
        return {}
    try:
        rig = _core.Rig(text, rig_name="rig")
        asked, held = rig.get("ftl.over_provisioning"), rig.bytes("capacity")
        exposed = rig.bytes("namespace") or held
    except InputError:
        return {}
    if asked is None or not held or not exposed:
        return {}
    share = (1 + float(asked)) * held / exposed - 1
    return {path: {**one, "over_provisioning_asked": share} for path, one in built.items()}


def _room(built: list[Mapping[str, Any]], text: str | None) -> Room | None:
    try:
        rig = _core.Rig(text or "", rig_name="rig")
    except InputError:
        return None
    arrays, ssds = rig.find("array"), rig.find("ssd")
    capacity = sum(one["capacity_bytes"] for one in built)
    spare = sum(one["over_provisioning"] * one["capacity_bytes"] for one in built)
    if len(built) == 1 and not arrays:
        return Room(capacity, capacity, spare)
    level = rig.get(f"{arrays[0]}level") if len(arrays) == 1 else None
    if level not in PARITY:
        return None
    member = f"{arrays[0]}member."
    # What lies between an array and a drive, besides its link, may leave a part of it unused.
    if ssds != [f"{member}below." if member in rig.find("link") else member]:
        return None
    parity, count = PARITY[level], int(rig.get(f"{arrays[0]}count") or 0)
    if count != len(built) or count <= parity:
        return None
    copies = {"raid1": count, "raid10": 2}.get(level, 1)
    target = capacity * (count - parity) // count // copies
    chunk = rig.bytes(f"{arrays[0]}chunk") or 0
    return Room(target, capacity, spare, count - parity, parity, chunk)


def _bare(text: str) -> dict[str, dict[str, str]]:
    """By section, the options that stand without a value: fio does not list them in its answer."""
    found: dict[str, dict[str, str]] = {}
    own: dict[str, str] = {}
    for line in text.splitlines():
        words = re.split("[;#]", line, maxsplit=1)[0].strip()
        if words.startswith("["):
            own = found.setdefault(words[1:].partition("]")[0], {})
        elif words and "=" not in words and " " not in words:
            own[words] = "1"
    return found


def _work(
    workload: Workload,
    result: Result,
    all_works: Sequence[Workload],
    all_regions: Mapping[str, Regions],
    judged: bool,
    noise: bool,
) -> JobFacts:
    jobs = workload.jobs
    known = (result.imported or {}).get("knows_options", True)
    raw = [(ddir, s) for ddir in DIRECTIONS for j in jobs if (s := j.get(ddir) or {})]
    # That of a simulated run only where it is to be judged.
    sampled = judged or result.kind != "sim"
    moved = tuple(
        _moved(
            ddir,
            stats,
            sampling(result.series(workload.name, ddir), result.interval_s) if sampled else None,
        )
        for ddir in DIRECTIONS
        if (stats := [s for d, s in raw if d == ddir and s.get("total_ios")])
    )
    regions = all_regions[workload.name] if known else ()
    measured = result.measurement.job(workload.name) if judged or noise else None
    writes = measured.of("write") if measured else None
    cpu = [float(j.get("usr_cpu") or 0) + float(j.get("sys_cpu") or 0) for j in jobs]
    return JobFacts(
        **vars(workload),
        error=max((abs(int(j.get("error") or 0)) for j in jobs), default=0),
        cpu_percent=max(cpu, default=0.0),
        moved=moved,
        regions=regions,
        known=known,
        timed=any("usr_cpu" in j for j in jobs),
        window=None if measured is None or not judged else measured.window,
        trend=rate_trend(result, measured)
        if measured and judged and measured.window.steady
        else None,
        warming=yet_to_come(
            result, measured, [(one, all_regions[one.name]) for one in until(all_works, workload)]
        )
        if measured and judged and measured.window.steady
        else NOTHING,
        copied=writes.stretch.causes.get("collection", 0.0) if writes else 0.0,
        noise=None if measured is None or not noise else rate_noise(result, measured),
    )


def _regions(workload: Workload, capacity: int | None) -> Regions:
    """What the workers work on, as the core reads the options; none where it cannot."""
    options = {key: value for key, value in workload.options.items() if key not in _FILES}
    lines = [f"{key}={value}" if value else key for key, value in options.items()]
    text = "\n".join(["[job]", *lines])
    try:
        planned = _core.job_plan(text, job_name=workload.name, target_bytes=capacity)
    except InputError:
        return ()
    return tuple(dict.fromkeys(r for one in planned["processes"] for r in one["regions"]))


def _moved(ddir: str, stats: list[Mapping[str, Any]], sampled: Sampling | None) -> Moved:
    ios = sum(int(s["total_ios"]) for s in stats)
    latencies = [(int(s["total_ios"]), s.get("clat_ns") or s.get("lat_ns") or {}) for s in stats]
    return Moved(
        ddir=ddir,
        ios=ios,
        bytes=sum(int(s.get("io_bytes") or 0) for s in stats),
        bw_bytes=sum(float(s.get("bw_bytes") or 0) for s in stats),
        lat_mean_ns=sum(n * float(one.get("mean") or 0) for n, one in latencies) / ios,
        short_ios=sum(int(s.get("short_ios") or 0) for s in stats),
        drop_ios=sum(int(s.get("drop_ios") or 0) for s in stats),
        sampling=sampled,
    )


def sampling(rows: pl.DataFrame, interval_s: float) -> Sampling | None:
    """What a job's series of one direction looks like; None without rows."""
    spans = _spans(rows, interval_s)
    if not spans:
        return None
    zero = sum(end - begin for begin, end, ios in spans if ios == 0)
    before = spans[0][0]
    gaps = []
    for begin, end, ios in spans:
        # Where rows leave out an interval, nothing completed in it and the next is of its length.
        if begin - before > TOGETHER * interval_s:
            zero += begin - before
        if ios and end - begin > GAP * interval_s:
            gaps.append(end - begin - interval_s)
        before = end
    quarter = max(1, len(spans) // 4)
    return Sampling(
        seconds=spans[-1][1] - spans[0][0],
        zero_s=zero,
        gap_s=float(sum(gaps)),
        longest_gap_s=float(max(gaps, default=0.0)),
        first=_rate(spans[:quarter]),
        last=_rate(spans[-quarter:]),
    )


def _rate(spans: list[tuple[float, float, int]]) -> float:
    length = spans[-1][1] - spans[0][0]
    return sum(ios for _, _, ios in spans) / length if length > 0 else 0.0


def _spans(rows: pl.DataFrame, interval_s: float) -> list[tuple[float, float, int]]:
    """(begin, end, I/Os) of the rows in order, those of several workers together."""
    if rows.is_empty():
        return []
    ordered = rows.sort("time_s")
    ends = ordered["time_s"].cast(pl.Float64).to_numpy()
    ios = ordered["ios"].cast(pl.Int64).to_numpy()
    rate = ordered["iops"].cast(pl.Float64).to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.where((ios > 0) & (rate > 0), ios / rate, interval_s)
    starts = np.append(0, np.flatnonzero(np.diff(ends) > TOGETHER * interval_s) + 1)
    # Of several workers that were late together, one is enough to cover the time.
    begin = np.maximum.reduceat(ends - length, starts)
    end, sums = np.maximum.reduceat(ends, starts), np.add.reduceat(ios, starts)
    return list(zip(begin.tolist(), end.tolist(), sums.tolist(), strict=True))


def _rig(text: str | None) -> RigFacts | None:
    """The numbers of a rig that decide what a short or small test sees."""
    try:
        rig = _core.Rig(text or "", rig_name="rig")
    except InputError:
        return None  # a kept run whose rig is gone is judged by what is left
    ssds, disks = rig.find("ssd"), rig.find("hdd")
    if not ssds:
        on = bool(disks) and rig.get(f"{disks[0]}write_cache_enabled") == "true"
        ram = ((rig.bytes(f"{disks[0]}buffer") or 0) // 2) if on else 0
        return RigFacts(compresses=False, buffer_bytes=ram, slc_bytes=0, flash=False)
    first = ssds[0]
    cache = [rig.bytes(f"{first}ftl.slc_cache.{part}_size") or 0 for part in ("static", "dynamic")]
    return RigFacts(
        compresses=rig.get(f"{first}ftl.compression") is not None,
        buffer_bytes=rig.bytes(f"{first}write_buffer.size") or 0,
        slc_bytes=sum(cache),
        flash=not disks,
    )
