"""Sustained fill: everything written in order; how large the fast cache is, what follows it."""

from __future__ import annotations

from ssdlab import units
from ssdlab.analysis import changepoints
from ssdlab.answer import Figure, Section, Table, columns
from ssdlab.engine.answers import Rows, cell, charts, curve, number
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.readings import Readings, Series, percent
from ssdlab.engine.records import Records
from ssdlab.engine.setup import Parameter, Setup
from ssdlab.engine.steps import Idle, Purge, Step

FILL, AGAIN = "fill", "again"
FEWEST = 8
"""Intervals below which nothing is said about stages."""
STAGES_MAX = 12
"""More stages than this are noise to a reader; the largest falls say it all."""


def plan(setup: Setup) -> list[Step]:
    """Purge, write everything in order, rest, write a little more."""
    return [
        Purge(),
        setup.job(
            FILL,
            "write everything in order",
            "write",
            setup.text("bs"),
            depth=setup.count("depth"),
            amount=int(setup.active * setup.number("times")),
            compressible=setup.count("compressible"),
        ),
        Idle("rest", setup.seconds(setup.number("rest_s")), "leave it alone"),
        setup.job(
            AGAIN,
            "write sequentially again after the rest",
            "write",
            setup.text("bs"),
            depth=setup.count("depth"),
            seconds=setup.number("again_s"),
            compressible=setup.count("compressible"),
        ),
    ]


def judge(records: Records, setup: Setup) -> Section:
    """Stages of speed by change points; the first lasting fall is the end of the cache."""
    found = Readings(records)
    series, again = found.series(FILL, "write"), found.series(AGAIN, "write")
    if series is None:
        return Section(["Filling the drive has not been measured yet."])
    stages = changepoints.stages(series.mbps) if len(series.mbps) >= FEWEST else []
    end = changepoints.fall(stages)
    cached = None if end is None else float(series.written[end - 1])
    before = None if end is None else float(series.mbps[:end].mean())
    after = None if end is None else float(series.mbps[end:].mean())
    whole = found.mbps(FILL, "write")
    lowest = float(series.mbps.min())
    sources = (FILL,)
    numbers = [
        number("whole fill", whole, "MB/s", "higher", FILL),
        number(
            "written at full speed", None if cached is None else cached / 1e9, "GB", "higher", FILL
        ),
        number("speed until then", before, "MB/s", "higher", FILL),
        number("speed after that", after, "MB/s", "higher", FILL),
        number("slowest interval", lowest, "MB/s", "higher", FILL),
        number("longest write", found.max_us(FILL, "write"), "us", "lower", FILL),
        number("after the rest", found.mbps(AGAIN, "write"), "MB/s", "higher", AGAIN),
    ]
    rows: Rows = []
    if len(stages) <= STAGES_MAX:
        for place, one in enumerate(stages, start=1):
            begin = float(series.written[one.start - 1]) if one.start else 0.0
            rows.append(
                [
                    f"{place}",
                    cell(begin / 1e9, FILL),
                    cell(float(series.written[one.end - 1]) / 1e9, FILL),
                    cell(one.length * series.step, FILL),
                    cell(one.level, FILL),
                ]
            )
    heads = columns("stage, from:GB, to:GB, time:s, speed:MB/s")
    tables = [Table("Stages of the fill", heads, rows)] if rows else []
    figures = _figures(series, again, stages, sources)
    return Section(
        _said(setup, found, series, (cached, before, after), again), numbers, tables, figures
    )


def _figures(
    series: Series,
    again: Series | None,
    stages: list[changepoints.Stage],
    sources: tuple[str, ...],
) -> list[Figure]:
    gigabytes = series.written / 1e9
    steps: list[tuple[float, float | None]] = []
    for one in stages if len(stages) <= STAGES_MAX else []:
        begin = float(gigabytes[one.start - 1]) if one.start else 0.0
        steps += [(begin, one.level), (float(gigabytes[one.end - 1]), one.level)]
    shown = [
        Figure(
            "Speed against what has been written",
            "written, GB",
            "MB/s",
            [
                curve("each interval", zip(gigabytes, series.mbps, strict=True), 0, "dots"),
                curve("stages", steps, 1, "line"),
            ],
            wide=True,
            sources=sources,
        ),
        Figure(
            "Speed over time",
            "time, s",
            "MB/s",
            [
                curve("fill", zip(series.time, series.mbps, strict=True), 0, "line"),
            ],
            wide=True,
            sources=sources,
        ),
    ]
    if again is not None:
        shown.append(
            Figure(
                "Speed after the rest",
                "time, s",
                "MB/s",
                [curve("again", zip(again.time, again.mbps, strict=True), 0, "line")],
                wide=True,
                sources=(AGAIN,),
            )
        )
    return charts(*shown)


def _said(
    setup: Setup,
    found: Readings,
    series: Series,
    cache: tuple[float | None, float | None, float | None],
    again: Series | None,
) -> list[str]:
    cached, before, after = cache
    total = float(series.written[-1])
    if len(series.mbps) < FEWEST:
        said = [
            f"The drive took {units.size_text(total)} in order at {units.speed(found.mbps(FILL))}; "
            "that was too quick to see stages of speed in it."
        ]
    elif cached is None:
        said = [
            f"The drive takes {units.size_text(total)} in order at {units.speed(found.mbps(FILL))} "
            "from begin to end: no cache that runs full is seen."
        ]
    else:
        share = percent(cached, total)
        said = [
            f"The drive takes the first {units.size_text(cached)} ({share:.0f} % of what was "
            "written) "
            f"at {units.speed(before)} and the rest at {units.speed(after)}: "
            f"{units.times((before or 0) / after if after else None)} slower once its fast "
            "cache is full."
        ]
        stages = changepoints.stages(series.mbps)
        tail = stages[-1].level
        if after and abs(tail - after) > changepoints.CHANGE_MIN * after:
            said.append(f"At the very end it writes at {units.speed(tail)}.")
    if again is not None:
        first = float(again.mbps[: max(1, len(again.mbps) // 4)].mean())
        rest = units.duration(setup.seconds(setup.number("rest_s")))
        end_speed = after if after is not None else found.mbps(FILL)
        back = before is not None and end_speed is not None and first > (before + end_speed) / 2
        said.append(
            f"After {rest} of rest it begins at {units.speed(first)}"
            + (": the cache has been emptied in the meantime." if back else ".")
        )
    return said


PROTOCOLS = (
    Protocol(
        name="sustained-fill",
        title="Sustained fill",
        summary="how much a drive writes at full speed before its fast cache is full, and then",
        source="the fill test of reviews of drives with an SLC cache",
        group="everyday",
        plan=plan,
        judge=judge,
        parameters=(
            Parameter("bs", "128k", "block size"),
            Parameter("depth", 32, "writes in flight"),
            Parameter("times", 1.0, "how often everything is written"),
            Parameter("rest_s", 300.0, "seconds of rest before the last writing"),
            Parameter("again_s", 60.0, "seconds of the last writing"),
            Parameter("compressible", 0, "percent by which the data shrinks"),
        ),
    ),
)
