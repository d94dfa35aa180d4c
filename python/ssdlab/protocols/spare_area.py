"""Spare area: 4 KiB random writes on a part of the drive; the rest is never written."""

from __future__ import annotations

import itertools
from dataclasses import replace

from ssdlab import units
from ssdlab.answer import Cell, Section, table
from ssdlab.engine.answers import charts, figure, in_the_end, number, ratio, sources, too_little
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup
from ssdlab.engine.steps import Purge, Step
from ssdlab.experiments.measure import LATE, last_quarter

RECORDS = 240
"""Points of a curve: one a minute in four hours."""
WORTH = 1.1
"""A gain below this factor is none."""


def plan(setup: Setup) -> list[Step]:
    """For each part: purge, write it in order, then at random for hours."""
    steps: list[Step] = []
    for share in _shares(setup):
        steps.append(Purge(f"purge-{share}", "purge"))
        steps.append(setup.layout(f"layout-{share}", share, "128k", 32))
        steps.append(
            setup.timed(
                f"write-{share}",
                f"random writes into {share} % of the range",
                "randwrite",
                setup.text("bs"),
                seconds=3600 * setup.number("hours"),
                region=(0, setup.part(share)),
            )
        )
    return steps


def _shares(setup: Setup) -> list[int]:
    return setup.counts("shares", most=100)[::-1]


def judge(records: Records, setup: Setup) -> Section:
    """What each part keeps up, and what leaving room gains."""
    shares = _shares(setup)
    last: dict[int, Cell] = {}
    wear: dict[int, Cell] = {}
    curves: dict[str, list[tuple[float, float]]] = {}
    whole = 3600 * setup.number("hours")
    for share in shares:
        series = records.series(f"write-{share}", "write")
        last[share] = wear[share] = Cell(None, (f"write-{share}",))
        curves[f"{share} %"] = []
        if series is None:
            continue
        time, iops, _ = series.records(max(series.step, float(series.time[-1]) / RECORDS))
        last[share] = replace(last[share], value=last_quarter(time, iops))
        late = records.waf_from(f"write-{share}", LATE * float(time[-1]))
        wear[share] = replace(wear[share], value=late)
        hours = time * setup.number("hours") / setup.seconds(whole)
        curves[f"{share} %"] = [*zip(hours, iops, strict=True)]
    gains = {share: ratio(last[share], last[shares[0]]) for share in shares}
    during = any(cell.value for cell in wear.values())
    if not during:  # a real drive's counters are read before and after
        wear = {share: records.cell("waf", f"write-{share}") for share in shares}
    told = any(cell.value for cell in wear.values())

    def unwritten(share: int) -> Cell:
        left = setup.active - setup.part(share) if share < 100 else 0
        return Cell(float(left), text=units.binary(left) if left else "nothing")

    kept = table(
        "What is kept up in the last quarter of the time",
        shares,
        {
            "part of the drive": lambda share: f"{share} % ({units.binary(setup.part(share))})",
            "left unwritten [=B]": unwritten,
            "random writes kept up [IOPS]": lambda share: last[share],
            "gain [x]": lambda share: gains[share],
            "write amplification [x]": lambda share: wear[share] if told else None,
        },
        "" if during or not told else "Write amplification is that of all of the time.",
        optional=["write amplification"],
    )
    numbers = [
        number(f"{share} % of the drive, kept up", last[share], "IOPS", "higher")
        for share in shares
    ]
    shown = figure(
        "Random writes into a part of the drive",
        "time, h",
        "IOPS",
        curves,
        style="line",
        from_steps=sources(last.values()),
    )

    written = [records.passes(f"write-{share}", setup.part(share)) for share in shares]
    least = min((passes for passes in written if passes), default=0.0)
    rates, times = ({share: of[share].value for share in shares} for of in (last, gains))
    said = _said(rates, times, least)
    return Section(said, numbers, [kept], charts(shown))


def _said(last: dict[int, float | None], gains: dict[int, float | None], least: float) -> list[str]:
    measured = [share for share, rate in last.items() if rate is not None]
    if not measured:
        return ["No part of the drive has been measured yet."]
    said = []
    for share in measured[1:]:
        gain = gains[share]
        if gain is None:
            continue
        worth = f"{units.times(gain)} as fast" if gain >= WORTH else "no faster"
        said.append(
            f"With {100 - share} % of the range left unwritten the drive is {worth} at random "
            f"writes {in_the_end(least)} ({units.iops(last[share])} against "
            f"{units.iops(last[measured[0]])})."
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
    if not said:
        (share,) = measured
        part = "the whole range" if share == 100 else f"{share} % of the range"
        said = [f"Over {part}: {units.iops(last[share])} {in_the_end(least)}."]
    said[-1] += too_little(least)
    return said


PROTOCOLS = procedure(
    "article",
    "spare-area",
    "Spare area",
    "what leaving a part of the drive unwritten gains for random writes",
    "KomputerPress 9/2010, Intel X25-M G2 with IOmeter",
    plan,
    judge,
    ProtocolParameter("shares", "100,75,50,25", "percent of the range that is written"),
    ProtocolParameter("hours", 4.0, "hours for each part"),
    ProtocolParameter("bs", "4k", "size of the writes"),
    ProtocolParameter("depth", 4, "writes in flight"),
    quick_divisor=240.0,
)
