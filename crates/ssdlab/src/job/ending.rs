//! What ends a job before its amount is done, and whom it takes along.

use super::{PerDirection, size, values};
use crate::error::{Error, Result};

const MICROSECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;

/// Which jobs end with one that ends (`exit_what`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExitWhat {
    /// Those of its report group, started or not.
    #[default]
    Group,
    /// All that run; those behind the next stonewall follow.
    Stonewall,
    /// All.
    All,
}

/// A latency that the depth is adjusted to (`latency_target` and its kin).
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyTarget {
    /// I/Os are to take no longer, ns; 0: nothing is adjusted.
    pub target_ns: u64,
    /// How long each depth is tried, ns.
    pub window_ns: u64,
    /// Percent of the I/Os of a window that are to take no longer.
    pub percentile: f64,
    /// The depth goes on being adjusted (`latency_run`).
    pub goes_on: bool,
}

impl Default for LatencyTarget {
    fn default() -> Self {
        LatencyTarget { target_ns: 0, window_ns: 0, percentile: 100.0, goes_on: false }
    }
}

/// A steady state that ends a job (`steadystate` and its kin).
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// Of IOPS, not of bandwidth.
    pub iops: bool,
    /// It is the slope of rates that is limited, not how far they are from their mean.
    pub slope: bool,
    /// Below this; in I/Os or bytes per second, or percent of the mean.
    pub limit: f64,
    /// It is in percent.
    pub percent: bool,
    /// Seconds that are looked at; 0: none.
    pub duration_s: u64,
    /// Not looked at first, ns.
    pub ramp_ns: u64,
}

impl Default for Steady {
    fn default() -> Self {
        let (iops, slope, percent) = (true, true, true);
        Steady { iops, slope, limit: 0.01, percent, duration_s: 0, ramp_ns: 0 }
    }
}

impl Steady {
    /// Reads a criterion with its limit.
    fn criterion(&mut self, value: &str) -> Result<()> {
        let expected = "iops, iops_slope, bw or bw_slope with a limit, such as iops_slope:0.3%";
        let wrong = || Error::value(value, expected);
        let (kind, limit) = value.split_once(':').ok_or_else(wrong)?;
        let rate = kind.strip_suffix("_slope").unwrap_or(kind);
        (self.iops, self.slope) = (rate == "iops", rate != kind);
        let bare = limit.strip_suffix('%').unwrap_or(limit);
        self.percent = bare != limit;
        self.limit = bare.parse().map_err(|_| wrong())?;
        let sound = matches!(rate, "iops" | "bw") && self.limit.is_finite() && self.limit >= 0.0;
        if sound { Ok(()) } else { Err(wrong()) }
    }
}

/// Seconds of a steady state that are kept at most: a day.
const STEADY_MAX_S: u64 = 86_400;

/// What ends a job early, by fio's options.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Ending {
    /// `exitall` stands somewhere in the job file: whichever job ends takes others along.
    pub exitall: bool,
    /// The same where the job fails (`exitall_on_error`).
    pub exitall_on_error: bool,
    /// Whom.
    pub exit_what: ExitWhat,
    /// A job fails whose I/O takes longer, ns by direction; 0: no limit.
    pub max_latency_ns: PerDirection<u64>,
    /// It ends at a depth with such latencies.
    pub latency: LatencyTarget,
    /// It ends in a steady state.
    pub steady: Steady,
}

impl Ending {
    /// Whether the job, which need not fail for it, may end before its time is up.
    pub fn may_be_early(&self) -> bool {
        let finds_depth = self.latency.target_ns > 0 && !self.latency.goes_on;
        self.exitall || self.steady.duration_s > 0 || finds_depth
    }

    /// Reads an option; whether it is one of these.
    pub(super) fn option(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "exitall" if value == "0" => {
                let expected = "the name alone, or 1: to fio the option is on whatever its value";
                return Err(Error::value(value, expected));
            }
            "exitall" => self.exitall = true,
            "exitall_on_error" => self.exitall_on_error = value != "0",
            "exit_what" => {
                let known = ["group", "stonewall", "all"];
                let what = [ExitWhat::Group, ExitWhat::Stonewall, ExitWhat::All];
                self.exit_what = what[values::choice(value, &known)?];
            }
            "max_latency" => {
                let time = |t: &str| size::time(t, MICROSECOND);
                size::per_direction(value, &mut self.max_latency_ns, time)?;
            }
            "latency_target" => self.latency.target_ns = size::time(value, MICROSECOND)?,
            "latency_window" => self.latency.window_ns = size::time(value, MICROSECOND)?,
            "latency_percentile" => {
                let share = value.parse().ok().filter(|share| (0.0..=100.0).contains(share));
                let wrong = || Error::value(value, "a percentage from 0 to 100");
                self.latency.percentile = share.ok_or_else(wrong)?;
            }
            "latency_run" => self.latency.goes_on = value != "0",
            "steadystate" => self.steady.criterion(value)?,
            "steadystate_duration" => match size::time(value, SECOND)? / SECOND {
                seconds if seconds <= STEADY_MAX_S => self.steady.duration_s = seconds,
                _ => return Err(Error::value(value, "a day or less")),
            },
            "steadystate_ramp_time" => self.steady.ramp_ns = size::time(value, SECOND)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
