"""How often arrays lose data, by simulated lives: random failures, wear, rebuilds, read errors.

Each life is a run of events (a member fails, wears out, is renewed, is rebuilt); many lives go on
side by side in arrays. Where losses are rare, failures are made frequent while redundancy is gone
and each life is weighed by how likely it really was (importance sampling by failure biasing:
Heidelberger, "Fast simulation of rare events in queueing and reliability models", ACM TOMACS 5,
1995); members that may wear out during a rebuild are made to in the same way. The share of lives
that a read error ends is counted in place of being drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ssdlab.analysis.endurance import WearOut
from ssdlab.analysis.reliability import HOURS_PER_YEAR, Array, Hazards, rebuild_error
from ssdlab.errors import InputError, Interrupted
from ssdlab.numeric import Floats, Ints

Bools = npt.NDArray[np.bool_]

RANDOM, WORN, UNREADABLE = range(3)
"""What the last blow was: a random failure, a worn-out member, a sector that no one else had."""
Z_95 = 1.959964
"""Of a two-sided 95 % interval of the normal distribution."""
REDRAWS = 200
DRAWS_MIN = 10
"""Where not one array could be drawn so often, not all of them will be."""
DEGRADED_SHARE = 0.7
"""Of rebuilds, how many see another failure where failures are made frequent."""
WEAKER = 1.5
"""By how many standard deviations the endurance of models is drawn lower in half of such lives."""
PRESSED_MIN = 1e-12
"""Members less likely than this to wear out during a rebuild are left alone."""
RUNS_MAX = 5_000_000
AT_ONCE = 250_000
"""More lives are simulated in parts: one step of all of them would take seconds and gigabytes."""
CARRIED_MIN = 10.0
"""Losses of equal weight that weighted ones must be worth, or they carry no interval."""


@dataclass(frozen=True)
class Chance:
    """A chance and its 95 % interval, which is nan where the lives carry none."""

    value: float
    low: float
    high: float

    @property
    def carried(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.high)


@dataclass(frozen=True)
class Losses:
    """What the lives came to. Each entry of `hours` is a loss that counts `weights` lives."""

    runs: int
    accelerated: bool
    run: Ints
    hours: Floats
    weights: Floats
    cause: Ints
    unseen: float = 0.0
    """What the heaviest loss that was not seen may weigh."""

    def by(self, hours: float, cause: int | None = None) -> Chance:
        """The chance of a loss within so many hours (of that cause)."""
        taken = self.hours <= hours
        if cause is not None:
            taken &= self.cause == cause
        if not self.accelerated:
            return _wilson(int(taken.sum()), self.runs)
        each = np.zeros(self.runs)
        np.add.at(each, self.run[taken], self.weights[taken])
        return _weighted(each, self.unseen) if each.any() else _wilson(0, self.runs)


def _wilson(seen: int, runs: int) -> Chance:
    """Wilson's interval of a share (JASA 22, 1927)."""
    share, square = seen / runs, Z_95**2
    middle = (share + square / (2 * runs)) / (1 + square / runs)
    spread = math.sqrt(share * (1 - share) / runs + square / (4 * runs * runs))
    half = Z_95 * spread / (1 + square / runs)
    low = 0.0 if seen == 0 else max(0.0, middle - half)
    return Chance(share, low, 1.0 if seen == runs else min(1.0, middle + half))


def _weighted(each: Floats, unseen: float) -> Chance:
    """Fay and Feuer's interval of a sum of weighted counts (Statistics in Medicine 16, 1997).

    It allows for another life as heavy as the heaviest one; where losses are many it is the
    usual mean and 1.96 standard errors. Few losses that weigh all carry no interval: how heavy
    those are that were not seen, they do not tell.
    """
    mean = float(each.mean())
    if float(each.sum()) ** 2 < CARRIED_MIN * float((each**2).sum()):
        return Chance(min(1.0, mean), math.nan, math.nan)
    square = float((each**2).sum()) / len(each) ** 2
    heaviest = max(unseen, float(each.max())) / len(each)
    low = mean * _chi_square_share(-Z_95, 2 * mean**2 / square)
    above, wider = mean + heaviest, square + heaviest**2
    high = above * _chi_square_share(Z_95, 2 * above**2 / wider)
    # Weights of few lives may add up to more than there are lives.
    return Chance(min(1.0, mean), min(1.0, low), min(1.0, high))


def _chi_square_share(z: float, freedom: float) -> float:
    """A quantile of chi-square in terms of its mean, by Wilson and Hilferty (PNAS 17, 1931)."""
    return float(max(0.0, 1 - 2 / (9 * freedom) + z * math.sqrt(2 / (9 * freedom))) ** 3)


def simulate(
    array: Array,
    hazards: Hazards,
    years: float,
    *,
    runs: int,
    seed: int,
    wear: WearOut | None = None,
    repair: Literal["fixed", "exponential"] = "fixed",
    accelerated: bool = False,
    going: Callable[[float], bool] = lambda done: True,
) -> Losses:
    """Lives of an array, each until its loss or so many years.

    `repair`: whether each repair takes `hazards.repair_hours` or that on average, as in the chain.
    `years` may be inf, unless accelerated, for lives that all end in loss. Raises InputError where
    values are out of range or do not fit each other, Interrupted once `going`, which is told what
    share of all lives is over (0 to 1), answers False.
    """
    if not (years > 0 and (math.isfinite(years) or not accelerated)):
        raise InputError(f"an array is looked at for more than 0 years, found {years:g}")
    if not 2 <= runs <= RUNS_MAX:
        raise InputError(f"2 to {RUNS_MAX} lives can be simulated, found {runs}")
    if wear is not None:
        check(array, wear)
    horizon, parts, found = years * HOURS_PER_YEAR, -(-runs // AT_ONCE), list[Losses]()
    for part in range(parts):
        many = runs * (part + 1) // parts - runs * part // parts
        own = [seed, part] if part else seed
        lives = _Lives(array, hazards, horizon, many, own, wear, repair, accelerated)
        while lives.step():
            if not going((part + lives.over) / parts):
                raise Interrupted("stopped; nothing was kept")
        found.append(lives.losses())
    return _joined(found)


def _joined(found: Sequence[Losses]) -> Losses:
    """What lives of one question came to that were simulated in several parts."""
    before = itertools.accumulate((one.runs for one in found), initial=0)
    return Losses(
        sum(one.runs for one in found),
        found[0].accelerated,
        np.concatenate([one.run + first for one, first in zip(found, before, strict=False)]),
        np.concatenate([one.hours for one in found]),
        np.concatenate([one.weights for one in found]),
        np.concatenate([one.cause for one in found]),
        max(one.unseen for one in found),
    )


def check(array: Array, wear: WearOut) -> None:
    """Raises InputError where the members of an array cannot wear so."""
    if wear.start and len(wear.start) != array.members:
        raise InputError(
            f"the array has {array.members} members, but {len(wear.start)} ages are given"
        )
    if wear.models > array.members:
        raise InputError(
            f"an array of {array.members} members cannot hold {wear.models} different models"
        )
    first = wear.rated_bytes * min(1.0, wear.renew_at or 1.0)
    if array.capacity_bytes >= first:
        raise InputError(
            f"a rebuild alone would write {array.capacity_bytes / 1e12:.3g} TB, but a new drive is "
            f"worn or renewed after {first / 1e12:.3g} TB"
        )


@dataclass
class _Lives:
    """The lives that still go on: a row for each, a column for each member."""

    array: Array
    hazards: Hazards
    horizon: float
    runs: int
    seed: int | Sequence[int]
    wear: WearOut | None
    repair: str
    accelerated: bool
    found: list[tuple[Ints, Floats, Floats, Ints]] = field(default_factory=list)

    def __post_init__(self) -> None:
        array, hazards = self.array, self.hazards
        self._places = np.arange(array.group_size)
        self.rng = np.random.Generator(np.random.PCG64(self.seed))
        shape = (self.runs, array.members)
        self.error = rebuild_error(array, hazards)
        self.run = np.arange(self.runs)
        self.now = np.zeros(self.runs)
        self.weight = np.ones(self.runs)
        self.up = np.ones(shape, dtype=bool)
        self.missing = np.zeros((self.runs, array.groups), dtype=np.int64)
        self.due = np.full(shape, math.inf)
        """When each member is worn out or renewed, or, if it is missing, rebuilt."""
        self.renews = np.zeros(shape, dtype=bool)
        """Whether a member that is due is renewed then, and not worn out."""
        self.factor = np.ones(shape)
        """Endurance of the model of each place, in terms of a model in the middle."""
        self.origin = np.zeros(shape)
        """When each member would have been unwritten."""
        self.heaviest = 1.0
        if self.wear is not None and self.wear.bytes_per_day == 0:
            self.wear = None
        if self.wear is not None:
            self._begin_wear(self.wear)
        # Weights spread with every rebuild whose outcome is made more likely: the more of them,
        # the less.
        life_years = self.wear.rated_years if self.wear else math.inf
        years = self.horizon / HOURS_PER_YEAR
        repairs = array.members * (hazards.failures_per_hour * self.horizon + years / life_years)
        self.boost = min(DEGRADED_SHARE, 1 / math.sqrt(max(1.0, repairs)))

    @property
    def over(self) -> float:
        """What share of their time is over; without a horizon, how many of them are."""
        left = np.ones(len(self.now)) if math.isinf(self.horizon) else 1 - self.now / self.horizon
        return 1 - float(left.sum()) / self.runs

    # --- wear

    def _begin_wear(self, wear: WearOut) -> None:
        """Draws what each member can write. One that has written much already is known to be of
        those that can."""
        used = wear.rated_bytes * np.asarray(wear.start or np.zeros(self.array.members))
        model = np.arange(self.array.members) % wear.models
        left = np.arange(self.runs)
        endurance = np.empty_like(self.due)
        for draw in range(REDRAWS):
            drawn = self.rng.standard_normal((len(left), wear.models))
            if self.accelerated and wear.model_spread > 0:
                # Half of the lives have weaker models.
                drawn -= WEAKER * (self.rng.random((len(left), 1)) < 0.5)
                ratio = np.exp(-WEAKER * drawn.sum(axis=1) - wear.models * WEAKER**2 / 2)
                self.weight[left] = 2 / (1 + ratio)
            self.factor[left] = np.exp(wear.model_spread * drawn[:, model])
            endurance[left] = self._endurance(wear, self.factor[left])
            left = left[(endurance[left] <= used).any(axis=1)]
            if not len(left) or (draw == DRAWS_MIN and len(left) == self.runs):
                break
        if len(left):
            raise InputError(
                f"hardly an array has members that have written up to {max(wear.start):.0%} of "
                "their rating and still work; start with less, or give more spread"
            )
        if any(wear.start):
            # Known only in proportion: arrays that cannot be so old were left out.
            self.weight /= self.weight.mean()
        self.origin = np.broadcast_to(-used / self._per_hour(wear), self.due.shape).copy()
        self.due, self.renews = self._ends(wear, endurance, self.origin)

    @staticmethod
    def _per_hour(wear: WearOut) -> float:
        return wear.bytes_per_day / 24

    def _endurance(self, wear: WearOut, factor: Floats) -> Floats:
        found: Floats = wear.scale_bytes * factor
        if not wear.alike:
            found *= self.rng.standard_exponential(factor.shape) ** (1 / wear.shape)
        return found

    def _ends(self, wear: WearOut, endurance: Floats, origin: Floats) -> tuple[Floats, Bools]:
        """When members are worn out or renewed, and whether it is the latter."""
        ends = origin + endurance / self._per_hour(wear)
        if wear.renew_at is None:
            return ends, np.zeros(ends.shape, dtype=bool)
        renewed = origin + wear.renew_at * wear.rated_bytes / self._per_hour(wear)
        return np.minimum(ends, renewed), renewed <= ends

    def _put_new(self, rows: Ints, member: Ints) -> None:
        """A new drive, once written whole, is in its place."""
        if self.wear is None:
            self.due[rows, member] = math.inf
            return
        origin = self.now[rows] - self.array.capacity_bytes / self._per_hour(self.wear)
        endurance = self._endurance(self.wear, self.factor[rows, member])
        self.origin[rows, member] = origin
        self.due[rows, member], self.renews[rows, member] = self._ends(self.wear, endurance, origin)

    def _press(self, rows: Ints, group: Ints, until: Floats) -> None:
        """Makes wear frequent among what is left of a group while it is rebuilt: what a member can
        still write is drawn anew, from what is known of it, that it has not worn out so far."""
        wear = self.wear
        if not self.accelerated or wear is None or wear.alike:
            return
        cells = (rows[:, None], group[:, None] * self.array.group_size + self._places)
        used = np.maximum(0.0, self.now[rows][:, None] - self.origin[cells]) * self._per_hour(wear)
        later = used + ((until - self.now[rows]) * self._per_hour(wear))[:, None]
        scale = wear.scale_bytes * self.factor[cells]
        before = (used / scale) ** wear.shape
        more = (later / scale) ** wear.shape - before
        chance = -np.expm1(-more)
        pressed = self.up[cells] & (chance > PRESSED_MIN)
        count = np.maximum(1, pressed.sum(axis=1, keepdims=True))
        shown = np.where(pressed, np.maximum(chance, self.boost / count), 0.0)
        inside = self.rng.random(shown.shape) < shown
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(inside, chance / shown, (1 - chance) / (1 - shown))
        self.weight[rows] *= np.where(pressed, ratio, 1.0).prod(axis=1)
        within = -np.log1p(-self.rng.random(shown.shape) * chance)
        beyond = more + self.rng.standard_exponential(shown.shape)
        endurance = scale * (before + np.where(inside, within, beyond)) ** (1 / wear.shape)
        due, renews = self._ends(wear, endurance, self.origin[cells])
        due = np.maximum(due, self.now[rows][:, None])
        self.due[cells] = np.where(pressed, due, self.due[cells])
        self.renews[cells] = np.where(pressed, renews, self.renews[cells])

    # --- events

    def step(self) -> bool:
        """Takes every life to its next event; False where none goes on."""
        if not len(self.run):
            return False
        everyone = np.arange(len(self.run))
        rates = self._rates()
        upto = np.cumsum(rates, axis=1)
        whole = upto[:, -1]
        with np.errstate(divide="ignore"):
            random_at = self.now + self.rng.standard_exponential(len(whole)) / whole
        member = self.due.argmin(axis=1)
        due_at = self.due[everyone, member]
        random = random_at < due_at
        if self.accelerated:
            true = self.hazards.failures_per_hour * self.up.sum(axis=1)
            passed = np.minimum(np.minimum(random_at, due_at), self.horizon) - self.now
            self.weight *= np.exp((whole - true) * passed)
        point = self.rng.random(len(whole)) * whole
        # The last member that can fail, where rounding would point past it.
        last = self.array.members - 1 - np.argmax(rates[:, ::-1] > 0, axis=1)
        drawn = np.minimum((upto <= point[:, None]).sum(axis=1), last)
        member = np.where(random, drawn, member)
        if self.accelerated:
            hit = np.flatnonzero(random)
            self.weight[hit] *= self.hazards.failures_per_hour / rates[hit, member[hit]]
            if self.wear is not None and self.wear.alike:
                self.heaviest = max(self.heaviest, float(self.weight.max()))
        self.now = np.maximum(self.now, np.where(random, random_at, due_at))
        goes_on = self.now <= self.horizon
        goes_on &= np.isfinite(self.now)
        rows = np.flatnonzero(goes_on)
        back = rows[~self.up[rows, member[rows]]]
        renewed = rows[
            self.up[rows, member[rows]] & self.renews[rows, member[rows]] & ~random[rows]
        ]
        broken = np.setdiff1d(rows, np.concatenate([back, renewed]), assume_unique=True)
        self._rebuilt(back, member[back], goes_on)
        self._put_new(renewed, member[renewed])
        self._failed(broken, member[broken], random[broken], goes_on)
        self._keep(goes_on)
        return True

    def _rates(self) -> Floats:
        """How often members fail: as they do, or more often where that leads to losses."""
        true = self.hazards.failures_per_hour
        if not self.accelerated or true == 0:
            return self.up * true
        array = self.array
        size = array.group_size
        # Some first failure in about every second life; then, while a group is degraded, another
        # one in it in a share of the rebuilds.
        healthy = max(true, 1 / (array.members * self.horizon))
        degraded = self.boost / ((size - self.missing) * self.hazards.repair_hours)
        group = np.where(self.missing > 0, np.maximum(true, degraded), healthy)
        found: Floats = self.up * np.repeat(group, size, axis=1)
        return found

    def _failed(self, rows: Ints, member: Ints, random: Bools, goes_on: Bools) -> None:
        group = member // self.array.group_size
        lost = self.missing[rows, group] == self.array.tolerance
        cause = np.where(random, RANDOM, WORN)
        self._lost(rows[lost], self.weight[rows[lost]], cause[lost], goes_on)
        rows, member, group = rows[~lost], member[~lost], group[~lost]
        begins = self.now[rows]
        if self.hazards.one_at_a_time and len(rows):
            size = self.array.group_size
            columns = group[:, None] * size + np.arange(size)
            others = np.where(
                self.up[rows[:, None], columns], 0.0, self.due[rows[:, None], columns]
            )
            begins = np.maximum(begins, others.max(axis=1))
        lasts = np.full(len(rows), self.hazards.repair_hours)
        if self.repair == "exponential":
            lasts *= self.rng.standard_exponential(len(rows))
        self.due[rows, member] = begins + lasts
        self.renews[rows, member] = False
        self.up[rows, member] = False
        self.missing[rows, group] += 1
        self._press(rows, group, begins + lasts)

    def _rebuilt(self, rows: Ints, member: Ints, goes_on: Bools) -> None:
        group = member // self.array.group_size
        if self.error > 0:
            bare = rows[self.missing[rows, group] == self.array.tolerance]
            if self.accelerated:
                unread = self.weight[bare] * self.error
                self.weight[bare] *= 1 - self.error
                self._record(bare, unread, np.full(len(bare), UNREADABLE))
            else:
                bare = bare[self.rng.random(len(bare)) < self.error]
                self._lost(bare, np.ones(len(bare)), np.full(len(bare), UNREADABLE), goes_on)
        self.up[rows, member] = True
        self.missing[rows, group] -= 1
        self._put_new(rows, member)

    def _lost(self, rows: Ints, weights: Floats, cause: Ints, goes_on: Bools) -> None:
        self._record(rows, weights, cause)
        goes_on[rows] = False

    def _record(self, rows: Ints, weights: Floats, cause: Ints) -> None:
        if len(rows):
            self.found.append((self.run[rows], self.now[rows], weights.copy(), cause))

    def _keep(self, goes_on: Bools) -> None:
        if goes_on.all():
            return
        for name in ("run", "now", "weight", "up", "missing", "due", "renews", "factor", "origin"):
            setattr(self, name, getattr(self, name)[goes_on])

    def losses(self) -> Losses:
        """What was recorded."""
        run, hours, weights, cause = (
            np.concatenate([np.empty(0), *(one[column] for one in self.found)])
            for column in range(4)
        )
        # Where drives wear out together by chance of their model, a life that has not been seen
        # may weigh as much as any.
        alike = self.wear is not None and self.wear.alike
        unseen = self.heaviest if alike else 0.0
        integers = run.astype(np.int64), cause.astype(np.int64)
        return Losses(self.runs, self.accelerated, integers[0], hours, weights, integers[1], unseen)
