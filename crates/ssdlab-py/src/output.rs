//! What a run hands to Python.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use ssdlab::run::{Column, DeviceSeries, LogFile, RunResult};
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
    /// The device series: `time_s` and one column per counter that was kept, cumulative; a number where it never changed.
    #[pyo3(get)]
    device_series: Py<PyDict>,
    /// fio log files that the jobs asked for: name and text.
    #[pyo3(get)]
    logs: Vec<(String, String)>,
    /// The rig as run, overrides applied.
    #[pyo3(get)]
    rig_toml: String,
    /// About what the simulation took, in I/Os: the same on every machine.
    #[pyo3(get)]
    work: u64,
    /// Whether it ended before its jobs did, `most_work` being used up.
    #[pyo3(get)]
    cut: bool,
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
            work: result.work,
            cut: result.cut,
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

/// A dict of the columns of a struct under their own names: arrays, then texts that pick from a few,
/// then arrays.
macro_rules! columns {
    ($py:ident, $from:ident; $($first:ident),*; $($text:ident of $choices:expr),*; $($name:ident),*) => {{
        let dict = PyDict::new($py);
        $(dict.set_item(stringify!($first), $from.$first.into_pyarray($py))?;)*
        $(
            let picks = $from.$text.iter().map(|pick| *pick as usize);
            dict.set_item(stringify!($text), texts($py, $choices, picks)?)?;
        )*
        $(dict.set_item(stringify!($name), $from.$name.into_pyarray($py))?;)*
        dict
    }};
}

fn job_series<'py>(py: Python<'py>, series: Series, jobs: &[&str]) -> PyResult<Bound<'py, PyDict>> {
    let dict = columns!(
        py, series;
        time_s;
        job of jobs, ddir of &DIRECTIONS;
        ios, iops, bytes, bw_bytes, lat_min_ns, lat_mean_ns, lat_max_ns, lat_p50_ns, lat_p99_ns
    );
    for (name, column) in PART_NAMES.iter().zip(series.parts_ns) {
        dict.set_item(format!("part_{name}_ns"), column.into_pyarray(py))?;
    }
    Ok(dict)
}

fn latency<'py>(py: Python<'py>, rows: Latencies, jobs: &[&str]) -> PyResult<Bound<'py, PyDict>> {
    Ok(columns!(
        py, rows;
        time_s, length_s;
        job of jobs, ddir of &DIRECTIONS, kind of &KINDS;
        ios, sum_ns, min_ns, max_ns, offsets, bins, counts,
        class_offsets, class_upper_ns, class_ios, class_parts_ns
    ))
}

fn device_series(py: Python<'_>, series: DeviceSeries) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("time_s", series.time_s.into_pyarray(py))?;
    for Column { name, values } in series.columns {
        match values[..] {
            [always] => dict.set_item(name, always)?,
            _ => dict.set_item(name, values.into_pyarray(py))?,
        }
    }
    Ok(dict)
}
