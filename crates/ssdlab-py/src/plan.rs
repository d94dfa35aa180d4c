//! What a job file is going to do, for Python.

use crate::arguments;
use crate::errors::to_python;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab::job::plan::{Process, plan};
use ssdlab::job::{JobSpec, Target, parse_for_fio, size};
use std::collections::BTreeMap;

/// What a job file is going to do: a dict of `target_bytes` and `processes`.
///
/// `job` is the text of a job file as the real fio would run it; options that have no say in what
/// moves where and when are not looked at. The target is a device of `target_bytes`, or with `file` a plain
/// file that has so many bytes and that fio makes as long as the job needs; None: one that is still
/// empty. `environment` and `include` are those of [`run`].
///
/// A process is a dict of `job` (its place in the job file), `name`, `line`, `thread`, `stage` (later
/// ones wait for earlier ones), `rw`, `shares` and `block_bytes` (smallest and largest) by direction (read,
/// write, trim), `regions` (offset and length in bytes, by file), `bytes` by direction (None: until time
/// is up, or what a trace holds), `replays`, `iodepth`, `runtime_s` (None: until all is done),
/// `time_based`, `ramp_s`, `start_delay_s` (from, to).
///
/// Raises `ssdlab.errors.InputError` where the job does not fit the target, or its places, amounts or
/// times cannot be read.
#[pyfunction]
#[pyo3(signature = (job, *, job_name, target_bytes=None, file=false, environment=None, include=None))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments, for Python's eyes")]
pub fn job_plan<'py>(
    py: Python<'py>,
    job: &str,
    job_name: &str,
    target_bytes: Option<u64>,
    file: bool,
    environment: Option<BTreeMap<String, String>>,
    include: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let jobs = arguments::job_file(py, job, job_name, environment, include, parse_for_fio)?;
    let target = match target_bytes {
        Some(bytes) if !file => Target::Device(bytes),
        bytes => Target::File(bytes.unwrap_or(0)),
    };
    let found = plan(&jobs, target).map_err(|error| to_python(py, error))?;
    let processes = found.processes.iter().map(|one| described(py, &jobs.jobs[one.job], one));
    let dict = PyDict::new(py);
    dict.set_item("target_bytes", found.target_bytes)?;
    dict.set_item("processes", processes.collect::<PyResult<Vec<_>>>()?)?;
    Ok(dict)
}

fn described<'py>(
    py: Python<'py>,
    spec: &JobSpec,
    process: &Process,
) -> PyResult<Bound<'py, PyDict>> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let (schedule, pattern) = (&spec.schedule, &spec.pattern);
    let dict = PyDict::new(py);
    dict.set_item("job", process.job)?;
    dict.set_item("name", &spec.name)?;
    dict.set_item("line", spec.place.line)?;
    dict.set_item("thread", process.thread)?;
    dict.set_item("stage", process.stage)?;
    dict.set_item("rw", pattern.mode())?;
    dict.set_item("shares", pattern.shares())?;
    dict.set_item("block_bytes", pattern.sizes.each_ref().map(|one| (one.min(), one.max())))?;
    dict.set_item("regions", &process.regions)?;
    dict.set_item("bytes", process.bytes)?;
    dict.set_item("replays", spec.replay.is_some())?;
    dict.set_item("verifies", pattern.verifies())?;
    dict.set_item("iodepth", schedule.iodepth)?;
    dict.set_item("runtime_s", schedule.runtime_ns.map(seconds))?;
    dict.set_item("time_based", schedule.time_based)?;
    dict.set_item("ramp_s", seconds(schedule.ramp_ns))?;
    let (least, most) = schedule.start_delay_ns;
    dict.set_item("start_delay_s", (seconds(least), seconds(most)))?;
    Ok(dict)
}

/// A size as fio reads it in a job file, in bytes: `8m` is 2^23 and `8MiB` 8,000,000, or the other
/// way round where `kb_base` is 1000.
///
/// Raises `ssdlab.errors.InputError` for anything else, fractions included: fio reads `1.5m` as 1.
#[pyfunction]
#[pyo3(signature = (text, kb_base=1024))]
pub fn parse_fio_size(py: Python<'_>, text: &str, kb_base: u64) -> PyResult<u64> {
    let base = match kb_base {
        1000 | 1024 => Ok(kb_base),
        _ => Err(ssdlab::Error::value(kb_base.to_string(), "a kb_base of 1024 or 1000")),
    };
    base.and_then(|base| size::bytes(text, base)).map_err(|error| to_python(py, error))
}
