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
//! Free superblocks are counted in units, what is left of those being written and what is gained of
//! those being collected among them: whole ones come and go by chance, and a mark is reached when
//! they do so for the first time, the earlier the closer the marks are. Cost: constant for a unit of the host.

use super::layout::Layout;
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
    /// The marks in clean units of the drive.
    start: i64,
    end: i64,
    /// The end mark of a region, in superblocks.
    share: f64,
    /// Units of one.
    superblock: f64,
    copies: f64,
    between: f64,
    regions: u32,
    /// Physical units of the host that see all regions once.
    round: u32,
    /// Clean units of the drive, once they are counted.
    clean: Option<i64>,
    on: bool,
    /// Running mean of what the regions of host units lack of the end mark, and one more.
    lacking: f64,
    /// Host units in a row that went to regions which have their share and more.
    satisfied: u32,
}

impl Batches {
    pub fn new(batch: &Batch, layout: &Layout) -> Self {
        let regions = layout.regions;
        let superblock = f64::from(layout.units_per_superblock());
        let all = f64::from(regions) * superblock;
        Batches {
            start: (batch.start * all).floor() as i64,
            end: (batch.end * all).ceil() as i64,
            share: batch.end,
            superblock,
            copies: batch.copies,
            between: batch.between,
            regions,
            round: regions * layout.units_per_program(),
            clean: None,
            on: false,
            lacking: 0.0,
            satisfied: 0,
        }
    }

    /// Whether the clean units of the drive are known.
    pub fn is_counted(&self) -> bool {
        self.clean.is_some()
    }

    /// So many clean units more than before, or fewer.
    pub fn count(&mut self, more: i64) {
        *self.clean.get_or_insert(0) += more;
    }

    /// Clean units of the drive.
    fn clean(&self) -> i64 {
        self.clean.unwrap_or(0)
    }

    /// Copies that the next host unit, of so many physical ones, carries: so many superblocks are free in its region, which
    /// with `scarce` needs them; `begun` counts batches.
    pub fn carry(&mut self, (free, scarce): (u32, bool), length: u32, begun: &mut u64) -> f64 {
        let lacks = !self.is_full();
        if self.on {
            self.on = lacks;
        } else if self.clean() <= self.start || scarce && lacks {
            (self.on, self.satisfied) = (true, 0);
            let lacking = (self.end - self.clean()) as f64 / self.superblock;
            self.lacking = lacking / f64::from(self.regions) + 1.0;
            *begun += 1;
        }
        let round = (self.round / length).max(1);
        let copies = match self.on {
            true => self.copies(free, round),
            false if lacks => self.between,
            false => 0.0,
        } * f64::from(length);
        if copies > 0.0 {
            self.satisfied = 0;
        } else {
            // The others lack free superblocks but are not written.
            self.satisfied += 1;
            self.on &= self.satisfied < round;
        }
        copies
    }

    /// Whether the drive has its share.
    pub fn is_full(&self) -> bool {
        self.clean() >= self.end
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
}

persistent!(Batches {
    state { clean, on, lacking, satisfied }
    built { start, end, share, superblock, copies, between, regions, round }
});
