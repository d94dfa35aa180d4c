"""Sustained fill: everything written in order; how large the fast cache is, what follows it."""

from __future__ import annotations

from ssdlab import units
from ssdlab.analysis import changepoints
from ssdlab.answer import Cell, Cells, Figure, Section, Table, columns
from ssdlab.engine.answers import charts, figure, number
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records, Series
from ssdlab.engine.setup import ProtocolParameter, Setup
from ssdlab.engine.steps import Idle, Purge, Step

FILL, AGAIN = "fill", "again"
FEWEST = 8
"""Intervals below which nothing is said about stages."""
STAGES_MAX = 12
"""More stages than this are noise to a reader; the largest falls say it all."""
WANDERS = (
    "The speed rises about as much as it falls: these may be no stages, but a speed that varies."
)


def plan(setup: Setup) -> list[Step]:
    """Purge, write everything in order, rest, write a little more."""
    return [
        Purge(),
        setup.timed(
            FILL,
            "write everything sequentially",
            "write",
            setup.text("bs"),
            amount=int(setup.active * setup.number("times")),
        ),
        Idle("rest", "leave it alone", seconds=setup.seconds(setup.number("rest_s"))),
        setup.timed(
            AGAIN,
            "write sequentially again after the rest",
            "write",
            setup.text("bs"),
            seconds=setup.number("again_s"),
        ),
    ]


def judge(records: Records, setup: Setup) -> Section:
    """Stages of speed by change points; the first lasting fall is the end of the cache."""
    series, again = records.series(FILL, "write"), records.series(AGAIN, "write")
    if series is None:
        return Section(["Filling the drive has not been measured yet."])
    stages = changepoints.stages(series.mbps) if len(series.mbps) >= FEWEST else []
    end = changepoints.fall(stages)
    cached = None if end is None else float(series.written[end - 1])
    before = None if end is None else float(series.mbps[:end].mean())
    after = None if end is None else float(series.mbps[end:].mean())

    def of_fill(value: float | None) -> Cell:
        return Cell(value, (FILL,))

    full = None if cached is None else cached / 1e9
    numbers = [
        number("whole fill", records.cell("mbps", FILL, "write"), "MB/s", "higher"),
        number("written at full speed", of_fill(full), "GB", "higher"),
        number("speed until then", of_fill(before), "MB/s", "higher"),
        number("speed after that", of_fill(after), "MB/s", "higher"),
        number("slowest interval", of_fill(float(series.mbps.min())), "MB/s", "higher"),
        number("longest write", records.cell("max", FILL, "write"), "us", "lower"),
        number("begin after the rest", Cell(_begin(again)[0], (AGAIN,)), "MB/s", "higher"),
        number("mean after the rest", records.cell("mbps", AGAIN, "write"), "MB/s", "higher"),
    ]
    gigabytes = series.written / 1e9
    shown = [
        (
            float(gigabytes[stage.start - 1]) if stage.start else 0.0,
            float(gigabytes[stage.end - 1]),
            stage.length * series.step,
            stage.level,
        )
        for stage in (stages if len(stages) <= STAGES_MAX else [])
    ]
    rows: list[Cells] = [
        [str(place), *map(of_fill, one)] for place, one in enumerate(shown, start=1)
    ]
    heads = columns("stage | from [GB] | to [GB] | time [s] | speed [MB/s]")
    note = WANDERS if changepoints.wander(stages) else ""
    tables = [Table("Stages of the fill", heads, rows, note)] if rows else []
    levels = [(at, level) for begin, end, _, level in shown for at in (begin, end)]
    figures = charts(
        figure(
            "Speed against what has been written",
            "written, GB",
            "MB/s",
            {"each interval": zip(gigabytes, series.mbps, strict=True), "stages": levels},
            style={"each interval": "dots", "stages": "line"},
            from_steps=(FILL,),
        ),
        _over_time("Speed over time", "fill", FILL, series),
        *([_over_time("Speed after the rest", "again", AGAIN, again)] if again else []),
    )
    said = _said(setup, records, series, (cached, before, after), again)
    return Section(said, numbers, tables, figures)


def _over_time(title: str, name: str, key: str, series: Series) -> Figure:
    points = zip(series.time, series.mbps, strict=True)
    return figure(title, "time, s", "MB/s", {name: points}, style="line", from_steps=(key,))


def _said(
    setup: Setup,
    records: Records,
    series: Series,
    cache: tuple[float | None, float | None, float | None],
    again: Series | None,
) -> list[str]:
    cached, before, after = cache
    total = float(series.written[-1])
    whole = units.speed(records.mbps(FILL))
    if len(series.mbps) < FEWEST:
        said = [
            f"The drive took {units.size_text(total)} sequentially at {whole}; "
            "that was too quick to see stages of speed in it."
        ]
    elif cached is None:
        said = [
            f"The drive takes {units.size_text(total)} sequentially at {whole} "
            "from start to end: no cache that runs full is seen."
        ]
    else:
        share = 100 * cached / total
        said = [
            f"The drive takes the first {units.size_text(cached)} ({share:.0f} % of what was "
            "written) "
            f"at {units.speed(before)} and the rest at {units.speed(after)}: "
            f"{units.times((before or 0) / after if after else None)} slower once its fast "
            "cache is full."
        ]
        stages = changepoints.stages(series.mbps)
        if changepoints.wander(stages):
            said.append(
                "The speed also rises about as much as it falls, so it may vary by itself rather "
                "than by a cache."
            )
        tail = stages[-1].level
        if after and abs(tail - after) > changepoints.CHANGE_MIN * after:
            said.append(f"At the very end it writes at {units.speed(tail)}.")
    if again is not None:
        first, end = _begin(again)
        rest = units.duration(setup.seconds(setup.number("rest_s")))
        end_speed = after if after is not None else records.mbps(FILL)
        fast = None if before is None or end_speed is None else (before + end_speed) / 2
        back = first is not None and fast is not None and first > fast
        until, length = "", units.duration(float(again.time[-1]))
        if end is not None:
            until = f" for {units.size_text(float(again.written[end - 1]))}"
        said.append(
            f"After {rest} of rest it begins at {units.speed(first)}{until}"
            + (": the cache has been emptied in the meantime." if back else ".")
            + f" Over {length} it writes at {units.speed(records.mbps(AGAIN))}."
        )
    return said


def _begin(again: Series | None) -> tuple[float | None, int | None]:
    """The speed before the first lasting fall, and the interval in which that is; without one the
    speed of all, and None."""
    if again is None:
        return None, None
    enough = len(again.mbps) >= FEWEST
    end = changepoints.fall(changepoints.stages(again.mbps)) if enough else None
    return float(again.mbps[:end].mean()), end


PROTOCOLS = procedure(
    "everyday",
    "sustained-fill",
    "Sustained fill",
    "how much a drive writes at full speed before its fast cache is full, and then",
    "the fill test of reviews of drives with an SLC cache",
    plan,
    judge,
    ProtocolParameter("bs", "128k", "block size"),
    ProtocolParameter("depth", 32, "writes in flight"),
    ProtocolParameter("times", 1.0, "how often everything is written", least=0.01),
    ProtocolParameter("rest_s", 300.0, "seconds of rest before the last writing"),
    ProtocolParameter("again_s", 60.0, "seconds of the last writing"),
)
