"""What the core measured in virtual time, as a Result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ssdlab import _core, wear
from ssdlab.fio import logs as fio_logs
from ssdlab.fio.options import ADDED_FOR_LOGS
from ssdlab.histogram import Ints
from ssdlab.jobfile import JobText
from ssdlab.results import CLASS_SCHEMA, LATENCY_SCHEMA, JobShape, Result


def log_interval(interval_ms: int) -> int:
    """Milliseconds of a line of fio's logs of a simulated run: no longer than on a real drive."""
    return min(interval_ms, int(ADDED_FOR_LOGS["log_avg_msec"]))


def sim_shapes(described: Mapping[str, Any]) -> list[JobShape]:
    """The sections of a job as the core describes it."""
    shapes = []
    for job in described["jobs"]:
        options = {**described["global_options"], **job["options"]}
        rw = "replay" if "read_iolog" in options else options.get("rw", "read").split(":")[0]
        name, depth, threads = job["name"], job["iodepth"], job["numjobs"]
        shapes.append(JobShape(name, rw, depth, threads, options.get("bs", "4k")))
    return shapes


def latency_frame(output: _core.RunOutput) -> pl.DataFrame:
    """The latency histograms of a simulated run against time, see docs/results.md.

    A row per segment, job, direction and kind, with the I/Os of each of fio's bins as the lists
    ``bins`` and ``counts``, and by latency class where their time went.
    """
    schema = pl.Schema({**LATENCY_SCHEMA, **CLASS_SCHEMA})
    columns = dict(output.latency)
    bins = np.asarray(columns.pop("offsets"), np.int64)
    classes = np.asarray(columns.pop("class_offsets"), np.int64)
    parts = len(columns["class_parts_ns"]) // max(len(columns["class_ios"]), 1)
    lists = [
        _lists(borders, {name: columns.pop(name) for name in names})
        for borders, names in (
            (bins, ("bins", "counts")),
            (classes, ("class_upper_ns", "class_ios")),
            (classes * parts, ("class_parts_ns",)),
        )
    ]
    whole = pl.concat([pl.DataFrame(columns), *lists], how="horizontal")
    return whole.select(schema.names()).cast(schema)


def _lists(borders: Ints, flat: Mapping[str, Any]) -> pl.DataFrame:
    """A list for every two neighbours of ``borders``: what lies between those in ``flat``."""
    sizes = np.diff(borders)
    row = np.arange(len(sizes), dtype=np.uint32)
    filled = pl.DataFrame({"row": np.repeat(row, sizes), **flat})
    frame = filled.group_by("row", maintain_order=True).all()
    every = pl.DataFrame({"row": row}).join(frame, on="row", how="left", maintain_order="left")
    # A row without I/Os has nothing.
    return every.drop("row").with_columns(pl.all().fill_null([]))


def sim_result(
    name: str, job: JobText, output: _core.RunOutput, shapes: Sequence[JobShape] = ()
) -> Result:
    """The result of what the core measured in virtual time.

    ``shapes`` are the sections whose logs are wanted.
    """
    device = pl.DataFrame(output.device_series)
    document = json.loads(output.json)
    about = document["ssdlab"]
    counters, capacity = about["counters"], about["target"]["capacity_bytes"]
    if worn := wear.Stretch(counters, wear.grown(device), capacity).wear:
        about["wear"] = worn.document()
    return Result(
        name=name,
        document=document,
        job_text=job.text,
        series_frame=pl.DataFrame(output.series),
        device_frame=device if device.width else None,
        latency_frame=latency_frame(output),
        rig_toml=output.rig_toml,
        logs=fio_logs.asked_by_job(output.logs),
        job_logs=fio_logs.by_job(shapes, output.logs),
    )
