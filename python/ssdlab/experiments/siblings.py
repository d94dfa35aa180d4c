"""Rated steady random writes of sizes and kin of drives to which nothing was fitted."""

from __future__ import annotations

from collections.abc import Mapping

from ssdlab.answer import Figure, family
from ssdlab.experiments import measure
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.results import Result
from ssdlab.rig import profile, reduced

RATED: Mapping[str, float] = {
    "micron-p400e-50": 7300,
    "micron-p400e-100": 8900,
    "micron-p400e-200": 9500,
    "micron-p400e-400": 11300,
    "intel-dc-p4500-1000": 30500,
    "intel-dc-p4500-2000": 38000,
    "intel-dc-p4500-4000": 62500,
    "samsung-pm983-960": 40000,
}
"""IOPS, 4 KiB over all of it."""
FITTED = ("micron-p400e-200", "intel-dc-p4500-2000")
"""To their numbers a value of the family was fitted."""
BYTES = 400 * 10**9
"""A factor of scale divides a drive so large; others by what leaves as much of them."""
FEWEST = 128
"""Superblocks that are left at least."""
P4500_WHY = (
    "from 1 to 2 TB what is rated grows by a quarter, with twice the dies, and what may be written "
    "over the life, 1.38 and 1.89 PB (Lenovo's guide), by 1.37; so the 1 TB model amplifies less, "
    "the reserves of the sizes are not alike, and only that of 2 TB was fitted"
)


def plan(factor: int) -> list[Task]:
    """One run for each drive, from its steady state."""
    return [_task(drive, factor) for drive in RATED]


def _task(drive: str, factor: int) -> Task:
    rig = profile(drive).rig()
    whole = rig.bytes("capacity") or 0
    batches = rig.get("ftl.gc.pace") == "periodic"
    # A steady state that is written takes longer than one that is drawn.
    divisor = max(1, round((1 + batches) * factor * whole / BYTES)) if factor > 1 else 1
    smaller = reduced(drive, divisor, fewest=FEWEST)
    size = int(smaller.get("capacity", f"{whole}B").removesuffix("B"))
    written = size // (2 if batches else 32)
    job = job_file(
        "A drive in its steady state, written on.",
        "",
        {
            "write": f"rw=randwrite bs=4k iodepth=32 numjobs=4 norandommap group_reporting "
            f"io_size={written // 4096 * 4096}"
        },
    )
    return Task(drive, drive, job, smaller, interval_ms=100, prepare="steady")


def judge(runs: Runs, factor: int) -> Reproduced:
    """What each writes beside what it is rated at."""
    rates = {drive: _rate(runs[drive]) for drive in RATED}
    lines = [
        Line(
            drive,
            "steady random writes",
            rated,
            "IOPS",
            rates[drive],
            P4500_WHY if "p4500" in drive else "",
            kind="fitted" if drive in FITTED else "predicted",
        )
        for drive, rated in RATED.items()
    ]
    both = {"rated": list(RATED.values()), "simulated": list(rates.values())}
    bars = family(range(len(RATED)), both, "bars")
    figure = Figure("Steady random writes", "drive", "IOPS", bars, x_names=list(RATED), wide=True)
    return Reproduced(lines, [figure])


def _rate(result: Result) -> float:
    """Writes a second."""
    batches = measure.over_batches(result)
    return measure.totals(result)["write"] if batches is None else batches.iops


EXPERIMENT = experiment("siblings", plan, judge)
