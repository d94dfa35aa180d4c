//! On whose behalf dies work.

/// On whose behalf a die works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Cause {
    /// Host reads, and the reads of read-modify-write.
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
}
pub(super) const CAUSES: usize = 7;

/// Time that a die has worked on the drive's own behalf.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct OwnWork {
    /// Garbage collection and wear levelling.
    pub collection: u64,
    /// The map: translation units and merging.
    pub map: u64,
    /// Folding of the SLC cache.
    pub fold: u64,
}

impl OwnWork {
    #[inline]
    pub fn of(busy: &[u64; CAUSES]) -> Self {
        OwnWork {
            collection: busy[Cause::Collection as usize] + busy[Cause::Wear as usize],
            map: busy[Cause::Map as usize] + busy[Cause::Merge as usize],
            fold: busy[Cause::Fold as usize],
        }
    }
    /// Adds work under way.
    #[inline]
    pub fn add(&mut self, cause: Cause, time: u64) {
        match cause {
            Cause::HostRead | Cause::HostWrite => {}
            Cause::Collection | Cause::Wear => self.collection += time,
            Cause::Map | Cause::Merge => self.map += time,
            Cause::Fold => self.fold += time,
        }
    }
    #[inline]
    pub fn since(self, earlier: OwnWork) -> Self {
        OwnWork {
            collection: self.collection - earlier.collection,
            map: self.map - earlier.map,
            fold: self.fold - earlier.fold,
        }
    }
}
