//! The sink of the translation layer that takes no time.

use super::engine::Engine;
use crate::ftl::{Copied, Filled, Placed, Sink};
use crate::nand::{Cause, NONE, Place};
use std::ops::Range;

/// Counts what the flash would have done, and takes no time.
pub struct Instantly<'a> {
    pub(super) engine: &'a mut Engine,
}

impl Instantly<'_> {
    fn read(&mut self, die: u32, at: Place, units: u32) -> u32 {
        let senses = at.pages + self.engine.flash.retries(die, at);
        let untimed = &mut self.engine.untimed;
        untimed.reads += u64::from(senses);
        untimed.reads_slc += if at.slc { u64::from(at.pages) } else { 0 };
        untimed.units_read += u64::from(units);
        NONE
    }
}

impl Sink for Instantly<'_> {
    fn close_program(&mut self, handle: u32, filled: Filled, _: &[Placed]) {
        let engine = &mut *self.engine;
        if handle != NONE {
            // Begun in time, ended without: the data is in flash now.
            engine.flash.discard_program(handle);
            engine.open -= 1;
            engine.release(filled.first, filled.units);
            engine.returned += filled.host_units;
        }
        engine.untimed.programs += 1;
        engine.untimed.programs_slc += u64::from(filled.slc);
        engine.untimed.units_programmed += u64::from(engine.units_per_program);
    }
    fn collect_read(&mut self, die: u32, range: Range<u32>, units: u32, cause: Cause) -> u32 {
        let at = self.engine.place_to_move(range, cause);
        self.read(die, at, units)
    }
    fn modify_read(&mut self, die: u32, ppn: u32, units: u32, slc: bool, _: u32) -> u32 {
        let at = self.engine.place(ppn, units, slc);
        self.read(die, at, units)
    }
    fn map_read(&mut self, die: u32, ppn: u32, units: u32, _: u32) -> u32 {
        let at = self.engine.place(ppn, units, false);
        self.read(die, at, units)
    }
    fn copy(&mut self, die: u32, count: u32, run: &[Copied], _: Cause) {
        let engine = &mut *self.engine;
        engine.untimed.count_copies(u64::from(count));
        if engine.flash.times_differ() {
            let retries =
                run.iter().map(|copy| engine.flash.retries(die, engine.places_of(copy).0));
            engine.untimed.reads += u64::from(retries.sum::<u32>());
        }
    }
    fn erase(&mut self, _: u32, _: u32, _: Cause) {
        self.engine.untimed.erases += 1;
    }
}
