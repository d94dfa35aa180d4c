"""Blind twins as an answer: how near twins of random rigs come under loads not measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from ssdlab import units
from ssdlab.answer import (
    INTERVAL,
    Answer,
    Cell,
    Cells,
    Column,
    Number,
    Section,
    Table,
    columns,
)
from ssdlab.studies.blind import COLUMNS, Blind

NAMES = {"iops": "IOPS", "lat_mean_us": "mean latency", "clat_p99_us": "p99", "waf": "WA"}
AIMS = {"iops": 5.0, "lat_mean_us": 5.0, "clat_p99_us": 15.0, "waf": 5.0}
"""Median errors, percent, beyond which a self-test is not passed."""
COVERED = (85.0, 95.0)
DETERMINED = 6


def answer(done: Sequence[Blind], *, quick: bool) -> Answer:
    """Median errors over all rigs and loads, coverage of the intervals, what was determined."""
    errors = {name: [abs(e) for one in done for e in one.errors[name]] for name in COLUMNS}
    medians = {name: _percent(error) for name, error in errors.items()}
    inside = [hit for one in done for hit in one.inside]
    covered = 100 * sum(inside) / len(inside) if inside else None
    fewest = min((one.determined for one in done), default=0)
    said = units.listed(
        [f"{NAMES[name]} {value:.3g} %" for name, value in medians.items() if value is not None]
    )
    how = (
        "by what characterise concludes and closed forms"
        if quick
        else "fitted from what it concludes"
    )
    numbers = [
        *(Number(f"{NAMES[n]}, median error", value, "%", "lower") for n, value in medians.items()),
        Number("true values inside their intervals", covered, "%"),
        Number("parameters determined, fewest of a rig", float(fewest), "", "higher"),
    ]
    aims: list[Cells] = [
        [f"{NAMES[n]}, median error", Cell(value),
         Cell(None, text=f"at most {AIMS[n]:g} %", high=AIMS[n]),
         _kept(value is not None and value <= AIMS[n])]
        for n, value in medians.items()
    ]  # fmt: skip
    aims += [
        ["true values inside their intervals", Cell(covered),
         Cell(None, (), f"{COVERED[0]:g} to {COVERED[1]:g} %", *COVERED),
         _kept(covered is not None and COVERED[0] <= covered <= COVERED[1])],
        ["parameters determined, fewest of a rig", Cell(float(fewest)),
         Cell(None, text=f"at least {DETERMINED}", low=float(DETERMINED)),
         _kept(fewest >= DETERMINED)],
    ]  # fmt: skip
    rows: list[Cells] = [
        [
            str(one.number),
            *(Cell(_percent([abs(e) for e in one.errors[name]])) for name in COLUMNS),
            Cell(float(one.determined)),
            *(Cell(float(count)) for count in (sum(one.inside), len(one.inside))),
        ]
        for one in done
    ]
    heads = " | ".join(f"{NAMES[name]} [%]" for name in COLUMNS)
    tables = [
        Table(
            "Aims",
            [*columns("what | found"), Column("aim", parts=INTERVAL), Column("kept")],
            aims,
        ),
        Table(
            "Random rigs: median errors under loads not measured",
            columns(f"rig | {heads} | determined | inside their interval | parameters"),
            rows,
        ),
    ]
    first = f"{len(done)} blind twins, {how}: median errors of {said}."
    return Answer(title="Blind twins", kind="fit", sections=[Section([first], numbers, tables)])


def _percent(found: Sequence[float]) -> float | None:
    return 100 * math.expm1(statistics.median(found)) if found else None


def _kept(kept: bool) -> str:
    return "yes" if kept else "no"
