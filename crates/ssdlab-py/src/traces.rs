//! Block traces for Python: columns, profiles, conversion, and requests for replay.

use crate::compressed::{self, Position, Sink, failed};
use crate::errors::{input_error, to_python};
use crate::observer::PythonObserver;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ssdlab::job::{Attached, JobFile};
use ssdlab::run::{Observer, Progress};
use ssdlab::trace::profile::Profile;
use ssdlab::trace::{
    Encoder, FORMATS, Placement, ReadOptions, Request, Select, Spans, Trace, WriteOptions,
};
use ssdlab::{Error, Result};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

mod shared;

/// Requests between two looks at the observer.
const BETWEEN_LOOKS: u64 = 1 << 15;

/// How a trace is read, as Python says it.
#[derive(FromPyObject, PartialEq)]
#[pyo3(from_item_all)]
pub struct Reading {
    format: Option<String>,
    action: char,
    block_bytes: u64,
    skip_damaged: bool,
    from_ns: u64,
    to_ns: u64,
    share: f64,
    device: Option<u32>,
    columns: Option<String>,
}

impl Reading {
    fn options(&self) -> ReadOptions {
        ReadOptions {
            action: self.action,
            block_bytes: self.block_bytes,
            skip_damaged: self.skip_damaged,
            select: Select {
                from_ns: self.from_ns,
                to_ns: self.to_ns,
                share: self.share,
                device: self.device,
            },
            columns: self.columns.clone().unwrap_or_default(),
        }
    }

    /// Opens a trace.
    pub fn open(&self, path: &Path) -> Result<(Trace, Position)> {
        let (source, position) = compressed::open(path)?;
        let name = path.display().to_string();
        let trace = Trace::open(source, &name, self.format.as_deref(), &self.options())?;
        Ok((trace, position))
    }
}

/// Tells the observer how far reading is; stops where it says so.
fn look(
    observer: &mut PythonObserver,
    trace: &Trace,
    position: &Position,
    time_ns: u64,
) -> Result<()> {
    let progress = Progress {
        phase: "read",
        fraction: position.fraction(),
        simulated_s: time_ns as f64 / 1e9,
        ios: trace.requests(),
    };
    if observer.progress(&progress) { Ok(()) } else { Err(Error::Cancelled) }
}

fn outcome<T>(py: Python<'_>, result: Result<T>, observer: &mut PythonObserver) -> PyResult<T> {
    match observer.raised() {
        Some(raised) => Err(raised),
        None => result.map_err(|error| to_python(py, error)),
    }
}

/// A trace being read in batches of columns.
///
/// `options` is a dict of all of `format` (None: found by content), `action` (`Q`, `D`, `C`),
/// `block_bytes`, `skip_damaged`, `from_ns`, `to_ns`, `share`, `device` (None: all).
/// Raises `ssdlab.errors.InputError` for anything wrong with the file or the options.
#[pyclass(frozen, module = "ssdlab._core")]
pub struct TraceReader {
    state: Mutex<(Trace, Position)>,
}

#[pymethods]
impl TraceReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, options: Reading) -> PyResult<Self> {
        let opened = py.detach(|| options.open(&path));
        let state = Mutex::new(opened.map_err(|error| to_python(py, error))?);
        Ok(TraceReader { state })
    }

    /// Name of the format.
    #[getter]
    fn format(&self) -> &'static str {
        self.lock().0.format()
    }

    /// Share of the file that has been read.
    #[getter]
    fn fraction(&self) -> f64 {
        self.lock().1.fraction()
    }

    /// The next requests, at most `limit`, as columns: `time_ns` (int64), `offset` (uint64), `length`
    /// (uint32), `kind` (uint8: 0 read, 1 write, 2 trim, 3 flush), `device` (uint32), `response_ns`
    /// (int64, -1 where not known); of a trace that names objects `key` (uint64) and `ttl_ns` (uint64, 0: none).
    /// None at the end.
    fn batch<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Option<Bound<'py, PyDict>>> {
        let read = py.detach(|| {
            let (trace, _) = &mut *self.lock();
            let mut columns = Columns::default();
            while columns.time_ns.len() < limit
                && let Some(request) = trace.next_request()?
            {
                columns.time_ns.push(request.time_ns as i64);
                columns.offset.push(request.offset);
                columns.length.push(request.length);
                columns.kind.push(request.kind as u8);
                columns.device.push(request.device);
                columns.response_ns.push(request.response_ns.map_or(-1, |ns| ns as i64));
                if let Some(object) = trace.object() {
                    columns.key.push(object.key);
                    columns.ttl_ns.push(object.ttl_ns);
                }
            }
            Ok(columns)
        });
        let columns = read.map_err(|error| to_python(py, error))?;
        if columns.time_ns.is_empty() {
            return Ok(None);
        }
        let dict = PyDict::new(py);
        dict.set_item("time_ns", columns.time_ns.into_pyarray(py))?;
        dict.set_item("offset", columns.offset.into_pyarray(py))?;
        dict.set_item("length", columns.length.into_pyarray(py))?;
        dict.set_item("kind", columns.kind.into_pyarray(py))?;
        dict.set_item("device", columns.device.into_pyarray(py))?;
        dict.set_item("response_ns", columns.response_ns.into_pyarray(py))?;
        if !columns.key.is_empty() {
            dict.set_item("key", columns.key.into_pyarray(py))?;
            dict.set_item("ttl_ns", columns.ttl_ns.into_pyarray(py))?;
        }
        Ok(Some(dict))
    }
}

impl TraceReader {
    fn lock(&self) -> std::sync::MutexGuard<'_, (Trace, Position)> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Columns {
    time_ns: Vec<i64>,
    offset: Vec<u64>,
    length: Vec<u32>,
    kind: Vec<u8>,
    device: Vec<u32>,
    response_ns: Vec<i64>,
    key: Vec<u64>,
    ttl_ns: Vec<u64>,
}

/// What a trace is like, as JSON (see docs/traces.md). `progress` is called about five times a second.
#[pyfunction]
#[pyo3(signature = (path, options, *, progress=None))]
pub fn trace_profile(
    py: Python<'_>,
    path: PathBuf,
    options: Reading,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut observer = PythonObserver::new(progress);
    let result = py.detach(|| {
        let (mut trace, position) = options.open(&path)?;
        let mut profile = Profile::default();
        while let Some(request) = trace.next_request()? {
            profile.add(&request);
            if trace.requests().is_multiple_of(BETWEEN_LOOKS) {
                look(&mut observer, &trace, &position, request.time_ns)?;
            }
        }
        let mut document = profile.document(trace.oddities(), trace.has_times());
        document["format"] = trace.format().into();
        Ok(document.to_string())
    });
    outcome(py, result, &mut observer)
}

/// Where requests go on the target, as Python says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Placing {
    capacity: Option<u64>,
    fit: String,
    redirect: bool,
    align: u64,
    scale: u64,
}

impl Placing {
    fn placement(&self, spans: &Spans) -> Result<Placement> {
        Placement::new(&self.fit, spans, self.capacity, self.redirect, self.align, self.scale)
    }
}

/// What was written: requests by kind, bytes written by them, the end of the last, what was left out.
#[derive(Default)]
struct Written {
    requests: u64,
    left_out: u64,
    by_kind: [u64; 4],
    bytes: [u64; 4],
    end: u64,
    last_ns: u64,
}

/// Where a converted trace goes.
struct Output {
    encoder: Box<dyn Encoder>,
    sink: BufWriter<Sink>,
    name: String,
}

impl Output {
    fn create(path: &Path, to: &str, name: &str, options: &WriteOptions) -> Result<Self> {
        let entry = FORMATS.find(to)?;
        let Some(encoder) = entry.build.encoder else {
            return Err(Error::Unfit(format!("{to}: this format can be read, but not written")));
        };
        let sink = Sink::create(path, name).map_err(|e| failed(path, &e))?;
        let sink = BufWriter::with_capacity(1 << 16, sink);
        let mut output = Output { encoder: encoder(options), sink, name: name.to_string() };
        output.encoder.start(&mut output.sink).map_err(|e| full(name, &e))?;
        Ok(output)
    }

    fn request(&mut self, request: &Request) -> Result<bool> {
        self.encoder.request(request, &mut self.sink).map_err(|e| full(&self.name, &e))
    }

    fn finish(mut self) -> Result<()> {
        let name = self.name;
        self.encoder.finish(&mut self.sink).map_err(|e| full(&name, &e))?;
        let sink = self.sink.into_inner().map_err(|e| full(&name, e.error()))?;
        sink.finish().map_err(|e| full(&name, &e))
    }
}

fn full(name: &str, error: &std::io::Error) -> Error {
    Error::Failed(format!("{name}: cannot be written ({error})"))
}

/// Writes a trace in another format to `out`, which is made; compressed as the suffix of `name` says.
///
/// `place` moves requests onto a target first (None: as they are). `lane` (k, n) takes every n-th, from
/// the k-th on. Where `out` is None nothing is
/// written, and what would be is counted. Answers a dict of `requests`, `left_out` (what the format
/// cannot say), `reads`, `writes`, `trims`, `flushes`, `read_bytes`, `write_bytes`, `trim_bytes`,
/// `end_byte`, `seconds`, `format` (that was read), `damaged` (lines or records that were passed over) and
/// `first_damage` (None: none was).
#[pyfunction]
#[pyo3(signature = (path, options, out, *, to="csv", name="", file="trace.dat", block_bytes=4096,
    place=None, lane=(0, 1), progress=None))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments, for Python's eyes")]
pub fn trace_convert<'py>(
    py: Python<'py>,
    path: PathBuf,
    options: Reading,
    out: Option<PathBuf>,
    to: &str,
    name: &str,
    file: &str,
    block_bytes: u64,
    place: Option<Placing>,
    lane: (u64, u64),
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut observer = PythonObserver::new(progress);
    let write = WriteOptions { file: file.to_string(), block_bytes };
    let result = py.detach(|| {
        let placement = match &place {
            Some(place) => Some(place.placement(&spans(&path, &options, &mut observer)?)?),
            None => None,
        };
        let (mut trace, position) = options.open(&path)?;
        let create = |out: &PathBuf| Output::create(out, to, name, &write);
        let mut output = out.as_ref().map(create).transpose()?;
        let mut written = Written::default();
        while let Some(mut request) = trace.next_request()? {
            if (trace.requests() - 1) % lane.1.max(1) != lane.0 {
                continue;
            }
            if let Some(placement) = &placement {
                request = placement.place(request);
            }
            let said = output.as_mut().map_or(Ok(true), |output| output.request(&request))?;
            written.count(&request, said);
            if trace.requests().is_multiple_of(BETWEEN_LOOKS) {
                look(&mut observer, &trace, &position, request.time_ns)?;
            }
        }
        output.map_or(Ok(()), Output::finish)?;
        let oddities = trace.oddities();
        Ok((written, trace.format(), oddities.damaged, oddities.first_damage.clone()))
    });
    let (written, format, damaged, first_damage) = outcome(py, result, &mut observer)?;
    let dict = PyDict::new(py);
    dict.set_item("requests", written.requests)?;
    dict.set_item("left_out", written.left_out)?;
    for (name, count) in ["reads", "writes", "trims", "flushes"].iter().zip(written.by_kind) {
        dict.set_item(name, count)?;
    }
    for (name, bytes) in ["read_bytes", "write_bytes", "trim_bytes"].iter().zip(written.bytes) {
        dict.set_item(name, bytes)?;
    }
    dict.set_item("end_byte", written.end)?;
    dict.set_item("seconds", written.last_ns as f64 / 1e9)?;
    dict.set_item("format", format)?;
    dict.set_item("damaged", damaged)?;
    dict.set_item("first_damage", first_damage)?;
    Ok(dict)
}

impl Written {
    fn count(&mut self, request: &Request, said: bool) {
        if !said {
            self.left_out += 1;
            return;
        }
        self.requests += 1;
        self.by_kind[request.kind as usize] += 1;
        self.bytes[request.kind as usize] += u64::from(request.length);
        self.end = self.end.max(request.offset + u64::from(request.length));
        self.last_ns = request.time_ns;
    }
}

/// How far the requests of each device reach: a pass of its own.
fn spans(path: &Path, options: &Reading, observer: &mut PythonObserver) -> Result<Spans> {
    let (mut trace, position) = options.open(path)?;
    let mut spans = Spans::default();
    while let Some(request) = trace.next_request()? {
        spans.add(&request);
        if trace.requests().is_multiple_of(BETWEEN_LOOKS) {
            look(observer, &trace, &position, request.time_ns)?;
        }
    }
    Ok(spans)
}

/// Where the traces are that jobs replay.
pub enum Traces<'a> {
    /// A function says it: from the name in the job to path, reading, fit, open loop.
    Read(&'a Option<Py<PyAny>>),
    /// The same, but it is only asked whether they are there.
    Find(&'a Option<Py<PyAny>>),
}

/// Gives the jobs that replay a trace their requests.
pub fn attach(py: Python<'_>, mut jobs: JobFile, traces: Traces<'_>) -> PyResult<JobFile> {
    let (find, load) = match traces {
        Traces::Read(find) => (find, true),
        Traces::Find(find) => (find, false),
    };
    let mut raised = None;
    let attached = jobs.attach_traces(&mut |replay| {
        let unread = || Error::Unfit(format!("{}: no trace can be read here", replay.file));
        let found = find.as_ref().ok_or_else(unread)?.call1(py, (replay.file.as_str(),));
        let found = found.and_then(|found| found.extract::<(PathBuf, Reading, String, bool)>(py));
        let (path, reading, fit, open_loop) = found.map_err(|error| {
            input_error(py, &error).map(Error::Unfit).unwrap_or_else(|| {
                raised = Some(error);
                unread()
            })
        })?;
        let requests =
            if load { py.detach(|| shared::requests(path, reading))? } else { Arc::default() };
        Ok(Attached { fit, open_loop, ..Attached::new(requests) })
    });
    match raised {
        Some(raised) => Err(raised),
        None => attached.map(|()| jobs).map_err(|error| to_python(py, error)),
    }
}

/// Formats of traces: dicts of `name`, `summary`, `reference`, `writable`, `loses`,
/// `has_response_times`, `suffix`.
#[pyfunction]
pub fn trace_formats(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entries = FORMATS.entries.iter().map(|entry| {
        let dict = PyDict::new(py);
        dict.set_item("name", entry.name)?;
        dict.set_item("summary", entry.summary)?;
        dict.set_item("reference", entry.reference)?;
        dict.set_item("writable", entry.build.encoder.is_some())?;
        dict.set_item("loses", entry.build.loses)?;
        dict.set_item("has_response_times", entry.build.has_response_times)?;
        dict.set_item("suffix", entry.build.suffix)?;
        Ok(dict)
    });
    entries.collect()
}
