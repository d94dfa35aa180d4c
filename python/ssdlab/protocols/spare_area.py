"""Spare area: 4 KiB random writes on a part of the drive; the rest is never written."""

from __future__ import annotations

import itertools

from ssdlab.engine import choices, words
from ssdlab.engine.answers import Rows, cell, charts, curve, number
from ssdlab.engine.protocol import Judgement, Protocol
from ssdlab.engine.readings import Readings, ratio
from ssdlab.engine.records import Records
from ssdlab.engine.setup import MIB, Parameter, Setup
from ssdlab.engine.steps import Purge, Step
from ssdlab.experiments.measure import mean_between
from ssdlab.figures import Column, Figure, Table
from ssdlab.units import binary

LAST_SHARE = 0.25
"""What a drive keeps up is the mean of the last quarter of the time."""
RECORDS = 240
"""Points of a curve: one a minute in four hours."""
WORTH = 1.1
"""A gain below this factor is none."""


def plan(setup: Setup) -> list[Step]:
    """For each part: purge, write it in order, then at random for hours."""
    steps: list[Step] = []
    for share in _shares(setup):
        region = (0, _part(setup, share))
        steps.append(Purge(f"purge-{share}", "purge"))
        steps.append(
            setup.job(
                f"layout-{share}",
                f"write {share} % of the range in order",
                "write",
                "128k",
                depth=32,
                region=region,
                compressible=setup.count("compressible"),
                measured=False,
            )
        )
        steps.append(
            setup.job(
                f"write-{share}",
                f"random writes into {share} % of the range",
                "randwrite",
                setup.text("bs"),
                depth=setup.count("depth"),
                seconds=3600 * setup.number("hours"),
                region=region,
                compressible=setup.count("compressible"),
            )
        )
    return steps


def _shares(setup: Setup) -> list[int]:
    return choices.counts(setup, "shares", most=100)[::-1]


def _part(setup: Setup, share: int) -> int:
    return max(MIB, setup.active * share // 100 // MIB * MIB)


def judge(records: Records, setup: Setup) -> Judgement:
    """What each part keeps up, and what leaving room gains."""
    found = Readings(records)
    shares = _shares(setup)
    last: dict[int, float | None] = {}
    curves = []
    for place, share in enumerate(shares):
        series = found.series(f"write-{share}", "write")
        if series is None:
            last[share] = None
            continue
        time, iops, _ = series.records(max(series.step, float(series.time[-1]) / RECORDS))
        last[share] = mean_between(time, iops, (1 - LAST_SHARE) * float(time[-1]), time[-1])
        hours = time * setup.number("hours") / setup.seconds(3600 * setup.number("hours"))
        curves.append(curve(f"{share} %", zip(hours, iops, strict=True), place, "line"))
    most = last[shares[0]]
    gains = {share: ratio(last[share], most) for share in shares}
    wear = {share: found.waf(f"write-{share}") for share in shares}
    heads = [
        Column("part of the drive"),
        Column("left unwritten"),
        Column("random writes kept up", "IOPS"),
        Column("gain", "x"),
        *([Column("write amplification", "x")] if any(wear.values()) else []),
    ]
    rows: Rows = [
        [
            f"{share} % ({binary(_part(setup, share))})",
            binary(setup.active - _part(setup, share)) if share < 100 else "nothing",
            cell(last[share], f"write-{share}"),
            cell(gains[share], f"write-{share}", f"write-{shares[0]}"),
            *([cell(wear[share], f"write-{share}")] if any(wear.values()) else []),
        ]
        for share in shares
    ]
    numbers = [
        number(f"{share} % of the drive, kept up", last[share], "IOPS", "higher", f"write-{share}")
        for share in shares
    ]
    figures = charts(
        Figure(
            "Random writes into a part of the drive",
            "time, h",
            "IOPS",
            curves,
            wide=True,
            sources=tuple(f"write-{share}" for share in shares),
        )
    )
    table = Table("What is kept up in the last quarter of the time", heads, rows)
    return Judgement(_said(shares, last, gains), numbers, [table], figures)


def _said(
    shares: list[int], last: dict[int, float | None], gains: dict[int, float | None]
) -> list[str]:
    measured = [share for share in shares if last[share] is not None]
    if not measured:
        return ["No part of the drive has been measured yet."]
    said = []
    for share in measured[1:]:
        gain = gains[share]
        if gain is None:
            continue
        worth = f"{words.times(gain)} as fast" if gain >= WORTH else "no faster"
        said.append(
            f"With {100 - share} % of the range left unwritten the drive is {worth} at random "
            f"writes in the long run ({words.iops(last[share])} against "
            f"{words.iops(last[measured[0]])})."
        )
    rising = sum(
        (last[small] or 0) > (last[large] or 0) for large, small in itertools.pairwise(measured)
    )
    pairs = len(measured) - 1
    if pairs:
        said.append(
            f"Of {pairs} neighbouring pairs the smaller part is faster in {rising}."
            if rising < pairs
            else "The smaller the part that is written, the faster it is."
        )
    return said or [f"Over the whole range: {words.iops(last[measured[0]])} in the long run."]


PROTOCOLS = (
    Protocol(
        name="spare-area",
        title="Spare area",
        summary="what leaving a part of the drive unwritten gains for random writes",
        source="KomputerPress 9/2010, Intel X25-M G2 with IOmeter",
        group="article",
        plan=plan,
        judge=judge,
        quick_divisor=240.0,
        parameters=(
            Parameter("shares", "100,75,50,25", "percent of the range that is written"),
            Parameter("hours", 4.0, "hours for each part"),
            Parameter("bs", "4k", "size of the writes"),
            Parameter("depth", 4, "writes in flight"),
            Parameter("compressible", 0, "percent by which the data shrinks"),
        ),
    ),
)
