"""The load that storage is planned for: a recorded trace or a fio job, as a stream of requests.

The stream is what a cache is asked for, in order; curves of hit ratios come from it. In time, the
trace or the job itself is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

import ssdlab.traces
from ssdlab import _core, bench
from ssdlab.analysis.comparison import Workload
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText, carried_path, replaying
from ssdlab.memory import available_bytes
from ssdlab.progress import ProgressCallback, tell
from ssdlab.results import Result
from ssdlab.target import Settings, Sim
from ssdlab.tracefile import Reading, Replay, existing, left_out

SECTOR = 512
DEVICE_ALIGN = 1 << 20
"""Devices of a trace lie one behind another on multiples of this (as a replay places them)."""
SCALE_ALIGN = 4096
CHUNK = 1 << 16
"""Numbers that are Python's own at a time: those take four times the memory."""
REQUEST_BYTES = 80
"""Memory that a request of a stream takes, keys of one block size and its curve included."""
CAPTURED_MAX = 1_000_000
"""I/Os of a job that are looked at, at most."""
TIMED_MAX = 2_000_000
"""Requests of a trace that are simulated in time, at most."""
_LOG = "ssdlab-plan"
_LOG_COLUMNS = 6

Integers = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Stream:
    """Reads and writes in the order in which they are asked for, placed on the pool."""

    offset: Integers
    """First byte."""
    length: Integers
    """Bytes; never 0."""
    writes: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def reads(self) -> int:
        """Number of reads."""
        return len(self) - int(self.writes.sum())

    @cached_property
    def mean_bytes(self) -> float:
        """Mean size of a request."""
        return float(self.length.mean()) if len(self) else 0.0

    @cached_property
    def read_bytes(self) -> int:
        """Bytes read in all."""
        return int(self.length[~self.writes].sum())

    @cached_property
    def write_bytes(self) -> int:
        """Bytes written in all."""
        return int(self.length[self.writes].sum())

    @property
    def timed(self) -> Stream:
        """What is simulated in time."""
        part = slice(TIMED_MAX)
        return Stream(self.offset[part], self.length[part], self.writes[part])


@dataclass(frozen=True)
class Load:
    """A load: what is asked for, and the jobs that ask for it in time."""

    name: str
    stream: Stream | None
    """None for a job whose I/Os could not be written down."""
    span_s: float
    """Seconds that the recording took; 0 where it has no times, and for jobs."""
    end_byte: int
    """Where the last request ends before it is placed; 0 for jobs."""
    full_speed: JobText
    """A pass as fast as possible; of a job, its last stage."""
    recorded: JobText | None
    """A pass at the times of the recording; None without times, and for jobs."""
    before: JobText | None = None
    """What a store does before the first pass: the stages of a job before its last one."""
    notes: tuple[str, ...] = ()

    @property
    def request_bytes(self) -> float:
        """Mean size of a request; 4 KiB where they are not known."""
        return 4096.0 if self.stream is None else self.stream.mean_bytes

    @property
    def is_job(self) -> bool:
        """Whether it is a fio job."""
        return self.end_byte == 0


@dataclass(frozen=True)
class Columns:
    """All reads and writes of a trace."""

    offset: Integers
    length: Integers
    writes: npt.NDArray[np.bool_]
    device: npt.NDArray[np.uint32]
    ends: dict[int, int]
    """Where each device ends, by any kind of request."""
    span_ns: int
    cut_ns: int | None
    """When the request after the first ``timed_max`` was made; None where there is none."""
    requests: int


def moves(
    path: Path, reading: Reading, each_bytes: int, too_many: str, progress: ProgressCallback | None
) -> Iterator[tuple[ssdlab.traces.Batch, npt.NDArray[np.bool_]]]:
    """The batches of a trace, and which of their requests read or write anything; InputError as
    :func:`ssdlab.traces.open`, where there are none, and where they do not fit into memory at so
    many bytes each (``too_many`` ends the sentence); KeyboardInterrupt where ``progress`` answers
    False."""
    room, kept, requests = available_bytes(), 0, 0
    for batch in ssdlab.traces.open(path, reading):
        moving = (batch.kind <= ssdlab.traces.WRITE) & (batch.length > 0)
        requests, kept = requests + len(batch), kept + int(moving.sum())
        tell(progress, None, f"{requests:,} requests read")
        if room is not None and kept * each_bytes > room:
            raise InputError(f"{path}: more than {kept:,} {too_many}")
        yield batch, moving
    if not kept:
        raise InputError(f"{path}: neither reads nor writes in it, so there is nothing to cache")


def read_trace(
    path: Path,
    reading: Reading,
    timed_max: int = TIMED_MAX,
    progress: ProgressCallback | None = None,
) -> Columns:
    """Reads a trace in batches; only what curves need is kept. Raises as :func:`moves`."""
    parts: list[tuple[Integers, Integers, npt.NDArray[np.bool_], npt.NDArray[np.uint32]]] = []
    ends: dict[int, int] = {}
    requests = span = 0
    cut: int | None = None
    too_many = (
        "reads and writes do not fit into memory; take a part of it (--window, or ssdlab trace "
        "sample)"
    )
    for batch, moving in moves(path, reading, REQUEST_BYTES, too_many, progress):
        span = int(batch.time_ns[-1])
        if cut is None and requests + len(batch) > timed_max:
            cut = int(batch.time_ns[timed_max - requests])
        requests += len(batch)
        end = batch.offset + batch.length
        for device in np.unique(batch.device).tolist():
            last = int(end[batch.device == device].max())
            ends[device] = max(ends.get(device, 0), last)
        sizes, writes = batch.length[moving], batch.kind[moving] == ssdlab.traces.WRITE
        parts.append((batch.offset[moving], sizes.astype(np.uint64), writes, batch.device[moving]))
    offset, length, writes, device = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Columns(offset, length, writes, device, ends, span, cut, requests)


def place(columns: Columns, fit: str, capacity: int) -> Stream:
    """Where a replay puts the requests on a target of ``capacity`` bytes, in whole sectors;
    InputError where the trace reaches beyond it and ``fit`` is ``as-is``."""
    offset, span = one_behind_another(columns)
    if span > capacity and fit == "as-is":
        gib = 1 << 30
        raise InputError(
            f"the trace reaches to {span / gib:.3f} GiB and the pool has {capacity / gib:.3f} GiB; "
            "take a larger pool, or give --fit wrap (begin again at 0) or --fit scale (shrink all "
            "addresses)"
        )
    if fit == "wrap":
        offset = offset % np.uint64(capacity)
    elif fit == "scale":
        scaled = _times(offset, capacity, span)
        offset = scaled // np.uint64(SCALE_ALIGN) * np.uint64(SCALE_ALIGN)
    start = offset // np.uint64(SECTOR) * np.uint64(SECTOR)
    reach = offset - start + columns.length
    room = capacity // SECTOR * SECTOR
    length = np.minimum(-(-reach.astype(np.int64) // SECTOR) * SECTOR, room).astype(np.uint64)
    return Stream(np.minimum(start, np.uint64(room) - length), length, columns.writes)


def _times(value: Integers, factor: int, divisor: int) -> Integers:
    """value * factor // divisor, exactly, for products beyond 64 bits."""
    found = np.empty_like(value)
    for start in range(0, len(value), CHUNK):
        part = value[start : start + CHUNK].tolist()
        found[start : start + CHUNK] = [one * factor // divisor for one in part]
    return found


def one_behind_another(columns: Columns, align: int = DEVICE_ALIGN) -> tuple[Integers, int]:
    """Where each request begins, the devices of the trace laid one behind another on multiples of
    ``align``; and their end (bytes)."""
    if len(columns.ends) == 1:
        span = -(-max(columns.ends.values()) // SECTOR) * SECTOR
        return columns.offset, span
    offset, base = columns.offset.copy(), 0
    for device in sorted(columns.ends):
        offset[columns.device == device] += np.uint64(base)
        base += -(-columns.ends[device] // align) * align
    return offset, base


def trace_load(
    path: Path, reading: Reading, fit: str, capacity: int, depth: int, timed_max: int = TIMED_MAX
) -> Load:
    """The load of a trace on a pool of ``capacity`` bytes, ``depth`` in flight at full speed; of
    more than ``timed_max`` requests only the first are run in time."""
    file = carried_path(existing(path))
    columns = read_trace(file, reading, timed_max)
    stream = place(columns, fit, capacity)
    notes = left_out(file, reading)
    timed = reading
    if columns.cut_ns is not None and columns.cut_ns > 0:
        timed = replace(reading, to_ns=reading.from_ns + columns.cut_ns)
        notes.append(
            f"In time, only the first {columns.cut_ns / 1e9:,.0f} s of the trace are run (about "
            f"{timed_max:,} of {columns.requests:,} requests); the curves are of all of it."
        )
    span = (columns.span_ns if columns.cut_ns is None else columns.cut_ns) / 1e9
    _, end = one_behind_another(columns)
    return Load(
        name=path.name,
        stream=stream,
        span_s=span,
        end_byte=end,
        full_speed=replaying(file, Replay(timed, fit), depth),
        recorded=replaying(file, Replay(timed, fit, open_loop=True)) if span > 0 else None,
        notes=tuple(notes),
    )


def job_load(job: JobText) -> Load:
    """The load of a fio job as far as it is known before it has run: what it does in its last
    stage, on what those before have left. Raises InputError where it is none."""
    before, last = job.split()
    notes = []
    if before is not None:
        names = [", ".join(one["name"] for one in stage.read()["jobs"]) for stage in (last, before)]
        notes.append(
            f"The load is the last stage of the job ({names[0]}); those before it ({names[1]}) run "
            "once on each store and are not counted."
        )
    if _verifies(last):
        last = last.with_options(do_verify=0)
        notes.append("What is only read to be verified (verify) is left out of the load.")
    name = Path(job.name).name
    return Load(name, None, 0.0, 0, last, None, before=before, notes=tuple(notes))


def _verifies(job: JobText) -> bool:
    told = job.read()
    options = [{**told["global_options"], **one["options"]} for one in told["jobs"]]
    return any(Workload(0, "", one, (), queues=True).verifies for one in options)


def job_capture(
    load: Load, capacity: int, pool_ios: int, seconds: float, seed: int
) -> bench.Variant[Load]:
    """The load of a fio job, whose I/Os are written down by a device without a cache of its own, as
    far as what the job did on the pool (``pool_ios``, ``seconds``): one that runs for a time does
    more where I/Os take less."""
    job = load.full_speed
    Sim("pool", _null(capacity, 100_000)).check(job)
    wanted = min(CAPTURED_MAX, max(50 * pool_ios, 10_000))
    service = max(1_000, round(1e9 * seconds / wanted)) if seconds else 100_000
    own = f"[global]\nwrite_lat_log={_LOG}\nlog_offset=1\nlog_avg_msec=0\n"
    logged = replace(job, text=own + job.text)
    target, settings = Sim("pool", _null(capacity, service)), Settings(seed=seed)
    return bench.Variant(partial(_written_down, target, load, logged, settings))


def _written_down(
    target: Sim, load: Load, logged: JobText, settings: Settings, seat: bench.Seat
) -> Load:
    stream = _stream_of_logs(load.full_speed, seat.run(target, logged, settings))
    unknown = "The job writes logs of its own, so its I/Os are not known: no curves."
    return replace(load, stream=stream, notes=load.notes + (() if stream else (unknown,)))


def _null(capacity: int, service_ns: int) -> str:
    keys = {"capacity": f"{capacity}B", "service_time": f"{service_ns}ns", "servers": 1}
    return _core.Rig.wrap("null", keys).to_toml()


def _stream_of_logs(job: JobText, result: Result) -> Stream | None:
    """The I/Os of fio's latency logs (ms, ns, direction, bytes, offset, priority), by time; None
    where the job wrote logs of another form."""
    found = {}
    for name, text in result.logs:
        match = re.fullmatch(rf"{_LOG}_lat\.(\d+)\.log", name)
        if match:
            found[int(match[1])] = text
    starts = _starts(job, result)
    if not found or len(starts) < max(found):
        return None
    tables = []
    for number, text in sorted(found.items()):
        values = np.array(text.replace(",", " ").split(), dtype=np.int64)
        if len(values) % _LOG_COLUMNS:
            return None
        table = values.reshape(-1, _LOG_COLUMNS)
        table[:, 0] += round(1000 * starts[number - 1])
        tables.append(table)
    table = np.concatenate(tables)
    table = table[np.argsort(table[:, 0], kind="stable")]
    table = table[(table[:, 2] <= 1) & (table[:, 3] > 0)]
    if not len(table):
        return None
    offset, length = table[:, 4].astype(np.uint64), table[:, 3].astype(np.uint64)
    return Stream(offset, length, table[:, 2] == 1)


def _starts(job: JobText, result: Result) -> list[float]:
    """When each process began (s): a log counts from there."""
    counts = [int(one["numjobs"]) for one in job.read()["jobs"]]
    began = [float(one["started_s"]) for one in result.ssdlab["jobs"]]
    if len(began) != len(counts):
        return []
    return [start for start, count in zip(began, counts, strict=True) for _ in range(count)]
