//! Copies within a die: relocation where a program unit is one unit and a region is one die.
//!
//! What is valid of a victim is queued as one run of copies, between which nothing else comes. All of it is looked up
//! before the first of it is placed, and what does not differ from unit to unit is done once for as many as go into one
//! superblock. Cost: constant for a unit, without a cache miss that was not asked for in time.

use super::append::UNITS_PER_LINE;
use super::mapping::Mapping;
use super::page_map::PageMap;
use super::relocate::Relocation;
use super::{Copied, Sink};
use crate::nand::{Cause, NONE};
use std::ops::Range;

/// A run of copies while it is placed.
struct Run {
    timed: bool,
    takes_time: bool,
    /// First unit in the drive of those that the map numbers from 0.
    base: u32,
    units: Vec<Copied>,
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

/// What a run of copies is made of, kept for its memory.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The run for the sink.
    run: Vec<Copied>,
    /// Where units lie, and which.
    moving: Vec<(u32, u32)>,
}

impl PageMap {
    /// Whether what moves can be queued as runs of copies: nothing else comes between them.
    pub(super) fn copies_within_die(&self) -> bool {
        let layout = &self.layout;
        layout.units_per_program() == 1 && layout.dies_per_region == 1 && !layout.has_parity()
    }

    /// Moves up to `budget` valid units of a superblock; answers how many.
    pub(super) fn copy_within_die<S: Sink>(
        &mut self,
        region: u32,
        job: &mut Relocation,
        budget: u32,
        sink: &mut S,
    ) -> u32 {
        let cause = job.cause;
        let Copies { run: mut units, mut moving } = std::mem::take(&mut self.reclaim.copies);
        units.clear();
        moving.clear();
        let frontier = self.space.frontier(region, self.settings.lane_of(cause));
        if frontier.superblock != NONE {
            let first = self.layout.first_unit(frontier.superblock) + frontier.offset;
            (0..4).for_each(|line| self.map.expect_new(first + line * UNITS_PER_LINE));
        }
        let Range { start, end } = self.layout.units_of(job.victim);
        self.map.take_valid(start + job.cursor..end, budget, &mut moving);
        let moved = moving.len() as u32;
        if let Some(&(last, _)) = moving.last() {
            job.cursor = last + 1 - start;
            self.space.blocks.valid[job.victim as usize] -= moved;
            let mut run = Run {
                takes_time: sink.takes_time(),
                timed: sink.timed(),
                base: self.layout.first_unit(self.first_superblock),
                units,
                erases: Vec::new(),
            };
            let mut left = &moving[..];
            while !left.is_empty() {
                left = self.place_copies(region, cause, left, &mut run);
            }
            // Before what is copied into them.
            for &(die, superblock, cause) in &run.erases {
                sink.erase(die, superblock, cause);
            }
            sink.copy(region, moved, &run.units, cause);
            units = run.units;
        }
        self.reclaim.copies = Copies { run: units, moving };
        moved
    }

    /// Places as many units at the frontier as its superblock has room for; answers the others.
    fn place_copies<'a>(
        &mut self,
        region: u32,
        cause: Cause,
        moving: &'a [(u32, u32)],
        run: &mut Run,
    ) -> &'a [(u32, u32)] {
        let lane = self.settings.lane_of(cause);
        if self.space.frontier(region, lane).superblock == NONE {
            self.open_superblock(region, lane, run);
        }
        let end = self.space.end_of(lane);
        let frontier = self.space.frontier_mut(region, lane);
        let (superblock, offset) = (frontier.superblock, frontier.offset);
        let (placed, left) = moving.split_at(moving.len().min((end - offset) as usize));
        let units = placed.len() as u32;
        (frontier.offset, frontier.handle, frontier.host_units) = (offset + units, NONE, 0);
        let first = self.layout.first_unit(superblock) + offset;
        self.counters.count_programs(cause, u64::from(units));
        self.map.mark(first, units);
        self.space.blocks.fill(superblock, units);
        for (to, &(_, lpn)) in (first..).zip(placed) {
            self.remap(lpn, to);
            self.map.set_owner(to, lpn);
        }
        // Nobody asks for what is done at once.
        if run.takes_time {
            let order = self.space.order + 1;
            self.space.order += u64::from(units);
            let places = (run.base + first..).zip(order..).zip(placed);
            let copied = |((to, order), &(from, lpn))| Copied { lpn, from, to, order };
            run.units.extend(places.map(copied));
        }
        self.follow_copies(region, first, placed, run);
        if offset + units == end {
            self.close_superblock(region, lane, superblock);
        }
        left
    }

    /// What else has to know of units copied to where `first` is the first place.
    fn follow_copies(&mut self, region: u32, first: u32, placed: &[(u32, u32)], run: &Run) {
        if self.contents.are_kept() {
            for (to, &(from, _)) in (first..).zip(placed) {
                if !run.timed {
                    self.contents.programmed(std::iter::once(to));
                }
                self.copy_content(from, to, run);
            }
        }
        if let Mapping::Cached(cached) = &mut self.mapping {
            placed.iter().for_each(|&(_, lpn)| cached.moved(region, lpn));
        }
    }
}
