//! What Python passes in, made into what the core takes, and described as JSON.

use crate::errors::{input_error, to_python};
use crate::traces::{self, Traces};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use ssdlab::device::Device;
use ssdlab::job::{JobFile, ParseSource, parse};
use ssdlab::rig::Rig;
use ssdlab::run::Preconditioning;
use ssdlab::{Error, Result};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

/// Reads a job file for a simulated drive, with its traces; of `stages` alone (from, to), if given.
pub fn jobs(
    py: Python<'_>,
    text: &str,
    name: &str,
    environment: Option<BTreeMap<String, String>>,
    include: Option<Py<PyAny>>,
    traces: Traces<'_>,
    stages: Option<(u32, u32)>,
) -> PyResult<JobFile> {
    let mut jobs = job_file(py, text, name, environment, include, parse)?;
    if let Some((from, to)) = stages {
        jobs.keep_stages(from..to).map_err(|error| to_python(py, error))?;
    }
    traces::attach(py, jobs, traces)
}

/// How the core reads a job file.
type ReadJobs = fn(&str, &ParseSource) -> Result<JobFile>;

/// Reads a job file. An `OSError` or `InputError` of `include` becomes part of the core's message, with
/// file and line; anything else that it raises goes through as it is.
pub fn job_file(
    py: Python<'_>,
    text: &str,
    name: &str,
    environment: Option<BTreeMap<String, String>>,
    include: Option<Py<PyAny>>,
    read_jobs: ReadJobs,
) -> PyResult<JobFile> {
    let raised: RefCell<Option<PyErr>> = RefCell::new(None);
    let read = |path: &str| -> io::Result<String> {
        let Some(include) = &include else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "nothing can be included here"));
        };
        let text = include.call1(py, (path,)).and_then(|text| text.extract::<String>(py));
        text.map_err(|error| {
            if error.is_instance_of::<PyOSError>(py) {
                return io::Error::other(os_problem(py, &error));
            }
            if let Some(sentence) = input_error(py, &error) {
                return io::Error::other(sentence);
            }
            raised.replace(Some(error));
            io::Error::other("include failed")
        })
    };
    let source = ParseSource {
        file: name.to_string(),
        env: environment.unwrap_or_default(),
        include: &read,
    };
    let parsed = read_jobs(text, &source);
    match raised.take() {
        Some(error) => Err(error),
        None => parsed.map_err(|error| to_python(py, error)),
    }
}

/// What the operating system said, without Python's wrapping.
fn os_problem(py: Python<'_>, error: &PyErr) -> String {
    let said = error.value(py).getattr("strerror").and_then(|text| text.extract::<String>());
    said.unwrap_or_else(|_| error.value(py).to_string())
}

/// Reads a rig and sets what the user overrides.
pub fn rig(text: &str, name: &str, overrides: &[(String, String)]) -> Result<Rig> {
    let mut rig = Rig::parse(text, name)?;
    rig.set_all(overrides)?;
    Ok(rig)
}

/// Reads steps of preparation.
pub fn steps(text: &str) -> Result<Preconditioning> {
    text.parse().map_err(|e: Error| e.under("prepare"))
}

/// The length of an interval in ns.
pub fn interval_ns(interval_ms: u64) -> Result<u64> {
    let ns = interval_ms.checked_mul(1_000_000).filter(|ns| *ns > 0);
    ns.ok_or_else(|| Error::value(interval_ms.to_string(), "an interval of at least 1 ms"))
}

/// `ssdlab.target` of a result.
pub fn target(rig: &Rig, capacity: u64) -> Value {
    json!({
        "kind": "sim",
        "name": rig.name,
        "summary": rig.summary,
        "capacity_bytes": capacity,
    })
}

/// `ssdlab.profile` of a result: every value with its source.
pub fn profile(rig: &Rig) -> Value {
    json!({ "name": rig.name, "summary": rig.summary, "values": rig.sources() })
}

/// A device and those it is made of: `kind`, `capacity_bytes`, and by place the ones below.
pub fn tree(device: &dyn Device) -> Value {
    let mut entry = json!({ "kind": device.kind(), "capacity_bytes": device.capacity() });
    for (place, child) in device.children() {
        entry[place] = tree(child);
    }
    entry
}

/// What a job file holds.
pub fn describe_jobs(jobs: &JobFile) -> Value {
    let object = |options: &[(String, String)]| -> Map<String, Value> {
        options.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()
    };
    let described = jobs.jobs.iter().zip(jobs.stages()).map(|(spec, stage)| {
        let schedule = &spec.schedule;
        let seconds = |ns: u64| ns as f64 / 1e9;
        json!({
            "name": spec.name,
            "line": spec.place.line,
            "iodepth": schedule.iodepth,
            "numjobs": schedule.numjobs,
            "runtime_s": schedule.runtime_ns.map(seconds),
            "ramp_s": seconds(schedule.ramp_ns),
            "time_based": schedule.time_based,
            "stonewall": schedule.stonewall,
            "stage": stage,
            "group": schedule.group,
            "options": object(&spec.options),
        })
    });
    let ignored = jobs.ignored.iter().map(|ignored| {
        json!({
            "job": ignored.job,
            "option": ignored.option,
            "value": ignored.value,
            "line": ignored.line,
        })
    });
    json!({
        "jobs": described.collect::<Vec<_>>(),
        "ignored": ignored.collect::<Vec<_>>(),
        "global_options": object(&jobs.global_options),
    })
}
