//! Periodic collection: batches that begin and end with the free space of the whole drive.
//!
//! Between batches every unit that the host writes carries `between` copies of collection, none or
//! fewer than are needed, and the free superblocks of the drive become fewer. At the start mark a batch
//! begins; in it every unit carries `copies`, until the free superblocks are at the end mark. All
//! regions collect in the same batches, so that they show at the drive. Should a region run out of
//! free superblocks all the same, host writes wait for whole superblocks as with blocking collection.
//!
//! With victims that hold a share `u` of valid units, `c` copies release `c / u` units and take `c`:
//! with `c` copies in a batch and `b` between batches, of `D` units between the marks (of the whole
//! drive),
//!
//! ```text
//! between batches   D / (1 - b (1 - u) / u)    host units
//! a batch           D / (c (1 - u) / u - 1)    host units
//! ```
//!
//! so that a batch ends only if `c > u / (1 - u)`, and write amplification is 1 / (1 - u) as ever. One
//! that does not end settles where victims hold as much as it can copy: at `u = c / (1 + c)`. A
//! region that is not written keeps what it has; the batch ends when those that are have their share.
//! Cost: constant for a unit of the host.

use super::Sink;
use super::page_map::PageMap;
use crate::nand::Cause;
use crate::persist::persistent;

/// When batches of collection begin and end, and how fast they go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch {
    /// Free superblocks of a region, on the average of the drive, at which a batch begins.
    pub start: f64,
    /// Those at which it ends.
    pub end: f64,
    /// Units copied for each unit that the host writes in a batch.
    pub copies: f64,
    /// The same between batches.
    pub between: f64,
}

/// The batches of a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batches {
    /// The marks in free superblocks of the drive.
    start: u32,
    end: u32,
    /// The end mark of a region.
    share: f64,
    copies: f64,
    between: f64,
    on: bool,
    /// Running mean of what the regions of host units lack of the end mark, and one more.
    lacking: f64,
    /// Host units in a row that went to regions which have their share and more.
    satisfied: u32,
}

impl Batches {
    pub fn new(batch: &Batch, regions: u32) -> Self {
        let all = f64::from(regions);
        Batches {
            start: (batch.start * all).floor() as u32,
            end: (batch.end * all).ceil() as u32,
            share: batch.end,
            copies: batch.copies,
            between: batch.between,
            on: false,
            lacking: 0.0,
            satisfied: 0,
        }
    }

    /// A batch begins with so many free superblocks in the drive.
    fn begin(&mut self, free: u32, regions: u32) {
        (self.on, self.satisfied) = (true, 0);
        self.lacking = f64::from(self.end - free) / f64::from(regions) + 1.0;
    }

    /// Copies that a host unit carries in a region with so many free superblocks; `round` host units
    /// see all regions once. The more a region lacks, the more, so that all are done together;
    /// relative to what others that are written lack, so that the mean is `copies`. One superblock is
    /// added to what is lacking, and no region carries more than a few times the mean at the end, lest
    /// all of the last copies fall on the last region.
    fn copies(&mut self, free: u32, round: u32) -> f64 {
        let lacking = (self.share - f64::from(free) + 1.0).max(0.0);
        self.lacking += (lacking - self.lacking) / f64::from(round);
        self.copies * lacking / self.lacking.max(0.25)
    }

    /// All that decides what is collected next, as numbers.
    pub fn state(&self) -> [u64; 3] {
        [u64::from(self.on), u64::from(self.satisfied), self.lacking.to_bits()]
    }
}

impl PageMap {
    /// Lets the next host unit, of so many physical ones, which goes to `region`, carry its copies.
    pub(super) fn carry_batch<S: Sink>(&mut self, region: u32, length: u32, sink: &mut S) {
        let Some(batches) = &mut self.batches else { return };
        let r = &mut self.regions[region as usize];
        // Where others are not written and keep their share, the last superblocks of a region decide.
        let scarce = r.free.len() as u32 <= self.settings.low + 1;
        if batches.on {
            batches.on = self.free < batches.end;
        } else if self.free <= batches.start || (scarce && self.free < batches.end) {
            batches.begin(self.free, self.layout.regions);
            self.counters.batches += 1;
        }
        let round = (self.layout.regions * self.layout.units_per_program() / length).max(1);
        let end = batches.end;
        let copies = if batches.on {
            batches.copies(r.free.len() as u32, round)
        } else if self.free < end {
            batches.between
        } else {
            0.0
        } * f64::from(length);
        if copies > 0.0 {
            batches.satisfied = 0;
        } else {
            // The others lack free superblocks but are not written.
            batches.satisfied += 1;
            batches.on &= batches.satisfied < round;
            return;
        }
        // Empty victims make no copies, and one of them goes for a host unit; meanwhile copies are
        // not saved up for more than a superblock.
        let most = f64::from(self.layout.units_per_superblock()).max(copies);
        let mut owed = (r.owed + copies).min(most);
        while owed >= 1.0 {
            if !self.begin_in_batch(region) {
                owed = 0.0;
                break;
            }
            let before = self.counters.programs_collection;
            self.move_units(region, owed as u32, sink);
            self.refill_reserve(region, sink);
            let moved = self.counters.programs_collection - before;
            // Below 0 where copies go on to the end of a program unit.
            owed -= moved as f64;
            if moved == 0 || self.free >= end {
                break;
            }
        }
        self.regions[region as usize].owed = owed;
    }

    /// Sees to it that there is a collection under way in `region`; `false` if it would gain nothing.
    fn begin_in_batch(&mut self, region: u32) -> bool {
        if self.regions[region as usize].collecting.is_some() {
            return true;
        }
        if self.blocks.closed(region) == 0 {
            return false;
        }
        let victim = self.pick_victim(region);
        if !self.gains(victim) {
            return false;
        }
        self.begin(region, victim, Cause::Collection);
        true
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

persistent!(Batches {
    state { on, lacking, satisfied }
    built { start, end, share, copies, between }
});
