//! Data into the SLC cache, and out of it: host units, and folding in the foreground or in idle time.

use super::WhenFull;
use crate::ftl::Sink;
use crate::ftl::blocks::OPEN;
use crate::ftl::kind::Whole;
use crate::ftl::open::KEPT;
use crate::ftl::page_map::PageMap;
use crate::ftl::space::Lane;
use crate::nand::{Cause, NONE};

/// Stripes of a step in idle time: few, so that the host does not wait for much, but enough for dies
/// that share a channel to get out of each other's way.
const STRIPES_AT_ONCE: u32 = 4;

impl PageMap {
    /// Places a unit of host data in the cache, or past it.
    pub(in crate::ftl) fn write_cached<S: Sink>(
        &mut self,
        region: u32,
        reads: [u32; 2],
        sink: &mut S,
    ) -> u32 {
        let cached = self.slc_room(region, sink);
        if let Some(cache) = &mut self.cache {
            cache.last = cached;
            cache.written += u64::from(cached);
        }
        if !cached {
            self.native_room(region, sink);
        }
        let lane = if cached { Lane::Slc } else { Lane::Host };
        let (unit, why) = (self.space.next, (Cause::HostWrite, reads));
        self.append_unit::<S, Whole>(region, lane, unit, why, sink)
    }

    /// Lets the next host unit find room in the cache; `false` where it must go past it.
    fn slc_room<S: Sink>(&mut self, region: u32, sink: &mut S) -> bool {
        let Some(cache) = &self.cache else { return false };
        let (direct, paced) = (cache.settings.when_full == WhenFull::Direct, cache.paced);
        if self.space.frontier(region, Lane::Slc).superblock != NONE {
            if paced && !direct {
                self.pace_fold(region, sink);
            }
            // A late erase may have padded it to its end.
            if self.space.frontier(region, Lane::Slc).superblock != NONE {
                return true;
            }
        }
        while !self.open_slc(region, sink) {
            if direct || !self.fold_one(region, false, sink) {
                return false;
            }
        }
        true
    }

    /// Room in the native frontier for a host unit. Before anything is collected for it, and where
    /// it is needed for the data at hand, what has been lent comes back.
    fn native_room<S: Sink>(&mut self, region: u32, sink: &mut S) {
        while let Some(cache) = &self.cache {
            let closed = self.space.frontier(region, Lane::Host).superblock == NONE;
            let short = closed && self.space.free_in(region) <= cache.keep;
            let due = cache.is_due(region, self.space.valid_units(region), short);
            if !due || !self.fold_one(region, true, sink) {
                break;
            }
        }
        self.make_room(region, 1, sink);
    }

    /// Whether a free superblock may be borrowed.
    fn may_borrow(&self, region: u32) -> bool {
        let (valid, free) = (self.space.valid_units(region), self.space.free_in(region));
        self.cache.as_ref().is_some_and(|cache| cache.may_borrow(region, valid, free))
    }

    /// Opens a frontier in SLC mode; `false` where nothing is left for it.
    fn open_slc<S: Sink>(&mut self, region: u32, sink: &mut S) -> bool {
        let may_borrow = self.may_borrow(region);
        let from = self.space.next.from;
        let next = (from < KEPT).then(|| self.layout.superblock_of(from));
        let Some(cache) = &mut self.cache else { return false };
        let part = &mut cache.parts[region as usize];
        // Not the one with the old copy of what is about to be placed, if there is another.
        let at = part.free.iter().position(|&s| Some(s) != next).unwrap_or(0);
        let superblock = match part.free.remove(at) {
            Some(superblock) => superblock,
            None if may_borrow => {
                part.borrowed += 1;
                self.space.take_free(region, Lane::Slc, self.reclaim.wear.as_deref())
            }
            None => return false,
        };
        cache.slc[superblock as usize] = true;
        self.start_superblock(region, Lane::Slc, superblock, sink);
        true
    }

    /// Free superblocks that idle-time collection should see to in a region, for the cache to borrow.
    pub(in crate::ftl) fn idle_wish(&self, region: u32) -> u32 {
        let valid = self.space.valid_units(region);
        self.cache.as_ref().map_or(0, |cache| cache.idle_wish(region, valid))
    }

    /// Folds one superblock to its end, with `lent` one that was borrowed; `false` where there is none.
    fn fold_one<S: Sink>(&mut self, region: u32, lent: bool, sink: &mut S) -> bool {
        let found = self.begin_fold(region, lent);
        self.relocate(region, Cause::Fold, u32::MAX, sink);
        found
    }

    /// Carries this host unit's share of the folding that the next frontier waits for.
    fn pace_fold<S: Sink>(&mut self, region: u32, sink: &mut S) {
        let Some(cache) = &self.cache else { return };
        let ready = !cache.parts[region as usize].free.is_empty() || self.may_borrow(region);
        if ready && !self.reclaim.is_moving(region, Cause::Fold) || !self.begin_fold(region, false)
        {
            return;
        }
        self.carry_share(region, Cause::Fold, (1, 1), sink);
    }

    /// Folds some stripes of each region while the host is quiet; `true` if there was anything to do.
    pub fn fold_idle<S: Sink>(&mut self, sink: &mut S) -> bool {
        let stripe = self.layout.units_per_program() * self.layout.dies_per_region;
        let mut worked = false;
        for region in 0..self.layout.regions {
            worked |= self.begin_fold(region, false);
            self.relocate(region, Cause::Fold, STRIPES_AT_ONCE * stripe, sink);
        }
        worked
    }

    /// Sees to it that a superblock is being folded; `false` where there is none.
    fn begin_fold(&mut self, region: u32, lent: bool) -> bool {
        if self.reclaim.is_moving(region, Cause::Fold) {
            return true;
        }
        let Some(cache) = &mut self.cache else { return false };
        let valid_units = self.space.valid_units(region);
        let Some(victim) = cache.take_full(region, valid_units, lent, &self.layout) else {
            return false;
        };
        let valid = self.space.blocks.valid[victim as usize] & !OPEN;
        let job = cache.folding(victim, valid, &self.layout);
        *self.reclaim.job(region, Cause::Fold) = Some(job);
        true
    }
}
