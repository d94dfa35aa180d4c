"""PTS Host Idle Recovery test: what pauses of 5 to 50 seconds give back to a saturated drive."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ssdlab.answer import Cell, Cells, Curve, Figure, Number, Section, Table, columns
from ssdlab.engine.answers import best, figure, mean, number, ratio
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, Parameter, Setup
from ssdlab.engine.steps import Job, Rounds, Step, in_round
from ssdlab.protocols import pts_common as pts

KEY = "saturation"
WAITS = (5, 10, 15, 25, 50)
"""Seconds of idle time after each burst of writes."""
BURST_S = 5.0
ROUND_S = 1800.0
"""A round of saturation, whose last minute decides about steady state."""
BATCH = 12
"""Bursts of one fio job, which keeps their timetable to the millisecond."""
QUICK = 60
"""The number of bursts is scaled down by this in a quick run."""
PIECE_S = 300.0
"""The return to the baseline is cut into pieces, so that a stopped run repeats little."""


class Burst(NamedTuple):
    """A measurement against the time since the begin of its access pattern."""

    key: str
    minute: float
    iops: float


def plan(setup: Setup) -> list[Step]:
    """Saturation to steady state; then, for each idle time, bursts and the way back."""
    steps = [*pts.precondition(setup), _saturation(setup)]
    for wait in WAITS:
        steps += [_batch(setup, wait, first) for first in _firsts(setup)]
        steps += [
            _writes(setup, _baseline_key(wait, n), PIECE_S) for n in range(1, _pieces(setup) + 1)
        ]
    return steps


def _saturation(setup: Setup) -> Rounds:
    tracked = pts.tracked("RND 4 KiB writes, last minute of a round", "iops", "minute")

    def jobs(number: int) -> list[Job]:
        long = _round_s(setup) - setup.number("seconds")
        return [
            replace(_writes(setup, in_round(number, "work"), long), measured=False),
            _writes(setup, in_round(number, "minute"), setup.number("seconds")),
        ]

    return Rounds(KEY, "random writes to steady state", jobs, (tracked,), most=pts.rounds(setup))


def _round_s(setup: Setup) -> float:
    """A quick run shortens the rounds more than the pauses, which would not differ otherwise."""
    return max(2 * setup.number("seconds"), ROUND_S / (12 if setup.quick else 1))


def _writes(setup: Setup, key: str, seconds: float) -> Job:
    return pts.mix_job(setup, key, 4 * KIB, 0, seconds=seconds)


def _bursts(setup: Setup) -> int:
    return max(2, setup.count("bursts") // (QUICK if setup.quick else 1))


def _firsts(setup: Setup) -> range:
    """The first burst of each batch."""
    return range(1, _bursts(setup) + 1, BATCH)


def _pieces(setup: Setup) -> int:
    return max(1, round(ROUND_S / PIECE_S / (6 if setup.quick else 1)))


def _batch_key(wait: int, first: int) -> str:
    return f"wait{wait:02d}/bursts{first:03d}"


def _baseline_key(wait: int, piece: int) -> str:
    return f"wait{wait:02d}/baseline{piece}"


def burst_name(number: int) -> str:
    """The fio job of a burst."""
    return f"burst{number:03d}"


def _batch(setup: Setup, wait: int, first: int) -> Job:
    """Pauses, each with a burst behind it, as fio jobs that begin at their own times."""
    long, pause = setup.seconds(BURST_S), setup.seconds(float(wait))
    last = min(first + BATCH - 1, _bursts(setup))
    jobs = []
    for place, burst in enumerate(range(first, last + 1)):
        begin = round(1000 * (pause + place * (pause + long)))
        job = _writes(setup, burst_name(burst), BURST_S)
        jobs.append(replace(job, text=f"{job.text}startdelay={begin}ms\n"))
    key = _batch_key(wait, first)
    together = setup.together(
        key, f"{wait} s idle, {BURST_S:g} s of writes, {len(jobs)} times", jobs
    )
    return replace(together, seconds=len(jobs) * (pause + long))


def judge(records: Records, setup: Setup) -> Section:
    """IOPS of the bursts for each idle time, and beside them those of writing without a pause."""
    bursts = {wait: _measured(records, setup, wait) for wait in WAITS}
    baselines = {wait: _returned(records, setup, wait) for wait in WAITS}
    saturated = pts.window_cell(records, KEY, "minute", "iops")
    means = {wait: mean(map(_cell, found)) for wait, found in bursts.items()}
    gains = {wait: _gain(of, baselines[wait]) for wait, of in means.items()}
    conditions = pts.conditions(
        setup,
        what=[
            ("access pattern", f"{setup.seconds(BURST_S):g} s of writes, then idle"),
            ("idle times", ", ".join(f"{setup.seconds(float(w)):g}" for w in WAITS) + " s"),
            ("repeated", f"{_bursts(setup)} times"),
        ],
    )
    return Section(
        [*_said(gains, baselines), *pts.doubts(records, KEY)],
        _numbers(means, gains, saturated),
        [_table(bursts, baselines, means, gains), conditions],
        _figures(bursts, baselines, saturated),
    )


def _measured(records: Records, setup: Setup, wait: int) -> list[Burst]:
    cycle = setup.seconds(BURST_S) + setup.seconds(float(wait))
    found = []
    for first in _firsts(setup):
        key = _batch_key(wait, first)
        if key not in records:
            break
        for burst in range(first, min(first + BATCH, _bursts(setup) + 1)):
            iops = records.iops(key, job=burst_name(burst)) or 0.0
            found.append(Burst(key, burst * cycle / 60, iops))
    return found


def _returned(records: Records, setup: Setup, wait: int) -> list[Burst]:
    keys = [_baseline_key(wait, n) for n in range(1, _pieces(setup) + 1)]
    minutes = setup.seconds(PIECE_S) / 60
    return [
        Burst(key, minutes * n, records.iops(key) or 0.0)
        for n, key in enumerate(keys, start=1)
        if key in records
    ]


def _cell(one: Burst) -> Cell:
    return Cell(one.iops, (one.key,))


def _gain(mean: Cell, back: list[Burst]) -> Cell:
    """Bursts against what the drive came back to after them."""
    return ratio(mean, _cell(back[-1])) if back else Cell(None)


def _said(gains: dict[int, Cell], baselines: dict[int, list[Burst]]) -> list[str]:
    known = {wait: v for wait, cell in gains.items() if (v := cell.value) is not None}
    if not known:
        return ["No idle time has been measured to its end."]
    longest = max(known)
    base = baselines[longest][-1].iops
    if max(known.values()) < 1.1:
        return [
            f"Pauses of up to {longest} s change little: behind them it writes "
            f"{known[longest]:.2f} times the {base:,.0f} IOPS of writing without a pause."
        ]
    return [
        f"Behind pauses of {longest} s, bursts of writes reach {known[longest]:.2f} times the "
        f"{base:,.0f} IOPS of writing without a pause."
    ]


def _numbers(means: dict[int, Cell], gains: dict[int, Cell], saturated: Cell) -> list[Number]:
    numbers = [number("saturated", saturated, "IOPS", "higher")]
    for wait, cell in means.items():
        name = f"bursts after {wait} s idle"
        numbers.append(number(name, cell, "IOPS", "higher"))
        numbers.append(number(f"{name} / without a pause", gains[wait], "x", "higher"))
    return numbers


def _table(
    bursts: dict[int, list[Burst]],
    baselines: dict[int, list[Burst]],
    means: dict[int, Cell],
    gains: dict[int, Cell],
) -> Table:
    heads = columns(
        "idle time | mean of the bursts [IOPS] | slowest burst [IOPS] | fastest burst [IOPS] "
        "| mean / last minutes of the return [x] | first minutes of the return [IOPS] "
        "| last minutes of the return [IOPS]"
    )
    rows: list[Cells] = []
    for wait, found in bursts.items():
        back = baselines[wait]
        ends: Cells = [None] * 4
        if found and back:
            every = [_cell(one) for one in found]
            ends = [best(every, min), best(every), _cell(back[0]), _cell(back[-1])]
        rows.append([f"{wait} s", means[wait], *ends[:2], gains[wait], *ends[2:]])
    return Table(
        "Host idle recovery",
        heads,
        rows,
        note="Between two idle times the drive is written without a pause: the return to the "
        "baseline, whose first and last five minutes are shown.",
    )


def _figures(
    bursts: dict[int, list[Burst]], baselines: dict[int, list[Burst]], saturated: Cell
) -> list[Figure]:
    base = saturated.value
    rates = [o.iops for found in (*bursts.values(), *baselines.values()) for o in found]
    top = max([*rates, base or 0.0])
    figures = []
    for wait, found in bursts.items():
        if not found:
            continue
        curves = [Curve("bursts", [o.minute for o in found], [o.iops for o in found], "points")]
        if back := baselines[wait]:
            curves.append(_return(found[-1].minute, back))
        if base is not None:
            end = curves[-1].x[-1]
            curves.append(Curve("saturated", [0.0, end], [base, base], "dashed", 5))
        figures.append(
            Figure(
                f"IOPS, {wait} s idle",
                "time, min",
                "IOPS",
                curves,
                y_max=1.06 * top or None,
                wide=True,
                sources=tuple(dict.fromkeys(one.key for one in (*found, *baselines[wait]))),
            )
        )
    return [*_summary(bursts, baselines), *figures]


def _return(begin: float, back: list[Burst]) -> Curve:
    """The mean of each piece of the return as a level over the time that it took."""
    ends = [begin + one.minute for one in back]
    edges = list(zip([begin, *ends], ends, strict=False))
    x = [at for edge in edges for at in edge]
    y = [one.iops for one in back for _ in range(2)]
    return Curve("return, without a pause", x, y, "line", 1)


def _summary(bursts: dict[int, list[Burst]], baselines: dict[int, list[Burst]]) -> list[Figure]:
    done = [wait for wait in WAITS if bursts[wait] and baselines[wait]]
    if not done:
        return []
    return [
        figure(
            "Host idle recovery",
            "idle time, s",
            "IOPS",
            {
                "bursts": [mean(map(_cell, bursts[wait])) for wait in done],
                "end of the return, without a pause": [_cell(baselines[w][-1]) for w in done],
            },
            style="bars",
            x_names=[str(wait) for wait in done],
        )
    ]


PROTOCOLS = pts.protocol(
    "pts-hir",
    "Host Idle Recovery",
    "how much faster a saturated drive writes after idle times of 5 to 50 seconds",
    plan,
    judge,
    (*pts.parameters(fill=0.0), Parameter("bursts", 360, "bursts of 5 s after each idle time")),
    # 60 would make all idle times of a real drive one second.
    quick_divisor=5.0,
)
