"""A twin: the rig that a fit leaves, as a file that any command takes, with what it rests on.

Values that the data determine say so in their source, with their 90 % interval. The table ``fit``
beside the device has what predictions need besides: how sure the parameters are, by how much the
twin is off where it was not fitted, and which workloads it was fitted to. No measured number is
kept.
"""

from __future__ import annotations

import contextlib
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from ssdlab import _core
from ssdlab.errors import InputError
from ssdlab.fits.observations import MEASURED, FitWorkload, Observation
from ssdlab.fits.parameters import FITTED, PARAMETERS, FitParameter, sata
from ssdlab.fits.search import MEANS, SearchEnd, regions
from ssdlab.numeric import Floats
from ssdlab.rig import resolve
from ssdlab.target import Sim, sim

Z90 = 1.645
"""Standard deviations of a 90 % interval."""
AWAY = {
    "size": 0.26,
    "deeper": 0.095,
    "shallower": 0.18,
    "jobs": 0.043,
    "pattern": 0.23,
    "state": 0.34,
    "namespace": 0.06,
}
"""What a doubling (of the pattern and the state: another one) adds to how unsure a twin is of a
rate: standard deviations whose squares add up. As likely as can be by what twins miss of eight
measured drives, and all wider by the factor by which, each drive left out in turn, nine numbers in
ten or more lie inside (docs/fit.md). That of the namespace is a judgement by the one drive that was
measured at several sizes, so how often that drive lies inside proves nothing of it."""
LEFT_OPEN = 0.35
"""The same of the spread that parameters left open give in closed form: they are not as widely
apart in drives as their priors are made."""
KNOWN = 0.6
"""A parameter is determined where its spread is less than this share of the prior's, before
benchmarks."""
TRADE_OFF = 0.9
"""Correlation from which two parameters trade off."""
CROWD = {"clat_p50_us": 0.45, "clat_p99_us": 1.3}
"""The same of percentiles where several jobs share the queue of SATA as none that was measured did:
whose request is next is the host's doing. Nine in ten of 1 700 percentiles of three drives at four
hosts (fio-plot) lie inside."""
LEAST_ERROR = {"iops": 0.08, "lat_mean_us": 0.08, "clat_mean_us": 0.08, "clat_p50_us": 0.15,
               "clat_p99_us": 0.3, "waf": 0.015}  # fmt: skip
"""Of predictions beside the best of measurements, as a logarithm."""
UNTRIED_ERROR = {"iops": 0.3, "lat_mean_us": 0.3, "clat_mean_us": 0.3, "clat_p50_us": 0.35,
                 "clat_p99_us": 0.6, "waf": 0.1}  # fmt: skip
"""Of columns that nothing was fitted to."""
UNTIMED_ERROR = 0.8
"""Of rates and times where only write amplification is known: drives of any kind do it alike."""


@dataclass(frozen=True)
class Region:
    """Workloads of one kind that a twin was fitted to."""

    rw: str
    state: str
    bs: Annotated[tuple[Annotated[int, Field(gt=0)], ...], Field(min_length=1)]
    """Every size."""
    depth: tuple[int, int]
    numjobs: tuple[int, int]
    columns: tuple[str, ...]
    """What was measured of them."""
    namespace: tuple[int, int] = (0, 0)
    """Bytes; 0 where it is not known."""
    held: int = 0
    """Requests that were at the drive at most where a single job's processor was its ceiling: more
    jobs than that take the drive deeper. 0 where that is not known."""

    def away(self, load: FitWorkload) -> dict[str, float]:
        """How far a workload is outside, by the keys of :data:`AWAY`, in doublings."""
        more = self.held and load.numjobs > self.numjobs[1]
        deepest = self.held if more else self.depth[1]
        return {
            "size": min(abs(math.log2(load.bs / one)) for one in self.bs),
            "deeper": max(0.0, math.log2(load.depth / deepest)),
            "shallower": max(0.0, math.log2(self.depth[0] / load.depth)),
            "jobs": _outside(load.numjobs, self.numjobs),
            "pattern": float(load.rw != self.rw),
            "state": float(load.state != self.state),
            "namespace": (
                _outside(load.namespace, self.namespace)
                if load.namespace and self.namespace[0]
                else 0.0
            ),
        }


def _outside(value: float, span: tuple[int, int]) -> float:
    low, high = span
    return max(0.0, math.log2(low / value), math.log2(value / high))


def _value(value: object) -> str:
    """A text, whole number or list as TOML has it: as JSON, but without pairs of escapes."""
    return json.dumps(value, ensure_ascii=False)


def _toml(of: Basis | Region, *names: str) -> list[str]:
    """Fields as lines of TOML."""
    return [f"{name} = {_value(getattr(of, name))}" for name in names]


@dataclass(frozen=True)
class Basis:
    """What a twin's values rest on."""

    sources: tuple[str, ...] = ()
    observations: int = 0
    start: str = ""
    seed: int = 1
    submission_us: float = 0.0
    keys: tuple[str, ...] = ()
    covariance: tuple[tuple[float, ...], ...] = ()
    """Of the logarithms of the values of ``keys``."""
    error: Mapping[str, float] = field(default_factory=dict)
    """By column: standard deviation of the logarithm of predicted by measured, of what was fitted
    to."""
    regions: tuple[Region, ...] = ()

    def parameters(self) -> list[FitParameter]:
        """Those that were fitted."""
        known = {parameter.key: parameter for parameter in PARAMETERS}
        return [known[key] for key in self.keys if key in known]

    def spread(
        self, load: FitWorkload, column: str, left_open: float = 0.0, one_queue: bool = False
    ) -> float:
        """Standard deviation of the logarithm of what a prediction is off by: more for columns and
        workloads further from what the twin was fitted to, where the parameters that were left
        open change a rate by ``left_open``, and where jobs have but ``one_queue``."""
        alike = MEANS if column in MEANS else (column,)
        own = [region for region in self.regions if set(alike) & set(region.columns)]
        known = [self.error[name] for name in alike if name in self.error]
        least = max([*known[:1], LEAST_ERROR[column]])
        if not own:
            timed = column == "waf" or any(set(region.columns) - {"waf"} for region in self.regions)
            untried = max(least, UNTRIED_ERROR[column]) if timed else UNTIMED_ERROR
            return math.hypot(untried, LEFT_OPEN * left_open)
        wider = UNTRIED_ERROR[column] / UNTRIED_ERROR["iops"]
        apart = [region.away(load) for region in own]
        away = wider**2 * min(
            sum(AWAY[kind] ** 2 * far for kind, far in one.items()) for one in apart
        )
        unlike = load.numjobs > 1 and all(one["jobs"] or one["deeper"] for one in apart)
        crowd = CROWD.get(column, 0.0) if one_queue and unlike else 0.0
        return math.sqrt(least**2 + away + (LEFT_OPEN * left_open) ** 2 + crowd**2)

    def as_toml(self) -> str:
        """The table ``fit``."""
        lines = [
            "[fit]",
            *_toml(self, "sources", "observations", "start", "seed"),
            f"submission_us = {self.submission_us:.4g}",
            *_toml(self, "keys"),
            "# Covariance of the logarithms of their values:",
            "covariance = [",
            *(f"    [{', '.join(f'{x:.4g}' for x in row)}]," for row in self.covariance),
            "]",
            "",
            "# Standard deviations of the logarithm of predicted / measured, where it was fitted:",
            "[fit.error]",
            *(f"{name} = {value:.4g}" for name, value in self.error.items()),
        ]
        for region in self.regions:
            lines += ["", "[[fit.regions]]", *_toml(region, *(one.name for one in fields(region)))]
        return "\n".join(lines) + "\n"

    @staticmethod
    def of_toml(table: Mapping[str, Any], where: str) -> Basis:
        """The table as it was read; raises InputError where it is none."""
        with contextlib.suppress(ValidationError):
            found = _BASIS.validate_python(table)
            sizes = {len(found.covariance), *map(len, found.covariance)}
            if table.keys() >= _NEEDED and sizes <= {len(found.keys)}:
                return found
        raise InputError(f"{where}: its table [fit] is not one that ssdlab wrote")


_NEEDED = {one.name for one in fields(Basis)} - {"regions"}
_BASIS = TypeAdapter(Basis)


@dataclass(frozen=True)
class Twin:
    """A rig and what it rests on."""

    name: str
    rig: str
    """TOML, without the table ``fit``."""
    basis: Basis

    @property
    def text(self) -> str:
        """It as a file."""
        return f"{self.rig.rstrip()}\n\n{self.basis.as_toml()}"

    def vector(self) -> Floats:
        """Logarithms of the fitted values."""
        rig = _core.Rig(self.rig, rig_name=self.name)
        return np.log([parameter.read(rig) for parameter in self.basis.parameters()])

    @staticmethod
    def load(place: str) -> Twin:
        """A twin's file, or any other simulated drive; InputError where it is none."""
        target = sim(resolve(place))
        if target is None:
            raise InputError(f"{place}: expected a rig file (.toml) such as `ssdlab fit` writes")
        return Twin.of(target, place)

    @staticmethod
    def of(target: Sim, place: str = "") -> Twin:
        """A simulated drive as a twin; InputError where its table ``fit`` is wrong."""
        place = place or target.name
        rig = _core.Rig(target.rig, rig_name=place)
        table = tomllib.loads(target.rig).get("fit")
        if table is None:
            present = [parameter for parameter in PARAMETERS if rig.get(parameter.key) is not None]
            keys = tuple(parameter.key for parameter in present)
            diagonal = np.diag([parameter.width**2 for parameter in present]).tolist()
            return Twin(
                rig.name, rig.to_toml(), Basis(keys=keys, covariance=tuple(map(tuple, diagonal)))
            )
        return Twin(rig.name, rig.to_toml(), Basis.of_toml(table, place))


@dataclass(frozen=True)
class JudgedParameter:
    """A parameter after a fit."""

    parameter: FitParameter
    value: float
    low: float
    high: float
    """Ends of its 90 % interval."""
    determined: bool
    """Whether the data say more of it than was known; not of one that is at its bound."""
    with_: tuple[str, ...]
    """Names of those that it trades off with: the data tell a combination of them."""
    shown_by: tuple[int, ...]
    """Places of the observations that determine it most, the most important first."""


def judged(end: SearchEnd) -> list[JudgedParameter]:
    """The parameters of a fit, with their intervals."""
    covariance = end.covariance()
    spread = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(spread, spread)
    pull = np.abs(end.jacobian) * np.sqrt(end.weights)[:, None]
    bounds = np.array(end.space.bounds)
    answers = []
    for place, parameter in enumerate(end.space.parameters):
        value = float(np.exp(end.vector[place]))
        off = math.hypot(spread[place], end.among.get(parameter.key, 0.0))
        partners = np.flatnonzero(np.abs(correlation[place]) > TRADE_OFF)
        strongest = [int(row) for row in np.argsort(-pull[:, place])[:3] if pull[row, place] > 0]
        answers.append(
            JudgedParameter(
                parameter, value, value * math.exp(-Z90 * off), value * math.exp(Z90 * off),
                off < KNOWN * parameter.beforehand and end.vector[place] not in bounds[:, place],
                tuple(end.space.parameters[int(i)].name for i in partners if i != place),
                tuple(dict.fromkeys(end.target.rows[row] for row in strongest)),
            )
        )  # fmt: skip
    return answers


def held_out(end: SearchEnd, observed: Sequence[Observation]) -> Floats:
    """Natural logarithms of predicted / measured of each entry, by a fit without its region."""
    left = np.array(end.errors)
    for out in regions([observation.load for observation in observed], end.target):
        left[out] = end.without(out)[out]
    return left


def covered(
    observed: Sequence[Observation], capacity: int = 0, behind_sata: bool = True
) -> tuple[Region, ...]:
    """The regions of observations of a drive of so many bytes: by pattern and state."""
    groups: dict[tuple[str, str], list[Observation]] = {}
    for observation in observed:
        groups.setdefault((observation.load.rw, observation.load.state), []).append(observation)

    def span(group: Sequence[Observation], what: str) -> tuple[int, int]:
        values = [int(getattr(observation.load, what) or capacity) for observation in group]
        return min(values), max(values)

    return tuple(
        Region(
            rw, state, tuple(sorted({observation.load.bs for observation in group})),
            span(group, "depth"), span(group, "numjobs"),
            tuple(name for name in MEASURED if any(name in known.measured for known in group)),
            span(group, "namespace"), 0 if behind_sata else _held(group),
        )
        for (rw, state), group in groups.items()
    )  # fmt: skip


def _held(group: Sequence[Observation]) -> int:
    """Requests of single jobs that were at the drive at most, by Little's law: the others waited
    for the processor, which at NVMe is the ceiling of a single job (``reached``). 0 where there
    were several jobs."""
    rates: dict[object, list[tuple[int, float]]] = {}
    for one in group:
        if one.load.numjobs > 1:
            return 0
        if rate := one.rate:
            rates.setdefault(one.load.curve, []).append((one.load.depth, rate))
    most = [
        max(rate for _, rate in curve) * min(depth / rate for depth, rate in curve)
        for curve in rates.values()
    ]
    return math.ceil(max(most, default=0.0))


def twin_of(
    end: SearchEnd, observed: Sequence[Observation], *, name: str, start: str,
    sources: Sequence[str], seed: int,
) -> Twin:  # fmt: skip
    """The twin that a fit leaves."""
    rig = _core.Rig(end.space.rig(end.vector), rig_name=name)
    told = ", ".join(Path(source).name for source in sources)
    for parameter in judged(end):
        shown = parameter.parameter.shown
        if parameter.determined:
            source = f"{FITTED} from {told}, {shown(parameter.low)} .. {shown(parameter.high)}"
        else:
            source = f"assumed: about as {start}; the measurements do not determine it"
        value = parameter.parameter.written(parameter.value)
        number = value if parameter.parameter.kind == "number" else _value(value)
        rig.set(parameter.parameter.key, f"{{ value = {number}, source = {_value(source)} }}")
    errors = end.errors
    columns = np.where(np.isfinite(end.logs), end.target.columns, "")
    error = {
        column: float(np.median(np.abs(errors[columns == column])) / 0.6745)
        for column in MEASURED
        if (columns == column).any()
    }
    summary = f"Twin of a drive, fitted to {len(observed)} measurements, started from {start}"
    basis = Basis(
        tuple(Path(source).name for source in sources), len(observed), start, seed,
        end.target.submission_us, tuple(parameter.key for parameter in end.space.parameters),
        tuple(map(tuple, end.covariance().tolist())), error,
        covered(observed, rig.bytes("capacity") or 0, sata(rig)),
    )  # fmt: skip
    return Twin(name, rig.copy(name=name, summary=summary).to_toml(), basis)
