//! Jobs that look for something while they run: a depth, a steady state.

use super::{Driver, Timer};
use crate::run::counters::FlashWrites;
use crate::run::process::Stage;
use crate::run::search::Found;
use crate::run::steady::SteadyState;

/// Seconds of steady state.
const SECOND: u64 = 1_000_000_000;

/// The steady state of processes that are reported together.
pub(super) struct Watched {
    report: usize,
    state: SteadyState,
    /// When the seconds count from.
    from: Option<u64>,
    /// When it was looked last, and what had been done by then.
    then: (u64, u64, u64),
}

impl Driver<'_> {
    /// Who stops in steady state, by the first process of each report.
    pub(super) fn prepare_steady(&mut self) {
        for process in &self.processes {
            let (job, report) = (process.job as usize, self.recorder.report_of(process.unit));
            let asked = &self.jobs.jobs[job].schedule.ending.steady;
            if asked.duration_s > 0 && self.steady.last().is_none_or(|last| last.report != report) {
                let state = SteadyState::new(asked);
                self.steady.push(Watched { report, state, from: None, then: (0, 0, 0) });
            }
        }
    }

    /// A process has started that is measured from an instant on.
    pub(super) fn start_steady(&mut self, index: usize, measure_from: u64) {
        let report = self.recorder.report_of(self.processes[index].unit);
        let Some(at) = self.steady.iter().position(|one| one.report == report) else { return };
        let one = &mut self.steady[at];
        if one.from.is_none() {
            (one.from, one.then.0) = (Some(measure_from), measure_from);
            self.set_timer(measure_from.saturating_add(SECOND), Timer::Steady(at as u32));
        }
    }

    /// Another second is over.
    #[cold]
    pub(super) fn look_for_steady(&mut self, at: usize, now: u64) {
        let one = &mut self.steady[at];
        let (ios, bytes) = self.recorder.totals(one.report);
        let (then, ios_then, bytes_then) = std::mem::replace(&mut one.then, (now, ios, bytes));
        let per_second = |n: u64| n * 1000 / ((now - then) / 1_000_000).max(1);
        let ramp_ns = one.state.asked.ramp_ns;
        // fio looks a little before the seconds of a job are full.
        if ramp_ns == 0 || now - one.from.unwrap_or(now) > ramp_ns + SECOND {
            one.state.add(per_second(ios - ios_then), per_second(bytes - bytes_then));
        }
        let (attained, report) = (one.state.attained, one.report);
        let mut live = false;
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            if self.recorder.report_of(process.unit) != report {
                continue;
            }
            live |= process.stage != Stage::Done;
            match process.stage {
                Stage::Running if attained => {
                    process.end = process.end.min(now);
                    self.called.push(index);
                    self.attention = true;
                }
                Stage::Waiting if attained => {
                    process.stage = Stage::Done;
                    self.over(index);
                }
                _ => {}
            }
        }
        if live && !attained {
            self.set_timer(now + SECOND, Timer::Steady(at as u32));
        }
    }

    /// The states found, by report.
    pub(super) fn steady_states(&mut self) -> Vec<(usize, SteadyState)> {
        std::mem::take(&mut self.steady).into_iter().map(|one| (one.report, one.state)).collect()
    }

    /// Looks whether the depth of a process is to change, after something of it has ended.
    pub(super) fn look_for_depth(&mut self, index: usize, now: u64) {
        let process = &mut self.processes[index];
        let Some(watch) = process.watch.as_mut().filter(|watch| now >= watch.record_from) else {
            return;
        };
        let Some(search) = &mut watch.search else { return };
        match search.look(now, process.in_flight) {
            Found::Nothing => {}
            Found::End => process.end = process.end.min(now),
            Found::Depth => self.restart(index, now),
        }
    }

    /// Measuring begins once more, and with it all that counts from its beginning.
    fn restart(&mut self, index: usize, now: u64) {
        let process = &mut self.processes[index];
        let job = process.job as usize;
        process.restart(now, self.jobs.jobs[job].schedule.runtime_ns);
        self.device.take_stock(now);
        let state = &mut self.job_states[job];
        state.flash = FlashWrites::of(self.device);
        if let Some(span) = &mut state.span {
            span.measured_from_ns = now;
        }
        if !self.device_series.has(now) {
            self.device_series.sample(now, self.device);
        }
        self.recorder.restart(self.processes[index].unit, now);
    }
}
