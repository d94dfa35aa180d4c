//! Parity inside the drive (Micron calls it RAIN): a superblock is cut into stripes of program units,
//! the last of each is parity of those before it.
//!
//! Consecutive program units of a superblock lie on consecutive dies of its region, so a stripe spans
//! as many dies as it is long, or all of the region; where collection works inside a die, it lies on
//! that die and protects against the loss of pages, not of the die. Parity is programmed as soon as
//! its stripe is full, after a flush left partly filled units in it too; the rest of an unfinished
//! stripe is in RAM. It holds no data of the host, is never read here (no page fails) and goes with
//! the superblock when that is erased. Cost: constant for a program unit.

use super::page_map::PageMap;
use super::region::Lane;
use super::{Filled, Sink};
use crate::nand::Cause;

impl PageMap {
    /// Programs the parity of the stripe that is complete at a frontier, if one is. Answers where
    /// the frontier is then.
    pub(super) fn append_parity<S: Sink>(&mut self, region: u32, lane: Lane, sink: &mut S) -> u32 {
        let layout = self.layout;
        let (end, units) = (self.units_of(lane), layout.units_per_program());
        let frontier = self.regions[region as usize].frontier_mut(lane);
        // Twice where the superblock ends with a stripe of a single program unit.
        while frontier.offset < end && layout.is_parity(frontier.offset) {
            let first = layout.first_unit(frontier.superblock) + frontier.offset;
            let handle = sink.open_program(layout.die_of(first));
            sink.close_program(
                handle,
                Filled {
                    first,
                    units,
                    host_units: 0,
                    cause: Cause::Parity,
                    slc: lane == Lane::Slc,
                },
                &[],
            );
            frontier.offset += units;
            self.counters.programs_parity += u64::from(units);
        }
        frontier.offset
    }
}
