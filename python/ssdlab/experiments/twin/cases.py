"""Which measurements a twin is fitted to, and which others it then has to predict."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from ssdlab.fits.observations import Load, Observation, rows

GIB = 1 << 30


@dataclass(frozen=True)
class Case:
    """A drive, what is known of it, and what is asked."""

    name: str
    drive: str
    """Whose rows are fitted."""
    capacity: int
    known: Callable[[Load], bool]
    """Of the drive's rows: those to fit to; the others are to be predicted."""
    neighbours: bool
    """Whether measured neighbours answer: there interpolation does well, too."""
    members: int = 1
    """Of a RAID 0 whose rows are asked for."""
    asked: str = ""
    """Whose rows are to be predicted, if not those of the drive itself."""


def _one_job(load: Load) -> bool:
    return load.numjobs == 1


def _shallow(load: Load) -> bool:
    return load.depth <= 8


def _deep(load: Load) -> bool:
    return load.depth > 8


def _small(load: Load) -> bool:
    return load.bs == 4096


def _two_namespaces(load: Load) -> bool:
    return load.namespace in (745 * GIB, 372 * GIB)


def _no_mix(load: Load) -> bool:
    return load.rwmixread is None


def _few_threads(load: Load) -> bool:
    return load.numjobs <= 2


SATA = (("s4610-ahci", 480), ("pm883-ahci", 480), ("860-pro-hba", 512), ("mx200-sata-300", 250))
CASES = (
    *(Case("one job, several", name, gb * 10**9, _one_job, True) for name, gb in SATA),
    Case("one job, several", "980-pro-jobs", 10**12, _one_job, True),
    *(Case("shallow, deep", name, gb * 10**9, _shallow, False) for name, gb in SATA),
    *(Case("deep, shallow", name, gb * 10**9, _deep, False) for name, gb in SATA),
    Case("4 KiB, other sizes", "980-pro-sizes", 10**12, _small, False),
    Case("two namespaces, others", "7450", 960 * 10**9, _two_namespaces, False),
    Case("reads and writes, mixes", "p4610", 1600 * 10**9, _no_mix, True),
    Case("reads and writes, mixes", "p5800x", 800 * 10**9, _no_mix, True),
    Case("two threads, more", "p5800x", 800 * 10**9, _few_threads, False),
    Case("one drive, two", "p5800x", 800 * 10**9, lambda _: True, False, 2, "p5800x-x2"),
    Case("one drive, four", "p5800x", 800 * 10**9, lambda _: True, False, 4, "p5800x-x4"),
)
"""By regions, since points between measured ones are easy."""


@cache
def measured() -> dict[str, list[Observation]]:
    """What was measured, by drive (`measured.csv`)."""
    import polars as pl

    text = (resources.files(__package__) / "measured.csv").read_text("utf-8")
    table = pl.read_csv(io.StringIO(text), infer_schema=False)
    return {
        str(drive[0]): rows(own.drop("drive"), str(drive[0]))
        for drive, own in table.group_by("drive", maintain_order=True)
    }


def known(case: Case) -> list[Observation]:
    """What a twin is fitted to."""
    return [one for one in measured()[case.drive] if case.known(one.load)]


def asked(case: Case) -> list[Observation]:
    """What it has to predict."""
    if case.asked:
        return measured()[case.asked]
    return [one for one in measured()[case.drive] if not case.known(one.load)]


def interpolated(fitted: Sequence[Observation], load: Load, column: str) -> float | None:
    """A number by plain interpolation in logarithms, or extrapolation by the last two points, over
    the depth (of WA: the namespace), between the measured rows that are most alike otherwise."""
    own = [one for one in fitted if column in one.measured]
    if not own:
        return None

    def unlike(one: Observation) -> tuple[float, ...]:
        other = one.load
        return (
            other.sequential != load.sequential,
            abs(other.reads - load.reads),
            abs(math.log2(other.bs / load.bs)),
        )

    def place(one: Load) -> float:
        size = one.namespace or 2**40
        return math.log(size) if column == "waf" or load.namespace else math.log(one.depth)

    if load.rwmixread is not None and not any(one.load.rwmixread == load.rwmixread for one in own):
        ends = [[one for one in own if one.load.reads == side] for side in (0.0, 1.0)]
        if all(ends):
            write, read = (_line(end, place, load, column) for end in ends)
            return float(np.exp((1 - load.reads) * np.log(write) + load.reads * np.log(read)))
    nearest = min(map(unlike, own))
    return _line([one for one in own if unlike(one) == nearest], place, load, column)


def _line(
    own: Sequence[Observation], place: Callable[[Load], float], load: Load, column: str
) -> float:
    found: dict[float, list[float]] = {}
    for one in own:
        found.setdefault(place(one.load), []).append(math.log(one.measured[column]))
    x = np.array(sorted(found))
    y = np.array([np.mean(found[one]) for one in x.tolist()])
    at = place(load)
    if len(x) > 1 and at > x[-1]:
        return float(np.exp(y[-1] + (at - x[-1]) * (y[-1] - y[-2]) / (x[-1] - x[-2])))
    if len(x) > 1 and at < x[0]:
        return float(np.exp(y[0] + (at - x[0]) * (y[1] - y[0]) / (x[1] - x[0])))
    return float(np.exp(np.interp(at, x, y)))
