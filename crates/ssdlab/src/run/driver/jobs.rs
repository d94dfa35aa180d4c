//! Jobs begin and end.

use super::{Driver, Timer};
use crate::job::ExitWhat;
use crate::run::counters::FlashWrites;
use crate::run::flow::Share;
use crate::run::process::Stage;
use crate::run::recorder::JobSpan;
use crate::units::NEVER;

impl Driver<'_> {
    /// Sees to what does not happen with every I/O: jobs that end early, and those that may start.
    #[cold]
    pub(super) fn attend(&mut self, now: u64) {
        while std::mem::take(&mut self.attention) {
            for index in std::mem::take(&mut self.called) {
                self.resume(index, now);
            }
            self.launch_jobs(now);
        }
    }

    /// Starts what may start, in the order of the job file, by fio's rules: a delay counts from
    /// the start of the run; a job after a stonewall waits until nothing runs, and so do those
    /// behind it; a job whose delay is not over holds nobody up.
    fn launch_jobs(&mut self, now: u64) {
        for index in 0..self.processes.len() {
            let process = &self.processes[index];
            if process.stage != Stage::Waiting || now < process.delay_until {
                continue;
            }
            let spec = &self.jobs.jobs[process.job as usize];
            if spec.schedule.wait_for.as_ref().is_some_and(|name| self.is_live(name)) {
                continue;
            }
            if process.stonewall && self.running > 0 {
                break;
            }
            self.start(index, now);
        }
    }

    fn is_live(&self, name: &str) -> bool {
        let mut jobs = self.jobs.jobs.iter().zip(&self.job_states);
        jobs.any(|(spec, state)| spec.name == name && state.live > 0)
    }

    fn start(&mut self, index: usize, now: u64) {
        self.running += 1;
        let process = &mut self.processes[index];
        let job = process.job as usize;
        let measure_from = process.start(now, self.jobs.jobs[job].schedule.runtime_ns);
        if self.cut {
            process.end = now;
        }
        let span = self.job_states[job].span.get_or_insert(JobSpan {
            started_ns: now,
            measured_from_ns: measure_from,
            ended_ns: NEVER,
            waf: None,
        });
        // The job's measuring begins with that of its first process.
        if span.measured_from_ns == measure_from && !self.job_states[job].measuring {
            if measure_from == now {
                self.measure(job, now);
            } else {
                self.set_timer(measure_from, Timer::Measure(job as u32));
            }
        }
        self.start_steady(index, measure_from);
        self.fill(index, now);
    }

    pub(super) fn measure(&mut self, job: usize, now: u64) {
        let state = &mut self.job_states[job];
        if state.measuring || state.live == 0 {
            return;
        }
        state.measuring = true;
        self.device.take_stock(now);
        state.flash = FlashWrites::of(self.device);
        self.flash_at_measure.get_or_insert(state.flash);
        if !self.device_series.has(now) {
            self.device_series.sample(now, self.device);
        }
        self.recorder.measure(job, now);
    }

    pub(super) fn end(&mut self, index: usize, now: u64) {
        let process = &mut self.processes[index];
        let job = process.job as usize;
        let ending = &self.jobs.jobs[job].schedule.ending;
        let ends_others = ending.exitall || ending.exitall_on_error && process.failure.is_some();
        let search = process.watch.as_ref().and_then(|watch| watch.search.as_ref());
        if let Some(search) = search {
            self.recorder.found_depth(process.unit, search.depth);
        }
        process.stage = Stage::Done;
        let measured_ns = now.saturating_sub(process.measure_from());
        self.recorder.ended(index, process.unit, measured_ns, process.runtimes(now));
        if let Some(failure) = process.failure.take() {
            self.recorder.failed(process.unit, failure);
        }
        self.running -= 1;
        self.over(index);
        let state = &mut self.job_states[job];
        if state.live == 0
            && let Some(span) = &mut state.span
        {
            span.ended_ns = now;
            span.measured_from_ns = span.measured_from_ns.min(now);
            self.device.take_stock(now);
            span.waf = FlashWrites::of(self.device).amplification_since(state.flash);
            self.device_series.sample(now, self.device);
        }
        if ends_others {
            self.end_others(job, now);
        }
    }

    /// A process has come to its end, or never will begin.
    pub(super) fn over(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let share = process.watch.as_mut().and_then(|watch| watch.share.take());
        self.called.extend(share.into_iter().flat_map(Share::leave));
        self.job_states[process.job as usize].live -= 1;
        self.live -= 1;
        self.attention = true;
    }

    /// A process of the job has ended, and others with it (`exitall`): those that run issue no more, those that wait
    /// never start.
    fn end_others(&mut self, job: usize, now: u64) {
        let schedule = &self.jobs.jobs[job].schedule;
        let (what, group) = (schedule.ending.exit_what, schedule.group);
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            let other = process.job as usize;
            let started = process.stage != Stage::Waiting;
            let meant = match what {
                ExitWhat::Group => self.jobs.jobs[other].schedule.group == group,
                // To fio a job in its ramp does not run yet.
                ExitWhat::Stonewall => started && now >= process.measure_from(),
                ExitWhat::All => true,
            };
            match process.stage {
                Stage::Running if meant => {
                    process.end = process.end.min(now);
                    self.called.push(index);
                }
                Stage::Waiting if meant => {
                    process.stage = Stage::Done;
                    self.over(index);
                }
                _ => {}
            }
        }
    }
}
