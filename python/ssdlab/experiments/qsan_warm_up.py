"""How long an SSD cache before eight disks takes to become warm, and is then worth: Qsan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ssdlab.answer import Curve, Figure
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.experiments.cached import Members, milliseconds, rig
from ssdlab.experiments.measure import Course, course, mean_between, thinned, when_above
from ssdlab.plan.warmup import Formula
from ssdlab.results import Result

DRIVE = "8 disks, 5 SSDs"
DISK = "seagate-constellation-es3-1000"
"""Stands for the 7200 rpm SATA disks of 1 TB, whose model the article does not give."""
SSD = "intel-dc-s3510-480"
"""Stands for the SSDs of 480 GB."""
POOL = Members("5", 8, DISK, 64 << 10, (("write_cache_enabled", "false"),))
CACHE = Members("0", 5, SSD, 64 << 10, factor_max=200)
"""A read cache needs no redundancy: what it holds is on the disks."""
FORMULA_BYTES = 2 << 40
"""C of the article's formula."""
THRESHOLD, DISK_IOPS, REQUEST, DISKS = 2, 244.0, 8192, 8
WITHOUT, WITH, GAIN = 962.0, 1942.0, 102.0
WARM_S = 75 * 3600.0
DEPTH = 32
HOT_BYTES = FORMULA_BYTES
LENGTH_S = 160 * 3600
BARE_S = 30_000
"""Watched without a cache, where nothing changes."""
READS = 0.9
COMMANDS = {"read": 1.0, "write": 4.0}
"""Of disks in RAID 5, for a request that misses."""

DATABASE: Mapping[str, Any] = {"preset": "qsan"}
"""The type of I/O that the manual calls database."""
WHOLE = {**DATABASE, "fill": "block"}
EACH = {**DATABASE, "block": "8KiB"}
CASES: Mapping[str, tuple[Mapping[str, Any] | None, str]] = {
    "none": (None, "no cache"),
    "database": (DATABASE, "what is read is filled, uses counted by block"),
    "each": (EACH, "what is read is filled, uses counted by each 8 KiB"),
    "whole": (WHOLE, "blocks filled whole"),
}
DEPTH_WHY = "the depth, 32, was chosen by this number among powers of two: the article gives none"
WARM_WHY = (
    "the reads still go on finding places that nobody has read: here the rate goes on rising after "
    "75 h, where the article calls it stable"
)
FORMULA_WHY = (
    "the formula takes every read for one of a place that is not yet in the cache, for two uses of "
    "each, and 244 reads a second for a disk; 962 I/Os on eight disks are no 244 each. 244 x 8 is "
    "what the system did with its cache"
)


def hit_ratio_of(gain: float) -> float:
    """The share of reads that a cache must answer for disks to do ``1 + gain`` times as many
    requests: by the disks' commands, where they alone are the limit."""
    bare = READS * COMMANDS["read"] + (1 - READS) * COMMANDS["write"]
    return (bare - bare / (1 + gain)) / (READS * COMMANDS["read"])


def job(factor: int, length_s: float) -> str:
    """The job file."""
    size = HOT_BYTES // factor // REQUEST * REQUEST
    return job_file(
        "8 KiB at random, 90 % reads, in 2 TiB; begin with a cold cache.",
        "",
        {
            "database": f"rw=randrw rwmixread=90 bs={REQUEST} size={size} iodepth={DEPTH} "
            f"norandommap runtime={milliseconds(length_s, factor)}"
        },
    )


def plan(factor: int) -> list[Task]:
    """The disks alone, and the cache in three ways."""
    tasks = []
    for key, (keys, _) in CASES.items():
        length = BARE_S if keys is None else LENGTH_S
        fast = None if keys is None else CACHE.rig(factor)
        tasks.append(
            Task(
                key,
                DRIVE,
                job(factor, length),
                interval_ms=max(1, 1_500_000 // factor),
                cost=length / factor,
                rig=rig(DRIVE, POOL.rig(factor), fast, keys),
            )
        )
    return tasks


def _hits(result: Result, factor: int) -> Course:
    """The share of reads that the cache answered in each interval, over time at full size."""
    frame = result.device_series()
    assert frame is not None
    count = {n: np.diff(frame[f"read_{n}"].to_numpy().astype(float)) for n in ("hits", "misses")}
    total = np.maximum(count["hits"] + count["misses"], 1.0)
    return Course(frame["time_s"].to_numpy()[1:] * factor, count["hits"] / total)


def judge(runs: Runs, factor: int) -> Reproduced:
    """Rates without and with the cache, and when it is warm."""
    curves = {key: course(runs[key], "database", factor) for key in CASES}
    base, of = float(curves["none"].values.mean()), curves["database"]
    step = LENGTH_S / 60

    def late(one: Course) -> float:
        return one.between(WARM_S - step / 2, WARM_S + step / 2)

    warm, hits = late(of), late(_hits(runs["database"], factor))
    x, y = thinned(of.time, of.values, list(np.arange(0, float(of.time[-1]) + step, step)))
    doubled = when_above(np.asarray(x), np.asarray(y), base * (1 + GAIN / 100))
    formula = Formula(FORMULA_BYTES, THRESHOLD, DISK_IOPS, REQUEST, DISKS).seconds
    own = Formula(FORMULA_BYTES, THRESHOLD, base / DISKS, REQUEST, DISKS).seconds
    why = WARM_WHY if doubled is not None else f"not within {LENGTH_S / 3600:.0f} h"
    end = mean_between(of.time, of.values, LENGTH_S - 2 * step, LENGTH_S)
    gain, hours = 100 * (warm / base - 1), LENGTH_S / 3600
    lines = [
        Line(DRIVE, "without the cache", WITHOUT, "IOPS", base, DEPTH_WHY, "fitted"),
        Line(DRIVE, "with the cache, after 75 h", WITH, "IOPS", warm, WARM_WHY),
        Line(DRIVE, "gain after 75 h", GAIN, "%", gain, WARM_WHY),
        Line(
            DRIVE, "time to the published gain", WARM_S / 3600, "h", doubled and doubled / 3600, why
        ),
        Line(DRIVE, "time to be warm by the article's formula", None, "h", formula / 3600),
        Line(DRIVE, "the same with the rate of our disks", None, "h", own / 3600, FORMULA_WHY),
        Line(DRIVE, "reads that the cache answers after 75 h", None, "%", 100 * hits),
        Line(DRIVE, f"with the cache, after {hours:.0f} h", None, "IOPS", end),
        *(
            Line(DRIVE, f"{CASES[key][1]}: after 75 h", None, "IOPS", late(curves[key]))
            for key in ("each", "whole")
        ),
    ]
    return Reproduced(lines, _figures(curves, runs, factor), _remarks(base, hits, formula, own))


def _figures(curves: Mapping[str, Course], runs: Runs, factor: int) -> list[Figure]:
    def drawn(one: Course, name: str, colour: int) -> Curve:
        x, y = thinned(one.time, one.values, list(np.linspace(0, LENGTH_S, 81)))
        return Curve(name, [t / 3600 for t in x], y, "line", colour)

    names = {key: (name, colour) for colour, (key, (_, name)) in enumerate(CASES.items())}
    base = float(curves["none"].values.mean())
    rates = [Curve(names["none"][0], [0.0, LENGTH_S / 3600], [base] * 2, "dashed", 0)]
    rates += [drawn(curves[key], *told) for key, told in names.items() if key != "none"]
    rates.append(Curve("published", [0.0, WARM_S / 3600], [WITHOUT, WITH], "published", len(CASES)))
    hits = [drawn(_hits(runs[key], factor), *told) for key, told in names.items() if key != "none"]
    hits = [replace(hit, y=[100 * share for share in hit.y]) for hit in hits]
    axis = "time at full size, h"
    return [
        Figure("How the cache becomes warm", axis, "IOPS", rates, wide=True),
        Figure("Reads that the cache answers", axis, "%", hits, wide=True, y_max=100.0),
    ]


def _remarks(base: float, hits: float, formula: float, own: float) -> list[str]:
    needed = hit_ratio_of(GAIN / 100)
    return [
        "The article does not say how much is in use. Here 2 TiB, all that its formula fills, at "
        "random: the cache holds it with room to spare, and nothing is chosen by the gain.",
        "Where the disks are the limit, a read takes one of their commands and a write four: +102 "
        f"% then means that the cache answers {100 * needed:.0f} % of the reads. Filled place by "
        f"place it answers {100 * hits:.0f} % of them after 75 h: places are drawn at random, and "
        "the last ones take longest, as in collecting coupons.",
        f"T = C P / (I S D) is {formula:,.0f} s with the article's 244 reads a second for a disk, "
        f"and {own / 3600:.0f} h with the {base / DISKS:.0f} that each of ours does. Five SSDs of "
        "480 GB hold 2.18 TiB, not 2.",
        "A cache that fills a whole block at its second read is warm within hours, and needs all "
        "of the disks' time for it at first: the article's 75 h are those of a cache that fills "
        "what was read. The manual says so: sub-blocks are populated.",
    ]


EXPERIMENT = experiment("qsan-warm-up", plan, judge)
