//! The table of superblocks: valid units, wear, the order in which they were closed.
//!
//! Flat arrays by superblock number. Victims are found through the minimum of groups of 64
//! superblocks, which an invalidation lowers in place: exact greedy at the cost of one comparison
//! per invalidation and a scan of N/64 + 64 counters per collection.

use super::layout::Layout;
use crate::nand::NONE;
use crate::persist::persistent;
use std::ops::Range;

/// Added to the valid count of superblocks that may not be collected: free, open or being
/// collected.
pub const OPEN: u32 = 1 << 31;

const GROUP: u32 = 64;

/// Superblocks of the drive, `per_region` in each region.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// Valid units, with [`OPEN`] where the superblock may not be collected.
    pub valid: Vec<u32>,
    /// Times erased.
    pub erases: Vec<u32>,
    /// Position in the order of closing (host units written by then), for age.
    pub closed_at: Vec<u64>,
    /// Physical units of a superblock that can hold data.
    pub units_per_superblock: u32,
    per_region: u32,
    /// The last so many of a region are never collected.
    set_aside: u32,
    groups: u32,
    least: Vec<u32>,
    /// Per region: where the next search for a victim begins, so that ties rotate.
    hand: Vec<u32>,
    older: Vec<u32>,
    newer: Vec<u32>,
    oldest: Vec<u32>,
    newest: Vec<u32>,
    closed: Vec<u32>,
}

impl Blocks {
    /// All superblocks free and never erased.
    pub fn new(layout: &Layout) -> Self {
        let (regions, per_region) = (layout.regions, layout.superblocks);
        let n = (regions * per_region) as usize;
        let groups = per_region.div_ceil(GROUP);
        Blocks {
            valid: vec![OPEN; n],
            erases: vec![0; n],
            closed_at: vec![0; n],
            units_per_superblock: layout.data_units_per_superblock(),
            per_region,
            set_aside: layout.set_aside,
            groups,
            least: vec![OPEN; (regions * groups) as usize],
            hand: vec![0; regions as usize],
            older: vec![NONE; n],
            newer: vec![NONE; n],
            oldest: vec![NONE; regions as usize],
            newest: vec![NONE; regions as usize],
            closed: vec![0; regions as usize],
        }
    }

    /// Superblocks of a region for data.
    pub fn per_region(&self) -> u32 {
        self.per_region - self.set_aside
    }

    /// Closed superblocks of a region: those that may be collected.
    pub fn closed(&self, region: u32) -> u32 {
        self.closed[region as usize]
    }

    /// The superblocks of a region for data.
    pub fn of_region(&self, region: u32) -> Range<u32> {
        region * self.per_region..(region + 1) * self.per_region - self.set_aside
    }

    #[inline]
    fn group_of(&self, region: u32, superblock: u32) -> usize {
        let within = superblock - region * self.per_region;
        (region * self.groups + within / GROUP) as usize
    }

    /// `units` more of `superblock` hold data now.
    #[inline]
    pub fn fill(&mut self, superblock: u32, units: u32) {
        self.valid[superblock as usize] += units;
    }

    /// `units` of `superblock` hold no data any more.
    #[inline(always)]
    pub fn invalidate(&mut self, region: u32, superblock: u32, units: u32) {
        let valid = &mut self.valid[superblock as usize];
        *valid -= units;
        let valid = *valid;
        let group = self.group_of(region, superblock);
        let least = &mut self.least[group];
        *least = (*least).min(valid);
    }

    /// Whether the superblock may be collected.
    pub fn is_closed(&self, superblock: u32) -> bool {
        self.valid[superblock as usize] & OPEN == 0
    }

    /// `units` more of `superblock`, which is closed, hold data again.
    pub fn refill(&mut self, region: u32, superblock: u32, units: u32) {
        self.valid[superblock as usize] += units;
        let group = self.group_of(region, superblock);
        self.least[group] = self.least_of(region, group as u32 - region * self.groups);
    }

    /// The superblock is full and may be collected from now on.
    pub fn close(&mut self, region: u32, superblock: u32, at: u64) {
        let s = superblock as usize;
        debug_assert!(self.valid[s] & OPEN != 0);
        self.valid[s] &= !OPEN;
        self.closed_at[s] = at;
        let group = self.group_of(region, superblock);
        self.least[group] = self.least[group].min(self.valid[s]);
        let r = region as usize;
        self.older[s] = self.newest[r];
        self.newer[s] = NONE;
        match self.newest[r] {
            NONE => self.oldest[r] = superblock,
            last => self.newer[last as usize] = superblock,
        }
        self.newest[r] = superblock;
        self.closed[r] += 1;
    }

    /// The superblock is being collected: no longer a candidate.
    pub fn reopen(&mut self, region: u32, superblock: u32) {
        let s = superblock as usize;
        // In release too: what a policy picks wrongly would be collected without end.
        assert!(self.valid[s] & OPEN == 0, "superblock {superblock} may not be collected");
        self.valid[s] |= OPEN;
        let (older, newer, r) = (self.older[s], self.newer[s], region as usize);
        match older {
            NONE => self.oldest[r] = newer,
            o => self.newer[o as usize] = newer,
        }
        match newer {
            NONE => self.newest[r] = older,
            n => self.older[n as usize] = older,
        }
        self.closed[r] -= 1;
        let group = self.group_of(region, superblock);
        self.least[group] = self.least_of(region, group as u32 - region * self.groups);
    }

    /// The superblocks of a group.
    fn of_group(&self, region: u32, group: u32) -> Range<u32> {
        let base = region * self.per_region + group * GROUP;
        base..(base + GROUP).min((region + 1) * self.per_region)
    }

    /// Least valid count of a group.
    fn least_of(&self, region: u32, group: u32) -> u32 {
        let Range { start, end } = self.of_group(region, group);
        self.valid[start as usize..end as usize].iter().fold(OPEN, |least, &valid| least.min(valid))
    }

    /// A closed superblock with the fewest valid units; the search begins after the last one found.
    pub fn least_valid(&mut self, region: u32) -> u32 {
        let (group, superblock) = self.find_least(region);
        self.hand[region as usize] = (group + 1) % self.groups;
        superblock
    }

    /// The same and its group; the next search begins there again.
    pub fn find_least(&self, region: u32) -> (u32, u32) {
        let groups = &self.least[(region * self.groups) as usize..][..self.groups as usize];
        let least = groups.iter().copied().min().unwrap_or(OPEN);
        debug_assert!(least < OPEN, "no superblock may be collected");
        let hand = self.hand[region as usize] as usize;
        let at = (hand..groups.len()).chain(0..hand).find(|&g| groups[g] == least).unwrap_or(0);
        debug_assert_eq!(self.least_of(region, at as u32), least, "of group {at}");
        let mut of_group = self.of_group(region, at as u32);
        let first = of_group.start;
        let superblock = of_group.find(|&s| self.valid[s as usize] == least).unwrap_or(first);
        (at as u32, superblock)
    }

    /// The closed superblocks of a region, the one closed first at the front.
    pub fn oldest_first(&self, region: u32) -> impl Iterator<Item = u32> + '_ {
        let mut next = self.oldest[region as usize];
        std::iter::from_fn(move || {
            let this = next;
            if this == NONE {
                return None;
            }
            next = self.newer[this as usize];
            Some(this)
        })
    }
}

persistent!(Blocks {
    parts {
        valid, erases, closed_at, least, hand, older, newer, oldest, newest, closed,
    }
    built { units_per_superblock, per_region, set_aside, groups }
});
