"""Which measurements a twin is fitted to, and which others it then has to predict."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from ssdlab.fits.observations import FitWorkload, Observation, rows

GIB = 1 << 30


@dataclass(frozen=True)
class TwinCase:
    """A drive, what is known of it, and what is asked."""

    name: str
    drive: str
    """Whose rows are fitted."""
    capacity: int
    members: int = 1
    """Of a RAID 0 whose rows are asked for."""
    asked: str = ""
    """Whose rows are to be predicted, if not those of the drive itself."""

    def known(self, load: FitWorkload) -> bool:
        """Whether a row of the drive is fitted to; the others are to be predicted."""
        return KNOWN[self.name.partition(",")[0]](load)


KNOWN: Mapping[str, Callable[[FitWorkload], bool]] = {
    "one job": lambda load: load.numjobs == 1,
    "shallow": lambda load: load.depth <= 8,
    "deep": lambda load: load.depth > 8,
    "4 KiB": lambda load: load.bs == 4096,
    "two namespaces": lambda load: load.namespace in (745 * GIB, 372 * GIB),
    "reads and writes": lambda load: load.rwmixread is None,
    "two threads": lambda load: load.numjobs <= 2,
    "one drive": lambda _load: True,
}
"""Which rows are fitted to, by how the name of a case begins."""
PROFILES = {
    "s4610-ahci": "intel-dc-s4610-480", "pm883-ahci": "samsung-pm883-480",
    "860-pro-hba": "samsung-860-pro-512", "mx200-sata-300": "crucial-mx200-250",
    "980-pro-jobs": "samsung-980-pro-1000", "980-pro-sizes": "samsung-980-pro-1000",
    "7450": "micron-7450-960", "p4610": "intel-dc-p4610-1600",
}  # fmt: skip
"""Their shipped profiles, which no twin starts from: they have numbers of these measurements."""
SATA = (("s4610-ahci", 480), ("pm883-ahci", 480), ("860-pro-hba", 512), ("mx200-sata-300", 250))
CASES = (
    *(TwinCase("one job, several", name, gb * 10**9) for name, gb in SATA),
    TwinCase("one job, several", "980-pro-jobs", 10**12),
    *(TwinCase("shallow, deep", name, gb * 10**9) for name, gb in SATA),
    *(TwinCase("deep, shallow", name, gb * 10**9) for name, gb in SATA),
    TwinCase("4 KiB, other sizes", "980-pro-sizes", 10**12),
    TwinCase("two namespaces, others", "7450", 960 * 10**9),
    TwinCase("reads and writes, mixes", "p4610", 1600 * 10**9),
    TwinCase("reads and writes, mixes", "p5800x", 800 * 10**9),
    TwinCase("two threads, more", "p5800x", 800 * 10**9),
    TwinCase("one drive, two", "p5800x", 800 * 10**9, 2, "p5800x-x2"),
    TwinCase("one drive, four", "p5800x", 800 * 10**9, 4, "p5800x-x4"),
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


def known(case: TwinCase) -> list[Observation]:
    """What a twin is fitted to."""
    return [observation for observation in measured()[case.drive] if case.known(observation.load)]


def asked(case: TwinCase) -> list[Observation]:
    """What it has to predict."""
    if case.asked:
        return measured()[case.asked]
    return [
        observation for observation in measured()[case.drive] if not case.known(observation.load)
    ]


def interpolated(fitted: Sequence[Observation], load: FitWorkload, column: str) -> float | None:
    """A number by plain interpolation in logarithms, or extrapolation by the last two points, over
    the depth (of WA: the namespace), between the measured rows that are most alike otherwise."""
    own = [observation for observation in fitted if column in observation.measured]
    if not own:
        return None

    def unlike(observation: Observation) -> tuple[float, ...]:
        other = observation.load
        return (
            other.sequential != load.sequential,
            abs(other.reads - load.reads),
            abs(math.log2(other.bs / load.bs)),
        )

    def place(workload: FitWorkload) -> float:
        size = workload.namespace or 2**40
        return math.log(size) if column == "waf" or load.namespace else math.log(workload.depth)

    if load.rwmixread is not None and not any(
        observation.load.rwmixread == load.rwmixread for observation in own
    ):
        ends = [
            [observation for observation in own if observation.load.reads == side]
            for side in (0.0, 1.0)
        ]
        if all(ends):
            write, read = (_line(end, place, load, column) for end in ends)
            return float(np.exp((1 - load.reads) * np.log(write) + load.reads * np.log(read)))
    nearest = min(map(unlike, own))
    return _line(
        [observation for observation in own if unlike(observation) == nearest], place, load, column
    )


def _line(
    own: Sequence[Observation],
    place: Callable[[FitWorkload], float],
    load: FitWorkload,
    column: str,
) -> float:
    found: dict[float, list[float]] = {}
    for observation in own:
        found.setdefault(place(observation.load), []).append(math.log(observation.measured[column]))
    x = np.array(sorted(found))
    y = np.array([np.mean(found[one]) for one in x.tolist()])
    at = place(load)
    if len(x) > 1 and at > x[-1]:
        return float(np.exp(y[-1] + (at - x[-1]) * (y[-1] - y[-2]) / (x[-1] - x[-2])))
    if len(x) > 1 and at < x[0]:
        return float(np.exp(y[0] + (at - x[0]) * (y[1] - y[0]) / (x[1] - x[0])))
    return float(np.exp(np.interp(at, x, y)))
