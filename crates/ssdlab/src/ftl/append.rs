//! Write frontiers: appending units, closing and padding program units.
//!
//! Parity inside the drive (Micron calls it RAIN): a superblock is cut into stripes of program units,
//! the last of each is parity of those before it. Consecutive program units of a superblock lie on consecutive dies of
//! its region, so a stripe spans as many dies as it is long, or all of the region; where collection works inside a die,
//! it lies on that die and protects against the loss of pages, not of the die. Parity is programmed as soon as
//! its stripe is full, after a flush left partly filled units in it too; the rest of an unfinished
//! stripe is in RAM. It holds no data of the host, is never read here (no page fails) and goes with
//! the superblock when that is erased. Cost: constant for a program unit.

use super::kind::{Kind, Packed};
use super::mapping::Mapping;
use super::open::{NOTHING, Placed, first_units};
use super::page_map::PageMap;
use super::space::{CLOSED, Frontier, LANES, Lane};
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
    /// Appends a logical unit where there is room or a free superblock to go on; answers its first physical unit. On
    /// whose behalf, and what brings it.
    #[inline(always)]
    pub(super) fn append_unit<S: Sink, K: Kind>(
        &mut self,
        region: u32,
        lane: Lane,
        unit: Unit,
        (cause, reads): (Cause, [u32; 2]),
        sink: &mut S,
    ) -> u32 {
        let piece = Piece { unit, units: 1, first: true, cause, reads };
        if K::PACKED {
            self.append_pieces(region, lane, piece, sink)
        } else {
            self.append_piece::<S, K>(region, lane, piece, sink)
        }
    }

    /// Appends a unit in as many pieces as it lies in program units.
    fn append_pieces<S: Sink>(
        &mut self,
        region: u32,
        lane: Lane,
        mut piece: Piece,
        sink: &mut S,
    ) -> u32 {
        let mut left = self.map.length(piece.unit.lpn);
        self.close_short(region, left, piece.cause, sink);
        let per_program = self.layout.units_per_program();
        let mut begin = NONE;
        while left > 0 {
            let offset = self.space.frontier(region, lane).offset;
            piece.units = left.min(per_program - offset % per_program);
            let ppn = self.append_piece::<S, Packed>(region, lane, piece, sink);
            if piece.first {
                begin = ppn;
            }
            piece.first = false;
            left -= piece.units;
        }
        begin
    }

    /// Appends a piece, for which the program unit being filled has room.
    /// Inlined, so that native data is not asked for its mode.
    #[inline(always)]
    fn append_piece<S: Sink, K: Kind>(
        &mut self,
        region: u32,
        lane: Lane,
        piece: Piece,
        sink: &mut S,
    ) -> u32 {
        let Piece { unit, units, first, cause, reads } = piece;
        if self.space.frontier(region, lane).superblock == NONE {
            self.open_superblock(region, lane, sink);
        }
        // Changed in a copy: fields just written are not read back as one.
        let mut frontier = *self.space.frontier(region, lane);
        let per_program = self.per_program::<K>();
        let superblock = frontier.superblock;
        let ppn = self.layout.first_unit(superblock) + frontier.offset;
        let within = if per_program == 1 { 0 } else { frontier.offset % per_program };
        if per_program == 1 && reads == [NONE; 2] {
            // It is not open before it is full.
            frontier.handle = NONE;
        } else if within == 0 || frontier.handle == NONE {
            frontier.handle = sink.open_program(self.layout.die_at(region, frontier.offset));
        }
        if within == 0 {
            frontier.host_units = 0;
        }
        let fed = reads.into_iter().filter(|&read| read != NONE);
        fed.for_each(|read| sink.feed(read, frontier.handle));
        frontier.offset += units;
        if matches!(cause, Cause::HostWrite | Cause::HostRead) && sink.timed() {
            frontier.host_units += units;
        }
        *self.space.frontier_mut(region, lane) = frontier;
        let count = u64::from(units);
        self.counters.count_programs(cause, count);
        self.counters.units_mapped += count;
        // Without time a program unit of one unit is in flash at once.
        let known = per_program > 1 || sink.takes_time() || self.contents.are_kept();
        let placed = if known { self.space.place(&piece) } else { NOTHING };
        if first {
            self.remap(unit.lpn, ppn);
            self.map.set_owner(ppn, unit.lpn);
        }
        self.map.mark(ppn, units);
        self.map.expect_new(ppn.wrapping_add(UNITS_PER_LINE));
        self.space.fill(region, superblock, units);
        if lane == Lane::Slc
            && let Some(cache) = &mut self.cache
        {
            cache.count(region, superblock, true);
        }
        if per_program > 1 {
            self.space.note(region, lane, within, units, placed);
        }
        if within + units == per_program {
            let single = (per_program == 1).then_some(placed);
            let units = (per_program, per_program);
            self.close_filled(region, frontier, lane, (units, cause), single, sink);
            if !K::BARE && self.layout.has_parity() {
                frontier.offset = self.append_parity(region, lane, sink);
            }
        } else {
            self.space.note_partial(region);
        }
        if frontier.offset == self.space.end_of(lane) {
            self.close_superblock(region, lane, superblock);
        }
        ppn
    }

    /// Programs the parity of the stripe that is complete at a frontier, if one is. Answers where
    /// the frontier is then.
    fn append_parity<S: Sink>(&mut self, region: u32, lane: Lane, sink: &mut S) -> u32 {
        let (end, units) = (self.space.end_of(lane), self.layout.units_per_program());
        let frontier = self.space.frontier_mut(region, lane);
        // Twice where the superblock ends with a stripe of a single program unit.
        while frontier.offset < end && self.layout.is_parity(frontier.offset) {
            let first = self.layout.first_unit(frontier.superblock) + frontier.offset;
            let slc = lane == Lane::Slc;
            let filled = Filled { first, units, host_units: 0, cause: Cause::Parity, slc };
            sink.program(self.layout.die_of(first), filled, &[]);
            frontier.offset += units;
            self.counters.programs_parity += u64::from(units);
        }
        frontier.offset
    }

    /// Takes the next free superblock for a frontier.
    #[cold]
    pub(super) fn open_superblock<S: Sink>(&mut self, region: u32, lane: Lane, sink: &mut S) {
        let superblock = self.space.take_free(region, lane, self.reclaim.wear.as_deref());
        self.start_superblock(region, lane, superblock, sink);
        if let Some(next) = self.space.free_of(region).next() {
            self.map.expect_new(self.layout.first_unit(next));
        }
    }

    /// A frontier goes on in a superblock, which was free.
    pub(super) fn start_superblock<S: Sink>(
        &mut self,
        region: u32,
        lane: Lane,
        superblock: u32,
        sink: &mut S,
    ) {
        if !self.space.late.is_empty() {
            self.erase_deferred(superblock, sink);
        }
        *self.space.frontier_mut(region, lane) = Frontier::at(superblock);
    }

    pub(super) fn close_superblock(&mut self, region: u32, lane: Lane, superblock: u32) {
        *self.space.frontier_mut(region, lane) = CLOSED;
        match &mut self.cache {
            Some(cache) if lane == Lane::Slc => cache.filled(region, superblock),
            _ => self.space.blocks.close(region, superblock, self.counters.host_units_written),
        }
    }

    /// Closes the program unit that ends at a frontier, with so many units in it of so many, on whose behalf; `single`: what
    /// it holds, where that is one unit.
    #[inline(always)]
    fn close_filled<S: Sink>(
        &mut self,
        region: u32,
        frontier: Frontier,
        lane: Lane,
        ((units, of), cause): ((u32, u32), Cause),
        single: Option<Placed>,
        sink: &mut S,
    ) {
        let end = self.layout.first_unit(frontier.superblock) + frontier.offset;
        let first = end - of;
        let host_units = frontier.host_units;
        let cause = if host_units > 0 { Cause::HostWrite } else { cause };
        let filled = Filled { first, units, host_units, cause, slc: lane == Lane::Slc };
        let placed = match &single {
            Some(single) => std::slice::from_ref(single),
            None => self.space.placed(region, lane, units),
        };
        if frontier.handle == NONE {
            sink.program(self.layout.die_at(region, frontier.offset - 1), filled, placed);
        } else {
            sink.close_program(frontier.handle, filled, placed);
        }
        if self.contents.are_kept() && !sink.timed() {
            self.contents.programmed(first_units(first, placed));
        }
        if !self.space.late.is_empty() && single.is_none() {
            self.erase_replaced(region, lane, units, sink);
        }
    }

    /// Pads the superblock being filled to its end where it has no room for `units` more.
    pub(super) fn close_short<S: Sink>(
        &mut self,
        region: u32,
        units: u32,
        cause: Cause,
        sink: &mut S,
    ) {
        let lane = self.settings.lane_of(cause);
        let Frontier { superblock, offset, .. } = *self.space.frontier(region, lane);
        if superblock != NONE && self.layout.room(superblock, offset) < units {
            // Less than a mapping unit, so that it is in the last program unit.
            self.pad(region, lane, cause, sink);
        }
    }

    /// Programs a partly filled program unit, leaving the rest empty.
    pub(super) fn pad<S: Sink>(&mut self, region: u32, lane: Lane, cause: Cause, sink: &mut S) {
        let per_program = self.layout.units_per_program();
        let mut frontier = *self.space.frontier(region, lane);
        let used = frontier.offset % per_program;
        if frontier.superblock == NONE || used == 0 {
            return;
        }
        if frontier.handle == NONE {
            frontier.handle = sink.open_program(self.layout.die_at(region, frontier.offset));
        }
        frontier.offset += per_program - used;
        *self.space.frontier_mut(region, lane) = frontier;
        self.counters.programs_padding += u64::from(per_program - used);
        self.close_filled(region, frontier, lane, ((used, per_program), cause), None, sink);
        if self.layout.has_parity() {
            frontier.offset = self.append_parity(region, lane, sink);
        }
        if frontier.offset == self.space.end_of(lane) {
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

    /// Programs everything that waits for a full program unit.
    #[inline(always)]
    pub fn pad_all<S: Sink>(&mut self, sink: &mut S) {
        if self.layout.units_per_program() == 1 {
            return;
        }
        while let Some(region) = self.space.take_partial() {
            self.pad_region(region, sink);
        }
    }

    #[inline(never)]
    fn pad_region<S: Sink>(&mut self, region: u32, sink: &mut S) {
        LANES.into_iter().for_each(|lane| self.pad(region, lane, lane.cause(), sink));
    }
}
