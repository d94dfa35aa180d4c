//! What tiers count.

use super::{BELOW, FAST, Tier};
use crate::contract::{Op, host_counts};
use crate::persist::persistent;

/// Parts of the host's commands on one tier.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    reads: u64,
    writes: u64,
    bytes_read: u64,
    bytes_written: u64,
}
persistent!(Served { state { reads, writes, bytes_read, bytes_written } });

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    served: [Served; 2],
    /// Moves up and down, and their bytes.
    switched: [u64; 2],
    moved: [u64; 2],
    last_move: u64,
    pub trims_dropped: u64,
    pub cancelled: u64,
    pub map_writes: u64,
    pub writes_held: u64,
    pub writes_doubled: u64,
    pub lost_bytes: u64,
    pub exposed_bytes: u64,
}
persistent!(Counts {
    state {
        served, switched, moved, last_move, trims_dropped,
        cancelled, map_writes, writes_held, writes_doubled, lost_bytes, exposed_bytes,
    }
});

impl Counts {
    /// Counts a part of one that goes to a tier.
    #[inline]
    pub fn sent(&mut self, tier: usize, op: Op, len: u64) {
        let served = &mut self.served[tier];
        match op {
            Op::Read => {
                served.reads += 1;
                served.bytes_read += len;
            }
            Op::Write => {
                served.writes += 1;
                served.bytes_written += len;
            }
            _ => {}
        }
    }

    /// Counts bytes that were copied.
    pub fn moved(&mut self, up: bool, bytes: u64) {
        self.moved[usize::from(!up)] += bytes;
    }

    /// Counts an extent that lies at its new place.
    pub fn switched(&mut self, up: bool, now: u64) {
        self.switched[usize::from(!up)] += 1;
        self.last_move = now;
    }
}

impl Tier {
    pub(super) fn show_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let c = &self.counts;
        let [fast, below] = &c.served;
        let dead = |tier: usize| u64::from(self.is_dead(tier));
        let [errors_read, errors_write] = self.fleet.errors;
        let free = self.map.free.iter().map(Vec::len).sum::<usize>();
        self.fleet.counts.visit(host_counts!("tier", "tier_host"), visit);
        visit("tier_trims_dropped", c.trims_dropped);
        visit("fast_reads", fast.reads);
        visit("fast_writes", fast.writes);
        visit("fast_bytes_read", fast.bytes_read);
        visit("fast_bytes_written", fast.bytes_written);
        visit("below_reads", below.reads);
        visit("below_writes", below.writes);
        visit("below_bytes_read", below.bytes_read);
        visit("below_bytes_written", below.bytes_written);
        visit("extents_fast", u64::from(self.map.extents[FAST]));
        visit("extents_below", u64::from(self.map.extents[BELOW]));
        visit("extents_free", free as u64);
        visit("heat_scans", self.heat.scans);
        visit("moves_up", c.switched[FAST]);
        visit("moves_down", c.switched[BELOW]);
        visit("moved_up_bytes", c.moved[FAST]);
        visit("moved_down_bytes", c.moved[BELOW]);
        visit("moves_cancelled", c.cancelled);
        visit("moves_under_way", self.moves.len() as u64);
        visit("moves_planned", (self.heat.ups.len() + self.heat.downs.len()) as u64);
        visit("last_move_at_ns", c.last_move);
        visit("map_writes", c.map_writes);
        visit("writes_held", c.writes_held);
        visit("writes_doubled", c.writes_doubled);
        visit("tiers_failed", dead(FAST) + dead(BELOW));
        visit("errors_read", errors_read);
        visit("errors_write", errors_write);
        visit("lost_bytes", c.lost_bytes);
        if self.fleet.power.losses > 0 {
            visit("power_exposed_bytes", c.exposed_bytes);
        }
    }
}
