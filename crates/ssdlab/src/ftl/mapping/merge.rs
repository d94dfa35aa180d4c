//! Merging the fragments of an extent map, in the foreground of a write.

use super::Mapping;
use crate::ftl::append::Unit;
use crate::ftl::kind::Whole;
use crate::ftl::space::Lane;
use crate::ftl::{PageMap, Sink};
use crate::nand::{Cause, NONE};

/// Segments merged for one unit written. A write adds at most two entries and a merge saves at
/// least one; more than that is needed only to make up for what collection has split meanwhile. So
/// collection may overdraw the table for a while.
const MERGES_PER_WRITE: u32 = 4;

impl PageMap {
    /// Merges segments until the table has room for what the next write of a unit may split.
    #[inline(always)]
    pub(in crate::ftl) fn make_entries<S: Sink>(&mut self, sink: &mut S) {
        if matches!(self.mapping, Mapping::Extent(_)) {
            self.make_extents(sink);
        }
    }

    fn make_extents<S: Sink>(&mut self, sink: &mut S) {
        for _ in 0..MERGES_PER_WRITE {
            let Mapping::Extent(table) = &mut self.mapping else { return };
            if table.has_room() {
                return;
            }
            let Some(segment) = table.most_split() else { return };
            self.merge(segment, sink);
        }
    }

    /// Reads all units of a segment and writes them again, in order, with zeros for those that held
    /// no data: from then on they do.
    fn merge<S: Sink>(&mut self, segment: u32, sink: &mut S) {
        let Mapping::Extent(table) = &mut self.mapping else { return };
        table.merges += 1;
        let units = table.segment(segment);
        // The program unit last read from, and its read.
        let mut recent = (NONE, NONE);
        for lpn in units.clone() {
            // There is one region: extents lie over the whole drive.
            self.make_room(0, 1, sink);
            let from = self.lookup(lpn);
            if from == NONE {
                let why = (Cause::Merge, [NONE; 2]);
                let to = self.append_unit::<S, Whole>(0, Lane::Host, Unit::new(lpn), why, sink);
                self.copy_content(NONE, to, sink);
                continue;
            }
            let program = self.layout.program_of(from);
            if program != recent.0 {
                recent = (program, self.merge_read(lpn, units.end, sink));
            }
            let (superblock, why) =
                (self.layout.superblock_of(from), (Cause::Merge, [recent.1, NONE]));
            self.move_unit::<S, Whole>(0, superblock, from, why, sink);
        }
    }

    /// Reads the unit `lpn` and those that follow it in its program unit.
    fn merge_read<S: Sink>(&mut self, lpn: u32, end: u32, sink: &mut S) -> u32 {
        let from = self.lookup(lpn);
        if sink.in_ram(from) {
            return NONE;
        }
        let program = self.layout.program_of(from);
        let follows = |&n: &u32| {
            let ppn = self.lookup(n);
            ppn == from + (n - lpn) && self.layout.program_of(ppn) == program
        };
        let units = (lpn..end).take_while(follows).count() as u32;
        sink.collect_read(self.layout.die_of(from), from..from + units, units, Cause::Merge)
    }
}
