"""The little statistics that comparisons need: Student's t, Welch's test, Holm's correction."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

CONFIDENCE = 0.95
"""Of all intervals here."""
POWER = 0.80
"""Chance of seeing a difference that is there, for which repeats are reckoned."""
REPEATS_MAX = 10_000
FEW = 30
"""Up to so many degrees of freedom the power of a t test is integrated, beyond it is as good as
the sum of two quantiles."""


@dataclass(frozen=True)
class Estimate:
    """A value, how sure it is, and the chance of one so far from zero if there were nothing."""

    value: float
    low: float
    high: float
    p: float


def t_cdf(t: float, df: float) -> float:
    """The chance that Student's t with `df` degrees of freedom is at most `t`."""
    if math.isinf(t):
        return 0.0 if t < 0 else 1.0
    tail = 0.5 * _beta(df / 2, 0.5, df / (df + t * t))
    return tail if t < 0 else 1.0 - tail


@lru_cache(maxsize=1024)
def t_quantile(share: float, df: float) -> float:
    """The value that Student's t with `df` degrees of freedom does not exceed with chance `share`;
    ValueError unless 0 < share < 1 and df > 0."""
    if not (0 < share < 1 and df > 0):
        raise ValueError(f"no quantile {share} of t with {df} degrees of freedom")
    if share <= 0.5:
        return 0.0 if share == 0.5 else -t_quantile(1 - share, df)
    # Newton's steps, of which those that leave what is known to hold the value halve it instead.
    low, high, t = 0.0, math.inf, NormalDist().inv_cdf(share)
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    for _ in range(200):
        off = t_cdf(t, df) - share
        low, high = (low, t) if off > 0 else (t, high)
        density = math.exp(log_scale - (df + 1) / 2 * math.log1p(t * t / df))
        nearer = t - off / density if density > 0 else math.inf
        if not low < nearer < high:
            nearer = 2 * t if math.isinf(high) else (low + high) / 2
        if abs(nearer - t) <= 1e-11 * t:
            return nearer
        t = nearer
    return t


def p_two_sided(t: float, df: float) -> float:
    """The chance of a t at least as far from zero."""
    return 2 * t_cdf(-abs(t), df)


def around(value: float, error: float, df: float) -> Estimate:
    """The estimate with standard error `error` on `df` degrees of freedom."""
    if error <= 0:
        # Values that never vary, as those of a simulated drive may be, leave no doubt.
        return Estimate(value, value, value, 1.0 if value == 0 else 0.0)
    half = t_quantile(0.5 + CONFIDENCE / 2, df) * error
    return Estimate(value, value - half, value + half, p_two_sided(value / error, df))


def mean_of(values: Sequence[float]) -> float:
    """The mean; of equal values exactly theirs, which a quotient may miss by its last digit."""
    return min(max(math.fsum(values) / len(values), min(values)), max(values))


def variance_of(values: Sequence[float]) -> float:
    """The variance, with n - 1 below; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    mean = mean_of(values)
    return math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)


def welch(
    first: Sequence[float], second: Sequence[float], resolution: float = 0.0
) -> Estimate | None:
    """mean(second) - mean(first) of independent repeats, by Welch's test (1947).

    The two may vary differently. Where one side is a single value, the spread of the other is taken
    for both. `resolution` is the standard error of every value from how coarsely it is told, which
    repeats do not average out. None where both are single values: nothing tells how much they vary.
    """
    n, m = len(first), len(second)
    value = mean_of(second) - mean_of(first)
    coarse = 2 * resolution * resolution
    if n < 2 and m < 2:
        return None
    if n < 2 or m < 2:
        spread = variance_of(first if n > 1 else second)
        return around(value, math.sqrt(spread * (1 / n + 1 / m) + coarse), max(n, m) - 1)
    a, b = variance_of(first) / n, variance_of(second) / m
    return around(value, math.sqrt(a + b + coarse), welch_df(first, second))


def welch_df(first: Sequence[float], second: Sequence[float]) -> float:
    """The degrees of freedom of Welch's test of two values or more each (Satterthwaite 1946)."""
    n, m = len(first), len(second)
    a, b = variance_of(first) / n, variance_of(second) / m
    if a + b == 0:
        return float(n + m - 2)
    return (a + b) ** 2 / (a * a / (n - 1) + b * b / (m - 1))


def holm(chances: Sequence[float]) -> list[float]:
    """Chances corrected for that there are several (Holm 1979): the smallest times their number,
    the next times one less, and none below the one before it."""
    order = sorted(range(len(chances)), key=lambda i: chances[i])
    found = [1.0] * len(chances)
    before = 0.0
    for rank, index in enumerate(order):
        before = max(before, min(1.0, chances[index] * (len(chances) - rank)))
        found[index] = before
    return found


@lru_cache(maxsize=1024)
def reach(df: float, tests: int = 1) -> float:
    """So many standard errors a difference must have to be seen with a chance of 80 %, where it is
    one of `tests`, whose chances Holm corrects: alone among them it needs the smallest."""
    limit = t_quantile(1 - (1 - CONFIDENCE) / 2 / tests, df)
    found = limit + t_quantile(POWER, df)
    if df > FEW:
        return found
    # With few degrees of freedom the noise found varies beside the difference: the chance is the
    # mean of normal ones over `share`, noise found / true noise (chi over the root of df).
    steps = 400
    width = (1 + 7 / math.sqrt(df)) / steps
    shares = [width * (step + 0.5) for step in range(steps)]
    logs = [(df - 1) * math.log(share) - df * share * share / 2 for share in shares]
    most = max(logs)
    weights = [math.exp(log - most) for log in logs]
    whole = math.fsum(weights)
    limits = [limit * share for share in shares]
    low, high = 0.0, 4 * found
    for _ in range(24):
        found = (low + high) / 2
        normal = (math.erfc((bound - found) / math.sqrt(2)) / 2 for bound in limits)
        chances = map(operator.mul, weights, normal)
        low, high = (found, high) if math.fsum(chances) < POWER * whole else (low, found)
    return found


def repeats_needed(
    spread: float, difference: float, resolution: float = 0.0, tests: int = 1
) -> int | None:
    """Pairs that a paired test needs to see `difference` with a chance of 80 %, if the differences
    of pairs have the standard deviation `spread`; None if more than can be thought of.
    `resolution` is as in :func:`welch`, `tests` as in :func:`reach`."""
    if difference <= 0:
        return None
    for n in range(2, REPEATS_MAX):
        errors = reach(n - 1, tests)
        room = difference * difference - 2 * (errors * resolution) ** 2
        if room > 0 and n * room >= (errors * spread) ** 2:
            return n
        if n > 200:  # t is as good as normal there
            return math.ceil((errors * spread) ** 2 / room) if room > 0 else None
    return None


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    fraction, c, d = 1.0, 1.0, 0.0
    for step in range(1, 2000):
        m = (step - 1) // 2
        if step == 1:
            top = 1.0
        elif step % 2 == 1:
            top = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            top = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 + top * d
        c = 1.0 + top / c
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = c if abs(c) > tiny else tiny
        fraction *= c * d
        if step > 1 and abs(c * d - 1.0) < 1e-15:
            break
    # The first step above has turned the fraction upside down: 1 + 1/..., of which 1 is too much.
    return front * (fraction - 1.0) / a
