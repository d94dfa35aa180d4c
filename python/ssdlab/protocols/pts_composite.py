"""PTS Composite Block Size Workload: the mix of sizes and places of an enterprise server
(JESD219), at 49 combinations of threads and depth."""

from __future__ import annotations

from dataclasses import replace

from ssdlab.answer import Number, Section
from ssdlab.engine.answers import number
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, Setup, bssplit
from ssdlab.engine.steps import Job, Rounds, Step
from ssdlab.protocols import pts_common as pts
from ssdlab.protocols import pts_demand as demand

KEY = "precondition"
SHARES = (
    (512, 4), (1024, 1), (1536, 1), (2048, 1), (2560, 1), (3072, 1), (3584, 1),
    (4 * KIB, 67), (8 * KIB, 10), (16 * KIB, 7), (32 * KIB, 3), (64 * KIB, 3),
)  # fmt: skip
"""Bytes and percent of the I/Os (JESD219)."""
ZONES = "zoned:50/5:30/15:20/80"
"""Half of the I/Os on the first 5 % of the range, 30 % on the next 15 %, 20 % on the rest."""
READ_PERCENT = 40
ALIGNED = 4 * KIB
"""Where I/Os begin, whatever their size (fio's own example of JESD219)."""
BUSIEST = (32, 32)
ROUND_S = 600.0
"""A round of preconditioning, whose last minute decides about steady state. Ours."""


def shares(setup: Setup) -> list[tuple[int, int]]:
    """Sizes and percentages that the target can do: smaller I/Os become its smallest."""
    return setup.in_blocks(SHARES)


def plan(setup: Setup) -> list[Step]:
    """Purge, two fills, composite writes to steady state, the grid."""
    grid = [
        _job(setup, demand.name_of(*at), at, setup.number("seconds"), READ_PERCENT)
        for at in demand.POINTS
    ]
    return [*pts.precondition(setup), _rounds(setup), *grid]


def _rounds(setup: Setup) -> Rounds:
    titles = "composite writes to steady state", f"composite writes at {demand.text(BUSIEST)}"

    def writes(key: str, seconds: float) -> Job:
        return _job(setup, key, BUSIEST, seconds, 0)

    return pts.saturation(setup, KEY, titles, writes, ROUND_S)


def _job(setup: Setup, key: str, at: tuple[int, int], seconds: float, read: int) -> Job:
    job = setup.job(
        key,
        f"composite block sizes, {pts.mix_text(read)}, {demand.text(at)}",
        "randrw" if read else "randwrite",
        SHARES[-1][0],
        threads=at[0],
        depth=at[1],
        seconds=seconds,
        read_percent=read or None,
        options={
            "bssplit": bssplit(shares(setup)),
            "blockalign": max(ALIGNED, setup.block),
            "random_distribution": ZONES,
        },
    )
    # fio takes the sizes from the split; a block size beside it would say something else.
    return replace(job, text=job.text.replace(f"bs={SHARES[-1][0]}\n", ""))


def judge(records: Records, setup: Setup) -> Section:
    """IOPS and response times of the composite load over the grid."""
    grid = demand.measured(records, {at: [demand.name_of(*at)] for at in demand.POINTS})
    split = ", ".join(f"{pts.block_text(size)} {percent} %" for size, percent in shares(setup))
    conditions = pts.conditions(
        setup,
        load="the grid; preconditioning at QD 32, TC 32",
        what=[
            ("block sizes", split),
            ("places", "50 % of I/Os on the first 5 % of the range, 30 % on 15 %, 20 % on 80 %"),
            ("mix", f"{pts.mix_text(READ_PERCENT)}; preconditioning {pts.mix_text(0)}"),
        ],
    )
    return Section(
        [*_said(grid), *pts.doubts(records, KEY), *_folded(setup)],
        _numbers(records, grid),
        [*demand.tables(grid), conditions],
        demand.figures(grid),
    )


def _said(grid: demand.Points) -> list[str]:
    if not grid:
        return ["The grid has not been measured."]
    top = max(grid, key=lambda at: grid[at].iops)
    best = grid[top]
    return [
        f"Of the composite load it does most at {demand.text(top)}: {best.iops:,.0f} IOPS "
        f"with a mean response time of {best.mean_us:,.0f} us."
    ]


def _folded(setup: Setup) -> list[str]:
    if shares(setup) == list(SHARES):
        return []
    return [
        f"The target has logical blocks of {pts.block_text(setup.block)}: "
        "I/Os of other sizes are rounded up to whole blocks."
    ]


def _numbers(records: Records, grid: demand.Points) -> list[Number]:
    numbers = []
    for at in (BUSIEST, (4, 32), (1, 1)):
        if point := grid.get(at):
            name, tail = demand.text(at), records.cell("p99.9", point.sources[0])
            numbers += demand.numbers(name, point)
            numbers.append(number(f"{name}: p99.9", tail, "us", "lower"))
    return numbers


PROTOCOLS = pts.protocol(
    "pts-composite",
    "Composite Block Size Workload",
    "the block sizes and places of an enterprise server (JESD219), as demand grows",
    plan,
    judge,
    pts.parameters(depth=None, threads=None),
    source=f"{pts.SOURCE}; JEDEC JESD219A",
)
