"""A run of a protocol as an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from ssdlab import tuning, units
from ssdlab.answer import Answer, Cell, Section, Table, columns, duration_cell
from ssdlab.engine import steady_report
from ssdlab.engine.findings import ProtocolRun

QUICK = (
    "quick run: not steady state, not for publication. Times and sizes were cut; use it to see "
    "that everything works, not to judge the drive."
)
INCOMPLETE = "stopped before its end: the numbers rest on the steps that were finished."


def answer(run: ProtocolRun) -> Answer:
    """What the run has found, how steady it was, what the drive counted, and every step."""
    manifest = run.manifest
    judged = replace(run.findings.judgement, key="results", title="Results")
    sections = [judged]
    for place, record in enumerate(run.findings.rounds):
        sections.append(
            Section(
                [steady_report.sentence(record, quick=manifest.quick)],
                tables=[steady_report.table(record)],
                figures=steady_report.figures(record),
                key=f"steady-{place}",
                title=f"Steady state: {record.title}",
            )
        )
    if (counted := run.counted()) is not None:
        sections.append(Section(tables=[counted], key="counted", title="SMART counters"))
    sections.append(Section(tables=[_steps(run)], key="steps", title="Steps"))
    complete = manifest.status == "complete"
    notes = [QUICK] if manifest.quick else [] if complete else [INCOMPLETE]
    if (smaller := run.smaller) and not manifest.quick:
        notes.append(
            f"simulated at {smaller}, durations divided by {units.number(manifest.divisor)}: "
            "amounts and times are those of the smaller drive."
        )
    cut = ", ".join(filter(None, (smaller, "quick run" if manifest.quick else "")))
    return Answer(
        title=f"{run.title}: {run.target}" + (f" ({cut})" if cut else ""),
        kind="protocol",
        sections=sections,
        checks=run.findings.checks,
        marks=run.marks(),
        notes=notes,
        texts=run.job_texts(),
        facts=_facts(run),
        data=run.document(),
    )


def _facts(run: ProtocolRun) -> dict[str, Mapping[str, str]]:
    """What the report of a test must state: device, platform, settings."""
    manifest = run.manifest
    about: dict[str, Any] = manifest.about
    drive: dict[str, Any] = dict(about.get("drive", {}))
    simulated = manifest.kind == "sim"
    if simulated:
        drive = {"simulated": manifest.name, "what it is": about.get("summary", "")}
    names = ("kernel", "machine", "cpus")
    system: dict[str, Any] = {key: about[key] for key in names if key in about}
    system |= {f"file system {k}": v for k, v in about.get("file_system", {}).items()}
    system |= {f"setup: {k}": v for k, v in tuning.readable(about.get("setup")).items()}
    test = {
        "procedure": run.findings.source,
        "capacity": units.number(manifest.capacity, "B"),
        "active range": units.number(manifest.active, "B"),
        **manifest.values,
        "started": manifest.created.replace("T", " "),
        "ssdlab": manifest.version,
    }
    if simulated:
        test |= {"seed": manifest.seed, **(manifest.overrides or {})}
    return {
        "Device": {key.replace("_", " "): str(value) for key, value in drive.items()},
        "Platform": {key: str(value) for key, value in system.items()},
        "Test": {key: str(value) for key, value in test.items()},
    }


def _steps(run: ProtocolRun) -> Table:
    heads = columns("step | what | key | took [=s] | note")
    rows = [
        (str(step.number), step.title, step.key, _took(step.began, step.ended), step.note)
        for step in run.steps
    ]
    return Table("Every step", heads, rows)


def _took(began: str, ended: str) -> Cell:
    spent = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    return duration_cell(spent.total_seconds())
