"""What a check is, what it looks at, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ssdlab.answer import Check, Status
from ssdlab.checks.facts import Facts
from ssdlab.engine.records import Records
from ssdlab.results import TargetKind

StepKind = Literal["job", "purge", "trim", "idle"]
State = Literal["empty", "full", "scattered", "unknown"]
"""Of a target: whether it holds data; ``scattered``: all of it, and written at random since it was
last written sequentially."""

Look = Callable[["Case"], Sequence["Symptom"]]
"""What a check finds in a run."""
STEADY = "steady"
"""The check of whether a rate is steady."""
SHOWN = 3
"""So many different pieces of evidence are told one by one."""


@dataclass(frozen=True)
class StepEvidence:
    """A step that a session has finished."""

    key: str
    kind: StepKind
    measured: bool = True
    """False where it only brings the drive into a state."""
    started: float | None = None
    """Seconds since the epoch; None in virtual time."""
    ended: float | None = None
    offset: int = 0
    """Where a TRIM begins, bytes."""
    length: int | None = None
    """Bytes that a TRIM takes; None to the end. What jobs touch stands in their results."""
    on_purpose: bool = False
    """Whether it reads unwritten areas, or stays within a cache, because that is what it shows."""
    settled: bool = False
    """Whether its rate is one of a steady state, so that its series tells how sure that is."""


@dataclass(frozen=True)
class Evidence:
    """What a run left, of a protocol or of a single job file."""

    kind: TargetKind
    steps: Sequence[StepEvidence]
    """In the order in which they ran."""
    records: Records
    """Results by the keys of the steps of kind ``job``, and the rounds."""
    capacity: int | None = None
    """Bytes of the target."""
    quick: bool = False
    """A quick run: durations were divided."""
    initial: State = "unknown"
    """What the target held before the first step."""
    single: bool = False
    """One job file by itself: nothing but its own series tells whether it was steady."""
    prepared: bool = False
    """One job on a drive that was brought to the state that it is about: what its own series tells
    is how sure its rate is."""
    rig: str | None = None
    """The rig of a simulated drive as run."""
    surroundings: Mapping[str, Any] = field(default_factory=dict)
    """Of the whole run; what a result tells of its own goes before."""
    resumed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What happened to the drive while the run was interrupted, by the key of the step with
    which it went on."""


@dataclass(frozen=True)
class Case:
    """The evidence with the facts taken out of its results, once for all checks."""

    evidence: Evidence
    facts: Mapping[str, Facts]
    """By key, in the order of the steps."""

    @property
    def measured(self) -> list[Facts]:
        """The jobs that are measurements."""
        keys = {step.key for step in self.evidence.steps if step.measured}
        return [fact for key, fact in self.facts.items() if key in keys]

    def key(self, step: str, job: str) -> str:
        """What the numbers of a job are marked by: those of a protocol name their step alone."""
        return of_job(step, job) if self.evidence.single else step

    @property
    def real(self) -> bool:
        """Whether it ran on a real file or device."""
        return self.evidence.kind != "sim"


@dataclass(frozen=True)
class Symptom:
    """One thing that a check found."""

    status: Status
    evidence: str
    """What was seen, with its numbers; a part of a sentence."""
    key: str | None = None
    """The step that it was seen at, or a job of it (:func:`of_job`); None for all of them."""


def of_job(step: str, job: str) -> str:
    """The key of one job of a single run."""
    return f"{step}/{job}"


def of_jobs(look: Callable[[Facts], Iterable[Symptom]], *, real: bool = False) -> Look:
    """Looks at the facts of each result by itself; ``real``: only where it ran on a real drive."""

    def of_all(case: Case) -> list[Symptom]:
        if real and not case.real:
            return []
        return [
            replace(symptom, key=facts.key)
            for facts in case.facts.values()
            for symptom in look(facts)
        ]

    return of_all


@dataclass(frozen=True)
class Probe:
    """A check as it stands in the registry."""

    name: str
    title: str
    looks_for: str
    """What it looks for, in a sentence."""
    why: str
    """Why that matters to a number."""
    look: Look
    """What it found; nothing where it cannot apply."""
    marks: bool = True
    """Whether numbers carry a mark of it. Not where it says the same of every number: the run as a
    whole is labelled then."""


def answers(probe: Probe, symptoms: Sequence[Symptom]) -> list[Check]:
    """The answers of a probe: one for each kind of trouble, or else a single good or unknown."""
    made = [_answer(probe, status, symptoms) for status in ("bad", "doubt")]
    troubles = [check for check in made if check is not None]
    if troubles:
        return troubles
    rest: tuple[Status, ...] = ("unknown", "good")
    return [check for status in rest if (check := _answer(probe, status, symptoms))][:1]


def _answer(probe: Probe, status: Status, symptoms: Sequence[Symptom]) -> Check | None:
    own = [symptom for symptom in symptoms if symptom.status == status]
    if not own:
        return None
    everywhere = any(symptom.key is None for symptom in own)
    keys = tuple(dict.fromkeys(symptom.key for symptom in own if symptom.key is not None))
    return Check(
        name=probe.name,
        title=probe.title,
        status=status,
        evidence=_together(own),
        why=probe.why,
        affects=() if not probe.marks else None if everywhere else keys,
    )


def _together(symptoms: Sequence[Symptom]) -> str:
    """The evidence in one sentence; the first pieces where there are many."""
    by_text: dict[str, int] = {}
    for symptom in symptoms:
        by_text[symptom.evidence] = by_text.get(symptom.evidence, 0) + 1
    pieces = [
        text if count == 1 else f"{text} ({count} steps)"
        for text, count in list(by_text.items())[:SHOWN]
    ]
    more = len(by_text) - len(pieces)
    return "; ".join(pieces) + (f"; and {more} more like it" if more else "")
