"""How long a protocol takes and how much it writes, before it begins and while it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssdlab.engine.steps import Idle, Job, Purge, Rounds, Step, Then, Trim

GUESS_BYTES_PER_S = 400e6
"""Speed that is assumed for a job bounded by its amount, where nothing is known yet."""
OVERHEAD_S = 0.7
"""Of a job under the real fio: starting it, and reading what it wrote."""


@dataclass(frozen=True)
class Estimate:
    """Sums over steps; of rounds, the fewest and the most."""

    steps_min: int = 0
    steps_max: int = 0
    seconds_min: float = 0.0
    seconds_max: float = 0.0
    written_bytes: int = 0
    """By jobs that an amount bounds."""
    writing_min_s: float = 0.0
    """Time in which jobs write as fast as they can, weighted with the share of writes."""
    writing_max_s: float = 0.0

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.steps_min + other.steps_min,
            self.steps_max + other.steps_max,
            self.seconds_min + other.seconds_min,
            self.seconds_max + other.seconds_max,
            self.written_bytes + other.written_bytes,
            self.writing_min_s + other.writing_min_s,
            self.writing_max_s + other.writing_max_s,
        )


def cost(step: Job | Purge | Trim | Idle) -> float:
    """Seconds that a step is expected to take."""
    if isinstance(step, Job):
        return step.seconds or step.amount / GUESS_BYTES_PER_S
    return step.seconds if isinstance(step, Idle) else 1.0


def of(steps: Sequence[Step]) -> Estimate:
    """The estimate of some steps."""
    return sum((_of(step) for step in steps), Estimate())


def _of(step: Step) -> Estimate:
    if isinstance(step, Rounds):
        one = of(step.jobs(1))
        least, most = min(step.window, step.most), step.most
        return Estimate(
            one.steps_min * least,
            one.steps_max * most,
            one.seconds_min * least,
            one.seconds_max * most,
            one.written_bytes * least,
            one.writing_min_s * least,
            one.writing_max_s * most,
        )
    if isinstance(step, Then):
        return of(step.expected)
    seconds = cost(step)
    if not isinstance(step, Job):
        return Estimate(1, 1, seconds, seconds)
    writing = step.write_share * step.seconds if step.seconds else 0.0
    written = round(step.amount * step.write_share)
    return Estimate(1, 1, seconds, seconds, written, writing, writing)


def work(steps: Sequence[Step], *, virtual: bool) -> float:
    """What steps weigh in progress, rounds at their fewest: seconds, but resting in virtual time
    takes none."""
    total = 0.0
    for step in steps:
        if isinstance(step, Rounds):
            total += work(step.jobs(1), virtual=virtual) * min(step.window, step.most)
        elif isinstance(step, Then):
            total += work(step.expected, virtual=virtual)
        else:
            total += weight(step, virtual=virtual)
    return total


def weight(step: Job | Purge | Trim | Idle, *, virtual: bool) -> float:
    """What a step weighs in progress."""
    return 0.0 if virtual and isinstance(step, Idle) else cost(step)
