//! What an array counts.

use super::Array;
use crate::contract::host_counts;

impl Array {
    pub(super) fn show_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let [errors_read, errors_write] = self.fleet.errors;
        self.fleet.counts.visit(host_counts!("array", "array"), visit);
        visit("array_trims_dropped", self.trims_dropped);
        visit("wasted_bytes", self.wasted);
        visit("bitmap_writes", self.bitmap.as_ref().map_or(0, |bitmap| bitmap.written));
        visit("members_failed", self.failures.failed);
        visit("members_missing", self.missing());
        visit("errors_read", errors_read);
        visit("errors_write", errors_write);
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
    }
}
