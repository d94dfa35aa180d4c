//! fio job files: what they mean on a simulated device.
//!
//! [`parse`] reads a job file into [`JobSpec`]s; a [`Generator`] turns the pattern of one job
//! process into its sequence of I/Os, without any notion of time; the driver in `run` paces them
//! by the job's [`Schedule`].

mod distribution;
mod ending;
mod extent;
mod generator;
mod ini;
mod layout;
mod lfsr;
pub mod options;
mod pace;
mod parse;
mod pattern;
mod plain;
pub mod plan;
mod queue;
mod random_map;
mod region;
mod replay;
pub mod size;
mod spec;
mod values;
mod verify;

pub use ending::{Ending, ExitWhat, LatencyTarget, Steady};
pub use extent::Target;
pub use generator::Generator;
pub use ini::Place;
pub use layout::Files;
pub use pace::{Flow, LeastRates, Pace};
pub use parse::{Ignored, JobFile, ParseSource, parse, parse_for_fio};
pub use pattern::{Amount, BlockSizes, Distribution, FileService, Pattern, RandomGenerator, Zones};
pub use queue::Queue;
pub use replay::{Attached, Replay};

pub(crate) use replay::OPEN_LOOP_DEPTH;
pub(crate) use verify::too_many as too_many_written;

use crate::device::Op;
use crate::error::Error;
use std::collections::BTreeMap;

/// One value per direction: read, write, trim.
pub type PerDirection<T> = [T; 3];

/// When a job's I/Os are issued.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Schedule {
    /// I/Os that one process keeps in flight.
    pub iodepth: u32,
    /// Processes that run this job.
    pub numjobs: u32,
    /// Stop after this long, in ns; `None`: run until the amount is done.
    pub runtime_ns: Option<u64>,
    /// Begin again when the amount is done, until `runtime_ns`.
    pub time_based: bool,
    /// Not measured at first, in ns.
    pub ramp_ns: u64,
    /// Wait before the start, in ns (a range is drawn per process).
    pub start_delay_ns: (u64, u64),
    /// Wait for all earlier jobs to end before this one starts (`stonewall`, `wait_for_previous`).
    pub stonewall: bool,
    /// Start when the job of this name has ended (`wait_for`).
    pub wait_for: Option<String>,
    /// What keeps its I/Os back.
    pub pace: Pace,
    /// Report the processes of this group as one (`group_reporting`).
    pub group_reporting: bool,
    /// Group number for reporting: changed by `stonewall` and `new_group`.
    pub group: u32,
    /// `new_group` was given.
    pub new_group: bool,
    /// How I/Os go to the device and come back.
    pub queue: Queue,
    /// What ends it before its amount is done.
    pub ending: Ending,
}

impl Schedule {
    /// fio's number of process `thread`, which its offset and the names of its files have: the copies of a job's first
    /// process are started with the last number first.
    pub fn number_of(&self, thread: u32) -> u32 {
        if thread == 0 { 0 } else { self.numjobs - thread }
    }
}

/// Which logs and summaries a job writes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Logging {
    /// `write_bw_log` prefix.
    pub bw: Option<String>,
    /// `write_lat_log` prefix.
    pub lat: Option<String>,
    /// `write_iops_log` prefix.
    pub iops: Option<String>,
    /// `write_hist_log` prefix.
    pub hist: Option<String>,
    /// Averaging window of the logs, ms; 0: one line per I/O.
    pub avg_msec: u64,
    /// Window of the histogram log, ms.
    pub hist_msec: u64,
    /// Coarseness of the histogram log (0 ..= 6).
    pub hist_coarseness: u32,
    /// Report the maximum of a window instead of its mean (`log_max_value`).
    pub max_value: bool,
    /// Write the offset with each per-I/O line (`log_offset`).
    pub offset: bool,
    /// `percentile_list`, percent; empty: fio's default list.
    pub percentiles: Vec<f64>,
    /// Percentiles of lat instead of clat (`lat_percentiles`).
    pub lat_percentiles: bool,
    /// All processes write into one log file, whose name has no number (`per_job_logs=0`).
    pub shared_files: bool,
}

impl Logging {
    /// Asks for every log of fio, one file for each process: those that the job does not ask for begin
    /// with `prefix`, and hold means over `avg_msec` unless the job chose an interval or logs each I/O.
    pub fn complete(&mut self, prefix: &str, avg_msec: u64) {
        let values = [&mut self.bw, &mut self.lat, &mut self.iops];
        if self.avg_msec == 0 && values.iter().all(|log| log.is_none()) {
            self.avg_msec = avg_msec;
        }
        for log in values.into_iter().chain([&mut self.hist]) {
            log.get_or_insert_with(|| prefix.to_string());
        }
        self.shared_files = false;
    }
}

/// One job of a job file.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Name of the section (`name=` overrides it).
    pub name: String,
    /// Where the section begins.
    pub place: Place,
    /// When its I/Os are issued.
    pub schedule: Schedule,
    /// Which logs and summaries it writes.
    pub logging: Logging,
    /// What its I/Os are.
    pub pattern: Pattern,
    /// The trace that it replays in place of a pattern (`read_iolog`).
    pub replay: Option<Replay>,
    /// The job's own options by fio's names (not those of `[global]`), for JSON `job options`.
    pub options: Vec<(String, String)>,
    /// Where every option with a meaning stands, those of `[global]` too, by fio's name.
    pub places: BTreeMap<&'static str, Place>,
}

impl JobSpec {
    /// An error at `option` of this job, or at the section where the option was not written.
    pub fn error(&self, option: &str, problem: impl Into<String>) -> Error {
        let place = self.places.get(option).unwrap_or(&self.place);
        match self.title() {
            Some(name) => place.error(&format!("[{name}] {option}"), problem),
            None => place.error(option, problem),
        }
    }

    /// The name, unless an included file gave it: then messages do not tell it.
    pub fn title(&self) -> Option<&str> {
        let named = self.places.get("name").unwrap_or(&self.place);
        (!named.included).then_some(self.name.as_str())
    }
}

/// One I/O of a job: what, where, how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// What to do; `Flush` stands for fsync and has no extent.
    pub op: Op,
    /// Byte offset on the device.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// How much the data would shrink, percent.
    pub compressible: u8,
}

impl Io {
    pub(crate) const FLUSH: Io = Io { op: Op::Flush, offset: 0, len: 0, compressible: 0 };
}
