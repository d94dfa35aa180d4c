"""For video: streams recorded and played for long, measured against a budget that must not slip."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ssdlab import units
from ssdlab.answer import Cell, Section
from ssdlab.engine.answers import Demand, Part, figure, fitness, number, percent
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records, Series
from ssdlab.engine.setup import MIB, ProtocolParameter, Setup
from ssdlab.engine.steps import Job, Purge, Step
from ssdlab.errors import InputError

RECORD, PLAY, BOTH = "record", "play", "play-and-record"
PLAYER, RECORDER = "player", "recorder"
PARTS = (
    Part(RECORD, "write", "recording alone"),
    Part(PLAY, "read", "playing alone"),
    Part(BOTH, "read", "playing beside recording", PLAYER),
    Part(BOTH, "write", "recording beside playing", RECORDER),
)
OF_BUDGET = "% of the budget"
FRAME_US = 40_000.0
"""A frame at 25 frames a second."""
HELD_S, BUFFERED_S = 0.5, 2.0
"""Seconds of video that cameras and capture programs hold back without dropping frames: small
cameras about half a second, capture programs some seconds."""


@dataclass(frozen=True)
class Shortfall:
    """How a recording falls behind its budget."""

    below: float
    """Percent of the intervals below the budget."""
    backlog: float
    """Most bytes that were waiting at once."""


def shortfall(series: Series, budget_mbps: float) -> Shortfall:
    """What a source of constant rate would have waiting before a drive that writes like this."""
    waiting = most = 0.0
    for rate in series.mbps:
        waiting = max(0.0, waiting + (budget_mbps - float(rate)) * 1e6 * series.step)
        most = max(most, waiting)
    return Shortfall(100 * float((series.mbps < budget_mbps).mean()), most)


def plan(setup: Setup) -> list[Step]:
    """Record until everything is full, play, then play and record at once."""
    streams = setup.count("streams")
    part = setup.active // max(1, streams) // MIB * MIB
    if not 1 <= streams <= 256 or part < MIB:
        raise InputError(
            f"--param streams={streams}: expected 1 to 256 streams with at least 1 MiB of the "
            "target for each"
        )
    return [
        Purge(),
        _streams(setup, RECORD, "record", "write", part, None),
        _streams(setup, PLAY, "play", "read", part, setup.number("seconds")),
        setup.together(
            BOTH,
            f"play {streams} streams at their rate and record {streams} more",
            [
                _streams(setup, PLAYER, "play", "read", part, setup.number("seconds"), True),
                _streams(setup, RECORDER, "record", "write", part, setup.number("seconds"), True),
            ],
        ),
    ]


def _streams(
    setup: Setup, key: str, verb: str, rw: str, part: int, seconds: float | None, held: bool = False
) -> Job:
    """Streams, each in a part of its own; ``held`` to their rate, or as fast as they go."""
    streams = setup.count("streams")
    rate = {"rate": max(1, round(1e6 * setup.number("stream_mbps")))} if held else {}
    return setup.job(
        key,
        f"{verb} {streams} streams" + (" until the drive is full" if seconds is None else ""),
        rw,
        "1m",
        depth=4,
        threads=streams,
        seconds=seconds,
        amount=int(part * setup.number("times")) if seconds is None else None,
        region=(0, part),
        options={"offset_increment": part, **rate},
    )


def judge(records: Records, setup: Setup) -> Section:
    """Fit for so many streams or not; how many it would carry."""
    budget = setup.count("streams") * setup.number("stream_mbps")
    recorded = records.series(RECORD, "write")
    beside = records.series(BOTH, "write", RECORDER)
    falls = {
        key: None if series is None else shortfall(series, budget)
        for key, series in ((RECORD, recorded), (BOTH, beside))
    }
    purpose = (
        f"{setup.count('streams')} streams of video of {setup.number('stream_mbps'):g} MB/s each"
    )
    said = []
    if recorded is not None:
        lasting = _lasting(recorded)
        said.append(
            f"Recording until it is full the drive never stays below {units.speed(lasting)} for "
            f"long, which is {int(lasting // setup.number('stream_mbps'))} such streams."
        )
    figures = [
        figure(
            title,
            "time, s",
            "MB/s",
            {
                "all streams": zip(series.time, series.mbps, strict=True),
                "budget": [(0.0, budget), (series.time[-1], budget)],
            },
            style="line",
            group="All streams together against their budget",
            from_steps=(key,),
        )
        for key, title, series in (
            (RECORD, "Recording until it is full", recorded),
            (PLAY, "Playing", records.series(PLAY, "read")),
            (BOTH, "Playing beside recording", records.series(BOTH, "read", PLAYER)),
            (BOTH, "Recording beside playing", beside),
        )
        if series is not None
    ]
    whole = falls[RECORD]
    below = Cell(None if whole is None else whole.below, (RECORD,))
    asked = _demands(records, budget, falls, recorded)
    section = fitness(purpose, asked, records, PARTS, said, figures)
    late = number("intervals below the budget", below, "%", "lower")
    return replace(section, numbers=[*section.numbers, late])


def _lasting(series: Series) -> float:
    """The lowest mean over a tenth of the run, at least ten seconds."""
    _, _, rates = series.records(max(10.0, float(series.time[-1]) / 10))
    return float(rates.min()) if len(rates) else float(series.mbps.mean())


def _demands(
    records: Records, budget: float, falls: dict[str, Shortfall | None], recorded: Series | None
) -> list[Demand]:
    wanted = Cell(budget)
    fall = falls[RECORD]
    behind = fall.backlog / (budget * 1e6) if fall and budget else None
    last = None if recorded is None else recorded.mbps[-max(1, len(recorded.mbps) // 4) :].mean()
    return [
        Demand(
            "recording falls behind by at most",
            Cell(behind, (RECORD,)),
            "s",
            HELD_S,
            BUFFERED_S,
            "cameras hold back about half a second and capture programs some seconds; beyond that "
            "frames are lost",
        ),
        Demand(
            "recording into the last quarter of the drive reaches",
            percent(Cell(None if last is None else float(last), (RECORD,)), wanted),
            OF_BUDGET,
            120,
            100,
            "a fast cache that runs full ends a long recording",
        ),
        Demand(
            "playing alone reaches",
            percent(records.cell("mbps", PLAY, "read"), wanted),
            OF_BUDGET,
            150,
            100,
            "less stutters; half as much again leaves room to wind",
        ),
        Demand(
            "recording beside playing, both held to the rate of the streams, reaches",
            percent(records.cell("mbps", BOTH, "write", RECORDER), wanted),
            OF_BUDGET,
            99,
            97,
            "what is missing are lost frames; editing while recording is an ordinary day",
        ),
        Demand(
            "999 of 1000 blocks of the streams that are played come within",
            records.cell("p99.9", PLAY, "read"),
            "us",
            FRAME_US,
            10 * FRAME_US,
            "a frame lasts 40 ms at 25 a second; players read about ten ahead",
        ),
    ]


PROTOCOLS = procedure(
    "preset",
    "for-video",
    "Fitness for video",
    "whether several streams are recorded and played for long without losing frames",
    "streams as cameras make them; limits are explained beside them",
    plan,
    judge,
    ProtocolParameter("streams", 4, "streams at once"),
    ProtocolParameter(
        "stream_mbps",
        100.0,
        "MB/s of each; an editing codec at 4K has about 90",
        least=0.01,
    ),
    ProtocolParameter("times", 1.0, "how often the drive is recorded full", least=0.01),
    ProtocolParameter("seconds", 120.0, "time of playing"),
    own_data=True,
)
