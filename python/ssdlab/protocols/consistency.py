"""I/O consistency: random writes second by second on a filled drive, and its dips."""

from __future__ import annotations

from ssdlab import units
from ssdlab.analysis import consistency
from ssdlab.analysis.measurement import NEAR
from ssdlab.answer import Cell, Number, Section, Table, columns
from ssdlab.engine.answers import figure, number, too_little
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records, time_us
from ssdlab.engine.setup import ProtocolParameter, Setup
from ssdlab.engine.steps import Purge, Step

KEY = "random-write"
LATENCIES = ("mean", "p50", "p99", "p99.9", "p99.99", "max")
LATE_SHARE = 0.7
"""The article's second and third view begin at 1400 s of 2000 s."""


def plan(setup: Setup) -> list[Step]:
    """Purge, fill, random writes over everything."""
    title = "4 KiB random writes over the whole range"
    return [Purge(), setup.fill(), setup.timed(KEY, title, "randwrite", setup.text("bs"))]


def judge(records: Records, setup: Setup) -> Section:
    """Three views of the series, its numbers from the late part, dips by autocorrelation."""
    if KEY not in records:
        return Section(["The random writes have not been measured."])
    series = records.series(KEY, "write")
    if series is None:
        return Section(["The random writes have left no series."])
    time, iops = series.time, series.iops
    # Rates and latencies are of the same part.
    begin, latencies = records.latency_from(
        KEY, LATE_SHARE * setup.seconds(setup.number("seconds")), "write"
    )
    late = time > begin + NEAR
    if late.sum() < 2:
        return Section(["The series is too short to say anything of the drive's consistency."])
    found = consistency.measure(iops[late])
    step = series.step
    dips = found.periodicity
    # Drives that were made smaller have shorter intervals.
    point = "second" if abs(step - 1) < NEAR else "interval"
    length = "" if point == "second" else f" of {units.duration(step)}"
    numbers = [
        Number(name, value, unit, better, (KEY,))  # type: ignore[arg-type]
        for name, value, unit, better in (
            ("mean", found.mean, "IOPS", "higher"),
            (f"slowest {point}", found.min, "IOPS", "higher"),
            (f"fastest {point}", found.max, "IOPS", ""),
            ("spread (max - min) / max", 100 * found.spread, "%", "lower"),
            ("coefficient of variation", 100 * found.cv, "%", "lower"),
            (f"p1 {point}", found.p1, "IOPS", "higher"),
            (f"p99 {point}", found.p99, "IOPS", ""),
            (f"{point}s below half of the mean", 100 * found.share_below_half, "%", "lower"),
            ("period of the dips", dips.period * step if dips else None, "s", ""),
            ("width of the dips", dips.width * step if dips else None, "s", ""),
            *((f"{one} latency", time_us(latencies, one), "us", "lower") for one in LATENCIES),
        )
    ]
    rows = [(one.name, Cell(one.value, (KEY,)), one.unit) for one in numbers]
    views = [
        figure(
            title,
            "time, s",
            "IOPS",
            {"IOPS": zip(time[chosen], iops[chosen], strict=True)},
            style="dots",
            log_y=log,
            from_steps=(KEY,),
        )
        for title, chosen, log in (
            ("Whole run", time > 0, True),
            ("Late part", late, True),
            ("Late part, linear", late, False),
        )
    ]
    said = (
        f"In the late part of the run the slowest {point}{length} reaches {found.min:,.0f} IOPS "
        f"and the fastest {found.max:,.0f}, with a mean of {found.mean:,.0f}: "
        f"a spread of {units.percent(found.spread)}."
    )
    said += too_little(records.passes(KEY, setup.active))
    written = Cell(records.written(KEY) / setup.active, (KEY,))
    times = number("written / active range", written, "x")
    again = (
        f"The speed repeats every {units.number(dips.period * step)} s, in "
        f"{'dips' if dips.dips else 'peaks'} of {units.number(dips.width * step)} s."
        if dips
        else "No dip repeats in time."
    )
    table = Table("Late part", columns("quantity | value | unit"), rows)
    return Section([said, again], [*numbers, times], [table], views)


PROTOCOLS = procedure(
    "article",
    "consistency",
    "I/O consistency",
    "how evenly a filled drive writes from one second to the next, and whether it dips",
    "AnandTech, The Intel SSD DC S3700 review, 2012",
    plan,
    judge,
    ProtocolParameter("bs", "4k", "size of the writes"),
    ProtocolParameter("depth", 32, "writes in flight"),
    ProtocolParameter("seconds", 2000.0, "length of the run"),
)
