//! Rigs and what arrays stand behind, for Python, which looks into rigs and makes them through this alone.

use crate::errors::to_python;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use ssdlab::rig::{Attachment, Rig, Sourced, Table, Value};

/// A key, its value as text, and where it comes from.
type Row = (String, String, String);

fn rows(rig: &Rig) -> Vec<Row> {
    let row = |one: &Sourced| (one.key.clone(), one.value.clone(), one.source.clone());
    rig.sources().iter().map(row).collect()
}

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

    /// A device of a kind with these keys, which may be `{"value": ..., "source": ...}`, around the
    /// devices of other rigs: `below`, `cache`, `fast`, `member` each name one, `members` a list.
    #[staticmethod]
    #[pyo3(signature = (kind, keys=None, *, name="", summary="", **parts))]
    fn wrap(
        py: Python<'_>,
        kind: &str,
        keys: Option<&Bound<'_, PyDict>>,
        name: &str,
        summary: &str,
        parts: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let keys = keys.map(table_of).transpose()?.unwrap_or_default();
        let mut given: Vec<(String, Vec<PyRef<'_, PyRig>>)> = Vec::new();
        for (part, rigs) in parts.into_iter().flatten() {
            let one = rigs.extract().map(|rig| vec![rig]);
            given.push((part.extract()?, one.or_else(|_| rigs.extract())?));
        }
        let parts = given
            .iter()
            .map(|(part, rigs)| (part.as_str(), rigs.iter().map(|rig| &rig.0).collect::<Vec<_>>()));
        let rig = Rig::wrap(kind, keys, &parts.collect::<Vec<_>>());
        let name = if name.is_empty() { kind } else { name };
        rig.map(|rig| PyRig(rig.called(name, summary))).map_err(|error| to_python(py, error))
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

    /// The class of drive that it says it is: client, oem, enterprise, data-centre; None where it says none.
    #[getter]
    fn drive_class(&self) -> Option<&'static str> {
        self.0.class
    }

    /// Memory that a run on it takes, bytes, estimated.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.memory_bytes().map_err(|error| to_python(py, error))
    }

    /// Bytes that the host can address; the devices are built for it.
    #[getter]
    fn capacity_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.0.capacity()).map_err(|error| to_python(py, error))
    }

    /// The value of a key as text; None where the rig does not say it.
    fn get(&self, key: &str) -> Option<String> {
        self.0.get(key)
    }

    /// Raises `ssdlab.errors.InputError` where no device knows the key, as `set` does.
    fn check_key(&self, py: Python<'_>, key: &str) -> PyResult<()> {
        self.0.check_key(key).map_err(|error| to_python(py, error))
    }

    /// The value of a key that is a size, bytes.
    fn bytes(&self, py: Python<'_>, key: &str) -> PyResult<Option<u64>> {
        self.0.bytes(key).map_err(|error| to_python(py, error))
    }

    /// Every value: its key from the outermost device on, as text, and its source ("" without one).
    fn values(&self) -> Vec<Row> {
        rows(&self.0)
    }

    /// What the rig does not say itself, by key: the name of the NAND part that supplies it, or `dies`
    /// where it follows from their number and size.
    fn supplied(&self) -> Vec<(String, String)> {
        let others = self.0.sources().iter().filter(|one| !one.origin.is_empty());
        others.map(|one| (one.key.clone(), one.origin.clone())).collect()
    }

    /// Sets a key to a value as TOML or bare text.
    fn set(&mut self, py: Python<'_>, key: &str, value: &str) -> PyResult<()> {
        self.0.set(key, value).map_err(|error| to_python(py, error))
    }

    /// Sets keys as `set` does, one after the other; what one needs may stand behind it.
    fn set_all(&mut self, py: Python<'_>, pairs: Vec<(String, String)>) -> PyResult<()> {
        self.0.set_all(&pairs).map_err(|error| to_python(py, error))
    }

    /// What stands before the keys of each device of a kind (`below.`), each before those in it.
    fn find(&self, kind: &str) -> Vec<String> {
        self.0.find(kind)
    }

    /// The device at a place such as `find` answers, as a rig of its own; None without one.
    fn part(&self, place: &str) -> Option<PyRig> {
        self.0.part(place).map(PyRig)
    }

    /// Another one that says the same, called otherwise where a name is given. What is summed up otherwise is another
    /// drive, whose class is unknown.
    #[pyo3(signature = (*, name=None, summary=None))]
    fn copy(&self, name: Option<&str>, summary: Option<&str>) -> PyRig {
        let mut rig = self.0.clone();
        if summary.is_some() {
            rig.class = None;
        }
        let (own, said) = (rig.name.clone(), rig.summary.clone());
        PyRig(rig.called(name.unwrap_or(&own), summary.unwrap_or(&said)))
    }

    /// Keys and values that make its drive `factor` times smaller, of at least `fewest` superblocks.
    #[pyo3(signature = (factor, *, fewest=1))]
    fn scale(&self, py: Python<'_>, factor: u64, fewest: u64) -> PyResult<Vec<(String, String)>> {
        self.0.scale(factor, fewest).map_err(|error| to_python(py, error))
    }

    /// The rig as a file, with every source.
    fn to_toml(&self) -> String {
        self.0.write()
    }
}

/// What an array stands behind: a controller card, a bus that its members share, both or nothing.
///
/// Raises `ssdlab.errors.InputError` where the text says something else. It does not change: what
/// would change it answers another one.
#[pyclass(name = "Attachment", frozen, module = "ssdlab._core")]
pub struct PyAttachment(Attachment);

#[pymethods]
impl PyAttachment {
    /// Reads a file with `[controller]` or `[bus]`; nothing is between host and members without one.
    #[new]
    #[pyo3(signature = (text=None, *, file_name=""))]
    fn new(py: Python<'_>, text: Option<&str>, file_name: &str) -> PyResult<Self> {
        let Some(text) = text else { return Ok(PyAttachment(Attachment::direct())) };
        Attachment::parse(text, file_name).map(PyAttachment).map_err(|error| to_python(py, error))
    }

    /// What it is called.
    #[getter]
    fn name(&self) -> &str {
        &self.0.keys().name
    }

    /// What it says that it is.
    #[getter]
    fn summary(&self) -> &str {
        &self.0.keys().summary
    }

    /// The value of a key as text, `controller.cores` or `bus.bandwidth`; None where it is not said.
    fn get(&self, key: &str) -> Option<String> {
        self.0.keys().get(key)
    }

    /// The value of a key that is a size, bytes.
    fn bytes(&self, py: Python<'_>, key: &str) -> PyResult<Option<u64>> {
        self.0.keys().bytes(key).map_err(|error| to_python(py, error))
    }

    /// Every value as `Rig.values` has them.
    fn values(&self) -> Vec<Row> {
        rows(self.0.keys())
    }

    /// The same with a key set, as TOML or bare text, or taken away by None; called `name` if given.
    #[pyo3(signature = (key, value, *, name=None))]
    fn having(
        &self,
        py: Python<'_>,
        key: &str,
        value: Option<&str>,
        name: Option<&str>,
    ) -> PyResult<Self> {
        let mut other = self.0.clone();
        match value {
            Some(value) => other.set(key, value).map_err(|error| to_python(py, error))?,
            None => other.remove(key),
        }
        name.into_iter().for_each(|name| other.rename(name));
        Ok(PyAttachment(other))
    }

    /// The same with a card's RAM divided by `factor`, whole pages of it and at least `least` bytes; None: the
    /// least that `Rig.scale` leaves.
    #[pyo3(signature = (factor, *, least=None))]
    fn scaled(&self, py: Python<'_>, factor: f64, least: Option<u64>) -> PyResult<Self> {
        self.0.scaled(factor, least).map(PyAttachment).map_err(|error| to_python(py, error))
    }

    /// Whether anything is in between.
    fn __bool__(&self) -> bool {
        !self.0.keys().sources().is_empty()
    }

    /// A rig with the bus, and below the card.
    fn around(&self, py: Python<'_>, rig: PyRef<'_, PyRig>) -> PyResult<PyRig> {
        self.0.around(&rig.0).map(PyRig).map_err(|error| to_python(py, error))
    }
}

/// What a NAND part or a host interface supplies: keys of `nand` or of a link, each with its value and source.
#[pyfunction]
pub fn description(py: Python<'_>, name: &str) -> PyResult<Vec<Row>> {
    let values = ssdlab::rig::description(name).map_err(|error| to_python(py, error))?;
    Ok(values.into_iter().map(|one| (one.key, one.value, one.source)).collect())
}

fn table_of(keys: &Bound<'_, PyDict>) -> PyResult<Table> {
    keys.iter().map(|(key, value)| Ok((key.extract()?, value_of(&value)?))).collect()
}

fn value_of(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let list = |items: Vec<Bound<'_, PyAny>>| {
        items.iter().map(value_of).collect::<PyResult<Vec<_>>>().map(Value::Array)
    };
    // A bool is an int, too.
    Ok(if let Ok(one) = value.cast::<PyBool>() {
        Value::Boolean(one.is_true())
    } else if let Ok(one) = value.cast::<PyInt>() {
        Value::Integer(one.extract()?)
    } else if let Ok(one) = value.cast::<PyFloat>() {
        Value::Float(one.extract()?)
    } else if let Ok(one) = value.cast::<PyString>() {
        Value::String(one.extract()?)
    } else if let Ok(one) = value.cast::<PyDict>() {
        Value::Table(table_of(one)?)
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        list(value.extract()?)?
    } else {
        let kind = value.get_type();
        return Err(PyTypeError::new_err(format!("a {kind} is no value of a rig")));
    })
}
