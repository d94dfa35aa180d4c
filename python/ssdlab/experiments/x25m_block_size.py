"""Block sizes on the Intel X25-M: sequential and random reads, sequential writes new and used."""

from __future__ import annotations

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
from ssdlab.experiments.x25m_random_write import ARTICLE, DRIVE
from ssdlab.results import Result
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


def _mb(quantity: str, value: float | None) -> Published:
    return Published(DRIVE, quantity, value, "MB/s")


TOP_RAW = _mb("sequential read, highest, without a partition", 270.0)
TOP_PARTITION = _mb("sequential read, highest, with a partition", 260.0)
TOP_AT = Published(DRIVE, "sequential read, block from which 95 % of it are reached", 64.0, "KiB")
RANDOM = Published(DRIVE, "random / sequential read at 1 MiB, without a partition", 1.0, "")
NEW = Published(DRIVE, "sequential write, new, at 128 KiB", 100.0, "MB/s", "fitted")
USED = _mb("sequential write, used, at 128 KiB (much lower at first)", None)


def label(size: int) -> str:
    """A block size as fio reads and people write it."""
    return f"{size}" if size < 1024 else f"{size // 1024}k" if size < 2**20 else "1m"


def _head(words: str) -> str:
    return f"""\
; {words}
[global]
ioengine=libaio
direct=1
size=100%
iodepth=4
"""


def used_job(factor: int) -> str:
    """The sweep on a used drive: reads in order, reads at random, writes in order."""
    step = STEP_S // factor
    text = _head("Block sizes on a used drive. Begin with a drive that has been erased.")
    text += f"""
[use]
rw=randwrite
bs=32k
norandommap
time_based
runtime={USING_S // factor}
"""
    for name, rw in (("read", "read"), ("randread", "randread\nnorandommap"), ("write", "write")):
        for size in SIZES:
            text += f"""
[{name}-{label(size)}]
stonewall
rw={rw}
bs={label(size)}
time_based
runtime={step}
"""
    return text


def new_job(size: int, factor: int) -> str:
    """Writing in order on a new drive."""
    head = _head("Sequential writes on a new drive. Begin with a drive that has been erased.")
    return f"""{head}
[write]
rw=write
bs={label(size)}
time_based
runtime={STEP_S // factor}
"""


def plan(factor: int) -> list[Task]:
    """One long run on the used drive, and one on a new drive for each block size."""
    own = reduced(DRIVE, factor)
    used = Task("used", DRIVE, used_job(factor), own, cost=(USING_S * 3500 + 36 * 3e6) / factor)
    new = [
        Task(f"new-{label(size)}", DRIVE, new_job(size, factor), own, cost=STEP_S * 3e4 / factor)
        for size in SIZES
    ]
    return [used, *new]


def judge(runs: Runs, factor: int) -> Findings:
    """The numbers of the text and the four curves."""
    used = runs["used"]
    read = _sweep(used, "read")
    random = _sweep(used, "randread")
    again = _sweep(used, "write")
    new = [measure.mean_rate(runs[f"new-{label(size)}"], "write") or 0.0 for size in SIZES]
    top = max(read)
    reached = next(size for size, rate in zip(SIZES, read, strict=True) if rate >= 0.95 * top)
    at_128k = SIZES.index(128 * 1024)
    lines = [
        Line(TOP_RAW, top),
        Line(TOP_PARTITION, None, NO_FILE_SYSTEM),
        Line(TOP_AT, reached / 1024, SCATTERED),
        Line(RANDOM, random[-1] / read[-1]),
        Line(NEW, new[at_128k]),
        Line(USED, again[at_128k]),
    ]
    x = [size / 1024 for size in SIZES]
    curves = [
        Curve(name, x, rates, "line", number)
        for number, (name, rates) in enumerate(
            (
                ("sequential read", read),
                ("random read, used", random),
                ("sequential write, new", new),
                ("sequential write, used", again),
            )
        )
    ]
    rings = Curve("published", [64.0, 128.0], [270.0, 100.0], "published")
    figure = Figure("Block sizes", "block, KiB", "MB/s", [*curves, rings], log_x=True, wide=True)
    first, last = again[0], again[-1]
    remark = (
        f"Sequential writing on the used drive goes from {first:.1f} MB/s in the first five "
        "minutes "
        f"(512 B blocks) to {last:.1f} MB/s in the last (1 MiB). Published: much lower at first; "
        "as sequential writing goes on, write amplification tends to 1 and the speed returns."
    )
    return Findings(lines, [figure], [remark])


def _sweep(result: Result, name: str) -> list[float]:
    return [measure.mean_rate(result, f"{name}-{label(size)}") or 0.0 for size in SIZES]


EXPERIMENT = Experiment(
    name="x25m-block-size",
    title="Intel X25-M: block sizes",
    article=ARTICLE,
    procedure="Blocks of 512 B to 1 MiB at depth 4, five minutes each: sequential read, random "
    "read and sequential write on a drive used by 18 hours of 32 KiB random writes, and sequential "
    "write on a new drive. Aligned to the block; without a partition.",
    scaling="capacity (blocks per plane) and run time",
    factors={"quick": 100, "reduced": 20, "full": 1},
    plan=plan,
    judge=judge,
)
