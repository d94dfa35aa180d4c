//! On whose behalf dies work, and how long for what the host did not ask for, so that waits can be
//! told apart.

use super::{Die, Flash, NONE};

/// On whose behalf a die works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(usize)]
pub enum Cause {
    /// Host reads, and the reads of read-modify-write.
    #[default]
    HostRead,
    /// Host writes.
    HostWrite,
    /// Garbage collection, its erases included.
    Collection,
    /// Wear levelling.
    Wear,
    /// Translation units of a cached map: fetched, written back, collected.
    Map,
    /// Merging of the fragments of an extent map.
    Merge,
    /// Folding of the SLC cache, its erases included.
    Fold,
    /// Parity of the stripes inside the drive.
    Parity,
}
pub(super) const CAUSES: usize = 8;

/// Time that a die has worked on the drive's own behalf, or stood still because the head of its
/// stream, which is that, waited for data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct OwnWork {
    /// Garbage collection and wear levelling.
    pub collection: u64,
    /// The map: translation units and merging.
    pub map: u64,
    /// Parity.
    pub parity: u64,
    /// Folding of the SLC cache.
    pub fold: u64,
}

impl OwnWork {
    #[inline]
    pub fn add(&mut self, cause: Cause, time: u64) {
        match cause {
            Cause::HostRead | Cause::HostWrite => {}
            Cause::Collection | Cause::Wear => self.collection += time,
            Cause::Map | Cause::Merge => self.map += time,
            Cause::Parity => self.parity += time,
            Cause::Fold => self.fold += time,
        }
    }
    #[inline]
    pub fn since(self, earlier: OwnWork) -> Self {
        OwnWork {
            collection: self.collection - earlier.collection,
            map: self.map - earlier.map,
            parity: self.parity - earlier.parity,
            fold: self.fold - earlier.fold,
        }
    }
}

impl Die {
    /// The die has worked for `cause` since the last change.
    #[inline]
    pub(super) fn worked(&mut self, cause: Cause, now: u64) {
        self.busy[cause as usize] += now - self.since;
        self.own.add(cause, now - self.since);
    }
}

impl Flash {
    /// What the die has done on the drive's own behalf up to `now`.
    #[inline]
    pub(super) fn own_work(&self, die: u32, now: u64) -> OwnWork {
        let die = &self.dies[die as usize];
        let mut own = die.own;
        if die.current != NONE {
            own.add(self.ops[die.current as usize].cause, now - die.since);
        } else if let Some(cause) = die.stuck {
            own.add(cause, now - die.since);
        }
        own
    }
}
