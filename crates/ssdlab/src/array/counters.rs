//! What an array counts.

use super::Array;
use crate::device::{Command, Op};
use crate::persist::persistent;

/// See the module; stripes count their own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    reads: u64,
    writes: u64,
    trims: u64,
    flushes: u64,
    bytes_read: u64,
    bytes_written: u64,
    /// TRIMs that did not reach the members.
    pub trims_dropped: u64,
}

persistent!(Counts {
    state { reads, writes, trims, flushes, bytes_read, bytes_written, trims_dropped }
});

impl Counts {
    /// Whether the host has written anything.
    pub fn has_written(&self) -> bool {
        self.writes > 0
    }

    /// Counts a command of the host.
    pub fn host(&mut self, command: &Command) {
        match command.op {
            Op::Read => {
                self.reads += 1;
                self.bytes_read += command.len;
            }
            Op::Write => {
                self.writes += 1;
                self.bytes_written += command.len;
            }
            Op::Trim => self.trims += 1,
            Op::Flush => self.flushes += 1,
            Op::Purge => {}
        }
    }
}

impl Array {
    pub(super) fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let c = &self.counts;
        visit("array_reads", c.reads);
        visit("array_writes", c.writes);
        visit("array_trims", c.trims);
        visit("array_trims_dropped", c.trims_dropped);
        visit("array_flushes", c.flushes);
        visit("array_bytes_read", c.bytes_read);
        visit("array_bytes_written", c.bytes_written);
        visit("wasted_bytes", self.wasted);
        visit("bitmap_writes", self.bitmap.as_ref().map_or(0, |bitmap| bitmap.written));
        visit("members_failed", self.failures.failed);
        visit("members_missing", self.missing());
        visit("errors_read", self.failures.errors_read);
        visit("errors_write", self.failures.errors_write);
        visit("lost_bytes", self.failures.lost + self.rebuild.lost);
        visit("rebuilt_bytes", self.rebuild.bytes);
        visit("rebuilt_members", self.rebuild.done);
        visit("rebuild_read_errors", self.rebuild.errors);
        self.visit_power_counters(visit);
        if self.layout.parity().is_none() {
            return;
        }
        visit("write_hole_stripes", self.failures.hole);
        let s = &self.stripes.counts;
        visit("stripes_written", s.written);
        visit("stripes_whole", s.whole);
        visit("stripes_joined", s.joined);
        visit("stripes_waited", s.waited);
        visit("parity_read_modify_write", s.read_modify_write);
        visit("parity_reconstruct_write", s.reconstruct_write);
        visit("stripes_recovered", s.recovered);
        visit("cache_read_hits", s.read_hits);
    }
}
