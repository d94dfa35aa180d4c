//! A rig for Python, which looks into rigs through this alone.

use crate::errors::to_python;
use pyo3::prelude::*;
use ssdlab::rig::Rig;

/// A rig: a tree of devices before it is built.
///
/// Keys are those that `--set` takes: `ftl.gc.victim` is looked for from the outermost device down,
/// `below.queue_slots` from that place on. Raises `ssdlab.errors.InputError` where the text is no rig,
/// or a value is not what it is asked for as.
#[pyclass(name = "Rig", module = "ssdlab._core")]
pub struct PyRig(Rig);

#[pymethods]
impl PyRig {
    #[new]
    #[pyo3(signature = (text, *, rig_name))]
    fn new(py: Python<'_>, text: &str, rig_name: &str) -> PyResult<Self> {
        Rig::parse(text, rig_name).map(PyRig).map_err(|error| to_python(py, error))
    }

    /// What it calls itself; `rig_name` where it says nothing.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// What it says that it is.
    #[getter]
    fn summary(&self) -> &str {
        &self.0.summary
    }

    /// Memory that a run on it takes, bytes, estimated.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.memory_bytes().map_err(|error| to_python(py, error))
    }

    /// The value of a key as text; None where the rig does not say it.
    fn get(&self, key: &str) -> Option<String> {
        self.0.get(key)
    }

    /// The value of a key that is a size, bytes.
    fn bytes(&self, py: Python<'_>, key: &str) -> PyResult<Option<u64>> {
        self.0.bytes(key).map_err(|error| to_python(py, error))
    }

    /// Sets a key to a value as TOML or bare text.
    fn set(&mut self, py: Python<'_>, key: &str, value: &str) -> PyResult<()> {
        self.0.set(key, value).map_err(|error| to_python(py, error))
    }

    /// What stands before the keys of each device of a kind (`below.`), each before those in it.
    fn find(&self, kind: &str) -> Vec<String> {
        self.0.find(kind)
    }

    /// Keys and values that make its drive `factor` times smaller, of at least `fewest` superblocks.
    #[pyo3(signature = (factor, *, fewest=1))]
    fn scale(
        &self,
        py: Python<'_>,
        factor: u64,
        fewest: u64,
    ) -> PyResult<Vec<(&'static str, String)>> {
        self.0.scale(factor, fewest).map_err(|error| to_python(py, error))
    }

    /// The rig as TOML, sources left out.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }
}
