//! Garbage collection: making room in a region, and how fast.

use super::Sink;
use super::blocks::OPEN;
use super::pace::Batches;
use super::page_map::{PageMap, Settings};
use super::relocate::Relocation;
use super::space::{Lane, Space};
use crate::nand::{Cause, NONE};

/// How foreground collection is spread over host writes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// A host write that finds no room waits for whole superblocks to be collected.
    Blocking,
    /// Each host write carries its share of the copying, so that a superblock is ready in time.
    Paced,
    /// Collection goes in batches: `ftl.gc.batch` says when they begin and end, and how fast they go.
    Periodic,
}

/// Superblocks, in multiples of a region's, that are collected for one host unit before the victim policy is at fault. A
/// policy that draws lots, of which one in a region would do, misses it so often once in 10^27.
const ROUNDS: u32 = 64;

impl Settings {
    /// Superblocks that a region keeps free for collection while the host writes.
    pub fn reserve(&self) -> u32 {
        self.low + u32::from(self.pace == Pace::Paced)
    }

    /// Superblocks of a region that are being written, at most, in native mode.
    pub fn frontiers(&self) -> u32 {
        1 + u32::from(self.separate_frontier) + u32::from(self.moves_for_wear)
    }

    /// Where a region appends what is placed on this behalf, in native mode.
    #[inline(always)]
    pub(super) fn lane_of(&self, cause: Cause) -> Lane {
        match cause {
            Cause::Collection if self.separate_frontier => Lane::Collected,
            Cause::Wear => Lane::Wear,
            _ => Lane::Host,
        }
    }
}

impl PageMap {
    /// Lets the next host unit, of so many physical ones, find room in `region`.
    #[inline(always)]
    pub(super) fn make_room<S: Sink>(&mut self, region: u32, length: u32, sink: &mut S) {
        if self.reclaim.is_moving(region, Cause::Wear) {
            self.pace_leveling(region, length, sink);
        }
        match self.settings.pace {
            Pace::Blocking => {}
            Pace::Paced => {
                if self.reclaim.is_moving(region, Cause::Collection) || self.is_scarce(region) {
                    self.pace(region, length, sink);
                }
            }
            Pace::Periodic => self.carry_batch(region, length, sink),
        }
        let frontier = self.space.frontier(region, Lane::Host);
        let open = frontier.superblock != NONE;
        if frontier.offset == self.nearly_full && self.space.free_in(region) <= self.settings.low {
            self.expect_collection(region);
        }
        if !open || length > 1 {
            self.find_room(region, length, sink);
        }
    }

    /// Sees to it that a superblock is open with so much room, or can be.
    #[inline(never)]
    fn find_room<S: Sink>(&mut self, region: u32, length: u32, sink: &mut S) {
        for _ in 0..ROUNDS * self.space.blocks.per_region() + 1 {
            if length > 1 {
                self.close_short(region, length, Cause::HostWrite, sink);
            }
            let closed = self.space.frontier(region, Lane::Host).superblock == NONE;
            if !closed || self.space.free_in(region) > self.settings.low {
                return;
            }
            self.collect_one(region, sink);
        }
        panic!("the victim policy takes superblocks that free nothing, such as full ones");
    }

    /// A victim will be collected as a whole before the host has written much more: what is known of its units will be
    /// needed.
    #[cold]
    fn expect_collection(&self, region: u32) {
        let likely = self.reclaim.victim.likely(&self.space.blocks, region);
        if let (Some(victim), Pace::Blocking) = (likely, self.settings.pace) {
            self.map.expect_owners(self.layout.first_unit(victim));
        }
    }

    /// Whether the next superblock that a region opens is the last one before the reserve.
    #[inline]
    fn is_scarce(&self, region: u32) -> bool {
        self.space.free_in(region) <= self.settings.low + 1
    }

    /// Finishes the collection or the levelling under way, or collects one superblock.
    fn collect_one<S: Sink>(&mut self, region: u32, sink: &mut S) {
        // What moves for wear's sake may be all that there is to gain from.
        let cause = if !self.reclaim.is_moving(region, Cause::Collection)
            && self.reclaim.is_moving(region, Cause::Wear)
        {
            Cause::Wear
        } else {
            assert!(self.begin_collection(region, |_, _| true), "a closed superblock in {region}");
            Cause::Collection
        };
        self.relocate(region, cause, u32::MAX, sink);
    }

    /// Sees to it that there is a collection under way in a region; `false` where nothing is closed, or the next victim
    /// is not worth it.
    fn begin_collection(&mut self, region: u32, worth: impl Fn(&Space, u32) -> bool) -> bool {
        if self.reclaim.is_moving(region, Cause::Collection) {
            return true;
        }
        if self.space.blocks.closed(region) == 0 {
            return false;
        }
        let now = self.counters.host_units_written;
        let victim = self.reclaim.pick_victim(&mut self.space, region, now);
        let worth = worth(&self.space, victim);
        if worth {
            self.begin(region, victim, Cause::Collection);
        }
        worth
    }

    /// Begins to move a superblock, which is closed, for collection or for wear.
    fn begin(&mut self, region: u32, victim: u32, cause: Cause) {
        let valid = self.space.blocks.valid[victim as usize];
        self.space.blocks.reopen(region, victim);
        let gain = self.layout.data_units_per_superblock() - valid;
        *self.reclaim.job(region, cause) = Some(Relocation::new(victim, valid, gain, cause));
        match cause {
            Cause::Wear => self.counters.wear_moves += 1,
            _ => self.counters.collections += 1,
        }
    }

    /// Carries the share of a host unit of so many physical ones in the collection under way.
    fn pace<S: Sink>(&mut self, region: u32, length: u32, sink: &mut S) {
        if !self.begin_collection(region, |_, _| true) {
            return;
        }
        // Mapping units are moved whole, however many pieces they may be packed in.
        let whole = self.layout.granules();
        self.carry_share(region, Cause::Collection, (length, whole), sink);
        self.refill_reserve(region, sink);
    }

    /// Where the last free superblock is in use, what it was opened for must be finished before the
    /// host goes on.
    #[inline]
    fn refill_reserve<S: Sink>(&mut self, region: u32, sink: &mut S) {
        if self.space.free_in(region) == 0 {
            self.relocate(region, Cause::Collection, u32::MAX, sink);
        }
    }

    /// Lets the next host unit, of so many physical ones, which goes to `region`, carry its copies of a batch.
    fn carry_batch<S: Sink>(&mut self, region: u32, length: u32, sink: &mut S) {
        if self.reclaim.batches.as_ref().is_some_and(Batches::is_counted) {
            self.reclaim.count_clean(region, self.clean(region));
        } else {
            let regions = 0..self.layout.regions;
            regions.for_each(|region| self.reclaim.count_clean(region, self.clean(region)));
        }
        // Where others are not written and keep their share, the last superblocks of a region decide.
        let free = (self.space.free_in(region), self.is_scarce(region));
        let Some(batches) = &mut self.reclaim.batches else { return };
        let copies = batches.carry(free, length, &mut self.counters.batches);
        if copies <= 0.0 {
            return;
        }
        // Empty victims make no copies, and one of them goes for a host unit; meanwhile copies are
        // not saved up for more than a superblock.
        let most = f64::from(self.layout.units_per_superblock()).max(copies);
        let mut owed = (*self.reclaim.owed(region) + copies).min(most);
        while owed >= 1.0 {
            if !self.begin_collection(region, Space::gains) {
                owed = 0.0;
                break;
            }
            let before = self.counters.programs_collection;
            self.relocate(region, Cause::Collection, owed as u32, sink);
            self.refill_reserve(region, sink);
            let moved = self.counters.programs_collection - before;
            // Below 0 where copies go on to the end of a program unit.
            owed -= moved as f64;
            self.reclaim.count_clean(region, self.clean(region));
            if moved == 0 || self.reclaim.batches.as_ref().is_some_and(Batches::is_full) {
                break;
            }
        }
        *self.reclaim.owed(region) = owed;
    }

    /// Units of a region that can be written, on average those of its free superblocks: what is left of those being
    /// written, and of the one being collected the share of which nothing is valid any more, less half of each.
    fn clean(&self, region: u32) -> i64 {
        let whole = i64::from(self.layout.units_per_superblock());
        let rest = |lane: Lane| match self.space.frontier(region, lane) {
            frontier if frontier.superblock == NONE => 0,
            frontier => whole - i64::from(frontier.offset),
        };
        let apart = self.settings.separate_frontier;
        let left = rest(Lane::Host) + if apart { rest(Lane::Collected) } else { 0 };
        let gained = self.reclaim.moving(region, Cause::Collection).map_or(0, |job| {
            let valid = i64::from(self.space.blocks.valid[job.victim as usize] & !OPEN);
            whole - whole * valid / i64::from(job.valid.max(1))
        });
        let halves = 2 + i64::from(apart);
        whole * i64::from(self.space.free_in(region)) + left + gained - halves * whole / 2
    }

    /// Collects ahead of need while the host is quiet; `true` if there was anything to do.
    pub fn collect_idle<S: Sink>(&mut self, sink: &mut S) -> bool {
        let mut worked = false;
        for region in 0..self.layout.regions {
            for _ in 0..self.settings.idle_superblocks {
                if !self.collect_one_idle(region, sink) {
                    break;
                }
                worked = true;
            }
        }
        worked
    }

    fn collect_one_idle<S: Sink>(&mut self, region: u32, sink: &mut S) -> bool {
        if !self.reclaim.is_moving(region, Cause::Collection) {
            if self.reclaim.is_moving(region, Cause::Wear) {
                self.relocate(region, Cause::Wear, u32::MAX, sink);
                return true;
            }
            let (free, high) = (self.space.free_in(region), self.settings.high);
            // Without a program unit's worth of invalid units it would be copied for nothing; for the SLC cache not
            // more is copied than is gained.
            let most = self.layout.data_units_per_superblock() / if free < high { 1 } else { 2 };
            let worth = |space: &Space, victim: u32| {
                space.gains(victim) && space.blocks.valid[victim as usize] <= most
            };
            if free >= high.max(self.idle_wish(region)) || !self.begin_collection(region, worth) {
                return false;
            }
        }
        self.relocate(region, Cause::Collection, u32::MAX, sink);
        true
    }

    /// After an erase: begins to move what wear levelling picks, if anything. How fast that goes is up to the
    /// pace of collection; one superblock of a region at a time.
    pub(super) fn level_wear<S: Sink>(&mut self, region: u32, sink: &mut S) {
        if self.reclaim.is_moving(region, Cause::Wear) || self.space.free_in(region) == 0 {
            return;
        }
        let old = self.counters.host_units_written.saturating_sub(u64::from(self.units()));
        let Some(wear) = &mut self.reclaim.wear else { return };
        let mut free = self.space.free_of(region);
        let Some(superblock) = wear.pick(&self.space.blocks, region, &mut free, old) else {
            return;
        };
        drop(free);
        self.begin(region, superblock, Cause::Wear);
        if self.settings.pace == Pace::Blocking {
            self.relocate(region, Cause::Wear, u32::MAX, sink);
        } else {
            // Now that there is a superblock more to go to.
            self.pace_leveling(region, 1, sink);
        }
    }

    /// Moves as many units as the host writes, unless that could take the last superblock that collection needs.
    #[cold]
    fn pace_leveling<S: Sink>(&mut self, region: u32, length: u32, sink: &mut S) {
        let frontier = self.space.frontier(region, Lane::Wear);
        let room = match frontier.superblock {
            NONE => 0,
            open => self.layout.room(open, frontier.offset),
        };
        // What is begun goes on to the end of a program unit, and of a mapping unit.
        let most = length + self.layout.units_per_program() + self.layout.granules();
        if self.space.free_in(region) > self.settings.low || room >= most {
            self.relocate(region, Cause::Wear, length, sink);
        }
    }
}
