//! Tells Python how far a run has come, and lets it stop the run.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab::run::{Observer, Progress};
use std::time::{Duration, Instant};

/// Wall time between two calls into Python: often enough for the eye and for Ctrl-C.
const BETWEEN_CALLS: Duration = Duration::from_millis(200);

/// Calls a Python function now and then; stops the run when it returns False or raises, and on
/// Ctrl-C.
pub struct PythonObserver {
    callback: Option<Py<PyAny>>,
    called: Instant,
    raised: Option<PyErr>,
}

/// The wall clock only paces calls; no result depends on it.
#[allow(clippy::disallowed_methods, reason = "see above")]
fn wall_clock() -> Instant {
    Instant::now()
}

impl PythonObserver {
    /// An observer that calls `callback(progress)`.
    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        PythonObserver { callback, called: wall_clock(), raised: None }
    }
    /// What Python raised, if it did.
    pub fn raised(&mut self) -> Option<PyErr> {
        self.raised.take()
    }

    fn call(&self, progress: &Progress) -> PyResult<bool> {
        Python::attach(|py| {
            py.check_signals()?;
            let Some(callback) = &self.callback else { return Ok(true) };
            let dict = PyDict::new(py);
            dict.set_item("phase", progress.phase)?;
            dict.set_item("fraction", progress.fraction)?;
            dict.set_item("simulated_s", progress.simulated_s)?;
            dict.set_item("ios", progress.ios)?;
            // A callback that returns nothing means to go on.
            let answer = callback.call1(py, (dict,))?;
            Ok(answer.is_none(py) || answer.is_truthy(py)?)
        })
    }
}

impl Observer for PythonObserver {
    fn progress(&mut self, progress: &Progress) -> bool {
        let now = wall_clock();
        if now.duration_since(self.called) < BETWEEN_CALLS {
            return true;
        }
        self.called = now;
        self.call(progress).unwrap_or_else(|raised| {
            self.raised = Some(raised);
            false
        })
    }
}
