"""A protocol rehearsed on a small drive in virtual time: how fast a drive like it will be.

A small drive with the same ratios slows down at the same share of its capacity as the large one,
so amounts and durations are made smaller with it, and the speeds come out alike.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ssdlab._core import Rig
from ssdlab.engine import estimate
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.setup import LEAST_SIM_S, MIB, Setup
from ssdlab.engine.speed import SpeedBounds, SpeedPoint, Speeds, measured, moved_by
from ssdlab.engine.steps import Job, Purge, Repeated, Rounds, Shape, Then, Trim
from ssdlab.errors import InputError
from ssdlab.jobfile import JobText
from ssdlab.target import Sim, SimSession, Terms

LEAST_CAPACITY = 512 << 20
"""A drive is never made smaller than this..."""
LEAST_SUPERBLOCKS = 128
"""...nor so small that fewer remain: with hardly any reserve beside the blocks that it writes
into, its write amplification is nothing like that of the whole drive."""
MOST_CAPACITY = 16 << 30
"""What is larger takes too long to rehearse on."""
TIMED_CAPACITY = 4 << 30
"""So that short jobs need not become too short, a drive is not made larger than this."""
FIRST_S = 0.2
"""Virtual seconds of the shortest job at first; from what is done in it follows..."""
BUDGET = 750_000
"""...for how long they can go on, by the work that all jobs are: how slow a drive gets once it has
nothing left that is erased shows late."""
ROUNDS = 3
"""Rounds that are rehearsed: in the first the drive is hardly ever as slow as it will be."""
WRITTEN = 3.0
"""Random writes of so many times the range, at least, have shown how slow they become."""
STEADY_WORK = 25_000
"""Of a job on a drive in its steady state, for the speed that it falls to if it goes on."""
MOST_WORK = 6_000_000
"""The work of the whole rehearsal; what goes beyond it is left out. Never a time, of which a busy
machine would make another answer."""
JOB_WORK = 4_000
"""Starting a job, and reading what it did."""


def small_drive(rig: Rig, capacity: int, seed: int) -> SimSession:
    """A drive made about as small as ``capacity``, or as it can be, its ratios kept; InputError
    where it cannot be made smaller."""
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
        wanted = max(wanted, min(TIMED_CAPACITY, int(setup.capacity * LEAST_SIM_S / shortest)))
    try:
        timed_s, done = FIRST_S, 0
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
                smaller=least,
            )
            going = _Rehearsal(session, MOST_WORK - done, small.active)
            going.steps(protocol.plan(small))
            if best is None or not going.short:
                best = going
            done += sum(going.work.values())
            longer = (BUDGET - going.work[False]) / max(1.0, going.work[True])
            if shorter == least or longer < 2 or going.short:
                break
            timed_s *= longer
    except InputError:
        return None
    if not best.moved:
        return None
    what = "some of the jobs or their beginnings" if best.short else "the jobs"
    words = f"like the profile {rig.name}, by a simulation of {what} on a small drive"
    known = measured(best.moved)
    if shorter > least and (slow := _steady(rig, best, seed)):
        known |= {one: known[one]._replace(low=min(known[one].low, slow[one].low)) for one in slow}
        words += ", new and in its steady state"
    return Speeds(known, "profile", words)


def _steady(rig: Rig, rehearsal: _Rehearsal, seed: int) -> dict[Shape, SpeedBounds]:
    """Speeds in a steady state of what was rehearsed on a drive with erased blocks left, for less
    long than it will take; nothing where the rig has no such state."""
    found: list[SpeedPoint] = []
    if rehearsal.fresh:
        with contextlib.suppress(InputError):
            session = small_drive(rig, rehearsal.session.capacity, seed)
            session.prepare("steady", None)
            for job in rehearsal.fresh.values():
                begun = session.begin(
                    JobText(job.key, job.text, Path.cwd()), seed=seed, most_work=STEADY_WORK
                )
                found += [point] if (point := moved_by(job, begun.result)) else []
    return measured(found)


class _Rehearsal:
    def __init__(self, session: SimSession, most: int, active: int) -> None:
        self.session = session
        self.fresh: dict[Shape, Job] = {}
        """Jobs of random writes that end with their time, before much was written."""
        self._active, self._written = active, 0.0
        self.moved: list[SpeedPoint] = []
        self.work = {True: 0, False: 0}
        """By whether the jobs are bounded by time; starting them is not."""
        self.short = False
        """Whether jobs were left out, or did not come to their end."""
        self._most = most
        self._count = 0

    def steps(self, steps: Iterable[estimate.Expected]) -> None:
        for step in steps:
            if isinstance(step, Rounds):
                for number in range(1, min(ROUNDS, step.most) + 1):
                    self.steps(step.jobs(number))
            elif isinstance(step, Then):
                self.steps(step.expected)
            elif isinstance(step, Repeated):
                self._job(_in_one(step))
            elif isinstance(step, Job):
                self._job(step)
            elif isinstance(step, Purge):
                self._written = 0.0
                self.session.purge(lambda _news: True)
            elif isinstance(step, Trim):
                length = step.length or self.session.capacity - step.offset
                self.session.trim(step.offset, length)
            else:
                self.session.idle(step.seconds, lambda _news: True)

    def _job(self, job: Job) -> None:
        left = self._most - sum(self.work.values()) - JOB_WORK
        if left <= 0:
            self.short = True
            return
        text = JobText(job.key, job.text, Path.cwd())
        # A seed of its own for each: the same one would write the same places again.
        self._count += 1
        # None takes more than half of what is left, so that something remains for those behind it.
        begun = self.session.begin(text, seed=self._count, most_work=left // 2)
        self.short |= begun.cut
        self.work[False] += JOB_WORK
        self.work[job.seconds is not None] += begun.work
        point = moved_by(job, begun.result)
        if point is None:
            return
        self.moved.append(point)
        self._written += point.bytes * job.shape.write_share
        late = job.seconds is not None and job.shape.random and job.shape.write_share > 0
        if late and self._written < WRITTEN * self._active:
            self.fresh[job.shape] = job


def _in_one(step: Repeated) -> Job:
    """Jobs alike that follow one another as one that goes on for as long: the drive cannot tell."""
    job = step.job
    assert job.seconds is not None
    most_s = step.most * job.seconds
    ends = f"time_based=0\nruntime={round(most_s * 1000)}ms\nio_size={step.amount}\n"
    return replace(job, text=job.text + ends, seconds=None, amount=step.amount, most_s=most_s)
