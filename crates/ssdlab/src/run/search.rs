//! The depth at which latencies stay below a target (fio's `latency_target`).
//!
//! As in fio the depth is doubled from window to window while enough I/Os are fast enough, and halved towards the last
//! good one once they are not; a window at the depth found is all that is measured, unless the job goes on adjusting it.

use crate::job::JobSpec;

/// See the module.
pub(super) struct Search {
    target_ns: u64,
    window_ns: u64,
    percentile: f64,
    /// It is never at its end (`latency_run`).
    goes_on: bool,
    most: u32,
    /// The depth that is tried.
    pub depth: u32,
    high: u32,
    low: u32,
    /// Windows in a row at the depth below `high`.
    stable: u32,
    /// I/Os of the window that were too slow.
    slow: u64,
    /// When the window began.
    since: u64,
    ios: u64,
    ios_then: u64,
    /// What is in flight has to end before the next window begins.
    pub drains: bool,
    /// The next window is the last, and all that is measured.
    restarts: bool,
    last: bool,
    /// That is over, too.
    over: bool,
}

/// What came of a look at the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// Nothing for others to do.
    Nothing,
    /// The depth is found: what was measured so far does not count.
    Depth,
    /// The last window is over.
    End,
}

impl Search {
    /// `None` for a job without a target.
    pub fn new(spec: &JobSpec) -> Option<Self> {
        let target = &spec.schedule.ending.latency;
        let most = spec.schedule.iodepth.max(1);
        (target.target_ns > 0).then_some(Search {
            target_ns: target.target_ns,
            window_ns: target.window_ns,
            percentile: target.percentile,
            goes_on: target.goes_on,
            most,
            depth: 1,
            high: most,
            low: 1,
            stable: 0,
            slow: 0,
            since: 0,
            ios: 0,
            ios_then: 0,
            drains: false,
            restarts: false,
            last: false,
            over: false,
        })
    }

    /// The first window begins.
    pub fn begin(&mut self, now: u64) {
        self.since = now;
    }

    /// A measured I/O has ended; whether it was too slow where the depth cannot be less.
    pub fn done(&mut self, lat_ns: u64) -> bool {
        self.ios += 1;
        if lat_ns <= self.target_ns {
            return false;
        }
        if self.percentile >= 100.0 {
            return self.fell_short();
        }
        self.slow += 1;
        false
    }

    /// What the job asked for, ns.
    pub fn target_ns(&self) -> u64 {
        self.target_ns
    }

    /// Something has ended, and so many I/Os are in flight.
    pub fn look(&mut self, now: u64, in_flight: u32) -> Found {
        let mut found = Found::Nothing;
        if !self.drains && !self.over && now.saturating_sub(self.since) >= self.window_ns {
            let ios = self.ios - self.ios_then;
            let share = (ios as f64 - self.slow as f64) / ios as f64 * 100.0;
            if share >= self.percentile {
                found = self.succeeded(now);
            } else {
                self.fell_short();
            }
        }
        if self.drains && in_flight == 0 {
            self.drains = false;
            if std::mem::take(&mut self.restarts) {
                (self.last, self.ios) = (true, 0);
                found = Found::Depth;
            }
            self.next_window(now);
        }
        found
    }

    fn next_window(&mut self, now: u64) {
        (self.since, self.ios_then, self.slow) = (now, self.ios, 0);
    }

    /// The depth was too much; whether it cannot be less.
    fn fell_short(&mut self) -> bool {
        if self.depth == 1 {
            return true;
        }
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = u32::midpoint(self.depth, self.low);
        (self.stable, self.drains) = (0, true);
        false
    }

    fn succeeded(&mut self, now: u64) -> Found {
        let before = self.depth;
        self.low = before;
        if before + 1 == self.high {
            self.stable += 1;
            if self.stable >= 3 {
                (self.high, self.stable) = (self.high + 1, 0);
            }
        }
        let next =
            if self.high == self.most { before * 2 } else { u32::midpoint(before, self.high) };
        self.depth = next.min(self.most);
        if self.goes_on || self.depth != before {
            self.next_window(now);
            return Found::Nothing;
        }
        if self.last {
            self.over = true;
            return Found::End;
        }
        (self.drains, self.restarts) = (true, true);
        Found::Nothing
    }
}
