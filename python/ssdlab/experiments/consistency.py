"""I/O consistency: 4 KiB random writes at depth 32 on eight drives, second by second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssdlab.analysis.consistency import periodicity
from ssdlab.answer import Figure
from ssdlab.experiments import measure
from ssdlab.experiments.base import Kind, Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.experiments.measure import Course
from ssdlab.numeric import Floats
from ssdlab.rig import capacity_of, reduced

LENGTH_S = 2000
JUDGED_FROM_S = 1400
LINEAR_TOP_IOPS = 40_000.0
"""Where the article's linear axis ends."""


@dataclass(frozen=True)
class Tested:
    """A drive of the article and what it says about it."""

    name: str
    shape: str
    numbers: tuple[tuple[str, float, str, Kind], ...] = ()
    """What the article says after 1400 s, its value and unit."""
    rated: float | None = None
    """4 KiB random writes a second of the datasheet, where the article has no number."""
    rated_kind: Kind = "predicted"
    why: str = ""
    """Why the simulated drive differs from that."""
    bursts: bool = False
    """Whether it collects in bursts for which the host waits. The last part holds one or two, so
    that its mean depends on where they lie."""


S3700, PRO = "intel-dc-s3700-200", "samsung-840-pro-256"
HIGHEST, LOWEST = 34_865.0, 29_150.0
SPREAD = 100 * (HIGHEST - LOWEST) / HIGHEST

DRIVES = (
    Tested(
        S3700,
        "flat, with a dip about every 150 s that lasts 30-40 s",
        (
            ("mean after 1400 s", (HIGHEST + LOWEST) / 2, "IOPS", "predicted"),
            ("highest second after 1400 s", HIGHEST, "IOPS", "predicted"),
            ("slowest second after 1400 s", LOWEST, "IOPS", "fitted"),
            ("spread after 1400 s", SPREAD, "%", "predicted"),
            ("time from dip to dip", 150.0, "s", "fitted"),
            ("length of a dip", 35.0, "s", "predicted"),
        ),
    ),
    Tested("intel-dc-s3700-800", "as the smaller one"),
    Tested("intel-710-200", "clustered round its mean, with frequent single drops", rated=2700.0),
    Tested("intel-x25-e-64", "slow, but fairly even", rated=3300.0),
    Tested("intel-330-120", "good at first; loses its calm at the end of the run"),
    Tested("toshiba-mk4001grzb-400", "quite good"),
    Tested(
        "micron-p400e-200",
        "very tight while clean blocks last, then a wall, down to tens of IOPS",
        rated=9500.0,
        rated_kind="fitted",
        why="fitted to the steady state, where it is 1.03; the run ends before that",
        bursts=True,
    ),
    Tested(
        PRO,
        "best and worst seconds an order of magnitude apart",
        (("highest / slowest second after 1400 s", 10.0, "", "fitted"),),
    ),
)

WIDTH = (
    "a batch lasts until the clean superblocks are back; how fast it copies also sets how deep the "
    "dip is"
)
SECOND = "a burst of a drive so small is shorter than a second"
NO_DIPS = "no dip repeats clearly among so few seconds of a drive so small"


def job(factor: int) -> str:
    """The job file; the time axis scaled down by ``factor``."""
    seconds = LENGTH_S // factor
    return job_file(
        f"I/O consistency: fill the drive, then write 4 KiB at random for {seconds} s.\n"
        "; Begin with a drive that has been securely erased.",
        "size=100% refill_buffers iodepth=32",
        {
            "fill": "rw=write bs=128k",
            "random": f"rw=randwrite bs=4k norandommap runtime={seconds}",
        },
    )


def plan(factor: int) -> list[Task]:
    """One run for each drive."""
    return [
        Task(
            key=drive.name,
            drive=drive.name,
            job=job(factor),
            overrides=reduced(drive.name, factor),
            # Filling takes a write for each 128 KiB, the rest some tens of thousands a second.
            cost=(capacity_of(drive.name) / 2e5 + LENGTH_S * 2e4) / factor,
        )
        for drive in DRIVES
    ]


def judge(runs: Runs, factor: int) -> Reproduced:
    """Published beside simulated, and the article's three views of each drive."""
    lines: list[Line] = []
    figures: list[Figure] = []
    for number in range(len(DRIVES)):
        of_drive, views = judge_drive(number, runs, factor)
        lines += of_drive
        figures += views
    return Reproduced(lines, figures, _remarks(runs, factor))


def judge_drive(number: int, runs: Runs, factor: int) -> tuple[list[Line], list[Figure]]:
    """The same for one drive, by its place in ``DRIVES``."""
    drive = DRIVES[number]
    course, late = _course(runs, drive, factor)
    return _lines(drive, course, late.values, factor), _views(drive, course, late, number)


def _course(runs: Runs, drive: Tested, factor: int) -> tuple[Course, Course]:
    """The IOPS of a drive, and those of its last part."""
    course = measure.course(runs[drive.name], "random", factor)
    late = course.time > JUDGED_FROM_S
    return course, Course(course.time[late], course.values[late])


def of_whole_bursts(course: Course) -> float:
    """Mean from where the host began to wait before the last part to where it last did so."""
    late = course.time > JUDGED_FROM_S
    writing = course.values > course.values[late].mean()
    waits = np.flatnonzero(writing[:-1] & ~writing[1:]) + 1
    before, after = waits[~late[waits]], waits[late[waits]]
    whole = slice(before[-1], after[-1]) if len(before) and len(after) else late
    return float(course.values[whole].mean())


def _lines(drive: Tested, course: Course, late: Floats, factor: int) -> list[Line]:
    high, low, mean = float(late.max()), float(late.min()), float(late.mean())
    found = periodicity(late)
    dips = found if found is not None and found.dips else None
    spread, shown = 100 * (high - low) / high, "spread after 1400 s"
    readings: dict[str, tuple[float | None, str]] = {
        "mean after 1400 s": (mean, ""),
        "highest second after 1400 s": (high, ""),
        "slowest second after 1400 s": (low, ""),
        shown: (spread, WIDTH),
        "time from dip to dip": (factor * dips.period if dips else None, "" if dips else NO_DIPS),
        "length of a dip": (factor * dips.width if dips else None, WIDTH if dips else NO_DIPS),
        "highest / slowest second after 1400 s": (high / low if low > 0 else None, SECOND),
    }
    if drive.numbers:
        return [
            Line(drive.name, what, value, unit, *readings[what], kind)
            for what, value, unit, kind in drive.numbers
        ]
    quantity = "mean of whole bursts" if drive.bursts else "mean after 1400 s"
    quantity += ", beside what is rated" if drive.rated else ""
    value = of_whole_bursts(course) if drive.bursts else mean
    why = drive.why if drive.rated else ""
    return [
        Line(drive.name, quantity, drive.rated, "IOPS", value, why, drive.rated_kind),
        Line(drive.name, shown, None, "%", spread),
    ]


def _views(drive: Tested, course: Course, late: Course, number: int) -> list[Figure]:
    whole, end = (
        Course(one.time, np.maximum(one.values, 1.0)).curve(drive.name, number, "dots")
        for one in (course, late)
    )
    axes, group = ("time, s", "IOPS"), f"{drive.name}: {drive.shape}"
    return [
        Figure("whole run", *axes, [whole], log_y=True, group=group),
        Figure("from 1400 s", *axes, [end], log_y=True, group=group),
        Figure("from 1400 s, linear", *axes, [end], y_max=LINEAR_TOP_IOPS, group=group),
    ]


def _remarks(runs: Runs, factor: int) -> list[str]:
    sentences = []
    for drive in DRIVES:
        course, end = _course(runs, drive, factor)
        late = end.values
        sentences.append(
            f"{drive.name} begins {float(course.values[0] / late.mean()):.1f} times as fast as it "
            f"ends; its last seconds vary by {100 * float(late.std() / late.mean()):.0f} % "
            f"(standard deviation). Published: {drive.shape}."
        )
    return sentences


EXPERIMENT = experiment("consistency", plan, judge)
