"""A simulated drive that several jobs run on, one after the other, each of which may be kept.

What a job finds follows from all that was done to the drive before it, so that is the key of its
result. The drive is built, and brought to where a job begins, only when that job is simulated.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ssdlab.bench.content import content_of
from ssdlab.bench.kept import KeptRuns, built
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.progress import ProgressCallback
from ssdlab.results import Result
from ssdlab.target import Sim, SimSession, Terms


@dataclass(frozen=True)
class Around:
    """The drive before a job and after it."""

    before: Mapping[str, int]
    """Counters of the devices."""
    counters: Mapping[str, int]
    began_s: float
    """Virtual time."""
    ended_s: float
    capacity: int
    """Bytes."""


class Session:
    """Raises InputError where the rig is wrong, or takes more memory than the terms allow."""

    def __init__(self, target: Sim, terms: Terms, kept: KeptRuns | None) -> None:
        self._target, self._terms, self._kept = target, terms, kept
        asked = [*built(), target.name, target.rig, [*terms.overrides.items()], terms.seed]
        self._state: str | None = _digest(asked)
        """Of all that was done; None where that is not known."""
        self._behind: list[Callable[[SimSession], Result | None]] = []
        """What was done, but not yet to the drive that is built."""
        self._took_s = 0.0
        self._drive = None if kept is not None else target.open(terms)
        self._capacity: int | None = None

    @property
    def capacity(self) -> int:
        """Bytes; before the first job the drive is built for it."""
        if self._capacity is None:
            self._capacity = self._built().capacity
        return self._capacity

    def prepare(self, steps: str, report: ProgressCallback) -> None:
        """As ``--prepare`` of other commands; raises Interrupted, here or in the next job."""
        self._note(["prepare", steps], lambda drive: drive.prepare(steps, report))
        if self._kept is None:
            self._catch_up()

    def run(
        self, job: JobText, report: ProgressCallback, *, seed: int, interval_ms: int
    ) -> tuple[Result, Around]:
        """Runs a job; the drive goes on from where it was. Raises InputError, Interrupted."""
        try:
            what: Sequence[object] | None = [job.name, job.text, content_of(job), seed, interval_ms]
        except (InputError, OSError):
            what = None  # the run says what is wrong
        self._note(what, lambda drive: drive.run(job, report, seed=seed, interval_ms=interval_ms))
        if self._kept is None:
            found = self._simulated()
        else:
            found = self._kept.take(self._target.name, self._state, self._simulated, self._took_s)
        around = Around(**json.loads(found[1]))
        self._capacity = around.capacity
        return found[0], around

    def _note(
        self, what: Sequence[object] | None, do: Callable[[SimSession], Result | None]
    ) -> None:
        known = what is not None and self._state is not None
        self._state = _digest([self._state, *(what or ())]) if known else None
        self._behind.append(do)

    def _simulated(self) -> tuple[Result, str]:
        """What the last that was done came to, with :class:`Around` as JSON."""
        began = time.monotonic()
        last = self._behind.pop()
        drive = self._catch_up()
        before, begin = drive.core.counters(), drive.core.now_s
        result = last(drive)
        assert result is not None
        now = drive.core.now_s
        around = Around(before, drive.core.counters(), begin, now, drive.capacity)
        self._took_s += time.monotonic() - began
        return result, json.dumps(vars(around))

    def _catch_up(self) -> SimSession:
        drive = self._built()
        while self._behind:
            self._behind.pop(0)(drive)
        return drive

    def _built(self) -> SimSession:
        if self._drive is None:
            self._drive = self._target.open(self._terms)
        return self._drive


def _digest(what: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()
