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
    schema = pl.Schema({**LATENCY_SCHEMA, **CLASS_SCHEMA})
    if len(bins) < 2:
        return schema.to_frame()
    borders = {"bins": bins, "counts": bins, "class_parts_ns": classes * parts}
    rows: dict[str, Any] = {}
    asked = []
    # All at once: a series for each of thousands of rows would cost more than to run the job, and
    # so would a question for each list of a short one.
    for name, kind in schema.items():
        if isinstance(kind, pl.List):
            own = borders.get(name, classes)
            rows |= {f"{name} from": own[:-1], f"{name} length": np.diff(own)}
            whole = pl.lit(pl.Series(columns[name], dtype=kind.inner).implode())
            lists = whole.list.slice(pl.col(f"{name} from"), pl.col(f"{name} length"))
            asked.append(lists.cast(kind).alias(name))
        else:
            rows[name] = pl.Series(name, columns[name], kind)
            asked.append(pl.col(name))
    return pl.DataFrame(rows).select(asked)


def device_frame(output: _core.RunOutput) -> pl.DataFrame:
    """The device series of a simulated run. A counter that never changed takes no memory."""
    columns = output.device_series
    frame = pl.DataFrame({n: own for n, own in columns.items() if not isinstance(own, int)})
    same = {n: pl.lit(own, pl.UInt64) for n, own in columns.items() if isinstance(own, int)}
    return frame.with_columns(**same).select(list(columns))


def sim_result(
    name: str, job: JobText, output: _core.RunOutput, shapes: Sequence[JobShape] = ()
) -> Result:
    """The result of what the core measured in virtual time; ``shapes`` are the sections whose logs
    are wanted."""
    device = device_frame(output)
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
