//! Folding: what the SLC cache holds moves to native superblocks, in the foreground or in idle time.

use super::{Folding, RegionCache};
use crate::ftl::Sink;
use crate::ftl::append::Unit;
use crate::ftl::blocks::OPEN;
use crate::ftl::mapping::Mapping;
use crate::ftl::page_map::PageMap;
use crate::ftl::region::Lane;
use crate::nand::Cause;

/// Stripes of a step in idle time: few, so that the host does not wait for much, but enough for dies
/// that share a channel to get out of each other's way.
const STRIPES_AT_ONCE: u32 = 4;

impl PageMap {
    /// Folds one superblock to its end, with `lent` one that was borrowed; `false` where there is none.
    pub(super) fn fold_one<S: Sink>(&mut self, region: u32, lent: bool, sink: &mut S) -> bool {
        let found = self.begin_fold(region, lent);
        if found {
            self.fold_units(region, u32::MAX, sink);
        }
        found
    }

    /// Carries this host unit's share of the folding that the next frontier waits for.
    pub(super) fn pace_fold<S: Sink>(&mut self, region: u32, sink: &mut S) {
        let Some(cache) = &self.cache else { return };
        let part = &cache.parts[region as usize];
        if part.folding.is_none() && (!part.free.is_empty() || self.may_borrow(region)) {
            return;
        }
        if !self.begin_fold(region, false) {
            return;
        }
        let Some(cache) = &mut self.cache else { return };
        let Some(f) = &mut cache.parts[region as usize].folding else { return };
        f.owed += i64::from(f.valid);
        let (owed, gain) = (f.owed, i64::from(f.gain));
        if owed < gain && f.valid > 0 {
            return;
        }
        let moved = self.fold_units(region, (owed / gain) as u32, sink);
        let Some(cache) = &mut self.cache else { return };
        if let Some(f) = &mut cache.parts[region as usize].folding {
            f.owed -= i64::from(moved) * gain;
        }
    }

    /// Folds some stripes of each region while the host is quiet; `true` if there was anything to do.
    pub fn fold_idle<S: Sink>(&mut self, sink: &mut S) -> bool {
        let stripe = self.layout.units_per_program() * self.layout.dies_per_region;
        let units = STRIPES_AT_ONCE * stripe;
        let mut worked = false;
        for region in 0..self.layout.regions {
            if self.begin_fold(region, false) {
                self.fold_units(region, units, sink);
                worked = true;
            }
        }
        worked
    }

    /// Sees to it that a superblock is being folded; `false` where there is none. It is the oldest,
    /// but with `lent`, or where native data is close to what it may be, the oldest that gives a
    /// superblock back.
    fn begin_fold(&mut self, region: u32, lent: bool) -> bool {
        let Some(cache) = &mut self.cache else { return false };
        let part = &mut cache.parts[region as usize];
        if part.folding.is_some() {
            return true;
        }
        let native = self.regions[region as usize].valid_units - part.valid;
        let any = part.borrowed == 0 || !lent && native + cache.units <= part.limit.safe;
        let at = match any {
            true => 0,
            false => match part.full.iter().position(|&s| !self.layout.is_set_aside(s)) {
                Some(at) => at,
                None => return false,
            },
        };
        let Some(victim) = part.full.remove(at) else { return false };
        let valid = self.blocks.valid[victim as usize] & !OPEN;
        let units = self.layout.data_units_per_superblock();
        // Of a borrowed superblock, the native units that take the data do not come back.
        let gain = match self.layout.is_set_aside(victim) {
            true => cache.data_units,
            false => {
                (u64::from(cache.data_units) * u64::from(units - valid) / u64::from(units)) as u32
            }
        };
        part.folding = Some(Folding { victim, cursor: 0, valid, gain: gain.max(1), owed: 0 });
        true
    }

    /// Moves at least `units` valid units of the superblock being folded, up to the end of a native
    /// program unit so that none stays half filled, and erases it when all have moved. Answers the
    /// number moved.
    fn fold_units<S: Sink>(&mut self, region: u32, units: u32, sink: &mut S) -> u32 {
        let Some(cache) = &self.cache else { return 0 };
        let Some(Folding { victim, mut cursor, .. }) = cache.parts[region as usize].folding else {
            return 0;
        };
        let first = self.layout.first_unit(victim);
        let per_program = self.layout.units_per_program();
        let mut moved = 0;
        let enough = |ftl: &Self, moved: u32| {
            moved >= units && ftl.program_boundary(ftl.regions[region as usize].host.offset)
        };
        while !enough(self, moved) {
            let Some(offset) = self.next_valid(victim, cursor) else { break };
            let end = (offset / per_program + 1) * per_program;
            let together = (offset..end).filter(|&o| self.is_valid(first + o)).count() as u32;
            let die = self.layout.die_of(first + offset);
            let read = sink.collect_read(die, together, Cause::Fold);
            cursor = offset;
            while let Some(offset) = self.next_valid(victim, cursor).filter(|&o| o < end) {
                self.make_room(region, 1, sink);
                self.fold_unit(region, first + offset, read, sink);
                cursor = offset + 1;
                moved += 1;
                if enough(self, moved) {
                    break;
                }
            }
        }
        if self.blocks.valid[victim as usize] == OPEN {
            self.end_fold(region, victim, sink);
        } else if let Some(RegionCache { folding: Some(f), .. }) =
            self.cache.as_mut().map(|cache| &mut cache.parts[region as usize])
        {
            f.cursor = cursor;
        }
        moved
    }

    /// Moves the unit at `from` to the host's native frontier.
    fn fold_unit<S: Sink>(&mut self, region: u32, from: u32, read: u32, sink: &mut S) {
        let lpn = self.owner[from as usize];
        self.invalidate(from);
        let unit = Unit::new(lpn).from(from, 1);
        let to = self.append(region, unit, Cause::Fold, read, sink);
        self.copy_content(from, to, sink);
        if let Mapping::Cached(cached) = &mut self.mapping {
            cached.moved(region, lpn);
        }
    }

    /// All of the superblock has moved, or was overwritten: it is erased and goes where it came from.
    fn end_fold<S: Sink>(&mut self, region: u32, victim: u32, sink: &mut S) {
        // What moved must be in flash before its old place is erased.
        self.pad(region, Lane::Host, Cause::Fold, sink);
        self.erase_blocks(region, victim, Cause::Fold, sink);
        let Some(cache) = &mut self.cache else { return };
        cache.slc[victim as usize] = false;
        cache.folds += 1;
        let part = &mut cache.parts[region as usize];
        part.folding = None;
        if self.layout.is_set_aside(victim) {
            part.free.push_back(victim);
            return;
        }
        cache.lend(region, cache.parts[region as usize].borrowed - 1);
        self.regions[region as usize].free.push_back(victim);
        self.free += 1;
        self.level_wear(region, sink);
    }
}
