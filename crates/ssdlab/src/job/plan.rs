//! What a job file is going to do, before it does it: where, how much, for how long.
//!
//! The same reading of the options and the same ranges as in a simulation, so that what is said of
//! a job for a real drive is what a simulated one would do with it.

use super::extent::{Amounts, Target, ranges};
use super::layout::Files;
use super::{JobFile, JobSpec, PerDirection};
use crate::error::Result;
use crate::rng::Stream;

/// What one process of a job is going to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Place of its job in the job file.
    pub job: usize,
    /// Its number among the processes of the job, from 0.
    pub thread: u32,
    /// Jobs of a later stage wait for all those of earlier ones (`stonewall`).
    pub stage: u32,
    /// Where it works: offset and length in bytes, one per file. Empty where it replays a trace.
    pub regions: Vec<(u64, u64)>,
    /// Bytes that it moves by direction, a mix as its shares have it; `None`: until time is up, or
    /// what a trace holds.
    pub bytes: Option<PerDirection<u64>>,
}

/// What a job file is going to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Every process of every job, in the order of the job file.
    pub processes: Vec<Process>,
    /// Bytes of the device, or those that the file will have.
    pub target_bytes: u64,
}

/// What `jobs` are going to do on `target`. A plain file is the one file of all jobs, whatever they
/// call theirs.
///
/// # Errors
/// [`crate::Error::Job`] where a job does not fit, or does not say how large a new file is to be.
pub fn plan(jobs: &JobFile, target: Target) -> Result<Plan> {
    let mut plan = Plan { processes: Vec::new(), target_bytes: 0 };
    let mut target = target;
    for (job, (spec, stage)) in jobs.jobs.iter().zip(jobs.stages()).enumerate() {
        let mut spec = spec.clone();
        if matches!(target, Target::File(_)) {
            spec.pattern.files = Files::default();
        }
        for thread in 0..spec.schedule.numjobs {
            let (regions, bytes) = match spec.replay {
                Some(_) => (Vec::new(), None),
                None => process(&spec, thread, &mut target)?,
            };
            plan.processes.push(Process { job, thread, stage, regions, bytes });
        }
    }
    let (Target::Device(bytes) | Target::File(bytes)) = target;
    plan.target_bytes = bytes;
    Ok(plan)
}

type Work = (Vec<(u64, u64)>, Option<PerDirection<u64>>);

/// Where a process works and how much it moves; a file grows as fio makes it grow, in the order of
/// the processes and before the first of them runs.
fn process(spec: &JobSpec, thread: u32, target: &mut Target) -> Result<Work> {
    let p = &spec.pattern;
    let mut sizes = Stream::new(0, "plan/filesize");
    let ranges = ranges(spec, thread, *target, &mut sizes)?;
    if let Target::File(bytes) = target {
        *bytes = ranges.iter().map(|r| r.file).fold(*bytes, u64::max);
    }
    let region = |range: &super::region::Range| {
        // fio lets strips go on to the end of the file.
        let length = if p.zones.is_some() { range.room } else { range.span };
        (range.base, length)
    };
    let regions = ranges.iter().map(region).collect();
    if spec.schedule.time_based {
        return Ok((regions, None));
    }
    let moved = Amounts::new(p, &ranges).moved;
    let shares = p.shares();
    let weights: PerDirection<f64> = std::array::from_fn(|d| shares[d] * p.sizes[d].mean());
    let all: f64 = weights.iter().sum();
    let bytes = weights.map(|weight| (moved as f64 * (weight / all)).round() as u64);
    Ok((regions, Some(bytes)))
}
