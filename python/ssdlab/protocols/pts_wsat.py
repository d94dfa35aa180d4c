"""PTS Write Saturation test: random writes from the purged drive on, record by record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ssdlab.analysis.steady import pts_window
from ssdlab.answer import Cell, Figure, Section, Table
from ssdlab.engine import steady_report
from ssdlab.engine.answers import Part, both_scales, charts, figure, number, ratio, work_table
from ssdlab.engine.records import Records, RoundsRecord
from ssdlab.engine.setup import KIB, ProtocolParameter, Setup
from ssdlab.engine.steps import WINDOW, Job, Purge, Repeated, Step, Then
from ssdlab.protocols import pts_common as pts
from ssdlab.units import counted, duration

BLOCK = 4 * KIB
ROUND = 30
"""Records from one value that decides about steady state to the next: half an hour."""
ROUND_QUICK = 5
QUICK = 12
"""The number of records is scaled down by this in a quick run."""
LATENCIES = ("mean", "p99.9", "max")
ROWS_EACH = (1, 2, 5, 10, 15, 30, 60)
"""Records from one row of the table to the next: the fewest that leave so many rows at most."""
ROWS_MAX = 30


class Minute(NamedTuple):
    """A minute of writing."""

    key: str
    minute: float
    """When it ended, since the start."""
    written: int
    """Bytes up to its end."""


def key_of(number: int) -> str:
    """The key of a record, from 1."""
    return f"minute{number:04d}"


def plan(setup: Setup) -> list[Step]:
    """Purge, and at once random writes: there is no preconditioning, the way there is the test."""
    return [Purge(), _after(setup, 1, 0, 0)]


def _after(setup: Setup, first: int, done: int, before: int, each_wrote: int = 0) -> Then:
    """What follows ``done`` records, of which those from ``first`` on are the last batch; the ones
    before them wrote ``before`` bytes, and they themselves are expected to write ``each_wrote``.

    It looks at no later record, so a run that was stopped goes on with the same steps.
    """
    written = before + (done + 1 - first) * each_wrote
    return Then(
        f"after{done:04d}",
        lambda records: _next(records, setup, first, done, before),
        _expected(setup, done, written),
    )


def _next(records: Records, setup: Setup, first: int, done: int, before: int) -> Sequence[Step]:
    """The next batch: to the next half hour, though not much beyond the last byte asked for."""
    wanted, most, each = setup.number("times") * setup.active, _most(setup), _round(setup)
    batch = [key_of(n) for n in range(first, done + 1)]
    if any(key not in records for key in batch):
        return []
    written = before + sum(records.written(key) for key in batch)
    if written >= wanted or done >= most or _steady(records, done, each):
        return []
    count = min(each - done % each, most - done)
    # Half of what is missing at the last record's speed, then half of the rest: so the last batch
    # is a record, even if the drive becomes faster.
    last = records.written(batch[-1]) if batch else 0
    count = min(count, max(1, int((wanted - written) / max(1, last) / 2))) if batch else 1
    jobs = [_job(setup, n) for n in range(done + 1, done + count + 1)]
    return [*jobs, _after(setup, done + 1, done + count, written, last)]


def _job(setup: Setup, number: int) -> Job:
    return pts.mix_job(setup, key_of(number), BLOCK, 0)


def _expected(setup: Setup, done: int, written: int) -> tuple[Repeated, ...]:
    """The records after the first ``done``, for the estimate."""
    missing = int(setup.number("times") * setup.active) - written
    most, each = _most(setup) - done, _round(setup)
    if missing <= 0 or most <= 0:
        return ()
    least = max(WINDOW * each - done, each - done % each)
    return (Repeated(_job(setup, done + 1), missing, min(least, most), most),)


def _most(setup: Setup) -> int:
    """Records at most."""
    hours = setup.number("hours") / (QUICK if setup.quick else 1)
    return max(1, round(3600 * hours / max(1.0, setup.number("seconds"))))


def _round(setup: Setup) -> int:
    return ROUND_QUICK if setup.quick else ROUND


def _steady(records: Records, done: int, each: int) -> bool:
    if done % each or done // each < WINDOW:
        return False
    return _rounds(records, done, each, most=done).steady


def _rounds(records: Records, done: int, each: int, most: int) -> RoundsRecord:
    """The last record of each half hour as the round of a test to steady state. In records, as
    those of a drive made smaller and of a quick run are shorter."""
    tracked = f"RND 4 KiB writes, last of each {each} records"
    last = range(each, done + 1, each)
    keys = tuple(key for n in last if (key := key_of(n)) in records)
    values = [records.iops(key) or 0.0 for key in keys]
    return RoundsRecord(
        "wsat",
        f"random writes, each {each}th record",
        len(values),
        {tracked: values},
        {tracked: "IOPS"},
        WINDOW,
        most // each,
        keys,
    )


def judge(records: Records, setup: Setup) -> Section:
    """Speed and latency over time and against what has been written."""
    found = _records(records, setup)
    if not found:
        return Section(["Nothing has been measured."], tables=[pts.conditions(setup)])
    each = _round(setup)
    rounds = _rounds(records, len(found), each, _most(setup))
    late = [one.key for one in found[-_late(found, each) :]]
    begin, end = records.cell("iops", found[0].key), records.cell("iops", late)
    numbers = [
        number("first record", begin, "IOPS", "higher"),
        number("at the end", end, "IOPS", "higher"),
        number("at the end / first record", ratio(end, begin), "x", "higher"),
        number("written / active range", Cell(found[-1].written / setup.active), "x"),
        *(
            number(f"{what} latency, at the end", records.cell(what, late), "us", "lower")
            for what in LATENCIES
        ),
    ]
    few = found[-1].written < setup.active and not records.on_disks(found[0].key)
    return Section(
        _said(
            found,
            (begin.value or 0.0, end.value or 0.0),
            rounds,
            setup,
            few=few,
            unsteady="" if rounds.steady else _unsteady(records, found),
        ),
        numbers,
        [
            _table(records, found, setup),
            steady_report.table(rounds),
            pts.conditions(setup, what=[("ends", _ends(setup)), ("at the end", _end(found, late))]),
        ],
        [*_figures(records, found), *steady_report.figures(rounds)],
    )


def _late(found: list[Minute], each: int) -> int:
    """Records at the end: half an hour, of a short run its last quarter, for its half hour began
    with the fresh drive."""
    return min(each, max(1, len(found) // 4))


def _unsteady(records: Records, found: list[Minute]) -> str:
    """What the last half of the run, in as many pieces as a window has rounds, says of the rate in
    the end; empty where it is steady by the rule."""
    each = max(1, len(found) // (2 * WINDOW))
    last = [one.key for one in found[-each * WINDOW :]]
    if len(last) < WINDOW:
        return ", in too few records to tell whether that is steady"
    pieces = (records.cell("iops", last[n * each : (n + 1) * each]) for n in range(WINDOW))
    steady = pts_window([cell.value or 0.0 for cell in pieces]).steady
    return "" if steady else ", and was not steady yet"


def _end(found: list[Minute], late: list[str]) -> str:
    """What stands for the end of the run."""
    if len(late) == 1:
        return f"the last of {counted(len(found), 'record')}"
    took = duration(60 * (found[-1].minute - found[-len(late) - 1].minute))
    return f"means of the last {len(late)} of {counted(len(found), 'record')}: {took}"


def _records(records: Records, setup: Setup) -> list[Minute]:
    minutes = setup.seconds(setup.number("seconds")) / 60
    found: list[Minute] = []
    written = 0
    while (key := key_of(len(found) + 1)) in records:
        written += records.written(key)
        found.append(Minute(key, minutes * (len(found) + 1), written))
    return found


def _said(
    found: list[Minute],
    rates: tuple[float, float],
    rounds: RoundsRecord,
    setup: Setup,
    *,
    few: bool,
    unsteady: str,
) -> list[str]:
    """``rates`` at first and in the end; ``few``: too few writes for steady state;
    ``unsteady``: what speaks against the end."""
    times, (begin, end) = found[-1].written / setup.active, rates
    fallen = f", {100 * end / begin:.0f} % of it" if begin else ""
    said = (
        f"Fresh out of the box it writes {begin:,.0f} IOPS; "
        f"in the end {end:,.0f}{fallen}, after {times:.2g} x the active range"
        + (", too little for steady state" if few else unsteady)
        + "."
    )
    if rounds.steady and (few or setup.quick):
        kept = duration(60 * found[-1].minute)
        return [said, f"The test ended after {kept}, at a rate that the rule takes for steady."]
    if rounds.steady:
        return [said, f"It is steady after {duration(60 * found[-1].minute)}."]
    if times >= setup.number("times"):
        return [
            said,
            f"The test ended because {setup.number('times'):g} x the active range is written.",
        ]
    if len(found) >= _most(setup):
        return [said, "The test ended at its longest time."]
    return [said, "The test is not at its end."]


def _table(records: Records, found: list[Minute], setup: Setup) -> Table:
    every = next((n for n in ROWS_EACH if len(found) <= n * ROWS_MAX), ROWS_EACH[-1])
    shown = [one for n, one in enumerate(found, start=1) if n == 1 or n % every == 0]
    if found[-1] not in shown:
        shown.append(found[-1])
    written = {f"{one.minute:.4g}": Cell(one.written, (one.key,)) for one in shown}
    return work_table(
        records,
        [Part(one.key, None, f"{one.minute:.4g}") for one in shown],
        f"iops {' '.join(LATENCIES)}",
        title="Write saturation, record by record",
        corner="time, min",
        more={
            "written [B]": written,
            "written / active range [x]": {
                at: ratio(cell, Cell(setup.active)) for at, cell in written.items()
            },
        },
    )


def _ends(setup: Setup) -> str:
    hours = setup.number("hours") / (QUICK if setup.quick else 1)
    shorter = f"{hours:.3g} h divided by {setup.divisor:g}" if setup.divisor > 1 else f"{hours:g} h"
    return f"steady, or {setup.number('times'):g} x the active range written, or {shorter}"


def _figures(records: Records, found: list[Minute]) -> list[Figure]:
    keys = [one.key for one in found]
    wanted = ("iops", *LATENCIES)
    # Step by step: the results of a day are not all held in memory.
    cells = [[records.cell(what, key) for what in wanted] for key in keys]
    values = dict(zip(wanted, zip(*cells, strict=True), strict=True))
    milliseconds = {
        what: [replace(cell, value=cell.value and cell.value / 1e3) for cell in values[what]]
        for what in LATENCIES
    }
    figures = []
    for axis, label, x in (
        ("time", "time, min", [one.minute for one in found]),
        ("written data", "written, GB", [one.written / 1e9 for one in found]),
    ):
        title = f"IOPS against {axis}"
        rates = {"IOPS": list(zip(x, values["iops"], strict=True))}
        figures += both_scales(title, label, "IOPS", rates, style="line", group=title)
        waits = {what: zip(x, of, strict=True) for what, of in milliseconds.items()}
        figures += charts(
            figure(f"Latency against {axis}", label, "ms", waits, style="line", log_y=True)
        )
    return figures


PROTOCOLS = pts.protocol(
    "pts-wsat",
    "Write Saturation",
    "how random writes slow down from a purged drive until they are steady",
    plan,
    judge,
    (
        *pts.parameters(rounds=None, fill=None),
        ProtocolParameter(
            "times", 4.0, "ends when the active range is written so often", least=0.01
        ),
        ProtocolParameter("hours", 24.0, "ends after so many hours"),
    ),
)
