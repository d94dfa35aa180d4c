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
    /// Parity of the stripes inside the drive.
    Parity,
}
pub(super) const CAUSES: usize = 8;
