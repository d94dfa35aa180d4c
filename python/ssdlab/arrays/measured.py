"""A drive made of what was measured on a real one: its latencies, by direction and size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ssdlab import _core
from ssdlab.analysis.comparison import workloads
from ssdlab.errors import InputError
from ssdlab.histogram import VALUES
from ssdlab.jobfile import read_text
from ssdlab.numeric import Ints
from ssdlab.results import JobResult
from ssdlab.store import MANIFEST, RunStore, open_run
from ssdlab.target import Sim

CAPACITY = "64GiB"
"""Where a document does not say how large the drive is: without effect on latencies."""
NEIGHBOURS = 64
"""Latencies of a log that follow each other as they were measured."""
SERIES_MAX = 200_000
"""Latencies of a log that are used of each direction and size, its first ones."""


def measured_drive(run: Path) -> Sim:
    """The drive of a kept run (its folder or name), a JSON+ document or a latency log of fio.

    Each job of a document gives the distribution of its direction and block size; the depth at
    which they were measured becomes the number of commands that the drive works on at once. A log
    (``write_lat_log`` without averaging, measured at depth 1) gives latencies in their order, of
    which :data:`NEIGHBOURS` at a time stay together. A direction that was not measured takes the
    latencies of the other one.

    Raises InputError where there is no such measurement, or none with latencies (``json+``).
    """
    path = _place(run)
    if (path / MANIFEST).is_file():
        folder = open_run(path)
        name, device = folder.id, _of_document(folder.document(folder.only()), path)
    elif path.suffix == ".log":
        name, device = path.name.split(".")[0], _of_log(path)
    else:
        name, device = path.name.split(".")[0], _of_document(_json(path), path)
    rig = _core.Rig.wrap("measured", device, name=name, summary=f"latencies of {run}")
    return Sim(name, rig.to_toml(), str(run))


def _json(path: Path) -> Any:
    text = read_text(path, "fio result or kept run")
    try:
        return json.loads(text)
    except ValueError:
        return None


def _of_document(document: Any, path: Path) -> dict[str, Any]:
    bins: dict[tuple[str, int], Ints] = {}
    depths: set[int] = set()
    try:
        for raw in document["jobs"]:
            (workload,) = workloads(0, {**document, "jobs": [raw]})
            for stats in JobResult(workload.name, raw).directions():
                if stats.ddir not in ("read", "write") or not stats.clat.known:
                    continue
                size = round(stats.io_bytes / stats.ios / 512) * 512 or 512
                bins[stats.ddir, size] = bins.get((stats.ddir, size), 0) + stats.clat.counts
                depths.add(workload.in_flight)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: is no JSON document of fio (--output-format=json+)") from None
    if not bins:
        raise InputError(
            f"{path}: has no latency bins; run fio with --output-format=json+, which writes them"
        )
    if len(depths) > 1:
        found = ", ".join(str(depth) for depth in sorted(depths))
        raise InputError(
            f"{path}: its jobs ran at depths {found}; a drive is made of jobs at one depth"
        )
    tables = {
        key: {"bins": [[int(VALUES[at]), int(found[at])] for at in np.flatnonzero(found)]}
        for key, found in bins.items()
    }
    return {
        "capacity": _capacity(document),
        "concurrency": depths.pop(),
        "read": _tables(tables, "read"),
        "write": _tables(tables, "write"),
    }


def _of_log(path: Path) -> dict[str, Any]:
    series: dict[tuple[str, int], list[int]] = {}
    for number, line in enumerate(read_text(path, "latency log").splitlines(), 1):
        fields = [field.strip() for field in line.split(",")]
        if not any(fields):
            continue
        try:
            latency, direction, size = (int(field) for field in fields[1:4])
        except ValueError:
            raise InputError(
                f"{path}: line {number} is none of a latency log of fio: "
                "time in ms, latency in ns, direction, size"
            ) from None
        if direction in (0, 1) and size > 0:
            series.setdefault((("read", "write")[direction], size), []).append(latency)
    if not series:
        raise InputError(f"{path}: has no read or write in it, so it is no latency log of fio")
    tables = {
        key: {"series": values[:SERIES_MAX], "block": min(NEIGHBOURS, len(values[:SERIES_MAX]))}
        for key, values in series.items()
    }
    return {
        "capacity": CAPACITY,
        "read": _tables(tables, "read"),
        "write": _tables(tables, "write"),
    }


def _place(run: Path) -> Path:
    if not run.exists() and run.suffix != ".json":
        run = RunStore().find(str(run))
    if not run.is_dir() or (run / MANIFEST).is_file():
        return run
    path = next((path for path in sorted(run.glob("*.json")) if path.is_file()), None)
    if path is None:
        raise InputError(f"{run}: holds no fio result; name a kept run or a JSON+ document of fio")
    return path


def _tables(tables: dict[tuple[str, int], dict[str, Any]], ddir: str) -> list[dict[str, Any]]:
    own = {size: table for (one, size), table in tables.items() if one == ddir}
    own = own or {size: table for (_, size), table in tables.items()}
    return [{"size": f"{size}B", **found} for size, found in sorted(own.items())]


def _capacity(document: dict[str, Any]) -> str:
    size = document.get("ssdlab", {}).get("target", {}).get("capacity_bytes")
    return CAPACITY if not size else f"{int(size) // 4096 * 4096}B"
