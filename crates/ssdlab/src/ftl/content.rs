//! What units hold, in tests: the version of each sector, which is in RAM until it has been programmed.

use super::layout::Layout;
use super::open::KEPT;
use super::page_map::UnitWrite;
use crate::nand::NONE;
use crate::persist::persistent;
use std::collections::BTreeMap;
use std::ops::Range;

/// Versions of the sectors of a unit.
pub type Sectors = Box<[u64]>;

/// Contents of flash, and of the RAM before it; nothing where they are not kept.
pub struct Contents {
    /// By physical unit and sector; zeros where it is erased.
    flash: Vec<u64>,
    /// What waits for a program, by physical unit and in the order in which it was placed: one may be placed
    /// anew while its erase is still to be done.
    ram: BTreeMap<(u32, u64), Sectors>,
    placed: u64,
    /// Old copies in blocks of the drive's own, by logical unit.
    kept: BTreeMap<u32, Sectors>,
    sectors: u32,
    layout: Layout,
}

persistent!(Contents { state { ram, placed, kept } parts { flash } built { sectors, layout } });

impl Contents {
    /// Nothing; units have so many sectors, 0: contents are not kept.
    pub(super) fn new(layout: Layout, sectors: u32) -> Self {
        let flash = vec![0; layout.units() as usize * sectors as usize];
        Contents { flash, ram: BTreeMap::new(), placed: 0, kept: BTreeMap::new(), sectors, layout }
    }

    /// Whether there are any.
    #[inline]
    pub(super) fn are_kept(&self) -> bool {
        self.sectors > 0
    }

    fn range(&self, ppn: u32) -> Range<usize> {
        let sectors = self.sectors as usize;
        ppn as usize * sectors..(ppn as usize + 1) * sectors
    }

    /// A unit of flash holds that.
    pub(super) fn put_in_flash(&mut self, ppn: u32, sectors: &[u64]) {
        let range = self.range(ppn);
        self.flash[range].copy_from_slice(sectors);
    }

    /// The copy of a unit in flash that lies there, or is [`KEPT`].
    pub(super) fn copy(&self, lpn: u32, ppn: u32) -> Sectors {
        match self.kept.get(&lpn) {
            Some(kept) if ppn == KEPT => kept.clone(),
            _ => self.flash[self.range(ppn)].into(),
        }
    }

    /// What was placed there last.
    pub(super) fn newest(&self, ppn: u32) -> &[u64] {
        match self.ram.range((ppn, 0)..=(ppn, u64::MAX)).next_back() {
            Some((_, sectors)) => sectors,
            None => &self.flash[self.range(ppn)],
        }
    }

    /// The same to go elsewhere, zeros for [`NONE`]; where contents are kept.
    #[inline]
    pub(super) fn unit(&self, ppn: u32) -> Option<Sectors> {
        let zeros = || vec![0; self.sectors as usize].into();
        self.are_kept().then(|| if ppn == NONE { zeros() } else { self.newest(ppn).into() })
    }

    /// The unit just placed at `ppn` holds that; `waits`: until it is programmed it is in RAM.
    pub(super) fn put(&mut self, ppn: u32, sectors: Sectors, waits: bool) {
        if waits {
            self.placed += 1;
            self.ram.insert((ppn, self.placed), sectors);
        } else {
            self.put_in_flash(ppn, &sectors);
        }
    }

    /// The unit placed last at `ppn` holds that.
    pub fn replace(&mut self, ppn: u32, sectors: &[u64]) {
        match self.ram.range_mut((ppn, 0)..=(ppn, u64::MAX)).next_back() {
            Some((_, newest)) => newest.copy_from_slice(sectors),
            None => self.put_in_flash(ppn, sectors),
        }
    }

    /// The old copy of a unit, at `ppn`, is put into a block of the drive's own.
    pub(super) fn keep(&mut self, lpn: u32, ppn: u32) {
        if let Some(sectors) = self.unit(ppn) {
            self.kept.insert(lpn, sectors);
        }
    }

    /// Units are in flash now: what was placed in each first, and not programmed since.
    pub fn programmed(&mut self, units: impl Iterator<Item = u32>) {
        if !self.are_kept() {
            return;
        }
        for ppn in units {
            let first = self.ram.range((ppn, 0)..=(ppn, u64::MAX)).next().map(|(&key, _)| key);
            if let Some(sectors) = first.and_then(|key| self.ram.remove(&key)) {
                self.put_in_flash(ppn, &sectors);
            }
        }
    }

    /// All that is in RAM is programmed (`true`), or lost.
    pub(super) fn empty_ram(&mut self, programmed: bool) {
        for ((ppn, _), sectors) in std::mem::take(&mut self.ram) {
            if programmed {
                self.put_in_flash(ppn, &sectors);
            }
        }
    }

    /// The part of a superblock on `die` is erased.
    pub fn erased(&mut self, superblock: u32, die: u32) {
        if self.are_kept() {
            let on_die = |&ppn: &u32| self.layout.die_of(ppn) == die;
            for ppn in self.layout.units_of(superblock).filter(on_die) {
                let range = ppn as usize * self.sectors as usize..;
                self.flash[range][..self.sectors as usize].fill(0);
            }
        }
    }
}

impl UnitWrite {
    /// What a unit holds after the write.
    pub(super) fn over(&self, mut kept: Sectors) -> Sectors {
        let first = self.first_sector as usize;
        let written = &mut kept[first..first + self.sectors as usize];
        written.iter_mut().zip(self.stamp..).for_each(|(sector, stamp)| *sector = stamp);
        kept
    }
}
