//! Copies within a die: collection where a program unit is one unit and a region is one die.
//!
//! What is valid of a victim is queued as one run of copies, between which nothing else comes. All of it is looked up
//! before the first of it is placed, and what does not differ from unit to unit is done once for as many as go into one
//! superblock. Cost: constant for a unit, without a cache miss that was not asked for in time.

use super::append::{Piece, UNITS_PER_LINE, Unit};
use super::collect::Collecting;
use super::mapping::Mapping;
use super::page_map::PageMap;
use super::{Placed, Sink};
use crate::nand::{Cause, NONE};

/// A run of copies while it is placed.
struct Run {
    timed: bool,
    takes_time: bool,
    /// First unit in the drive of those that the map numbers from 0.
    base: u32,
    units: Vec<(u32, Placed)>,
    /// Late ones: die, superblock and cause.
    erases: Vec<(u32, u32, Cause)>,
}

impl Sink for Run {
    fn timed(&self) -> bool {
        self.timed
    }
    fn takes_time(&self) -> bool {
        self.takes_time
    }
    fn erase(&mut self, die: u32, superblock: u32, cause: Cause) {
        self.erases.push((die, superblock, cause));
    }
}

impl PageMap {
    /// Whether what moves can be queued as runs of copies: nothing else comes between them.
    pub(super) fn copies_within_die(&self) -> bool {
        let layout = &self.layout;
        layout.units_per_program() == 1 && layout.dies_per_region == 1 && !layout.has_parity()
    }

    /// Moves up to `units` valid units of a victim; answers from where on it is to be looked at next.
    pub(super) fn copy_within_die<S: Sink>(
        &mut self,
        region: u32,
        c: Collecting,
        units: u32,
        sink: &mut S,
    ) -> u32 {
        let mut moving = std::mem::take(&mut self.open.moving);
        moving.clear();
        self.expect_copies(region, c.cause);
        self.take_valid(&c, units, &mut moving);
        let Some(&(last, _)) = moving.last() else {
            self.open.moving = moving;
            return c.cursor;
        };
        self.blocks.valid[c.victim as usize] -= moving.len() as u32;
        let mut run = Run {
            takes_time: sink.takes_time(),
            timed: sink.timed(),
            base: self.layout.first_unit(self.open.first_superblock),
            units: std::mem::take(&mut self.open.run),
            erases: Vec::new(),
        };
        run.units.clear();
        let mut left = &moving[..];
        while !left.is_empty() {
            left = self.place_copies(region, c.cause, left, &mut run);
        }
        // Before what is copied into them.
        for &(die, superblock, cause) in &run.erases {
            sink.erase(die, superblock, cause);
        }
        sink.copy(region, moving.len() as u32, &run.units, c.cause);
        (self.open.run, self.open.moving) = (run.units, moving);
        last + 1 - self.layout.first_unit(c.victim)
    }

    /// Units will be copied to the frontier.
    fn expect_copies(&self, region: u32, cause: Cause) {
        let frontier = self.frontier(region, cause);
        if frontier.superblock != NONE {
            let first = self.layout.first_unit(frontier.superblock) + frontier.offset;
            (0..4).for_each(|line| self.expect_new(first + line * UNITS_PER_LINE));
        }
    }

    /// Takes up to `units` valid units off a victim: where they lie, and what they are.
    fn take_valid(&mut self, c: &Collecting, units: u32, moving: &mut Vec<(u32, u32)>) {
        let first = self.layout.first_unit(c.victim);
        let end = first + self.layout.units_per_superblock();
        let mut ppn = first + c.cursor;
        while ppn < end && (moving.len() as u32) < units {
            let (word, next) = ((ppn >> 6) as usize, (ppn | 63) + 1);
            let mut found = self.valid[word] & u64::MAX << (ppn & 63);
            if next > end {
                found &= (1 << (end & 63)) - 1;
            }
            let mut left = found;
            while left != 0 && (moving.len() as u32) < units {
                let from = (ppn & !63) + left.trailing_zeros();
                left &= left - 1;
                let lpn = self.owner[from as usize];
                self.expect(lpn);
                moving.push((from, lpn));
            }
            self.valid[word] ^= found ^ left;
            ppn = next;
        }
    }

    /// Places as many units at the frontier as its superblock has room for; answers the others.
    fn place_copies<'a>(
        &mut self,
        region: u32,
        cause: Cause,
        moving: &'a [(u32, u32)],
        run: &mut Run,
    ) -> &'a [(u32, u32)] {
        let lane = self.lane_of(cause);
        if self.regions[region as usize].frontier(lane).superblock == NONE {
            self.open_superblock(region, lane, run);
        }
        let end = self.units_of(lane);
        let frontier = self.regions[region as usize].frontier_mut(lane);
        let (superblock, offset) = (frontier.superblock, frontier.offset);
        let (placed, left) = moving.split_at(moving.len().min((end - offset) as usize));
        let units = placed.len() as u32;
        (frontier.offset, frontier.handle, frontier.host_units) = (offset + units, NONE, 0);
        let first = self.layout.first_unit(superblock) + offset;
        self.counters.count_programs(cause, u64::from(units));
        self.mark(first, units);
        self.blocks.fill(superblock, units);
        for (to, &(from, lpn)) in (first..).zip(placed) {
            self.remap(lpn, to);
            self.owner[to as usize] = lpn;
            // Nobody asks for what is done at once.
            if run.takes_time {
                let unit = Unit::new(lpn).from(from, 1);
                let piece = Piece { unit, units: 1, first: true, cause, reads: [NONE; 2] };
                run.units.push((run.base + to, self.placed_next(&piece)));
            }
        }
        self.follow_copies(region, first, placed, run);
        if offset + units == end {
            self.close_superblock(region, lane, superblock);
        }
        left
    }

    /// What else has to know of units copied to where `first` is the first place.
    fn follow_copies(&mut self, region: u32, first: u32, placed: &[(u32, u32)], run: &Run) {
        if self.content.is_some() {
            for (to, &(from, _)) in (first..).zip(placed) {
                if !run.timed {
                    self.programmed(std::iter::once(to));
                }
                self.copy_content(from, to, run);
            }
        }
        if let Mapping::Cached(cached) = &mut self.mapping {
            placed.iter().for_each(|&(_, lpn)| cached.moved(region, lpn));
        }
    }
}
