"""What went on inside a simulated drive: write amplification, collection and folding against
time."""

from __future__ import annotations

import numpy as np
import polars as pl

from ssdlab.numeric import Floats, Indices
from ssdlab.wear import at, written_over_time

FREE = ("free_superblocks", "free_blocks")
"""Names of the gauge of erased blocks, the first that the device has."""
ERASES = ("flash_erases", "erases")
"""Names of the count of erases, the first that the device has."""


def _counter(frame: pl.DataFrame, *names: str) -> Floats | None:
    """A counter, added over all places that have it (`a/name`, `b/name`): the first of `names`
    that any place has, or None."""
    for name in names:
        columns = [column for column in frame.columns if column.rpartition("/")[2] == name]
        if columns:
            total: Floats = np.sum([frame[column].to_numpy() for column in columns], axis=0)
            return total
    return None


def activity(frame: pl.DataFrame, bin_s: float = 1.0) -> pl.DataFrame | None:
    """The device series as rates per bin; None if the device counts no programs (not flash).

    `frame` has cumulative counters (docs/results.md). Its first row is the state at the start if
    its time is 0; otherwise the counters are taken to have been 0 at time 0. Columns, one row per
    bin of `bin_s` seconds: `time_s`, `wa` (bytes programmed per byte written to SSDs in that bin;
    null where nothing was written), `relocated_bytes` by collection, `folded_bytes` and
    `erases` per second, and `free_blocks`; what the device does not count, and folding where
    nothing is ever folded, is left out.
    """
    if frame.is_empty():
        return None
    # Of the rows within a bin its end is enough.
    values = frame[_bin_ends(frame["time_s"].to_numpy(), bin_s)].fill_null(0).cast(pl.Float64)
    written = written_over_time({name: values[name].to_numpy() for name in frame.columns})
    if written is None:
        return None
    time = values["time_s"].to_numpy()
    ended = time > 0
    ends = np.concatenate(([0.0], time[ended]))
    steps = np.diff(ends)

    def grown(counted: Floats) -> Floats:
        return np.diff(at(time, counted, ends))

    host = grown(written.host)
    columns: dict[str, Floats] = {
        "time_s": time[ended],
        "wa": np.divide(
            grown(written.programmed), host, out=np.full(len(host), np.nan), where=host > 0
        ),
    }
    for name, cause in (("relocated_bytes", "collection"), ("folded_bytes", "fold")):
        moved = written.causes.get(cause)
        if moved is not None and (cause != "fold" or moved[-1] > 0):
            columns[name] = grown(moved) / steps
    erases = _counter(values, *ERASES)
    if erases is not None:
        columns["erases"] = grown(erases) / steps
    free = _counter(values, *FREE)
    if free is not None:
        columns["free_blocks"] = free[ended]
    return pl.DataFrame(columns).with_columns(pl.col("wa").fill_nan(None))


def _bin_ends(time: Floats, bin_s: float) -> Indices:
    """Positions of the last row in each bin, and of that of time 0, from which all grows."""
    bins = np.ceil(time / bin_s - 1e-9)
    # A row just after the start counts to its bin.
    ends = np.flatnonzero(np.append(np.diff(bins) > 0, True) | (time == 0))
    # What is left of a run after its last whole bin counts to that, if it is less than half of one:
    # the last I/Os of a job complete just after its time is up, and theirs is no rate.
    whole = time[ends[:-1]].max(initial=0.0)
    short = whole > 0 and time[ends[-1]] - whole < bin_s / 2
    return np.delete(ends, -2) if short else ends
