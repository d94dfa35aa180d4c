//! Runs that cannot end, or not as they should: refused before they begin, or ended with the reason.

use super::{Driver, Timer};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::job::{JobFile, JobSpec, OPEN_LOOP_DEPTH, too_many_written};
use crate::run::flow::Share;
use crate::run::process::{Process, Stage};
use crate::run::{Kept, RunOptions};
use crate::units::{NEVER, Nanos};
use std::cmp::Reverse;

impl Driver<'_> {
    /// Nothing can ever happen again, yet not all is done: jobs that wait for each other, or a
    /// device that lost a command.
    pub(super) fn check_alive(&self, nothing_done: bool) -> Result<()> {
        let behind = |process: &&Process| {
            let share = process.watch.as_ref().and_then(|watch| watch.share.as_ref());
            process.stage == Stage::Running && share.is_some_and(Share::is_ahead)
        };
        // Who sleeps until the others have caught up (flow_sleep) wakes for nothing.
        let in_vain = |Reverse((_, _, timer)): &Reverse<(u64, u64, Timer)>| match timer {
            Timer::Wake(index) => {
                let process = &self.processes[*index as usize];
                process.end == NEVER && behind(&process)
            }
            _ => false,
        };
        if !nothing_done || !self.timers.iter().all(in_vain) || self.device.next_event() != NEVER {
            return Ok(());
        }
        let in_flight: u32 = self.processes.iter().map(|p| p.in_flight).sum();
        assert!(in_flight == 0, "device {} lost {in_flight} commands", self.device.kind());
        if let Some(process) = self.processes.iter().find(behind) {
            let problem = "waits for ever for the other jobs of its flow_id, which issue no I/O; \
                           all of them count from the beginning, those that start later as well";
            return Err(self.jobs.jobs[process.job as usize].error("flow", problem));
        }
        let waiting = self.processes.iter().find(|p| p.stage == Stage::Waiting);
        let Some(waiting) = waiting.filter(|_| self.running == 0) else { return Ok(()) };
        let title = self.jobs.jobs[waiting.job as usize].title();
        let job = title.map_or("a job".to_string(), |name| format!("job \"{name}\""));
        Err(Error::Unfit(format!(
            "{job} can never start: what it waits for (wait_for) waits for it"
        )))
    }

    /// Latencies of a trace count from its arrivals; they would not if one had to wait to be issued.
    pub(super) fn check_overrun(&self) -> Result<()> {
        let Some(process) = self.processes.iter().find(|process| process.overrun) else {
            return Ok(());
        };
        let most = process.in_flight.max(OPEN_LOOP_DEPTH as u32);
        let problem = format!(
            "more than {most} requests of the trace wait for the device, which cannot keep up; \
             slow the trace down (replay_time_scale) or replay it at a depth (replay_no_stall)"
        );
        Err(self.jobs.jobs[process.job as usize].error("read_iolog", problem))
    }

    /// What is written to be read back takes memory.
    pub(super) fn check_written(&self) -> Result<()> {
        match self.processes.iter().find(|process| process.remembers_too_much()) {
            Some(process) => Err(too_many_written(&self.jobs.jobs[process.job as usize])),
            None => Ok(()),
        }
    }

    /// A job that goes on until time is up never ends on a device that answers in no time.
    pub(super) fn check_time_passes(&self) -> Result<()> {
        let endless = |process: &&Process| {
            let schedule = &self.jobs.jobs[process.job as usize].schedule;
            process.stage == Stage::Running && schedule.time_based
        };
        // Of several that run, the one that never waits has issued the most.
        let busiest = self.processes.iter().filter(endless).max_by_key(|p| p.issued_ios);
        let Some(process) = busiest else { return Ok(()) };
        let problem = "the device answers this job in no time at all, so its time is never up; \
                       write what it reads first, or give the device a command time";
        Err(self.jobs.jobs[process.job as usize].error("time_based", problem))
    }
}

/// Intervals of a run at most: every one is a row of the result in memory.
const INTERVALS_MAX: u64 = 1 << 20;

/// Bytes that a value of the device series takes at most, as vectors grow by doubling.
const VALUE_BYTES: u64 = 16;

/// What the device series of a run may take.
pub(super) struct Room {
    counters: u64,
    fewer: &'static str,
    interval_ns: u64,
    bytes: u64,
}

impl Room {
    pub fn of(device: &dyn Device, options: &RunOptions) -> Self {
        let counters = options.kept.count(device);
        let fewer = if options.kept == Kept::All { ", or keep fewer counters" } else { "" };
        Room { counters, fewer, interval_ns: options.interval_ns, bytes: options.memory_bytes }
    }

    /// Refuses, before they begin, jobs that need more unless they fail.
    pub fn check(&self, jobs: &JobFile) -> Result<()> {
        let stages = jobs.stages();
        let mut least = vec![0; stages.last().map_or(0, |last| *last as usize + 1)];
        for (spec, stage) in jobs.jobs.iter().zip(stages) {
            if spec.schedule.ending.may_be_early() {
                continue;
            }
            let own: &mut u64 = &mut least[stage as usize];
            *own = (*own).max(least_ns(spec));
        }
        let whole = least.into_iter().fold(0, u64::saturating_add);
        self.check_rows("the job", whole / self.interval_ns)
    }

    /// Refuses so many rows where they are more than there is room for.
    pub fn check_rows(&self, what: &str, rows: u64) -> Result<()> {
        if rows > INTERVALS_MAX {
            return Err(too_long(what, self.interval_ns));
        }
        let needed = rows * self.counters * VALUE_BYTES;
        if needed <= self.bytes {
            return Ok(());
        }
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        Err(Error::Memory(format!(
            "{what} has {rows} intervals, for each of which {} counters of the device are kept: about {:.1} GB of \
             memory, and {:.1} GB are available; let it run for a shorter time{}",
            self.counters,
            gigabytes(needed),
            gigabytes(self.bytes),
            self.fewer
        )))
    }
}

/// The time that a job takes at least once it may start, ns.
fn least_ns(spec: &JobSpec) -> u64 {
    let schedule = &spec.schedule;
    let runtime = schedule.runtime_ns.filter(|_| schedule.time_based).unwrap_or(0);
    schedule.start_delay_ns.0.saturating_add(schedule.ramp_ns).saturating_add(runtime)
}

/// Refuses, before it begins, a job that cannot end within what a run can record.
pub(super) fn check_times(jobs: &JobFile, interval_ns: u64) -> Result<()> {
    for spec in &jobs.jobs {
        if least_ns(spec) / interval_ns > INTERVALS_MAX {
            let timed = spec.schedule.time_based
                && spec.schedule.runtime_ns > Some(spec.schedule.start_delay_ns.0);
            let of = if timed { "runtime" } else { "startdelay" };
            let error = too_long("the job", interval_ns);
            return Err(spec.error(of, error.to_string()));
        }
    }
    Ok(())
}

fn too_long(what: &str, interval_ns: u64) -> Error {
    let span = match INTERVALS_MAX.saturating_mul(interval_ns) / 1_000_000_000 {
        seconds if seconds < 172_800 => format!("{seconds} s"),
        seconds => format!("{:.1} days", seconds as f64 / 86_400.0),
    };
    Error::Unfit(format!(
        "{what} takes longer than the {span} of simulated time that can be recorded, one row every {}",
        Nanos(interval_ns)
    ))
}
