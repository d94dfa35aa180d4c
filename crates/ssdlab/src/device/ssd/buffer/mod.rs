//! The write buffer: RAM in which writes are acknowledged.
//!
//! Data enters as *dirty* units, found by logical unit: a write to one replaces it there, a read of it is
//! answered from there, a TRIM drops it. A policy ([`DRAINS`]) says when the oldest are let go, a program
//! unit's worth at a time: the translation layer places them then, and they take room until they have been
//! programmed, but are no longer replaced. By default data is let go while any die has less than two programs of
//! host data, so that none stands still for want of them; what the order of placement puts before it queues on the
//! others.
//!
//! After Kim & Ahn, BPLRU: a buffer management scheme for improving random writes in flash storage, FAST 2008
//! (overwrites absorbed in RAM; here by unit, not by block, and nothing is padded with what is read), and the data cache of
//! MQSim (Tavakkol et al., FAST 2018: units with a bit for each sector written). Simplified: reads leave nothing in it;
//! RAM takes no time.

mod dirty;
mod drain;

pub use dirty::Dirty;
pub use drain::{BuildDrain, DRAINS, Drain, DrainParameters, Held};

use crate::persist::persistent;

/// See the module.
pub struct Buffer {
    /// Room, physical units.
    pub units: u32,
    /// Of that in use: by dirty units, and by those let go that have not been programmed.
    pub used: u32,
    /// What is in it outlives a loss of power.
    pub protected: bool,
    /// Data that is being moved takes room in it, too: [`super::engine::Engine::held_by_moves`].
    pub holds_moves: bool,
    /// Units that have not been let go.
    pub dirty: Dirty,
    /// Physical units of a program unit: so many are let go at a time.
    pub program: u32,
    /// When they are.
    pub drain: Box<dyn Drain>,
    /// Quiet time after which the host counts as idle, ns.
    pub idle_after: Option<u64>,
    /// It does.
    pub idle: bool,
    /// Units of the host that replaced one here.
    pub overwrites: u64,
    /// Units that were trimmed, purged or lost here.
    pub dropped: u64,
}

persistent!(Buffer {
    state { used, dirty, idle, overwrites, dropped }
    built { units, protected, holds_moves, program, drain, idle_after }
});

impl Buffer {
    /// An empty buffer without room.
    pub fn new(drain: Box<dyn Drain>, dirty: Dirty) -> Self {
        Buffer {
            units: 0,
            used: 0,
            protected: false,
            holds_moves: false,
            dirty,
            program: 1,
            drain,
            idle_after: None,
            idle: false,
            overwrites: 0,
            dropped: 0,
        }
    }

    /// Whether a program unit's worth, or what there is of it, goes to the flash now. `die_free`: a die can
    /// take it; `full`: a write waits for room.
    #[inline]
    pub fn drains(&self, die_free: bool, full: bool) -> bool {
        let (dirty, size, program) = (self.dirty.length(), self.units, self.program);
        dirty > 0
            && self.drain.drains(&Held { dirty, size, program, die_free, full, idle: self.idle })
    }

    /// Whether a unit counts as new when it is written again.
    pub fn renews(&self) -> bool {
        self.drain.renews()
    }

    /// A unit is trimmed: nothing of it is to be programmed.
    #[inline]
    pub fn drop_unit(&mut self, lpn: u32) {
        if let Some(slot) = self.dirty.find(lpn) {
            self.used -= self.dirty.length_of(slot);
            self.dropped += 1;
            self.dirty.remove(slot);
        }
    }

    /// Asserts that the bookkeeping agrees with itself.
    pub fn check(&self) {
        self.dirty.check();
        assert!(self.dirty.length() <= self.used && self.used <= self.units, "room in use");
    }

    /// All dirty units are gone.
    pub fn drop_all(&mut self) {
        self.used -= self.dirty.length();
        self.dropped += u64::from(self.dirty.count());
        self.dirty.clear();
    }
}
