"""What a run is worth: a name for each number of its rows, and of its rig."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ssdlab.errors import InputError, meant
from ssdlab.histogram import KINDS
from ssdlab.results import DIRECTIONS, SYNC
from ssdlab.sweeps import facts
from ssdlab.sweeps.formula import FormulaValue
from ssdlab.sweeps.plan import PRICE

SHARES = ("mean", "p50", "p99", "p999", "p9999", "p99999", "max")
RATES = ("iops", "bw_bytes", "ios", "bytes")
"""Of several jobs and directions together: the sum."""
LEAST = ("endurance_bytes", "dwpd_5_years")
"""The least; of all others the largest, so of latencies the worst."""
HIGHER = (*RATES, *LEAST, "usable", "capacity")
"""Better high; all others are better low."""
ALIASES: Mapping[str, str] = {
    "bw": "bw_bytes",
    "endurance": "endurance_bytes",
    "dwpd": "dwpd_5_years",
    **{share: f"clat_{share}_ns" for share in SHARES},
    **{f"{kind}_{share}": f"{kind}_{share}_ns" for kind in KINDS for share in SHARES},
}
MEASURED = (*RATES, *LEAST, "waf", *(f"{k}_{s}_ns" for k in KINDS for s in SHARES))
KNOWN = (*facts.FACTS, PRICE)
"""Of the rig, before anything runs."""


@dataclass(frozen=True)
class Goal:
    """A measure, and which way it is good."""

    name: str
    """As it was given, without the way."""
    higher: bool

    @property
    def measure(self) -> str:
        """Its name in the table or among the facts of a rig."""
        return _full(self.name)


def names() -> list[str]:
    """Every name of a measure; ``read.``, ``write.`` ... before one of a run is that direction's
    alone."""
    of_run = [*MEASURED, *ALIASES]
    return [*of_run, *KNOWN, *(f"{d}.{name}" for d in (*DIRECTIONS, SYNC) for name in of_run)]


def goal(text: str) -> Goal:
    """``waf``, or with the way ``max:iops``, ``min:read.p99``; InputError where there is no such
    measure."""
    way, colon, name = text.strip().rpartition(":")
    if colon and way not in ("min", "max"):
        raise InputError(f'--search "{text}": expected MEASURE, min:MEASURE or max:MEASURE')
    known = names()
    if name not in known:
        hint = meant(name, known, 'did you mean "{}"?')
        hint = hint or f"such as {', '.join(known[:4])}, waf or p99"
        raise InputError(f'--search: no measure is called "{name}", {hint}')
    measure = _full(name).rpartition(".")[2]
    return Goal(name, way == "max" if way else measure in HIGHER)


def unit(name: str) -> str:
    """Its unit: ``"ns"``, ``"B"``, ``"IOPS"`` or none."""
    measure = _full(name).rpartition(".")[2]
    if measure.endswith("_ns"):
        return "ns"
    if measure == "iops":
        return "IOPS"
    return "B" if measure.endswith("bytes") or measure in ("capacity", "usable", "memory") else ""


def from_bins(name: str) -> bool:
    """Whether it is a percentile, which is known no finer than fio's bins."""
    return "_p9" in (measure := _full(name)) or "_p50" in measure


def sample(name: str) -> FormulaValue | None:
    """A value of the kind that a measure of a run has; None where it is none."""
    if _full(name).rpartition(".")[2] not in MEASURED:
        return None
    kind = unit(name)
    return FormulaValue(1.0, "" if kind == "IOPS" else kind)


def measured(rows: Sequence[Mapping[str, Any]], name: str) -> FormulaValue | None:
    """What the rows of a run say of a measure; None where they do not."""
    ddir, _, measure = _full(name).rpartition(".")
    # Syncs are no I/Os that rates count, but take as long as they take.
    of_all = (*DIRECTIONS, *(() if measure in RATES else (SYNC,)))
    own = [row for row in rows if row["ddir"] in ([ddir] if ddir else of_all)]
    found = [float(row[measure]) for row in own if row.get(measure) is not None]
    if not found:
        return None
    of: Mapping[str, Callable[[list[float]], float]] = {"sum": sum, "min": min, "max": max}
    kind = unit(measure)
    return FormulaValue(of[together(measure)](found), "" if kind == "IOPS" else kind)


def together(measure: str) -> Literal["sum", "min", "max"]:
    """What a measure of a run is, of those of its jobs and directions."""
    return "sum" if measure in RATES else "min" if measure in LEAST else "max"


def _full(name: str) -> str:
    ddir, dot, measure = name.rpartition(".")
    return f"{ddir}{dot}{ALIASES.get(measure, measure)}"
