//! The two sinks of the translation layer: into the queues of the dies, or into the counters only.

use crate::ftl::{Filled, PageMap, Sink};
use crate::nand::{Cause, Flash, FlashCounters, NONE, Program};
use crate::persist::persistent;
use std::collections::VecDeque;

/// Flash with the controller's bookkeeping of what is under way.
pub struct Engine {
    /// Dies and channels.
    pub flash: Flash,
    /// The instant at which operations are queued.
    pub now: u64,
    /// The command on whose behalf programs of host data are queued; [`NONE`] with a write buffer.
    pub owner: u32,
    /// Programs queued for `owner`.
    pub queued: u32,
    /// Program units announced but not queued.
    pub open: u32,
    /// Host programs under way by flush epoch, the oldest in front.
    pub epochs: VecDeque<u32>,
    /// Number of the front epoch.
    pub first_epoch: u32,
    /// Units that left the write buffer without time.
    pub returned: u32,
    /// What went to the flash without time.
    pub untimed: FlashCounters,
    /// The command for which translation units are fetched, and how many have been.
    pub fetch_owner: u32,
    /// Fetches queued for it.
    pub fetches: u32,
    /// By translation unit: the read that brings it.
    arriving: Vec<u32>,
    /// One bit per physical unit: host data still in the controller's RAM.
    pending: Vec<u64>,
    units_per_program: u32,
}

persistent!(Engine {
    state {
        flash, now, owner, queued, open, epochs, first_epoch, returned, untimed, fetch_owner, fetches,
    }
    parts { arriving, pending }
    built { units_per_program }
});

impl Engine {
    /// An idle engine for all flash that the translation layer uses.
    pub fn new(flash: Flash, ftl: &PageMap) -> Self {
        let translation = ftl.mapping().table().map_or(0, PageMap::units);
        Engine {
            flash,
            now: 0,
            owner: NONE,
            queued: 0,
            open: 0,
            epochs: VecDeque::from([0]),
            first_epoch: 0,
            returned: 0,
            untimed: FlashCounters::default(),
            fetch_owner: NONE,
            fetches: 0,
            arriving: vec![NONE; translation as usize],
            pending: vec![0; ftl.physical_units().div_ceil(64) as usize],
            units_per_program: ftl.layout.units_per_program(),
        }
    }

    /// The read `op` has brought the translation unit `unit`.
    pub fn arrived(&mut self, unit: u32, op: u32) {
        let arriving = &mut self.arriving[unit as usize];
        // Unless it was evicted meanwhile and is being fetched again.
        if *arriving == op {
            *arriving = NONE;
        }
    }

    /// The units are in flash now.
    #[inline]
    pub fn release(&mut self, first: u32, units: u32) {
        for ppn in first..first + units {
            self.pending[(ppn >> 6) as usize] &= !(1 << (ppn & 63));
        }
    }

    /// Whether no flash operation is queued or under way.
    #[inline]
    pub fn quiet(&self) -> bool {
        self.flash.active() == self.open
    }

    /// The same engine as a sink that takes no time.
    pub fn untimed(&mut self) -> Instantly<'_> {
        Instantly { engine: self }
    }
}

impl Sink for Engine {
    #[inline]
    fn timed(&self) -> bool {
        true
    }
    #[inline]
    fn backlog(&self, die: u32) -> u32 {
        self.flash.backlog(die)
    }
    #[inline]
    fn in_ram(&self, ppn: u32) -> bool {
        self.pending[(ppn >> 6) as usize] >> (ppn & 63) & 1 != 0
    }
    #[inline]
    fn hold(&mut self, ppn: u32, units: u32) {
        for ppn in ppn..ppn + units {
            self.pending[(ppn >> 6) as usize] |= 1 << (ppn & 63);
        }
    }
    #[inline]
    fn open_program(&mut self, die: u32) -> u32 {
        self.open += 1;
        self.flash.open_program(self.now, die)
    }
    #[inline]
    fn close_program(&mut self, handle: u32, filled: Filled) {
        let host = filled.host_units > 0;
        if host {
            self.queued += 1;
            if let Some(count) = self.epochs.back_mut() {
                *count += 1;
            }
        }
        self.open -= 1;
        let program = Program {
            first: filled.first,
            units: filled.units,
            cause: filled.cause,
            owner: if host { self.owner } else { NONE },
            host_units: filled.host_units,
            epoch: self.first_epoch + self.epochs.len() as u32 - 1,
            slc: filled.slc,
        };
        self.flash.close_program(self.now, handle, program);
    }
    fn collect_read(&mut self, die: u32, units: u32, cause: Cause) -> u32 {
        self.flash.collect_read(self.now, die, units, cause)
    }
    fn modify_read(&mut self, die: u32, ppn: u32, units: u32, slc: bool, fetch: u32) -> u32 {
        if self.in_ram(ppn) {
            NONE
        } else if fetch == NONE {
            self.flash.read(self.now, die, units, slc, NONE)
        } else {
            self.flash.read_after(self.now, die, units, slc, NONE, fetch)
        }
    }
    fn map_read(&mut self, die: u32, ppn: u32, units: u32, unit: u32) -> u32 {
        if self.in_ram(ppn) {
            return NONE;
        }
        let read = self.flash.map_read(self.now, die, units, unit, self.fetch_owner);
        self.arriving[unit as usize] = read;
        self.fetches += 1;
        read
    }
    #[inline]
    fn map_arriving(&self, unit: u32) -> u32 {
        self.arriving[unit as usize]
    }
    fn stamp(&self, read: u32) -> u64 {
        self.flash.stamp(read)
    }
    fn under_way(&self, read: u32, stamp: u64) -> bool {
        self.flash.under_way(read, stamp)
    }
    fn feed(&mut self, read: u32, program: u32) {
        self.flash.feed(read, program);
    }
    fn copy(&mut self, die: u32, count: u32, cause: Cause) {
        self.flash.copy(self.now, die, count, cause);
    }
    fn erase(&mut self, die: u32, cause: Cause) {
        self.flash.erase(self.now, die, cause);
    }
}

/// Counts what the flash would have done, and takes no time.
pub struct Instantly<'a> {
    engine: &'a mut Engine,
}

impl Sink for Instantly<'_> {
    fn timed(&self) -> bool {
        false
    }
    fn backlog(&self, _: u32) -> u32 {
        0
    }
    fn in_ram(&self, _: u32) -> bool {
        false
    }
    fn hold(&mut self, _: u32, _: u32) {}
    fn open_program(&mut self, _: u32) -> u32 {
        NONE
    }
    fn close_program(&mut self, handle: u32, filled: Filled) {
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
    fn collect_read(&mut self, _: u32, units: u32, cause: Cause) -> u32 {
        self.engine.untimed.reads += 1;
        self.engine.untimed.reads_slc += u64::from(cause == Cause::Fold);
        self.engine.untimed.units_read += u64::from(units);
        NONE
    }
    fn modify_read(&mut self, _: u32, _: u32, units: u32, slc: bool, _: u32) -> u32 {
        self.engine.untimed.reads_slc += u64::from(slc);
        self.collect_read(NONE, units, Cause::HostRead)
    }
    fn map_read(&mut self, _: u32, _: u32, units: u32, _: u32) -> u32 {
        self.collect_read(NONE, units, Cause::Map)
    }
    fn map_arriving(&self, _: u32) -> u32 {
        NONE
    }
    fn feed(&mut self, _: u32, _: u32) {}
    fn copy(&mut self, _: u32, count: u32, _: Cause) {
        let untimed = &mut self.engine.untimed;
        let count = u64::from(count);
        untimed.reads += count;
        untimed.units_read += count;
        untimed.programs += count;
        untimed.units_programmed += count;
    }
    fn erase(&mut self, _: u32, _: Cause) {
        self.engine.untimed.erases += 1;
    }
}
