"""A protocol rehearsed on a small drive in virtual time: how fast a drive like it will be.

A small drive with the same ratios slows down at the same share of its capacity as the large one,
so amounts and durations are made smaller with it, and the speeds come out alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from ssdlab.engine import estimate
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.setup import LEAST_SIM_S, MIB, Setup
from ssdlab.engine.speed import SpeedPoint, Speeds, measured, moved_by
from ssdlab.engine.steps import Job, Purge, Repeated, Rounds, Then, Trim
from ssdlab.errors import InputError, Interrupted
from ssdlab.jobfile import JobText
from ssdlab.progress import Progress
from ssdlab.rig import capacity_of, profile, reduced
from ssdlab.target import Sim, SimSession, Terms

LEAST_CAPACITY = 512 << 20
"""A drive is never made smaller than this..."""
LEAST_SUPERBLOCKS = 128
"""...nor so small that fewer remain: with hardly any reserve beside the blocks that it writes
into, its write amplification is nothing like that of the whole drive."""
MOST_CAPACITY = 16 << 30
"""What is larger takes too long to rehearse on."""
LONGEST_S = 0.2
"""Virtual seconds of the shortest job at most: its speed shows sooner."""
ROUNDS = 3
"""Rounds that are rehearsed: in the first the drive is hardly ever as slow as it will be."""
PATIENCE_S = 20.0
"""Of the whole rehearsal; what it has not come to by then is guessed."""


def small_drive(
    name: str, capacity: int, seed: int, overrides: Mapping[str, str] | None = None
) -> SimSession:
    """A shipped drive made about as small as ``capacity``, or as it can be, its ratios kept;
    ``overrides`` are keys of its rig besides.

    Raises InputError for an unknown name, which says the nearest, or a wrong key.
    """
    found, whole = profile(name), capacity_of(name)
    factor = max(1, round(whole / capacity))
    while True:
        smaller = reduced(name, factor, fewest=LEAST_SUPERBLOCKS)
        try:
            return Sim(name, found.text).open(Terms({**(overrides or {}), **smaller}, seed))
        except InputError:
            # Drives of many dies need more superblocks for collection to have room.
            if factor == 1 or whole // factor > MOST_CAPACITY:
                raise
            factor //= 2


def rehearse(
    protocol: Protocol,
    setup: Setup,
    name: str,
    *,
    seed: int = 1,
    overrides: Mapping[str, str] | None = None,
) -> Speeds | None:
    """The speeds of the profile ``name`` in the jobs of a protocol as set up; None where it cannot
    be done on a small drive.

    Raises InputError for an unknown name.
    """
    profile(name)
    plan = list(protocol.plan(setup))
    shortest = min((job.seconds for job in estimate.jobs(plan) if job.seconds), default=None)
    wanted = LEAST_CAPACITY
    if shortest is not None:
        # No job may become shorter than can be simulated.
        wanted = max(wanted, min(MOST_CAPACITY, int(setup.capacity * LEAST_SIM_S / shortest)))
    try:
        session = small_drive(name, min(wanted, setup.capacity), seed, overrides)
        shorter = setup.capacity / session.capacity
        if shortest is not None:
            shorter = max(shorter, shortest / LONGEST_S)
        small = replace(
            setup,
            capacity=session.capacity,
            kind="sim",
            active=int(session.capacity * setup.active / setup.capacity) // MIB * MIB,
            divisor=setup.divisor * shorter,
        )
        going = _Rehearsal(session)
        going.steps(protocol.plan(small))
    except InputError:
        return None
    if not going.moved:
        return None
    words = f"like the profile {name}, by a simulation of the jobs on a small drive"
    return Speeds(measured(going.moved), "profile", words)


class _Rehearsal:
    def __init__(self, session: SimSession) -> None:
        self.session = session
        self.moved: list[SpeedPoint] = []
        self._count = 0
        self._began = time.monotonic()

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
                    if (
                        moved >= step.amount
                        or self._late()
                        or (more := self._job(step.job)) is None
                    ):
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

    def _late(self) -> bool:
        return time.monotonic() - self._began > PATIENCE_S

    def _go_on(self, _news: Progress) -> bool:
        return not self._late()

    def _job(self, job: Job) -> SpeedPoint | None:
        if self._late():
            return None
        text = JobText(job.key, job.text, Path.cwd())
        try:
            # A seed of its own for each: the same one would write the same places again.
            self._count += 1
            result = self.session.run(text, self._go_on, seed=self._count)
        except Interrupted:
            if self._late():
                return None
            raise
        point = moved_by(job, result)
        if point is not None:
            self.moved.append(point)
        return point
