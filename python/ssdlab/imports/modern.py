"""Documents of any version of fio in the form that version 3 gives them.

Versions before 2.99 give latencies in microseconds (``clat``) and ``io_bytes`` in KiB; the oldest
have no ``total_ios``. Their bins of JSON+ are numbered, not named by their latency. Between client
and server the jobs stand in ``client_stats``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ssdlab import documents
from ssdlab.errors import InputError
from ssdlab.histogram import KINDS, VALUES
from ssdlab.results import DIRECTIONS, of_jobs

ALL_CLIENTS = "All clients"
"""The name of the sum over clients, which counts everything once more."""
KEPT = ("fio version", "timestamp", "timestamp_ms", "time", "disk_util")
"""What of a document is kept beside its jobs and options."""
_VERSION = re.compile(r"(\d+)\.(\d+)")


def version(document: Mapping[str, Any]) -> tuple[int, int] | None:
    """Of fio, as the document says; None where it does not."""
    match = _VERSION.search(str(document.get("fio version", "")))
    return (int(match[1]), int(match[2])) if match else None


def in_microseconds(document: Mapping[str, Any]) -> bool:
    """Whether its latencies, and those of its logs, are in microseconds."""
    told = version(document)
    if told is not None:
        return told < (2, 99)
    sides = [job.get(ddir) for job in _entries(document) for ddir in DIRECTIONS]
    return any(isinstance(side, Mapping) and "clat" in side for side in sides)


def modern(document: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The document as fio 3 would have written it, with its jobs' options as text; InputError where
    it says nothing of any I/O, or something that cannot be read."""
    jobs = [entry for entry in _entries(document) if entry.get("jobname") != ALL_CLIENTS]
    old = in_microseconds(document)
    try:
        made = {
            **{name: document[name] for name in KEPT if name in document},
            "global options": _options(document.get("global options")),
            "jobs": of_jobs([_job(job, old) for job in jobs]),
        }
        documents.DOCUMENT.validate_python(made)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise InputError(f"{place}: is no result of fio ({documents.why(error)})") from None
    if not any(job[ddir]["total_ios"] for job in made["jobs"] for ddir in DIRECTIONS):
        raise InputError(f"{place}: its jobs did no I/O")
    return made


def _entries(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = document.get("jobs") or document.get("client_stats") or []
    return [one for one in found if isinstance(one, Mapping)]


def _options(given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        return {}
    return {str(key): "" if value is None else str(value) for key, value in given.items()}


def _job(raw: Mapping[str, Any], old: bool) -> dict[str, Any]:
    sides = {ddir: _side(raw.get(ddir) or {}, old) for ddir in DIRECTIONS}
    runtime = max(side["runtime"] for side in sides.values())
    made: dict[str, Any] = {
        "jobname": str(raw.get("jobname", "")),
        "error": int(raw.get("error", 0)),
        "job options": _options(raw.get("job options")),
        # With group_reporting, fio adds up that of the group's threads.
        "job_runtime": runtime or int(raw.get("job_runtime", 0)),
        **sides,
    }
    for name in ("groupid", "elapsed", "job_start", "hostname", "ctx", "latency_depth"):
        if name in raw:
            made[name] = raw[name]
    for name in ("usr_cpu", "sys_cpu"):
        if isinstance(raw.get(name), int | float):
            made[name] = float(raw[name])
    sync = raw.get("sync")
    if isinstance(sync, Mapping) and int(sync.get("total_ios", 0)) > 0:
        flushes = int(sync["total_ios"])
        latency = _latency(sync, "lat", old, flushes)
        made["sync"] = {"total_ios": flushes, **({"lat_ns": latency} if latency else {})}
    return made


def _side(raw: Mapping[str, Any], old: bool) -> dict[str, Any]:
    """One direction of a job."""
    runtime = int(raw.get("runtime", 0))
    iops = float(raw.get("iops") or 0.0)
    bandwidth = raw.get("bw_bytes")
    if bandwidth is None:
        bandwidth = float(raw.get("bw") or 0.0) * 1024
    moved = int(raw.get("io_bytes", 0)) * (1024 if old and "io_kbytes" not in raw else 1)
    ios = raw.get("total_ios")
    made: dict[str, Any] = {
        # The oldest versions do not count: rate and time say how many there were.
        "total_ios": int(iops * runtime / 1000 + 0.5) if ios is None else int(ios),
        "io_bytes": moved,
        "bw_bytes": float(bandwidth),
        "bw": int(float(bandwidth) / 1024),
        "iops": iops,
        "runtime": runtime,
    }
    for name in ("short_ios", "drop_ios"):
        if name in raw:
            made[name] = int(raw[name])
    for kind in KINDS:
        if latency := _latency(raw, kind, old, made["total_ios"]):
            made[f"{kind}_ns"] = latency
    return made


def _latency(raw: Mapping[str, Any], kind: str, old: bool, ios: int) -> dict[str, Any] | None:
    """The latencies of one kind, ns; None where there are none."""
    found, scale = raw.get(f"{kind}_ns"), 1
    if found is None:
        found, scale = raw.get(kind), 1000 if old else 1
    if not isinstance(found, Mapping) or not ios:
        return None
    made: dict[str, Any] = {}
    for name in ("min", "max", "mean", "stddev"):
        if isinstance(value := found.get(name), int | float):
            whole = name in ("min", "max")
            made[name] = round(value * scale) if whole else float(value * scale)
    if not made.get("max") and not made.get("mean"):
        return None  # zeros stand for a kind that was not measured
    if isinstance(found.get("N"), int):
        made["N"] = found["N"]
    told = found.get("percentile") or {}
    # Old versions fill their list up with "0.00".
    if percentiles := {
        f"{float(p):f}": int(v * scale) for p, v in told.items() if float(p) > 0 and v is not None
    }:
        made["percentile"] = percentiles
    if bins := _bins(found.get("bins") or {}, scale):
        made["bins"] = bins
    return made


def _bins(bins: Mapping[str, Any], scale: int) -> dict[str, int]:
    """I/Os by latency in ns. Old versions number their bins, and say so by the constants beside."""
    numbered = "FIO_IO_U_PLAT_BITS" in bins
    made: dict[str, int] = {}
    for key, count in bins.items():
        if not key.isdigit() or not count:
            continue
        value = int(VALUES[min(int(key), len(VALUES) - 1)]) if numbered else int(key)
        made[str(value * scale)] = int(count)
    return made
