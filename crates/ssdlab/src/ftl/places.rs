//! Where each logical unit lies.

use crate::error::Result;
use crate::nand::NONE;
use crate::persist::{Archive, Part};
use crate::sim::Table;

/// A physical unit of each logical one, or [`NONE`]. Kept as complements: of a drive that nobody has written to the
/// table is zeros, which take neither memory nor time.
#[derive(Clone)]
pub(super) struct Places {
    complements: Table<u32>,
    units: u32,
}

impl Places {
    /// So many units that lie nowhere.
    pub fn new(units: u32) -> Self {
        Places { complements: Table::new(units as usize), units }
    }

    /// Logical units.
    pub fn len(&self) -> u32 {
        self.units
    }

    /// No unit lies anywhere any more.
    pub fn clear(&mut self) {
        *self = Places::new(self.units);
    }

    /// Where a unit lies.
    #[inline(always)]
    pub fn at(&self, lpn: u32) -> u32 {
        !self.complements.at(lpn as usize)
    }

    /// Puts a unit somewhere, or nowhere.
    #[inline(always)]
    pub fn put(&mut self, lpn: u32, ppn: u32) {
        self.complements.put(lpn as usize, !ppn);
    }

    /// The place of a unit will be needed soon.
    #[inline(always)]
    pub fn expect(&self, lpn: u32) {
        self.complements.expect(lpn as usize);
    }

    /// The units that lie somewhere, and where.
    pub fn used(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.units).map(|lpn| (lpn, self.at(lpn))).filter(|&(_, ppn)| ppn != NONE)
    }

    /// The memory, for what overwrites all of it and puts every unit somewhere afterwards.
    pub fn memory(&mut self) -> &mut [u32] {
        &mut self.complements
    }
}

impl Part for Places {
    fn persist_part(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.complements.persist_part(archive)
    }
}
