//! Hit ratios and miss-ratio curves of key arrays.

use crate::errors::to_python;
use crate::observer::PythonObserver;
use numpy::{Element, IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab::cache::curve::{Curve, Sampling, lru_curve, replay_curve};
use ssdlab::cache::objects::{ObjectRequest, Objects, objects};
use ssdlab::cache::policy::of_any_size;
use ssdlab::cache::{Choice, Parameters, Request};
use ssdlab::run::{Observer, Progress};
use ssdlab::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Requests between two looks at the observer.
const REQUESTS_PER_LOOK: usize = 1 << 16;

type Keys<'py> = PyReadonlyArray1<'py, u64>;
type Writes<'py> = Option<PyReadonlyArray1<'py, bool>>;
type Blocks<'py> = Option<PyReadonlyArray1<'py, u32>>;

/// A stream of requests in columns.
#[derive(Clone, Copy)]
struct Columns<'a> {
    keys: &'a [u64],
    writes: Option<&'a [bool]>,
    blocks: Option<&'a [u32]>,
}

impl<'a> Columns<'a> {
    fn new(keys: &'a Keys<'_>, writes: &'a Writes<'_>, blocks: &'a Blocks<'_>) -> Result<Self> {
        let columns = Columns {
            keys: slice("keys", keys)?,
            writes: writes.as_ref().map(|column| slice("writes", column)).transpose()?,
            blocks: blocks.as_ref().map(|column| slice("blocks", column)).transpose()?,
        };
        let same = |name: &str, length: Option<usize>| match length {
            Some(length) if length != columns.keys.len() => {
                let found = format!("{length} {name} for {} keys", columns.keys.len());
                Err(Error::value(found, "as many as there are keys"))
            }
            _ => Ok(()),
        };
        same("writes", columns.writes.map(<[bool]>::len))?;
        same("blocks", columns.blocks.map(<[u32]>::len))?;
        Ok(columns)
    }

    fn accesses(self) -> u64 {
        let sum = |blocks: &[u32]| blocks.iter().map(|&n| u64::from(n)).sum();
        self.blocks.map_or(self.keys.len() as u64, sum)
    }

    /// Frames of a cache of `size` blocks. One of as many as there are accesses evicts nothing: more would only take
    /// memory.
    fn frames(self, size: u64) -> u32 {
        size.min(self.accesses().max(1)).min(u64::from(u32::MAX)) as u32
    }

    /// The requests, as far as the watch lets them go on.
    fn requests(self, watch: Option<&'a Watch>) -> impl Iterator<Item = Request> + Clone + 'a {
        let request = move |(at, &key): (usize, &u64)| Request {
            key,
            blocks: self.blocks.map_or(1, |blocks| blocks[at]),
            write: self.writes.is_some_and(|writes| writes[at]),
        };
        let is_wanted =
            move |(at, _): &(usize, &u64)| watch.is_none_or(|watch| watch.is_wanted(*at));
        self.keys.iter().enumerate().take_while(is_wanted).map(request)
    }
}

/// Tells an observer how far the requests are, which go by several times, and ends them where it says so.
struct Watch {
    observer: Mutex<PythonObserver>,
    seen: AtomicU64,
    all: u64,
    stopped: AtomicBool,
}

impl Watch {
    fn new(progress: Option<Py<PyAny>>, all: u64) -> Self {
        let observer = Mutex::new(PythonObserver::new(progress));
        Watch { observer, seen: AtomicU64::new(0), all, stopped: AtomicBool::new(false) }
    }

    /// Whether the request at this place is still wanted.
    fn is_wanted(&self, at: usize) -> bool {
        if !at.is_multiple_of(REQUESTS_PER_LOOK) {
            return true;
        }
        let ios = self.seen.fetch_add(REQUESTS_PER_LOOK as u64, Relaxed);
        let fraction = (ios as f64 / self.all.max(1) as f64).min(1.0);
        let progress = Progress { phase: "hit ratios", fraction, simulated_s: 0.0, ios };
        let told = || self.observer.lock().is_ok_and(|mut observer| observer.progress(&progress));
        let is_wanted = !self.stopped.load(Relaxed) && told();
        self.stopped.store(!is_wanted, Relaxed);
        is_wanted
    }

    /// What came of the requests, unless they were ended early.
    fn outcome<T>(self, py: Python<'_>, found: Result<T>) -> PyResult<T> {
        let raised = self.observer.into_inner().ok().and_then(|mut observer| observer.raised());
        match raised {
            Some(raised) => Err(raised),
            None if self.stopped.into_inner() => Err(to_python(py, Error::Cancelled)),
            None => found.map_err(|error| to_python(py, error)),
        }
    }
}

fn slice<'a, T: Element>(name: &str, column: &'a PyReadonlyArray1<'_, T>) -> Result<&'a [T]> {
    let apart =
        |_| Error::value(format!("{name} that do not lie side by side"), "a contiguous array");
    column.as_slice().map_err(apart)
}

/// Parameters of policies by name; numbers without a fraction count as whole.
fn parameters(given: Option<BTreeMap<String, f64>>) -> Result<Parameters> {
    let whole = |value: f64| value.fract() == 0.0 && (0.0..1e9).contains(&value);
    let number = |value: f64| {
        if whole(value) { serde_json::json!(value as u64) } else { serde_json::json!(value) }
    };
    let given = given.unwrap_or_default().into_iter();
    let object: serde_json::Map<_, _> = given.map(|(name, v)| (name, number(v))).collect();
    let wrong = |error: serde_json::Error| Error::Unfit(format!("policy parameters: {error}"));
    serde_json::from_value(object.into()).map_err(wrong)
}

/// Hits and misses of a stream of requests in a cache of `size` blocks that begins empty, as a dict: `read_hits`,
/// `read_misses`, `write_hits`, `write_misses`, `write_backs`, `miss_ratio`.
///
/// `policy` is a replacement policy of [`registries`](crate::registries), with an admission behind a plus, if any
/// (`lru+ghost`). `writes` says which requests write (none,
/// if left out), `blocks` how many consecutive keys each uses (one). Every miss is brought in that is admitted. The GIL is released;
/// the arrays must stay as they are meanwhile.
///
/// Raises `ssdlab.errors.InputError` for columns of different lengths, sizes and parameters out of range, and
/// `ssdlab.errors.UnknownNameError` for an unknown policy.
#[pyfunction]
#[pyo3(signature = (policy, size, keys, writes=None, *, blocks=None, parameters=None, seed=1))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments, for Python's eyes")]
pub fn hit_ratio<'py>(
    py: Python<'py>,
    policy: &str,
    size: u64,
    keys: Keys<'py>,
    writes: Writes<'py>,
    blocks: Blocks<'py>,
    parameters: Option<BTreeMap<String, f64>>,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let to_py = |error| to_python(py, error);
    let columns = Columns::new(&keys, &writes, &blocks).map_err(to_py)?;
    let parameters = self::parameters(parameters).map_err(to_py)?;
    let size = columns.frames(size);
    let play = || ssdlab::cache::hit_ratio(policy, &parameters, size, columns.requests(None), seed);
    let counts = py.detach(play).map_err(to_py)?;
    let dict = PyDict::new(py);
    dict.set_item("read_hits", counts.read_hits)?;
    dict.set_item("read_misses", counts.read_misses)?;
    dict.set_item("write_hits", counts.write_hits)?;
    dict.set_item("write_misses", counts.write_misses)?;
    dict.set_item("write_backs", counts.write_backs)?;
    dict.set_item("miss_ratio", counts.miss_ratio())?;
    Ok(dict)
}

/// What a cache of `size` blocks that begins empty and writes through lets past to what is behind it, as a dict of
/// columns: `request` (its place), `key` and `blocks`, for each run of blocks that a read does not find, and for each write.
///
/// The requests are those of [`hit_ratio`]; every miss is brought in.
///
/// Raises as [`hit_ratio`], also for a policy that knows the future or has an admission.
#[pyfunction]
#[pyo3(signature = (policy, size, keys, writes=None, *, blocks=None, seed=1))]
pub fn let_past<'py>(
    py: Python<'py>,
    policy: &str,
    size: u64,
    keys: Keys<'py>,
    writes: Writes<'py>,
    blocks: Blocks<'py>,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let to_py = |error| to_python(py, error);
    let columns = Columns::new(&keys, &writes, &blocks).map_err(to_py)?;
    let size = columns.frames(size);
    let play = || ssdlab::cache::let_past(policy, size, columns.requests(None), seed);
    let past = py.detach(play).map_err(to_py)?;
    let dict = PyDict::new(py);
    let column = |of: fn(&(usize, Request)) -> u64| past.iter().map(of).collect::<Vec<u64>>();
    dict.set_item("request", column(|(place, _)| *place as u64).into_pyarray(py))?;
    dict.set_item("key", column(|(_, run)| run.key).into_pyarray(py))?;
    dict.set_item("blocks", column(|(_, run)| run.blocks.into()).into_pyarray(py))?;
    Ok(dict)
}

/// Misses at many sizes, as a dict of columns: `sizes` (blocks), `miss_ratio`, `read_misses`, `write_misses`,
/// `write_backs`, `error` (standard error of `miss_ratio`), and of `reads`, `writes`, `footprint`, `followed`.
///
/// The requests are those of [`hit_ratio`]. LRU takes one pass, whatever the sizes; other policies are replayed at
/// each of them. Without `sizes` some up to the footprint are chosen. All of the trace is followed, or `samples`
/// disjoint samples: of a share `rate` of the blocks each, or of `sample_blocks` blocks each (LRU). The requests come
/// `repeat` times, one after another. `progress` is
/// called about five times a second; False stops it, which raises `ssdlab.errors.Interrupted`.
///
/// Raises what [`hit_ratio`] raises, and `ssdlab.errors.InputError` for a sampling that cannot be done.
#[pyfunction]
#[pyo3(signature = (policy, keys, writes=None, *, blocks=None, sizes=None, rate=None, sample_blocks=None,
    samples=8, parameters=None, seed=1, repeat=1, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments, for Python's eyes")]
pub fn miss_ratio_curve<'py>(
    py: Python<'py>,
    policy: &str,
    keys: Keys<'py>,
    writes: Writes<'py>,
    blocks: Blocks<'py>,
    sizes: Option<Vec<u64>>,
    rate: Option<f64>,
    sample_blocks: Option<u32>,
    samples: u32,
    parameters: Option<BTreeMap<String, f64>>,
    seed: u64,
    repeat: u32,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let to_py = |error| to_python(py, error);
    let columns = Columns::new(&keys, &writes, &blocks).map_err(to_py)?;
    let parameters = self::parameters(parameters).map_err(to_py)?;
    let sampling = match (rate, sample_blocks) {
        (None, None) => Sampling::Whole,
        (Some(rate), None) => Sampling::Rate { rate, samples },
        (None, Some(blocks)) => Sampling::Blocks { blocks, samples },
        (Some(_), Some(_)) => {
            let both = Error::value("rate and sample_blocks", "one of them");
            return Err(to_py(both));
        }
    };
    let sizes = sizes.unwrap_or_default();
    let passes = if policy == "lru" { 1 } else { sizes.len().max(1) };
    let watch = Watch::new(progress, (columns.keys.len() * passes) as u64 * u64::from(repeat));
    let curve = py.detach(|| {
        let again = |_| columns.requests(Some(&watch));
        let requests = (0..repeat).flat_map(again);
        match policy {
            "lru" => lru_curve(requests, &sizes, sampling, seed),
            _ => replay_curve(policy, &parameters, requests, &sizes, sampling, seed),
        }
    });
    columns_of(py, watch.outcome(py, curve)?)
}

fn columns_of(py: Python<'_>, curve: Curve) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("miss_ratio", curve.miss_ratios().into_pyarray(py))?;
    dict.set_item("sizes", curve.sizes.into_pyarray(py))?;
    dict.set_item("read_misses", curve.read_misses.into_pyarray(py))?;
    dict.set_item("write_misses", curve.write_misses.into_pyarray(py))?;
    dict.set_item("write_backs", curve.write_backs.into_pyarray(py))?;
    dict.set_item("error", curve.error.into_pyarray(py))?;
    dict.set_item("reads", curve.reads)?;
    dict.set_item("writes", curve.writes)?;
    dict.set_item("footprint", curve.footprint)?;
    dict.set_item("followed", curve.followed)?;
    Ok(dict)
}

/// Names of the policies that hold objects of different sizes.
#[pyfunction]
pub fn object_policies() -> Vec<&'static str> {
    of_any_size().collect()
}

/// Raises `ssdlab.errors.UnknownNameError` or `ssdlab.errors.InputError` where a policy with its admission cannot be.
#[pyfunction]
pub fn check_policy(py: Python<'_>, policy: &str) -> PyResult<()> {
    Choice::parse(policy).map(|_| ()).map_err(|error| to_python(py, error))
}

/// Misses of a cache of `capacity` bytes for requests of objects, as a dict: `requests`, `writes`, `bytes`, `misses`,
/// `write_misses`, `miss_bytes`, `expired`, `passed`.
///
/// `keys` name the objects, `sizes` are their bytes; `times` (ns, never back) and `lives` (ns, 0: for ever) say when
/// they expire. `count`, `total` and `least` are the number of different objects, their bytes, and the smallest.
///
/// Raises as [`hit_ratio`], also for policies that are none of [`object_policies`].
#[pyfunction]
#[pyo3(signature = (policy, capacity, keys, sizes, writes, times, lives, *, count, total, least, seed=1,
    progress=None))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments, for Python's eyes")]
pub fn object_misses<'py>(
    py: Python<'py>,
    policy: &str,
    capacity: u64,
    keys: Keys<'py>,
    sizes: PyReadonlyArray1<'py, u32>,
    writes: PyReadonlyArray1<'py, bool>,
    times: PyReadonlyArray1<'py, i64>,
    lives: PyReadonlyArray1<'py, u64>,
    count: u64,
    total: u64,
    least: u32,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let to_py = |error| to_python(py, error);
    let keys = slice("keys", &keys).map_err(to_py)?;
    let sizes = slice("sizes", &sizes).map_err(to_py)?;
    let writes = slice("writes", &writes).map_err(to_py)?;
    let times = slice("times", &times).map_err(to_py)?;
    let lives = slice("lives", &lives).map_err(to_py)?;
    if [sizes.len(), writes.len(), times.len(), lives.len()].iter().any(|&n| n != keys.len()) {
        return Err(to_py(Error::value("columns of different lengths", "as many as keys")));
    }
    let watch = Watch::new(progress, keys.len() as u64);
    let found = py.detach(|| {
        let choice = Choice::parse(policy)?;
        let requests = (0..keys.len()).take_while(|&at| watch.is_wanted(at)).map(|at| {
            let (key, bytes, write) = (keys[at], sizes[at], writes[at]);
            ObjectRequest { key, bytes, write, time_ns: times[at] as u64, ttl_ns: lives[at] }
        });
        objects(&choice, capacity, &Objects { count, bytes: total, least }, requests, seed)
    });
    let counts = watch.outcome(py, found)?;
    let dict = PyDict::new(py);
    dict.set_item("requests", counts.requests)?;
    dict.set_item("writes", counts.writes)?;
    dict.set_item("bytes", counts.bytes)?;
    dict.set_item("misses", counts.misses)?;
    dict.set_item("write_misses", counts.write_misses)?;
    dict.set_item("miss_bytes", counts.miss_bytes)?;
    dict.set_item("expired", counts.expired)?;
    dict.set_item("passed", counts.passed)?;
    Ok(dict)
}
