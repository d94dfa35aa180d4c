//! What the translation layer counts.

use super::PageMap;
use crate::nand::Cause;
use crate::persist::persistent;

/// What the translation layer has done so far; units are physical units, except where they are said
/// to be logical.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlCounters {
    /// Logical units that the host has written, whole or in part.
    pub host_units_written: u64,
    /// Programmed for the host.
    pub programs_host: u64,
    /// Programmed for garbage collection.
    pub programs_collection: u64,
    /// Programmed for wear levelling.
    pub programs_wear: u64,
    /// Programmed to merge the fragments of an extent map.
    pub programs_merge: u64,
    /// Programmed to fold the SLC cache.
    pub programs_fold: u64,
    /// Programmed as parity of the drive's own stripes.
    pub programs_parity: u64,
    /// Left empty in program units that could not wait.
    pub programs_padding: u64,
    /// Host writes that replaced a part of a unit and needed its old content.
    pub read_modify_writes: u64,
    /// Physical units that compression has saved of those.
    pub host_units_saved: u64,
    /// Logical units unmapped by TRIM.
    pub units_trimmed: u64,
    /// Units that hold data.
    pub units_mapped: u64,
    /// Superblocks collected.
    pub collections: u64,
    /// Batches of periodic collection begun.
    pub batches: u64,
    /// Superblocks moved by wear levelling.
    pub wear_moves: u64,
    /// Superblocks erased.
    pub superblocks_erased: u64,
}

impl FtlCounters {
    /// So many units are programmed.
    #[inline(always)]
    pub(super) fn count_programs(&mut self, cause: Cause, units: u64) {
        match cause {
            Cause::HostWrite | Cause::HostRead => self.programs_host += units,
            Cause::Collection => self.programs_collection += units,
            Cause::Wear => self.programs_wear += units,
            // Translation units are host data to their own page map.
            Cause::Merge | Cause::Map => self.programs_merge += units,
            Cause::Fold => self.programs_fold += units,
            Cause::Parity => unreachable!("parity is not appended unit by unit"),
        }
    }
}

persistent!(FtlCounters {
    state {
        host_units_written, programs_host, programs_collection, programs_wear, programs_merge,
        programs_fold, programs_parity, programs_padding, read_modify_writes, host_units_saved,
        units_trimmed, units_mapped, collections, batches, wear_moves, superblocks_erased,
    }
});

impl PageMap {
    /// Physical units, those of the map included.
    pub fn physical_units(&self) -> u64 {
        self.layout.units() + self.mapping.table().map_or(0, |t| t.layout.units())
    }

    /// Free superblocks in all regions.
    pub fn free_superblocks(&self) -> u64 {
        u64::from(self.space.free())
    }

    /// Units placed in program units that are not full yet: counted as programs, not yet in flash.
    pub fn open_units(&self) -> u64 {
        self.space.open_programs().map(|(.., placed)| placed.len() as u64).sum()
    }

    /// Program units of superblocks that are being written, up to where that has come.
    pub fn programs_of_open_superblocks(&self) -> u64 {
        let per_program = self.layout.units_per_program();
        let programs = |offset: u32| u64::from(offset.div_ceil(per_program));
        self.space.frontiers().map(|(.., frontier)| programs(frontier.offset)).sum()
    }
}
