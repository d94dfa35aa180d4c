//! Device x job x seed -> result: drives jobs in virtual time with fio's semantics.
//!
//! [`prepare`] brings a device into a known state through its untimed path; [`run`] then plays the
//! jobs. A [`Session`] does both on a device, as often as it is asked to. Submission takes no time,
//! so slat is 0 and clat equals lat: from submission to completion. Time that a rate limit or think
//! time keeps an I/O back is not part of any latency.

mod batch;
mod checkpoint;
mod counters;
mod driver;
mod flow;
mod log;
mod pacing;
mod prepare;
mod process;
mod recorder;
mod replay;
mod search;
mod session;
mod shifted;
mod steady;
mod watch;

pub use counters::{Column, DeviceSeries, Kept, write_amplification};
pub use log::{LogFile, LogRow, LogRows};
pub use prepare::{Preconditioning, Step, prepare};
pub use recorder::{JobSpan, LatencyLevels, Report, ReportDirection};
pub use session::Session;
pub use steady::SteadyState;
pub use watch::Failure;

use crate::device::{Built, Device};
use crate::error::Result;
use crate::job::JobFile;
use crate::stats::{Attribution, Latencies, Series};

/// How to run, beside what and on what.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Seed of all random streams.
    pub seed: u64,
    /// Length of an interval of the series, ns.
    pub interval_ns: u64,
    /// Time that the device has seen already, ns: what [`prepare`] answered.
    pub elapsed_ns: u64,
    /// When the device loses power, ns since the start of the run (see [`crate::rig::Rig::power_loss`]).
    pub power_loss_ns: Vec<u64>,
    /// The run ends, and what it has done is its result, as soon as it is seen to have been more
    /// work than this (see [`RunResult::work`]); a look is taken every 1,024 I/Os and intervals.
    pub most_work: Option<u64>,
    /// Which counters of the device are kept over time.
    pub kept: Kept,
    /// Memory that they may take, bytes.
    pub memory_bytes: u64,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            seed: 1,
            interval_ns: 1_000_000_000,
            elapsed_ns: 0,
            power_loss_ns: Vec::new(),
            most_work: None,
            kept: Kept::Shown,
            memory_bytes: u64::MAX,
        }
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What is going on: `"fill"`, `"random writes"`, `"run"`.
    pub phase: &'static str,
    /// Share of the phase that is done, estimated, `0 ..= 1`.
    pub fraction: f64,
    /// Virtual time, seconds.
    pub simulated_s: f64,
    /// I/Os completed.
    pub ios: u64,
}

/// Somebody who watches a run.
pub trait Observer {
    /// Called at least every 65 536 I/Os and at the end of every interval; `false` stops the run,
    /// which then fails with [`crate::Error::Cancelled`].
    fn progress(&mut self, progress: &Progress) -> bool;
}

/// Nobody watches.
impl Observer for () {
    fn progress(&mut self, _: &Progress) -> bool {
        true
    }
}

/// I/Os that are drawn before their turn: time enough to bring a line of memory, also where many end at one instant.
const LOOK_AHEAD: usize = 16;

/// I/Os between two looks at the observer.
pub(crate) const IOS_PER_PROGRESS: u64 = 65_536;

/// The same where work is limited: among writes that have much collected, an I/O may be a hundred.
const IOS_PER_LOOK: u64 = 1_024;

/// Everything a run found out.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// One per process, or per group with `group_reporting`: the entries of fio's `jobs`.
    pub reports: Vec<Report>,
    /// When each job of the job file ran.
    pub spans: Vec<JobSpan>,
    /// One row per interval, job and direction.
    pub series: Series,
    /// Latency histograms of each segment of the run, by job and direction.
    pub latencies: Latencies,
    /// One row per interval, and one wherever a job begins to be measured or ends: the counters of
    /// the device and its parts that are kept ([`RunOptions::kept`]), cumulative.
    pub device_series: DeviceSeries,
    /// Every counter at the end: the path of its place and its name, the value.
    pub counters: Vec<(String, u64)>,
    /// What was built of each SSD, by its path in the rig.
    pub built: Vec<(String, Built)>,
    /// Whether writes that were answered may be lost with the power until a flush.
    pub volatile: bool,
    /// Where the time went, by job of the job file and direction (see [`crate::stats::DIRECTIONS`]).
    pub attribution: Vec<[Attribution; 4]>,
    /// Virtual time from the start to the last completion, ns.
    pub simulated_ns: u64,
    /// Length of an interval of the series, ns.
    pub interval_ns: u64,
    /// Write amplification from the start of measuring to the end: bytes programmed per byte written
    /// to flash devices, over all of them; `None` without any.
    pub waf: Option<f64>,
    /// Write amplification since the device was new, preconditioning included.
    pub waf_lifetime: Option<f64>,
    /// Log files that the jobs asked for.
    pub logs: Vec<LogFile>,
    /// About what the simulation took, the same on every machine: 1 for each I/O and each 4 KiB that
    /// flash programmed beyond what was written to it, 1/4 for each 4 KiB of the I/Os.
    pub work: u64,
    /// It ended before its jobs did: [`RunOptions::most_work`] was used up.
    pub cut: bool,
}

/// Plays `jobs` on `device` from virtual time 0.
///
/// # Errors
/// [`crate::Error::Job`] where a job does not fit the device, [`crate::Error::Unfit`] where jobs wait for
/// each other, [`crate::Error::Cancelled`] if the observer says so.
pub fn run(
    device: &mut dyn Device,
    jobs: &JobFile,
    options: &RunOptions,
    observer: &mut dyn Observer,
) -> Result<RunResult> {
    let mut shifted = shifted::Shifted { device, by: options.elapsed_ns };
    let device: &mut dyn Device = if shifted.by == 0 { shifted.device } else { &mut shifted };
    driver::Driver::new(device, jobs, options)?.run(observer)
}
