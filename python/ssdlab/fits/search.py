"""The search: parameters whose drive does what was measured, and how sure they are.

Damped least squares in logarithms (Levenberg 1944) with the prior as further residuals, and with
outliers weighed down (Cauchy). What is evaluated has no noise: closed forms, off by what the last
simulation said, so that derivatives are differences.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ssdlab.fits.observations import MEASURED, FitWorkload, Observation
from ssdlab.fits.parameters import FitSpace
from ssdlab.numeric import Floats

NOISE = {
    "iops": 0.03,
    "lat_mean_us": 0.03,
    "clat_mean_us": 0.03,
    "clat_p50_us": 0.06,
    "clat_p99_us": 0.15,
    "waf": 0.01,
}
"""Standard deviations of the logarithms of measured numbers from run to run."""
MODEL = {"iops": 0.1, "lat_mean_us": 0.1, "clat_mean_us": 0.1, "clat_p50_us": 0.15,
         "clat_p99_us": 0.25, "waf": 0.005}  # fmt: skip
"""The same of what a model of a drive leaves out, at best."""
INDEPENDENT = 3
"""So many points of a curve are off independently: what a model leaves out bends all of it."""
OUTLYING = 2.5
"""Residuals of more standard deviations count less and less."""
STEP = 0.08
"""Of a parameter's logarithm, for its derivatives."""
DAMPINGS = (0.03, 1.0, 30.0)
"""Tried at once; relative to the curvature."""
MEANS = ("iops", "lat_mean_us", "clat_mean_us")
"""Columns that say the same thing of a closed loop (Little's law)."""
SMALL = 8
"""Depths at which the time of submission is not that of waiting for a processor."""
LEAST = 0.3
"""Share of a request's time that is the device's, at least."""
LEAPS = 3
LEAP = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)
"""Of a parameter, in standard deviations of what is known of it beforehand."""
_FASTER = {"iops": -1.0} | dict.fromkeys(
    ("lat_mean_us", "clat_mean_us", "clat_p50_us", "clat_p99_us"), 1.0
)
"""Sign of a residual where the drive was faster than predicted."""
ENOUGH = 0.01
"""A search ends where a round improves the error by less than this share."""

Evaluate = Callable[[Sequence[Floats]], Sequence[Sequence[Mapping[str, float]]]]
"""Numbers by workload for each of several vectors of parameters."""
Told = Callable[[int, float], None]
"""Told the simulation of a fit and its error."""


@dataclass(frozen=True)
class FitTarget:
    """What is to be met: one entry for each measured number."""

    rows: Sequence[int]
    """Places of the observations."""
    columns: Sequence[str]
    logs: Floats
    sigma: Floats
    collecting: npt.NDArray[np.bool_]
    """Whether it is of random writes in steady state."""
    submission_us: float
    """Time of a request before it reaches the device, which clat does not have."""

    @staticmethod
    def of(observed: Sequence[Observation], waf: float = MODEL["waf"]) -> FitTarget:
        """Of observations; ``waf`` is what a model leaves out of write amplification."""
        rows, columns, logs, sigma = [], [], [], []
        points = Counter(observation.load.curve for observation in observed)
        for place, observation in enumerate(observed):
            alike = math.sqrt(max(1.0, points[observation.load.curve] / INDEPENDENT))
            same = sum(name in observation.measured for name in MEANS)
            for name in MEASURED:
                if (value := observation.measured.get(name)) is None:
                    continue
                if name.startswith("clat") and value < LEAST * (alone(observation) or 0.0):
                    continue  # almost all of the time is that of submission: not the device's
                rows.append(place)
                columns.append(name)
                logs.append(math.log(value))
                own = alike * (waf if name == "waf" else MODEL[name])
                width = math.hypot(NOISE[name], own, observation.width)
                sigma.append(width * math.sqrt(same if name in MEANS else 1))
        collecting = np.array([observed[row].load.collects for row in rows], dtype=bool)
        return FitTarget(
            rows, columns, np.array(logs), np.array(sigma), collecting, _submission(observed)
        )

    def take(self, answers: Sequence[Mapping[str, float]]) -> Floats:
        """The logarithms of the numbers of the same entries; NaN for what was not found."""
        pairs = zip(self.rows, self.columns, strict=True)
        found = [value_of(answers[row], name, self.submission_us) for row, name in pairs]
        return np.array([math.log(one) if one else math.nan for one in found])

    def residuals(self, logs: Floats) -> Floats:
        """In standard deviations; 0 for what was not found."""
        return np.nan_to_num((logs - self.logs) / self.sigma)

    def trust(self, scaled: Floats) -> Floats:
        """Weights of residuals: outliers count less, but what a drive has done it can do. Only
        where it was slower than predicted can that be due to something else, or where it was to
        collect all the time: as long as it has blocks erased it does more."""
        sign = np.array([_FASTER.get(name, 0.0) for name in self.columns])
        able = (scaled * sign > 0) & ~self.collecting
        outlying = np.where(able, 0.0, scaled / OUTLYING)
        weights: Floats = 1.0 / (1.0 + outlying**2)
        return weights


def value_of(answer: Mapping[str, float], name: str, submission_us: float) -> float | None:
    """A number of an answer as the table means it: clat without the time of submission."""
    value = answer.get(name)
    if value is None or not name.startswith("clat"):
        return value
    return max(value - submission_us, LEAST * value)


def alone(observation: Observation) -> float | None:
    """All the time of a request, us, by Little's law, where one is in flight at a time and nothing
    holds the job back."""
    iops = observation.measured.get("iops")
    held = observation.load.depth > 1 or bool(observation.load.limits)
    return 1e6 / iops if iops and not held else None


def _submission(observed: Sequence[Observation]) -> float:
    """Median of lat - clat at small depth, else of single jobs; where they are not both known, of
    what Little's law leaves beside clat at depth 1; 0 where that is not known either."""
    gaps = [(one.load, gap) for one in observed if (gap := one.submission_us) is not None]
    small = [gap for load, gap in gaps if load.depth <= SMALL]
    found = small or [gap for load, gap in gaps if load.numjobs == 1]
    if not found:
        found = [
            whole - clat
            for observation in observed
            if (whole := alone(observation)) and (clat := observation.measured.get("clat_mean_us"))
        ]
    return max(0.0, float(np.median(found))) if found else 0.0


@dataclass(frozen=True)
class SearchEnd:
    """Where a search ended."""

    space: FitSpace
    target: FitTarget
    vector: Floats
    logs: Floats
    """Of the numbers there."""
    jacobian: Floats
    """Of these by parameter."""
    cost: float
    among: Mapping[str, float] = field(default_factory=dict)
    """By key of a parameter, the standard deviation of its logarithm over other drives that are
    about as likely. What they do together is the same, so that it is none of :meth:`covariance`."""

    @property
    def values(self) -> dict[str, float]:
        """The parameters' logarithms by key."""
        keys = [parameter.key for parameter in self.space.parameters]
        return dict(zip(keys, self.vector.tolist(), strict=True))

    @property
    def weights(self) -> Floats:
        """Of the entries: robust, by their noise; 0 for what could not be simulated."""
        scaled = self.target.residuals(self.logs)
        return self.target.trust(scaled) / self.target.sigma**2 * np.isfinite(self.logs)

    @property
    def errors(self) -> Floats:
        """Natural logarithms of simulated / measured."""
        return np.nan_to_num(self.logs - self.target.logs)

    def covariance(self) -> Floats:
        """Of the parameters' logarithms (Laplace)."""
        weights = self.weights
        scaled = self.jacobian * np.sqrt(weights)[:, None]
        information = scaled.T @ scaled + np.diag(self.space.widths**-2.0)
        spread: Floats = np.asarray(np.linalg.inv(information)) * max(1.0, self._excess(weights))
        apart = [parameter.apart for parameter in self.space.parameters]
        spread += np.diag(np.square(apart))
        return spread

    def _excess(self, weights: Floats) -> float:
        """By how much residuals are larger than they should be, squared."""
        used = weights > 0
        free = max(1, int(used.sum()) - len(self.vector) // 2)
        return float((weights * self.errors**2).sum()) / free

    def without(self, left_out: Sequence[bool]) -> Floats:
        """Errors of all entries were the fit made without some of them, to first order."""
        kept = np.array([not one for one in left_out], dtype=float)
        weights = self.weights * kept
        scaled = self.jacobian * weights[:, None]
        prior = np.diag(self.space.widths**-2.0)
        pull = self.space.widths**-2.0 * (self.space.prior - self.vector)
        step = np.linalg.solve(self.jacobian.T @ scaled + prior, pull - scaled.T @ self.errors)
        found: Floats = self.errors + self.jacobian @ np.clip(step, -1.0, 1.0)
        return found


def search(
    space: FitSpace, target: FitTarget, evaluate: Evaluate, start: Floats, rounds: int
) -> SearchEnd:
    """The best parameters within so many rounds from ``start``. The derivatives take an evaluation
    for each parameter, at the start and at the end, each round one for each of :data:`DAMPINGS`, by
    which they are corrected."""
    low, high = space.bounds
    vector = np.clip(start, low, high)
    logs = target.take(evaluate([vector])[0])
    least = cost(space, target, vector, logs)
    jacobian = _jacobian(space, target, evaluate, vector, logs)
    for nth in range(rounds):
        steps = [_step(space, target, vector, logs, jacobian, damping) for damping in DAMPINGS]
        tried = [np.clip(vector + step, low, high) for step in steps]
        found = [target.take(one) for one in evaluate(tried)]
        costs = [cost(space, target, x, y) for x, y in zip(tried, found, strict=True)]
        for there, seen in zip(tried, found, strict=True):
            jacobian = _corrected(jacobian, there - vector, np.nan_to_num(seen - logs))
        best = int(np.argmin(costs))
        gain = (least - costs[best]) / max(least, 1e-9)
        if gain > 0:
            vector, logs, least = tried[best], found[best], costs[best]
        if gain < ENOUGH and nth:
            break
    back = _jacobian(space, target, evaluate, vector, logs, -STEP)
    return SearchEnd(space, target, vector, logs, _weaker(jacobian, back, target), least)


def leaping(
    space: FitSpace, target: FitTarget, evaluate: Evaluate, start: Floats, rounds: int
) -> SearchEnd:
    """The same where evaluations cost little: each parameter by itself is also tried far from where
    a search ended, and searched from there where that is better. Of two ceilings the higher one has
    no derivative, however far from what it should be."""
    end = search(space, target, evaluate, start, rounds)
    low, high = space.bounds
    for _ in range(LEAPS):
        moves = [times * width * row for row, width in zip(np.eye(len(start)), space.widths,
                 strict=True) for times in LEAP]  # fmt: skip
        tried = [np.clip(end.vector + move, low, high) for move in moves]
        there = [target.take(one) for one in evaluate(tried)]
        costs = [cost(space, target, x, y) for x, y in zip(tried, there, strict=True)]
        best = int(np.argmin(costs))
        if costs[best] > (1 - ENOUGH) * end.cost:
            break
        end = search(space, target, evaluate, tried[best], rounds)
    return end


def _weaker(forward: Floats, back: Floats, target: FitTarget) -> Floats:
    """Of the derivatives to both sides by parameter those that change less: what is no bottleneck
    to one side is not determined, only bounded."""
    size = [np.abs(one / target.sigma[:, None]).sum(axis=0) for one in (forward, back)]
    found: Floats = np.where(size[0] <= size[1], forward, back)
    return found


def _jacobian(
    space: FitSpace, target: FitTarget, evaluate: Evaluate, vector: Floats, logs: Floats,
    step: float = STEP,
) -> Floats:  # fmt: skip
    low, high = space.bounds
    inside = (vector + step >= low) & (vector + step <= high)
    steps = [step if one else -step for one in inside.tolist()]
    moved = [np.clip(vector + step * np.eye(len(vector))[i], low, high)
             for i, step in enumerate(steps)]  # fmt: skip
    columns = [
        (target.take(answers) - logs) / step
        for answers, step in zip(evaluate(moved), steps, strict=True)
    ]
    return np.nan_to_num(np.array(columns).T)


def _corrected(jacobian: Floats, step: Floats, change: Floats) -> Floats:
    """The derivatives that explain a change as well (Broyden 1965)."""
    length = float(step @ step)
    if length < 1e-6:
        return jacobian
    found: Floats = jacobian + np.outer(change - jacobian @ step, step) / length
    return found


def _step(
    space: FitSpace,
    target: FitTarget,
    vector: Floats,
    logs: Floats,
    jacobian: Floats,
    damping: float,
) -> Floats:
    scaled = target.residuals(logs)
    weights = target.trust(scaled) / target.sigma**2
    errors = np.nan_to_num(logs - target.logs)
    curvature = jacobian.T @ (jacobian * weights[:, None]) + np.diag(space.widths**-2.0)
    slope = jacobian.T @ (weights * errors) + (vector - space.prior) / space.widths**2
    damped = curvature + damping * np.diag(space.widths**-2.0)
    step: Floats = np.clip(-np.linalg.solve(damped, slope), -1.5, 1.5)
    return step


def cost(space: FitSpace, target: FitTarget, vector: Floats, logs: Floats) -> float:
    """What a search makes small: how far the numbers are off and the parameters from the prior."""
    scaled = target.residuals(logs)
    data = np.where(
        target.trust(scaled) < 1, OUTLYING**2 * np.log1p((scaled / OUTLYING) ** 2), scaled**2
    )
    # What could not be found at all is as bad as an outlier.
    missing = (~np.isfinite(logs)).sum() * OUTLYING**2 * 3
    prior = ((vector - space.prior) / space.widths) ** 2
    return float(data.sum() + missing + prior.sum())


def regions(loads: Sequence[FitWorkload], target: FitTarget) -> list[list[bool]]:
    """Entries by region, each to be left out once: curves over depth, or halves of the only one."""
    keys = [load.curve for load in loads]
    if len(set(keys)) < 2:
        middle = float(np.median([load.depth for load in loads]))
        groups: list[object] = [load.depth > middle for load in loads]
    else:
        groups = list(keys)
    names = list(dict.fromkeys(groups))
    return [[groups[row] == name for row in target.rows] for name in names]
