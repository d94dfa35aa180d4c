//! Relocation: the one job that moves what is valid of a superblock elsewhere and erases it.
//!
//! Collection, wear levelling and folding of the SLC cache choose the superblock and say how fast it goes; on whose
//! behalf it goes decides where to: the lane. One read brings all that is valid of a program unit, and programs wait for
//! the reads of what they hold. Where a program unit is one unit of a region that is one die, copies within the die
//! take the place of both ([`copies`](super::copies)). Collection takes two program units of each channel in a row, so
//! that one is read while the other is programmed (assumed). What is folded finds room as data of the host does, and
//! stops where a program unit ends, so that none stays filled in part. Cost: constant for a unit.

use std::ops::Range;

use super::Sink;
use super::append::Unit;
use super::blocks::OPEN;
use super::kind::{Kind, Packed, Whole};
use super::open::KEPT;
use super::page_map::PageMap;
use super::space::Lane;
use crate::nand::{Cause, NONE};
use crate::persist::persistent;

/// Units ahead of the one that is moved whose map entries are fetched into the processor's cache.
const AHEAD: usize = 8;

/// A superblock whose valid units are being moved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Relocation {
    pub victim: u32,
    pub cause: Cause,
    /// Next offset to look at.
    pub cursor: u32,
    /// Valid units at the start, and units of the host for which it makes room.
    pub valid: u32,
    pub gain: u32,
    /// Paced: copies owed, times `gain`; negative when ahead.
    pub owed: i64,
}

persistent!(Relocation { state { victim, cause, cursor, valid, gain, owed } });

impl Relocation {
    /// Nothing of it has moved yet.
    pub fn new(victim: u32, valid: u32, gain: u32, cause: Cause) -> Self {
        Relocation { victim, cause, cursor: 0, valid, gain, owed: 0 }
    }

    /// Physical units that are due once the host has placed so many more, in multiples of `whole`.
    fn due(&mut self, length: u32, whole: u32) -> u32 {
        self.owed += i64::from(self.valid) * i64::from(length);
        match i64::from(self.gain) * i64::from(whole) {
            0 => u32::MAX,
            gain => (self.owed / gain * i64::from(whole)).clamp(0, i64::from(u32::MAX)) as u32,
        }
    }

    /// Where it is, as one number.
    pub fn position(&self) -> u64 {
        u64::from(self.victim) << 32 ^ u64::from(self.cursor) << 16 ^ self.owed as u64
    }
}

/// The program unit that a relocation has read last: what follows a unit that ends in it need not
/// wait for another read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sensed {
    /// Program unit, unique over the drive.
    pub program: u32,
    read: u32,
    /// By which the read is told from a later one of its number.
    stamp: u64,
}

persistent!(Sensed { state { program, read, stamp } });

impl Default for Sensed {
    fn default() -> Self {
        Sensed { program: NONE, read: NONE, stamp: 0 }
    }
}

impl PageMap {
    /// Moves what is due, in multiples of `whole`, of what a region moves once the host has placed so many physical
    /// units more. What goes beyond that is deducted from what is due next.
    pub(super) fn carry_share<S: Sink>(
        &mut self,
        region: u32,
        cause: Cause,
        (length, whole): (u32, u32),
        sink: &mut S,
    ) {
        let Some(job) = self.reclaim.job(region, cause) else { return };
        let (due, victim) = (job.due(length, whole), job.victim);
        if due == 0 && self.space.blocks.valid[victim as usize] != OPEN {
            return;
        }
        let moved = self.relocate(region, cause, due, sink);
        if let Some(job) = self.reclaim.job(region, cause) {
            job.owed -= i64::from(moved) * i64::from(job.gain);
        }
    }

    /// Moves `budget` valid units of what a region moves on this behalf, and on to the end of what is moved in a row;
    /// erases its superblock when none is left. Answers the number moved.
    pub(super) fn relocate<S: Sink>(
        &mut self,
        region: u32,
        cause: Cause,
        budget: u32,
        sink: &mut S,
    ) -> u32 {
        let Some(mut job) = *self.reclaim.job(region, cause) else { return 0 };
        let moved = if self.map.packs() {
            self.move_valid::<S, Packed>(region, &mut job, budget, sink)
        } else if cause != Cause::Fold && self.copies_within_die() {
            self.copy_within_die(region, &mut job, budget, sink)
        } else {
            self.move_valid::<S, Whole>(region, &mut job, budget, sink)
        };
        let left = self.space.blocks.valid[job.victim as usize] != OPEN;
        *self.reclaim.job(region, cause) = left.then_some(job);
        if !left {
            self.release(region, job.victim, cause, sink);
        }
        moved
    }

    /// The general case: through the controller.
    fn move_valid<S: Sink, K: Kind>(
        &mut self,
        region: u32,
        job: &mut Relocation,
        budget: u32,
        sink: &mut S,
    ) -> u32 {
        let units = self.layout.units_of(job.victim);
        let per_program = self.layout.units_per_program();
        let folds = job.cause == Cause::Fold;
        let (mut at, mut moved) = (units.start + job.cursor, 0);
        let mut sensed = Sensed::default();
        if K::PACKED && job.cursor > 0 {
            sensed = *self.reclaim.sensed(region);
            if sensed.read != NONE && !sink.under_way(sensed.read, sensed.stamp) {
                sensed.read = NONE;
            }
        }
        let step = match job.cause {
            Cause::Collection => per_program * self.programs_in_row(sink.pressed()),
            _ => per_program,
        };
        let (mut step_end, mut expected) = (at, at);
        for _ in 1..AHEAD {
            expected = self.expect_to_move(expected..units.end);
        }
        while let Some(first) = self.map.next_valid(at..units.end) {
            if folds || first >= step_end {
                if self.has_moved(region, job.cause, moved, budget) {
                    break;
                }
                step_end = units.start + ((first - units.start) / step + 1) * step;
            }
            let end = (self.layout.program_of(first) + 1) * per_program;
            sensed = self.sense(first, sensed, job.cause, sink);
            at = first;
            while let Some(from) = self.map.next_valid(at..end) {
                if folds {
                    if self.has_moved(region, job.cause, moved, budget) {
                        break;
                    }
                    self.make_room(region, 1, sink);
                }
                expected = self.expect_to_move(expected..units.end);
                let length = if K::PACKED { self.map.length_at(from) } else { 1 };
                let mut reads = [sensed.read, NONE];
                at = from + length;
                if K::PACKED
                    && at > end
                    && let Some((ppn, units)) = self.layout.program_units(from, length).last()
                {
                    sensed = self.sense(ppn, sensed, job.cause, sink);
                    reads[1] = sensed.read;
                    at = ppn + units;
                }
                self.move_unit::<S, K>(region, job.victim, from, (job.cause, reads), sink);
                moved += length;
            }
        }
        if K::PACKED {
            *self.reclaim.sensed(region) = sensed;
        }
        job.cursor = at - units.start;
        moved
    }

    /// The map entry of the first valid unit there will be needed soon; answers what comes after it.
    #[inline]
    fn expect_to_move(&self, places: Range<u32>) -> u32 {
        self.map.next_valid(places.clone()).map_or(places.end, |ppn| {
            self.map.expect(self.map.owner(ppn));
            ppn + 1
        })
    }

    /// Program units of a superblock that collection takes in a row, at least. Of many of them the host would have to
    /// wait for all, so that few are taken while it waits already.
    fn programs_in_row(&self, pressed: bool) -> u32 {
        match self.settings.in_row {
            Some(each) if !pressed => {
                let all = self.layout.units_per_superblock() / self.layout.units_per_program();
                each.saturating_mul(self.layout.dies_per_region).min(all)
            }
            _ => self.layout.programs_at_once(),
        }
    }

    /// Whether enough has moved for now.
    #[inline]
    fn has_moved(&self, region: u32, cause: Cause, moved: u32, budget: u32) -> bool {
        let lane = self.settings.lane_of(cause);
        let stops = || self.program_boundary(self.space.frontier(region, lane).offset);
        moved >= budget && (cause != Cause::Fold || stops())
    }

    /// Reads what is valid of the program unit in which `ppn` lies, unless it was read last.
    fn sense<S: Sink>(&self, ppn: u32, last: Sensed, cause: Cause, sink: &mut S) -> Sensed {
        let program = self.layout.program_of(ppn);
        if program == last.program {
            return last;
        }
        let first = program * self.layout.units_per_program();
        let places = first..first + self.layout.units_per_program();
        let (mut valid, mut range) = (0, ppn..ppn);
        for place in places.filter(|&ppn| self.map.is_valid(ppn)) {
            range = if valid == 0 { place..place + 1 } else { range.start..place + 1 };
            valid += 1;
        }
        let read = sink.collect_read(self.layout.die_of(ppn), range, valid, cause);
        Sensed { program, read, stamp: sink.stamp(read) }
    }

    /// Moves the logical unit at `from` in a superblock, on whose behalf and once these reads have brought it.
    #[inline]
    pub(super) fn move_unit<S: Sink, K: Kind>(
        &mut self,
        region: u32,
        superblock: u32,
        from: u32,
        (cause, reads): (Cause, [u32; 2]),
        sink: &mut S,
    ) {
        let lpn = self.map.owner(from);
        let units = if K::PACKED { self.map.length(lpn) } else { 1 };
        self.vacate(region, superblock, from, units);
        let (unit, lane) = (Unit::new(lpn).from(from, units), self.settings.lane_of(cause));
        let to = self.append_unit::<S, K>(region, lane, unit, (cause, reads), sink);
        self.copy_content(from, to, sink);
        self.mapping.moved(region, lpn);
    }

    /// All of a superblock has moved, or was overwritten: it is erased and goes where it came from.
    fn release<S: Sink>(&mut self, region: u32, superblock: u32, cause: Cause, sink: &mut S) {
        self.mapping.settle(region, sink);
        self.erase(superblock, cause, sink);
        if cause == Cause::Fold
            && let Some(cache) = &mut self.cache
            && cache.take_back(region, superblock, &self.layout)
        {
            return;
        }
        self.space.give_back(region, superblock);
        if cause != Cause::Wear {
            self.level_wear(region, sink);
        }
    }

    /// Erases a superblock of which nothing is valid: at once, or when what replaces its data is in program units that
    /// are closed, or, at the latest, when it is written again. Program units are not padded for its sake: that would
    /// cost write amplification which depends on how many units are valid in a superblock, thus on its size.
    fn erase<S: Sink>(&mut self, superblock: u32, cause: Cause, sink: &mut S) {
        if self.space.is_replaced(superblock) {
            self.space.put_off(superblock, cause);
        } else {
            self.erase_now(superblock, cause, sink);
        }
    }

    /// The program unit at a frontier has been closed: erases what waited for that.
    #[cold]
    pub(super) fn erase_replaced<S: Sink>(
        &mut self,
        region: u32,
        lane: Lane,
        units: u32,
        sink: &mut S,
    ) {
        for unit in 0..units {
            let from = self.space.placed(region, lane, units)[unit as usize].from;
            let superblock = self.layout.superblock_of(from);
            if from >= KEPT || !self.space.is_late(superblock) {
                continue;
            }
            if !self.space.is_replaced(superblock)
                && let Some(cause) = self.space.take_late(superblock)
            {
                self.erase_now(superblock, cause, sink);
            }
        }
    }

    fn erase_now<S: Sink>(&mut self, superblock: u32, cause: Cause, sink: &mut S) {
        let region = self.layout.region_of(superblock);
        for k in 0..self.layout.dies_per_region {
            let die = self.layout.die_in_region(region, k);
            sink.erase(die, self.first_superblock + superblock, cause);
        }
        self.space.blocks.erases[superblock as usize] += 1;
        self.counters.superblocks_erased += 1;
    }

    /// The superblock, which was free, is about to be written: it is erased now if that has been put off.
    #[cold]
    pub(super) fn erase_deferred<S: Sink>(&mut self, superblock: u32, sink: &mut S) {
        if !self.space.is_late(superblock) {
            return;
        }
        while let Some((region, lane)) = self.space.replaces(superblock) {
            self.pad(region, lane, lane.cause(), sink);
        }
        if self.space.next_replaces(superblock) {
            let Unit { lpn, from, .. } = self.space.next;
            self.contents.keep(lpn, from);
            self.space.next.from = KEPT;
        }
        // Unless padding has brought it about.
        if let Some(cause) = self.space.take_late(superblock) {
            self.erase_now(superblock, cause, sink);
        }
    }
}
