"""Block sizes on the Intel X25-M: sequential and random reads, sequential writes new and used."""

from __future__ import annotations

from ssdlab.answer import Curve, Figure, family
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.experiments.measure import totals
from ssdlab.experiments.x25m_random_write import DRIVE
from ssdlab.rig import reduced

SIZES = (512, *(1024 << n for n in range(11)))
"""512 B to 1 MiB."""
STEP_S = 300
USING_S = 18 * 3600
"""Random writing of 32 KiB that makes the drive used."""
NO_FILE_SYSTEM = "the cost of a file system on the host is not simulated"

SCATTERED = (
    "the drive read here was written at random, so a sequential read is in pieces on the flash"
)


def label(size: int) -> str:
    """A block size as fio reads and people write it."""
    return f"{size}" if size < 1024 else f"{size // 1024}k" if size < 2**20 else "1m"


def used_job(factor: int) -> str:
    """The sweep on a used drive: reads in order, reads at random, writes in order."""
    jobs = {"use": f"rw=randwrite bs=32k norandommap runtime={USING_S // factor}"}
    for name, rw in (("read", "read"), ("randread", "randread norandommap"), ("write", "write")):
        for size in SIZES:
            step = f"rw={rw} bs={label(size)} runtime={STEP_S // factor}"
            jobs[f"{name}-{label(size)}"] = step
    note = "Block sizes on a used drive. Begin with a drive that has been erased."
    return job_file(note, "size=100% iodepth=4", jobs)


def new_job(size: int, factor: int) -> str:
    """Writing in order on a new drive."""
    return job_file(
        "Sequential writes on a new drive. Begin with a drive that has been erased.",
        "size=100% iodepth=4",
        {"write": f"rw=write bs={label(size)} runtime={STEP_S // factor}"},
    )


def plan(factor: int) -> list[Task]:
    """One long run on the used drive, and one on a new drive for each block size."""
    own = reduced(DRIVE, factor)
    used = Task("used", DRIVE, used_job(factor), own, cost=(USING_S * 3500 + 36 * 3e6) / factor)
    new = [
        Task(f"new-{label(size)}", DRIVE, new_job(size, factor), own, cost=STEP_S * 3e4 / factor)
        for size in SIZES
    ]
    return [used, *new]


def judge(runs: Runs, factor: int) -> Reproduced:
    """The numbers of the text and the four curves."""
    used = totals(runs["used"], "bw_bytes")
    read, random, again = (
        [used[f"{name}-{label(size)}"] / 1e6 for size in SIZES]
        for name in ("read", "randread", "write")
    )
    new = [totals(runs[f"new-{label(size)}"], "bw_bytes")["write"] / 1e6 for size in SIZES]
    top, at = max(read), SIZES.index(128 * 1024)
    reached = next(size for size, rate in zip(SIZES, read, strict=True) if rate >= 0.95 * top)
    order, raw = "sequential read", "without a partition"
    write, at_128 = "sequential write", "at 128 KiB"
    lines = [
        Line(DRIVE, f"{order}, highest, {raw}", 270.0, "MB/s", top),
        Line(
            DRIVE, f"{order}, highest, with a partition", 260.0, "MB/s", None, NO_FILE_SYSTEM
        ),
        Line(
            DRIVE, f"{order}, block from which 95 % of it are reached", 64.0, "KiB",
            reached / 1024, SCATTERED,
        ),
        Line(DRIVE, f"random / {order} at 1 MiB, {raw}", 1.0, "", random[-1] / read[-1]),
        Line(DRIVE, f"{write}, new, {at_128}", 100.0, "MB/s", new[at], kind="fitted"),
        Line(
            DRIVE, f"{write}, used, {at_128} (much lower at first)", None, "MB/s", again[at]
        ),
    ]  # fmt: skip
    curves = {
        order: read,
        "random read, used": random,
        f"{write}, new": new,
        f"{write}, used": again,
    }
    drawn = family((size / 1024 for size in SIZES), curves, "line")
    drawn.append(Curve("published", [64.0, 128.0], [270.0, 100.0], "published"))
    figure = Figure("Block sizes", "block, KiB", "MB/s", drawn, log_x=True, wide=True)
    remark = (
        f"Sequential writing on the used drive goes from {again[0]:.1f} MB/s in the first five "
        f"minutes (512 B blocks) to {again[-1]:.1f} MB/s in the last (1 MiB). Published: much "
        "lower at first; as sequential writing goes on, write amplification tends to 1 and the "
        "speed returns."
    )
    return Reproduced(lines, [figure], [remark])


EXPERIMENT = experiment("x25m-block-size", plan, judge)
