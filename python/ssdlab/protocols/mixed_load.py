"""Mixed load: how long reads take beside writes of more and more of the drive's writing speed."""

from __future__ import annotations

from collections.abc import Sequence

from ssdlab import units
from ssdlab.answer import Cell, Section, Verdict
from ssdlab.engine.answers import (
    Part,
    charts,
    distribution,
    figure,
    number,
    ratio,
    undecided,
    work_table,
)
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup
from ssdlab.engine.steps import Job, Step, Then

ALONE, MOST = "reads-alone", "writes-alone"
READER, WRITER = "reader", "writer"
GUESS_IOPS = 10_000.0
"""What the estimate of the run takes for the writing speed; it does not change the time."""
NOTICED = 1.5
"""A latency that grows by less than this factor is called about the same."""
NOTICED_LESS = 1.1
"""Reads beside writes whose mean is shorter by more than this factor speak against the baseline."""


def plan(setup: Setup) -> list[Step]:
    """Fill, write everything once at random; reads alone, writes alone, then both."""
    return [
        setup.fill(),
        setup.used(setup.text("write_bs")),
        _reads(setup, ALONE),
        _writes(setup, MOST, None),
        Then(
            "beside",
            lambda records: _beside(setup, records.iops(MOST, "write") or GUESS_IOPS),
            expected=_beside(setup, GUESS_IOPS),
        ),
    ]


def _shares(setup: Setup) -> list[int]:
    return setup.counts("shares", most=100)


def _key(share: int) -> str:
    return f"beside-{share}"


def _beside(setup: Setup, most: float) -> Sequence[Step]:
    return [
        setup.together(
            _key(share),
            f"reads beside writes at {share} % of their full speed",
            [
                _reads(setup, _key(share), READER),
                _writes(setup, _key(share), None if share == 100 else most * share / 100),
            ],
        )
        for share in _shares(setup)
    ]


def _reads(setup: Setup, key: str, name: str = READER) -> Job:
    return setup.timed(
        key,
        "random reads",
        "randread",
        setup.text("read_bs"),
        depth=setup.count("read_depth"),
        name=name,
    )


def _writes(setup: Setup, key: str, rate: float | None) -> Job:
    return setup.timed(
        key,
        "random writes as fast as they go",
        "randwrite",
        setup.text("write_bs"),
        depth=setup.count("write_depth"),
        name=WRITER,
        options=None if rate is None else {"rate_iops": max(1, round(rate))},
    )


def judge(records: Records, setup: Setup) -> Section:
    """Read latency against the share of the writing speed."""
    steps = [(0, ALONE), *((share, _key(share)) for share in _shares(setup))]
    most = records.cell("iops", MOST, "write")
    latencies = {
        name: {share: records.cell(what, key, "read") for share, key in steps}
        for name, what in (("mean", "mean"), ("median", "p50"), ("p99", "p99"), ("p99.9", "p99.9"))
    }
    numbers = [
        number("writes alone", most, "IOPS", "higher"),
        *(
            number(f"read p99 beside {share} % writes", p99, "us", "lower")
            for share, p99 in latencies["p99"].items()
        ),
    ]
    figures = charts(
        figure(
            "Read latency beside writes",
            "writes, % of their full speed",
            "read latency, us",
            {name: of.items() for name, of in latencies.items()},
            log_y=True,
        ),
        distribution(
            "Read latency distribution (CCDF)",
            {
                f"beside {share} % writes" if share else "alone": records.latency(key, "read")
                for share, key in steps
            },
            (key for _, key in steps),
        ),
    )
    table = work_table(
        records,
        [Part(key, None, f"{share} %") for share, key in steps],
        "iops/write iops/read mean/read p50/read p99/read p99.9/read max/read",
        title="Reads beside writes",
        corner="writes asked for",
    )
    means, tails = (
        {share: cell.value for share, cell in latencies[name].items()} for name in ("mean", "p99")
    )
    said, verdict = _said(tails, means, most.value)
    return Section(said, numbers, [table], figures, verdict=verdict)


def _ratio(one: float | None, other: float | None) -> float | None:
    return ratio(Cell(one), Cell(other)).value


def _said(
    tails: dict[int, float | None], means: dict[int, float | None], most: float | None
) -> tuple[list[str], Verdict]:
    alone = tails[0]
    measured = [share for share, tail in tails.items() if share and tail is not None]
    if alone is None or not measured:
        few = means[0] is not None and any(mean for share, mean in means.items() if share)
        said = ["Reads alone and reads beside writes have not both been measured yet."]
        if few:
            said = ["Too few reads have been measured to say anything of their p99."]
        return said, Verdict("not-measured")
    least = min(_ratio(means[share], means[0]) or 1.0 for share in measured)
    tail = min(_ratio(tails[share], alone) or 1.0 for share in measured)
    if least < 1 / NOTICED_LESS or tail < 1 / NOTICED:
        said, verdict = undecided(
            f"reads alone are slower than beside writes ({units.microseconds(means[0])} on "
            f"average, p99 {units.microseconds(alone)}), so the baseline is not that of an idle "
            "drive",
            "repeat with longer steps (--param seconds=...) and with nothing else at work",
            mean_ratio=least,
            p99_ratio=tail,
        )
    else:
        said, verdict = [], Verdict("measured", {"mean_ratio": least, "p99_ratio": tail})
    middle = min(measured, key=lambda share: abs(share - 50))
    for share in dict.fromkeys((middle, measured[-1])):
        grown = _ratio(tails[share], alone)
        assert grown is not None
        beside = "writes at full speed" if share == 100 else f"{share} % of the writing speed"
        change = (
            f"{units.times(grown)} as long as without writes ({units.microseconds(alone)})"
            if grown >= NOTICED
            else f"about the same as without writes ({units.microseconds(alone)})"
        )
        said.append(
            f"Beside {beside} the p99 of reads is "
            f"{units.microseconds(tails[share])}, {change}; on average a read takes "
            f"{units.microseconds(means[share])} (alone {units.microseconds(means[0])})."
        )
    calm = [
        share
        for share in measured
        if (_ratio(tails[share], alone) or 0) < NOTICED
        and (_ratio(means[share], means[0]) or 0) < NOTICED
    ]
    if calm:
        said.append(f"Up to {max(calm)} % of the writing speed reads are hardly disturbed.")
    else:
        said.append(
            f"Even {measured[0]} % of the writing speed disturbs the reads: on average they take "
            f"{units.microseconds(means[measured[0]])} instead of {units.microseconds(means[0])}."
        )
    if most is not None:
        said.append(f"Full writing speed is {units.iops(most)}.")
    return said, verdict


PROTOCOLS = procedure(
    "everyday",
    "mixed-load",
    "Reads beside writes",
    "how long reads take while the drive writes at a part of its speed",
    "a common question; rate-limited writers as in fio's documentation",
    plan,
    judge,
    ProtocolParameter("shares", "10,30,50,100", "percent of the writing speed"),
    ProtocolParameter("read_bs", "4k", "size of the reads"),
    ProtocolParameter("read_depth", 1, "reads in flight"),
    ProtocolParameter("write_bs", "4k", "size of the writes"),
    ProtocolParameter("write_depth", 32, "writes in flight"),
    ProtocolParameter("seconds", 60.0, "time for each share"),
)
