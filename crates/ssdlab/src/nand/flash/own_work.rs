//! How long a die has worked for what the host did not ask for, so that waits can be told apart.

use super::{CAUSES, Cause, Flash, NONE};

/// Time that a die has worked on the drive's own behalf.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::nand) struct OwnWork {
    /// Garbage collection and wear levelling.
    pub collection: u64,
    /// The map: translation units and merging.
    pub map: u64,
    /// Folding of the SLC cache.
    pub fold: u64,
    /// Parity.
    pub parity: u64,
}

impl OwnWork {
    #[inline]
    pub fn of(busy: &[u64; CAUSES]) -> Self {
        OwnWork {
            collection: busy[Cause::Collection as usize] + busy[Cause::Wear as usize],
            map: busy[Cause::Map as usize] + busy[Cause::Merge as usize],
            fold: busy[Cause::Fold as usize],
            parity: busy[Cause::Parity as usize],
        }
    }
    #[inline]
    pub fn since(self, earlier: OwnWork) -> Self {
        OwnWork {
            collection: self.collection - earlier.collection,
            map: self.map - earlier.map,
            fold: self.fold - earlier.fold,
            parity: self.parity - earlier.parity,
        }
    }
}

impl Flash {
    /// What the die has done on the drive's own behalf up to `now`.
    #[inline]
    pub(super) fn own_work(&self, die: u32, now: u64) -> OwnWork {
        let die = &self.dies[die as usize];
        let mut own = OwnWork::of(&die.busy);
        if die.current != NONE {
            match self.ops[die.current as usize].cause {
                Cause::HostRead | Cause::HostWrite => {}
                Cause::Collection | Cause::Wear => own.collection += now - die.since,
                Cause::Map | Cause::Merge => own.map += now - die.since,
                Cause::Fold => own.fold += now - die.since,
                Cause::Parity => own.parity += now - die.since,
            }
        }
        own
    }
}
