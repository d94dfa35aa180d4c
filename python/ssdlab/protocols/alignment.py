"""Alignment: the same requests on page boundaries, shifted by an odd sector, and anywhere."""

from __future__ import annotations

from ssdlab import units
from ssdlab.answer import Cell, Section
from ssdlab.engine.answers import CellGrid, Part, charts, grid, number, work_table
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import MIB, ProtocolParameter, Setup, short
from ssdlab.engine.steps import Idle, Job, Step
from ssdlab.errors import InputError

SECTOR = 512
OLD_PARTITION = 63 * SECTOR
"""Where partitions of the time before page-sized sectors began: seven eighths into a page."""
CASES = (
    ("aligned", "on boundaries of the block"),
    ("shifted", "as in a partition from sector 63"),
    ("anywhere", "on any sector of 512 bytes"),
)
"""Offsets of the requests: names in keys, and what they are."""
WAYS = (("read", "randread"), ("write", "randwrite"))
NOTICED = 5.0
"""A cost of fewer percent is none that anybody would notice."""


def plan(setup: Setup) -> list[Step]:
    """Fill, write everything once at random; then all cases again and again, so that drift of the
    drive does not look like a cost."""
    if setup.block > SECTOR:
        raise InputError(
            f"alignment: the target has logical blocks of {setup.block} bytes, so "
            "no request can lie across its pages; it needs a target with sectors of 512 bytes"
        )
    steps: list[Step] = [setup.fill(), setup.used("4k")]
    for turn in range(1, setup.count("turns") + 1):
        # What is still to be collected would slow the first reads down.
        steps.append(
            Idle(f"turn{turn}/rest", "let it finish what it is doing", seconds=setup.seconds(60))
        )
        for way, rw in WAYS:
            for size in setup.blocks():
                # Each case is first once in three turns: what went before must not favour one.
                first = (turn - 1) % len(CASES)
                order = (*CASES[first:], *CASES[:first])
                steps += [_job(setup, turn, way, rw, size, case) for case, _ in order]
    return steps


def _key(turn: int, way: str, size: int, case: str) -> str:
    return f"turn{turn}/{way}-{short(size)}-{case}"


def _keys(setup: Setup, way: str, size: int, case: str) -> list[str]:
    return [_key(turn, way, size, case) for turn in range(1, setup.count("turns") + 1)]


def _job(setup: Setup, turn: int, way: str, rw: str, size: int, case: str) -> Job:
    shift = OLD_PARTITION if case == "shifted" else 0
    return setup.timed(
        _key(turn, way, size, case),
        f"random {way}s of {units.binary(size)} {dict(CASES)[case]}",
        rw,
        short(size),
        region=(shift, setup.active - MIB),
        options={"ba": SECTOR} if case == "anywhere" else None,
    )


def judge(records: Records, setup: Setup) -> Section:
    """What each case loses against requests on boundaries."""
    sizes = setup.blocks()
    numbers, parts = [], []
    lost, spreads = {}, {}
    told: dict[str, list[tuple[float, str]]] = {}
    for way, _ in WAYS:
        for size in sizes:
            base = [records.iops(key) for key in _keys(setup, way, size, "aligned")]
            for case, title in CASES:
                name = f"random {way}s of {units.binary(size)} {title}"
                keys = _keys(setup, way, size, case)
                rates = [records.iops(key) for key in keys]
                cost, spread = _cost(rates, base) if case != "aligned" else (None, None)
                parts.append(Part(keys, None, name))
                lost[name], spreads[name] = (Cell(one, tuple(keys)) for one in (cost, spread))
                if cost is None:
                    continue
                numbers.append(number(f"{name}: lost", lost[name], "%", "lower"))
                if cost > max(NOTICED, spread or 0.0):
                    told.setdefault(way, []).append((cost, name))
    if not numbers:
        return Section(["Requests on and off boundaries have not both been measured yet."])
    blocks, cases = {size: units.binary(size) for size in sizes}, dict(CASES)

    def rates_of(way: str) -> CellGrid:
        return grid(blocks, cases, lambda s, case: records.cell("iops", _keys(setup, way, s, case)))

    group = "Operations by where requests begin"
    figures = charts(
        *(
            rates_of(way).figure(f"Random {way}s", "block", "IOPS", style="bars", group=group)
            for way, _ in WAYS
        )
    )
    table = work_table(
        records,
        parts,
        "iops mean p99",
        title="What misalignment costs",
        corner="requests",
        more={"lost [%]": lost, "+- over the turns [%]": spreads},
    )
    return Section(_said(told), numbers, [table], figures)


def _said(told: dict[str, list[tuple[float, str]]]) -> list[str]:
    if not told:
        return [
            f"Requests off the boundaries cost this drive less than {NOTICED:.0f} %, or no more "
            "than the measurements scatter: its controller absorbs them."
        ]
    said = []
    for way, _ in reversed(WAYS):
        if way in told:
            cost, name = max(told[way])
            said.append(
                f"{units.sentence(name)[:-1]} lose {cost:.0f} % of the speed that they have on "
                f"boundaries; that is the most that {way}s lose."
            )
        else:
            said.append(f"Random {way}s lose nothing that would be noticed off the boundaries.")
    return [
        *said,
        "A request that lies across pages takes two of them: read both, or read and rewrite both. "
        "Partitions that begin on a MiB boundary avoid it.",
    ]


def _cost(rates: list[float | None], base: list[float | None]) -> tuple[float | None, float | None]:
    """Percent lost against the aligned requests of the same turn: mean, and half of the range."""
    lost = [
        100 * (1 - rate / aligned)
        for rate, aligned in zip(rates, base, strict=True)
        if rate is not None and aligned
    ]
    if not lost:
        return None, None
    return sum(lost) / len(lost), (max(lost) - min(lost)) / 2 if len(lost) > 1 else None


PROTOCOLS = procedure(
    "article",
    "alignment",
    "Alignment",
    "what requests cost that do not begin on page boundaries",
    "KomputerPress 9/2010, Intel X25-M G2 with IOmeter (the text on alignment)",
    plan,
    judge,
    ProtocolParameter("blocks", "4k,8k,16k,64k", "block sizes"),
    ProtocolParameter("depth", 4, "I/Os in flight"),
    ProtocolParameter("seconds", 60.0, "time for each case and turn"),
    ProtocolParameter("turns", 3, "how often all cases are measured", least=1),
)
