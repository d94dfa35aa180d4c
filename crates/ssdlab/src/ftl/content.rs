//! What units hold, in tests: the version of each sector, which is in RAM until it has been programmed.

use super::Sink;
use super::open::KEPT;
use super::page_map::{PageMap, UnitWrite};
use crate::nand::NONE;
use crate::persist::persistent;
use std::collections::BTreeMap;

/// Versions of the sectors of a unit.
pub(super) type Sectors = Box<[u64]>;

/// Contents of flash, and of the RAM before it.
pub(super) struct Contents {
    /// By physical unit and sector; zeros where it is erased.
    flash: Vec<u64>,
    /// What waits for a program, by physical unit and in the order in which it was placed: one may be placed
    /// anew while its erase is still to be done.
    ram: BTreeMap<(u32, u64), Sectors>,
    placed: u64,
    /// Old copies in blocks of the drive's own, by logical unit.
    kept: BTreeMap<u32, Sectors>,
    sectors: u32,
}

persistent!(Contents { state { ram, placed, kept } parts { flash } built { sectors } });

impl Contents {
    /// Nothing in so many units.
    pub fn new(units: usize, sectors: u32) -> Self {
        let flash = vec![0; units * sectors as usize];
        Contents { flash, ram: BTreeMap::new(), placed: 0, kept: BTreeMap::new(), sectors }
    }

    /// What a unit of flash holds.
    pub fn flash(&mut self, ppn: u32) -> &mut [u64] {
        &mut self.flash[ppn as usize * self.sectors as usize..][..self.sectors as usize]
    }

    /// The copy of a unit that lies there, or is [`KEPT`].
    pub fn copy(&mut self, lpn: u32, ppn: u32) -> Sectors {
        match self.kept.get(&lpn) {
            Some(kept) if ppn == KEPT => kept.clone(),
            _ => (&*self.flash(ppn)).into(),
        }
    }

    /// What was placed there last.
    fn newest(&self, ppn: u32) -> &[u64] {
        match self.ram.range((ppn, 0)..=(ppn, u64::MAX)).next_back() {
            Some((_, sectors)) => sectors,
            None => &self.flash[ppn as usize * self.sectors as usize..][..self.sectors as usize],
        }
    }

    /// What was placed there first, and not programmed since, is programmed.
    fn program(&mut self, ppn: u32) {
        let first = self.ram.range((ppn, 0)..=(ppn, u64::MAX)).next().map(|(&key, _)| key);
        if let Some(sectors) = first.and_then(|key| self.ram.remove(&key)) {
            self.flash(ppn).copy_from_slice(&sectors);
        }
    }

    /// All that is in RAM is programmed (`true`), or lost.
    pub fn empty_ram(&mut self, programmed: bool) {
        for ((ppn, _), sectors) in std::mem::take(&mut self.ram) {
            if programmed {
                self.flash(ppn).copy_from_slice(&sectors);
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

impl PageMap {
    /// Content of a sector of a logical unit (0: never written), where versions are kept.
    pub fn content(&self, lpn: u32, sector: u32) -> u64 {
        match (&self.content, self.lookup(lpn)) {
            (None, _) | (_, NONE) => 0,
            (Some(content), ppn) => content.newest(ppn)[sector as usize],
        }
    }

    /// What the unit at `ppn` holds, zeros if that is nowhere; where versions are kept.
    #[inline]
    pub(super) fn unit_content(&self, ppn: u32) -> Option<Sectors> {
        let content = self.content.as_ref()?;
        Some(match ppn {
            NONE => vec![0; content.sectors as usize].into(),
            ppn => content.newest(ppn).into(),
        })
    }

    /// The unit just placed at `ppn` holds that.
    pub(super) fn put_content<S: Sink>(&mut self, ppn: u32, sectors: Sectors, sink: &S) {
        let open = self.is_open(ppn);
        let Some(content) = &mut self.content else { return };
        if sink.timed() || open {
            content.placed += 1;
            content.ram.insert((ppn, content.placed), sectors);
        } else {
            content.flash(ppn).copy_from_slice(&sectors);
        }
    }

    /// The unit placed last at `ppn` holds that; where versions are kept.
    pub fn replace_content(&mut self, ppn: u32, sectors: &[u64]) {
        let Some(content) = &mut self.content else { return };
        match content.ram.range_mut((ppn, 0)..=(ppn, u64::MAX)).next_back() {
            Some((_, newest)) => newest.copy_from_slice(sectors),
            None => content.flash(ppn).copy_from_slice(sectors),
        }
    }

    /// The unit at `to` is a copy of the one at `from`, where versions are kept.
    #[inline]
    pub(super) fn copy_content<S: Sink>(&mut self, from: u32, to: u32, sink: &S) {
        if self.content.is_some() {
            self.copy_kept(from, to, sink);
        }
    }

    #[cold]
    fn copy_kept<S: Sink>(&mut self, from: u32, to: u32, sink: &S) {
        if let Some(sectors) = self.unit_content(from) {
            self.put_content(to, sectors, sink);
        }
    }

    /// The old copy of a unit is put into a block of the drive's own.
    pub(super) fn keep_content(&mut self, lpn: u32, sectors: Sectors) {
        if let Some(content) = &mut self.content {
            content.kept.insert(lpn, sectors);
        }
    }

    /// Units are in flash now.
    pub fn programmed(&mut self, units: impl Iterator<Item = u32>) {
        if let Some(content) = &mut self.content {
            units.for_each(|ppn| content.program(ppn));
        }
    }

    /// The part of a superblock on `die` is erased.
    pub fn erased(&mut self, superblock: u32, die: u32) {
        let layout = self.layout;
        let first = layout.first_unit(superblock);
        if let Some(content) = &mut self.content {
            let units = first..first + layout.units_per_superblock();
            units
                .filter(|&ppn| layout.die_of(ppn) == die)
                .for_each(|ppn| content.flash(ppn).fill(0));
        }
    }
}
