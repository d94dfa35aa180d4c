//! A simulated drive that lives across several jobs.

use crate::arguments;
use crate::errors::to_python;
use crate::observer::PythonObserver;
use crate::output::RunOutput;
use crate::traces::Traces;
use pyo3::prelude::*;
use ssdlab::output::{Context, document};
use ssdlab::rig::Rig;
use ssdlab::run::{Kept, RunOptions, Session};
use ssdlab::units::Nanos;
use ssdlab::{Error, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Longest time that a drive is left alone at once, seconds (1000 days).
const IDLE_MAX_S: f64 = 1000.0 * 86_400.0;

/// What Python raised in `progress` (Ctrl-C among it) says more than that the run was stopped.
fn finish<T>(py: Python<'_>, outcome: Result<T>, observer: &mut PythonObserver) -> PyResult<T> {
    match observer.raised() {
        Some(raised) => Err(raised),
        None => outcome.map_err(|error| to_python(py, error)),
    }
}

/// A simulated drive that lives across several jobs: each finds what the one before left.
///
/// `rig` is the text of a rig (TOML), `rig_name` stands in messages, `overrides` are keys and values as
/// `--set` takes them; `seed` is that of the drive, of preparing it, and of jobs that are given none.
/// `memory_bytes` is what is available: a rig that needs more is refused before it is built, and so are runs whose series do. The GIL is released while it works. A drive is
/// used by one call at a time, and not from within `progress`.
///
/// Every method raises `ssdlab.errors.InputError` for anything wrong in its input, and for a drive
/// that a call left half-way: after an interrupted `run` or `prepare` it is of no use any more.
#[pyclass(frozen, module = "ssdlab._core")]
pub struct Drive {
    rig: Rig,
    capacity: u64,
    /// Bytes of memory beside those of the rig, for what runs record.
    memory_left: u64,
    session: Mutex<Session>,
}

impl Drive {
    /// The session, unless another call has it: to wait for that one here could wait for ever.
    fn session(&self) -> Result<MutexGuard<'_, Session>> {
        match self.session.try_lock() {
            Ok(session) => Ok(session),
            Err(TryLockError::WouldBlock) => {
                Err(Error::Unfit("the drive is at work for another call; wait for its end".into()))
            }
            Err(TryLockError::Poisoned(session)) => Ok(session.into_inner()),
        }
    }
}

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (rig, *, rig_name, overrides=vec![], seed=1, memory_bytes=None))]
    fn new(
        py: Python<'_>,
        rig: &str,
        rig_name: &str,
        overrides: Vec<(String, String)>,
        seed: u64,
        memory_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let built = py.detach(|| {
            let rig = arguments::rig(rig, rig_name, &overrides)?;
            let memory_left = rig.check_memory(memory_bytes.unwrap_or(u64::MAX))?;
            let device = rig.build(seed, false)?;
            let capacity = device.capacity();
            let session = Mutex::new(Session::new(device, seed));
            Ok(Drive { rig, capacity, memory_left, session })
        });
        built.map_err(|error| to_python(py, error))
    }

    /// Bytes that the host can address.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.capacity
    }

    /// Virtual time that the drive has seen, seconds.
    #[getter]
    fn now_s(&self, py: Python<'_>) -> PyResult<f64> {
        let now = self.session().map(|session| session.now_ns());
        now.map(|now| now as f64 / 1e9).map_err(|error| to_python(py, error))
    }

    /// The rig as built, overrides applied.
    #[getter]
    fn rig_toml(&self) -> String {
        self.rig.to_toml()
    }

    /// In which state the next run finds the drive, as its document will say.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.session().map(|session| session.state()).map_err(|error| to_python(py, error))
    }

    /// Takes the drive through steps (`fob`, `sequential`, `random:N`, `steady` ...) from where it is.
    /// Only idle steps take virtual time, and what the drive needs to finish what it has begun.
    #[pyo3(signature = (steps, *, progress=None))]
    fn prepare(&self, py: Python<'_>, steps: &str, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let steps = arguments::steps(steps).map_err(|error| to_python(py, error))?;
        let mut observer = PythonObserver::new(progress);
        let outcome = py.detach(|| self.session()?.prepare(&steps, &mut observer));
        finish(py, outcome, &mut observer)
    }

    /// Plays the job, the text of a fio job file, on the drive. Its virtual time begins at 0; the drive
    /// goes on from where it was. `seed` is that of the job's streams; `job_name` stands in messages;
    /// `include` reads a file that the job file includes; `traces` answers where a trace is that a job
    /// replays (`read_iolog`): path, options as of `TraceReader`, fit, open loop. `log_avg_msec` asks for
    /// all of fio's logs, as means over so long; those that the job does not ask for are named
    /// `ssdlab<job>_<type>.<process>.log`. `progress` is called about five times a second; False stops
    /// the run: `ssdlab.errors.Interrupted`, and `KeyboardInterrupt` on Ctrl-C. What is more than `most_work`
    /// ends there, with what it has done as its result. `stages` (from, to) has those stages of the job run alone, counted
    /// from 0; the others are as if they were not in the file, but for what they say of sizes, places and files.
    /// `all_counters` keeps those of the members of arrays over time that nothing shows, too.
    #[pyo3(signature = (job, *, job_name, seed=None, environment=None, include=None, traces=None,
        progress=None, interval_ms=1000, log_avg_msec=None, most_work=None, stages=None, all_counters=false))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments, for Python's eyes")]
    fn run(
        &self,
        py: Python<'_>,
        job: &str,
        job_name: &str,
        seed: Option<u64>,
        environment: Option<BTreeMap<String, String>>,
        include: Option<Py<PyAny>>,
        traces: Option<Py<PyAny>>,
        progress: Option<Py<PyAny>>,
        interval_ms: u64,
        log_avg_msec: Option<u64>,
        most_work: Option<u64>,
        stages: Option<(u32, u32)>,
        all_counters: bool,
    ) -> PyResult<RunOutput> {
        let traces = Traces::Read(&traces);
        let mut jobs = arguments::jobs(py, job, job_name, environment, include, traces, stages)?;
        log_avg_msec.into_iter().for_each(|ms| jobs.complete_logs(ms));
        let interval_ns =
            arguments::interval_ns(interval_ms).map_err(|error| to_python(py, error))?;
        let mut observer = PythonObserver::new(progress);
        let outcome = py.detach(|| {
            let mut session = self.session()?;
            let seed = seed.unwrap_or(session.seed());
            let context = Context {
                seed,
                target: arguments::target(&self.rig, self.capacity),
                profile: arguments::profile(&self.rig),
                preconditioning: session.state(),
            };
            let power_loss_ns = self.rig.power_loss.iter().map(|time| time.0).collect();
            let memory_bytes = self.memory_left;
            let kept = if all_counters { Kept::All } else { Kept::Shown };
            let elapsed_ns = 0;
            let options = RunOptions {
                seed,
                interval_ns,
                elapsed_ns,
                power_loss_ns,
                most_work,
                kept,
                memory_bytes,
            };
            let result = session.run(&jobs, &options, &mut observer)?;
            Ok((document(&result, &jobs, &context), result))
        });
        let (json, result) = finish(py, outcome, &mut observer)?;
        let names = jobs.jobs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>();
        RunOutput::new(py, json, result, &names, self.rig.to_toml())
    }

    /// Leaves the drive alone for so long: collection and folding of idle time happen.
    fn idle(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let outcome = py.detach(|| {
            if !(0.0..=IDLE_MAX_S).contains(&seconds) {
                let expected = "a time from 0 s to 1000 days";
                return Err(Error::value(seconds.to_string(), expected).under("idle"));
            }
            self.session()?.idle(Nanos((seconds * 1e9).round() as u64))
        });
        outcome.map_err(|error| to_python(py, error))
    }

    /// Cuts the power of the drive and gives it back at once: what was volatile is lost. The next run or idle time
    /// waits for the start-up; answers how long that takes at least, seconds.
    fn power_cut(&self, py: Python<'_>) -> PyResult<f64> {
        let outcome = py.detach(|| self.session()?.power_cut());
        outcome.map(|ns| ns as f64 / 1e9).map_err(|error| to_python(py, error))
    }

    /// Deallocates `length` bytes from `offset` on, to the end where it is None; takes no time.
    #[pyo3(signature = (offset=0, length=None))]
    fn trim(&self, py: Python<'_>, offset: u64, length: Option<u64>) -> PyResult<()> {
        let length = length.unwrap_or(self.capacity.saturating_sub(offset));
        let outcome = py.detach(|| self.session()?.trim(offset, length));
        outcome.map_err(|error| to_python(py, error))
    }

    /// Erases everything: fresh out of the box, but for the wear; takes no time.
    fn purge(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.session()?.purge()).map_err(|error| to_python(py, error))
    }

    /// Saves the drive as it is, to go on from later, on another day too. The file takes the place of
    /// an older one at once, when it is whole and on the disk.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let outcome = py.detach(|| self.session()?.save(&path, &self.rig));
        outcome.map_err(|error| to_python(py, error))
    }

    /// Goes on from where a drive of the same rig, overrides, seed and version was saved. Anything
    /// else is refused, and a damaged file, and the drive is as it was then. What this drive has done
    /// does not matter: one that was interrupted is of use again.
    fn restore(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let outcome = py.detach(|| self.session()?.restore(&path, &self.rig));
        outcome.map_err(|error| to_python(py, error))
    }

    /// Every counter so far, by place and name as in the device series.
    fn counters(&self, py: Python<'_>) -> PyResult<BTreeMap<String, u64>> {
        let outcome = py.detach(|| self.session().map(|session| session.counters()));
        outcome.map(BTreeMap::from_iter).map_err(|error| to_python(py, error))
    }
}
