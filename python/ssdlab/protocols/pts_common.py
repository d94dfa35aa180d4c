"""What the tests of the SNIA PTS share: their settings, preconditioning, and how they report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ssdlab.analysis.stats import mean_of
from ssdlab.answer import Cell, Curve, Figure, Section, Table, columns
from ssdlab.engine import steady_report
from ssdlab.engine.grids import mix_text as mix_text
from ssdlab.engine.protocol import Protocol, procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, ProtocolParameter, Setup
from ssdlab.engine.steps import ROUNDS_MAX, Job, Purge, Rounds, Step, Tracked, in_round
from ssdlab.histogram import VALUES, Histogram, us

SOURCE = "SNIA Solid State Storage (SSS) Performance Test Specification 2.0.2"

BARS = 8
"""Bars of a histogram to a power of two."""
PERCENTILES = (50.0, 99.0, 99.9, 99.99, 99.999)
"""Of response times."""

Values = Mapping[str, int | float | str]


@dataclass(frozen=True)
class DriveClass:
    """What the specification sets for a kind of drive."""

    active_percent: int
    depth: int
    threads: int
    write_cache: str


SETTINGS = {"enterprise": DriveClass(100, 32, 4, "off"), "client": DriveClass(75, 16, 2, "on")}
"""PTS-E and PTS-C."""


def protocol(
    name: str,
    title: str,
    summary: str,
    plan: Callable[[Setup], Sequence[Step]],
    judge: Callable[[Records, Setup], Section],
    parameters: Sequence[ProtocolParameter],
    *,
    source: str = SOURCE,
    **more: Any,
) -> tuple[Protocol, ...]:
    """A test of the specification as the protocols of its file."""
    fields = {"active_share": active_share, "own_data": True, **more}
    return procedure(
        "pts", name, f"PTS {title}", summary, source, plan, judge, *parameters, **fields
    )


LEAST = {"rounds": 1.0}
MOST = {"active": 100.0, "compressible": 100.0}
"""Of parameters that have bounds."""


def parameters(
    *,
    depth: int | None = 0,
    threads: int | None = 0,
    rounds: int | None = ROUNDS_MAX,
    fill: float | None = 2.0,
) -> tuple[ProtocolParameter, ...]:
    """The parameters that every test has; a depth or number of threads of 0 leaves it to the
    settings, None leaves a parameter out."""
    as_set = "; 0: as the settings say"
    known: tuple[tuple[str, int | float | None, str], ...] = (
        ("active", 0, f"active range, percent of the drive{as_set}"),
        ("compressible", 0, "percent by which the data shrinks; 0: random data"),
        ("depth", depth, f"I/Os in flight of each thread{'' if depth else as_set}"),
        ("threads", threads, f"threads{'' if threads else as_set}"),
        ("rounds", rounds, "rounds at most until the drive must be steady"),
        ("seconds", 60.0, "length of a measurement"),
        ("fill", fill, "how often the active range is written sequentially before the test"),
    )
    settings = ProtocolParameter(
        "settings",
        "enterprise",
        "enterprise: active range 100 %, write cache off, depth 32, 4 threads; "
        "client: 75 %, write cache on, depth 16, 2 threads",
        tuple(SETTINGS),
    )
    asked = [
        ProtocolParameter(
            name, value, text, least=LEAST.get(name, 0.0), most=MOST.get(name, math.inf)
        )
        for name, value, text in known
        if value is not None
    ]
    return (settings, *asked)


def of(values: Values) -> DriveClass:
    """The settings that the parameters choose."""
    return SETTINGS[str(values["settings"])]


def active_share(values: Values) -> float:
    """Share of the drive that is the active range."""
    return (int(values["active"]) or of(values).active_percent) / 100


def depth_of(setup: Setup) -> int:
    """I/Os in flight of each thread."""
    return setup.count("depth") or of(setup.values).depth


def threads_of(setup: Setup) -> int:
    """Number of threads."""
    return setup.count("threads") or of(setup.values).threads


def rounds(setup: Setup) -> int:
    """Rounds at most."""
    return min(setup.count("rounds"), setup.rounds)


def precondition(setup: Setup, suffix: str = "") -> list[Step]:
    """Purge, and workload-independent preconditioning: sequential writes, twice the active range;
    once in a quick run, which leaves no block unwritten."""
    times = min(1.0, setup.number("fill")) if setup.quick else setup.number("fill")
    steps: list[Step] = [Purge(f"purge{suffix}")]
    if times:
        steps.append(setup.fill(f"fill{suffix}", times))
    return steps


def saturation(
    setup: Setup,
    key: str,
    titles: tuple[str, str],
    job: Callable[[str, float], Job],
    round_s: float,
) -> Rounds:
    """Rounds of writes, of which the last measurement decides about steady state; ``titles`` are
    those of the rounds and of what is tracked, ``job`` makes one of a key and a length."""
    last = setup.number("seconds")

    def jobs(number: int) -> list[Job]:
        work = job(in_round(number, "work"), max(last, round_s - last))
        return [replace(work, measured=False), job(in_round(number, "minute"), last)]

    title, what = titles
    return Rounds(key, title, jobs, (Tracked.of(what, "iops", "minute"),), most=rounds(setup))


def mix_job(
    setup: Setup,
    key: str,
    size: int,
    read_percent: int,
    *,
    sequential: bool = False,
    depth: int | None = None,
    threads: int | None = None,
    seconds: float | None = None,
    measured: bool = True,
    options: Mapping[str, str | int] | None = None,
) -> Job:
    """I/Os of one size and one mix; ``read_percent`` of 0 and 100 are plain writes and reads.
    Depth, threads and seconds are those of the settings and parameters unless given."""
    pure = {0: "write", 100: "read"}.get(read_percent)
    kind = pure or "rw"
    order = "SEQ" if sequential else "RND"
    return setup.job(
        key,
        f"{order} {block_text(size)}, {mix_text(read_percent)}",
        kind if sequential else f"rand{kind}",
        block_name(size),
        depth=depth_of(setup) if depth is None else depth,
        threads=threads_of(setup) if threads is None else threads,
        seconds=setup.number("seconds") if seconds is None else seconds,
        read_percent=None if pure else read_percent,
        measured=measured,
        options=options,
    )


def block_name(size: int) -> str:
    """A block size as fio and keys write it."""
    return f"{size // KIB}k" if size % KIB == 0 else str(size)


def block_text(size: int) -> str:
    """A block size for people."""
    return f"{size / KIB:g} KiB"


def sizes(setup: Setup, wanted: Sequence[int]) -> list[int]:
    """The block sizes that the target can do."""
    return [size for size in wanted if size % setup.block == 0]


def left_out(setup: Setup, wanted: Sequence[int]) -> list[str]:
    """A sentence about the block sizes that it cannot."""
    missing = [size for size in wanted if size % setup.block]
    if not missing:
        return []
    names = " and ".join(block_text(size) for size in missing)
    return [
        f"I/Os of {names} are left out: the target has logical blocks of {block_text(setup.block)}."
    ]


def rounds_of(records: Records, key: str, name: str) -> list[int]:
    """The rounds that numbers of job ``name`` are means of: those of the measurement window, or
    the last ones that there are where a test was stopped before its first full window."""
    record = records.rounds.get(key)
    if record is not None and record.count:
        wanted = list(record.window_rounds())
    else:
        wanted = list(range(1, ROUNDS_MAX + 1))
    return [n for n in wanted if in_round(n, name) in records][-5:]


def keys_of(records: Records, key: str, name: str) -> list[str]:
    """The keys of job ``name`` in these rounds."""
    return [in_round(n, name) for n in rounds_of(records, key, name)]


def window_cell(records: Records, key: str, name: str, what: str) -> Cell:
    """A quantity of job ``name`` over the measurement window."""
    return mean_of_rounds(records, what, keys_of(records, key, name))


def mean_of_rounds(records: Records, what: str, keys: Sequence[str]) -> Cell:
    """A quantity of the same job in several rounds. Mean latencies are, as rates are, the mean of
    the rounds, as in the steady state; max latencies that of all I/Os together."""
    if what != "mean":
        return records.cell(what, keys)
    each = [mean for key in keys if (mean := records.value(what, key)) is not None]
    return Cell(mean_of(each) if each else None, tuple(keys))


def histogram_curve(name: str, histogram: Histogram, colour: int = 0) -> Curve:
    """The outline of a histogram of latencies on two logarithmic axes, us and I/Os: eight bars to a
    power of two, of which an empty one stands at half an I/O, below a single one."""
    bars: Counter[int] = Counter()
    for place in np.flatnonzero(histogram.counts):
        bars[math.floor(BARS * math.log2(max(int(VALUES[place]), 1)))] += int(
            histogram.counts[place]
        )
    first, last = min(bars), max(bars)
    places = range(first, last + 2)
    return Curve(
        name,
        [2 ** (at / BARS) / 1e3 for at in places],
        [float(bars[at] or 0.5) for at in places],
        "steps",
        colour,
    )


def percentile_cells(records: Records, keys: Sequence[str]) -> list[Cell]:
    """Percentiles of several steps together, us, and the longest latency."""
    whole = records.latency(keys)
    if whole is None:
        return [Cell(None)] * (len(PERCENTILES) + 1)
    found = [*(whole.percentile_ns(percent) for percent in PERCENTILES), whole.max_ns]
    return [Cell(us(ns), tuple(keys)) for ns in found]


PERCENT_COLUMNS = columns(
    " | ".join([*(f"{percentile:g} % [us]" for percentile in PERCENTILES), "max [us]"])
)


def histogram_figure(
    title: str, histograms: Mapping[str, Histogram], keys: Sequence[str]
) -> Figure:
    """Histograms of response times on two logarithmic axes."""
    curves = [
        histogram_curve(name, histogram, place)
        for place, (name, histogram) in enumerate(histograms.items())
    ]
    return Figure(
        title,
        "response time, us",
        "I/Os",
        curves,
        log_x=True,
        log_y=True,
        wide=True,
        sources=tuple(keys),
    )


def doubts(records: Records, *keys: str) -> list[str]:
    """A sentence about each loop that did not come to a steady state: what its numbers are then."""
    rounds_records = [records.rounds[key] for key in keys if key in records.rounds]
    many = len(keys) > 1
    return [
        f"{record.title}: {steady_report.sentence(record)}"
        if many
        else steady_report.sentence(record)
        for record in rounds_records
        if not record.steady
    ]


def conditions(
    setup: Setup, *, what: Sequence[tuple[str, str]] = (), load: str | None = None
) -> Table:
    """The table of settings that the report header of the specification asks for."""
    settings = of(setup.values)
    name = {"enterprise": "enterprise (PTS-E)", "client": "client (PTS-C)"}
    data = setup.count("compressible")
    filled = setup.values.get("fill")
    share = 100 * setup.active / setup.capacity
    rows = [
        ("settings", name[setup.text("settings")]),
        ("active range", f"{share:.3g} % of the drive, {setup.active:,} bytes"),
        (
            "volatile write cache",
            f"the settings want it {settings.write_cache}; only --setup pts switches it",
        ),
        ("queue depth and threads", load or f"QD {depth_of(setup)}, TC {threads_of(setup)}"),
        ("data pattern", f"{data} % compressible" if data else "random"),
    ]
    if filled is not None:
        once = min(1.0, float(filled)) if setup.quick else float(filled)
        rows.append(
            (
                "workload-independent preconditioning",
                f"SEQ writes, {once:g} x the active range" if once else "none",
            )
        )
    rows += what
    return Table("Test conditions", columns("condition | value"), rows)
