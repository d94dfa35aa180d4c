"""Spare area on the Intel X25-M: 4 KiB random writes into a part of the drive, for four hours."""

from __future__ import annotations

import itertools

from ssdlab.answer import Figure
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment
from ssdlab.experiments.measure import minutes
from ssdlab.experiments.x25m_random_write import DRIVE, LENGTH_S, RECORD_S, job
from ssdlab.rig import reduced

SHARES = (100, 75, 50, 25)
"""Percent of the drive that the partition takes."""
ORDER = "neighbouring partitions of which the smaller is faster"


def plan(factor: int) -> list[Task]:
    """One run for each size of the partition."""
    return [
        Task(
            key=f"{share}-percent",
            drive=DRIVE,
            job=job(4, True, factor, size=f"{share}%"),
            overrides=reduced(DRIVE, factor),
            interval_ms=RECORD_S * 1000 // factor,
            cost=LENGTH_S * 35e4 / share / factor,
        )
        for share in SHARES
    ]


def judge(runs: Runs, factor: int) -> Reproduced:
    """The order of the curves, which is all that the article's picture gives."""
    courses = {share: minutes(runs[f"{share}-percent"], factor) for share in SHARES}
    last = {share: course.between(180, 241) for share, course in courses.items()}
    rising = sum(last[b] > last[a] for a, b in itertools.pairwise(SHARES))
    lines = [Line(DRIVE, ORDER, 3.0, "of 3", float(rising))]
    lines += [
        Line(DRIVE, f"partition of {share} %, mean of the last hour", None, "MB/s", rate)
        for share, rate in last.items()
    ]
    curves = [course.curve(f"{share} %", i) for i, (share, course) in enumerate(courses.items())]
    figure = Figure("4 KiB random writes", "time, min", "MB/s", curves, wide=True)
    return Reproduced(lines, [figure])


EXPERIMENT = experiment("x25m-spare-area", plan, judge)
