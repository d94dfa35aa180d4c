"""Internal fragmentation: what random overwriting does to sequential reading, on ten drives."""

from __future__ import annotations

from ssdlab.answer import Curve, Figure
from ssdlab.experiments import measure
from ssdlab.experiments.base import Kind, Line, Reproduced, Runs, Task, experiment, job_file

FILE_MIB = 4096
STEPS_MIB = (0, 50, 200, 800, 4000)
"""Random overwriting so far ahead of each reading: each step adds its own amount."""

SECONDS: dict[str, tuple[float, float, float, float, float]] = {
    "intel-dc-s3510-480": (10.7, 10.7, 10.8, 10.8, 10.8),
    "toshiba-xg5-512": (1.9, 2.9, 3.7, 4.8, 6.8),
    "samsung-pm963-960": (2.8, 3.2, 3.5, 3.7, 4.2),
    "samsung-pm983-960": (3.3, 3.6, 3.4, 3.4, 3.4),
    "samsung-pm981-1024": (1.8, 1.8, 2.1, 2.5, 3.5),
    "samsung-pm1725b-1600": (1.8, 1.9, 2.0, 2.3, 2.9),
    "micron-5200-eco-960": (9.3, 9.8, 10.4, 12.2, 10.7),
    "samsung-pm883-1920": (7.9, 7.9, 8.1, 8.1, 8.0),
    "intel-dc-p3520-2000": (5.8, 5.9, 6.0, 6.1, 5.8),
    "intel-dc-p4500-2000": (4.2, 4.2, 4.3, 4.4, 4.3),
}
"""Seconds to read the file: at first, and after each step of random overwriting."""

FITTED: dict[str, tuple[int, ...]] = {
    **{drive: (0,) for drive in SECONDS if drive != "samsung-pm883-1920"},
    **dict.fromkeys(
        ("toshiba-xg5-512", "samsung-pm963-960", "samsung-pm981-1024", "samsung-pm1725b-1600"),
        (0, 4000),
    ),
}
"""Readings by which a value was chosen: the first gave the bandwidth of the stream, and where the
last is much slower, it gave tR, which is a guess else."""

DRIVE = {"capacity": "16GiB", "ftl.over_provisioning": "2"}
"""The drive round the file: large enough for the file, and so much reserve that nothing is ever
collected. The article's drives were mostly empty, so what else they hold plays no part."""
ALIKE = 1.03
"""Readings that differ by less are the same: the article rounds to 0.1 s."""
EARLY = (
    "the model goes on reading ahead where the drive seems to give up once a stream is in pieces"
)


def job(factor: int) -> str:
    """The job file; file and amounts scaled down by ``factor``."""
    jobs = {"fill": "rw=write bs=1m end_fsync=1"}
    for amount in STEPS_MIB:
        if amount:
            kib = amount * 1024 // factor // 4 * 4
            jobs[f"overwrite-{amount}"] = (
                f"rw=randwrite bs=4k norandommap io_size={kib}k end_fsync=1"
            )
        pauses = (10, 20, 30) if amount else (10, 10, 10)
        for n, pause in enumerate(pauses, start=1):
            jobs |= _read(f"read-{amount}-{n}", pause)
    jobs |= _read("read-rested", 3600)
    return job_file(
        "Internal fragmentation: read a file sequentially, overwrite some of it at random, read.",
        f"size={FILE_MIB // factor}m refill_buffers iodepth=1",
        jobs,
    )


def _read(name: str, pause_s: int) -> dict[str, str]:
    # fio counts startdelay from the start of the run, so the pause lies between two small reads.
    pause = f"rw=read bs=4k number_ios=2 thinktime={pause_s}s"
    return {f"pause-before-{name}": pause, name: "rw=read bs=1m"}


def plan(factor: int) -> list[Task]:
    """One run for each drive."""
    return [Task(drive, drive, job(factor), DRIVE, cost=2e7 / factor) for drive in SECONDS]


def judge(runs: Runs, factor: int) -> Reproduced:
    """Published beside simulated, cell by cell."""
    lines: list[Line] = []
    figures: list[Figure] = []
    gains: dict[str, tuple[float, float]] = {}
    rested: list[float] = []
    for number, (drive, published) in enumerate(SECONDS.items()):
        rates = measure.totals(runs[drive], "bw_bytes")
        took = {job: FILE_MIB * 2**20 / rate for job, rate in rates.items()}
        found = [min(took[f"read-{step}-{n}"] for n in (1, 2, 3)) for step in STEPS_MIB]
        for step, seconds, simulated in zip(STEPS_MIB, published, found, strict=True):
            quantity = f"read after +{step} MiB of random overwrite" if step else "first read"
            fitted = FITTED.get(drive, ())
            kind: Kind = "fitted" if step in fitted else "predicted"
            unslowed = simulated <= ALIKE * found[0] and seconds <= ALIKE * published[0]
            if step not in fitted and 0 in fitted and unslowed:
                kind = "consequence"  # it is the fitted stream that is found again
            why = EARLY if simulated < seconds else ""
            lines.append(Line(drive, quantity, seconds, "s", simulated, why, kind))
        gains[drive] = (published[-1] / published[0], found[-1] / found[0])
        rested.append(took["read-rested"] / found[-1])
        figures.append(_figure(drive, published, found, number))
    return Reproduced(lines, figures, _remarks(gains, rested))


def _figure(drive: str, published: tuple[float, ...], found: list[float], number: int) -> Figure:
    # Amounts on a log axis; the first reading stands where 10 MiB would.
    x = [float(step) or 10.0 for step in STEPS_MIB]
    rings = Curve("published", x, published, "published")
    group = "Seconds to read 4 GiB, at first (left edge) and after each step"
    return Figure(
        drive, "MiB overwritten", "s", [Curve("simulated", x, found, "line", number), rings],
        log_x=True, y_max=1.15 * max(*published, *found), group=group,
    )  # fmt: skip


def _remarks(gains: dict[str, tuple[float, float]], rested: list[float]) -> list[str]:
    drives = list(gains)
    alike = pairs = 0
    for i, drive in enumerate(drives):
        for other in drives[i + 1 :]:
            real = gains[drive][0] - gains[other][0]
            if abs(real) > 0.1:  # nearer ones have no order: the article rounds to 0.1 s
                pairs += 1
                alike += real * (gains[drive][1] - gains[other][1]) > 0
    drift = max(abs(r - 1) for r in rested)
    return [
        f"Order of sensitivity (last reading / first reading): {alike} of {pairs} pairs of drives "
        "that clearly differ in the article stand in the same order here.",
        f"An hour of rest changes the reading time by at most {100 * drift:.1f} %; "
        "published: no background defragmentation was seen.",
    ]


EXPERIMENT = experiment("fragmentation", plan, judge)
