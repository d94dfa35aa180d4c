//! What dies have done, counted.

use crate::persist::persistent;

/// What the flash has executed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlashCounters {
    /// Sense operations.
    pub reads: u64,
    /// Units read out.
    pub units_read: u64,
    /// Program operations.
    pub programs: u64,
    /// Of the sense operations: in SLC mode.
    pub reads_slc: u64,
    /// Of the program operations: in SLC mode.
    pub programs_slc: u64,
    /// Units programmed, padding included.
    pub units_programmed: u64,
    /// Erase operations.
    pub erases: u64,
    /// Suspensions.
    pub suspensions: u64,
    /// Reads of a page that was in its register, or was sensed for another read.
    pub register_hits: u64,
}

impl FlashCounters {
    /// So many copies of single units.
    pub fn count_copies(&mut self, copies: u64) {
        self.reads += copies;
        self.units_read += copies;
        self.programs += copies;
        self.units_programmed += copies;
    }
}

persistent!(FlashCounters {
    state {
        reads, units_read, programs, reads_slc, programs_slc, units_programmed, erases, suspensions,
        register_hits,
    }
});
