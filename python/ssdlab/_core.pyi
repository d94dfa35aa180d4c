"""The simulation core, compiled from `crates/ssdlab-py`."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict, final, type_check_only

import numpy as np
import numpy.typing as npt

from ssdlab.tracefile import ReadingOptions

__all__ = [
    "Attachment",
    "Drive",
    "Rig",
    "RunOutput",
    "TraceReader",
    "check_job",
    "check_policy",
    "description",
    "device_keys",
    "hit_ratio",
    "job_options",
    "job_plan",
    "let_past",
    "miss_ratio_curve",
    "nearest",
    "object_misses",
    "object_policies",
    "parse_fio_size",
    "registries",
    "rig_check",
    "steps_check",
    "trace_convert",
    "trace_formats",
    "trace_profile",
    "version",
]

version: str

@type_check_only
class Progress(TypedDict):
    """What `progress` is called with, about five times a second."""

    phase: str
    fraction: float
    simulated_s: float
    ios: int

@type_check_only
class RegistryEntry(TypedDict):
    """One thing that can be named in a rig."""

    kind: str
    name: str
    summary: str
    reference: str

@type_check_only
class DeviceKey(TypedDict):
    """One key that a rig may set."""

    device: str
    key: str
    values: str
    default: str
    summary: str

@type_check_only
class JobOption(TypedDict):
    """One option of job files and what it does on a simulated drive."""

    name: str
    aliases: list[str]
    effect: Literal["applied", "ignored", "refused"]
    example: str
    summary: str

@type_check_only
class PlannedProcess(TypedDict):
    """What one process of a job is going to do; by direction means reads, writes, TRIMs."""

    job: int
    """Place of its job in the job file."""
    name: str
    line: int
    thread: int
    stage: int
    """Later ones wait for earlier ones (``stonewall``)."""
    rw: str
    shares: list[float]
    """Of its I/Os, by direction."""
    block_bytes: list[tuple[int, int]]
    """Smallest and largest, by direction."""
    regions: list[tuple[int, int]]
    """Offset and length in bytes, by file."""
    bytes: list[int] | None
    """By direction; None: until time is up, or what a trace holds."""
    replays: bool
    verifies: bool
    """What it writes is to be read back."""
    iodepth: int
    runtime_s: float | None
    time_based: bool
    ramp_s: float
    start_delay_s: tuple[float, float]
    """From, to."""

@type_check_only
class JobPlan(TypedDict):
    """What a job file is going to do."""

    target_bytes: int
    """Of the device, or what the file will have."""
    processes: list[PlannedProcess]

@type_check_only
class HitRatio(TypedDict):
    """Blocks found in a cache and not."""

    read_hits: int
    read_misses: int
    write_hits: int
    write_misses: int
    write_backs: int
    miss_ratio: float

@type_check_only
class LetPast(TypedDict):
    """What a cache lets past to what is behind it, in runs of blocks."""

    request: npt.NDArray[np.uint64]
    key: npt.NDArray[np.uint64]
    blocks: npt.NDArray[np.uint64]

@type_check_only
class MissRatioCurve(TypedDict):
    """Misses at each of ``sizes`` (blocks)."""

    sizes: npt.NDArray[np.uint64]
    miss_ratio: npt.NDArray[np.float64]
    read_misses: npt.NDArray[np.float64]
    write_misses: npt.NDArray[np.float64]
    write_backs: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]
    reads: int
    writes: int
    footprint: float
    followed: int

@type_check_only
class Placing(TypedDict):
    """Where requests go on a target: see `Placement` of the core."""

    capacity: int | None
    fit: str
    redirect: bool
    align: int
    scale: int

@type_check_only
class TraceFormat(TypedDict):
    """One format of traces."""

    name: str
    summary: str
    reference: str
    writable: bool
    loses: str
    has_response_times: bool
    suffix: str

@final
class TraceReader:
    """A trace being read in batches of columns (:class:`ssdlab.traces.Batch`)."""

    def __new__(cls, path: str | PathLike[str], options: ReadingOptions) -> TraceReader: ...
    @property
    def format(self) -> str: ...
    @property
    def fraction(self) -> float: ...
    def batch(self, limit: int) -> dict[str, npt.NDArray[Any]] | None: ...

@final
class Rig:
    """A rig: a tree of devices before it is built."""

    def __new__(cls, text: str, *, rig_name: str) -> Rig: ...
    @staticmethod
    def wrap(
        kind: str,
        keys: dict[str, Any] | None = None,
        *,
        name: str = "",
        summary: str = "",
        **parts: Rig | list[Rig],
    ) -> Rig: ...
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def drive_class(self) -> str | None:
        """Client, oem, enterprise or data-centre, as it says; None where it says none."""
    @property
    def memory_bytes(self) -> int: ...
    @property
    def capacity_bytes(self) -> int: ...
    def get(self, key: str) -> str | None: ...
    def check_key(self, key: str) -> None: ...
    def bytes(self, key: str) -> int | None: ...
    def values(self) -> list[tuple[str, str, str]]: ...
    def supplied(self) -> list[tuple[str, str]]: ...
    def set(self, key: str, value: str) -> None: ...
    def set_all(self, pairs: Sequence[tuple[str, str]]) -> None: ...
    def find(self, kind: str) -> list[str]: ...
    def part(self, place: str) -> Rig | None: ...
    def copy(self, *, name: str | None = None, summary: str | None = None) -> Rig: ...
    def scale(self, factor: int, *, fewest: int = 1) -> list[tuple[str, str]]: ...
    def to_toml(self) -> str: ...

@final
class Attachment:
    """What an array stands behind: a controller card, a shared bus, both or nothing."""

    def __new__(cls, text: str | None = None, *, file_name: str = "") -> Attachment: ...
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    def get(self, key: str) -> str | None: ...
    def bytes(self, key: str) -> int | None: ...
    def values(self) -> list[tuple[str, str, str]]: ...
    def having(self, key: str, value: str | None, *, name: str | None = None) -> Attachment: ...
    def scaled(self, factor: float, *, least: int | None = None) -> Attachment: ...
    def around(self, rig: Rig) -> Rig: ...
    def __bool__(self) -> bool: ...

@final
class RunOutput:
    """What a run left behind."""

    @property
    def json(self) -> str: ...
    @property
    def series(self) -> dict[str, npt.NDArray[Any] | list[str]]: ...
    @property
    def latency(self) -> dict[str, npt.NDArray[Any] | list[str]]:
        """Columns of one length, and ``offsets`` (one more), ``bins`` and ``counts`` (flat)."""
    @property
    def device_series(self) -> dict[str, npt.NDArray[np.float64] | npt.NDArray[np.uint64] | int]:
        """A counter that never changed is a number."""
    @property
    def logs(self) -> list[tuple[str, str]]: ...
    @property
    def rig_toml(self) -> str: ...
    @property
    def work(self) -> int:
        """About what the simulation took, in I/Os: the same on every machine."""
    @property
    def cut(self) -> bool:
        """Whether it ended before its jobs did, ``most_work`` being used up."""

@final
class Drive:
    """A simulated drive that lives across several jobs: each finds what the one before left.

    ``overrides`` are keys and values as ``--set`` takes them, ``memory_bytes`` is what is
    available; ``seed`` is that of the drive, of preparing it, and of jobs that are given none. One
    call at a time, and none from within ``progress``. After an interrupted ``run`` or ``prepare``
    it is of no use.
    """

    def __new__(
        cls,
        rig: str,
        *,
        rig_name: str,
        overrides: Sequence[tuple[str, str]] = ...,
        seed: int = 1,
        memory_bytes: int | None = None,
    ) -> Drive: ...
    @property
    def capacity_bytes(self) -> int: ...
    @property
    def now_s(self) -> float: ...
    @property
    def rig_toml(self) -> str: ...
    @property
    def state(self) -> str: ...
    def prepare(
        self, steps: str, *, progress: Callable[[Progress], bool] | None = None
    ) -> None: ...
    def run(
        self,
        job: str,
        *,
        job_name: str,
        seed: int | None = None,
        environment: Mapping[str, str] | None = None,
        include: Callable[[str], str] | None = None,
        traces: Callable[[str], tuple[str, ReadingOptions, str, bool]] | None = None,
        progress: Callable[[Progress], bool] | None = None,
        interval_ms: int = 1000,
        log_avg_msec: int | None = None,
        most_work: int | None = None,
        stages: tuple[int, int] | None = None,
        all_counters: bool = False,
    ) -> RunOutput: ...
    def idle(self, seconds: float) -> None: ...
    def power_cut(self) -> float: ...
    def trim(self, offset: int = 0, length: int | None = None) -> None: ...
    def purge(self) -> None: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def restore(self, path: str | PathLike[str]) -> None: ...
    def counters(self) -> dict[str, int]: ...

def check_job(
    job: str,
    *,
    job_name: str,
    environment: Mapping[str, str] | None = None,
    include: Callable[[str], str] | None = None,
    traces: Callable[[str], tuple[str, ReadingOptions, str, bool]] | None = None,
    stages: tuple[int, int] | None = None,
) -> str: ...
def job_plan(
    job: str,
    *,
    job_name: str,
    target_bytes: int | None = None,
    file: bool = False,
    environment: Mapping[str, str] | None = None,
    include: Callable[[str], str] | None = None,
) -> JobPlan: ...
def parse_fio_size(text: str, kb_base: int = 1024) -> int: ...
def rig_check(rig: str, *, rig_name: str, overrides: Sequence[tuple[str, str]] = ...) -> str: ...
def steps_check(steps: str) -> None: ...
def description(name: str) -> list[tuple[str, str, str]]: ...
def registries() -> list[RegistryEntry]: ...
def nearest(name: str, known: Sequence[str]) -> str | None: ...
def device_keys() -> list[DeviceKey]: ...
def job_options() -> list[JobOption]: ...
def hit_ratio(
    policy: str,
    size: int,
    keys: npt.NDArray[np.uint64],
    writes: npt.NDArray[np.bool_] | None = None,
    *,
    blocks: npt.NDArray[np.uint32] | None = None,
    parameters: Mapping[str, float] | None = None,
    seed: int = 1,
) -> HitRatio: ...
def let_past(
    policy: str,
    size: int,
    keys: npt.NDArray[np.uint64],
    writes: npt.NDArray[np.bool_] | None = None,
    *,
    blocks: npt.NDArray[np.uint32] | None = None,
    seed: int = 1,
) -> LetPast: ...
def miss_ratio_curve(
    policy: str,
    keys: npt.NDArray[np.uint64],
    writes: npt.NDArray[np.bool_] | None = None,
    *,
    blocks: npt.NDArray[np.uint32] | None = None,
    sizes: Sequence[int] | None = None,
    rate: float | None = None,
    sample_blocks: int | None = None,
    samples: int = 8,
    parameters: Mapping[str, float] | None = None,
    seed: int = 1,
    repeat: int = 1,
    progress: Callable[[Progress], bool] | None = None,
) -> MissRatioCurve: ...
def object_policies() -> list[str]: ...
def check_policy(policy: str) -> None: ...
def object_misses(
    policy: str,
    capacity: int,
    keys: npt.NDArray[np.uint64],
    sizes: npt.NDArray[np.uint32],
    writes: npt.NDArray[np.bool_],
    times: npt.NDArray[np.int64],
    lives: npt.NDArray[np.uint64],
    *,
    count: int,
    total: int,
    least: int,
    seed: int = 1,
    progress: Callable[[Progress], bool] | None = None,
) -> dict[str, int]: ...
def trace_profile(
    path: str | PathLike[str],
    options: ReadingOptions,
    *,
    progress: Callable[[Progress], bool] | None = None,
) -> str: ...
def trace_convert(
    path: str | PathLike[str],
    options: ReadingOptions,
    out: str | PathLike[str] | None,
    *,
    to: str = "csv",
    name: str = "",
    file: str = "trace.dat",
    block_bytes: int = 4096,
    place: Placing | None = None,
    lane: tuple[int, int] = ...,
    progress: Callable[[Progress], bool] | None = None,
) -> dict[str, Any]: ...
def trace_formats() -> list[TraceFormat]: ...
