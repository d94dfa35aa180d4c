"""What the members of an array can write before they are worn out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from ssdlab.analysis.reliability import HOURS_PER_YEAR
from ssdlab.errors import InputError

RATED_SHORT = 0.03
"""JESD218 lets so many drives fail while their rated endurance is written."""
SPREAD_MIN = 0.001
"""Less spread than this is none."""
QUANTILES = 4001
"""Points at which models are looked at, to find the scale of endurance."""
RATED_DAYS_MIN = 10
"""A rating that is written in less is a slip of units."""


@dataclass(frozen=True)
class WearOut:
    """How members wear out: a member fails for good when it has written its endurance.

    The endurance of the drives of a model is a Weibull variable, its scale from model to model a
    lognormal one. `rated_bytes` is what 97 % of all drives reach (JESD218 lets 3 % fail by then).
    Raises InputError where a value is out of range.
    """

    rated_bytes: float
    """The rated endurance (TBW) of a member."""
    bytes_per_day: float
    """That a member writes."""
    start: Sequence[float] = ()
    """Share of its rating that each member has written at the beginning; all new if empty."""
    models: int = 1
    """Different models in the array, dealt in turn; a new drive is of the model that it follows."""
    spread: float = 0.1
    """Standard deviation of the logarithm of endurance between drives of one model; 0 has them
    all wear out at the same number of bytes."""
    model_spread: float = 0.2
    """The same between models."""
    renew_at: float | None = None
    """Share of the rating at which a member is copied to a new drive while it still works."""

    def __post_init__(self) -> None:
        for name, value, low in (
            ("the rated endurance", self.rated_bytes, 1.0),
            ("the amount written per day", self.bytes_per_day, 0.0),
            ("the spread of endurance", self.spread, 0.0),
            ("the spread of endurance between models", self.model_spread, 0.0),
        ):
            if not (math.isfinite(value) and value >= low):
                raise InputError(f"{name} is a number from {low:g}, found {value:g}")
        if max(self.spread, self.model_spread) > 2:
            raise InputError("the spread of endurance is at most 2 (a factor of 7 up and down)")
        if self.models < 1:
            raise InputError(f"an array has at least 1 model of drive, found {self.models}")
        if self.bytes_per_day * RATED_DAYS_MIN > self.rated_bytes:
            raise InputError(
                f"a member would write its rated endurance of {self.rated_bytes / 1e12:.3g} TB "
                f"within {RATED_DAYS_MIN} days ({self.bytes_per_day / 1e12:.3g} TB per day)"
            )
        if any(not 0 <= share < math.inf for share in self.start):
            raise InputError("the share already written is a number from 0")
        if self.renew_at is not None and not 0 < self.renew_at < math.inf:
            raise InputError(f"members are renewed at a share above 0, found {self.renew_at:g}")

    @property
    def alike(self) -> bool:
        """Whether all drives of a model wear out at the same number of bytes."""
        return self.spread < SPREAD_MIN

    @property
    def shape(self) -> float:
        """Of the Weibull distribution: ln X deviates by pi / (sqrt(6) shape)."""
        return math.inf if self.alike else math.pi / (math.sqrt(6) * self.spread)

    @cached_property
    def scale_bytes(self) -> float:
        """Of the Weibull distribution, for a model in the middle."""
        normal = NormalDist()
        if self.alike:
            short = self.model_spread * normal.inv_cdf(RATED_SHORT)
            return self.rated_bytes * math.exp(-short)
        points = [normal.inv_cdf((n + 0.5) / QUANTILES) for n in range(QUANTILES)]
        models = self.model_spread * np.array(points)
        low, high = 0.0, 10 * (self.model_spread + self.spread)
        for _ in range(60):
            middle = (low + high) / 2
            power = np.exp(np.minimum(-self.shape * (middle + models), 50.0))
            low, high = (middle, high) if -np.expm1(-power).mean() > RATED_SHORT else (low, middle)
        return self.rated_bytes * math.exp(high)

    @property
    def rated_years(self) -> float:
        """How long the rating lasts a new member; inf without writes."""
        days = self.rated_bytes / self.bytes_per_day if self.bytes_per_day else math.inf
        return days * 24 / HOURS_PER_YEAR
