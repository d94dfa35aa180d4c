"""Fewer points for a chart, without losing what stands out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

LIMIT = 20_000
"""Points of one chart beyond which some are left out."""


def keep_extremes(
    columns: Sequence[npt.NDArray[np.float64]], limit: int = LIMIT
) -> npt.NDArray[np.intp]:
    """Positions to keep, ascending, at most `limit`: in each of equal stretches the lowest and the
    highest point of every column (of equal lengths; NaN is neither), and the first and the last
    point of all."""
    n = len(columns[0])
    if n <= limit:
        return np.arange(n)
    buckets = max(1, (limit - 2) // (2 * len(columns)))
    length = -(-n // buckets)
    keep = [np.array([0, n - 1])]
    for column in columns:
        padded = np.full(length * -(-n // length), np.nan)
        padded[:n] = column
        rows = padded.reshape(-1, length)
        offset = np.arange(len(rows)) * length
        for fill, pick in ((np.inf, np.argmin), (-np.inf, np.argmax)):
            keep.append(offset + pick(np.where(np.isnan(rows), fill, rows), axis=1))
    found = np.unique(np.concatenate(keep))
    return found[found < n].astype(np.intp)
