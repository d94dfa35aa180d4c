"""The files of a run as they are read back: checked once, where they are loaded.

Whatever reads a run later may rely on the types written down here; ``docs/results.md`` says what
they mean. What is not named here is kept as it is.
"""

from __future__ import annotations

import contextlib
import io
import json
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import polars as pl
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from ssdlab import wear
from ssdlab.errors import InputError
from ssdlab.results import LATENCY_SCHEMA, SERIES_SCHEMA

T = TypeVar("T")
COUNT_MAX = 2**64 - 1


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
Positive = Annotated[float, Field(gt=0, le=1e300)]
Moment = Annotated[str, AfterValidator(_moment)]
Whole = Annotated[str, StringConstraints(pattern=r"^\d{1,19}$")]
Percent = Annotated[str, StringConstraints(pattern=r"^\d{1,3}(\.\d+)?$")]
Scalar = str | int | float | bool | None


class DocumentPart(BaseModel):
    """An object in a file of a run."""

    # Strict: "5" is no number. What has been added by others does no harm.
    model_config = ConfigDict(strict=True, extra="ignore")


class Latency(DocumentPart):
    """``clat_ns`` and its like."""

    mean: Number = 0.0
    max: Count = 0
    stddev: Number = 0.0
    percentile: dict[Percent, Count] = {}
    bins: dict[Whole, Count] = {}


class DirectionDocument(DocumentPart):
    """What a job did in one direction."""

    total_ios: Count = 0
    io_bytes: Count | None = None
    runtime: Count = 0
    iops: Number | None = None
    bw_bytes: Number | None = None
    short_ios: Count = 0
    drop_ios: Count = 0
    clat_ns: Latency | None = None
    lat_ns: Latency | None = None
    slat_ns: Latency | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        missing = [name for name in ("io_bytes", "iops", "bw_bytes") if getattr(self, name) is None]
        if self.total_ios and missing:
            raise ValueError(f"{missing[0]} is missing")
        return self


class Sync(DocumentPart):
    """What flushes a job did."""

    total_ios: Count = 0
    lat_ns: Latency | None = None


class JobDocument(DocumentPart):
    """An entry of ``jobs``."""

    jobname: str = ""
    error: int = 0
    options: dict[str, str] = Field({}, alias="job options")
    read: DirectionDocument | None = None
    write: DirectionDocument | None = None
    trim: DirectionDocument | None = None
    sync: Sync | None = None
    job_runtime: Count = 0
    usr_cpu: Number = 0.0
    sys_cpu: Number = 0.0


class _Class(DocumentPart):
    upper_ns: Count
    ios: Count
    ns: list[Number]


class _Parts(DocumentPart):
    total_ns: list[Number]
    by_latency: list[_Class] = []

    def lengths(self) -> set[int]:
        """How many parts each list has."""
        return {len(self.total_ns), *(len(one.ns) for one in self.by_latency)}


class _Directions(DocumentPart):
    read: _Parts | None = None
    write: _Parts | None = None
    trim: _Parts | None = None
    sync: _Parts | None = None

    def lengths(self) -> set[int]:
        found = (self.read, self.write, self.trim, self.sync)
        return {length for one in found if one is not None for length in one.lengths()}


class Attribution(_Directions):
    """Where the time went."""

    parts: list[str]
    jobs: dict[str, _Directions] = {}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        found = self.lengths().union(*(one.lengths() for one in self.jobs.values()))
        if found - {len(self.parts)}:
            raise ValueError(f"{len(self.parts)} parts, but times of {max(found)}")
        return self


class TargetDocument(DocumentPart):
    """What was measured."""

    kind: str = "fio"
    name: str = ""
    summary: str = ""
    capacity_bytes: Count | None = None


class _Key(DocumentPart):
    key: str
    value: Scalar = None
    source: str | None = None


class _Profile(DocumentPart):
    name: str | None = None
    summary: str | None = None
    values: list[_Key] = []


class _Option(DocumentPart):
    job: str | None = None
    option: str
    value: Scalar = None
    line: int | None = None


class _JobSpan(DocumentPart):
    name: str
    started_s: Number = 0.0
    measured_from_s: Number = 0.0
    ended_s: Number = 0.0
    waf: Number | None = None


class _Celsius(DocumentPart):
    before: Number | None = None
    after: Number | None = None
    limit: Number | None = None


class _Unwritten(DocumentPart):
    bytes: Count = 0
    unwritten_bytes: Count = 0
    cells: list[Number] = []


class _FileObserved(DocumentPart):
    before: _Unwritten | None = None
    after: _Unwritten | None = None


class Observed(DocumentPart):
    """What changed around fio."""

    seconds: Number = 0.0
    disk: dict[str, int] | None = None
    cpu_seconds: dict[str, Number] | None = None
    pressure_seconds: dict[str, Number] | None = None
    celsius: _Celsius | None = None
    cpu_throttles: int | None = None
    file: _FileObserved | None = None
    loop_direct: bool | None = None
    members: list[str] | None = None
    raid: str | None = None
    link_bytes_per_s: Number | None = None


class _Raw(DocumentPart):
    value: int = 0


class _Attribute(DocumentPart):
    id: int
    raw: _Raw | None = None


class _Attributes(DocumentPart):
    table: list[_Attribute] = []


class _Speed(DocumentPart):
    units_per_second: int | None = None
    bits_per_unit: int | None = None


class _Speeds(DocumentPart):
    current: _Speed | None = None


class _Warm(DocumentPart):
    current: Number | None = None
    op_limit_max: Number | None = None
    limit_max: Number | None = None


class _Smart(DocumentPart):
    """A document of ``smartctl --json``: what checks read of it."""

    temperature: _Warm | None = None
    interface_speed: _Speeds | None = None
    ata_smart_attributes: _Attributes | None = None
    nvme_smart_health_information_log: dict[str, Scalar | list[Any]] | None = None


class _Smarts(DocumentPart):
    before: _Smart | None = None
    after: _Smart | None = None


class Surroundings(DocumentPart):
    """Kernel, drive and file system of a real run; ``rig`` of a simulated protocol's."""

    kernel: str | None = None
    fio_version: str | None = None
    rig: str | None = None
    drive: dict[str, Scalar | list[Any]] | None = None
    file_system: dict[str, Scalar] | None = None
    smart: _Smarts | None = None
    observed: Observed | None = None


class About(DocumentPart):
    """The object ``ssdlab`` of a result."""

    version: str | None = None
    seed: int | None = None
    target: TargetDocument = TargetDocument()
    profile: _Profile | None = None
    ignored_options: list[_Option] | None = None
    replaced_options: list[_Option] | None = None
    preconditioning: str | None = None
    simulated_seconds: Number = 0.0
    interval_ms: Positive | None = None
    jobs: list[_JobSpan] = []
    waf: Number | None = None
    waf_lifetime: Number | None = None
    counters: dict[str, Number] | None = None
    wear: dict[str, Any] | None = None
    attribution: Attribution | None = None
    surroundings: Surroundings | None = None

    @model_validator(mode="after")
    def _counted(self) -> Self:
        try:
            _ = wear.Stretch(self.counters or {}, {}).wear
        except KeyError as error:
            raise ValueError(f"the counter {error} is missing") from None
        except ZeroDivisionError:
            raise ValueError("the counters are of a drive without superblocks") from None
        return self


class Document(DocumentPart):
    """``result.json``: fio's JSON+ and what ssdlab adds."""

    jobs: list[JobDocument]
    shared: dict[str, str] = Field({}, alias="global options")
    ssdlab: About = About()


def damaged(place: object, why: str) -> InputError:
    """The error for a file of a run that is not what was written."""
    return InputError(f"{place}: this file of the run cannot be read ({why})")


def read_bytes(path: Path) -> bytes:
    """What is in a file of a run.

    Raises InputError where it is missing or cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise damaged(path, error.strerror or str(error)) from None


def decoded(data: bytes, place: object) -> str:
    """The text of a file of a run."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged(place, f"no text in UTF-8 from byte {error.start} on") from None


def rig(data: bytes, place: object) -> str:
    """A ``rig.toml``; InputError where it is no TOML."""
    text = decoded(data, place)
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise damaged(place, str(error)) from None
    return text


def parsed(data: bytes | str, place: object) -> Any:
    """The JSON value in a file of a run.

    Raises InputError where it is none.
    """
    text = data if isinstance(data, str) else decoded(data, place)
    try:
        return json.loads(text)
    except RecursionError:
        raise damaged(place, "nested too deeply") from None
    except ValueError as error:
        raise damaged(place, f"no JSON: {error}") from None


def checked(value: Any, shape: type[T] | TypeAdapter[T], place: object) -> T:
    """``value`` as ``shape``; it is not changed by that.

    Raises InputError that says where in the file ``place`` something else stands.
    """
    adapter = shape if isinstance(shape, TypeAdapter) else TypeAdapter(shape)
    try:
        return adapter.validate_python(value)
    except (ValidationError, RecursionError, OverflowError) as error:
        raise damaged(place, why(error)) from None


def why(error: Exception) -> str:
    """What is wrong with a document, and where."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    said = said[:1].lower() + said[1:]
    return f"{where}: {said}" if where else said


def document(data: bytes, place: object) -> dict[str, Any]:
    """A ``result.json`` of :class:`Document`'s shape.

    Raises InputError where it has another one.
    """
    found: dict[str, Any] = parsed(data, place)
    checked(found, _DOCUMENT, place)
    return found


_DOCUMENT = TypeAdapter(Document)


def frame(
    data: bytes, place: object, columns: Mapping[str, pl.DataType | type[pl.DataType]]
) -> pl.DataFrame:
    """A table in Parquet that has these columns, and otherwise only numbers.

    Raises InputError where it is none.
    """
    try:
        found = pl.read_parquet(io.BytesIO(data))
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise damaged(place, str(error).partition("\n")[0]) from None
    for name, kind in columns.items():
        if found.schema.get(name) != kind:
            raise damaged(place, f"column {name}: expected {kind}")
    for name, given in found.schema.items():
        if name not in columns and not given.is_numeric():
            raise damaged(place, f"column {name}: expected numbers")
    return found


def series(data: bytes, place: object) -> pl.DataFrame:
    """A ``series.parquet``."""
    return frame(data, place, SERIES_SCHEMA)


def device(data: bytes, place: object) -> pl.DataFrame:
    """A ``device.parquet``."""
    return frame(data, place, {"time_s": pl.Float64})


def latency(data: bytes, place: object) -> pl.DataFrame:
    """A ``latency.parquet``."""
    return frame(data, place, LATENCY_SCHEMA)


_IN_ARCHIVE = {"result.json", "job.fio", "series.parquet"}


@contextlib.contextmanager
def archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive of a step, which has every file that one has.

    Raises InputError where it has not, or breaks while it is read.
    """
    try:
        with zipfile.ZipFile(path) as found:
            if missing := sorted(_IN_ARCHIVE - {*found.namelist()}):
                raise damaged(path, f"{missing[0]} is missing in it")
            yield found
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise damaged(path, getattr(error, "strerror", None) or str(error)) from None
