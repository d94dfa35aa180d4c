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
use crate::observer::PythonObserver;
use crate::output::RunOutput;
use crate::traces::Traces;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab::job::options::Class;
use ssdlab::run::{RunOptions, Session};
use std::collections::BTreeMap;

/// Builds the rig, prepares it, and plays the job on it in virtual time; the GIL is released.
///
/// `rig` is the text of a rig (TOML), `job` that of a fio job file; `rig_name` and `job_name` stand
/// in messages. `prepare` is `fob`, `sequential`, `random:N` or `steady`. `overrides` are rig keys
/// and values as `--set` takes them. `include` reads a file that the job file includes. `traces` answers
/// where a trace is that a job replays (`read_iolog`): path, options as of `TraceReader`, fit, open loop.
/// `memory_bytes` is what is available: a rig that needs more is refused before it is built.
/// `log_avg_msec` asks for all of fio's logs, as means over so long; those that the job does not ask for
/// are named `ssdlab<job>_<type>.<process>.log`.
/// `progress` is called about five times a second; False stops the run.
///
/// Raises `ssdlab.errors.InputError` for anything wrong in the input, `ssdlab.errors.Interrupted` if
/// `progress` stopped the run, `KeyboardInterrupt` on Ctrl-C.
#[pyfunction]
#[pyo3(signature = (rig, job, *, rig_name, job_name, seed=1, prepare="fob", overrides=vec![],
    environment=None, include=None, traces=None, progress=None, interval_ms=1000,
    memory_bytes=None, log_avg_msec=None))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments, for Python's eyes")]
fn run(
    py: Python<'_>,
    rig: &str,
    job: &str,
    rig_name: &str,
    job_name: &str,
    seed: u64,
    prepare: &str,
    overrides: Vec<(String, String)>,
    environment: Option<BTreeMap<String, String>>,
    include: Option<Py<PyAny>>,
    traces: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
    interval_ms: u64,
    memory_bytes: Option<u64>,
    log_avg_msec: Option<u64>,
) -> PyResult<RunOutput> {
    let to_py = |error| to_python(py, error);
    let traces = Traces::Read(&traces);
    let mut jobs = arguments::jobs(py, job, job_name, environment, include, traces)?;
    log_avg_msec.into_iter().for_each(|ms| jobs.complete_logs(ms));
    let rig = arguments::rig(rig, rig_name, &overrides).map_err(to_py)?;
    rig.check_memory(memory_bytes.unwrap_or(u64::MAX)).map_err(to_py)?;
    let state = arguments::steps(prepare).map_err(to_py)?;
    let interval_ns = arguments::interval_ns(interval_ms).map_err(to_py)?;
    let options = RunOptions { seed, interval_ns, elapsed_ns: 0 };
    let mut observer = PythonObserver::new(progress);
    let outcome = py.detach(|| {
        let mut session = Session::new(rig.build(seed, false)?, seed);
        session.prepare(&state, &mut observer)?;
        drive::play(&mut session, &rig, &jobs, &options, &mut observer)
    });
    drive::output(py, outcome, &mut observer, &jobs, rig.to_toml())
}

/// Reads a job file and says what it holds, as JSON: `jobs`, `ignored`, `global_options`.
///
/// Raises `ssdlab.errors.InputError` as [`run`] would.
#[pyfunction]
#[pyo3(signature = (job, *, job_name, environment=None, include=None, traces=None))]
fn check_job(
    py: Python<'_>,
    job: &str,
    job_name: &str,
    environment: Option<BTreeMap<String, String>>,
    include: Option<Py<PyAny>>,
    traces: Option<Py<PyAny>>,
) -> PyResult<String> {
    let traces = Traces::Find(&traces);
    let jobs = arguments::jobs(py, job, job_name, environment, include, traces)?;
    Ok(arguments::describe_jobs(&jobs).to_string())
}

/// Reads and builds a rig and says what it is, as JSON: `target` and `profile` as in a result.
///
/// Raises `ssdlab.errors.InputError` as [`run`] would.
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

/// Everything that can be named in a rig: dicts of `kind`, `name`, `summary`, `reference`.
#[pyfunction]
fn registries(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entries = ssdlab::catalogue::catalogue().into_iter().map(|entry| {
        let dict = PyDict::new(py);
        dict.set_item("kind", entry.kind)?;
        dict.set_item("name", entry.name)?;
        dict.set_item("summary", entry.summary)?;
        dict.set_item("reference", entry.reference)?;
        Ok(dict)
    });
    entries.collect()
}

/// Every key that a rig may set: dicts of `device`, `key`, `values`, `default`, `summary`.
#[pyfunction]
fn device_keys(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let keys = ssdlab::catalogue::device_keys().into_iter().map(|key| {
        let dict = PyDict::new(py);
        dict.set_item("device", key.device)?;
        dict.set_item("key", key.key)?;
        dict.set_item("values", key.values)?;
        dict.set_item("default", key.default)?;
        dict.set_item("summary", key.summary)?;
        Ok(dict)
    });
    keys.collect()
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
        let dict = PyDict::new(py);
        dict.set_item("name", option.name)?;
        dict.set_item("aliases", option.aliases)?;
        dict.set_item("effect", effect)?;
        dict.set_item("example", option.example)?;
        dict.set_item("summary", option.summary)?;
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
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(check_job, module)?)?;
    module.add_function(wrap_pyfunction!(plan::job_plan, module)?)?;
    module.add_function(wrap_pyfunction!(plan::parse_fio_size, module)?)?;
    module.add_function(wrap_pyfunction!(rig_check, module)?)?;
    module.add_function(wrap_pyfunction!(registries, module)?)?;
    module.add_function(wrap_pyfunction!(device_keys, module)?)?;
    module.add_function(wrap_pyfunction!(job_options, module)?)?;
    module.add_function(wrap_pyfunction!(cache::hit_ratio, module)?)?;
    module.add_function(wrap_pyfunction!(cache::miss_ratio_curve, module)?)?;
    module.add_class::<traces::TraceReader>()?;
    module.add_function(wrap_pyfunction!(traces::trace_profile, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_convert, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_formats, module)?)?;
    Ok(())
}
