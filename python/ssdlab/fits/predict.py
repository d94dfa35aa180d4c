"""What a twin does under workloads that were not measured, with 90 % intervals.

The twin is simulated. Drives whose parameters are drawn from what the fit leaves open are followed
in closed form; how far they are from it, and how far twins are off where they were not fitted, is
the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from ssdlab import _core
from ssdlab.analysis.comparison import Workload
from ssdlab.errors import InputError
from ssdlab.fits import closed, observations, trial
from ssdlab.fits.observations import (
    ASKED,
    INTERVALS,
    MEASURED,
    SCHEMA,
    FitWorkload,
    Observation,
    load_of,
    unsaid,
)
from ssdlab.fits.parameters import bounds, sata
from ssdlab.fits.search import value_of
from ssdlab.fits.twin import Z90, Twin
from ssdlab.jobfile import JobText
from ssdlab.numeric import Floats
from ssdlab.progress import ProgressCallback
from ssdlab.units import size_text

DRAWS = 48
"""Drives beside the twin, in pairs on both sides of it."""
FURTHEST = 2.0
"""Standard deviations of a parameter in a draw, at most."""


@dataclass(frozen=True)
class Prediction:
    """What is expected of a workload, by the columns of the table."""

    load: FitWorkload
    values: Mapping[str, float]
    low: Mapping[str, float]
    high: Mapping[str, float]
    """Ends of the 90 % intervals."""
    said: Mapping[str, str] = field(default_factory=dict)
    """The question's cells, where a table asked it."""

    def row(self) -> dict[str, float | None]:
        """The columns that a table of answers has besides those of the question."""
        found: dict[str, float | None] = {name: self.values.get(name) for name in MEASURED}
        for name in MEASURED:
            found[f"{name}_low"] = self.low.get(name)
            found[f"{name}_high"] = self.high.get(name)
        return found


def predict(
    twin: Twin, loads: Sequence[FitWorkload], *, seed: int = 1,
    progress: ProgressCallback | None = None, store: Callable[[str], str] = lambda rig: rig,
) -> list[Prediction]:  # fmt: skip
    """Predictions in the order of the workloads; ``store`` makes a rig of the twin's, such as that
    of an array of it; InputError where a workload does not fit the drive, Interrupted on Ctrl-C."""
    _check(twin, loads)
    different = list(dict.fromkeys(loads))
    effort = trial.lasting(replace(trial.FINE, seed=seed), twin.rig, different)
    (fine,) = trial.answers([store(twin.rig)], different, effort, progress)
    open_ = _open(twin, different, seed)
    drive = _core.Rig(twin.rig, rig_name=twin.name)
    whole, one_queue = drive.bytes("capacity"), sata(drive)
    predictions = {
        load: _prediction(
            twin, load, replace(load, namespace=load.namespace or whole), numbers, apart, one_queue
        )
        for load, numbers, apart in zip(different, fine, open_, strict=True)
    }
    return [predictions[load] for load in loads]


def _check(twin: Twin, loads: Sequence[FitWorkload]) -> None:
    capacity = _core.Rig(twin.rig, rig_name=twin.name).bytes("capacity") or 0
    for load in loads:
        size = load.namespace
        if capacity and size is not None and size > capacity * 1.01:
            raise InputError(
                f"{load}: the namespace is larger than the drive of {size_text(capacity)}"
            )


def _open(twin: Twin, loads: Sequence[FitWorkload], seed: int) -> list[Mapping[str, float]]:
    """By how much, as a logarithm, the parameters that a fit leaves open change each workload's
    rate and write amplification."""
    vectors = _draws(twin, seed)
    if not vectors:
        return [{}] * len(loads)
    drive = closed.DriveFigures.of(_core.Rig(twin.rig, rig_name=twin.name))
    keys = twin.basis.keys
    columns = np.exp(np.array([twin.vector(), *vectors])).T
    centre, *drawn = closed.several(drive, loads, dict(zip(keys, columns, strict=True)))
    return [
        {
            name: math.sqrt(
                float(np.mean([math.log(one[place][name] / value) ** 2 for one in drawn]))
            )
            for name, value in centre[place].items()
            if name in ("iops", "waf")
        }
        for place in range(len(loads))
    ]


def _draws(twin: Twin, seed: int) -> list[Floats]:
    """Vectors of parameters around the twin's, each with its mirror image."""
    covariance = np.array(twin.basis.covariance)
    if not covariance.size:
        return []
    values, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(values, 0.0))
    random = np.random.default_rng(seed)
    normal = np.clip(random.standard_normal((DRAWS // 2, len(values))), -FURTHEST, FURTHEST)
    centre = twin.vector()
    moves = [root @ one for one in normal]
    low, high = bounds(twin.basis.parameters())
    low, high = np.minimum(low, centre), np.maximum(high, centre)
    drawn = [vector for move in moves for vector in (centre + move, centre - move)]
    return [np.clip(one, low, high) for one in drawn]


def _prediction(
    twin: Twin,
    load: FitWorkload,
    sized: FitWorkload,
    fine: Mapping[str, float],
    apart: Mapping[str, float],
    one_queue: bool,
) -> Prediction:
    basis = twin.basis
    values, low, high = {}, {}, {}
    for name in MEASURED:
        value = value_of(fine, name, basis.submission_us)
        if value is None:
            continue
        left = apart.get("waf" if name == "waf" else "iops", 0.0)
        off = Z90 * basis.spread(sized, name, left, one_queue)
        values[name], low[name], high[name] = value, value * math.exp(-off), value * math.exp(off)
    if {"clat_p50_us", "clat_p99_us"} <= set(low):
        # Each is told by itself, but no drive's 99th percentile is below its median.
        low["clat_p99_us"] = max(low["clat_p99_us"], low["clat_p50_us"])
        high["clat_p50_us"] = min(high["clat_p50_us"], high["clat_p99_us"])
    if "iops" in high:
        high["iops"] = max(values["iops"], min(high["iops"], load.most))
    if "waf" in low:
        low["waf"] = max(low["waf"], min(1.0, values["waf"]))
    return Prediction(load, values, low, high)


def frame(predictions: Sequence[Prediction]) -> pl.DataFrame:
    """The table of answers: the questions, the numbers, and the ends of their intervals."""
    rows = [
        {name: getattr(prediction.load, name) for name in ASKED} | prediction.row()
        for prediction in predictions
    ]
    return pl.DataFrame(rows, schema={**SCHEMA, **dict.fromkeys(INTERVALS, pl.Float64)})


def text(predictions: Sequence[Prediction]) -> str:
    """The table of answers as CSV, with the questions as they were written."""
    table = frame(predictions)
    named = dict.fromkeys(
        (*ASKED, *(name for prediction in predictions for name in prediction.said))
    )
    asked = [
        prediction.said or {name: "" if cell is None else str(cell) for name, cell in row.items()}
        for prediction, row in zip(
            predictions, table.select(ASKED).iter_rows(named=True), strict=True
        )
    ]
    cells = {name: [one.get(name, "") for one in asked] for name in named}
    return observations.text(pl.DataFrame(cells).hstack(table.drop(ASKED)))


def loads_of(job: JobText) -> list[tuple[str, FitWorkload]]:
    """The sections of a job file as workloads, each by itself, with their names; InputError where
    it is no job, or has nothing that a table could ask."""
    described = job.read()
    found = []
    for one in described["jobs"]:
        options = {**described["global_options"], **one["options"]}
        workload = Workload(0, str(one["name"]), options, (), True)
        if load := load_of(workload):
            if why := unsaid(workload):
                raise InputError(
                    f"{job.name}: [{workload.name}] {why}: no prediction says what that changes; "
                    "simulate the twin instead (ssdlab run)"
                )
            found.append((str(one["name"]), load))
    if not found:
        raise InputError(f"{job.name}: has no job of reads or writes that could be predicted")
    return found


@dataclass(frozen=True)
class ComparedNumber:
    """A measured number beside the predicted one."""

    observation: Observation
    column: str
    measured: float
    predicted: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Natural logarithm of predicted / measured."""
        return math.log(self.predicted / self.measured)

    @property
    def inside(self) -> bool:
        """Whether the measured number lies within the interval."""
        return self.low <= self.measured <= self.high


def compare(
    observed: Sequence[Observation], predictions: Sequence[Prediction]
) -> list[ComparedNumber]:
    """Every measured number beside what was predicted of its workload, in order."""
    return [
        ComparedNumber(
            observation,
            name,
            observation.measured[name],
            prediction.values[name],
            prediction.low[name],
            prediction.high[name],
        )
        for observation, prediction in zip(observed, predictions, strict=True)
        for name in MEASURED
        if name in observation.measured and name in prediction.values
    ]
