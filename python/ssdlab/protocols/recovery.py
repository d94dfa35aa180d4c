"""Recovery: random writes fresh, used, after idle time, after TRIM of everything."""

from __future__ import annotations

from ssdlab import units
from ssdlab.answer import Cell, Section
from ssdlab.engine.answers import Part, both_scales, number, percent, sources, work_table
from ssdlab.engine.protocol import procedure
from ssdlab.engine.records import Records
from ssdlab.engine.setup import ProtocolParameter, Setup
from ssdlab.engine.steps import Idle, Job, Purge, Step, Trim

STATES = (
    ("fresh", "fresh"),
    ("used", "after everything was written twice"),
    ("rested", "after idle time"),
    ("trimmed", "after TRIM of everything"),
)
"""Keys of the measurements in the order of the run."""
RESTORED = 80.0
"""Percent of what was lost from which on a state counts as restored."""
NOTHING = 10.0
"""Percent of what was lost below which nothing came back."""
HELD = 90.0
"""A used drive with so many percent of its fresh speed has lost nothing worth restoring."""


def plan(setup: Setup) -> list[Step]:
    """Purge and measure; write everything twice and measure; idle and measure; TRIM and measure."""
    return [
        Purge(),
        _measure(setup, "fresh"),
        # Random writes alone leave a seventh of it unwritten after as much as twice the range.
        setup.fill(),
        _again(setup),
        _measure(setup, "used"),
        Idle("idle", "leave it alone", seconds=setup.seconds(60 * setup.number("idle_minutes"))),
        _measure(setup, "rested"),
        Trim("trim", length=setup.active),
        _measure(setup, "trimmed"),
    ]


def _measure(setup: Setup, key: str) -> Job:
    return setup.timed(key, f"random writes, {dict(STATES)[key]}", "randwrite", setup.text("bs"))


def _again(setup: Setup) -> Job:
    ordered = setup.text("wear") != "random"
    return setup.used(
        "128k" if ordered else setup.text("bs"),
        key="again",
        rw="write" if ordered else "randwrite",
        depth=setup.count("depth"),
    )


def judge(records: Records, setup: Setup) -> Section:
    """How much of the fresh speed is left, and how much idle time and TRIM bring back."""
    rates = {key: records.cell("iops", key, "write") for key, _ in STATES}
    back = {key: _returned(rates, key) for key in ("rested", "trimmed")}
    curves, slowest = {}, {}
    for key, title in STATES:
        series = records.series(key, "write")
        slowest[title] = Cell(None if series is None else float(series.iops.min()), (key,))
        curves[title] = () if series is None else [*zip(series.time, series.iops, strict=True)]
    numbers = [
        *(number(title, rates[key], "IOPS", "higher") for key, title in STATES),
        number("loss restored by idle time", back["rested"], "%", "higher"),
        number("loss restored by TRIM", back["trimmed"], "%", "higher"),
    ]
    figures = both_scales(
        "Random writes by state", "time, s", "IOPS", curves, style="line", from_steps=rates
    )
    table = work_table(
        records,
        [Part(key, "write", title) for key, title in STATES],
        "iops mbps mean p99.9 max",
        title="Random writes by state of the drive",
        corner="state",
        more={
            "of fresh [%]": {title: percent(rates[key], rates["fresh"]) for key, title in STATES},
            "of the loss restored [%]": {dict(STATES)[key]: cell for key, cell in back.items()},
            "slowest interval [IOPS]": slowest,
        },
    )
    said = _said(rates, {key: cell.value for key, cell in back.items()}, setup)
    return Section(said, numbers, [table], figures)


def _returned(rates: dict[str, Cell], key: str) -> Cell:
    """Percent of the loss from fresh to used that is there again."""
    three = [rates[one] for one in (key, "fresh", "used")]
    now, fresh, used = (cell.value for cell in three)
    back = None
    if now is not None and fresh is not None and used is not None and used < fresh * HELD / 100:
        back = 100 * (now - used) / (fresh - used)
    return Cell(back, sources(three))


def _said(rates: dict[str, Cell], back: dict[str, float | None], setup: Setup) -> list[str]:
    kept = percent(rates["used"], rates["fresh"]).value
    if kept is None:
        return ["Random writes on the fresh and on the used drive have not both been measured yet."]
    if kept >= 100:
        said = ["The used drive writes no slower than the fresh one: nothing is there to restore."]
    elif kept >= HELD:
        said = [f"Use costs this drive little: {kept:.0f} % of its fresh speed is left."]
    else:
        said = [
            f"Once everything was written twice, {kept:.0f} % of the fresh speed is left "
            f"({units.number(rates['used'].value or 0)} of {units.iops(rates['fresh'].value)})."
        ]
    rest = units.duration(setup.seconds(60 * setup.number("idle_minutes")))
    # Drives that erase in idle time alone come back only after a rest, as one with an SLC cache.
    causes = {
        "rested": f"Leaving the drive alone for {rest}",
        "trimmed": "TRIM, with no rest after it,",
    }
    for key, cause in causes.items():
        share = back[key]
        if share is None:
            continue
        if share >= RESTORED:
            said.append(f"{cause} restores the drive: {share:.0f} % of the loss is made good.")
        elif share <= NOTHING:
            said.append(
                f"{cause} restores nothing to speak of ({max(share, 0):.0f} % of the loss)."
            )
        else:
            said.append(f"{cause} restores a part: {share:.0f} % of the loss.")
    if rates["trimmed"].value is None:
        said.append("What TRIM restores has not been measured.")
    return said


PROTOCOLS = procedure(
    "article",
    "recovery",
    "Degradation and recovery",
    "how far random writes fall on a used drive, and whether rest and TRIM restore it",
    "the degradation test of reviews of two SF-2281 drives in RAID 0, after SNIA PTS",
    plan,
    judge,
    ProtocolParameter("bs", "4k", "size of the writes"),
    ProtocolParameter("depth", 32, "writes in flight"),
    ProtocolParameter("seconds", 60.0, "length of each measurement"),
    ProtocolParameter("idle_minutes", 30.0, "minutes that the drive is left alone"),
    ProtocolParameter(
        "wear",
        "random",
        "how everything is written the second time: at random or sequentially",
        ("random", "sequential"),
    ),
    trims=True,
)
