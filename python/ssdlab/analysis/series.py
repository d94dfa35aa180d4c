"""The job series on the job's own clock, in bins of about a second without gaps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from ssdlab.numeric import Floats

TOGETHER = 0.5
"""Rows whose ends differ by less than this share of an interval belong to the same interval:
workers of one name write their logs some milliseconds apart."""
JITTER = 0.1
"""Share of an interval by which its end may be late and still belong to its second."""
BIN_S = 1.0
"""Shorter intervals are gathered to bins of this length unless another is asked for."""
_LATENCIES = ("lat_mean_ns", "lat_p99_ns", "lat_max_ns")


def per_second(
    rows: pl.DataFrame, interval_s: float = 1.0, start_s: float | None = None, bin_s: float = BIN_S
) -> pl.DataFrame:
    """One job's rows of one direction as bins without gaps, on the job's own clock.

    `rows` has the columns of docs/results.md; a row covers `ios / iops` seconds up to `time_s`.
    Rows of one interval (several workers) are added; intervals shorter than `bin_s` are gathered;
    intervals without a row become zeros with null latencies. `start_s` is when the job began on
    the run's clock, by default the beginning of the first row.

    Columns: `time_s` (end of the bin since the job's start), `iops`, `bw_bytes`, `ios`, `bytes`,
    `lat_mean_ns`, `lat_p99_ns` (the largest of what was gathered), `lat_max_ns`, `part_*_ns`.
    """
    joined = _join_workers(rows, interval_s)
    begin = _begins(joined, interval_s)
    start = start_s if start_s is not None else float(begin[0]) if len(begin) else 0.0
    filled = _fill_gaps(joined, begin, interval_s, start)
    if interval_s < bin_s * (1 - JITTER):
        filled = _gather(filled, interval_s, bin_s)
    summed = [name for name in filled.columns if name.startswith("part_")]
    return filled.select(
        "time_s",
        (pl.col("ios") / pl.col("length")).alias("iops"),
        (pl.col("bytes") / pl.col("length")).alias("bw_bytes"),
        "ios",
        "bytes",
        *(pl.when(pl.col("ios") > 0).then(pl.col(name)).alias(name) for name in _LATENCIES),
        *summed,
    )


def start_s(rows: pl.DataFrame, interval_s: float = 1.0) -> float:
    """When the job began on the run's clock, in seconds: the earliest beginning of its rows."""
    joined = _join_workers(rows, interval_s)
    return 0.0 if joined.is_empty() else max(0.0, float(_begins(joined, interval_s).min()))


def _join_workers(rows: pl.DataFrame, interval_s: float) -> pl.DataFrame:
    """One row per interval; `length` is how many seconds it covers."""
    parts = [name for name in rows.columns if name.startswith("part_")]
    number = pl.Float64
    ordered = rows.sort("time_s").with_columns(pl.col("ios", "bytes", *parts).cast(number))
    ends = ordered["time_s"].cast(number).to_numpy()
    new = _new_interval(ordered, ends, interval_s)
    if new[1:].all():
        # Most jobs have one worker; to group their rows would take longest of all.
        latency, ios = pl.col("lat_mean_ns").cast(number), pl.col("ios")
        joined = ordered.select(
            pl.col("time_s").cast(number),
            pl.col("ios", "bytes", *parts).fill_null(0.0),
            pl.col("iops").cast(number).fill_null(0.0),
            (latency * ios / ios).alias("lat_mean_ns"),
            pl.col("lat_p99_ns", "lat_max_ns").cast(number),
        )
    else:
        interval = pl.Series("interval", np.cumsum(new), dtype=pl.Int64)
        joined = (
            ordered.with_columns(interval)
            .group_by("interval", maintain_order=True)
            .agg(
                pl.col("time_s").cast(number).max(),
                pl.col("ios", "bytes", *parts).sum(),
                pl.col("iops").cast(number).sum(),
                _mean_latency(),
                pl.col("lat_p99_ns", "lat_max_ns").max().cast(number),
            )
            .drop("interval")
        )
    length = pl.when(pl.col("iops") > 0).then(pl.col("ios") / pl.col("iops"))
    return joined.with_columns(length=length.otherwise(float(interval_s))).drop("iops")


def _mean_latency() -> pl.Expr:
    """Of the I/Os whose latency is known; null where that is none of them."""
    latency, known = pl.col("lat_mean_ns").cast(pl.Float64), pl.col("lat_mean_ns").is_not_null()
    mean = (latency * pl.col("ios")).sum() / pl.col("ios").filter(known).sum()
    return pl.when(known.any()).then(mean).alias("lat_mean_ns")


def _new_interval(ordered: pl.DataFrame, ends: Floats, interval_s: float) -> npt.NDArray[np.bool_]:
    """Whether each row belongs to another interval than the one before it: it ends much later, or
    begins only where that one ends, as the short last interval of a job does."""
    ios, iops = (ordered[name].cast(pl.Float64).to_numpy() for name in ("ios", "iops"))
    length = np.divide(ios, iops, out=np.full(len(ends), float(interval_s)), where=iops > 0)
    before = np.concatenate((ends[:1], ends[:-1]))
    later = ends - before > TOGETHER * interval_s
    behind = (ends > before) & (ends - length >= before - JITTER * interval_s)
    new: npt.NDArray[np.bool_] = later | behind
    return new


def _begins(joined: pl.DataFrame, interval_s: float) -> Floats:
    """When each row begins; a row that seems longer than two intervals is taken for one."""
    length = joined["length"].to_numpy()
    begins: Floats = joined["time_s"].to_numpy() - np.where(
        length <= 2 * interval_s, length, interval_s
    )
    return begins


def _fill_gaps(
    joined: pl.DataFrame, begin: Floats, interval_s: float, start: float
) -> pl.DataFrame:
    """Adds rows of zeros where nothing completed, and moves the clock to the job's start."""
    before = np.concatenate(([start], joined["time_s"].to_numpy()[:-1]))
    missing = np.maximum(0, np.round((begin - before) / interval_s)).astype(int)
    ends = [
        at + interval_s * (k + 1)
        for at, count in zip(before, missing, strict=False)
        for k in range(count)
    ]
    if not ends:
        return joined.with_columns(pl.col("time_s") - start)
    counts = [name for name in joined.columns if name not in ("time_s", "length", *_LATENCIES)]
    zeros = pl.DataFrame({"time_s": pl.Series(ends, dtype=pl.Float64)}).with_columns(
        *(pl.lit(0.0).alias(name) for name in counts), length=pl.lit(float(interval_s))
    )
    return (
        pl.concat([joined, zeros], how="diagonal")
        .sort("time_s")
        .with_columns(pl.col("time_s") - start)
    )


def _gather(filled: pl.DataFrame, interval_s: float, bin_s: float) -> pl.DataFrame:
    """Short intervals as bins of `bin_s` seconds; a last bin of less than half of that is dropped,
    if it is not the only one."""
    summed = [n for n in filled.columns if n not in ("time_s", *_LATENCIES)]
    bins = (
        filled.with_columns(
            bin=((pl.col("time_s") - JITTER * interval_s) / bin_s).ceil().cast(pl.Int64)
        )
        .group_by("bin", maintain_order=True)
        .agg(_mean_latency(), pl.col("lat_p99_ns", "lat_max_ns").max(), pl.col(*summed).sum())
        .with_columns(time_s=pl.col("bin") * bin_s)
        .drop("bin")
    )
    if len(bins) > 1 and bins["length"][-1] < bin_s / 2:
        bins = bins.head(len(bins) - 1)
    return bins
