//! What keeps the I/Os of a process back beside its depth: rates, pauses, the share of other jobs.

use super::{JobSpec, PerDirection, size, values};
use crate::error::{Error, Result};

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Weight of a flow at most, fio's limit.
const FLOW_MAX: u64 = 1000;

/// Rates, pauses and shares, by fio's options.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Pace {
    /// Bytes per second at most, by direction; 0: no limit.
    pub rate_bytes: PerDirection<u64>,
    /// I/Os per second at most, by direction; 0: no limit.
    pub rate_iops: PerDirection<u64>,
    /// Poisson arrivals instead of even ones (`rate_process=poisson`).
    pub rate_poisson: bool,
    /// A rate does not catch up on pauses (`rate_ignore_thinktime`).
    pub rate_ignores_pauses: bool,
    /// Rates below which the job fails.
    pub least: LeastRates,
    /// Pause in ns after every `thinktime_blocks` I/Os.
    pub thinktime_ns: u64,
    /// See `thinktime_ns`; 0: however many there are in `thinktime_iotime_ns`.
    pub thinktime_blocks: u32,
    /// Those are I/Os issued, not I/Os completed (`thinktime_blocks_type=issue`).
    pub thinktime_by_issue: bool,
    /// I/O for so long between two pauses at most, ns; 0: as long as the blocks take (`thinktime_iotime`).
    pub thinktime_iotime_ns: u64,
    /// Its share in the I/Os of several jobs.
    pub flow: Flow,
}

/// Rates below which a job fails (`rate_min` and its kin).
#[derive(Clone, Debug, PartialEq)]
pub struct LeastRates {
    /// Bytes per second, by direction; 0: no limit.
    pub bytes: PerDirection<u64>,
    /// I/Os per second, by direction; 0: no limit.
    pub ios: PerDirection<u64>,
    /// How long a rate is looked at, ns (`rate_cycle`).
    pub cycle_ns: u64,
}

impl Default for LeastRates {
    fn default() -> Self {
        LeastRates { bytes: [0; 3], ios: [0; 3], cycle_ns: SECOND }
    }
}

/// Jobs whose I/Os keep to a proportion (`flow` and its kin).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flow {
    /// I/Os in proportion to this; 0: as many as it likes.
    pub weight: u32,
    /// Beside those of the same number (`flow_id`).
    pub id: u64,
    /// Pause of a process that is ahead of its share, ns; 0: until the others have caught up.
    pub sleep_ns: u64,
}

impl Pace {
    /// Reads an option; whether it is one of these.
    pub(super) fn option(&mut self, name: &str, value: &str, base: u64) -> Result<bool> {
        let number = |t: &str| size::bytes(t, base);
        match name {
            "rate" => size::per_direction(value, &mut self.rate_bytes, number)?,
            "rate_iops" => size::per_direction(value, &mut self.rate_iops, number)?,
            "rate_process" => {
                self.rate_poisson = values::choice(value, &["linear", "poisson"])? == 1;
            }
            "rate_ignore_thinktime" => self.rate_ignores_pauses = value != "0",
            "rate_min" => size::per_direction(value, &mut self.least.bytes, number)?,
            "rate_iops_min" => size::per_direction(value, &mut self.least.ios, number)?,
            "rate_cycle" => self.least.cycle_ns = number(value)?.saturating_mul(MILLISECOND),
            "thinktime" => self.thinktime_ns = size::time(value, MICROSECOND)?,
            "thinktime_blocks" => {
                self.thinktime_blocks = values::count(value, base, u64::from(u32::MAX))?;
            }
            "thinktime_blocks_type" => {
                self.thinktime_by_issue = values::choice(value, &["complete", "issue"])? == 1;
            }
            "thinktime_iotime" => self.thinktime_iotime_ns = size::time(value, SECOND)?,
            "flow" => match number(value)? {
                weight @ 0..=FLOW_MAX => self.flow.weight = weight as u32,
                _ => return Err(Error::value(value, "a weight of 1000 or less")),
            },
            "flow_id" => self.flow.id = number(value)?,
            "flow_sleep" => self.flow.sleep_ns = number(value)?.saturating_mul(MICROSECOND),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Refuses what fio refuses, and what contradicts itself.
pub(super) fn check(spec: &JobSpec) -> Result<()> {
    let pace = &spec.schedule.pace;
    let any = |rates: &PerDirection<u64>| rates.iter().any(|rate| *rate > 0);
    if any(&pace.rate_bytes) && any(&pace.rate_iops) {
        return Err(spec.error("rate_iops", "a job has either rate or rate_iops, as in fio"));
    }
    let least = &pace.least;
    if any(&least.bytes) && any(&least.ios) {
        let problem = "a job has either rate_min or rate_iops_min, as in fio";
        return Err(spec.error("rate_iops_min", problem));
    }
    for (most, least, option) in
        [(pace.rate_bytes, least.bytes, "rate_min"), (pace.rate_iops, least.ios, "rate_iops_min")]
    {
        if most.iter().zip(least).any(|(most, least)| *most > 0 && *most < least) {
            let rate = if option == "rate_min" { "rate" } else { "rate_iops" };
            let problem = format!("is more than {rate} lets through; expected as much or less");
            return Err(spec.error(option, problem));
        }
    }
    Ok(())
}
