"""PTS Host Idle Recovery test: what pauses of 5 to 50 seconds give back to a saturated drive."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from ssdlab.answer import Cell, Cells, Figure, Section, Table, columns
from ssdlab.engine.answers import best, charts, figure, mean, number, ratio
from ssdlab.engine.records import Records
from ssdlab.engine.setup import KIB, ProtocolParameter, Setup
from ssdlab.engine.steps import Job, Rounds, Step
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
RETURN = "return, without a pause"
PIECE_S = 300.0
"""The return to the baseline is cut into pieces, so that a stopped run repeats little."""


class Burst(NamedTuple):
    """A measurement against the time since the start of its access pattern."""

    key: str
    minute: float
    iops: float

    @property
    def cell(self) -> Cell:
        """Its rate."""
        return Cell(self.iops, (self.key,))


@dataclass(frozen=True)
class Pause:
    """What was measured of an idle time."""

    wait: int
    """Seconds."""
    bursts: list[Burst]
    back: list[Burst]
    """Writing without a pause after the bursts, back to the baseline."""

    @property
    def mean(self) -> Cell:
        """Of the bursts."""
        return mean(burst.cell for burst in self.bursts)

    @property
    def gain(self) -> Cell:
        """Bursts against what the drive came back to after them."""
        return ratio(self.mean, self.back[-1].cell) if self.back else Cell(None)


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
    # A quick run shortens the rounds more than the pauses, which would not differ otherwise.
    round_s = ROUND_S / (12 if setup.quick else 1)
    titles = "random writes to steady state", "RND 4 KiB writes, last minute of a round"
    return pts.saturation(setup, KEY, titles, partial(_writes, setup), round_s)


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
    pauses = [
        Pause(wait, _measured(records, setup, wait), _returned(records, setup, wait))
        for wait in WAITS
    ]
    saturated = pts.window_cell(records, KEY, "minute", "iops")
    numbers = [number("saturated", saturated, "IOPS", "higher")]
    for pause in pauses:
        name = f"bursts after {pause.wait} s idle"
        numbers.append(number(name, pause.mean, "IOPS", "higher"))
        numbers.append(number(f"{name} / without a pause", pause.gain, "x", "higher"))
    conditions = pts.conditions(
        setup,
        what=[
            ("access pattern", f"{setup.seconds(BURST_S):g} s of writes, then idle"),
            ("idle times", ", ".join(f"{setup.seconds(float(w)):g}" for w in WAITS) + " s"),
            ("repeated", f"{_bursts(setup)} times"),
        ],
    )
    return Section(
        [_said(pauses), *pts.doubts(records, KEY)],
        numbers,
        [_table(pauses), conditions],
        [*_summary(pauses), *_figures(pauses, saturated)],
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


def _said(pauses: list[Pause]) -> str:
    known = [(pause, gain) for pause in pauses if (gain := pause.gain.value) is not None]
    if not known:
        return "No idle time has been measured to its end."
    longest, gained = known[-1]
    than = f"{gained:.2f} times the {longest.back[-1].iops:,.0f} IOPS of writing without a pause."
    if max(gain for _, gain in known) < 1.1:
        return f"Pauses of up to {longest.wait} s change little: behind them it writes {than}"
    return f"Behind pauses of {longest.wait} s, bursts of writes reach {than}"


def _table(pauses: list[Pause]) -> Table:
    heads = columns(
        "idle time | mean of the bursts [IOPS] | slowest burst [IOPS] | fastest burst [IOPS] "
        "| mean / last minutes of the return [x] | first minutes of the return [IOPS] "
        "| last minutes of the return [IOPS]"
    )
    rows: list[Cells] = []
    for pause in pauses:
        ends: Cells = [None] * 4
        if pause.bursts and pause.back:
            every = [burst.cell for burst in pause.bursts]
            ends = [best(every, min), best(every), pause.back[0].cell, pause.back[-1].cell]
        rows.append([f"{pause.wait} s", pause.mean, *ends[:2], pause.gain, *ends[2:]])
    return Table(
        "Host idle recovery",
        heads,
        rows,
        note="Between two idle times the drive is written without a pause: the return to the "
        "baseline, whose first and last five minutes are shown.",
    )


def _figures(pauses: list[Pause], saturated: Cell) -> list[Figure]:
    base = saturated.value
    rates = [burst.iops for pause in pauses for burst in (*pause.bursts, *pause.back)]
    top = max([*rates, base or 0.0])
    figures = []
    for pause in (pause for pause in pauses if pause.bursts):
        curves = {"bursts": [(burst.minute, burst.iops) for burst in pause.bursts]}
        if pause.back:
            curves[RETURN] = _return(pause)
        if base is not None:
            end = (curves.get(RETURN) or curves["bursts"])[-1][0]
            curves["saturated"] = [(0.0, base), (end, base)]
        figures.append(
            figure(
                f"IOPS, {pause.wait} s idle",
                "time, min",
                "IOPS",
                curves,
                style={"bursts": "points", RETURN: "line", "saturated": "dashed"},
                y_max=1.06 * top or None,
                from_steps=[burst.key for burst in (*pause.bursts, *pause.back)],
            )
        )
    return figures


def _return(pause: Pause) -> list[tuple[float, float]]:
    """The mean of each piece of the return as a level over the time that it took."""
    begin = pause.bursts[-1].minute
    ends = [begin + piece.minute for piece in pause.back]
    edges = zip([begin, *ends], ends, strict=False)
    pieces = zip(edges, pause.back, strict=True)
    return [(at, piece.iops) for edge, piece in pieces for at in edge]


def _summary(pauses: list[Pause]) -> list[Figure]:
    done = [pause for pause in pauses if pause.bursts and pause.back]
    curves = {
        "bursts": [pause.mean for pause in done],
        "end of the return, without a pause": [pause.back[-1].cell for pause in done],
    }
    names = [str(pause.wait) for pause in done]
    title = "Host idle recovery"
    return charts(figure(title, "idle time, s", "IOPS", curves, style="bars", x_names=names))


PROTOCOLS = pts.protocol(
    "pts-hir",
    "Host Idle Recovery",
    "how much faster a saturated drive writes after idle times of 5 to 50 seconds",
    plan,
    judge,
    (
        *pts.parameters(fill=0.0),
        ProtocolParameter("bursts", 360, "bursts of 5 s after each idle time", least=2),
    ),
    # 60 would make all idle times of a real drive one second.
    quick_divisor=5.0,
)
