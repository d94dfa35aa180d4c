"""What kept runs have found: those of job files beside each other, or that of a protocol."""

from __future__ import annotations

from collections.abc import Sequence

from ssdlab.answer import Answer, Section, Table, columns
from ssdlab.answers import protocol, run
from ssdlab.engine import findings
from ssdlab.errors import InputError
from ssdlab.store.folder import RunFolder
from ssdlab.units import counted

RUN_HEADS = ("run", "created", "target", "kind", "jobs")
"""Of a table of kept runs."""
JOBS_MAX = 8
"""So many jobs of a run are named."""


def answer(folders: Sequence[RunFolder]) -> Answer:
    """Raises InputError where several are given and one is that of a protocol, or of a damaged
    one."""
    tests = [folder for folder in folders if not folder.is_job]
    if tests and len(folders) > 1:
        raise InputError(
            f"{tests[0].id}: is the run of a protocol, which has a report of its own; "
            "ssdlab compare puts several side by side"
        )
    if tests:
        return protocol.answer(findings.read(tests[0]))
    return run.answer([folder.result() for folder in folders])


def listed(folders: Sequence[RunFolder], where: str) -> Answer:
    """The runs that are kept in a place."""
    told = Table(
        "Kept runs", columns(" | ".join(RUN_HEADS)), [run_row(folder) for folder in folders]
    )
    count = counted(len(folders), "run")
    return Answer(f"Runs kept in {where}", "runs", [Section([count], tables=[told])])


def run_row(run: RunFolder) -> list[str]:
    """A run, with the first of its jobs and how many more there are."""
    about = run.manifest
    jobs, more = ", ".join(about.jobs[:JOBS_MAX]), len(about.jobs) - JOBS_MAX
    jobs += f" and {more} more" if more > 0 else ""
    state = "" if run.status == "complete" else f" ({run.status})"
    kind = about.target.kind if about.imported is None else f"{about.target.kind}, imported"
    return [run.id, about.created, about.target.name, kind, jobs + state]
