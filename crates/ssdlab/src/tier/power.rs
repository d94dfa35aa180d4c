//! What a loss of power leaves of tiers. The map of extents outlives it. A move under way is not done: its extent is
//! where it was, and was written there all the time. Heat is forgotten.
//!
//! An extent that was moved to a tier with a volatile write cache is there for good when that was flushed; until
//! then the old place is free all the same, so that a loss of power may take what had been safe there. That is counted.

use super::{FAST, Purpose, Tier};
use crate::contract::{Device, Op};
use crate::fleet::{Composite, Io};
use crate::sim::Slab;

/// Bytes of the map that are read at once when the tiers start.
const MAP_READ: u64 = 1 << 20;

impl Tier {
    /// Power goes; answers when both tiers are ready again.
    pub(super) fn cut_power(&mut self, now: u64) -> u64 {
        let (ready, _) = self.fleet.cut(now);
        for id in self.moves.ids() {
            let extent = self.moves[id].extent;
            self.map.mark(extent, false);
        }
        self.counts.cancelled += self.moves.len() as u64;
        self.moves = Slab::new();
        self.map.settle();
        self.heat.reset(now);
        self.held.clear();
        self.paced.clear();
        self.blocked = 0;
        self.counts.exposed_bytes += self.exposed.now();
        self.exposed.clear();
        self.plan_timer();
        ready
    }

    /// The tiers are ready: the map is read, if it is on the fast one.
    pub(super) fn read_map(&mut self, from: u64) {
        let len = self.data[FAST].saturating_sub(from).min(MAP_READ);
        if len == 0 || self.is_dead(FAST) {
            return self.started();
        }
        let purpose = Purpose::Map(from + len);
        self.fleet.send(Io { member: FAST, op: Op::Read, offset: from, len, purpose }, 0, 0);
    }

    /// An extent lies on another tier.
    pub(super) fn note_moved(&mut self, tier: usize) {
        if self.fleet.members[tier].is_volatile() {
            self.exposed.add(1 << self.shift);
        }
    }
}
