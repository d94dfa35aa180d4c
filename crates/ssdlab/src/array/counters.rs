//! What an array counts.

use super::Array;
use crate::device::HostCounts;
use crate::persist::persistent;

/// See the module; stripes count their own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub host: HostCounts,
    /// TRIMs that did not reach the members.
    pub trims_dropped: u64,
}

persistent!(Counts {
    state { host, trims_dropped }
});

const NAMES: [&str; 6] = [
    "array_reads",
    "array_writes",
    "array_trims",
    "array_flushes",
    "array_bytes_read",
    "array_bytes_written",
];

impl Array {
    pub(super) fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let c = &self.counts;
        c.host.visit(NAMES, visit);
        visit("array_trims_dropped", c.trims_dropped);
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
