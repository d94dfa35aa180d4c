"""Closed forms of write amplification under uniform random writes, and back from it to the spare.

``op`` is over-provisioning: physical / logical - 1, of the flash that holds data while collection
runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def fifo(op: float) -> float:
    """FIFO collection, and greedy with very large superblocks (Desnoyers, ACM ToS 10, 2014): a unit
    outlives a cycle of (1 + op) / WA writes per unit with probability exp(-(1 + op) / WA)."""
    return bisected(1.0 + 1e-9, 1e6, lambda waf: waf * (1 - math.exp(-(1 + op) / waf)) - 1)


def greedy(op: float, units: int) -> float:
    """Greedy collection of superblocks of so many units (Van Houdt, SIGMETRICS 2013, d to
    infinity): above the victims' count of valid units, superblocks sink through the counts i at
    rates in proportion to i."""
    harmonic = 0.0  # of 1/i over the counts above the one below
    for count in range(units - 2, -1, -1):
        # The victims hold `count` valid units, or one more.
        harmonic += 1 / (count + 2)
        left, above = units - count - 1, count + 1
        rate = ((1 + op) / units - 1 / above) / (harmonic - left / above)
        if rate > 0 and 0 <= 1 - rate * left <= rate:
            return units * rate
    return 1.0


def spare(waf: float) -> float:
    """The over-provisioning at which :func:`fifo` comes to ``waf``; infinite for 1 or less."""
    return math.inf if waf <= 1 else -waf * math.log1p(-1 / waf) - 1


def spare_random(waf: float) -> float:
    """The over-provisioning at which superblocks collected at random come to ``waf``: of each the
    same share is valid."""
    return math.inf if waf <= 1 else 1 / (waf - 1)


def bisected(low: float, high: float, rises: Callable[[float], float]) -> float:
    """The root of a function that is negative at ``low`` and positive at ``high``."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) < 0 else (low, middle)
    return (low + high) / 2
