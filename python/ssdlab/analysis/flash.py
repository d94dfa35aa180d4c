"""What went on inside a simulated drive: write amplification, collection and folding against
time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]

HOST_UNITS = "host_units_written"
PROGRAMS = "programs_"
COLLECTED = "programs_collection"
FOLDED = "programs_fold"
FREE = ("free_superblocks", "free_blocks")
"""Names of the gauge of erased blocks, the first that the device has."""
ERASES = ("flash_erases", "erases")
"""Names of the count of erases, the first that the device has."""


def counter(frame: pl.DataFrame, *names: str) -> Floats | None:
    """A counter, added over all places that have it (`a/name`, `b/name`): the first of `names`
    that any place has, or None."""
    for name in names:
        columns = [column for column in frame.columns if column.rpartition("/")[2] == name]
        if columns:
            total: Floats = np.sum(
                [frame[c].fill_null(0).cast(pl.Float64).to_numpy() for c in columns], axis=0
            )
            return total
    return None


def activity(frame: pl.DataFrame, bin_s: float = 1.0) -> pl.DataFrame | None:
    """The device series as rates per bin; None if the device counts no programs (not flash).

    `frame` has cumulative counters (docs/results.md). Its first row is the state at the start if
    its time is 0; otherwise the counters are taken to have been 0 at time 0. Columns, one row per
    bin of `bin_s` seconds: `time_s`, `wa` (units programmed per unit written by the host in that
    bin; null where the host wrote nothing), `collected_units`, `folded_units` and `erases` per
    second, and `free_blocks`; what the device does not count, and folding where nothing is ever
    folded, is left out.
    """
    found = _written_and_programmed(frame)
    if found is None or frame.is_empty():
        return None
    written, programmed = found
    time = _time(frame)
    keep = _bin_ends(time, bin_s)
    at = np.concatenate(([0.0], time[keep]))
    steps = np.diff(at)
    host = np.diff(_at(time, written, at))
    columns: dict[str, Floats] = {
        "time_s": time[keep],
        "wa": np.divide(
            np.diff(_at(time, programmed, at)),
            host,
            out=np.full(len(keep), np.nan),
            where=host > 0,
        ),
    }
    for name, sources in (
        ("collected_units", (COLLECTED,)),
        ("folded_units", (FOLDED,)),
        ("erases", ERASES),
    ):
        values = counter(frame, *sources)
        if values is not None and (name != "folded_units" or values[-1] > 0):
            columns[name] = np.diff(_at(time, values, at)) / steps
    free = counter(frame, *FREE)
    if free is not None:
        columns["free_blocks"] = free[keep]
    return pl.DataFrame(columns).with_columns(pl.col("wa").fill_nan(None))


def write_amplification(frame: pl.DataFrame, from_s: float, to_s: float) -> float | None:
    """WA between two instants of the run's clock: units programmed for any reason per unit that
    the host wrote. None if it is not flash or nothing was written."""
    found = causes(grown(frame, from_s, to_s))
    return sum(found.values()) if found else None


def grown(frame: pl.DataFrame, from_s: float, to_s: float) -> dict[str, float]:
    """By how much each counter grew between two instants of the run's clock, by its last name;
    `a/name` and `b/name` are added up."""
    if frame.is_empty():
        return {}
    time, at = _time(frame), np.array([from_s, to_s])
    names = dict.fromkeys(column.rpartition("/")[2] for column in frame.columns)
    names.pop("time_s", None)
    found = {
        name: float(np.diff(_at(time, values, at))[0])
        for name in names
        if (values := counter(frame, name)) is not None
    }
    if HOST_UNITS not in found and f"{PROGRAMS}host" in found:
        found[HOST_UNITS] = found[f"{PROGRAMS}host"]
    return found


def causes(growth: Mapping[str, float]) -> dict[str, float]:
    """Write amplification by cause (`host`, `collection`, ...), in the order of the counters: units
    programmed per unit that the host wrote, from what `grown` found. Causes of nothing are left
    out; empty if it is not flash or nothing was written."""
    host = growth.get(HOST_UNITS, 0.0)
    if host <= 0:
        return {}
    return {
        name.removeprefix(PROGRAMS): units / host
        for name, units in growth.items()
        if name.startswith(PROGRAMS) and units > 0
    }


def _written_and_programmed(frame: pl.DataFrame) -> tuple[Floats, Floats] | None:
    written = counter(frame, HOST_UNITS, f"{PROGRAMS}host")
    last_names = (column.rpartition("/")[2] for column in frame.columns)
    kinds = dict.fromkeys(name for name in last_names if name.startswith(PROGRAMS))
    programs = [values for kind in kinds if (values := counter(frame, kind)) is not None]
    if written is None or not programs:
        return None
    total: Floats = np.sum(programs, axis=0)
    return written, total


def _time(frame: pl.DataFrame) -> Floats:
    return frame["time_s"].cast(pl.Float64).to_numpy()


def _at(time: Floats, values: Floats, at: Floats) -> Floats:
    """A cumulative counter at some instants, on straight lines between the rows."""
    if time[0] > 0:
        time, values = np.concatenate(([0.0], time)), np.concatenate(([0.0], values))
    return np.interp(at, time, values)


def _bin_ends(time: Floats, bin_s: float) -> npt.NDArray[np.intp]:
    """Positions of the last row in each bin, the start left out."""
    bins = np.ceil(time / bin_s - 1e-9)
    ends = np.flatnonzero(np.append(np.diff(bins) > 0, True))
    return ends[time[ends] > 0]
