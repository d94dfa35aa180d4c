"""Internal fragmentation: what random overwriting does to sequential reading."""

from __future__ import annotations

import itertools

from ssdlab import units
from ssdlab.answer import Column, Figure, Section, Table, Verdict
from ssdlab.engine.answers import Rows, cell, charts, curve, number, undecided
from ssdlab.engine.choices import counts
from ssdlab.engine.protocol import Protocol
from ssdlab.engine.readings import Readings, best, ratio
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, MIB, Parameter, Setup
from ssdlab.engine.steps import Idle, Step
from ssdlab.experiments.fragmentation import ARTICLE, FILE_MIB, STEPS_MIB

QUICK = 16
"""The region of a quick run is so many times smaller; seconds are given for the whole one."""
PAUSES_S = (10, 20, 30)
"""Rests before the three readings after an overwriting; before the first ones it is 10 s each."""
RESTED = "read-rested"
NOTICED = 1.05
"""Readings closer than this factor are alike: the article rounds to 0.1 s of 2 s."""
FIRST_X = 10.0
"""Where the first reading stands on the log axis of MiB overwritten."""


def region(setup: Setup) -> int:
    """Bytes of the region: as asked for, less in a quick run and on a target that is smaller."""
    wanted = setup.count("region_mib") * MIB // (QUICK if setup.quick else 1)
    return max(8 * MIB, min(wanted, setup.active) // MIB * MIB)


def plan(setup: Setup) -> list[Step]:
    """Fill, read; four times overwrite some of it at random and read; rest and read."""
    place = (0, region(setup))
    compressible = setup.count("compressible")
    steps: list[Step] = [
        setup.job(
            "fill",
            "fill the region sequentially",
            "write",
            "1m",
            region=place,
            compressible=compressible,
            measured=False,
            options={"end_fsync": 1},
        )
    ]
    for amount in [0, *counts(setup, "amounts_mib", most=1 << 20)]:
        if amount:
            scaled = amount * MIB * place[1] // (setup.count("region_mib") * MIB)
            steps.append(
                setup.job(
                    f"overwrite-{amount}",
                    f"overwrite {amount} MiB of {setup.count('region_mib')} MiB at random",
                    "randwrite",
                    "4k",
                    amount=max(4 * KIB, scaled // (4 * KIB) * 4 * KIB),
                    region=place,
                    compressible=compressible,
                    measured=False,
                    options={"end_fsync": 1},
                )
            )
        pauses = PAUSES_S if amount else (PAUSES_S[0],) * 3
        for turn, pause in enumerate(pauses, start=1):
            steps.append(Idle(f"pause-{amount}-{turn}", setup.seconds(pause), "pause"))
            steps.append(_read(setup, f"read-{amount}-{turn}", place))
    steps.append(Idle("rest", setup.seconds(setup.number("rest_s")), "rest"))
    steps.append(_read(setup, RESTED, place))
    return steps


def _read(setup: Setup, key: str, place: tuple[int, int]) -> Step:
    return setup.job(key, "read the region sequentially", "read", "1m", region=place)


def judge(records: Records, setup: Setup) -> Section:
    """Seconds to read the whole region after each overwriting, as the article gives them."""
    found = Readings(records)
    whole = setup.count("region_mib") * MIB

    def seconds(key: str) -> float | None:
        return ratio(whole / 1e6, found.mbps(key, "read"))

    amounts = [0, *counts(setup, "amounts_mib", most=1 << 20)]
    totals = dict(zip(amounts, itertools.accumulate(amounts), strict=True))
    keys = {amount: [f"read-{amount}-{turn}" for turn in (1, 2, 3)] for amount in amounts}
    times = {amount: best((seconds(key) for key in keys[amount]), min) for amount in amounts}
    rested = seconds(RESTED)
    first = times[0]
    measured = [amount for amount in amounts if times[amount] is not None]
    last = times[measured[-1]] if measured else None
    size = units.binary(whole)
    rows: Rows = [
        [
            f"+{amount} MiB" if amount else "first",
            cell(times[amount], *keys[amount]),
            *(cell(seconds(key), key) for key in keys[amount]),
            cell(ratio(times[amount], first), *keys[amount], *keys[0]),
            cell(_per_mib(times[amount], first, totals[amount]), *keys[amount], *keys[0]),
        ]
        for amount in amounts
    ]
    rows.append(
        [
            "rested",
            cell(rested, RESTED),
            cell(rested, RESTED),
            None,
            None,
            cell(ratio(rested, first), RESTED, *keys[0]),
            None,
        ]
    )
    heads = [
        Column("after overwriting"),
        Column("best of three", "s"),
        *(Column(f"reading {turn}", "s") for turn in (1, 2, 3)),
        Column("times the first", "x"),
        Column("extra time per MiB overwritten so far", "ms"),
    ]
    figure = Figure(
        f"Seconds to read {size}, at first (left edge) and after each overwriting",
        "MiB overwritten in the step",
        "s",
        [curve("best of three", [(float(a) or FIRST_X, times[a]) for a in amounts])],
        log_x=True,
        wide=True,
        sources=tuple(key for amount in amounts for key in keys[amount]),
    )
    numbers = [
        number(f"first reading of {size}", first, "s", "lower", *keys[0]),
        *(number(f"reading after +{a} MiB", times[a], "s", "lower", *keys[a]) for a in amounts[1:]),
        number("last reading / first reading", ratio(last, first), "x", "lower"),
        number("reading after a rest", rested, "s", "lower", RESTED),
    ]
    scaled = (
        f"The region was {units.binary(region(setup))}; seconds are given for {size}."
        if region(setup) != whole
        else ""
    )
    table = Table(f"Seconds to read {size} sequentially", heads, rows, note=scaled)
    readings = {a: [x for key in keys[a] if (x := seconds(key)) is not None] for a in measured}
    said, verdict = _said(times, readings, rested, size)
    return Section(said, numbers, [table], charts(figure), verdict=verdict)


def _per_mib(after: float | None, first: float | None, total: int) -> float | None:
    if after is None or first is None or not total:
        return None
    return 1e3 * (after - first) / total


def _said(
    times: dict[int, float | None],
    readings: dict[int, list[float]],
    rested: float | None,
    size: str,
) -> tuple[list[str], Verdict]:
    first = times[0]
    if first is None or len(readings) < 2:
        return ["Reading before and after overwriting has not both been measured yet."], Verdict(
            "not-measured"
        )
    amounts = list(readings)
    last = times[amounts[-1]]
    grown = ratio(last, first)
    assert last is not None and grown is not None
    worst = max(times[amount] or 0.0 for amount in amounts)
    noise = max(max(own) / min(own) - 1 for own in readings.values())
    values: dict[str, float | str | None] = {"grown": grown, "noise": noise}
    apart = min(readings[amounts[-1]]) > max(readings[0])
    if (grown < 1 / NOTICED) or (noise >= NOTICED - 1 and not apart):
        return undecided(
            f"reading takes {grown:.2f} times as long after overwriting, and readings of one state "
            f"differ by up to {100 * noise:.0f} %",
            "repeat with a larger region_mib and with nothing else at work on the drive",
            grown=grown,
            noise=noise,
        )
    if worst < NOTICED * first:
        verdict = Verdict("no-difference", values)
        said = [
            f"Random overwriting does not slow sequential reads down: {size} takes "
            f"{units.number(first)} s at first and {units.number(last)} s at the end."
        ]
    else:
        verdict = Verdict("fragments", values)
        said = [
            f"Random overwriting leaves the data in pieces on the flash: reading {size} "
            "sequentially "
            f"takes {units.number(first)} s at first and {units.number(last)} s after the last "
            f"overwriting, {grown:.1f} times as long."
        ]
    if rested is not None:
        if rested < last / NOTICED:
            told = f"A rest helps: {units.number(rested)} s after it."
        elif rested > last * NOTICED:
            told = (
                f"After a rest it takes longer still, {units.number(rested)} s: the drive has "
                "moved the data meanwhile, and not to where it is read faster."
            )
        else:
            told = (
                f"A rest changes nothing ({units.number(rested)} s after it): no defragmentation "
                "in the background is seen."
            )
        said.append(told)
    return said, verdict


PROTOCOLS = (
    Protocol(
        name="fragmentation",
        title="Internal fragmentation",
        summary="how much random overwriting slows sequential reads down",
        source=ARTICLE,
        group="article",
        plan=plan,
        judge=judge,
        parameters=(
            Parameter("region_mib", FILE_MIB, "MiB that are filled and read"),
            Parameter(
                "amounts_mib",
                ",".join(str(amount) for amount in STEPS_MIB if amount),
                "MiB of 4 KiB random writes before each three readings",
            ),
            Parameter("rest_s", 3600.0, "seconds of rest before the last reading"),
            Parameter("compressible", 0, "percent by which the data shrinks"),
        ),
    ),
)
