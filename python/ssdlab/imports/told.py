"""What the places of files tell of a measurement: the layouts of bench-fio, ezFIO and CBT.

What fio's document says itself comes first; a place only fills what it leaves open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ssdlab.imports import files

PLAIN = "fio"
"""A document by itself."""
_MODES = "read|write|randread|randwrite|trim|randtrim|rw|readwrite|randrw"
_BENCH_FIO = re.compile(rf"({_MODES})-(\d+)-(\d+)\.json")
_BLOCK = re.compile(r"\d+[kmgKMG]?i?[bB]?")
_MIXED = re.compile(r"(?:rw|readwrite|randrw)(\d{1,3})")
_EZFIO = re.compile(r"Test(Seq|Rand)_w(\d+)_bs(\d+)_threads(\d+)_iodepth(\d+)_(.+)\.out")
_EZFIO_JOB = re.compile(r"^\[JOBFILE[^\]]*\]\n(.*?)^\[STDOUT\]$", re.MULTILINE | re.DOTALL)
_CBT = {"op_size": "bs", "iodepth": "iodepth", "numjobs": "numjobs"}
"""Parts of the names of CBT's folders (``op_size-00004096``), and the option that each tells."""
_CSV_ROWS = 12
"""In so many first lines ezFIO's table says what was tested."""


@dataclass(frozen=True)
class Told:
    """What is known beside the document."""

    layout: str = PLAIN
    device: str | None = None
    """A path such as ``/dev/nvme0n1``, or the name of one."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of its jobs, by fio's names."""
    job_text: str | None = None
    """The job file."""
    drive: Mapping[str, str | int] = field(default_factory=dict)
    """``model``, ``serial`` and ``capacity_bytes``, as far as they are known."""
    logs: str | None = None
    """How the names of its logs begin."""


def by_place(path: Path, text: str) -> Told:
    """What the place of a document and the text around it tell."""
    if (match := _EZFIO.fullmatch(path.name)) is not None:
        return _ezfio(match, path, text)
    if (match := _BENCH_FIO.fullmatch(path.name)) is not None:
        return _bench_fio(match, path)
    return _cbt(path)


def _bench_fio(match: re.Match[str], path: Path) -> Told:
    """``DEVICE/[MODE+MIX/]BLOCK/[run-N/]MODE-DEPTH-JOBS.json``."""
    mode, depth, jobs = match.groups()
    options = {"rw": mode, "iodepth": depth, "numjobs": jobs}
    above = [parent.name for parent in path.parents]
    if above and re.fullmatch(r"run-\d+", above[0]):
        above = above[1:]
    device = None
    if above and _BLOCK.fullmatch(above[0]):
        options["bs"] = above[0]
        device = above[1] if len(above) > 1 else None
        if len(above) > 1 and (mixed := _MIXED.fullmatch(above[1])):
            options["rwmixread"] = mixed[1]
            device = above[2] if len(above) > 2 else None
    logs = f"{mode}-iodepth-{depth}-numjobs-{jobs}"
    return Told("bench-fio", device or None, options, logs=logs)


def _ezfio(match: re.Match[str], path: Path, text: str) -> Told:
    """``details_.../TestRand_w30_bs4096_threads8_iodepth1_nvme0n1.out``: the job, then the
    document; what was tested stands in the table beside it."""
    order, writes, size, threads, depth, device = match.groups()
    options = {
        "rw": "rw" if order == "Seq" else "randrw",
        "rwmixread": str(100 - int(writes)),
        "bs": size,
        "numjobs": threads,
        "iodepth": depth,
    }
    job = _EZFIO_JOB.search(text)
    if job is not None:
        # Its sections are alike but for the drive. ``rw`` and the mix have other names there.
        lines = (line.partition("=") for line in job[1].splitlines())
        options = {key: value for key, equals, value in lines if equals} | options
        options = {k: v for k, v in options.items() if k not in ("readwrite", "rwmixwrite")}
    return Told("ezFIO", device, options, job and job[1], _ezfio_drive(path.parent), path.name)


def _ezfio_drive(folder: Path) -> dict[str, str | int]:
    """Model, serial and capacity by the head of ``ezfio_tests_*.csv``."""
    found: dict[str, str | int] = {}
    tables = sorted(folder.glob("ezfio_tests_*.csv"))
    for table in (path for path in tables[:1] if not path.is_symlink()):
        head = [line.split(",") for line in files.text_of(table).splitlines()[:_CSV_ROWS]]
        rows = {row[0]: row[1].strip() for row in head if len(row) > 1}
        found |= {
            key: rows[name]
            for name, key in (("Model", "model"), ("Serial", "serial"))
            if rows.get(name, "").strip(" -") not in ("", "UNKNOWN", "unknown")
        }
        size = re.search(r"(\d+(?:\.\d+)?)$", rows.get("AvailCapacity", ""))
        if size:
            found["capacity_bytes"] = int(float(size[1]) * (1 << 30))
    return found


def _cbt(path: Path) -> Told:
    """``.../op_size-00004096/concurrent_procs-001/iodepth-032/randread/output.0``."""
    options: dict[str, str] = {}
    for part in path.parts[:-1]:
        name, dash, value = part.rpartition("-")
        if dash and value.isdigit() and name in _CBT:
            options[_CBT[name]] = str(int(value))
    if "bs" not in options:
        return Told()
    if re.fullmatch(_MODES, path.parent.name):
        options["rw"] = path.parent.name
    own = re.match(r"(?:json_)?(output\.\d+)", path.name)
    return Told("CBT", None, options, logs=own[1] if own else None)
