"""What was imported, as an answer: every job with its run, charts of each drive, and what was left
out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdlab import units
from ssdlab.analysis.comparison import Workload
from ssdlab.analysis.measurement import JobMeasurement
from ssdlab.answer import (
    Answer,
    Cell,
    Cells,
    Section,
    Table,
    Verdict,
    columns,
    duration_cell,
)
from ssdlab.engine import grids
from ssdlab.engine.grids import Found, Spec
from ssdlab.histogram import NOTHING, Histogram, merge, us
from ssdlab.imports import ForeignDocument, ImportedRun, ImportScan
from ssdlab.imports.find import DIGITS
from ssdlab.results import SYNC

UNKNOWN = "?"
"""Stands for an option that nobody tells."""
HEADS = (
    "rw | block | depth | jobs | IOPS [IOPS] | speed [MB/s] | clat mean [us] | p50 [us] | "
    "p99 [us] | p99.9 [us] | max [us]"
)


@dataclass(frozen=True)
class _Row:
    """One job of a document."""

    item: ImportedRun
    job: JobMeasurement
    cells: Mapping[str, Cell]
    spec: Spec | None
    """Where it stands in a grid; None where its options do not say."""


def answer(items: Sequence[ImportedRun], scan: ImportScan, *, planned: bool) -> Answer:
    """``planned``: nothing has been kept."""
    rows = [
        _row(item, job)
        for item in items
        for job in item.foreign.result.measurement.jobs
        if job.directions
    ]
    sections = [
        Section(
            _said(items, scan, planned=planned),
            tables=[*([_numbers(rows), _runs(items)] if items else []), *_refused(scan)],
            key="imported",
            title="What was found" if planned else "Imported",
            rows=[_document(item) for item in items],
            verdict=Verdict(
                "planned" if planned else "imported",
                {
                    "runs": float(len(items)),
                    "new": float(sum(item.new for item in items)),
                    "refused": float(len(scan.refused)),
                },
            ),
        )
    ]
    labels = dict.fromkeys(item.foreign.label for item in items)
    for label in labels:
        sections += _of_drive(label, [row for row in rows if row.item.foreign.label == label])
    unknown = f"{UNKNOWN} stands for options that neither a document nor its place tells."
    notes = [] if all(item.foreign.knows_options for item in items) else [unknown]
    return Answer("Import of fio results", "import", sections, notes=notes)


def _said(items: Sequence[ImportedRun], scan: ImportScan, *, planned: bool) -> list[str]:
    new = sum(item.new for item in items)
    verb = "would be imported" if planned else "imported"
    said = [f"{units.counted(new, 'run')} {verb}"]
    if before := len(items) - new:
        said[0] += f", {before:,} already there with the same content"
    if scan.refused:
        said[0] += f", {units.counted(len(scan.refused), 'file')} left out"
    said[0] += "."
    layouts = dict.fromkeys(item.foreign.told.layout for item in items)
    if layouts:
        said.append(f"Recognised as results of {units.listed(list(layouts))}.")
    if scan.superseded:
        said.append(
            "Intermediate documents of runs that went on, passed over (--status-interval): "
            f"{scan.superseded:,}."
        )
    if scan.again:
        said.append(f"Documents that other files hold once more: {len(scan.again):,}.")
    if scan.others:
        said.append(f"Other files without a result of fio: {scan.others:,}.")
    return said


def _row(item: ImportedRun, job: JobMeasurement) -> _Row:
    told = [direction for direction in job.own if direction.ddir != SYNC]
    whole: Histogram = merge(direction.latencies.get("clat") for direction in told) or NOTHING
    rates = [direction.iops for direction in told if direction.iops is not None]
    speeds = [direction.bw_bytes for direction in told if direction.bw_bytes is not None]
    source = (item.foreign.digest,)
    values = {
        "iops": sum(rates) if rates else None,
        "mbps": sum(speeds) / 1e6 if speeds else None,
        "mean": us(whole.mean_ns),
        **{f"p{percent:g}": whole.percentile_us(percent) for percent in (50.0, 99.0, 99.9)},
        "max": us(whole.max_ns) if whole.ios else None,
        "waf": None,
    }
    cells = {name: Cell(value, source) for name, value in values.items()}
    return _Row(item, job, cells, _spec(job.workload, known=item.foreign.knows_options))


def _spec(workload: Workload, *, known: bool) -> Spec | None:
    """Where a job stands in a grid of loads; None where its options do not say, or it has several
    block sizes. What fio's ``known`` options leave out has fio's default."""
    mix, size = workload.read_percent, workload.block
    told = known or all(map(workload.option, ("bs", "iodepth", "numjobs")))
    if mix is None or size is None or not told:
        return None
    pattern = "random" if workload.random else "sequential"
    return Spec(pattern, round(mix), size, workload.depth, workload.workers)


def _numbers(rows: Sequence[_Row]) -> Table:
    """What every job did; columns that would say the same everywhere are left out."""
    several = len({row.item.foreign.label for row in rows}) > 1
    named = len({id(row.item) for row in rows}) < len(rows)
    heads = ["run", *(["drive"] if several else []), *(["job"] if named else []), HEADS]
    lines: list[Cells] = []
    for row in rows:
        foreign, workload = row.item.foreign, row.job.workload
        option, mix = workload.option, workload.read_percent
        size, depth, jobs = ("4k", "1", "1") if foreign.knows_options else 3 * (UNKNOWN,)
        rw = option("rw") or UNKNOWN
        rw += f" {mix:g}/{100 - mix:g}" if mix is not None and workload.mixes else ""
        line: Cells = [short(foreign)]
        line += [foreign.label] if several else []
        line += [row.job.name] if named else []
        line += [
            rw,
            option("bssplit", "bsrange") or option("bs") or size,
            _whole(option("iodepth") or depth),
            _whole(str(workload.workers) if workload.workers > 1 else option("numjobs") or jobs),
            *(row.cells[name] for name in ("iops", "mbps", "mean", "p50", "p99", "p99.9", "max")),
        ]
        lines.append(line)
    return Table("Every job", columns(" | ".join(heads)), lines)


def _whole(text: str) -> Cell | str:
    return Cell(float(text), text=text) if text.isdecimal() else text


def short(foreign: ForeignDocument) -> str:
    """The piece of its run's name that no other has."""
    return foreign.digest[:DIGITS]


def _runs(items: Sequence[ImportedRun]) -> Table:
    folder = os.path.commonpath([item.foreign.path.parent for item in items])
    lines: list[Cells] = []
    for item in items:
        foreign = item.foreign
        place = foreign.shown.removeprefix(folder).lstrip("/")
        name = "" if item.run is None else item.run.name
        frames = foreign.frames
        series = None if frames is None else duration_cell(frames.interval_ms / 1000)
        version = str(foreign.document.get("fio version", UNKNOWN))
        lines.append([short(foreign), place, version, series, name])
    heads = columns("run | file | fio | series [=s] | kept as")
    return Table("Runs", heads, lines, f"Files below {folder}.")


def _refused(scan: ImportScan) -> list[Table]:
    """A line for each file, of files that are alike one."""
    if not scan.refused:
        return []
    alike: dict[tuple[Path, str], list[Path]] = {}
    for refused in scan.refused:
        alike.setdefault((refused.path.parent, refused.why), []).append(refused.path)
    lines: list[Cells] = [
        [str(first) + (f" and {len(rest):,} more there" if rest else ""), why]
        for (_, why), (first, *rest) in alike.items()
    ]
    return [Table("Not imported", columns("file | why"), lines)]


def _of_drive(label: str, rows: Sequence[_Row]) -> list[Section]:
    """The charts of a drive's grid, where its jobs are one."""
    found: Found = {row.spec: row.cells for row in rows if row.spec is not None}
    figures = [figure for plane in grids.planes_of(found) for figure in grids.figures(plane, found)]
    if not figures:
        return []
    loads = dict.fromkeys((one.pattern, one.read_percent) for one in found)
    own = [{s: c for s, c in found.items() if s[:2] == load} for load in loads]
    said = [grids.said(of) for of in own]
    return [Section(said, figures=figures, key=f"drive-{label}", title=label)]


def _document(item: ImportedRun) -> dict[str, Any]:
    """A document for scripts."""
    foreign = item.foreign
    return {
        "file": str(foreign.path),
        "document": foreign.place,
        "layout": foreign.told.layout,
        "run": None if item.run is None else item.run.name,
        "new": item.new,
        "sha256": foreign.digest,
        "name": foreign.label,
        "device": foreign.device,
        "kind": foreign.kind,
        "drive": dict(foreign.told.drive),
        "fio": foreign.document.get("fio version"),
        "knows_options": foreign.knows_options,
        "logs": [log.name for log in foreign.logs],
        "interval_ms": None if foreign.frames is None else foreign.frames.interval_ms,
        "summary": foreign.result.summary(),
    }
