//! The driver loop: moves virtual time from instant to instant and keeps the processes going.
//!
//! Order within an instant: completions in the device's order, each followed by the next I/O of
//! its process; then timers in the order they were set; then jobs that may start now; then the end
//! of the interval, which thus includes what completed at its very end; then a loss of power.

mod checks;
mod jobs;
mod power;
mod search;
mod watched;

use super::counters::{self, FlashWrites, built};
use super::flow;
use super::process::{Next, Process, Stage, direction};
use super::recorder::{Done, JobSpan, Recorder};
use super::replay::Replayed;
use super::{
    DeviceSeries, IOS_PER_LOOK, IOS_PER_PROGRESS, Observer, Progress, RunOptions, RunResult,
};
use crate::device::{Command, Completion, Device, Op};
use crate::error::{Error, Result};
use crate::job::{Generator, Io, JobFile};
use crate::units::NEVER;
use checks::{Room, check_times};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// I/Os at one instant after which somebody asks whether time will ever pass.
const IOS_PER_INSTANT: u64 = 1 << 22;

/// An I/O in flight; its index is the command's tag.
#[derive(Clone, Copy)]
struct Slot {
    issued: u64,
    /// When it was sent last: again after a loss of power.
    sent: u64,
    offset: u64,
    len: u64,
    process: u32,
    op: Op,
    compressible: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A start delay is over: see who may start.
    Launch,
    /// A process asked to be woken.
    Wake(u32),
    /// The ramp of a job is over.
    Measure(u32),
    /// A second is over of those that stop in steady state.
    Steady(u32),
}

/// What the driver knows of a job as a whole.
#[derive(Clone, Default)]
struct JobState {
    span: Option<JobSpan>,
    measuring: bool,
    live: u32,
    flash: FlashWrites,
}

/// See the module.
pub(super) struct Driver<'a> {
    device: &'a mut dyn Device,
    /// It is told which I/Os will come.
    hints: bool,
    jobs: &'a JobFile,
    interval_ns: u64,
    processes: Vec<Process>,
    slots: Vec<Slot>,
    job_states: Vec<JobState>,
    recorder: Recorder,
    device_series: DeviceSeries,
    room: Room,
    timers: BinaryHeap<Reverse<(u64, u64, Timer)>>,
    timers_set: u64,
    interval_end: u64,
    /// Processes that have started and not ended.
    running: u32,
    /// Processes that have not ended.
    live: u32,
    /// Something has to be seen to that does not happen with every I/O: see [`Driver::attend`].
    attention: bool,
    /// Processes that have been told to end.
    called: Vec<usize>,
    /// Those that stop in steady state.
    steady: Vec<search::Watched>,
    ios: u64,
    /// Work after which the run ends.
    most_work: Option<u64>,
    /// It did.
    cut: bool,
    flash_at_start: FlashWrites,
    /// Flash writes when the first job began to be measured.
    flash_at_measure: Option<FlashWrites>,
    /// When power is lost, the last first.
    power_losses: Vec<u64>,
}

impl<'a> Driver<'a> {
    pub fn new(
        device: &'a mut dyn Device,
        jobs: &'a JobFile,
        options: &RunOptions,
    ) -> Result<Self> {
        let capacity = device.capacity();
        check_times(jobs, options.interval_ns)?;
        let room = Room::of(device, options);
        room.check(jobs)?;
        let mut processes = Vec::new();
        let mut slots: Vec<Slot> = Vec::new();
        for (job, spec) in jobs.jobs.iter().enumerate() {
            for thread in 0..spec.schedule.numjobs {
                let generator = Generator::new(spec, thread, capacity, options.seed)?;
                let slot = Slot {
                    issued: 0,
                    sent: 0,
                    offset: 0,
                    len: 0,
                    process: processes.len() as u32,
                    op: Op::Read,
                    compressible: 0,
                };
                let first = slots.len() as u32;
                slots.resize(slots.len() + spec.schedule.iodepth.max(1) as usize, slot);
                let own = first..slots.len() as u32;
                let mut process =
                    Process::new(spec, job as u32, thread, generator, options.seed, own);
                if let Some(replayed) = Replayed::new(spec, capacity)? {
                    process.replay(spec, replayed);
                }
                processes.push(process);
            }
        }
        flow::link(&mut processes, jobs);
        let (recorder, units) = Recorder::new(jobs, options.interval_ns);
        let mut job_states = vec![JobState::default(); jobs.jobs.len()];
        for (process, unit) in processes.iter_mut().zip(units) {
            process.unit = unit;
            job_states[process.job as usize].live += 1;
        }
        Ok(Driver {
            interval_ns: options.interval_ns,
            live: processes.len() as u32,
            interval_end: options.interval_ns,
            hints: device.heeds_hints(),
            flash_at_start: FlashWrites::of(device),
            device,
            jobs,
            processes,
            slots,
            job_states,
            recorder,
            device_series: DeviceSeries::new(options.kept),
            room,
            timers: BinaryHeap::new(),
            timers_set: 0,
            running: 0,
            attention: true,
            called: Vec::new(),
            steady: Vec::new(),
            ios: 0,
            most_work: options.most_work,
            cut: false,
            flash_at_measure: None,
            power_losses: power::planned(&options.power_loss_ns),
        })
    }

    pub fn run(mut self, observer: &mut dyn Observer) -> Result<RunResult> {
        self.device_series.sample(0, self.device);
        self.prepare_steady();
        let delays: Vec<u64> = self.processes.iter().map(|p| p.delay_until).collect();
        delays.into_iter().filter(|at| *at > 0).for_each(|at| self.set_timer(at, Timer::Launch));
        self.attend(0);
        let mut done: Vec<Completion> = Vec::new();
        let mut now = 0;
        let between = self.most_work.map_or(IOS_PER_PROGRESS, |_| IOS_PER_LOOK);
        let mut look_at = between;
        let mut instant = (0, 0);
        while self.live > 0 {
            let limit = self.next_timer().min(self.interval_end).min(self.next_power_loss());
            done.clear();
            now = self.device.advance(limit, &mut done);
            if now != instant.0 {
                instant = (now, self.ios);
            } else if self.ios - instant.1 > IOS_PER_INSTANT {
                self.check_time_passes()?;
            }
            for completion in &done {
                self.complete(now, completion);
            }
            if now >= self.next_timer() {
                self.fire_timers(now);
            }
            if self.attention {
                self.attend(now);
            }
            if now >= self.interval_end {
                self.check_alive(done.is_empty())?;
                self.room.check_rows("the run", self.device_series.time_s.len() as u64)?;
                self.close_interval(now);
                self.check_overrun()?;
                self.check_written()?;
                look_at = self.ios;
            }
            if now >= self.next_power_loss() && self.device.next_event() > now {
                self.lose_power(now);
            }
            if self.ios >= look_at {
                look_at = self.ios + between;
                if !observer.progress(&self.progress(now)) {
                    return Err(Error::Cancelled);
                }
                if self.most_work.is_some_and(|most| !self.cut && self.work(now) > most) {
                    self.stop(now);
                }
            }
        }
        self.close_interval(now);
        self.check_overrun()?;
        Ok(self.finish(now))
    }

    fn finish(mut self, now: u64) -> RunResult {
        let work = self.work(now);
        let flash = FlashWrites::of(self.device);
        let steady = self.steady_states();
        let mut recorded = self.recorder.finish();
        steady
            .into_iter()
            .for_each(|(report, state)| recorded.reports[report].steady = Some(state));
        RunResult {
            reports: recorded.reports,
            spans: self.job_states.iter().map(|job| job.span.unwrap_or_default()).collect(),
            series: recorded.series,
            latencies: recorded.latencies,
            device_series: self.device_series,
            counters: counters::all(self.device),
            built: built(self.device),
            volatile: self.device.is_volatile(),
            attribution: recorded.attribution,
            simulated_ns: now,
            interval_ns: self.interval_ns,
            waf: self.flash_at_measure.and_then(|start| flash.amplification_since(start)),
            waf_lifetime: flash.amplification_since(FlashWrites::default()),
            logs: recorded.logs,
            work,
            cut: self.cut,
        }
    }

    /// See [`RunResult::work`].
    fn work(&mut self, now: u64) -> u64 {
        self.device.take_stock(now);
        let beyond = FlashWrites::of(self.device).beyond_since(self.flash_at_start);
        let moved: u64 = self.processes.iter().map(|process| process.issued_bytes).sum();
        self.ios + beyond / 4096 + moved / (4 * 4096)
    }

    /// Ends the run as if all runtimes were over, also those of jobs that have not started.
    fn stop(&mut self, now: u64) {
        self.cut = true;
        for index in 0..self.processes.len() {
            if self.processes[index].stage == Stage::Running {
                self.processes[index].end = now;
                self.resume(index, now);
            }
        }
    }

    #[inline]
    fn next_timer(&self) -> u64 {
        self.timers.peek().map_or(NEVER, |Reverse((at, _, _))| *at)
    }

    fn set_timer(&mut self, at: u64, timer: Timer) {
        self.timers_set += 1;
        self.timers.push(Reverse((at, self.timers_set, timer)));
    }

    fn fire_timers(&mut self, now: u64) {
        while self.next_timer() <= now {
            let Some(Reverse((_, _, timer))) = self.timers.pop() else { return };
            match timer {
                Timer::Launch => self.attention = true,
                Timer::Measure(job) => self.measure(job as usize, now),
                Timer::Steady(at) => self.look_for_steady(at as usize, now),
                Timer::Wake(process) => {
                    self.processes[process as usize].wake_at = NEVER;
                    self.resume(process as usize, now);
                }
            }
        }
    }

    /// Issues I/Os of a process until it has no slot free or must wait.
    #[inline(always)]
    fn fill(&mut self, index: usize, now: u64) {
        if self.processes[index].stage == Stage::Running {
            while let process = &mut self.processes[index]
                && !process.free.is_empty()
            {
                match process.next(now) {
                    Next::Issue => {
                        let io = process.take();
                        self.issue(index, now, &io);
                    }
                    Next::WaitForCompletion => break,
                    Next::WaitUntil(at) => {
                        let at = at.min(process.end);
                        if at < process.wake_at {
                            process.wake_at = at;
                            self.set_timer(at, Timer::Wake(index as u32));
                        }
                        break;
                    }
                    Next::End => {
                        process.stage = Stage::Draining;
                        break;
                    }
                }
            }
        }
        let process = &self.processes[index];
        if process.stage == Stage::Draining && process.in_flight == 0 {
            self.drained(index, now);
        }
    }

    /// Nothing of a process is in flight that issues no more.
    #[cold]
    fn drained(&mut self, index: usize, now: u64) {
        match self.processes[index].flush_at_end() {
            Some(flush) => self.issue(index, now, &flush),
            None => self.end(index, now),
        }
    }

    /// Submits an I/O of a process that has a slot free.
    #[inline(always)]
    fn issue(&mut self, index: usize, now: u64, io: &Io) {
        let &Io { op, offset, len, compressible } = io;
        let process = &mut self.processes[index];
        let tag = process.free.pop().expect("the caller has seen a free slot");
        process.in_flight += 1;
        process.issued_ios += 1;
        process.issued_bytes += len;
        process.flushing = direction(op).is_none();
        let watched = if now >= process.record_from && !process.flushing {
            self.recorder.issued(process.unit, process.in_flight);
            false
        } else {
            process.watch.is_some()
        };
        let index = index as u32;
        self.slots[tag as usize] =
            Slot { issued: now, sent: now, offset, len, process: index, op, compressible };
        let (tag, of) = (u64::from(tag), index + 1);
        let command = Command { tag, op, offset, len, compressible, stamp: 0, process: of };
        self.device.submit(now, command);
        if self.hints {
            process.look_ahead(|io, ahead| self.device.expect(io.op, io.offset, ahead));
        }
        if watched {
            self.issued_watched(index as usize, now, tag as u32);
        }
    }

    /// By itself, so that it has all registers.
    #[inline(never)]
    fn complete(&mut self, now: u64, completion: &Completion) {
        let slot = self.slots[completion.tag as usize];
        let index = slot.process as usize;
        let process = &mut self.processes[index];
        debug_assert_eq!(completion.time, now);
        debug_assert_eq!(completion.parts.total(), now - slot.sent, "parts of {:?}", slot.op);
        process.in_flight -= 1;
        process.free.push(completion.tag as u32);
        self.ios += 1;
        let ddir = direction(slot.op).unwrap_or(3);
        process.flushing &= ddir != 3;
        if now >= process.record_from {
            let done = Done {
                process: index,
                unit: process.unit,
                ddir,
                offset: slot.offset,
                bytes: slot.len,
                lat_ns: now - slot.issued,
                measured_ns: now - process.measure_from(),
                parts: &completion.parts,
            };
            if slot.sent > slot.issued {
                let parts = &power::waited(&slot, completion);
                self.recorder.completed_late(&Done { parts, ..done });
            } else {
                self.recorder.completed(&done);
            }
        } else if process.watch.is_some() {
            return self.complete_watched(now, completion);
        }
        self.fill(index, now);
    }

    fn close_interval(&mut self, now: u64) {
        let measured: Vec<Option<(u64, u64)>> = self
            .job_states
            .iter()
            .map(|job| {
                let span = job.span.filter(|_| job.measuring)?;
                Some((span.measured_from_ns, span.ended_ns))
            })
            .collect();
        self.recorder.close_interval(now, &measured);
        // The last interval may be empty but for what took no time, which may be the whole run; what jobs
        // that begin at the end of another have issued is not in the row of that end.
        if (now == 0 || now + self.interval_ns > self.interval_end) && !self.device_series.has(now)
        {
            self.device.take_stock(now);
            self.device_series.sample(now, self.device);
        }
        self.interval_end = now + self.interval_ns;
    }

    fn progress(&self, now: u64) -> Progress {
        let done: f64 = self.processes.iter().map(|process| process.fraction(now)).sum();
        Progress {
            phase: "run",
            fraction: done / self.processes.len().max(1) as f64,
            simulated_s: now as f64 / 1e9,
            ios: self.ios,
        }
    }
}
