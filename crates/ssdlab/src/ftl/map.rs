//! The map: where every unit lies, and whose data is in every place.

use super::append::UNITS_PER_LINE;
use super::layout::Layout;
use super::places::Places;
use super::stationary::shuffle;
use crate::contract::Drawing;
use crate::error::Result;
use crate::persist::{Archive, Part, Persist};
use crate::sim::{Table, words};
use std::ops::Range;

/// Logical units to physical ones, and back.
///
/// Owns the place of each logical unit, the owner of each place, and which places hold data. A place is valid if and
/// only if it belongs to a logical unit that the map finds there; a logical unit is found at the first of its
/// physical units, and an owner means something only there. Units take one place each, unless the drive compresses:
/// then `lengths` says how many.
#[derive(Clone)]
pub(super) struct Map {
    places: Places,
    owner: Table<u32>,
    valid: Table<u64>,
    /// By logical unit: physical units that it takes; empty without compression.
    lengths: Vec<u8>,
}

impl Map {
    /// An empty map of so many logical units.
    pub fn new(units: u32, layout: &Layout) -> Self {
        let physical = layout.units() as usize;
        let lengths = if layout.granules() > 1 { units as usize } else { 0 };
        Map {
            places: Places::new(units),
            owner: Table::new(physical),
            valid: Table::new(physical.div_ceil(64)),
            lengths: vec![0; lengths],
        }
    }

    /// Nothing holds data any more.
    pub fn purge(&mut self) {
        self.places.clear();
        self.valid.fill(0);
        self.lengths.fill(0);
    }

    /// First physical unit of each logical one.
    #[inline]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// The same of one, [`NONE`] if it holds no data.
    #[inline]
    pub fn lookup(&self, lpn: u32) -> u32 {
        self.places.at(lpn)
    }

    /// Puts a unit somewhere, or nowhere.
    #[inline]
    pub fn set(&mut self, lpn: u32, ppn: u32) {
        self.places.put(lpn, ppn);
    }

    /// The logical unit that begins at `ppn`, which is valid.
    #[inline]
    pub fn owner(&self, ppn: u32) -> u32 {
        self.owner.at(ppn as usize)
    }

    /// From now on `lpn` begins at `ppn`.
    #[inline]
    pub fn set_owner(&mut self, ppn: u32, lpn: u32) {
        self.owner.put(ppn as usize, lpn);
    }

    /// Whether units take as many physical ones as their data needs.
    #[inline]
    pub fn packs(&self) -> bool {
        !self.lengths.is_empty()
    }

    /// Physical units that a logical unit takes, where it holds data: 1 without compression.
    #[inline]
    pub fn length(&self, lpn: u32) -> u32 {
        if self.packs() { u32::from(self.lengths[lpn as usize]) } else { 1 }
    }

    /// The same for the unit that begins at `ppn`.
    #[inline]
    pub fn length_at(&self, ppn: u32) -> u32 {
        if self.packs() { self.length(self.owner(ppn)) } else { 1 }
    }

    /// From now on a unit takes so many; where the drive compresses.
    pub fn set_length(&mut self, lpn: u32, units: u32) {
        if let Some(length) = self.lengths.get_mut(lpn as usize) {
            *length = units as u8;
        }
    }

    /// Whether a place holds data.
    #[inline]
    pub fn is_valid(&self, ppn: u32) -> bool {
        self.valid.at((ppn >> 6) as usize) >> (ppn & 63) & 1 != 0
    }

    /// Places from `ppn` on hold data.
    #[inline]
    pub fn mark(&mut self, ppn: u32, units: u32) {
        words(ppn, units).for_each(|(word, bits)| self.valid.put(word, self.valid.at(word) | bits));
    }

    /// Those of the logical unit at `ppn` hold none any more.
    #[inline]
    pub fn unmark(&mut self, layout: &Layout, ppn: u32, units: u32) {
        if units == 1 {
            let word = (ppn >> 6) as usize;
            return self.valid.put(word, self.valid.at(word) & !(1 << (ppn & 63)));
        }
        for (word, bits) in layout.program_units(ppn, units).flat_map(|(ppn, n)| words(ppn, n)) {
            self.valid.put(word, self.valid.at(word) & !bits);
        }
    }

    /// The next valid place in a range.
    #[inline]
    pub fn next_valid(&self, within: Range<u32>) -> Option<u32> {
        let mut ppn = within.start;
        while ppn < within.end {
            let word = self.valid.at((ppn >> 6) as usize) >> (ppn & 63);
            if word != 0 {
                ppn += word.trailing_zeros();
                return (ppn < within.end).then_some(ppn);
            }
            ppn = (ppn | 63) + 1;
        }
        None
    }

    /// Takes up to `units` valid units, of one place each, out of a range: where they lie, and what they are.
    pub fn take_valid(&mut self, within: Range<u32>, units: u32, taken: &mut Vec<(u32, u32)>) {
        let Range { start: mut ppn, end } = within;
        self.expect_owners(ppn);
        while ppn < end && (taken.len() as u32) < units {
            let (word, next) = ((ppn >> 6) as usize, (ppn | 63) + 1);
            self.expect_owners(next);
            let mut found = self.valid.at(word) & u64::MAX << (ppn & 63);
            if next > end {
                found &= (1 << (end & 63)) - 1;
            }
            let mut left = found;
            while left != 0 && (taken.len() as u32) < units {
                let from = (ppn & !63) + left.trailing_zeros();
                left &= left - 1;
                let lpn = self.owner(from);
                self.expect(lpn);
                taken.push((from, lpn));
            }
            self.valid.put(word, self.valid.at(word) ^ found ^ left);
            ppn = next;
        }
    }

    /// The place of a unit will be needed soon.
    #[inline]
    pub fn expect(&self, lpn: u32) {
        self.places.expect(lpn);
    }

    /// The unit at `ppn` will be replaced soon.
    #[inline]
    pub fn expect_old(&self, ppn: u32) {
        self.valid.expect((ppn >> 6) as usize);
    }

    /// Whose the places are will be asked from `ppn` on to the end of its word of valid bits.
    #[inline]
    pub fn expect_owners(&self, ppn: u32) {
        (ppn..=ppn | 63).step_by(UNITS_PER_LINE as usize).for_each(|ppn| self.expect_new(ppn));
    }

    /// Something will be placed at `ppn` soon.
    #[inline]
    pub fn expect_new(&self, ppn: u32) {
        self.owner.expect(ppn as usize);
    }

    /// Valid places of the drive.
    pub fn valid_units(&self) -> u64 {
        self.valid.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Deals the logical units, of which there are as many, to the valid places; unless that is stopped.
    pub fn deal(&mut self, drawing: &mut Drawing<'_>) {
        // Their order is dealt in the memory that takes their places then.
        let order = self.places.memory();
        order.iter_mut().zip(0..).for_each(|(place, lpn)| *place = lpn);
        shuffle(order, drawing);
        for (ppn, &lpn) in set_bits(&self.valid).zip(&*order) {
            self.owner[ppn] = lpn;
        }
        for ppn in set_bits(&self.valid) {
            if !drawing.advance(1) {
                return;
            }
            self.places.put(self.owner[ppn], ppn as u32);
        }
    }

    /// Checks that places, owners and valid bits agree; answers the valid units of each superblock. For tests.
    pub fn check(&self, layout: &Layout) -> Vec<u32> {
        let mut counts = vec![0u32; (layout.regions * layout.superblocks) as usize];
        for (lpn, ppn) in self.places.used() {
            assert_eq!(self.owner(ppn), lpn, "owner of ppn {ppn}");
            let length = self.length(lpn);
            assert!((1..=layout.granules()).contains(&length), "length of unit {lpn}");
            let superblock = layout.superblock_of(ppn);
            let parts = layout.program_units(ppn, length);
            for ppn in parts.flat_map(|(ppn, units)| ppn..ppn + units) {
                assert!(self.is_valid(ppn), "valid bit of ppn {ppn}");
                assert_eq!(layout.superblock_of(ppn), superblock, "end of unit {lpn}");
                let offset = ppn % layout.units_per_superblock();
                assert!(!layout.is_parity(offset), "data at parity's ppn {ppn}");
            }
            counts[superblock as usize] += length;
        }
        let mapped: u64 = counts.iter().map(|&units| u64::from(units)).sum();
        assert_eq!(self.valid_units(), mapped, "valid bits");
        counts
    }
}

impl Persist for Map {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let Self { places, owner, valid, lengths } = self;
        places.persist_part(archive)?;
        valid.persist_part(archive)?;
        lengths.persist_part(archive)?;
        if archive.loads() {
            // Half of the state, were it stored; of units that hold nothing nobody asks.
            places.used().for_each(|(lpn, ppn)| owner[ppn as usize] = lpn);
        }
        Ok(())
    }
}

/// Where ones stand in a bitmap.
fn set_bits(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(at, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            left &= left.checked_sub(1)?;
            Some(at * 64 + bit)
        })
    })
}
