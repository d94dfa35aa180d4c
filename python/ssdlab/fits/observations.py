"""What was asked of a drive and what it did: the table that twins are fitted to and checked by.

A row is a workload and what was measured of it. As CSV its head names any of the columns of
:data:`ASKED` and :data:`MEASURED`, in any order; a cell is empty where nothing is known.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from ssdlab import units
from ssdlab.analysis.comparison import Workload
from ssdlab.analysis.measurement import JobMeasurement
from ssdlab.errors import InputError, meant
from ssdlab.histogram import merge
from ssdlab.jobfile import read_text
from ssdlab.results import Result

ASKED = ("rw", "bs", "iodepth", "numjobs", "rwmixread", "state", "namespace")
"""Columns of the question. Empty cells mean ``4k``, depth and jobs of 1, half reads in a mix, the
state of :func:`usual_state`, and a namespace of the whole drive."""
RATE = "rate_iops"
"""A column of the question that may be missing: as fio's, I/Os per second at most of each job."""
MEASURED = ("iops", "lat_mean_us", "clat_mean_us", "clat_p50_us", "clat_p99_us", "waf")
"""Columns of the answer: I/Os of all directions and jobs together."""
INTERVALS = tuple(f"{name}_{end}" for name in MEASURED for end in ("low", "high"))
"""Columns that a prediction adds; they are not read as measurements."""
LONG = ("test", "x", "value", "unit")
"""Columns of a table with one number in each row: what is varied, to what (of :data:`VARIED`), and
the number with its unit (of :data:`UNITS`)."""
VARIED = {
    "depth": "iodepth",
    "size": "bs",
    "jobs": "numjobs",
    "mix": "rwmixread",
    "namespace": "namespace",
}
UNITS = {"iops": "iops", "us": "lat_mean_us", "ms": "lat_mean_us", "x": "waf"}
"""Besides the names of :data:`MEASURED`, and rates in bytes such as MB/s."""
BESIDE = ("device", "note")
"""Columns of a table that are no numbers: whose they are, and a remark."""
STATES = ("fob", "filled", "steady", "steady-seq")
"""Fresh out of the box; written once in order; in the steady state of random writes, or of
sequential ones."""
PATTERNS = {
    "read": "read",
    "write": "write",
    "randread": "randread",
    "randwrite": "randwrite",
    "rw": "rw",
    "readwrite": "rw",
    "randrw": "randrw",
}
"""What ``rw`` may say, and how fio shortens it."""
LIMITS = tuple(
    "rate rate_iops rate_process rate_ignore_thinktime thinktime thinktime_blocks "
    "thinktime_blocks_type thinktime_iotime serialize_overlap".split()
)
"""Options of a job that keep it from asking as fast as it could."""
RATES = LIMITS[:2]
"""Those that say a rate of each job: one for both directions, or one for each."""
FLUSHES = ("fsync", "fdatasync", "sync")
"""Options that have a job wait until what it wrote is durable."""
SCHEMA = pl.Schema(
    {
        "rw": pl.String,
        "bs": pl.Int64,
        "iodepth": pl.Int64,
        "numjobs": pl.Int64,
        "rwmixread": pl.Float64,
        "state": pl.String,
        "namespace": pl.Int64,
        **dict.fromkeys(MEASURED, pl.Float64),
    }
)
"""Of the table as a frame: sizes in bytes, the share of reads in percent."""
IN_FLIGHT = (1 / 3, 1.25)
"""Rate times mean latency, the I/Os in flight on average, as shares of the depth: no more than are
asked for, but for what is rounded, and not far fewer. Of some 4,700 published rows all lie from
0.63 (a host that does not keep 6 jobs of depth 1,024 up) to 1."""
CLAT_LEAST = 0.01
"""The same of clat, which has not the time of submission: where that blocks, as libaio's does
without ``direct=1``, it is almost all of the time. A thousandth is another unit; of several jobs
few in flight are the IOPS of one."""
BESIDE_SHARE = 0.1
"""Of the time of a job that another may take beside it without a word: what it changes is within
the noise of measurements."""
SLACK = 1.02
"""Rounded numbers may contradict each other by so much."""


@dataclass(frozen=True)
class FitWorkload:
    """A workload: what is asked of a drive, in which state."""

    rw: str
    bs: int = 4096
    iodepth: int = 1
    numjobs: int = 1
    rwmixread: float | None = None
    """Percent; None where all I/Os have one direction."""
    state: str = "filled"
    namespace: int | None = None
    """Bytes; None for the whole drive."""
    limits: tuple[str, ...] = ()
    """Options that keep its jobs from asking as fast as they could, as fio takes them."""

    @property
    def reads(self) -> float:
        """Share of reads."""
        if self.rwmixread is not None:
            return self.rwmixread / 100
        return 1.0 if self.rw.endswith("read") else 0.0

    @property
    def sequential(self) -> bool:
        """Whether its I/Os follow one another in address."""
        return not self.rw.startswith("rand")

    @property
    def collects(self) -> bool:
        """Whether it writes at random to a drive in steady state, which collects all the time."""
        return self.state == "steady" and self.reads < 1 and not self.sequential

    @property
    def depth(self) -> int:
        """I/Os in flight of all its jobs."""
        return self.iodepth * self.numjobs

    @property
    def most(self) -> float:
        """I/Os per second of all its jobs that their rates allow; infinite where they say none."""
        least = math.inf
        for limit in self.limits:
            name, said = limit.split("=", 1)
            if name not in RATES:
                continue
            parts = [units.parse_bytes(name, part) if part else 0 for part in said.split(",")]
            ways = parts[:1] * (self.reads > 0) + parts[:2][-1:] * (self.reads < 1)
            # A rate of 0 is none.
            if all(ways):
                size = self.bs if name == "rate" else 1
                least = min(least, self.numjobs * sum(ways) / size)
        return least

    @property
    def curve(self) -> FitWorkload:
        """What all points of its curve over depth have in common."""
        return replace(self, iodepth=1)

    def __str__(self) -> str:
        mix = "" if self.rwmixread is None else f", {self.rwmixread:g} % reads"
        jobs = "" if self.numjobs == 1 else f" x {self.numjobs} jobs"
        part = "" if self.namespace is None else f", namespace of {units.size_text(self.namespace)}"
        block = units.binary(self.bs)
        kind = f"{self.rw} {block}{mix}, depth {self.iodepth}{jobs}, {self.state}{part}"
        return ", ".join((kind, *self.limits))


@dataclass(frozen=True)
class Observation:
    """A workload and what was measured of it."""

    load: FitWorkload
    measured: Mapping[str, float] = field(default_factory=dict)
    """By the names of :data:`MEASURED`; only what is known."""
    where: str = ""
    """File and line, or run and job."""
    said: Mapping[str, str] = field(default_factory=dict)
    """The cells of its row of a table that are no numbers, as they were written."""
    span: int | None = None
    """Bytes in which a job of a run works; None where it does not say."""
    width: float = 0.0
    """Standard deviation of the logarithms of its numbers, besides that of measurements."""

    @property
    def rate(self) -> float | None:
        """I/Os per second, by Little's law where only a mean latency is known."""
        if (iops := self.measured.get("iops")) is not None:
            return iops
        mean = self.measured.get("lat_mean_us", self.measured.get("clat_mean_us"))
        return 1e6 * self.load.depth / mean if mean else None

    @property
    def submission_us(self) -> float | None:
        """Time of a request before it reaches the device (lat less clat); None where not known."""
        lat, clat = (self.measured.get(f"{kind}_mean_us") for kind in ("lat", "clat"))
        return None if lat is None or clat is None else lat - clat

    def without(self, column: str) -> Observation:
        """The same without a number."""
        return replace(self, measured={k: v for k, v in self.measured.items() if k != column})


def usual_state(reads: float) -> str:
    """The state that is meant where a table names none: steady where anything is written."""
    return "filled" if reads == 1 else "steady"


def frame(observations: Iterable[Observation]) -> pl.DataFrame:
    """The table of observations, one row each, in order (:data:`SCHEMA`)."""
    rows = [
        {name: getattr(observation.load, name) for name in ASKED}
        | {name: observation.measured.get(name) for name in MEASURED}
        for observation in observations
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def rows(table: pl.DataFrame, where: str) -> list[Observation]:
    """The observations of a frame with columns of the table; InputError, with ``where`` and the
    row, where a cell is wrong."""
    _check_heads(table.columns, where)
    return [
        row(
            {name: "" if cell is None else str(cell) for name, cell in cells.items()},
            f"{where}, row {place}",
        )
        for place, cells in enumerate(table.iter_rows(named=True), 1)
    ]


def read(path: Path) -> list[Observation]:
    """The observations of a CSV file, in its order.

    Raises InputError with file and line where it is no such table: an unknown column, state or
    size, numbers that contradict each other, rows of several drives.
    """
    lines = csv.reader(io.StringIO(read_text(path, "table").lstrip("\ufeff")))
    heads = [one.strip() for one in next(lines, [])]
    _check_heads(heads, str(path))
    found: list[Observation] = []
    devices: dict[str, int] = {}
    for cells in lines:
        where = f"{path}, line {lines.line_num}"
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(heads):
            raise InputError(f"{where}: has {len(cells)} cells, expected {len(heads)} as the head")
        named = dict(zip(heads, (cell.strip() for cell in cells), strict=True))
        devices.setdefault(named.get("device", ""), lines.line_num)
        found.append(row(named, where))
    if len(devices) > 1:
        (one, first), (other, second), *_ = devices.items()
        raise InputError(
            f'{path}: is of several drives, "{one}" in line {first} and "{other}" in line '
            f"{second}; a twin is of one: make a table of each"
        )
    if not found:
        raise InputError(f"{path}: has a head and no rows, expected one for each workload")
    return found


def text(table: pl.DataFrame) -> str:
    """A table as CSV."""
    return table.write_csv(float_precision=None)


def observations(
    run: Result, state: str | None = None, left: list[str] | None = None
) -> list[Observation]:
    """One for each job of a run that does more than fill the drive, in its measurement window, but
    those that do not say what they do (as some of imported runs) or have several block sizes.
    ``state`` is that of the drive at its start; None for the usual one of such a job, of which what
    no row of a table says is left out, and noted in ``left`` with the reason."""
    measured = run.measurement
    last = measured.jobs[-1].name if measured.jobs else ""
    jobs = [job for job in measured.jobs if not job.workload.fills(last)]
    found = []
    for job in jobs:
        where = f"{run.name}, job {job.name}"
        observation = _of_job(job, state, where)
        if observation is None:
            continue
        if state is None and (why := unsaid(job.workload) or _beside(job, measured.jobs)):
            if left is not None:
                left.append(f"{where} ({why})")
            continue
        found.append(observation)
    return found


def unsaid(workload: Workload) -> str:
    """What a job asks for that no column of a table says; empty where they say all."""
    places = workload.option("random_distribution") or "random"
    if workload.random and places != "random":
        return f"random_distribution={places}"
    at_random = workload.option("percentage_random") or "100"
    if workload.random and at_random.replace(",100", "") != "100":
        return f"percentage_random={at_random}"
    for name in FLUSHES if workload.does("write") else ():  # what only reads has none
        if (value := workload.option(name)) not in ("", "0", "none"):
            return f"{name}={value}"
    if workload.verifies:
        return "verify"
    if (share := workload.option("flow")) not in ("", "0"):
        return f"flow={share}"
    return ""


def _beside(job: JobMeasurement, jobs: Sequence[JobMeasurement]) -> str:
    """Which job ran at the same time, as far as series tell; empty where none did."""
    start, end = job.start_s, job.start_s + job.window.end_s
    for other in jobs if job.window.verdict != "unknown" else ():
        both = min(end, other.start_s + other.window.end_s) - max(start, other.start_s)
        if other is not job and both > BESIDE_SHARE * (end - start) > 0:
            return f"beside {other.name}"
    return ""


def load_of(workload: Workload, state: str | None = None) -> FitWorkload | None:
    """What a job asks for; None where a table could not ask that, or nobody knows."""
    size, mix = workload.block, workload.read_percent
    if size is None or mix is None:
        return None
    rw, share = _pattern(workload.rw, f"{mix:g}", workload.name)
    limits = tuple(f"{name}={value}" for name in LIMITS if (value := workload.option(name)))
    state = state or usual_state(mix / 100)
    return FitWorkload(rw, size, workload.depth, workload.workers, share, state, limits=limits)


def _of_job(job: JobMeasurement, state: str | None, where: str) -> Observation | None:
    workload = job.workload
    told = [direction for direction in job.directions if direction.ddir in ("read", "write")]
    load = load_of(workload, state)
    if load is None or not told:
        return None
    iops = sum(direction.iops or 0.0 for direction in told)
    latencies = {
        kind: merge(direction.latencies[kind] for direction in told if kind in direction.latencies)
        for kind in ("lat", "clat")
    }
    lat, clat = latencies["lat"], latencies["clat"]
    values = {
        "iops": iops or None,
        "lat_mean_us": lat and lat.mean_ns and lat.mean_ns / 1e3,
        "clat_mean_us": clat and clat.mean_ns and clat.mean_ns / 1e3,
        "clat_p50_us": clat and clat.percentile_us(50.0),
        "clat_p99_us": clat and clat.percentile_us(99.0),
        "waf": next((direction.waf for direction in told if direction.ddir == "write"), None),
    }
    known = {name: float(value) for name, value in values.items() if value}
    span = workload.option("size")
    return Observation(load, known, where, span=int(span) if span.isdecimal() else None)


def _check_heads(heads: Sequence[str], where: str) -> None:
    known = (*ASKED, RATE, *MEASURED, *INTERVALS, *BESIDE, *LONG)
    if not any(heads):
        raise InputError(f"{where}: is empty, expected a head such as {','.join(ASKED)},iops")
    for head in heads:
        if head not in known:
            hint = meant(head, known)
            raise InputError(
                f'{where}: has an unknown column "{head}"{hint}; there are: '
                f"{', '.join((*ASKED, RATE, *MEASURED, *BESIDE))}"
            )
    if len(set(heads)) < len(heads):
        twice = next(head for head in heads if heads.count(head) > 1)
        raise InputError(f'{where}: has the column "{twice}" twice')
    if "rw" not in heads:
        raise InputError(f'{where}: has no column "rw", expected it with values such as randread')


def row(cells: Mapping[str, str], where: str) -> Observation:
    """The observation of a row's cells by column; InputError with ``where`` where one is wrong."""
    cells = _wide(cells, where)
    said = {name: cells.get(name, "").strip() for name in (*ASKED, RATE, *MEASURED)}
    rw, mix = _pattern(said["rw"], said["rwmixread"], where)
    reads = mix / 100 if mix is not None else float(rw.endswith("read"))
    state = said["state"] or usual_state(reads)
    if state not in STATES:
        hint = meant(state, STATES)
        raise InputError(
            f'{where}: no state is called "{state}"{hint}; there are: {", ".join(STATES)}'
        )
    load = FitWorkload(
        rw,
        _size(said["bs"] or "4k", f"{where}: bs"),
        _count(said["iodepth"], f"{where}: iodepth"),
        _count(said["numjobs"], f"{where}: numjobs"),
        mix,
        state,
        _size(said["namespace"], f"{where}: namespace") if said["namespace"] else None,
        (f"{RATE}={_count(said[RATE], f'{where}: {RATE}')}",) if said[RATE] else (),
    )
    measured = {name: _number(said[name], f"{where}: {name}") for name in MEASURED if said[name]}
    _check_units(load, measured, where)
    asked = {name: cell for name, cell in cells.items() if name in (*ASKED, RATE, *BESIDE)}
    return Observation(load, measured, where, said=asked)


def _wide(cells: Mapping[str, str], where: str) -> Mapping[str, str]:
    """A row of one number in the columns that its test and its unit mean."""
    test, x, value, unit = (cells.get(name, "").strip() for name in LONG)
    found = {name: cell for name, cell in cells.items() if name not in LONG}

    def put(column: str, cell: str) -> None:
        if found.get(column, "").strip():
            raise InputError(f'{where}: says "{column}" twice: in its column and by test or value')
        found[column] = cell

    if test or x:
        if test not in VARIED:
            raise _unknown(where, "test", test, VARIED)
        put(VARIED[test], x)
    if not value:
        return found
    if unit.endswith("B/s"):
        size = _size(found.get("bs", "") or "4k", f"{where}: bs")
        rate = units.parse_rate(f"{where}: value", f"{value}{unit}")
        put("iops", f"{rate / size:g}")
        return found
    column = unit if unit in MEASURED else UNITS.get(unit.lower())
    if column is None:
        raise _unknown(where, "unit", unit, (*UNITS, "MB/s", *MEASURED))
    number = _number(value, f"{where}: value")
    put(column, f"{number * (1e3 if unit == 'ms' else 1):.15g}")
    return found


def _unknown(where: str, column: str, said: str, known: Collection[str]) -> InputError:
    hint = meant(said, known)
    return InputError(f'{where}: {column} "{said}"{hint}: expected one of {", ".join(known)}')


def _pattern(rw: str, mix: str, where: str) -> tuple[str, float | None]:
    """The pattern and its share of reads; a mix of one direction is that direction."""
    if rw.lower() not in PATTERNS:
        raise _unknown(where, "rw", rw, PATTERNS)
    pattern = PATTERNS[rw.lower()]
    share = float(mix.removesuffix("%")) if units.is_number(mix.removesuffix("%")) else None
    if mix and (share is None or not 0 <= share <= 100):
        raise InputError(f'{where}: rwmixread "{mix}": expected percent from 0 to 100')
    random = "rand" if pattern.startswith("rand") else ""
    if pattern not in ("rw", "randrw"):
        own = 100.0 if pattern.endswith("read") else 0.0
        if share is not None and share != own:
            raise InputError(
                f'{where}: rwmixread "{mix}" contradicts rw "{rw}"; a mix is rw or randrw'
            )
        return pattern, None
    share = 50.0 if share is None else share
    if share in (0.0, 100.0):
        return random + ("read" if share else "write"), None
    return pattern, share


def _check_units(load: FitWorkload, measured: Mapping[str, float], where: str) -> None:
    """Raises InputError where numbers contradict each other: one is not what its column says."""
    least, most = IN_FLIGHT
    if load.limits:
        least = 0.0  # jobs that are held back
    for name in ("lat_mean_us", "clat_mean_us"):
        if name == "clat_mean_us" and "lat_mean_us" not in measured and load.numjobs == 1:
            least = min(least, CLAT_LEAST)
        if (iops := measured.get("iops")) and (mean := measured.get(name)):
            found = iops * mean / 1e6
            if not least <= found / load.depth <= most:
                raise InputError(
                    f"{where}: {iops:g} IOPS at {name} of {mean:g} are {found:.3g} I/Os in flight "
                    f"on average, and iodepth x numjobs is {load.depth}; iops are of all jobs "
                    "together, latencies means in microseconds"
                )
    for low, high in (("clat_p50_us", "clat_p99_us"), ("clat_mean_us", "lat_mean_us")):
        if low in measured and high in measured and measured[low] > SLACK * measured[high]:
            raise InputError(
                f"{where}: {low} of {measured[low]:g} is more than {high} of {measured[high]:g}"
            )


def _size(said: str, where: str) -> int:
    size = units.parse_bytes(where, said)
    if size < 512 or size % 512:
        raise InputError(f'{where} "{said}": expected whole sectors of 512 bytes, such as 4k')
    return size


def _count(said: str, where: str) -> int:
    if not said:
        return 1
    if not units.is_number(said) or float(said) != int(float(said)) or float(said) < 1:
        raise InputError(f'{where} "{said}": expected a whole number from 1')
    return int(float(said))


def _number(said: str, where: str) -> float:
    if not units.is_number(said) or float(said) <= 0:
        raise InputError(
            f'{where} "{said}": expected a number above 0, or nothing where it is not known'
        )
    return float(said)
