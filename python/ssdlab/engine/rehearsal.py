"""A protocol rehearsed on a small drive in virtual time: how fast a drive like it will be.

A small drive with the same ratios slows down at the same share of its capacity as the large one,
so amounts and durations are made smaller with it, and the speeds come out alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ssdlab._core import Rig
from ssdlab.engine import estimate
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.setup import KIB, LEAST_SIM_S, MIB, Setup
from ssdlab.engine.speed import SpeedPoint, Speeds, measured, moved_by
from ssdlab.engine.steps import Job, Purge, Repeated, Rounds, Then, Trim
from ssdlab.errors import InputError, Interrupted
from ssdlab.jobfile import JobText
from ssdlab.progress import Progress
from ssdlab.target import Sim, SimSession, Terms

LEAST_CAPACITY = 512 << 20
"""A drive is never made smaller than this..."""
LEAST_SUPERBLOCKS = 128
"""...nor so small that fewer remain: with hardly any reserve beside the blocks that it writes
into, its write amplification is nothing like that of the whole drive."""
MOST_CAPACITY = 16 << 30
"""What is larger takes too long to rehearse on."""
FIRST_S = 0.2
"""Virtual seconds of the shortest job at first; from what is done in it follows..."""
BUDGET = 500_000
"""...for how long they can go on, by the blocks of 4 KiB that all jobs move: how slow a drive gets
once it has nothing left that is erased shows late."""
ROUNDS = 3
"""Rounds that are rehearsed: in the first the drive is hardly ever as slow as it will be."""
PATIENCE_S = 20.0
"""Of the whole rehearsal; what it has not come to by then is guessed."""


def small_drive(rig: Rig, capacity: int, seed: int) -> SimSession:
    """A drive made about as small as ``capacity``, or as it can be, its ratios kept.

    Raises InputError where it cannot be made smaller.
    """
    whole = rig.capacity_bytes
    factor = max(1, round(whole / capacity))
    while True:
        try:
            smaller = dict(rig.scale(factor, fewest=LEAST_SUPERBLOCKS))
            return Sim(rig.name, rig.to_toml()).open(Terms(smaller, seed))
        except InputError:
            # Drives of many dies need more superblocks for collection to have room.
            if factor == 1 or whole // factor > MOST_CAPACITY:
                raise
            factor //= 2


def rehearse(protocol: Protocol, setup: Setup, rig: Rig, *, seed: int = 1) -> Speeds | None:
    """The speeds of a drive in the jobs of a protocol as set up; None where it cannot be done on a
    small one."""
    plan = list(protocol.plan(setup))
    shortest = min((job.seconds for job in estimate.jobs(plan) if job.seconds), default=None)
    wanted = LEAST_CAPACITY
    if shortest is not None:
        # No job may become shorter than can be simulated.
        wanted = max(wanted, min(MOST_CAPACITY, int(setup.capacity * LEAST_SIM_S / shortest)))
    try:
        began, timed_s = time.monotonic(), FIRST_S
        best: _Rehearsal | None = None
        while True:
            session = small_drive(rig, min(wanted, setup.capacity), seed)
            shorter = least = setup.capacity / session.capacity
            if shortest is not None:
                shorter = max(least, shortest / timed_s)
            small = replace(
                setup,
                capacity=session.capacity,
                kind="sim",
                active=int(session.capacity * setup.active / setup.capacity) // MIB * MIB,
                divisor=setup.divisor * shorter,
            )
            going = _Rehearsal(session, began)
            going.steps(protocol.plan(small))
            if best is None or not going.late():
                best = going
            longer = (BUDGET - going.blocks[False]) / max(1.0, going.blocks[True])
            if shorter == least or longer < 2 or going.late():
                break
            timed_s *= longer
    except InputError:
        return None
    if not best.moved:
        return None
    words = f"like the profile {rig.name}, by a simulation of the jobs on a small drive"
    return Speeds(measured(best.moved), "profile", words)


class _Rehearsal:
    def __init__(self, session: SimSession, began: float) -> None:
        self.session = session
        self.moved: list[SpeedPoint] = []
        self.blocks = {True: 0.0, False: 0.0}
        """Of 4 KiB, or smaller ones, by whether their jobs are bounded by time."""
        self._count = 0
        self._began = began

    def steps(self, steps: Iterable[estimate.Expected]) -> None:
        for step in steps:
            if isinstance(step, Rounds):
                for number in range(1, min(ROUNDS, step.most) + 1):
                    self.steps(step.jobs(number))
            elif isinstance(step, Then):
                self.steps(step.expected)
            elif isinstance(step, Repeated):
                moved = 0
                for _ in range(step.most):
                    if moved >= step.amount or self.late() or (more := self._job(step.job)) is None:
                        break
                    moved += more.bytes
            elif isinstance(step, Job):
                self._job(step)
            elif isinstance(step, Purge):
                self.session.purge(lambda _news: True)
            elif isinstance(step, Trim):
                length = step.length or self.session.capacity - step.offset
                self.session.trim(step.offset, length)
            else:
                self.session.idle(step.seconds, lambda _news: True)

    def late(self) -> bool:
        return time.monotonic() - self._began > PATIENCE_S

    def _go_on(self, _news: Progress) -> bool:
        return not self.late()

    def _job(self, job: Job) -> SpeedPoint | None:
        if self.late():
            return None
        text = JobText(job.key, job.text, Path.cwd())
        try:
            # A seed of its own for each: the same one would write the same places again.
            self._count += 1
            result = self.session.run(text, self._go_on, seed=self._count)
        except Interrupted:
            if self.late():
                return None
            raise
        point = moved_by(job, result)
        if point is not None:
            self.moved.append(point)
            self.blocks[job.seconds is not None] += point.bytes / min(point.shape.bs, 4 * KIB)
        return point
