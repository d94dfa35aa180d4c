//! Periodic collection: batches that begin and end with the free space of the whole drive.
//!
//! Outside of batches nothing is collected, and the free superblocks of the drive fall by one for
//! every `b` units that the host writes. At the start mark a batch begins; in it every unit that the
//! host writes carries `copies` of collection, until the free superblocks are at the end mark. All
//! regions collect in the same batches, so that they show at the drive. Should a region run out of
//! free superblocks all the same, host writes wait for whole superblocks as with blocking collection.
//!
//! With victims that hold a share `u` of valid units, `c` copies release `c / u` units and take `c`:
//! of `D` units between the marks (of the whole drive),
//!
//! ```text
//! between batches   D                          host units
//! a batch           D / (c (1 - u) / u - 1)    host units
//! ```
//!
//! so that a batch ends only if `c > u / (1 - u)`, and write amplification is 1 / (1 - u) as ever.
//! Cost: constant for a unit of the host.

use super::Sink;
use super::page_map::{PageMap, Region};
use crate::nand::Cause;

/// When batches of collection begin and end, and how fast they go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch {
    /// Free superblocks of a region, on the average of the drive, at which a batch begins.
    pub start: f64,
    /// Those at which it ends.
    pub end: f64,
    /// Units copied for each unit that the host writes.
    pub copies: f64,
}

/// The batches of a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batches {
    /// The marks in free superblocks of the drive.
    start: u32,
    end: u32,
    /// Free superblocks with which a region has its share of the end mark.
    share: u32,
    copies: f64,
    on: bool,
    /// Copies that host units have carried and that are still to be made.
    owed: f64,
}

impl Batches {
    pub fn new(batch: &Batch, regions: u32) -> Self {
        let all = f64::from(regions);
        Batches {
            start: (batch.start * all).floor() as u32,
            end: (batch.end * all).ceil() as u32,
            share: batch.end.ceil() as u32,
            copies: batch.copies,
            on: false,
            owed: 0.0,
        }
    }

    /// All that decides what is collected next, as numbers.
    pub fn state(&self) -> [u64; 2] {
        [u64::from(self.on), self.owed.to_bits()]
    }
}

impl PageMap {
    /// Lets the next host unit, which goes to `region`, carry its copies if a batch is on.
    pub(super) fn carry_batch<S: Sink>(&mut self, region: u32, sink: &mut S) {
        let Some(mut batches) = self.batches else { return };
        if !batches.on {
            if self.free > batches.start {
                return;
            }
            batches.on = true;
            self.counters.batches += 1;
        }
        // Empty victims make no copies, one of them goes for a host unit; meanwhile copies are
        // not saved up for more than a superblock.
        let most = f64::from(self.layout.units_per_superblock()).max(batches.copies);
        batches.owed = (batches.owed + batches.copies).min(most);
        while batches.owed >= 1.0 {
            let Some(region) = self.begin_in_batch(region, batches.share) else {
                batches.owed = 0.0;
                break;
            };
            let before = self.counters.programs_collection;
            self.move_units(region, batches.owed as u32, sink);
            self.refill_reserve(region, sink);
            let moved = self.counters.programs_collection - before;
            // Below 0 where copies go on to the end of a program unit.
            batches.owed -= moved as f64;
            if moved == 0 || self.free >= batches.end {
                break;
            }
        }
        if self.free >= batches.end {
            (batches.on, batches.owed) = (false, 0.0);
        }
        self.batches = Some(batches);
    }

    /// Sees to it that there is a collection under way in `region`, or in the region with fewest free
    /// superblocks where that one has its share. Answers the region, if there is anything to gain.
    fn begin_in_batch(&mut self, region: u32, share: u32) -> Option<u32> {
        let free = |r: &Region| r.free.len() as u32;
        let mut region = region;
        let own = &self.regions[region as usize];
        if own.collecting.is_none() && free(own) >= share {
            let fewest = (0..self.layout.regions).min_by_key(|&r| free(&self.regions[r as usize]));
            region = fewest.unwrap_or(region);
        }
        if self.regions[region as usize].collecting.is_some() {
            return Some(region);
        }
        if self.blocks.closed(region) == 0 {
            return None;
        }
        let now = self.counters.host_units_written;
        let victim = self.victim.pick(&mut self.blocks, region, now);
        if !self.gains(victim) {
            return None;
        }
        self.begin(region, victim, Cause::Collection);
        Some(region)
    }

    /// Whether collecting `victim` gains anything once its units are padded to whole program units.
    pub(super) fn gains(&self, victim: u32) -> bool {
        let program = self.layout.units_per_program();
        let moved = self.blocks.valid[victim as usize].div_ceil(program) * program;
        moved < self.layout.data_units_per_superblock()
    }

    /// Where the last free superblock is in use, what it was opened for must be finished before the
    /// host goes on.
    #[inline]
    pub(super) fn refill_reserve<S: Sink>(&mut self, region: u32, sink: &mut S) {
        let r = &self.regions[region as usize];
        if r.free.is_empty() && r.collecting.is_some() {
            self.move_units(region, u32::MAX, sink);
        }
    }
}
