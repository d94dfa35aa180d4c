"""A drive made of what was measured on a real one: its latencies, by direction and size."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from ssdlab.arrays.rigs import Drive, toml_text
from ssdlab.errors import InputError
from ssdlab.fio.job import parse_size
from ssdlab.jobfile import read_text
from ssdlab.results import JobResult
from ssdlab.store import RunStore

CAPACITY = "64GiB"
"""Where a document does not say how large the drive is: without effect on latencies."""
RESULT = "result.json"


def measured_drive(run: Path) -> Drive:
    """The drive of a kept run (its folder or name) or of a JSON+ document of fio.

    Each job gives the distribution of its direction and block size; the depth at which they were
    measured becomes the number of commands that the drive works on at once. A direction that was
    not measured takes the latencies of the other one.

    Raises InputError where there is no such document, or none with latencies (``json+``).
    """
    path = _document(run)
    text = read_text(path, "fio result or kept run")
    try:
        document = json.loads(text)
        jobs = [JobResult(str(raw.get("jobname", "")), raw) for raw in document["jobs"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: is no JSON document of fio (--output-format=json+)") from None
    shared = document.get("global options", {})
    bins: dict[tuple[str, int], Counter[int]] = {}
    depths: Counter[int] = Counter()
    for one in jobs:
        options = {**shared, **one.options}
        for stats in one.directions():
            if stats.ddir not in ("read", "write") or not stats.bins:
                continue
            size = round(stats.io_bytes / stats.ios / 512) * 512 or 512
            bins.setdefault((stats.ddir, size), Counter()).update(stats.bins)
            depths[_number(options.get("iodepth", "1")) * _number(options.get("numjobs", "1"))] += 1
    if not bins:
        raise InputError(
            f"{path}: has no latency bins; run fio with --output-format=json+, which writes them"
        )
    if len(depths) > 1:
        found = ", ".join(str(depth) for depth in sorted(depths))
        raise InputError(
            f"{path}: its jobs ran at depths {found}; a drive is made of jobs at one depth"
        )
    device = {
        "kind": "measured",
        "capacity": _capacity(document),
        "concurrency": next(iter(depths)),
        "read": _tables(bins, "read"),
        "write": _tables(bins, "write"),
    }
    name = path.parent.name if path.name == RESULT else path.stem
    head = {"name": name, "summary": f"latencies of {run}"}
    return Drive(name, toml_text({**head, "device": device}), str(run))


def _document(run: Path) -> Path:
    if not run.exists() and run.suffix != ".json":
        run = RunStore().find(str(run))
    if not run.is_dir():
        return run
    found = [run / RESULT, *sorted(run.glob("*.json"))]
    path = next((one for one in found if one.is_file()), None)
    if path is None:
        raise InputError(f"{run}: holds no fio result; name a kept run or a JSON+ document of fio")
    return path


def _tables(bins: dict[tuple[str, int], Counter[int]], ddir: str) -> list[dict[str, Any]]:
    own = {size: found for (one, size), found in bins.items() if one == ddir}
    own = own or {size: found for (_, size), found in bins.items()}
    return [
        {"size": f"{size}B", "bins": [[ns, n] for ns, n in sorted(found.items()) if n]}
        for size, found in sorted(own.items())
    ]


def _capacity(document: dict[str, Any]) -> str:
    size = document.get("ssdlab", {}).get("target", {}).get("capacity_bytes")
    return CAPACITY if not size else f"{int(size) // 4096 * 4096}B"


def _number(text: object) -> int:
    found = parse_size(str(text), None)
    return max(1, found or 1)
