//! Python bindings of the ssdlab core: the module `ssdlab._core`.
//!
//! Only translation lives here: arguments in, results and errors out. Names are those of the core;
//! the signatures for Python stand in `python/ssdlab/_core.pyi`.

mod arguments;
mod cache;
mod compressed;
mod drive;
mod errors;
mod observer;
mod output;
mod plan;
mod rig;
mod traces;

use crate::drive::Drive;
use crate::errors::to_python;
use crate::output::RunOutput;
use crate::traces::Traces;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab::job::options::Class;
use std::collections::BTreeMap;

/// Reads a job file, or those of its stages that `Drive.run` would run, and says what it holds, as JSON: `jobs`,
/// `ignored`, `global_options`.
///
/// Raises `ssdlab.errors.InputError` as `Drive.run` would.
#[pyfunction]
#[pyo3(signature = (job, *, job_name, environment=None, include=None, traces=None, stages=None))]
fn check_job(
    py: Python<'_>,
    job: &str,
    job_name: &str,
    environment: Option<BTreeMap<String, String>>,
    include: Option<Py<PyAny>>,
    traces: Option<Py<PyAny>>,
    stages: Option<(u32, u32)>,
) -> PyResult<String> {
    let traces = Traces::Find(&traces);
    let jobs = arguments::jobs(py, job, job_name, environment, include, traces, stages)?;
    Ok(arguments::describe_jobs(&jobs).to_string())
}

/// Reads and builds a rig and says what it is, as JSON: `target` and `profile` as in a result.
///
/// Raises `ssdlab.errors.InputError` as `Drive` would.
#[pyfunction]
#[pyo3(signature = (rig, *, rig_name, overrides=vec![]))]
fn rig_check(
    py: Python<'_>,
    rig: &str,
    rig_name: &str,
    overrides: Vec<(String, String)>,
) -> PyResult<String> {
    let described = py.detach(|| {
        let rig = arguments::rig(rig, rig_name, &overrides)?;
        let device = rig.build(1, false)?;
        Ok(serde_json::json!({
            "target": arguments::target(&rig, device.capacity()),
            "profile": arguments::profile(&rig),
            "tree": arguments::tree(device.as_ref()),
        }))
    });
    described.map(|json| json.to_string()).map_err(|error| to_python(py, error))
}

/// Reads steps of preparation.
///
/// Raises `ssdlab.errors.InputError` as `Drive.prepare` would.
#[pyfunction]
fn steps_check(py: Python<'_>, steps: &str) -> PyResult<()> {
    arguments::steps(steps).map(drop).map_err(|error| to_python(py, error))
}

/// A dict of fields, by their names.
macro_rules! fields {
    ($py:ident, $from:ident; $($name:ident),*) => {{
        let dict = PyDict::new($py);
        $(dict.set_item(stringify!($name), $from.$name)?;)*
        dict
    }};
}

/// Everything that can be named in a rig: dicts of `kind`, `name`, `summary`, `reference`.
#[pyfunction]
fn registries(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entries = ssdlab::catalogue::catalogue().into_iter();
    entries.map(|entry| Ok(fields!(py, entry; kind, name, summary, reference))).collect()
}

/// The known name that `name` most likely means, if any is near.
#[pyfunction]
fn nearest(name: &str, known: Vec<String>) -> Option<String> {
    ssdlab::error::nearest(name, known.iter().map(String::as_str)).map(str::to_string)
}

/// Every key that a rig may set: dicts of `device`, `key`, `values`, `default`, `summary`.
#[pyfunction]
fn device_keys(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let keys = ssdlab::catalogue::device_keys().into_iter();
    keys.map(|key| Ok(fields!(py, key; device, key, values, default, summary))).collect()
}

/// Every fio option that job files may hold: dicts of `name`, `aliases`, `effect` (`applied`,
/// `ignored` or `refused`), `example`, `summary`.
#[pyfunction]
fn job_options(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let options = ssdlab::job::options::all().map(|option| {
        let effect = match option.class {
            Class::Semantic => "applied",
            Class::Ignored => "ignored",
            Class::Unsupported => "refused",
        };
        let dict = fields!(py, option; name, aliases, example, summary);
        dict.set_item("effect", effect)?;
        Ok(dict)
    });
    options.collect()
}

/// The simulation core of ssdlab.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("version", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Drive>()?;
    module.add_class::<rig::PyAttachment>()?;
    module.add_class::<rig::PyRig>()?;
    module.add_class::<RunOutput>()?;
    module.add_function(wrap_pyfunction!(check_job, module)?)?;
    module.add_function(wrap_pyfunction!(plan::job_plan, module)?)?;
    module.add_function(wrap_pyfunction!(plan::parse_fio_size, module)?)?;
    module.add_function(wrap_pyfunction!(rig_check, module)?)?;
    module.add_function(wrap_pyfunction!(steps_check, module)?)?;
    module.add_function(wrap_pyfunction!(rig::description, module)?)?;
    module.add_function(wrap_pyfunction!(registries, module)?)?;
    module.add_function(wrap_pyfunction!(nearest, module)?)?;
    module.add_function(wrap_pyfunction!(device_keys, module)?)?;
    module.add_function(wrap_pyfunction!(job_options, module)?)?;
    module.add_function(wrap_pyfunction!(cache::hit_ratio, module)?)?;
    module.add_function(wrap_pyfunction!(cache::let_past, module)?)?;
    module.add_function(wrap_pyfunction!(cache::miss_ratio_curve, module)?)?;
    module.add_function(wrap_pyfunction!(cache::object_misses, module)?)?;
    module.add_function(wrap_pyfunction!(cache::object_policies, module)?)?;
    module.add_function(wrap_pyfunction!(cache::check_policy, module)?)?;
    module.add_class::<traces::TraceReader>()?;
    module.add_function(wrap_pyfunction!(traces::trace_profile, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_convert, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_formats, module)?)?;
    Ok(())
}
