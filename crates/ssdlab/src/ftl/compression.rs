//! Compression in the drive: a logical unit takes as many *granules* of flash as its data needs.
//!
//! As SandForce's DuraWrite: what shrinks leaves more of the flash as spare, takes less of a program,
//! and is collected for less. Physical space is counted in granules, of which a mapping unit that
//! does not shrink takes [`Layout::granules`](super::Layout::granules). Units lie one behind another
//! in the order of the log, whatever program unit they begin and end in (that of parity is passed over),
//! but whole within a superblock:
//! what is left at its end is padding. The map knows the first granule and their number, as in Cohen,
//! "Variable-size flash translation layer", US patent 9,495,288 (LSI, 2016), whose map holds address,
//! offset and length. What is stored is fixed when the unit is written; collection moves it as it is.
//!
//! Simplified: compressing takes no time and no room for headers; the write buffer holds what has been
//! compressed already; all of a mapping unit is compressed and read together; translation units of a
//! cached map do not shrink. Cost: constant for each program unit that a unit lies in.

use super::Sink;
use super::append::{Piece, Unit};
use super::collect::Collecting;
use super::page_map::{PageMap, UnitWrite};
use crate::nand::{Cause, NONE};
use crate::persist::persistent;

/// Granules that a unit takes after a write of `sectors` of its `of` sectors, at least one.
///
/// What is written shrinks by `percent`; of the rest each sector keeps its share of the `old`
/// granules, 0 for a unit that held nothing: zeros take no room.
///
/// ```
/// use ssdlab::ftl::compressed;
/// assert_eq!(compressed(8, 8, 8, 46, 0), 5);     // 4.32 granules of 8
/// assert_eq!(compressed(8, 8, 8, 100, 0), 1);    // where it lies must be known
/// assert_eq!(compressed(8, 2, 8, 100, 8), 6);    // a quarter of it is zeros now
/// ```
pub fn compressed(granules: u32, sectors: u32, of: u32, percent: u8, old: u32) -> u32 {
    let percent = u32::from(percent.min(100));
    let kept = old * (of - sectors) * 100;
    let written = granules * sectors * (100 - percent);
    (kept + written).div_ceil(100 * of).max(1)
}

/// The program unit that a collection has read last: what follows a unit that ends in it need not
/// wait for another read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sensed {
    /// Program unit, unique over the drive.
    program: u32,
    read: u32,
    /// By which the read is told from a later one of its number.
    stamp: u64,
}

persistent!(Sensed { state { program, read, stamp } });

const NOTHING: Sensed = Sensed { program: NONE, read: NONE, stamp: 0 };

/// What a page map keeps for units that shrink; empty without compression.
#[derive(Debug, Default)]
pub(super) struct Packing {
    /// By logical unit: granules that it takes.
    pub lengths: Vec<u8>,
    /// By region: what its collection has read last.
    sensed: Vec<Sensed>,
    /// By region: victims in a row that gained nothing.
    fruitless: Vec<u32>,
}

persistent!(Packing { parts { lengths, sensed, fruitless } });

impl Packing {
    /// For so many logical units of up to `granules` in so many regions.
    pub fn new(granules: u32, units: u32, regions: u32) -> Self {
        if granules == 1 {
            return Packing::default();
        }
        Packing {
            lengths: vec![0; units as usize],
            sensed: vec![NOTHING; regions as usize],
            fruitless: vec![0; regions as usize],
        }
    }

    /// Nothing holds data any more.
    pub fn purge(&mut self) {
        self.lengths.fill(0);
        self.sensed.fill(NOTHING);
        self.fruitless.fill(0);
    }

    /// Visits all that decides what is done next, for fingerprints.
    pub fn state(&self, add: &mut dyn FnMut(u64)) {
        self.lengths.iter().for_each(|&n| add(u64::from(n)));
        self.sensed.iter().for_each(|s| add(u64::from(s.program)));
        self.fruitless.iter().for_each(|&n| add(u64::from(n)));
    }
}

impl PageMap {
    /// Whether units take as many granules as their data needs.
    #[inline]
    pub(super) fn packs(&self) -> bool {
        !self.packing.lengths.is_empty()
    }

    /// Physical units that a logical unit takes, where it holds data: 1 without compression.
    #[inline]
    pub fn length(&self, lpn: u32) -> u32 {
        if self.packs() { u32::from(self.packing.lengths[lpn as usize]) } else { 1 }
    }

    /// The same for the unit that begins at `ppn`.
    #[inline]
    pub(super) fn length_at(&self, ppn: u32) -> u32 {
        if self.packs() { self.length(self.owner[ppn as usize]) } else { 1 }
    }

    /// Physical units that a unit will take when it has been written.
    #[inline]
    pub fn length_after(&self, write: &UnitWrite) -> u32 {
        if !self.packs() {
            return 1;
        }
        let old = if self.lookup(write.lpn) == NONE { 0 } else { self.length(write.lpn) };
        let (of, granules) = (self.sectors_per_unit, self.layout.granules());
        compressed(granules, write.sectors, of, write.compressible, old)
    }

    /// Counts physical units as holding data.
    #[inline]
    pub(super) fn mark(&mut self, ppn: u32, units: u32) {
        self.valid[(ppn >> 6) as usize] |= 1 << (ppn & 63);
        for more in 1..units {
            let ppn = ppn + more;
            self.valid[(ppn >> 6) as usize] |= 1 << (ppn & 63);
        }
    }

    /// Counts the physical units of the logical unit at `ppn` as holding none.
    #[inline]
    pub(super) fn unmark(&mut self, ppn: u32, units: u32) {
        if units > 1 {
            let layout = self.layout;
            layout.program_units(ppn, units).for_each(|(ppn, units)| self.unmark_part(ppn, units));
        } else {
            self.unmark_part(ppn, 1);
        }
    }

    #[inline]
    fn unmark_part(&mut self, ppn: u32, units: u32) {
        self.valid[(ppn >> 6) as usize] &= !(1 << (ppn & 63));
        for more in 1..units {
            let ppn = ppn + more;
            self.valid[(ppn >> 6) as usize] &= !(1 << (ppn & 63));
        }
    }

    /// Appends a logical unit at the region's frontier, which has room or a free superblock to go
    /// on; answers its first physical unit. `reads` bring it, `PACKED` says whether units are packed.
    #[inline]
    pub(super) fn append_unit<S: Sink, const PACKED: bool>(
        &mut self,
        region: u32,
        unit: Unit,
        cause: Cause,
        reads: [u32; 2],
        sink: &mut S,
    ) -> u32 {
        let piece = Piece { unit, units: 1, first: true, cause, reads };
        if PACKED {
            self.append_pieces(region, piece, sink)
        } else {
            self.append_piece(region, piece, sink)
        }
    }

    /// Appends a unit in as many pieces as it lies in program units.
    fn append_pieces<S: Sink>(&mut self, region: u32, mut piece: Piece, sink: &mut S) -> u32 {
        let mut left = self.length(piece.unit.lpn);
        self.close_short(region, left, piece.cause, sink);
        let per_program = self.layout.units_per_program();
        let mut begin = NONE;
        while left > 0 {
            let offset = self.frontier(region, piece.cause).offset;
            piece.units = left.min(per_program - offset % per_program);
            let ppn = self.append_piece(region, piece, sink);
            if piece.first {
                begin = ppn;
            }
            piece.first = false;
            left -= piece.units;
        }
        begin
    }

    /// Pads the superblock being filled to its end where it has no room for `units` more.
    pub(super) fn close_short<S: Sink>(
        &mut self,
        region: u32,
        units: u32,
        cause: Cause,
        sink: &mut S,
    ) {
        let frontier = self.frontier(region, cause);
        if frontier.superblock != NONE
            && self.layout.room(frontier.superblock, frontier.offset) < units
        {
            // Less than a mapping unit, so that it is in the last program unit.
            self.pad(region, self.lane_of(cause), cause, sink);
        }
    }

    /// Whether collecting a superblock surely yields a program unit, however its units come to lie.
    pub(super) fn gains(&self, superblock: u32) -> bool {
        let most = self.blocks.valid[superblock as usize] + self.layout.granules() - 1;
        let per_program = self.layout.units_per_program();
        most.div_ceil(per_program) * per_program < self.layout.data_units_per_superblock()
    }

    /// The superblock of a region that is collected next: what the policy says. Units that no longer
    /// fit together as before can take more room than they had; a policy that finds nothing to gain
    /// for a whole round is overruled.
    pub(super) fn pick_victim(&mut self, region: u32) -> u32 {
        let now = self.counters.host_units_written;
        let victim = self.victim.pick(&mut self.blocks, region, now);
        if !self.packs() {
            return victim;
        }
        let gains = self.gains(victim);
        let closed = self.blocks.closed(region);
        let fruitless = &mut self.packing.fruitless[region as usize];
        *fruitless = if gains { 0 } else { *fruitless + 1 };
        if *fruitless > closed { self.blocks.least_valid(region) } else { victim }
    }

    /// Queues the reads of the old content of a unit of which a write replaces a part, after that of
    /// its map entry: one for each program unit that it lies in.
    pub(super) fn modify_reads<S: Sink>(&self, old: u32, fetch: u32, sink: &mut S) -> [u32; 2] {
        let mut reads = [NONE; 2];
        let mut queued = 0;
        for (ppn, units) in self.layout.program_units(old, self.length_at(old)) {
            let slc = self.in_slc(ppn);
            let read = sink.modify_read(self.layout.die_of(ppn), ppn, units, slc, fetch);
            if read != NONE {
                reads[queued] = read;
                queued += 1;
            }
        }
        if queued == 0 {
            reads[0] = fetch;
        }
        reads
    }

    /// Moves at least `units` granules of the victim, to the end of a program unit and of the unit
    /// that lies across it; answers where to go on.
    pub(super) fn copy_packed<S: Sink>(
        &mut self,
        region: u32,
        c: &Collecting,
        units: u32,
        sink: &mut S,
    ) -> u32 {
        let first = self.layout.first_unit(c.victim);
        let per_program = self.layout.units_per_program();
        let (mut cursor, mut moved) = (c.cursor, 0);
        let mut sensed = if cursor == 0 { NOTHING } else { self.packing.sensed[region as usize] };
        if sensed.read != NONE && !sink.under_way(sensed.read, sensed.stamp) {
            sensed.read = NONE;
        }
        while moved < units {
            let Some(offset) = self.next_valid(c.victim, cursor) else { break };
            let end = (offset / per_program + 1) * per_program;
            sensed = self.sense(first + offset, sensed, c.cause, sink);
            cursor = offset;
            while let Some(offset) = self.next_valid(c.victim, cursor).filter(|&o| o < end) {
                let length = self.length_at(first + offset);
                let mut reads = [sensed.read, NONE];
                let mut next = offset + length;
                if next > end
                    && let Some((ppn, units)) =
                        self.layout.program_units(first + offset, length).last()
                {
                    sensed = self.sense(ppn, sensed, c.cause, sink);
                    reads[1] = sensed.read;
                    next = ppn + units - first;
                }
                self.move_unit::<S, true>(region, first + offset, c, reads, sink);
                cursor = next;
                moved += length;
            }
            cursor = cursor.max(end);
        }
        self.packing.sensed[region as usize] = sensed;
        cursor
    }

    /// Reads what is valid of the program unit in which `ppn` lies, unless it was read last.
    fn sense<S: Sink>(&self, ppn: u32, last: Sensed, cause: Cause, sink: &mut S) -> Sensed {
        let program = self.layout.program_of(ppn);
        if program == last.program {
            return last;
        }
        let begin = program * self.layout.units_per_program();
        let end = begin + self.layout.units_per_program();
        let together = (begin..end).filter(|&ppn| self.is_valid(ppn)).count() as u32;
        let read = sink.collect_read(self.layout.die_of(ppn), together, cause);
        Sensed { program, read, stamp: sink.stamp(read) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_units_take_what_is_left_rounded_up_to_granules() {
        for percent in 0..=100u8 {
            let bytes = 4096.0 * f64::from(100 - percent) / 100.0;
            for granules in [1, 2, 8, 64] {
                let expected = (bytes / (4096.0 / f64::from(granules))).ceil().max(1.0) as u32;
                assert_eq!(compressed(granules, 8, 8, percent, 3), expected, "{percent} %");
            }
        }
    }

    #[test]
    fn a_part_counts_by_its_share_and_the_rest_stays() {
        for percent in [0, 25, 50, 75, 87] {
            let whole = compressed(8, 8, 8, percent, 0);
            for sectors in 1..=8 {
                // The same data again, part by part, takes no more.
                assert_eq!(compressed(8, sectors, 8, percent, whole), whole, "{percent} %");
                // On a unit of zeros it takes its own room only.
                let own = (sectors * 8 * (100 - u32::from(percent))).div_ceil(800).max(1);
                assert_eq!(compressed(8, sectors, 8, percent, 0), own);
            }
        }
        assert_eq!(compressed(8, 4, 8, 0, 1), 5);
    }
}
