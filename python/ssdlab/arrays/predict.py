"""What an array of N equal members does, predicted from latencies of one of them.

A request that is cut into a piece for every member ends when the slowest has done its piece. With
a member's latency X, N members that worked independently would do N pieces in E[X]; bound to each
other they take E[max of N draws of X]: RAID 0 falls below N times one drive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ssdlab.histogram import VALUES, Histogram


@dataclass(frozen=True)
class Predicted:
    """Throughputs of N members, bytes a second."""

    by_means: float
    """N times one member: as if they did not wait for each other."""
    by_slowest: float
    """Every request as long as the slowest of N independent draws."""

    @property
    def loss(self) -> float:
        """Share of the straight line that waiting takes."""
        return 1.0 - self.by_slowest / self.by_means


def slowest_mean(latency: Histogram, members: int) -> float:
    """E[max of ``members`` independent draws] of a histogram, exactly (ns)."""
    up_to = (np.cumsum(latency.counts) / latency.ios) ** members
    return float(np.diff(up_to, prepend=0.0) @ VALUES)


def foretell(latency: Histogram, members: int, piece: int) -> Predicted:
    """What ``members`` do with requests of a piece of so many bytes on each, one at a time."""
    whole = members * piece
    return Predicted(
        whole / (slowest_mean(latency, 1) / 1e9), whole / (slowest_mean(latency, members) / 1e9)
    )


def slowest_of(times: Sequence[float]) -> tuple[float, list[float]]:
    """How long one request takes, and the share of it that each member was busy."""
    longest = max(times)
    return longest, [time / longest for time in times]
