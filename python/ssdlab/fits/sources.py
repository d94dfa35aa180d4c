"""Where observations come from: tables, data sheets, kept runs, documents of fio, and folders."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from ssdlab import units
from ssdlab.analysis import changepoints
from ssdlab.analysis.measurement import JobMeasurement
from ssdlab.answer import Check
from ssdlab.checks import examine, of_result
from ssdlab.checks.base import SHOWN, STEADY
from ssdlab.checks.facts import JobFacts, facts
from ssdlab.engine import findings
from ssdlab.engine.records import RoundsRecord
from ssdlab.errors import InputError
from ssdlab.fits import datasheet
from ssdlab.fits.conclusions import TRIMMED, TWICE, Conclusion, conclusions, counted, mapped, states
from ssdlab.fits.observations import Observation, observations, read
from ssdlab.imports import foreign_documents
from ssdlab.store import RunStore, open_run
from ssdlab.store.folder import FINDINGS, RunFolder

CHANGED = 1.3
"""Reads whose rate changes for good by this factor are of a drive that is another one since."""
BINS = 8
"""Of the series of a job, at least."""
OVER = 2.0
"""Random writes as often over the active range, as the PTS has them before it measures at random:
more than any spare of up to a drive takes before collection evens out."""
WHOLE = 0.99
"""A drive that was written so far holds data everywhere: what is rounded may be missing."""


@dataclass(frozen=True)
class Gathered:
    """What was found in all the places."""

    observed: list[Observation]
    capacity: int | None
    """Bytes of the drive, where runs tell it."""
    concluded: Sequence[Conclusion] = ()
    """What runs of ``characterise`` say of how the drive is made."""
    checks: Sequence[Check] = ()
    """What speaks against the numbers of runs."""
    left: Sequence[str] = ()
    """Jobs that were left out, with the reason, because no row of a table says what they do."""


def gather(places: Sequence[str]) -> Gathered:
    """The observations of tables (``*.csv``), data sheets (``*.toml``), runs, documents of fio, and
    folders of tables and runs or of such documents, in the order given; InputError where a place is
    none of these, has nothing measured, or where runs are of several drives."""
    drives: dict[tuple[str, int | None], str] = {}
    found: list[Observation] = []
    concluded: list[Conclusion] = []
    checks: list[Check] = []
    left: list[str] = []
    capacity: int | None = None
    for place in places:
        for path in _inside(place):
            if path.suffix == ".csv":
                found += read(path)
            elif path.suffix == ".toml":
                numbers, told = datasheet.read(path)
                found += numbers
                capacity = told if capacity is None else capacity
            elif Path(place).exists() and not _is_run(path):
                found += _of_documents(path, drives, left)
            else:
                found += _of_run(path, drives, concluded, left)
                checks += _doubts(path)
    if len(drives) > 1:
        ((one, _), first), ((other, _), second), *_ = drives.items()
        raise InputError(
            f"{second}: is of the drive {other}, and {first} of {one}; a twin is of one drive"
        )
    if left and not found:
        raise InputError(f"no row of a table says what these jobs do: {units.some(left, SHOWN)}")
    measured = next((size for _, size in drives), None)
    return Gathered(
        found,
        capacity if measured is None else measured,
        concluded,
        checks,
        list(dict.fromkeys(left)),
    )


def _is_run(path: Path) -> bool:
    return (path / "manifest.json").is_file()


def _inside(place: str) -> list[Path]:
    path = Path(place)
    if path.is_dir() and not _is_run(path):
        inside = sorted(one for one in path.iterdir() if one.suffix == ".csv" or _is_run(one))
        return inside or [path]
    return [path if path.exists() or path.suffix in (".csv", ".toml") else RunStore().find(place)]


def _of_documents(
    path: Path, drives: dict[tuple[str, int | None], str], left: list[str]
) -> list[Observation]:
    """What others measured, or ``run --json`` wrote, in a file or anywhere in a folder."""
    found: list[Observation] = []
    before = len(left)
    for document in foreign_documents(path):
        result, where = document.result, str(document.path)
        if document.device is not None:
            capacity = result.ssdlab.get("target", {}).get("capacity_bytes")
            drives.setdefault((document.device, capacity), where)
        _check_steady(result.measurement.jobs, where)
        found += observations(result, left=left)
    return found if found or len(left) > before else _nothing_said(path)


def _nothing_said(path: Path) -> NoReturn:
    raise InputError(f"{path}: no job of it reads or writes in a way that a table can say")


def _doubts(path: Path) -> list[Check]:
    """The checks that put numbers of a run in doubt, under its name."""
    folder = open_run(path)
    if folder.manifest.protocol == "job":
        entries = [entry for entry in folder.journal() if entry.kind == "job"]
        checks = [check for one in entries for check in examine(of_result(folder.load(one)))]
    elif (folder.path / FINDINGS).exists():
        checks = list(findings.read(folder).findings.checks)
        characterised = folder.manifest.protocol == "characterise"
        if not characterised and (steps := units.some(_told(folder).unsettled, SHOWN)):
            said = f"nothing tells that random writes were as fast as they stay in {steps}"
            why = "over-provisioning and tPROG follow from random writes in the steady state"
            checks.append(Check(STEADY, "steady state", "doubt", said, why))
    else:
        checks = []
    return [
        replace(check, title=f"{folder.id}: {check.title}") for check in checks if check.trouble
    ]


def _of_run(
    path: Path,
    drives: dict[tuple[str, int | None], str],
    concluded: list[Conclusion],
    left: list[str],
) -> list[Observation]:
    folder = open_run(path)
    target = folder.manifest.target
    drives.setdefault((target.name or folder.manifest.name, target.capacity_bytes), str(path))
    found: list[Observation] = []
    before = len(left)
    told, missing = None, False
    if folder.manifest.protocol == "characterise":
        run = findings.read(folder)
        told, missing = states(run), mapped(run)
        concluded += conclusions(run)
    past = None if told is not None or folder.is_job else _told(folder)
    twice: dict[str, float] = {}
    for entry in folder.journal():
        if entry.kind != "job" or not entry.measured or (past and entry.key in past.early):
            continue
        if told is None or entry.key in told or entry.key in TWICE:
            step = folder.load(entry)
            jobs = step.measurement.jobs
            _check_steady(jobs, f"{path}, {entry.key}")
            if told is not None and entry.key in TWICE:
                twice[entry.key] = sum(direction.iops or 0.0 for direction in jobs[0].directions)
        if told is None or entry.key in told:
            own = observations(step, told[entry.key] if told else None, left)
            if past and entry.key in past.part:
                own = [_in_part(one) for one in own]
            found += own if told is None else [_as_said(one, entry.key, missing) for one in own]
    if len(twice) == len(TWICE) and max(twice.values()) > CHANGED * min(twice.values()):
        first, last = (f"{twice[key]:,.0f} in {key}" for key in TWICE)
        raise InputError(
            f"{path}: the same reads did {first} and {last} IOPS: the drive changed between these "
            "steps (heat, other work beside it); characterise it again"
        )
    return found if found or len(left) > before else _nothing_said(path)


def _rounds(folder: RunFolder) -> Sequence[RoundsRecord]:
    """The rounds of a protocol's run, as far as it says what it found."""
    found = folder.path / FINDINGS
    return findings.read(folder).findings.rounds if found.exists() else ()


@dataclass(frozen=True)
class _Told:
    """What the steps of a protocol's run tell of the drive that its rows are of."""

    early: frozenset[str]
    """The jobs of rounds that went before the measurement window, which counts instead."""
    part: frozenset[str]
    """Those measured while nothing was written beside their range, which was spare then."""
    unsettled: Sequence[str]
    """Those that write at random with nothing that tells that this is as fast as it stays: neither
    rounds that were steady, nor that all that holds data was written so :data:`OVER` times."""


def _told(folder: RunFolder) -> _Told:
    manifest = folder.manifest
    whole = manifest.capacity or math.inf
    early: set[str] = set()
    settled: set[str] = set()
    for record in _rounds(folder):
        window = record.keys_of("", record.window_rounds())
        early |= {*record.keys} - {*window}
        settled |= {*window} if record.steady else set()
    part, unsettled = [], []
    widest, over, steady, known = 0.0, 0.0, False, manifest.kind == "sim"
    for entry in folder.journal():
        if entry.kind in ("purge", "trim"):
            widest, over, steady, known = 0.0, 0.0, False, known or entry.kind == "purge"
        if entry.kind != "job":
            continue
        steady |= entry.key in settled
        works = facts(entry.key, folder.load(entry), manifest.capacity).works
        writes = [work for work in works if work.direction("write")]
        at_random = [work for work in writes if work.random]
        if entry.measured and at_random and entry.key not in early:
            span = max(widest, *(min(_moved(work), work.length or whole) for work in at_random))
            if known and span < WHOLE * whole:
                part.append(entry.key)
            if not steady and not (
                widest and over >= OVER * widest and (known or span >= WHOLE * whole)
            ):
                unsettled.append(entry.key)
        for work in writes:
            widest = max(widest, min(_moved(work), work.length or whole))
        over += sum(_moved(work) for work in at_random)
    return _Told(frozenset(early), frozenset(part), unsettled)


def _moved(work: JobFacts) -> int:
    written = work.direction("write")
    return written.bytes if written else 0


def _as_said(observation: Observation, key: str, missing: bool) -> Observation:
    """The row of a step of ``characterise``."""
    own = _in_part(observation) if key == TRIMMED else observation
    return own if counted(key, missing) else own.without("waf")


def _in_part(observation: Observation) -> Observation:
    """A row of a job that has the rest of the drive as spare."""
    return replace(observation, load=replace(observation.load, namespace=observation.span))


def _check_steady(jobs: Sequence[JobMeasurement], where: str) -> None:
    """Raises InputError where reads became slower or faster for good while they were measured."""
    for job in jobs:
        for direction in job.directions:
            if direction.ddir != "read" or len(job.directions) > 1 or len(direction.bins) < BINS:
                continue
            stages = changepoints.stages(direction.bins["iops"].to_numpy())
            for before, after in itertools.pairwise(stages):
                low, high = sorted((before.level, after.level))
                if high > CHANGED * low and min(before.length, after.length) >= BINS // 4:
                    when = float(
                        direction.bins["time_s"][after.start] - direction.bins["time_s"][0]
                    )
                    raise InputError(
                        f"{where}: its reads did {before.level:,.0f} IOPS and from {when:.0f} s on "
                        f"{after.level:,.0f}: the drive changed during the measurement (heat, a "
                        "cache, other work beside it); measure it again"
                    )
