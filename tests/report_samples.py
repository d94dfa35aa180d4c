# ruff: noqa: E501 - tables of made-up numbers
"""Results made up for the report's tests: two simulated drives and a measured one."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ssdlab.histogram import VALUES, bin_index
from ssdlab.results import LATENCY_SCHEMA, Result

PARTS = (
    "link", "link_wait", "controller", "map_fetch", "buffer_wait", "read_modify_write", "die_host",
    "die_collection", "die_map", "die_fold", "cells", "channel_wait", "channel", "array", "cache",
    "service",
)  # fmt: skip
DEPTH = 32
JOB = """; Sequential fill, then random writes at depth 32
[global]
ioengine=libaio
direct=1
bs=4k

[fill]
rw=write
bs=128k
iodepth=8

[random-write]
stonewall
rw=randwrite
iodepth=32
time_based
runtime=2000
write_iops_log=consistency
"""
FILL_S = 60


def simulated(
    name: str,
    *,
    seconds: int = 2000,
    fresh: float = 62_000,
    floor: float = 9_000,
    knee: int = 300,
    noise: float = 0.06,
    period: int | None = None,
    collection: float = 0.5,
    wa: float = 3.0,
    seed: int = 1,
) -> Result:
    """A drive that is fast until `knee` and then slows down to `floor` IOPS, with dips every
    `period` seconds; `collection` of its time goes to collection, of the slow I/Os nearly all."""
    generator = np.random.default_rng(seed)
    t = np.arange(1, seconds + 1, dtype=float)
    iops = np.where(t <= knee, fresh, floor + (fresh / 3 - floor) * np.exp(-(t - knee) / 60))
    iops = iops * (1 + noise * generator.standard_normal(seconds))
    if period:
        iops = np.where((t > knee) & (t % period < 3), iops * 0.35, iops)
    ios = np.maximum(iops, 50).astype(np.int64)
    late = t > knee
    lat = _latencies(generator, ios, collection)
    parts = part_shares(collection)
    columns = {
        f"part_{part}_ns": (lat["mean"] * ios * parts.get(part, 0.0)).astype(np.int64)
        for part in PARTS
    }
    series = pl.concat(
        [
            _fill_series(450e6, with_parts=True),
            _series(t + FILL_S, "random-write", "write", ios, lat, columns),
        ]
    )
    written = np.concatenate(
        [np.arange(1, FILL_S + 1) * 110_000, FILL_S * 110_000 + np.cumsum(ios)]
    )
    moved = np.concatenate([np.zeros(FILL_S), np.cumsum(np.where(late, (wa - 1) * ios, 0))])
    device = pl.DataFrame(
        {
            "time_s": np.concatenate([np.arange(1.0, FILL_S + 1), t + FILL_S]),
            "below/host_units_written": written,
            "below/programs_host": written,
            "below/programs_collection": moved.astype(np.int64),
            "below/programs_wear": (moved * 0.001).astype(np.int64),
            "below/erases": ((written + moved) / 256).astype(np.int64),
            "below/free_blocks": np.maximum(
                4000 - written / 4e3, 96 + generator.integers(0, 24, len(written))
            ).astype(np.int64),
        }
    )
    ssdlab = {
        "schema": 1, "version": "0.1.0", "seed": seed,
        "target": {"kind": "sim", "name": name, "summary": f"{name}: 8 channels of 2 dies, page map", "capacity_bytes": 4 * 2**30},
        "profile": {
            "name": name,
            "summary": "A drive for tests: page-mapped, greedy collection, no buffer.",
            "values": [
                {"key": "nand.t_read", "value": "75us", "source": "assumed"},
                {"key": "nand.t_program", "value": "750us", "source": "datasheet of a common MLC part, table 12"},
                {"key": "ftl.over_provisioning", "value": "0.07", "source": "assumed"},
            ],
        },
        "ignored_options": [{"job": "global", "option": "direct", "value": "1", "line": 4}],
        "preconditioning": "sequential", "simulated_seconds": float(seconds + FILL_S), "interval_ms": 1000,
        "waf": wa,
        "counters": {column: int(device[column][-1]) for column in device.columns[1:]},
        "attribution": {"parts": list(PARTS), "jobs": {"random-write": {"write": _attribution(lat, ios, collection)}}},
        "surroundings": {},
    }  # fmt: skip
    return Result(
        name=name,
        document=_document(ios, lat, seconds, ssdlab),
        job_text=JOB,
        series_frame=series,
        device_frame=device,
        latency_frame=_segments(t + FILL_S, "random-write", "write", ios, lat),
        rig_toml='[device]\nkind = "ssd"\ncapacity = "4GiB"\n\n[device.ftl]\nover_provisioning = 0.07\n',
    )


def measured(name: str = "/tmp/scratch.bin", *, seconds: int = 30, seed: int = 7) -> Result:
    """A file on a real file system: fast, uneven, and silent about where its time goes."""
    generator = np.random.default_rng(seed)
    ios = (70_000 * (1 + 0.12 * generator.standard_normal(seconds))).astype(np.int64)
    lat = _latencies(generator, ios, 0.2)
    t = np.arange(1, seconds + 1) + generator.uniform(0, 0.004, seconds)
    ssdlab = {
        "schema": 1, "version": "0.1.0", "seed": None,
        "target": {"kind": "fio", "name": name, "summary": "file of 256 MiB on ext4", "capacity_bytes": 256 * 2**20},
        "interval_ms": 1000,
        "surroundings": {"kernel": "6.1.0", "device": {"model": "QEMU disk", "scheduler": "none"}},
    }  # fmt: skip
    return Result(
        name=name,
        document=_document(ios, lat, seconds, ssdlab, fill=False),
        job_text=JOB,
        series_frame=_series(t, "random-write", "write", ios, lat, {}),
        latency_frame=_segments(t, "random-write", "write", ios, lat),
    )


def mixed(name: str = "mixed", *, seconds: int = 120) -> Result:
    """Reads and writes in one job."""
    generator = np.random.default_rng(3)
    t = np.arange(1.0, seconds + 1)
    reads = (20_000 * (1 + 0.05 * generator.standard_normal(seconds))).astype(np.int64)
    writes = (reads * 0.43).astype(np.int64)
    lat_r, lat_w = _latencies(generator, reads, 0.1), _latencies(generator, writes, 0.6)
    result = measured(name)
    job = result.document["jobs"][0]
    job["job options"] = {"rw": "randrw", "iodepth": "32", "rwmixread": "70"}
    job["read"], job["write"] = (
        _direction(reads, lat_r, seconds),
        _direction(writes, lat_w, seconds),
    )
    result.series_frame = pl.concat(
        [
            _series(t, "random-write", "read", reads, lat_r, {}),
            _series(t, "random-write", "write", writes, lat_w, {}),
        ]
    )
    result.latency_frame = pl.concat(
        [
            _segments(t, "random-write", "read", reads, lat_r),
            _segments(t, "random-write", "write", writes, lat_w),
        ]
    )
    return result


def part_shares(collection: float) -> dict[str, float]:
    """Of the time of the random writes, by part."""
    rest = 1 - collection
    return {
        "link": 0.02 * rest, "controller": 0.03 * rest, "die_host": 0.45 * rest,
        "cells": 0.42 * rest, "channel": 0.08 * rest, "die_collection": collection,
    }  # fmt: skip


def _latencies(
    generator: np.random.Generator, ios: np.ndarray[Any, Any], collection: float
) -> dict[str, Any]:
    """Little's law for the mean; a log-normal body with a tail of collection."""
    mean = DEPTH / np.maximum(ios, 1) * 1e9
    p99 = mean * (2.2 + 3 * collection) * generator.lognormal(0, 0.08, len(ios))
    top = p99 * generator.lognormal(0.7, 0.3, len(ios))
    body = generator.lognormal(np.log(np.median(mean)), 0.45, 60_000)
    tail = generator.random(60_000) < 0.01
    sample = np.where(
        tail, body * (2 + 8 * collection) * generator.exponential(1, 60_000) + body, body
    )
    return {"mean": mean, "p99": p99, "max": top, "sample": sample}


def _series(
    t: np.ndarray[Any, Any],
    job: str,
    ddir: str,
    ios: np.ndarray[Any, Any],
    lat: dict[str, Any],
    more: dict[str, Any],
    block: int = 4096,
) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "time_s": t.astype(float),
            "job": [job] * len(t),
            "ddir": [ddir] * len(t),
            "ios": ios.astype(np.uint64),
            "iops": ios.astype(float),
            "bytes": (ios * block).astype(np.uint64),
            "bw_bytes": (ios * block).astype(float),
            "lat_min_ns": (lat["mean"] * 0.2).astype(np.uint64),
            "lat_mean_ns": lat["mean"].astype(float),
            "lat_max_ns": lat["max"].astype(np.uint64),
            "lat_p50_ns": (lat["mean"] * 0.9).astype(np.uint64),
            "lat_p99_ns": lat["p99"].astype(np.uint64),
            **more,
        }
    )


def _segments(
    t: np.ndarray[Any, Any], job: str, ddir: str, ios: np.ndarray[Any, Any], lat: dict[str, Any]
) -> pl.DataFrame:
    """Latencies by second: the whole distribution moved to the mean of each."""
    shape = lat["sample"][:400] / lat["sample"][:400].mean()
    rows = []
    for end, count, mean, top in zip(t, ios, lat["mean"], lat["max"], strict=True):
        bins, counts = np.unique(bin_index(shape * mean), return_counts=True)
        counts = np.maximum(1, counts * int(count) // len(shape))
        rows.append(
            {
                "time_s": float(end), "length_s": 1.0, "job": job, "ddir": ddir, "kind": "clat",
                "ios": int(count), "sum_ns": float(count * mean), "min_ns": int(mean * shape.min()),
                "max_ns": int(max(top, VALUES[bins[-1]])), "bins": bins.tolist(), "counts": counts.tolist(),
            }
        )  # fmt: skip
    return pl.DataFrame(rows, schema=LATENCY_SCHEMA)


def _fill_series(rate: float, with_parts: bool) -> pl.DataFrame:
    ios = np.full(FILL_S, int(rate / 131072))
    lat = {"mean": 8 / ios * 1e9, "p99": 9 / ios * 1e9, "max": 12 / ios * 1e9}
    more = {f"part_{part}_ns": np.zeros(FILL_S, dtype=np.int64) for part in PARTS if with_parts}
    return _series(np.arange(1, FILL_S + 1), "fill", "write", ios, lat, more, 131072)


def _bins(sample: np.ndarray[Any, Any], ios: int) -> dict[str, int]:
    values, counts = np.unique(VALUES[bin_index(sample)], return_counts=True)
    scaled = np.maximum(1, counts * ios // len(sample))
    return {str(v): int(c) for v, c in zip(values, scaled, strict=True)}


def _direction(
    ios: np.ndarray[Any, Any], lat: dict[str, Any], seconds: int, block: int = 4096
) -> dict[str, Any]:
    total = int(ios.sum())
    bins = _bins(lat["sample"], total)
    return {
        "io_bytes": total * block, "total_ios": sum(bins.values()), "runtime": seconds * 1000,
        "iops": total / seconds, "bw_bytes": total * block / seconds, "bw": total * block / seconds / 1024,
        "clat_ns": {
            "min": float(lat["sample"].min()), "max": float(lat["sample"].max()),
            "mean": float(lat["sample"].mean()), "stddev": float(lat["sample"].std()),
            "bins": bins,
        },
    }  # fmt: skip


def _document(
    ios: np.ndarray[Any, Any],
    lat: dict[str, Any],
    seconds: int,
    ssdlab: dict[str, Any],
    fill: bool = True,
) -> dict[str, Any]:
    fill_ios = np.full(FILL_S, int(450e6 / 131072))
    fill_lat = {"sample": np.full(100, 2.4e6)}
    jobs = [
        {
            "jobname": "random-write", "error": 0, "job_runtime": seconds * 1000,
            "job options": {"rw": "randwrite", "iodepth": "32", "runtime": str(seconds)},
            "read": {"total_ios": 0}, "write": _direction(ios, lat, seconds), "trim": {"total_ios": 0},
        }
    ]  # fmt: skip
    if fill:
        jobs.insert(
            0,
            {
                "jobname": "fill", "error": 0, "job_runtime": FILL_S * 1000,
                "job options": {"rw": "write", "bs": "128k", "iodepth": "8"},
                "read": {"total_ios": 0}, "write": _direction(fill_ios, fill_lat, FILL_S, 131072),
            },
        )  # fmt: skip
    return {
        "fio version": "fio-3.33",
        "global options": {"ioengine": "libaio", "bs": "4k"},
        "jobs": jobs,
        "ssdlab": ssdlab,
    }


def _attribution(
    lat: dict[str, Any], ios: np.ndarray[Any, Any], collection: float
) -> dict[str, Any]:
    """Classes of a quarter of a power of two; the slower, the more collection."""
    total = int(ios.sum())
    sample = np.sort(lat["sample"])
    edges = 2.0 ** (np.arange(40, 160) / 4)
    index = np.searchsorted(edges, sample, side="right")
    classes = []
    sums = np.zeros(len(PARTS))
    for i in np.unique(index):
        members = sample[index == i]
        rank = float((sample < members[0]).mean())
        shares = part_shares(
            collection * 0.7
            + (0.97 - collection * 0.7) * max(0.0, rank - 0.6) / 0.4 * min(1.0, 2 * collection)
        )
        scale = total / len(sample)
        ns = np.array([shares.get(part, 0.0) for part in PARTS]) * members.sum() * scale
        sums += ns
        classes.append(
            {
                "upper_ns": int(edges[i]),
                "ios": max(1, int(len(members) * scale)),
                "ns": [int(x) for x in ns],
            }
        )
    return {"total_ns": [int(x) for x in sums], "by_latency": classes}
