"""PTS Demand Intensity / Response Time Histogram test: a grid of threads and depths to steady
state, and histograms where the drive does least, most, and half as much."""

from __future__ import annotations

from dataclasses import replace

from ssdlab.answer import Number, Section
from ssdlab.engine.answers import number
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup, bytes_of
from ssdlab.engine.steps import Job, Rounds, Step, Then, Tracked, in_round
from ssdlab.protocols import pts_common as pts
from ssdlab.protocols import pts_demand as demand

KEY = "demand"
BUSIEST = (32, 32)
"""Threads and depth of the point that must be steady, and of what is written in between."""
LIMIT_US = 5000.0
"""The busiest point of the histograms answers within this on average."""
NAMES = ("min", "mid", "max")

Choice = dict[str, tuple[int, int]]


def plan(setup: Setup) -> list[Step]:
    """Purge, two fills, rounds of writes and the grid; then what its points say to measure."""
    expected = [job for name in NAMES for job in _histogram(setup, name, BUSIEST)]
    return [
        *pts.precondition(setup),
        _rounds(setup),
        Then("histograms", lambda records: _histograms(records, setup), expected),
    ]


def _rounds(setup: Setup) -> Rounds:
    tracked = Tracked.of(demand.text(BUSIEST), "iops", demand.name_of(*BUSIEST))

    def jobs(number: int) -> list[Job]:
        minutes = setup.number("prewrite_minutes")
        grid = (
            _job(setup, in_round(number, demand.name_of(*at)), at, setup.number("seconds"))
            for at in demand.POINTS
        )
        before = in_round(number, "prewrite")
        return [_job(setup, before, BUSIEST, 60 * minutes, written=True), *grid]

    return Rounds(KEY, "demand intensity", jobs, (tracked,), most=pts.rounds(setup))


def _job(
    setup: Setup, key: str, at: tuple[int, int], seconds: float, *, written: bool = False
) -> Job:
    job = pts.mix_job(
        setup,
        key,
        bytes_of(setup.text("bs")),
        0 if written else min(100, setup.count("read_percent")),
        threads=at[0],
        depth=at[1],
        seconds=seconds,
        measured=not written,
    )
    return replace(job, title=f"{job.title}, {demand.text(at)}")


def _histogram(setup: Setup, name: str, at: tuple[int, int]) -> list[Job]:
    minutes = setup.number("between_minutes")
    return [
        _job(setup, f"prewrite-{name}", BUSIEST, 60 * minutes, written=True),
        _job(setup, f"histogram-{name}", at, 60 * setup.number("histogram_minutes")),
    ]


def _grid(records: Records) -> demand.Points:
    return demand.measured(
        records, {at: pts.keys_of(records, KEY, demand.name_of(*at)) for at in demand.POINTS}
    )


def choose(grid: demand.Points) -> Choice:
    """Min: one I/O. Max: most IOPS answered within 5 ms on average, or where no point does, the
    quickest one. Mid: nearest to the middle between both, the fewest outstanding I/Os first."""
    if (1, 1) not in grid:
        return {}
    quick = {at: point for at, point in grid.items() if point.mean_us < LIMIT_US}
    if quick:
        top = max(quick, key=lambda at: (quick[at].iops, -at[0] * at[1]))
    else:
        top = min(grid, key=lambda at: grid[at].mean_us)
    middle = (grid[top].iops + grid[1, 1].iops) / 2
    among = quick or grid
    mid = min(among, key=lambda at: (abs(among[at].iops - middle), at[0] * at[1]))
    return {"min": (1, 1), "mid": mid, "max": top}


def _histograms(records: Records, setup: Setup) -> list[Step]:
    chosen = choose(_grid(records))
    return [
        job for name in NAMES if name in chosen for job in _histogram(setup, name, chosen[name])
    ]


def judge(records: Records, setup: Setup) -> Section:
    """The grid in steady state, the three points, and their response times."""
    grid = _grid(records)
    chosen = choose(grid)
    where = {name: (f"histogram-{name}", at) for name, at in chosen.items()}
    table, histograms = demand.histograms(records, where)
    bs = bytes_of(setup.text("bs"))
    read = min(100, setup.count("read_percent"))
    conditions = pts.conditions(
        setup,
        load="the grid; in between QD 32, TC 32",
        what=[("access pattern", f"RND {pts.block_text(bs)}, {pts.mix_text(read)}")],
    )
    return Section(
        [*_said(grid, chosen), *pts.doubts(records, KEY)],
        _numbers(records, grid, chosen),
        [table, *demand.tables(grid), conditions],
        [*demand.figures(grid, chosen), *histograms],
    )


def _said(grid: demand.Points, chosen: Choice) -> list[str]:
    if not chosen:
        return ["No round has been measured to its end."]
    top, one = grid[chosen["max"]], grid[1, 1]
    said = (
        f"It does most at {demand.text(chosen['max'])}: {top.iops:,.0f} IOPS with a mean response "
        f"time of {top.mean_us:,.0f} us"
    )
    if chosen["max"] == (1, 1):
        said += "; more in flight at a time only wait longer."
    else:
        said += f"; one at a time {one.iops:,.0f} IOPS in {one.mean_us:,.0f} us."
    if top.mean_us >= LIMIT_US:
        return [said, f"No point answers within {LIMIT_US / 1000:g} ms: this is the quickest."]
    return [said]


def _numbers(records: Records, grid: demand.Points, chosen: Choice) -> list[Number]:
    numbers = []
    for name, at in chosen.items():
        point, key = grid[at], f"histogram-{name}"
        numbers += demand.numbers(name, point)
        if key in records:
            numbers += [
                number(f"{name}: {what}", records.cell(what, key), "us", "lower")
                for what in ("p99.9", "p99.999")
            ]
    return numbers


PROTOCOLS = pts.protocol(
    "pts-dirth",
    "Demand Intensity and Response Time Histogram",
    "IOPS and response times for 49 combinations of threads and queue depth",
    plan,
    judge,
    (
        *pts.parameters(depth=None, threads=None),
        ProtocolParameter("bs", "4k", "size of the I/Os"),
        ProtocolParameter("read_percent", 0, "percent of reads"),
        ProtocolParameter("prewrite_minutes", 5.0, "minutes of writes before each round"),
        ProtocolParameter("between_minutes", 60.0, "minutes of writes before each histogram"),
        ProtocolParameter("histogram_minutes", 10.0, "minutes of each histogram"),
    ),
)
