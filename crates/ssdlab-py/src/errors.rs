//! The one place where errors of the core become Python exceptions.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use ssdlab::Error;

/// The exception of `ssdlab.errors` that stands for `error`.
pub fn to_python(py: Python<'_>, error: Error) -> PyErr {
    let name = match &error {
        Error::Cancelled => "Interrupted",
        Error::Failed(_) => "ExperimentError",
        Error::Unknown { .. } => "UnknownNameError",
        Error::Memory(_) => "MemoryShortError",
        Error::Value { .. }
        | Error::Rig { .. }
        | Error::Job { .. }
        | Error::File { .. }
        | Error::Unfit(_) => "InputError",
    };
    let message = error.to_string();
    let exception = py
        .import("ssdlab.errors")
        .and_then(|module| module.getattr(name))
        .and_then(|class| class.call1((message.as_str(),)));
    match exception {
        Ok(exception) => PyErr::from_value(exception),
        // The package is not whole; the sentence matters more than its class.
        Err(_) => PyValueError::new_err(message),
    }
}

/// The sentence of an `ssdlab.errors.InputError` that Python code raised; None for anything else.
pub fn input_error(py: Python<'_>, error: &PyErr) -> Option<String> {
    let class = py.import("ssdlab.errors").and_then(|module| module.getattr("InputError")).ok()?;
    let value = error.value(py);
    value.is_instance(&class).ok().filter(|is| *is).map(|_| value.to_string())
}
