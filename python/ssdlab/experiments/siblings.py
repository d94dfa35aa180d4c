"""Rated steady random writes of sizes and kin of drives to which nothing was fitted."""

from __future__ import annotations

from collections.abc import Mapping

from ssdlab.answer import Figure, family
from ssdlab.experiments import measure
from ssdlab.experiments.base import Line, Reproduced, Runs, Task, experiment, job_file
from ssdlab.rig import profile, reduced

RATED: Mapping[str, float] = {
    "micron-p400e-50": 7300,
    "micron-p400e-100": 8900,
    "micron-p400e-400": 11300,
    "intel-dc-p4500-1000": 30500,
    "intel-dc-p4500-2000": 38000,
    "intel-dc-p4500-4000": 62500,
    "samsung-pm983-960": 40000,
}
"""IOPS, 4 KiB over all of it. The P400e of 200 GB, to which its family is fitted, collects in
bursts of minutes: ``consistency`` has its mean."""
FITTED = "intel-dc-p4500-1000"
"""To its number a value of the family was fitted."""
BYTES = 400 * 10**9
"""A factor of scale divides a drive so large; others by what leaves as much of them."""
FEWEST = 128
"""Superblocks that are left at least."""
P400E_WHY = (
    "of this family only the drive of 200 GB was measured over time; that the others collect in "
    "batches as it does is not in their profiles"
)
P4500_WHY = (
    "from 1 to 2 TB what is rated grows by a quarter, with twice the dies; so the reserves of the "
    "sizes are not alike, and only the one of 1 TB was fitted"
)


def plan(factor: int) -> list[Task]:
    """One run for each drive, from its steady state."""
    return [_task(drive, factor) for drive in RATED]


def _task(drive: str, factor: int) -> Task:
    whole = profile(drive).rig().bytes("capacity") or 0
    divisor = max(1, round(factor * whole / BYTES)) if factor > 1 else 1
    smaller = reduced(drive, divisor, fewest=FEWEST)
    size = int(smaller.get("capacity", f"{whole}B").removesuffix("B"))
    job = job_file(
        "A drive in its steady state, written on.",
        "",
        {
            "write": f"rw=randwrite bs=4k iodepth=32 numjobs=4 norandommap group_reporting "
            f"io_size={size // 32 // 4096 * 4096}"
        },
    )
    return Task(drive, drive, job, smaller, interval_ms=100, prepare="steady")


def judge(runs: Runs, factor: int) -> Reproduced:
    """What each writes beside what it is rated at."""
    rates = {drive: measure.totals(runs[drive])["write"] for drive in RATED}
    lines = [
        Line(
            drive,
            "steady random writes",
            rated,
            "IOPS",
            rates[drive],
            P400E_WHY if "p400e" in drive else P4500_WHY if "p4500" in drive else "",
            kind="fitted" if drive == FITTED else "predicted",
        )
        for drive, rated in RATED.items()
    ]
    both = {"rated": list(RATED.values()), "simulated": list(rates.values())}
    bars = family(range(len(RATED)), both, "bars")
    figure = Figure("Steady random writes", "drive", "IOPS", bars, x_names=list(RATED), wide=True)
    return Reproduced(lines, [figure])


EXPERIMENT = experiment("siblings", plan, judge)
