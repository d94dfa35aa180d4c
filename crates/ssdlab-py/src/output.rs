//! What a run hands to Python.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use ssdlab::run::{DeviceSeries, LogFile, RunResult};
use ssdlab::stats::{DIRECTIONS, KINDS, Latencies, PART_NAMES, Series};

/// What a run left behind: the document, the series as columns, the logs, the rig as run.
#[pyclass(frozen, module = "ssdlab._core")]
pub struct RunOutput {
    /// The fio JSON+ document with the object `ssdlab`.
    #[pyo3(get)]
    json: String,
    /// The job series: a column per name (see `docs/results.md`), arrays or lists of text.
    #[pyo3(get)]
    series: Py<PyDict>,
    /// Latency histograms against time: a column per name (see `docs/results.md`), and `offsets`, where
    /// each row's part of `bins` (fio's) and `counts` begins, with the end of the last one.
    #[pyo3(get)]
    latency: Py<PyDict>,
    /// The device series: `time_s` and one column per counter, cumulative.
    #[pyo3(get)]
    device_series: Py<PyDict>,
    /// fio log files that the jobs asked for: name and text.
    #[pyo3(get)]
    logs: Vec<(String, String)>,
    /// The rig as run, overrides applied.
    #[pyo3(get)]
    rig_toml: String,
}

impl RunOutput {
    /// Hands the columns over without copying them; `jobs` are the names of the jobs.
    pub fn new(
        py: Python<'_>,
        json: String,
        result: RunResult,
        jobs: &[&str],
        rig_toml: String,
    ) -> PyResult<Self> {
        Ok(RunOutput {
            json,
            series: job_series(py, result.series, jobs)?.unbind(),
            latency: latency(py, result.latencies, jobs)?.unbind(),
            device_series: device_series(py, result.device_series)?.unbind(),
            logs: result.logs.iter().map(log_text).collect(),
            rig_toml,
        })
    }
}

fn log_text(log: &LogFile) -> (String, String) {
    let mut text = Vec::new();
    log.write(&mut text).expect("writing to memory cannot fail");
    (log.name.clone(), String::from_utf8_lossy(&text).into_owned())
}

/// A list of texts that picks from a few.
fn texts<'py>(
    py: Python<'py>,
    choices: &[&str],
    picks: impl ExactSizeIterator<Item = usize>,
) -> PyResult<Bound<'py, PyList>> {
    let choices: Vec<_> = choices.iter().map(|text| PyString::new(py, text)).collect();
    PyList::new(py, picks.map(|pick| choices[pick].clone()))
}

fn job_series<'py>(py: Python<'py>, series: Series, jobs: &[&str]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("time_s", series.time_s.into_pyarray(py))?;
    dict.set_item("job", texts(py, jobs, series.job.iter().map(|job| *job as usize))?)?;
    dict.set_item("ddir", texts(py, &DIRECTIONS, series.ddir.iter().map(|d| usize::from(*d)))?)?;
    dict.set_item("ios", series.ios.into_pyarray(py))?;
    dict.set_item("iops", series.iops.into_pyarray(py))?;
    dict.set_item("bytes", series.bytes.into_pyarray(py))?;
    dict.set_item("bw_bytes", series.bw_bytes.into_pyarray(py))?;
    dict.set_item("lat_min_ns", series.lat_min_ns.into_pyarray(py))?;
    dict.set_item("lat_mean_ns", series.lat_mean_ns.into_pyarray(py))?;
    dict.set_item("lat_max_ns", series.lat_max_ns.into_pyarray(py))?;
    dict.set_item("lat_p50_ns", series.lat_p50_ns.into_pyarray(py))?;
    dict.set_item("lat_p99_ns", series.lat_p99_ns.into_pyarray(py))?;
    for (name, column) in PART_NAMES.iter().zip(series.parts_ns) {
        dict.set_item(format!("part_{name}_ns"), column.into_pyarray(py))?;
    }
    Ok(dict)
}

fn latency<'py>(py: Python<'py>, rows: Latencies, jobs: &[&str]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("time_s", rows.time_s.into_pyarray(py))?;
    dict.set_item("length_s", rows.length_s.into_pyarray(py))?;
    dict.set_item("job", texts(py, jobs, rows.job.iter().map(|job| *job as usize))?)?;
    dict.set_item("ddir", texts(py, &DIRECTIONS, rows.ddir.iter().map(|d| usize::from(*d)))?)?;
    dict.set_item("kind", texts(py, &KINDS, rows.kind.iter().map(|k| usize::from(*k)))?)?;
    dict.set_item("ios", rows.ios.into_pyarray(py))?;
    dict.set_item("sum_ns", rows.sum_ns.into_pyarray(py))?;
    dict.set_item("min_ns", rows.min_ns.into_pyarray(py))?;
    dict.set_item("max_ns", rows.max_ns.into_pyarray(py))?;
    dict.set_item("offsets", rows.offsets.into_pyarray(py))?;
    dict.set_item("bins", rows.bins.into_pyarray(py))?;
    dict.set_item("counts", rows.counts.into_pyarray(py))?;
    Ok(dict)
}

fn device_series(py: Python<'_>, series: DeviceSeries) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("time_s", series.time_s.into_pyarray(py))?;
    for (name, column) in series.columns {
        dict.set_item(name, column.into_pyarray(py))?;
    }
    Ok(dict)
}
