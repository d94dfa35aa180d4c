//! I/Os that are handed over and taken back in batches (fio's `iodepth_batch` and its kin).
//!
//! As in fio a process looks for what is done only when its queue is full, when it has to wait for something else, and
//! at its end; an I/O ends when it is taken back.

use crate::job::JobSpec;
use crate::stats::Parts;
use std::collections::VecDeque;

/// See the module.
pub(super) struct Batch {
    /// Handed over at once.
    pub submit: u32,
    least: u32,
    most: u32,
    low: u32,
    /// Looks for one after each that it issues.
    polls: bool,
    /// Issued and not handed over yet.
    pub queued: u32,
    /// Issued since the depth was last noted, which fio does only where a batch of them is complete.
    pub unnoted: u32,
    /// Done and not taken back yet: tags, and where their time went.
    pub held: VecDeque<(u32, Parts)>,
    /// The queue was full and has not been drained as far as it is to be.
    pub draining: bool,
    /// The process waits for something else than its queue.
    pub quiet: bool,
    /// It will be seen to at this instant.
    pub called: bool,
}

impl Batch {
    /// `None` for a job that has them one by one.
    pub fn new(spec: &JobSpec) -> Option<Self> {
        let (queue, depth) = (&spec.schedule.queue, spec.schedule.iodepth.max(1));
        let or_depth = |n: u32| if n == 0 || n > depth { depth } else { n };
        let most = queue.complete_max.max(queue.complete_min);
        let batch = Batch {
            submit: or_depth(queue.submit),
            least: queue.complete_min,
            most,
            low: or_depth(queue.low),
            polls: most == 0,
            queued: 0,
            unnoted: 0,
            held: VecDeque::new(),
            draining: false,
            quiet: false,
            called: false,
        };
        let plain = batch.submit == 1 && (batch.least, most) == (1, 1) && batch.low == depth;
        (!plain).then_some(batch)
    }

    /// I/Os in flight with which the queue is full, of a depth.
    pub fn full_at(&self, depth: u32) -> u32 {
        if self.polls { 1 } else { depth }
    }

    /// How many are taken back now, if `in_flight` are not: 0 where it is waited for more.
    pub fn due(&mut self, in_flight: u32, full_at: u32, ends: bool) -> usize {
        self.draining |= in_flight >= full_at && !self.quiet;
        let (held, in_flight) = (self.held.len(), in_flight as usize);
        if ends {
            return if held == in_flight { held } else { 0 };
        }
        if self.quiet && !self.draining {
            return held;
        }
        let least = (self.least as usize).min(in_flight).max(1);
        match self.draining && held >= least {
            true => held.min((self.most as usize).max(least)),
            false => 0,
        }
    }

    /// Some were taken back, and so many are left.
    pub fn taken(&mut self, in_flight: u32, ends: bool) {
        self.draining &= in_flight > self.low && !ends;
    }
}
