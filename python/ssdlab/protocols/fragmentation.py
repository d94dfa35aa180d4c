"""Internal fragmentation: what random overwriting does to sequential reading."""

from __future__ import annotations

import itertools

from ssdlab import units
from ssdlab.answer import Cell, Cells, Section, Table, Verdict, columns
from ssdlab.engine.answers import best, charts, figure, number, ratio, sources, undecided
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, MIB, ProtocolParameter, Setup
from ssdlab.engine.steps import Idle, Step
from ssdlab.experiments.fragmentation import EXPERIMENT, FILE_MIB, STEPS_MIB

QUICK = 16
"""The region of a quick run is scaled down by this; seconds are given for the whole one."""
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
    return max(8 * MIB, setup.area(wanted) // MIB * MIB)


def plan(setup: Setup) -> list[Step]:
    """Fill, read; four times overwrite some of it at random and read; rest and read."""
    place = (0, region(setup))
    steps: list[Step] = [
        setup.job(
            "fill",
            "fill the region sequentially",
            "write",
            "1m",
            region=place,
            measured=False,
            options={"end_fsync": 1},
        )
    ]
    for amount in [0, *setup.counts("amounts_mib", most=1 << 20)]:
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
                    measured=False,
                    options={"end_fsync": 1},
                )
            )
        pauses = PAUSES_S if amount else (PAUSES_S[0],) * 3
        for turn, pause in enumerate(pauses, start=1):
            steps.append(Idle(f"pause-{amount}-{turn}", "pause", seconds=setup.seconds(pause)))
            steps.append(_read(setup, f"read-{amount}-{turn}", place))
    steps.append(Idle("rest", "rest", seconds=setup.seconds(setup.number("rest_s"))))
    steps.append(_read(setup, RESTED, place))
    return steps


def _read(setup: Setup, key: str, place: tuple[int, int]) -> Step:
    return setup.job(key, "read the region sequentially", "read", "1m", region=place)


def judge(records: Records, setup: Setup) -> Section:
    """Seconds to read the whole region after each overwriting, as the article gives them."""
    whole = setup.count("region_mib") * MIB

    def seconds(key: str) -> Cell:
        return ratio(Cell(whole / 1e6), records.cell("mbps", key, "read"))

    amounts = [0, *setup.counts("amounts_mib", most=1 << 20)]
    readings = {a: [seconds(f"read-{a}-{turn}") for turn in (1, 2, 3)] for a in amounts}
    times = {amount: best(cells, min) for amount, cells in readings.items()}
    rested, first = seconds(RESTED), times[0]
    last = next((times[a] for a in reversed(amounts) if times[a].value is not None), Cell(None))
    size = units.binary(whole)
    rows: list[Cells] = [
        [
            f"+{amount} MiB" if amount else "first",
            times[amount],
            *readings[amount],
            ratio(times[amount], first),
            _per_mib(times[amount], first, total),
        ]
        for amount, total in zip(amounts, itertools.accumulate(amounts), strict=True)
    ]
    rows.append(["rested", rested, rested, None, None, ratio(rested, first), None])
    table = Table(
        f"Seconds to read {size} sequentially",
        columns(
            "after overwriting | best of three [s] | reading 1 [s] | reading 2 [s] | reading 3 [s] "
            "| times the first [x] | extra time per MiB overwritten so far [ms]"
        ),
        rows,
        note=f"The region was {units.binary(region(setup))}; seconds are given for {size}."
        if region(setup) != whole
        else "",
    )
    shown = figure(
        f"Seconds to read {size}, at first (left edge) and after each overwriting",
        "MiB overwritten in the step",
        "s",
        {"best of three": [(float(a) or FIRST_X, times[a]) for a in amounts]},
        log_x=True,
    )
    numbers = [
        number(f"first reading of {size}", first, "s", "lower"),
        *(number(f"reading after +{a} MiB", times[a], "s", "lower") for a in amounts[1:]),
        number("last reading / first reading", ratio(last, first), "x", "lower"),
        number("reading after a rest", rested, "s", "lower"),
    ]
    known = {a: [x.value for x in of if x.value is not None] for a, of in readings.items()}
    said, verdict = _said({a: of for a, of in known.items() if of}, rested.value, size)
    return Section(said, numbers, [table], charts(shown), verdict=verdict)


def _per_mib(after: Cell, first: Cell, total: int) -> Cell:
    known = after.value is not None and first.value is not None and total
    extra = (after.value or 0.0) - (first.value or 0.0)
    return Cell(1e3 * extra / total if known else None, sources([after, first]))


def _said(
    readings: dict[int, list[float]], rested: float | None, size: str
) -> tuple[list[str], Verdict]:
    if 0 not in readings or len(readings) < 2:
        said = ["Reading before and after overwriting has not both been measured yet."]
        return said, Verdict("not-measured")
    *_, end = readings
    first, last = min(readings[0]), min(readings[end])
    grown = last / first
    worst = max(min(own) for own in readings.values())
    noise = max(max(own) / min(own) - 1 for own in readings.values())
    values: dict[str, float | str | None] = {"grown": grown, "noise": noise}
    apart = last > max(readings[0])
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


PROTOCOLS = procedure(
    "article",
    "fragmentation",
    "Internal fragmentation",
    "how much random overwriting slows sequential reads down",
    EXPERIMENT.article,
    plan,
    judge,
    ProtocolParameter("region_mib", FILE_MIB, "MiB that are filled and read", least=1),
    ProtocolParameter(
        "amounts_mib",
        ",".join(str(amount) for amount in STEPS_MIB if amount),
        "MiB of 4 KiB random writes before each three readings",
    ),
    ProtocolParameter("rest_s", 3600.0, "seconds of rest before the last reading"),
)
