"""Write amplification by the drive's own counters, against drive writes, to steady state."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from ssdlab import units
from ssdlab.analysis import amplification
from ssdlab.answer import Cell, Figure, Section, Table, table
from ssdlab.engine import steady_report
from ssdlab.engine.answers import charts, figure, number, ratio, sources
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import MIB, ProtocolParameter, Setup
from ssdlab.engine.steps import Job, Purge, Rounds, Step, Tracked, in_round
from ssdlab.errors import known_name
from ssdlab.protocols.pts_common import keys_of

REFERENCE = "sequential"
"""The step whose speed stands for that of the flash."""
SEQUENTIAL = "512k"
PATTERNS = {
    "uniform": "uniform random",
    "zipf": "zipf random",
    "hot-cold": "hot/cold random",
    "streams": "interleaved sequential",
}
"""What is written, by the names of the parameter ``patterns``."""
LONGEST = 240
"""Rounds at most, however small a piece is."""


@dataclass(frozen=True)
class WafCase:
    """A pattern on a share of the range, until it is steady."""

    pattern: str
    share: int
    """Percent of the range that is written; the rest is never written after a purge, and so is
    spare area, as that of a smaller namespace."""

    @property
    def key(self) -> str:
        """Of its rounds, and of the job of each."""
        return f"{self.pattern}-{self.share}"

    @property
    def title(self) -> str:
        """For people."""
        part = "" if self.share == 100 else f", {self.share} % of the range"
        return f"{PATTERNS[self.pattern]} writes{part}"


def plan(setup: Setup) -> list[Step]:
    """Purge, two sequential fills, of which the second is the reference; then for each case purge,
    a fill, and pieces of writing until the write amplification is steady."""
    title = "sequential writes over all of the range, the second time"
    second = setup.job(REFERENCE, title, "write", SEQUENTIAL, depth=8)
    steps: list[Step] = [Purge(), setup.layout("layout", 100, SEQUENTIAL, 8), second]
    for case in _cases(setup):
        steps.append(Purge(f"purge-{case.key}", "purge"))
        steps.append(setup.layout(f"layout-{case.key}", case.share, SEQUENTIAL, 8))
        steps.append(_rounds(setup, case))
    return steps


def _cases(setup: Setup) -> list[WafCase]:
    """Uniform writes on every share, the other patterns on all of the range, or on the largest."""
    words = dict.fromkeys(one.strip() for one in setup.text("patterns").split(","))
    names = [known_name("pattern of writes", name, PATTERNS) for name in words]
    shares = setup.counts("shares", most=100)[::-1]
    return [
        WafCase(name, share)
        for name in names
        for share in (shares if name == "uniform" else shares[:1])
    ]


def _rounds(setup: Setup, case: WafCase) -> Rounds:
    def jobs(round_number: int) -> list[Job]:
        return [_piece(setup, case, in_round(round_number, case.key))]

    def tracked(records: Records, round_number: int) -> float | None:
        key = in_round(round_number, case.key)
        return records.value("waf", key) or _bound(records, key).value

    pieces = math.ceil(setup.number("writes") / _amount(setup, case))
    most = min(setup.rounds, LONGEST) if setup.quick else min(pieces, LONGEST)
    name = f"write amplification, {case.title}"
    return Rounds(case.key, case.title, jobs, (Tracked(name, "x", tracked),), most=most)


def _amount(setup: Setup, case: WafCase) -> float:
    """Of a piece, in drive writes. Streams begin anew with each piece, so theirs are whole."""
    return 1.0 if case.pattern == "streams" else setup.number("piece")


def _piece(setup: Setup, case: WafCase, key: str) -> Job:
    part = setup.part(case.share)
    title = f"{case.title}, {units.times(_amount(setup, case))} its range"
    if case.pattern == "streams":
        count = setup.count("streams")
        zone = part // count // MIB * MIB or MIB
        options = {"offset_increment": zone, **setup.patience}
        return setup.job(
            key, title, "write", SEQUENTIAL, threads=count, amount=zone, region=(0, zone),
            options=options,
        )  # fmt: skip
    # Hot data must stay where it is from piece to piece, so a zipf distribution has its centre.
    hot = setup.count("hot")
    spread = {
        "uniform": "random",
        "zipf": f"zipf:{setup.number('theta'):g}:0.3",
        "hot-cold": f"zoned:{100 - hot}/{hot}:{hot}/{100 - hot}",
    }[case.pattern]
    threads = setup.count("threads")
    return setup.timed(
        key,
        title,
        "randwrite",
        setup.text("bs"),
        threads=threads,
        amount=max(MIB, int(part * setup.number("piece")) // threads),
        region=(0, part),
        options={"random_distribution": spread, **setup.patience},
    )


def _bound(records: Records, keys: str | list[str]) -> Cell:
    """Sequential over random throughput: at most what the write amplification is, if sequential
    writes are as fast as the flash."""
    return ratio(records.cell("mbps", REFERENCE), records.cell("mbps", keys))


@dataclass(frozen=True)
class WafResult:
    """What a case came to in its measurement window."""

    case: WafCase
    waf: Cell
    bound: Cell
    mbps: Cell
    steady: bool | None
    """None before there are enough rounds."""
    writes: float
    """Written since the purge, in ranges."""

    @property
    def spare(self) -> Cell:
        """Over-provisioning by the closed form, of what is written."""
        if self.case.pattern != "uniform" or self.waf.value is None or self.waf.value <= 1:
            return Cell(None, self.waf.sources)
        return Cell(100 * amplification.spare(self.waf.value), self.waf.sources)


def _found(records: Records, case: WafCase) -> WafResult:
    keys = keys_of(records, case.key, case.key)
    record = records.rounds.get(case.key)
    enough = record is not None and record.count >= record.window
    curve = _course(records, case)
    return WafResult(
        case,
        records.cell("waf", keys),
        _bound(records, keys),
        records.cell("mbps", keys),
        record.steady if record is not None and enough else None,
        curve[-1][0] if curve else 0.0,
    )


def _course(records: Records, case: WafCase) -> list[tuple[float, Cell]]:
    """Write amplification, or its bound where the drive does not count, at the end of each piece,
    against what was written since the purge in ranges; the fill is the first."""
    points: list[tuple[float, Cell]] = []
    written = 0.0
    part = records.written(f"layout-{case.key}")
    for place in itertools.count(1):
        key = in_round(place, case.key)
        if key not in records or not part:
            return points
        written += records.written(key)
        told = records.cell("waf", key)
        points.append((1 + written / part, told if told.value else _bound(records, key)))
    return points


def judge(records: Records, setup: Setup) -> Section:
    """The write amplification of each case at steady state, and its course."""
    results = [_found(records, case) for case in _cases(setup)]
    results = [result for result in results if result.mbps.value is not None]
    if not results:
        return Section(["No pattern has been measured yet."])
    told = any(result.waf.value is not None for result in results)
    numbers = [
        number(
            f"{result.case.title}: write amplification" + ("" if told else ", upper bound"),
            result.waf if told else result.bound,
            "x",
            "lower",
        )
        for result in results
    ]
    numbers += [
        number(f"{result.case.title}: over-provisioning by the closed form", result.spare, "%")
        for result in results
        if result.spare.value is not None
    ]
    sequential = records.cell("waf", REFERENCE)
    if sequential.value is not None:
        numbers.append(number("sequential writes: write amplification", sequential, "x", "lower"))
    courses = {result.case.title: _course(records, result.case) for result in results}
    return Section(
        [*_said(results, sequential, told), *_doubts(records, results)],
        numbers,
        [_table(setup, results)],
        charts(_figure(told, courses), _speeds(records, results)),
    )


def _table(setup: Setup, results: list[WafResult]) -> Table:
    known = {True: "yes", False: "no", None: "too short to tell"}
    return table(
        "Write amplification at steady state",
        results,
        {
            "writes": lambda one: PATTERNS[one.case.pattern],
            "part of the range": lambda one: (
                f"{one.case.share} % ({units.binary(setup.part(one.case.share))})"
            ),
            "steady": lambda one: known[one.steady],
            "drive writes": lambda one: Cell(one.writes, one.mbps.sources),
            "write amplification [x]": lambda one: one.waf,
            "sequential/random throughput [x]": lambda one: one.bound,
            "spare by the closed form [%]": lambda one: one.spare,
            "speed [MB/s]": lambda one: one.mbps,
        },
        "Drive writes count the fill. The ratio of throughputs is an upper bound of the write "
        "amplification where sequential writes are as fast as the flash; where the link, the host "
        "or an SLC cache sets their speed it says nothing. The spare is the over-provisioning at "
        "which FIFO or greedy collection of large blocks comes to that write amplification, of "
        "what was written.",
    )


def _figure(told: bool, courses: dict[str, list[tuple[float, Cell]]]) -> Figure:
    what = "Write amplification" if told else "Sequential/random throughput, a bound of the WA"
    steps = sources(cell for points in courses.values() for _, cell in points)
    label = "WA" if told else "ratio"
    return figure(what, "drive writes since the purge", label, courses, from_steps=steps)


def _speeds(records: Records, results: list[WafResult]) -> Figure:
    curves: dict[str, list[tuple[float, Cell]]] = {}
    for result in results:
        points = enumerate(_course(records, result.case), start=1)
        curves[result.case.title] = [
            (at, records.cell("mbps", in_round(place, result.case.key)))
            for place, (at, _) in points
        ]
    return figure("Speed", "drive writes since the purge", "MB/s", curves)


def _said(results: list[WafResult], sequential: Cell, told: bool) -> list[str]:
    if not told:
        said = [
            "The drive does not count what it programs: the ratios of sequential to random "
            "throughput are upper bounds of its write amplification, not measurements of it."
        ]
        return [*said, *(_sentence(result, result.bound.value, "at most") for result in results)]
    said = [_sentence(result, result.waf.value, "") for result in results]
    whole = next(
        (result for result in results if result.case.share == 100 and result.spare.value), None
    )
    if whole is not None:
        said.append(
            f"That of uniform writes over the whole range is that of {whole.spare.value:.3g} % "
            "over-provisioning with FIFO or greedy collection of large blocks."
        )
    if sequential.value is not None:
        said.append(f"Sequential writes: WA {sequential.value:.3g}.")
    return said


def _sentence(result: WafResult, value: float | None, bound: str) -> str:
    name = units.sentence(result.case.title).removesuffix(".")
    if value is None:
        return f"{name}: the write amplification is not known."
    return f"{name}: WA {bound} {value:.3g}, {units.speed(result.mbps.value)}.".replace("  ", " ")


def _doubts(records: Records, results: list[WafResult]) -> list[str]:
    return [
        f"{units.sentence(result.case.title).removesuffix('.')}: "
        f"{steady_report.sentence(records.rounds[result.case.key])}"
        for result in results
        if not result.steady and result.case.key in records.rounds
    ]


PROTOCOLS = procedure(
    "everyday",
    "waf",
    "Write amplification",
    "how many bytes a drive programs for each that is written, by pattern and spare area",
    "SSD-iq (Haas, Lee, Bonnet, Leis, VLDB 2025), with the steady state of the SNIA PTS",
    plan,
    judge,
    ProtocolParameter("patterns", ",".join(PATTERNS), f"what is written: {', '.join(PATTERNS)}"),
    ProtocolParameter("shares", "100,88,75", "percent of the range that uniform writes go to"),
    ProtocolParameter("bs", "4k", "size of the random writes"),
    ProtocolParameter("depth", 32, "writes in flight of each thread"),
    ProtocolParameter("threads", 4, "threads of the random writes", least=1),
    ProtocolParameter(
        "piece", 0.5, "drive writes between two readings of the counters", least=0.01
    ),
    ProtocolParameter("writes", 8.0, "drive writes at most of each pattern", least=1),
    ProtocolParameter("theta", 0.8, "exponent of the zipf distribution", least=0.01, most=10),
    ProtocolParameter(
        "hot", 10, "hot share, percent: 90 % of the writes go to 10 %", least=1, most=50
    ),
    ProtocolParameter("streams", 16, "sequential streams side by side", least=1),
)
