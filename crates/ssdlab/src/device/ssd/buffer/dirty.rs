//! The dirty units of a write buffer: found by logical unit, kept in the order in which they came.
//!
//! A table with open addressing (linear probing, at most half full) leads from a logical unit to its slot; the
//! slots are linked from the oldest to the newest. Cost: constant for each unit; memory grows with the most units
//! that were ever held at once.

use crate::device::SECTOR;
use crate::ftl::UnitWrite;
use crate::nand::NONE;
use crate::persist::persistent;

/// A unit of which at least a part is newer than in flash.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    lpn: u32,
    /// Slots of the next older and the next newer unit.
    older: u32,
    newer: u32,
    /// Physical units of room that it takes.
    length: u16,
    /// How much what was written shrinks, percent.
    compressible: u8,
}

/// Logical unit and slot.
type Entry = (u32, u32);
const EMPTY: Entry = (NONE, NONE);

/// Entries of the smallest table.
const TABLE_MIN: usize = 64;

/// Sectors by the words that their bits are in.
#[inline]
fn words(first: u32, sectors: u32) -> impl Iterator<Item = (usize, u64)> {
    let end = first + sectors;
    (first >> 6..end.div_ceil(64)).map(move |word| {
        let (from, to) = (first.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
        (word as usize, bits(from, to - from))
    })
}

/// So many bits of a word, at least one.
#[inline]
fn bits(from: u32, count: u32) -> u64 {
    (u64::MAX >> (64 - count)) << from
}

/// The place in the table for a unit that is not held.
pub struct Vacancy(usize);

/// See the module.
#[derive(Debug)]
pub struct Dirty {
    table: Vec<Entry>,
    slots: Vec<Slot>,
    /// By slot: a bit for each sector that was written, in so many words.
    written: Vec<u64>,
    words: usize,
    /// By slot: versions of its sectors, where they are kept.
    versions: Vec<u64>,
    keep_versions: bool,
    sectors: u32,
    oldest: u32,
    newest: u32,
    /// The first of the slots without a unit, linked by `newer`.
    free: u32,
    count: u32,
    /// Physical units of room that all of them take.
    length: u32,
}

persistent!(Slot { state { lpn, older, newer, length, compressible } });
persistent!(Dirty {
    state { table, slots, written, versions, oldest, newest, free, count, length }
    built { words, keep_versions, sectors }
});

impl Dirty {
    /// None, of so many bytes each.
    pub fn new(unit_bytes: u64, keep_versions: bool) -> Self {
        let sectors = (unit_bytes / SECTOR) as u32;
        Dirty {
            table: vec![EMPTY; TABLE_MIN],
            slots: Vec::new(),
            written: Vec::new(),
            words: sectors.div_ceil(64) as usize,
            versions: Vec::new(),
            keep_versions,
            sectors,
            oldest: NONE,
            newest: NONE,
            free: NONE,
            count: 0,
            length: 0,
        }
    }

    /// Memory for so many units, bytes.
    pub fn memory(units: u64, unit_bytes: u64) -> u64 {
        let (slot, entry) = (size_of::<Slot>() as u64, size_of::<Entry>() as u64);
        units * (slot + 4 * entry + 8 * (unit_bytes / SECTOR).div_ceil(64))
    }

    /// Units held.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Physical units of room that they take.
    pub fn length(&self) -> u32 {
        self.length
    }

    #[inline]
    fn home(&self, lpn: u32) -> usize {
        // Multiplication by 2^64 over the golden ratio spreads runs and strides (Knuth, TAOCP 3, 6.4).
        let hash = u64::from(lpn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.table.len() - 1)
    }

    /// Where the unit stands in the table, or would.
    #[inline]
    fn place(&self, lpn: u32) -> usize {
        let mask = self.table.len() - 1;
        let mut at = self.home(lpn);
        while self.table[at].0 != lpn && self.table[at].0 != NONE {
            at = (at + 1) & mask;
        }
        at
    }

    /// The slot of a unit that is held.
    #[inline]
    pub fn find(&self, lpn: u32) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        self.look_up(lpn).ok()
    }

    /// The slot of a unit that is held, or its place.
    #[inline]
    pub fn look_up(&self, lpn: u32) -> Result<u32, Vacancy> {
        let at = self.place(lpn);
        match self.table[at].1 {
            NONE => Err(Vacancy(at)),
            slot => Ok(slot),
        }
    }

    #[cold]
    fn grow(&mut self) {
        let entries = std::mem::take(&mut self.table);
        self.table = vec![EMPTY; 2 * entries.len()];
        for entry in entries.into_iter().filter(|&entry| entry != EMPTY) {
            let at = self.place(entry.0);
            self.table[at] = entry;
        }
    }

    /// Takes in a unit that is not held, with the room it needs.
    #[inline]
    pub fn insert(&mut self, Vacancy(mut at): Vacancy, write: &UnitWrite, length: u32) {
        if 2 * (self.count as usize + 1) > self.table.len() {
            self.grow();
            at = self.place(write.lpn);
        }
        let index = self.free;
        let index = if index == NONE {
            self.slots.push(Slot::default());
            self.written.resize(self.slots.len() * self.words, 0);
            if self.keep_versions {
                self.versions.resize(self.slots.len() * self.sectors as usize, 0);
            }
            self.slots.len() as u32 - 1
        } else {
            self.free = self.slots[index as usize].newer;
            index
        };
        self.table[at] = (write.lpn, index);
        self.slots[index as usize] = Slot {
            lpn: write.lpn,
            older: NONE,
            newer: NONE,
            length: length as u16,
            compressible: write.compressible,
        };
        self.count += 1;
        self.length += length;
        self.link(index);
        match self.words_of(index) {
            [word] => *word = 0,
            words => words.fill(0),
        }
        self.note(index, write);
    }

    /// A write replaces all or a part of what the slot holds: what is to be programmed then.
    pub fn merged(&self, index: u32, write: &UnitWrite) -> UnitWrite {
        let mut all = self.unit(index);
        let first = index as usize * self.words;
        for (word, bits) in words(write.first_sector, write.sectors) {
            all.sectors += (bits & !self.written[first + word]).count_ones();
        }
        // Each sector counts with what it shrinks by.
        let kept = u32::from(all.compressible) * (all.sectors - write.sectors);
        let new = u32::from(write.compressible) * write.sectors;
        all.compressible = ((kept + new) / all.sectors) as u8;
        all
    }

    /// Writes over what the slot holds; `merged` as above, with the room it needs. The unit keeps its age unless
    /// it is `renewed`.
    pub fn overwrite(
        &mut self,
        index: u32,
        write: &UnitWrite,
        merged: &UnitWrite,
        length: u32,
        renewed: bool,
    ) {
        let slot = &mut self.slots[index as usize];
        self.length = self.length - u32::from(slot.length) + length;
        (slot.length, slot.compressible) = (length as u16, merged.compressible);
        self.note(index, write);
        if renewed && self.newest != index {
            self.unlink(index);
            self.link(index);
        }
    }

    /// Room that a slot takes, physical units.
    pub fn length_of(&self, index: u32) -> u32 {
        u32::from(self.slots[index as usize].length)
    }

    /// The slot of the oldest unit.
    #[inline]
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The slot of the next newer unit.
    #[inline]
    pub fn newer(&self, index: u32) -> Option<u32> {
        let newer = self.slots[index as usize].newer;
        (newer != NONE).then_some(newer)
    }

    /// The logical unit in a slot.
    #[inline]
    pub fn lpn(&self, index: u32) -> u32 {
        self.slots[index as usize].lpn
    }

    /// What the slot holds, as one write. Of its sectors only the number is told.
    pub fn unit(&self, index: u32) -> UnitWrite {
        let slot = &self.slots[index as usize];
        let first = index as usize * self.words;
        let words = &self.written[first..first + self.words];
        UnitWrite {
            lpn: slot.lpn,
            first_sector: 0,
            sectors: words.iter().map(|word| word.count_ones()).sum(),
            stamp: 0,
            compressible: slot.compressible,
        }
    }

    /// Gives a slot up.
    pub fn remove(&mut self, index: u32) {
        self.unlink(index);
        let Slot { lpn, length, .. } = self.slots[index as usize];
        let at = self.place(lpn);
        self.close_gap(at);
        self.slots[index as usize].newer = self.free;
        self.free = index;
        self.count -= 1;
        self.length -= u32::from(length);
    }

    /// Empties the place and moves those up that were displaced by it.
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.table.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let entry = self.table[at];
            if entry == EMPTY {
                break;
            }
            let home = self.home(entry.0);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                self.table[gap] = entry;
                gap = at;
            }
        }
        self.table[gap] = EMPTY;
    }

    /// Gives everything up.
    pub fn clear(&mut self) {
        self.table.fill(EMPTY);
        self.slots.clear();
        self.written.clear();
        self.versions.clear();
        (self.oldest, self.newest, self.free) = (NONE, NONE, NONE);
        (self.count, self.length) = (0, 0);
    }

    /// The logical units, the oldest first.
    pub fn units(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.oldest(), |&at| self.newer(at)).map(|at| self.lpn(at))
    }

    /// As the newest.
    fn link(&mut self, index: u32) {
        let newest = std::mem::replace(&mut self.newest, index);
        let slot = &mut self.slots[index as usize];
        (slot.older, slot.newer) = (newest, NONE);
        match newest {
            NONE => self.oldest = index,
            newest => self.slots[newest as usize].newer = index,
        }
    }

    fn unlink(&mut self, index: u32) {
        let Slot { older, newer, .. } = self.slots[index as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
    }

    fn words_of(&mut self, index: u32) -> &mut [u64] {
        let first = index as usize * self.words;
        &mut self.written[first..first + self.words]
    }

    #[inline]
    fn is_written(&self, index: u32, sector: u32) -> bool {
        let word = self.written[index as usize * self.words + (sector >> 6) as usize];
        word >> (sector & 63) & 1 != 0
    }

    /// Whether the slot holds all of these sectors.
    pub fn covers(&self, index: u32, sectors: std::ops::Range<u32>) -> bool {
        let first = index as usize * self.words;
        let (from, count) = (sectors.start, sectors.end - sectors.start);
        words(from, count).all(|(word, bits)| self.written[first + word] & bits == bits)
    }

    /// The version of a sector, where it was written and versions are kept.
    pub fn version(&self, index: u32, sector: u32) -> Option<u64> {
        let at = (index * self.sectors + sector) as usize;
        (self.keep_versions && self.is_written(index, sector)).then(|| self.versions[at])
    }

    /// The sectors of a write are in the slot now.
    #[inline]
    fn note(&mut self, index: u32, write: &UnitWrite) {
        let UnitWrite { first_sector, sectors, stamp, .. } = *write;
        match self.words_of(index) {
            [word] => *word |= bits(first_sector, sectors),
            own => words(first_sector, sectors).for_each(|(word, bits)| own[word] |= bits),
        }
        if self.keep_versions {
            let first = (index * self.sectors + first_sector) as usize;
            let versions = &mut self.versions[first..first + sectors as usize];
            versions.iter_mut().zip(stamp..).for_each(|(version, stamp)| *version = stamp);
        }
    }

    /// Asserts that table, list and sums agree.
    pub fn check(&self) {
        let units: Vec<u32> = self.units().collect();
        assert_eq!(units.len(), self.count as usize, "units linked");
        let filled = self.table.iter().filter(|&&entry| entry != EMPTY).count();
        assert_eq!(filled, units.len(), "units in the table");
        let mut length = 0;
        for lpn in units {
            let index = self.find(lpn).expect("a unit that is linked is found");
            assert!(self.unit(index).sectors > 0, "a unit of which nothing was written");
            length += self.length_of(index);
        }
        assert_eq!(length, self.length, "room of all units");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use std::collections::BTreeMap;

    fn write(lpn: u32, first_sector: u32, sectors: u32, stamp: u64) -> UnitWrite {
        UnitWrite { lpn, first_sector, sectors, stamp, compressible: 0 }
    }

    #[test]
    fn agrees_with_a_plain_map() {
        let mut rng = Stream::new(1, "dirty");
        for sectors in [1, 8, 100] {
            let mut dirty = Dirty::new(u64::from(sectors) * SECTOR, true);
            let mut plain: BTreeMap<u32, (u64, Vec<Option<u64>>)> = BTreeMap::new();
            for step in 1..20_000u64 {
                let lpn = rng.below(400) as u32 * 1024;
                match rng.below(10) {
                    0..6 => {
                        let first = rng.below(u64::from(sectors)) as u32;
                        let write = write(lpn, first, 1, step);
                        if let Some(at) = dirty.find(lpn) {
                            let merged = dirty.merged(at, &write);
                            dirty.overwrite(at, &write, &merged, 2, step % 2 == 0);
                            assert_eq!(dirty.unit(at).sectors, merged.sectors);
                        } else if let Err(place) = dirty.look_up(lpn) {
                            dirty.insert(place, &write, 1);
                        }
                        let new = (step, vec![None; sectors as usize]);
                        let held = plain.contains_key(&lpn);
                        let (age, versions) = plain.entry(lpn).or_insert(new);
                        versions[first as usize] = Some(step);
                        if held && step % 2 == 0 {
                            *age = step;
                        }
                    }
                    6..8 => {
                        if let Some(at) = dirty.find(lpn) {
                            dirty.remove(at);
                        }
                        plain.remove(&lpn);
                    }
                    _ => {
                        let oldest = plain.iter().min_by_key(|(_, (age, _))| age);
                        let oldest = oldest.map(|(&lpn, _)| lpn);
                        let found = dirty.oldest().map(|at| dirty.unit(at).lpn);
                        assert_eq!(found, oldest);
                        if let (Some(at), Some(lpn)) = (dirty.oldest(), oldest) {
                            dirty.remove(at);
                            plain.remove(&lpn);
                        }
                    }
                }
                let at = dirty.find(lpn);
                assert_eq!(at.is_some(), plain.contains_key(&lpn));
                if let (Some(at), Some((_, versions))) = (at, plain.get(&lpn)) {
                    let found = (0..sectors).map(|sector| dirty.version(at, sector));
                    assert!(found.eq(versions.iter().copied()), "{lpn}");
                }
                if step % 500 == 0 {
                    dirty.check();
                }
            }
            dirty.clear();
            dirty.check();
        }
    }
}
