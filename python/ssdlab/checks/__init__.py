"""Whether the numbers of a run can be believed. A file in this folder is all that a check takes.

A file defines ``PROBES``, a tuple of :class:`ssdlab.checks.base.Probe`.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache

from ssdlab.analysis.measurement import JobMeasurement
from ssdlab.answer import WORDS, Check, Status
from ssdlab.checks.base import (
    STEADY,
    Case,
    Evidence,
    Probe,
    State,
    StepEvidence,
    answers,
    of_job,
)
from ssdlab.checks.facts import facts
from ssdlab.engine.records import Records
from ssdlab.engine.runner import Execution
from ssdlab.engine.steps import Then, Trim
from ssdlab.results import Result

SINGLE = "run"
"""The key under which a single result is examined."""
ORDER: tuple[Status, ...] = ("bad", "doubt", "unknown", "good")
"""The worst first."""


@cache
def probes() -> tuple[Probe, ...]:
    """All checks, by name."""
    modules = [
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    ]
    found = [one for module in modules for one in getattr(module, "PROBES", ())]
    return tuple(sorted(found, key=lambda probe: probe.name))


def examine(evidence: Evidence) -> list[Check]:
    """What the checks say of a run, the worst first; those that cannot apply are left out."""
    jobs = {step.key: step for step in evidence.steps if step.kind == "job"}
    taken = {
        key: facts(
            key,
            evidence.records[key],
            evidence.capacity,
            rig=evidence.rig,
            surroundings=evidence.surroundings,
            judged=evidence.single,
            noise=evidence.prepared or step.settled,
        )
        for key, step in jobs.items()
        if key in evidence.records
    }
    case = Case(evidence, taken)
    checks = [check for probe in probes() for check in answers(probe, probe.look(case))]
    return sorted(checks, key=lambda check: ORDER.index(check.status))


def worst_word(checks: Iterable[Check], job: str) -> str:
    """What the worst check says of the numbers of a job of a single result; empty where none says
    anything against them."""
    own = {SINGLE, of_job(SINGLE, job)}
    said = {c.word for c in checks if c.affects is None or not own.isdisjoint(c.affects)}
    return next((word for word in WORDS.values() if word in said), "")


def still_moving(checks: Iterable[Check], job: JobMeasurement) -> bool:
    """Whether a job of a single result is steady by the rule of the PTS, and the check of that
    doubts it: room never written, old data that collection copies, a trend."""
    return job.window.steady and bool(
        worst_word((check for check in checks if check.name == STEADY), job.name)
    )


def of_result(result: Result, *, prepared: bool = False) -> Evidence:
    """The evidence of a single run, of all jobs of its file together; ``prepared``: who ran it had
    brought the drive to the state that it is about, so that nobody asks whether it was steady, but
    how sure its rate is."""
    records = Records(load=lambda _key: result, keys_=[SINGLE])
    return Evidence(
        kind=result.target_kind,
        steps=(StepEvidence(SINGLE, "job"),),
        records=records,
        capacity=result.ssdlab.get("target", {}).get("capacity_bytes"),
        initial=state_at_start(result),
        single=not prepared,
        prepared=prepared,
        rig=result.rig_toml,
        surroundings=result.ssdlab.get("surroundings") or {},
    )


def of_execution(execution: Execution) -> Evidence:
    """The evidence of a protocol's run, as far as it came."""
    session = execution.session
    trims = {step.key: step for step in _trims(execution)}
    steps = []
    changes: list[str] = []
    resumed: dict[str, Sequence[str]] = {}
    for entry in execution.folder.journal():
        if entry.kind in ("stop", "resume"):
            changes += entry.changes
            continue
        if changes:
            resumed[entry.key] = tuple(changes)
            changes = []
        trim = trims.get(entry.key)
        steps.append(
            StepEvidence(
                key=entry.key,
                kind=entry.kind,  # type: ignore[arg-type]
                measured=entry.measured,
                started=_seconds(entry.began) if session.kind != "sim" else None,
                ended=_seconds(entry.ended) if session.kind != "sim" else None,
                offset=trim.offset if trim else 0,
                length=trim.length if trim else None,
                on_purpose=entry.key.partition("/")[0] in execution.protocol.on_purpose,
                settled=entry.key.partition("/")[0] in execution.protocol.settled,
            )
        )
    made = session.kind == "sim" or execution.folder.manifest.made_file
    about = execution.folder.manifest.about
    return Evidence(
        kind=session.kind,
        steps=steps,
        records=execution.records,
        capacity=session.capacity,
        quick=execution.setup.quick,
        initial="empty" if made else "unknown",
        rig=about.get("rig"),
        surroundings=about if session.kind != "sim" else {},
        resumed=resumed,
    )


def examine_run(execution: Execution) -> list[Check]:
    """What the checks say of a protocol's run (:data:`ssdlab.engine.runs.Examine`)."""
    return examine(of_execution(execution))


def _trims(execution: Execution) -> Iterator[Trim]:
    """The TRIMs of the plan, also those that depend on results as far as there are any."""
    waiting = list(execution.protocol.plan(execution.setup))
    while waiting:
        step = waiting.pop()
        if isinstance(step, Trim):
            yield step
        elif isinstance(step, Then) and set(execution.records):
            # Made from what has been measured: where that is not enough yet, it has not run.
            with contextlib.suppress(KeyError, IndexError, ZeroDivisionError, ValueError):
                waiting += step.make(execution.records)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def state_at_start(result: Result) -> State:
    """What the drive held: of a simulated one it is known, unless it had run before."""
    if result.kind != "sim":
        return "unknown"
    steps = str(result.ssdlab.get("preconditioning") or "fob").split(",")
    last: State = "unknown" if steps[0].startswith("as left") else "empty"
    for step in steps:
        name = step.strip().removeprefix("then ").split(":")[0]
        if name == "sequential":
            last = "full"
        elif name in ("random", "steady"):
            last = "scattered"
        elif name in ("trim", "purge", "fob"):
            last = "empty"
    return last
