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
from ssdlab.jobfile import JobText
from ssdlab.numeric import Ints
from ssdlab.results import CLASS_SCHEMA, LATENCY_SCHEMA, SERIES_SCHEMA, JobShape, Result


def log_interval(interval_ms: int) -> int:
    """Milliseconds of a line of fio's logs of a simulated run: no longer than on a real drive."""
    return min(interval_ms, int(ADDED_FOR_LOGS["log_avg_msec"]))


def sim_shapes(described: Mapping[str, Any]) -> list[JobShape]:
    """The sections of a job as the core describes it."""
    common = described["global_options"]
    return [
        JobShape.of(job["name"], {**common, **job["options"]}, job["iodepth"], job["numjobs"])
        for job in described["jobs"]
    ]


def latency_frame(output: _core.RunOutput) -> pl.DataFrame:
    """The latency histograms of a simulated run against time (docs/results.md): a row per segment,
    job, direction and kind, with the I/Os of each of fio's bins as the lists ``bins`` and
    ``counts``, and by latency class where their time went."""
    columns = dict(output.latency)
    bins = np.asarray(columns.pop("offsets"), np.int64)
    classes = np.asarray(columns.pop("class_offsets"), np.int64)
    parts = len(columns["class_parts_ns"]) // max(len(columns["class_ios"]), 1)
    borders = {"bins": bins, "counts": bins, "class_parts_ns": classes * parts}
    return pl.DataFrame(
        [
            _lists(name, columns[name], borders.get(name, classes), kind)
            if isinstance(kind, pl.List)
            else pl.Series(name, columns[name], kind)
            for name, kind in {**LATENCY_SCHEMA, **CLASS_SCHEMA}.items()
        ]
    )


def _lists(name: str, flat: Any, borders: Ints, kind: pl.List) -> pl.Series:
    """A list for every two neighbours of ``borders``: what lies between those in ``flat``."""
    if len(borders) < 2:
        return pl.Series(name, [], kind)
    whole = pl.lit(pl.Series(flat, dtype=kind.inner).implode())
    rows = pl.DataFrame({"begin": borders[:-1], "length": np.diff(borders)})
    # All at once: a series for each of thousands of rows would cost more than to run the job.
    return rows.select(whole.list.slice("begin", "length").alias(name)).get_column(name).cast(kind)


def sim_result(
    name: str, job: JobText, output: _core.RunOutput, shapes: Sequence[JobShape] = ()
) -> Result:
    """The result of what the core measured in virtual time; ``shapes`` are the sections whose logs
    are wanted."""
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
        series_frame=pl.DataFrame(output.series, schema_overrides=SERIES_SCHEMA),
        device_frame=device if device.width else None,
        latency_frame=latency_frame(output),
        rig_toml=output.rig_toml,
        logs=fio_logs.asked_by_job(output.logs),
        job_logs=fio_logs.by_job(shapes, output.logs),
    )
