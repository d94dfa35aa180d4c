//! What a loss of power leaves of the map.
//!
//! Every page of flash says in its spare area which logical unit it holds and in what order it was
//! written, so that the newest copy of each that was programmed to its end is found again. What
//! was placed and not programmed is put back: its place takes the last copy in flash, read again from
//! where that still lies, as a drive rewrites the part of a block that it cannot trust. Units of which
//! there is no copy hold no data, and what was trimmed without the map having been written since does hold it
//! again, unless it is in flash no more. Cost: logarithmic for each unit that was not programmed.

use super::Sink;
use super::mapping::Mapping;
use super::open::{KEPT, Placed};
use super::page_map::PageMap;
use crate::nand::NONE;
use crate::persist::persistent;
use std::collections::{BTreeMap, BTreeSet};

/// TRIMs that are remembered until they are durable: a page of 4 KiB with eight bytes for each.
const TRIMS: usize = 512;

/// A unit that was trimmed: where it lay, in how many physical units, and how often its superblock had been
/// erased.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trimmed {
    lpn: u32,
    ppn: u32,
    length: u32,
    erases: u32,
}

persistent!(Trimmed { state { lpn, ppn, length, erases } });

/// A program unit that is not in flash.
#[derive(Clone, Debug)]
pub struct Cut {
    /// First physical unit.
    pub first: u32,
    /// Its units, from the first on.
    pub placed: Vec<Placed>,
}

/// What a loss of power has taken from the flash.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    /// Logical units whose newest version was not in flash, in order.
    pub units: BTreeSet<u32>,
}

/// Program units that are not in flash, by number and the order of their first unit.
struct Missing(BTreeMap<(u32, u64), Vec<Placed>>);

/// A copy of a logical unit.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Copy {
    ppn: u32,
    length: u32,
    /// Older than what was placed then.
    before: u64,
}

impl Missing {
    /// The copy that `copy` was to replace, and whether what replaced it was new: where `copy` is not in flash.
    fn replaced(&self, map: &PageMap, copy: Copy) -> Option<(Copy, bool)> {
        let layout = map.layout;
        let per_program = layout.units_per_program();
        layout.program_units(copy.ppn, copy.length).find_map(|(part, _)| {
            let program = layout.program_of(part);
            // The place may have been written again since; what counts is what came before.
            let mut earlier = self.0.range((program, 0)..(program, copy.before));
            let (_, placed) = earlier.next_back()?;
            let Placed { from, length, new, order, .. } = placed[(part % per_program) as usize];
            Some((Copy { ppn: from, length: u32::from(length), before: order }, new))
        })
    }

    /// The newest copy in flash of what the map finds at `ppn`, [`NONE`]: there is none; and whether it is
    /// an older version. `None` if it is the one at `ppn`.
    fn newest_in_flash(&self, map: &PageMap, ppn: u32, length: u32) -> Option<(u32, bool)> {
        let mut copy = Copy { ppn, length, before: u64::MAX };
        let mut older = false;
        while let Some((replaced, new)) = self.replaced(map, copy) {
            (copy, older) = (replaced, older || new);
            if copy.ppn >= KEPT {
                break;
            }
        }
        (copy.before != u64::MAX).then_some((copy.ppn, older))
    }
}

impl PageMap {
    /// Power was lost with these program units not in flash. `protected`: what was in RAM is safe; otherwise
    /// the map is what can be found again. `erased`: the parts of superblocks, by die, that are still to be
    /// erased. Program units that are not full are closed next.
    pub fn power_cut(&mut self, cut: Vec<Cut>, erased: &[(u32, u32)], protected: bool) -> Lost {
        let mut missing = Missing(BTreeMap::new());
        let open = self.space.open_programs();
        let open = open.map(|(.., first, placed)| Cut { first, placed: placed.to_vec() });
        for Cut { first, placed } in open.chain(cut) {
            missing.0.insert((self.layout.program_of(first), placed[0].order), placed);
        }
        let mut lost = Lost::default();
        if protected {
            self.contents.empty_ram(true);
        } else {
            lost = self.put_back(&missing, erased);
            self.bring_back_trimmed(&missing);
        }
        self.trims_are_durable();
        lost
    }

    /// Puts the last copies in flash in the places of what was lost.
    fn put_back(&mut self, missing: &Missing, erased: &[(u32, u32)]) -> Lost {
        let units: BTreeSet<u32> = missing.0.values().flatten().map(|p| p.lpn).collect();
        let mut lost = Lost::default();
        let (mut copies, mut without) = (Vec::new(), Vec::new());
        for lpn in units.into_iter().filter(|&lpn| lpn != NONE) {
            let ppn = self.lookup(lpn);
            if ppn == NONE {
                continue;
            }
            let Some((from, older)) = missing.newest_in_flash(self, ppn, self.length(lpn)) else {
                continue;
            };
            if older {
                lost.units.insert(lpn);
            }
            if from == NONE {
                without.push(lpn);
            } else if self.contents.are_kept() {
                copies.push((ppn, self.contents.copy(lpn, from)));
            }
        }
        erased.iter().for_each(|&(superblock, die)| self.contents.erased(superblock, die));
        self.contents.empty_ram(false);
        for (ppn, sectors) in copies {
            self.contents.put(ppn, sectors, false);
        }
        for lpn in without {
            let ppn = self.lookup(lpn);
            self.remap(lpn, NONE);
            self.invalidate(ppn, self.length(lpn));
        }
        lost
    }

    /// Finds units again that were trimmed since the map was written last.
    fn bring_back_trimmed(&mut self, missing: &Missing) {
        let mut seen = BTreeSet::new();
        let trimmed = std::mem::take(&mut self.trims);
        for Trimmed { lpn, ppn, length, erases } in trimmed.into_iter().rev() {
            let superblock = self.layout.superblock_of(ppn);
            let region = self.layout.region_of(superblock);
            let intact = self.blocks().erases[superblock as usize] == erases
                && self.blocks().is_closed(superblock)
                && missing.newest_in_flash(self, ppn, length).is_none();
            // Where data may be in either mode, the map is written with every TRIM.
            let room = self.cache.is_none()
                && self.space.valid_units(region) + length <= self.region_limit;
            // What lay elsewhere before is older than what was last in flash.
            if !seen.insert(lpn) || self.lookup(lpn) != NONE || !intact || !room {
                continue;
            }
            self.remap(lpn, ppn);
            self.map.set_owner(ppn, lpn);
            self.map.set_length(lpn, length);
            for (ppn, units) in self.layout.program_units(ppn, length) {
                self.map.mark(ppn, units);
            }
            self.space.refill(region, superblock, length);
            self.counters.units_mapped += u64::from(length);
        }
    }

    /// A unit was trimmed that lay at `ppn`.
    #[inline]
    pub(super) fn note_trim(&mut self, lpn: u32, ppn: u32) {
        if self.trims.len() == TRIMS {
            self.trims_are_durable();
        }
        let erases = self.blocks().erases[self.layout.superblock_of(ppn) as usize];
        self.trims.push(Trimmed { lpn, ppn, length: self.length(lpn), erases });
    }

    /// A loss of power does not undo the TRIMs so far.
    pub fn trims_are_durable(&mut self) {
        self.trims.clear();
    }

    /// After the units that are not full have been closed: what the cache of the map held is in flash.
    pub fn restart_map<S: Sink>(&mut self, sink: &mut S) {
        if let Mapping::Cached(cached) = &mut self.mapping {
            cached.power_cut(sink);
        }
    }
}
