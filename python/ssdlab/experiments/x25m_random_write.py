"""Random writes over time on the Intel X25-M, in blocks of 2 to 128 KiB, for four hours each."""

from __future__ import annotations

from ssdlab.answer import Curve, Figure
from ssdlab.experiments.base import (
    Line,
    Reproduced,
    Runs,
    Task,
    experiment,
    job_file,
)
from ssdlab.experiments.measure import Course, at, minutes
from ssdlab.rig import reduced

DRIVE = "intel-x25-m-g2-160"
BLOCKS_KIB = (2, 4, 8, 16, 32, 64, 128)
PARTITION_KIB = BLOCKS_KIB
LENGTH_S = 4 * 3600
RECORD_S = 20
"""The article has a record a minute; three make the first minutes visible, and their mean is it."""

ASSUMED = "what is merged together, and how many bytes an entry takes, are assumed"
ALIKE = "an entry for each 32 KiB beside the table, taken from these curves"
EARLY = (
    "the simulated table of extents is exactly full at one moment; the real drive slows down "
    "gradually, as if it began to merge before"
)


Points = tuple[tuple[float, str, float], ...]
"""Minutes, what the article says of them, MB/s."""
LAST = "mean of the last hour"
"""Where the article says that the rate stays: minutes of a small drive scatter by a tenth."""
RAW_4K: Points = (
    (0.33, "at the start", 90.0),
    (1.0, "at 1 min", 65.0),
    (3.0, "at 3 min", 10.0),
    (4.0, "at 4 min", 8.0),
    (40.0, "at 40 min", 2.0),
    (240.0, LAST, 2.0),
)
HUMP = 15.0
RAW_16K: Points = ((0.33, "at the start", 100.0), (10.0, "after the first minutes", 30.0))
"""The article says "in the first minutes" of four hours."""
PARTITION_4K: Points = ((1.0, "at 1 min", 61.0), (4.0, "at 4 min", 2.6), (240.0, LAST, 2.6))
WRITTEN_GB = 10.0
"""At most, in the first three minutes."""


def job(block_kib: int, partition: bool, factor: int, size: str = "100%") -> str:
    """The job file. With a partition, the test program lays its file out first."""
    fill = {"layout": "rw=write bs=128k"} if partition else {}
    writes = f"rw=randwrite bs={block_kib}k norandommap runtime={LENGTH_S // factor}"
    return job_file(
        f"Random writes of {block_kib} KiB over time. Begin with a drive that has been erased.",
        f"size={size} iodepth=4",
        {**fill, "random": writes},
    )


def plan(factor: int) -> list[Task]:
    """Every block size, raw and with a partition, four hours each."""
    return [
        Task(
            key=f"{block}k-{'partition' if partition else 'raw'}",
            drive=DRIVE,
            job=job(block, partition, factor),
            overrides=reduced(DRIVE, factor),
            interval_ms=RECORD_S * 1000 // factor,
            cost=LENGTH_S * 3500 / factor,
        )
        for partition, blocks in ((False, BLOCKS_KIB), (True, PARTITION_KIB))
        for block in blocks
    ]


def judge(runs: Runs, factor: int) -> Reproduced:
    """The numbers of the text, and the curves of all block sizes."""
    found = {key: minutes(result, factor) for key, result in runs.items()}
    raw = found["4k-raw"]
    lines = _points(raw, "4 KiB raw", RAW_4K)
    hump = float(raw.values[(raw.time > 4) & (raw.time <= 40)].max())
    what = "4 KiB raw, hump between 4 and 40 min"
    lines.insert(4, Line(DRIVE, what, HUMP, "MB/s", hump, ASSUMED))
    first = float(raw.values[raw.time <= 3].sum()) * RECORD_S / 1e3
    what = "4 KiB raw, written in the first 3 min"
    lines.append(Line(DRIVE, what, None, "GB", first, kind="bound", at_most=WRITTEN_GB))
    lines += _points(found["16k-raw"], "16 KiB raw", RAW_16K)
    last = {block: found[f"{block}k-raw"].between(180, 241) for block in BLOCKS_KIB}
    what = "32 KiB / 128 KiB raw, mean of the last hour"
    lines.append(Line(DRIVE, what, 1.0, "", last[32] / last[128], ALIKE, "fitted"))
    lines += _points(found["4k-partition"], "4 KiB partition", PARTITION_4K)
    figures = []
    for kind, blocks, title, points in (
        ("raw", BLOCKS_KIB, "Without a partition", RAW_4K),
        ("partition", PARTITION_KIB, "With a partition over the whole drive", PARTITION_4K),
    ):
        curves = [
            found[f"{block}k-{kind}"].curve(f"{block} KiB", number)
            for number, block in enumerate(blocks)
        ]
        x, y = [minute for minute, _, _ in points], [rate for _, _, rate in points]
        curves.append(Curve("published, 4 KiB", x, y, "published", 1))
        figures.append(Figure(title, "time, min", "MB/s", curves, wide=True))
    return Reproduced(lines, figures, _remarks(found, last))


def _points(course: Course, name: str, points: Points) -> list[Line]:
    lines = []
    for minute, when, published in points:
        # A record of the article is the mean of a minute; the start is the first one of ours.
        if minute >= 1:
            value: float | None = course.over(minute - (60 if when == LAST else 1), minute)
        else:
            value = at(course.time, course.values, minute)
        off = value is None or not 1 / 1.5 <= value / published <= 1.5
        why = EARLY if off and minute < 5 else ASSUMED
        lines.append(Line(DRIVE, f"{name}, {when}", published, "MB/s", value, why))
    return lines


def _remarks(found: dict[str, Course], last: dict[int, float]) -> list[str]:
    rates = ", ".join(f"{block} KiB {rate:.1f}" for block, rate in last.items())
    halved = []
    for block in BLOCKS_KIB:
        course = found[f"{block}k-raw"]
        below = course.time[course.values < course.values[0] / 2]
        halved.append(f"{block} KiB {below[0]:.0f}" if len(below) else f"{block} KiB never")
    return [
        f"Mean of the last hour, MB/s: {rates}. Published: up to 32 KiB a sharp fall, a rise and "
        "a plateau; 32 KiB and more give the same curve.",
        f"Minutes until the rate is half of the first record: {', '.join(halved)}. Published: the "
        "bigger the block, the slower the first fall.",
    ]


EXPERIMENT = experiment("x25m-random-write", plan, judge)
