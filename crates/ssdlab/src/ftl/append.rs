//! Write frontiers: appending units, closing and padding program units.

use super::mapping::Mapping;
use super::open::{NOTHING, Placed, beginnings};
use super::page_map::PageMap;
use super::region::{CLOSED, Frontier, LANES, Lane, Region};
use super::{Filled, Sink};
use crate::nand::{Cause, NONE};

/// Entries of the table of owners in a line of the cache of the machine that simulates.
pub(super) const UNITS_PER_LINE: u32 = 16;

/// A logical unit about to be placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub lpn: u32,
    /// Where it lay before, and in how many physical units.
    pub from: u32,
    pub length: u32,
}

impl Unit {
    /// One that held no data.
    pub fn new(lpn: u32) -> Self {
        Unit { lpn, from: NONE, length: 0 }
    }

    /// The same with a place where it lay before.
    pub fn from(self, from: u32, length: u32) -> Self {
        Unit { from, length, ..self }
    }
}

/// Physical units of one logical unit about to be placed in one program unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Whose they are.
    pub unit: Unit,
    /// How many.
    pub units: u32,
    /// Whether the logical unit begins with them.
    pub first: bool,
    /// On whose behalf.
    pub cause: Cause,
    /// The reads that bring them.
    pub reads: [u32; 2],
}

impl PageMap {
    /// Whether the unit placed last, which ends at `offset`, filled a program unit.
    #[inline]
    pub(super) fn program_boundary(&self, offset: u32) -> bool {
        let per_program = self.layout.units_per_program();
        per_program == 1 || offset % per_program < self.last_length
    }

    /// The frontier, in native mode, of what is placed on this behalf.
    #[inline(always)]
    pub(super) fn lane_of(&self, cause: Cause) -> Lane {
        match cause {
            Cause::Collection if self.settings.separate_frontier => Lane::Collected,
            Cause::Wear => Lane::Wear,
            _ => Lane::Host,
        }
    }

    /// Where the region appends what is placed on this behalf.
    #[inline]
    pub(super) fn frontier(&self, region: u32, cause: Cause) -> &Frontier {
        self.regions[region as usize].frontier(self.lane_of(cause))
    }

    /// Appends a unit where there is room or a free superblock to go on.
    #[inline]
    pub(super) fn append<S: Sink>(
        &mut self,
        region: u32,
        unit: Unit,
        cause: Cause,
        read: u32,
        sink: &mut S,
    ) -> u32 {
        let piece = Piece { unit, units: 1, first: true, cause, reads: [read, NONE] };
        self.append_piece(region, piece, sink)
    }

    /// Appends a piece, for which the program unit being filled has room.
    #[inline(always)]
    pub(super) fn append_piece<S: Sink>(&mut self, region: u32, piece: Piece, sink: &mut S) -> u32 {
        self.append_to(region, self.lane_of(piece.cause), piece, sink)
    }

    /// Appends a unit of host data at the frontier in SLC mode, which is open.
    pub(super) fn append_slc<S: Sink>(
        &mut self,
        region: u32,
        unit: Unit,
        read: u32,
        sink: &mut S,
    ) -> u32 {
        let cause = Cause::HostWrite;
        let piece = Piece { unit, units: 1, first: true, cause, reads: [read, NONE] };
        self.append_to(region, Lane::Slc, piece, sink)
    }

    /// Appends a piece at a frontier of the region, which has room or a free superblock to go on.
    /// Inlined, so that native data is not asked for its mode.
    #[inline(always)]
    fn append_to<S: Sink>(&mut self, region: u32, lane: Lane, piece: Piece, sink: &mut S) -> u32 {
        let Piece { unit, units, first, cause, reads } = piece;
        let layout = self.layout;
        if self.regions[region as usize].frontier(lane).superblock == NONE {
            self.open_superblock(region, lane, sink);
        }
        let r = &mut self.regions[region as usize];
        let frontier = r.frontier_mut(lane);
        let per_program = layout.units_per_program();
        let superblock = frontier.superblock;
        let ppn = layout.first_unit(superblock) + frontier.offset;
        let within = if per_program == 1 { 0 } else { frontier.offset % per_program };
        if within == 0 || frontier.handle == NONE {
            frontier.handle = sink.open_program(layout.die_at(region, frontier.offset));
        }
        if within == 0 {
            frontier.host_units = 0;
        }
        if reads[0] != NONE {
            sink.feed(reads[0], frontier.handle);
        }
        if reads[1] != NONE {
            sink.feed(reads[1], frontier.handle);
        }
        frontier.offset += units;
        if matches!(cause, Cause::HostWrite | Cause::HostRead) && sink.timed() {
            frontier.host_units += units;
        }
        let mut frontier = *frontier;
        r.valid_units += units;
        let count = u64::from(units);
        self.counters.count_programs(cause, count);
        // Without time a program unit of one unit is in flash at once.
        let known = per_program > 1 || sink.takes_time();
        let placed = if known { self.placed_next(&piece) } else { NOTHING };
        if first {
            self.remap(unit.lpn, ppn);
            self.owner[ppn as usize] = unit.lpn;
        }
        self.mark(ppn, units);
        self.expect_new(ppn.wrapping_add(UNITS_PER_LINE));
        self.counters.units_mapped += count;
        self.blocks.fill(superblock, units);
        if lane == Lane::Slc
            && let Some(cache) = &mut self.cache
        {
            cache.count(region, superblock, true);
        }
        if per_program > 1 {
            self.note(region, lane, within, units, placed);
        }
        if within + units == per_program {
            if per_program == 1 {
                let filled = self.filled(&frontier, lane, 1, cause);
                self.close_program(frontier.handle, filled, placed, sink);
            } else {
                self.close_filled(region, frontier, lane, (per_program, cause), sink);
            }
            if layout.has_parity() {
                frontier.offset = self.append_parity(region, lane, sink);
            }
        } else {
            self.partial[(region >> 6) as usize] |= 1 << (region & 63);
        }
        if frontier.offset == self.units_of(lane) {
            self.close_superblock(region, lane, superblock);
        }
        ppn
    }

    /// Moves a unit to the host's frontier, where there is room for it, for merging.
    pub(super) fn relocate<S: Sink>(&mut self, lpn: u32, read: u32, sink: &mut S) {
        let from = self.lookup(lpn);
        self.invalidate(from);
        let to = self.append(0, Unit::new(lpn).from(from, 1), Cause::Merge, read, sink);
        self.copy_content(from, to, sink);
    }

    /// Takes the next free superblock for a frontier.
    #[cold]
    pub(super) fn open_superblock<S: Sink>(&mut self, region: u32, lane: Lane, sink: &mut S) {
        let superblock = self.take_free(region, lane);
        self.see_to_erase(superblock, sink);
        *self.regions[region as usize].frontier_mut(lane) = Frontier { superblock, ..CLOSED };
        if let Some(&next) = self.regions[region as usize].free.front() {
            self.expect_new(self.layout.first_unit(next));
        }
    }

    #[inline(always)]
    pub(super) fn units_of(&self, lane: Lane) -> u32 {
        if lane == Lane::Slc { self.slc_units() } else { self.layout.units_per_superblock() }
    }

    /// The program unit that ends at a frontier, with so many units in it, on whose behalf.
    #[inline]
    fn filled(&self, frontier: &Frontier, lane: Lane, units: u32, cause: Cause) -> Filled {
        let end = self.layout.first_unit(frontier.superblock) + frontier.offset;
        let first = end - self.layout.units_per_program();
        let cause = if frontier.host_units > 0 { Cause::HostWrite } else { cause };
        Filled { first, units, host_units: frontier.host_units, cause, slc: lane == Lane::Slc }
    }

    /// Closes the program unit that ends at a frontier, with so many units in it, on whose behalf.
    #[inline]
    fn close_filled<S: Sink>(
        &mut self,
        region: u32,
        frontier: Frontier,
        lane: Lane,
        (units, cause): (u32, Cause),
        sink: &mut S,
    ) {
        let filled = self.filled(&frontier, lane, units, cause);
        sink.close_program(frontier.handle, filled, self.placed(region, lane, units));
        if self.content.is_some() && !sink.timed() {
            let placed = self.placed(region, lane, units).to_vec();
            self.programmed(beginnings(filled.first, &placed));
        }
    }

    /// The same of a program unit that is one unit.
    #[inline]
    fn close_program<S: Sink>(
        &mut self,
        handle: u32,
        filled: Filled,
        placed: Placed,
        sink: &mut S,
    ) {
        sink.close_program(handle, filled, &[placed]);
        if self.content.is_some() && !sink.timed() {
            self.programmed(std::iter::once(filled.first));
        }
    }

    pub(super) fn close_superblock(&mut self, region: u32, lane: Lane, superblock: u32) {
        if lane == Lane::Slc {
            return self.close_slc(region, superblock);
        }
        *self.regions[region as usize].frontier_mut(lane) = CLOSED;
        self.blocks.close(region, superblock, self.counters.host_units_written);
    }

    /// Programs a partly filled program unit, leaving the rest empty.
    pub(super) fn pad<S: Sink>(&mut self, region: u32, lane: Lane, cause: Cause, sink: &mut S) {
        let per_program = self.layout.units_per_program();
        let frontier = self.regions[region as usize].frontier_mut(lane);
        let used = frontier.offset % per_program;
        if frontier.superblock == NONE || used == 0 {
            return;
        }
        if frontier.handle == NONE {
            frontier.handle = sink.open_program(self.layout.die_at(region, frontier.offset));
        }
        frontier.offset += per_program - used;
        self.counters.programs_padding += u64::from(per_program - used);
        let mut frontier = *frontier;
        self.close_filled(region, frontier, lane, (used, cause), sink);
        if self.layout.has_parity() {
            frontier.offset = self.append_parity(region, lane, sink);
        }
        if frontier.offset == self.units_of(lane) {
            self.close_superblock(region, lane, frontier.superblock);
        }
    }

    /// The same for translation units, which need not wait for less than a purge: the map can be
    /// found again from the data.
    pub fn pad_map<S: Sink>(&mut self, sink: &mut S) {
        if let Mapping::Cached(cached) = &mut self.mapping {
            cached.pad_all(sink);
        }
    }

    /// Units placed in program units that are not full yet: counted as programs, not yet in flash.
    pub fn open_units(&self) -> u64 {
        let per_program = self.layout.units_per_program();
        let open = |f: &Frontier| if f.superblock == NONE { 0 } else { f.offset % per_program };
        self.regions.iter().flat_map(Region::frontiers).map(|f| u64::from(open(f))).sum()
    }

    /// Programs everything that waits for a full program unit.
    pub fn pad_all<S: Sink>(&mut self, sink: &mut S) {
        for word in 0..self.partial.len() {
            let mut left = std::mem::take(&mut self.partial[word]);
            while left != 0 {
                let region = word as u32 * 64 + left.trailing_zeros();
                left &= left - 1;
                if region < self.layout.regions {
                    LANES.into_iter().for_each(|lane| self.pad(region, lane, lane.cause(), sink));
                }
            }
        }
    }
}
