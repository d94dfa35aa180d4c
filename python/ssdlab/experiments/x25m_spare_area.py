"""Spare area on the Intel X25-M: 4 KiB random writes into a part of the drive, for four hours."""

from __future__ import annotations

import itertools

from ssdlab.answer import Curve, Figure
from ssdlab.experiments import measure
from ssdlab.experiments.base import (
    Experiment,
    Findings,
    Line,
    Published,
    Runs,
    Task,
)
from ssdlab.experiments.x25m_random_write import (
    ARTICLE,
    DRIVE,
    LENGTH_S,
    RECORD_S,
    job,
)
from ssdlab.rig import reduced

SHARES = (100, 75, 50, 25)
"""Percent of the drive that the partition takes."""
ORDER = Published(DRIVE, "neighbouring partitions of which the smaller is faster", 3.0, "of 3")


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


def judge(runs: Runs, factor: int) -> Findings:
    """The order of the curves, which is all that the article's picture gives."""
    last: dict[int, float] = {}
    curves = []
    for number, share in enumerate(SHARES):
        time, rate = measure.rate(runs[f"{share}-percent"], "random")
        minutes = time * factor / 60
        last[share] = measure.mean_between(minutes, rate, 180, 241) or 0.0
        curves.append(Curve(f"{share} %", minutes.tolist(), rate.tolist(), "line", number))
    rising = sum(last[b] > last[a] for a, b in itertools.pairwise(SHARES))
    lines = [Line(ORDER, float(rising))]
    lines += [
        Line(
            Published(DRIVE, f"partition of {share} %, mean of the last hour", None, "MB/s"),
            last[share],
        )
        for share in SHARES
    ]
    figure = Figure("4 KiB random writes", "time, min", "MB/s", curves, wide=True)
    return Findings(lines, [figure])


EXPERIMENT = Experiment(
    name="x25m-spare-area",
    title="Intel X25-M: what a smaller partition gains",
    article=ARTICLE,
    procedure="From the new state, write 4 KiB at random at depth 4 for four hours into a "
    "partition of 100, 75, 50 or 25 % of the drive; what is never written acts as reserve. The "
    "article gives the result as a picture only: the smaller the partition, the faster.",
    scaling="capacity (blocks per plane), run time and the interval of a record",
    factors={"quick": 60, "reduced": 20, "full": 1},
    plan=plan,
    judge=judge,
)
