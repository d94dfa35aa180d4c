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
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from types import GenericAlias, MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

import polars as pl
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)

from ssdlab import wear
from ssdlab.errors import InputError
from ssdlab.results import CLASS_SCHEMA, LATENCY_SCHEMA, SERIES_SCHEMA

T = TypeVar("T")
COUNT_MAX = 2**64 - 1


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
Amount = Annotated[float, Field(ge=0, le=1e300)]
Positive = Annotated[float, Field(gt=0, le=1e300)]
Moment = Annotated[str, AfterValidator(_moment)]
Whole = Annotated[str, StringConstraints(pattern=r"^\d{1,19}$")]
Percent = Annotated[str, StringConstraints(pattern=r"^\d{1,3}(\.\d+)?$")]
Scalar = str | int | float | bool | None


class DocumentPart(BaseModel):
    """An object in a file of a run."""

    # Strict: "5" is no number. What has been added by others does no harm.
    # Built when first checked with: most commands read a few of the kinds.
    model_config = ConfigDict(strict=True, extra="ignore", defer_build=True)


def _object(*needed: str, check: Callable[[Any], Any] | None = None, **kinds: Any) -> Any:
    """An object with such values by key, of which ``check`` holds; a key that is not ``needed`` may
    be missing."""
    fields: dict[str, Any] = {
        key: (kind, ... if key in needed else None) for key, kind in kinds.items()
    }
    checks: dict[str, Any] = {"check": model_validator(mode="after")(check)} if check else {}
    return create_model("object", __base__=DocumentPart, __validators__=checks, **fields)


def _list(kind: Any) -> Any:
    return GenericAlias(list, kind)


def _moved(side: Any) -> Any:
    missing = [name for name in ("io_bytes", "iops", "bw_bytes") if getattr(side, name) is None]
    if side.total_ios and missing:
        raise ValueError(f"{missing[0]} is missing")
    return side


def _possible(of: Any) -> Any:
    """Latencies of which none is out of the order that any have."""
    # Those of old versions are whole microseconds, but for the mean.
    slack = 1 + 1e-6 * (of.max or 0) if (of.max or 0) % 1000 else 1000
    if of.mean and of.max is not None and of.mean > of.max + slack:
        raise ValueError(f"the mean ({of.mean:.0f} ns) is above the maximum ({of.max} ns)")
    if of.mean and of.min is not None and of.mean < of.min - slack:
        raise ValueError(f"the mean ({of.mean:.0f} ns) is below the minimum ({of.min} ns)")
    told = sorted((float(percent), ns) for percent, ns in (of.percentile or {}).items())
    for (one, ns), (other, higher) in pairwise(told):
        if ns > higher:
            raise ValueError(f"p{other:g} ({higher} ns) is below p{one:g} ({ns} ns)")
    return of


_LATENCY = _object(
    check=_possible,
    mean=Amount,
    min=Count,
    max=Count,
    stddev=Number,
    percentile=dict[Percent, Count],
    bins=dict[Whole, Count],
)
_DIRECTION = _object(
    check=_moved,
    total_ios=Count,
    io_bytes=Count | None,
    runtime=Count,
    iops=Amount | None,
    bw_bytes=Amount | None,
    short_ios=Count,
    drop_ios=Count,
    clat_ns=_LATENCY | None,
    lat_ns=_LATENCY | None,
    slat_ns=_LATENCY | None,
)
_OPTIONS = dict[str, str]
_JOB = _object(
    jobname=str,
    error=int,
    options=Annotated[_OPTIONS, Field(alias="job options")],
    read=_DIRECTION | None,
    write=_DIRECTION | None,
    trim=_DIRECTION | None,
    sync=_object(total_ios=Count, lat_ns=_LATENCY | None) | None,
    job_runtime=Count,
    usr_cpu=Number,
    sys_cpu=Number,
)


def _lengths(of: Any) -> set[int]:
    """How many parts the times of all directions have."""
    sides = [one for one in (of.read, of.write, of.trim, of.sync) if one is not None]
    return {
        len(ns) for side in sides for ns in (side.total_ns, *(x.ns for x in side.by_latency or ()))
    }


def _fitting(found: Any) -> Any:
    lengths = _lengths(found).union(*map(_lengths, (found.jobs or {}).values()))
    if lengths - {len(found.parts)}:
        raise ValueError(f"{len(found.parts)} parts, but times of {max(lengths)}")
    return found


_CLASS = _object("upper_ns", "ios", "ns", upper_ns=Count, ios=Count, ns=list[Number])
_PARTS = _object("total_ns", total_ns=list[Number], by_latency=_list(_CLASS)) | None
_DIRECTIONS = {"read": _PARTS, "write": _PARTS, "trim": _PARTS, "sync": _PARTS}
_ATTRIBUTION = _object(
    "parts",
    check=_fitting,
    parts=list[str],
    jobs=GenericAlias(dict, (str, _object(**_DIRECTIONS))),
    **_DIRECTIONS,
)

_CELSIUS = _object(before=Number | None, after=Number | None, limit=Number | None)
_UNWRITTEN = (
    _object(bytes=Count, unwritten_bytes=Count, cells=list[Number], holes=list[list[Count]]) | None
)
_OBSERVED = _object(
    seconds=Number,
    disk=dict[str, int] | None,
    cpu_seconds=dict[str, Number] | None,
    pressure_seconds=dict[str, Number] | None,
    celsius=_CELSIUS | None,
    cpu_throttles=int | None,
    file=_object(before=_UNWRITTEN, after=_UNWRITTEN) | None,
    loop_direct=bool | None,
    members=list[str] | None,
    raid=str | None,
    link_bytes_per_s=Number | None,
)
# A document of ``smartctl --json``: what checks read of it.
_SPEED = _object(units_per_second=int | None, bits_per_unit=int | None) | None
_WARM = _object(current=Number | None, op_limit_max=Number | None, limit_max=Number | None)
_ATTRIBUTE = _object("id", id=int, raw=_object(value=int) | None)
_LOOSE = dict[str, Scalar | list[Any]] | None
_SMART = (
    _object(
        temperature=_WARM | None,
        interface_speed=_object(current=_SPEED) | None,
        ata_smart_attributes=_object(table=_list(_ATTRIBUTE)) | None,
        nvme_smart_health_information_log=_LOOSE,
    )
    | None
)
SURROUNDINGS: Any = _object(
    kernel=str | None,
    fio_version=str | None,
    rig=str | None,
    drive=_LOOSE,
    file_system=dict[str, Scalar] | None,
    smart=_object(before=_SMART, after=_SMART) | None,
    observed=_OBSERVED | None,
)
"""Kernel, drive and file system of a real run; ``rig`` of a simulated protocol's."""


def _counted(about: Any) -> Any:
    try:
        _ = wear.Stretch(about.counters or {}, {}).wear
    except KeyError as error:
        raise ValueError(f"the counter {error} is missing") from None
    except ZeroDivisionError:
        raise ValueError("the counters are of a drive without superblocks") from None
    return about


_KEY = _object("key", key=str, value=Scalar, source=str | None)
_OPTION = _object("option", job=str | None, option=str, value=Scalar, line=int | None)
_JOB_SPAN = _object(
    "name", name=str, started_s=Number, measured_from_s=Number, ended_s=Number, waf=Number | None
)
_BUILT = _object(
    "physical_bytes",
    "over_provisioning",
    "dies",
    "superblocks",
    capacity_bytes=Count | None,
    physical_bytes=Count,
    over_provisioning=Number,
    dies=Count,
    superblocks=Count,
    superblock_bytes=Count | None,
    reserve_superblocks=Count | None,
)
_IMPORTED = _object(
    "file",
    file=str,
    document=Count,
    layout=str,
    sha256=str,
    target_kind=Literal["sim", "file", "device", "unknown"],
    knows_options=bool,
    options_of_place=_OPTIONS,
)
_ABOUT = _object(
    check=_counted,
    imported=_IMPORTED | None,
    version=str | None,
    seed=int | None,
    target=_object(kind=str, name=str, summary=str, capacity_bytes=Count | None),
    profile=_object(name=str | None, summary=str | None, values=_list(_KEY)) | None,
    ignored_options=_list(_OPTION) | None,
    replaced_options=_list(_OPTION) | None,
    preconditioning=str | None,
    simulated_seconds=Number,
    interval_ms=Positive | None,
    jobs=_list(_JOB_SPAN),
    waf=Number | None,
    waf_lifetime=Number | None,
    volatile_writes=bool | None,
    built=GenericAlias(dict, (str, _BUILT)) | None,
    counters=dict[str, Number] | None,
    wear=dict[str, Any] | None,
    attribution=_ATTRIBUTION | None,
    surroundings=SURROUNDINGS | None,
)
DOCUMENT: TypeAdapter[Any] = TypeAdapter(
    _object(
        "jobs",
        jobs=_list(_JOB),
        shared=Annotated[_OPTIONS, Field(alias="global options")],
        ssdlab=_ABOUT,
    )
)
"""``result.json``: fio's JSON+ and what ssdlab adds."""


def damaged(place: object, why: str) -> InputError:
    """The error for a file of a run that is not what was written."""
    return InputError(f"{place}: this file of the run cannot be read ({why})")


def read_bytes(path: Path) -> bytes:
    """What is in a file of a run; InputError where it is missing or cannot be read."""
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
    """The JSON value in a file of a run; InputError where it is none."""
    text = data if isinstance(data, str) else decoded(data, place)
    try:
        return json.loads(text)
    except RecursionError:
        raise damaged(place, "nested too deeply") from None
    except ValueError as error:
        raise damaged(place, f"no JSON: {error}") from None


def checked(value: Any, shape: type[T] | TypeAdapter[T], place: object) -> T:
    """``value`` as ``shape``; it is not changed by that; InputError that says where in the file
    ``place`` something else stands."""
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
    """A ``result.json``; InputError where it has another shape."""
    found: dict[str, Any] = parsed(data, place)
    checked(found, DOCUMENT, place)
    return found


def frame(
    data: bytes,
    place: object,
    columns: Mapping[str, pl.DataType | type[pl.DataType]],
    together: Mapping[str, pl.DataType] = MappingProxyType({}),
) -> pl.DataFrame:
    """A table in Parquet that has these columns and all or none of those of ``together``, and
    otherwise only numbers; InputError where it is none."""
    try:
        found = pl.read_parquet(io.BytesIO(data))
    except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise damaged(place, str(error).partition("\n")[0]) from None
    if together.keys() & found.schema.keys():
        columns = {**columns, **together}
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
    found = frame(data, place, LATENCY_SCHEMA, CLASS_SCHEMA)
    sizes = found.select(pl.col(pl.List).list.len())
    parallel = [("bins", "counts"), ("class_upper_ns", "class_ios")]
    for one, other in parallel:
        if other in sizes.columns and (sizes[one] != sizes[other]).any():
            raise damaged(place, f"columns {one} and {other}: expected as many values in each row")
    return found


_IN_ARCHIVE = {"result.json", "job.fio", "series.parquet"}


@contextlib.contextmanager
def archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive of a step, which has every file that one has; InputError where it has not, or
    breaks while it is read."""
    try:
        with zipfile.ZipFile(path) as found:
            if missing := sorted(_IN_ARCHIVE - {*found.namelist()}):
                raise damaged(path, f"{missing[0]} is missing in it")
            yield found
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise damaged(path, getattr(error, "strerror", None) or str(error)) from None
