"""How long a protocol takes and how much it writes: before it begins, and of what is left of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ssdlab.engine.records import Records, RoundsRecord
from ssdlab.engine.speed import GUESS, SpeedBounds, Speeds
from ssdlab.engine.steps import Idle, Job, Purge, Repeated, Rounds, Shape, Step, Then, Trim
from ssdlab.results import TargetKind

OVERHEAD_S = SpeedBounds(0.5, 0.9)
"""Of a job under the real fio: starting it, and reading what it wrote (measured: 0.5 s on an idle
machine, 0.7 s on one with five times as much to do as it has cores)."""
PURGE_S = {
    "sim": SpeedBounds(0.0, 0.0),
    "file": SpeedBounds(0.1, 1.0),
    "device": SpeedBounds(0.2, 20.0),
}
"""Of a purge or TRIM by kind of target; a drive that erases itself for minutes says so itself."""
BUFFER_BYTES = 16 << 20
"""What the write buffer of a drive may take at once."""
NOTHING = SpeedBounds(0.0, 0.0)

Expected = Step | Repeated


@dataclass(frozen=True)
class WorkEstimate:
    """Sums over steps, low and high."""

    steps_min: int = 0
    steps_max: int = 0
    soon: SpeedBounds = NOTHING
    """Seconds, if every round test is steady at once: between the fastest and the slowest that the
    drive may be."""
    never: SpeedBounds = NOTHING
    """Seconds, if none is ever steady."""
    written: SpeedBounds = NOTHING
    """Bytes: at least by the slow drive that is steady at once, at most by the fast one that never
    is."""

    def __add__(self, other: WorkEstimate) -> WorkEstimate:
        return WorkEstimate(
            self.steps_min + other.steps_min,
            self.steps_max + other.steps_max,
            self.soon + other.soon,
            self.never + other.never,
            self.written + other.written,
        )


def of(
    steps: Iterable[Expected], speeds: Speeds = GUESS, kind: TargetKind = "device"
) -> WorkEstimate:
    """The estimate of some steps on a target of a kind."""
    return sum((_of(step, speeds, kind) for step in steps), WorkEstimate())


def _of(step: Expected, speeds: Speeds, kind: TargetKind) -> WorkEstimate:
    if isinstance(step, Rounds):
        return _times(of(step.jobs(1), speeds, kind), min(step.window, step.most), step.most)
    if isinstance(step, Repeated):
        estimate = _of(step.job, speeds, kind)
        assert step.job.seconds is not None
        moves = _moves(step.job, speeds.of(step.job.shape), step.job.seconds)
        # A fast drive has moved the amount in few jobs, a slow one may never do.
        few, many = (max(1, math.ceil(step.amount / one)) for one in (moves.high, moves.low))
        slow = _times(estimate, min(step.least, many), min(step.most, many))
        fast = _times(estimate, min(step.least, few), min(step.most, few))
        share = step.job.shape.write_share
        return WorkEstimate(
            fast.steps_min,
            slow.steps_max,
            SpeedBounds(fast.soon.low, slow.soon.high),
            SpeedBounds(fast.never.low, slow.never.high),
            SpeedBounds(
                min(slow.written.low, step.amount * share),
                # The last job goes on to its end.
                min(fast.written.high, step.amount * share + moves.high),
            ),
        )
    if isinstance(step, Then):
        return of(step.expected, speeds, kind)
    seconds, written = _bounds(step, speeds)
    if isinstance(step, (Purge, Trim)):
        seconds += PURGE_S[kind]
    elif isinstance(step, Job) and kind != "sim":
        seconds += OVERHEAD_S
    return WorkEstimate(1, 1, seconds, seconds, written)


def _times(estimate: WorkEstimate, least: int, most: int) -> WorkEstimate:
    return WorkEstimate(
        estimate.steps_min * least,
        estimate.steps_max * most,
        estimate.soon.times(least),
        estimate.never.times(most),
        SpeedBounds(estimate.written.low * least, estimate.written.high * most),
    )


def _bounds(step: Job | Purge | Trim | Idle, speeds: Speeds) -> tuple[SpeedBounds, SpeedBounds]:
    """Seconds and bytes written of a step."""
    if isinstance(step, Idle):
        return SpeedBounds(step.seconds, step.seconds), NOTHING
    if not isinstance(step, Job):
        return NOTHING, NOTHING
    speed, share = speeds.of(step.shape), step.shape.write_share
    if step.seconds is not None:
        # I/Os in flight at the end of the time are waited for.
        late = step.shape.bs * step.shape.in_flight
        soonest = max(0, late - BUFFER_BYTES) / speed.high
        seconds = SpeedBounds(step.seconds + soonest, step.seconds + late / speed.low)
        return seconds, _moves(step, speed, step.seconds).times(share)
    most_s = math.inf if step.most_s is None else step.most_s
    seconds = SpeedBounds(*(min(step.amount / one, most_s) for one in (speed.high, speed.low)))
    moved = SpeedBounds(*(min(float(step.amount), one * most_s) for one in speed))
    return seconds, moved.times(share)


def _moves(job: Job, speed: SpeedBounds, seconds: float) -> SpeedBounds:
    """Bytes that a job bounded by time moves, with those in flight at its end."""
    late = job.shape.bs * job.shape.in_flight
    return SpeedBounds(speed.low * seconds + late, speed.high * seconds + late)


def _flat(steps: Iterable[Expected]) -> Iterator[tuple[Job | Purge | Trim | Idle | Repeated, int]]:
    """The steps that others stand for, as far as they are known beforehand, each with how often it
    is done at least."""
    for step in steps:
        if isinstance(step, Rounds):
            yield from ((job, min(step.window, step.most)) for job in step.jobs(1))
        elif isinstance(step, Then):
            yield from _flat(step.expected)
        else:
            yield step, 1


def jobs(steps: Iterable[Expected]) -> Iterator[Job]:
    """The jobs of steps as far as they are known beforehand, those of rounds once."""
    for step, _ in _flat(steps):
        if isinstance(step, (Job, Repeated)):
            yield step.job if isinstance(step, Repeated) else step


class WorkLeft(dict[Shape | None, float]):
    """What is to be done: bytes by the shape of the jobs that move them, under None seconds that
    pass however fast the drive is."""

    def add(self, other: Mapping[Shape | None, float], times: float = 1.0) -> None:
        """Adds so many times another load."""
        for shape, value in other.items():
            self[shape] = self.get(shape, 0.0) + times * value


def load(steps: Iterable[Expected], speeds: Speeds, kind: TargetKind) -> WorkLeft:
    """What steps come to, rounds at their fewest; resting in virtual time takes no time."""
    total = WorkLeft()
    overhead = OVERHEAD_S.middle if kind != "sim" else 0.0
    for step, times in _flat(steps):
        job = step.job if isinstance(step, Repeated) else step
        if isinstance(step, Repeated):
            assert step.job.seconds is not None
            each = _moves(step.job, speeds.of(step.job.shape), step.job.seconds).middle
            times = min(step.least, math.ceil(step.amount / each))
        if isinstance(job, Job):
            total.add(_load_of(job, speeds), times)
            total.add({None: overhead}, times)
        elif isinstance(job, Idle):
            total.add({None: job.seconds if kind != "sim" else 0.0})
        else:
            total.add({None: PURGE_S[kind].middle})
    return total


def _load_of(job: Job, speeds: Speeds) -> WorkLeft:
    if job.seconds is not None:
        return WorkLeft({None: job.seconds})
    if job.most_s is not None and job.most_s < job.amount / speeds.of(job.shape).middle:
        return WorkLeft({None: job.most_s})
    return WorkLeft({job.shape: float(job.amount)})


def amounts(steps: Iterable[Expected]) -> Iterator[tuple[Shape, int]]:
    """Of the jobs whose time depends on the speed: shape and bytes."""
    for step, _ in _flat(steps):
        if isinstance(step, Repeated):
            yield step.job.shape, step.amount
        elif isinstance(step, Job) and step.seconds is None:
            yield step.shape, step.amount


def remaining(
    steps: Sequence[Step], done: Callable[[str], bool], records: Records
) -> list[Expected]:
    """What of a plan is left where the steps of some keys are ``done``."""
    left: list[Expected] = []
    for step in steps:
        if isinstance(step, Rounds):
            left += _rounds_left(step, done, records)
        elif isinstance(step, Then):
            # Only where all before it is done it can be known what it makes.
            left += [step] if left else remaining(step.make(records), done, records)
        elif not done(step.key):
            left.append(step)
    return left


def _rounds_left(step: Rounds, done: Callable[[str], bool], records: Records) -> list[Expected]:
    count, record = 0, None
    while count < step.most and all(done(job.key) for job in step.jobs(count + 1)):
        count += 1
        record = rounds_record(step, records, record)
        records.rounds[step.key] = record
        if record.steady:
            return []
    if count == step.most:
        return []
    number, most = count + 1, step.most - count - 1
    begun: list[Expected] = [job for job in step.jobs(number) if not done(job.key)]
    if most == 0:
        return begun
    least = max(0, step.window - number)
    return [*begun, replace(step, jobs=lambda n: step.jobs(number + n), window=least, most=most)]


def rounds_record(step: Rounds, records: Records, before: RoundsRecord | None) -> RoundsRecord:
    """What the rounds came to, those ``before`` and the one that has just ended."""
    number = 1 if before is None else before.count + 1
    values = {
        one.name: [
            *(() if before is None else before.values[one.name]),
            one.value(records, number) or 0.0,
        ]
        for one in step.tracked
    }
    keys = () if before is None else before.keys
    return RoundsRecord(
        key=step.key,
        title=step.title,
        count=number,
        values=values,
        units={one.name: one.unit for one in step.tracked},
        window=step.window,
        most=step.most,
        keys=(*keys, *(job.key for job in step.jobs(number))),
        jobs={one.name: one.job for one in step.tracked if one.job},
    )
