//! The simulated SSD: commands, write buffer and controller round a translation layer and flash.

mod absorb;
mod buffer;
mod build;
mod build_nand;
mod build_slc;
mod commands;
mod controller;
mod counters;
mod engine;
mod epochs;
mod fold;
mod held_erases;
mod keys;
mod page_reads;
mod parts;
mod persist;
mod power;
mod purge;
mod read_ahead;
mod settle;
mod steady;
mod trim;
mod untimed;
mod write_limit;

pub use buffer::{BuildDrain, DRAINS, Drain, DrainParameters, Held};
pub use keys::{
    BatchKeys, BufferKeys, CompressionKeys, ControllerKeys, FtlKeys, GcKeys, MapKeys, NandKeys,
    ParityKeys, ReadAheadKeys, SlcCacheKeys, SsdKeys, SuspendKeys, WearKeys,
};

use super::{
    Build, Built, Command, Completion, Device, Distance, Drawing, Missed, Op, PowerCounts, SECTOR,
};
use crate::contract::hand_over;
use crate::error::Result;
use crate::ftl::PageMap;
use crate::nand::{Finished, Geometry, NONE, OpKind};
use crate::sim::Calendar;
use crate::units::NEVER;
use buffer::Buffer;
use counters::HostCounters;
use engine::Engine;
use fold::IdleFolding;
use page_reads::{PageRead, PageReads};
use parts::fetches;
use read_ahead::{FETCH, ReadAhead};
use std::collections::VecDeque;
use trim::Trims;
use write_limit::WriteLimit;

/// What the drive does by the clock besides what its dies do: slots of its calendar.
const CONTROLLER: u32 = 0;
const IDLE: u32 = 1;
const PURGE: u32 = 2;
const LIMIT: u32 = 3;
const FOLD: u32 = 4;
const TRIM: u32 = 5;
const DRAIN: u32 = 6;
const SLOTS: usize = 7;

/// A command in the drive.
#[derive(Clone, Copy, Debug, Default)]
struct Active {
    command: Command,
    submitted: u64,
    /// When the controller had handled it, and when it entered the flash or the buffer.
    handled: u64,
    entered: u64,
    /// Of the time between: waiting for the limit on writes; before that is over, the start of it.
    limited: u64,
    /// Writes: bytes placed so far.
    placed: u64,
    /// Flash operations that it waits for.
    remaining: u32,
    digest: u64,
}

/// A simulated SSD.
pub struct Ssd {
    capacity: u64,
    full_capacity: Option<u64>,
    unit_bytes: u64,
    keep_versions: bool,
    rated_cycles: u32,
    ftl: PageMap,
    engine: Engine,
    /// What is not done by dies, which go first at the same instant.
    calendar: Calendar,
    t_erase: u64,
    buffer: Option<Buffer>,
    limit: Option<WriteLimit>,
    trims: Trims,
    commands: Vec<Active>,
    free: Vec<u32>,
    in_flight: u32,
    /// Writes, TRIMs and flushes that wait for room in the buffer, in order.
    waiting: VecDeque<u32>,
    /// Flushes that wait for their epoch to be programmed.
    flushing: VecDeque<u32>,
    purging: u32,
    /// The program whose end is letting commands go on.
    releasing: Option<Finished>,
    idle_after: Option<u64>,
    /// The host has been quiet for long enough, but the flash has not.
    idle_due: bool,
    folding: IdleFolding,
    last_reads: Vec<PageReads>,
    /// What each unit of the read at hand waits for in the map.
    map_fetches: Vec<u32>,
    serial: u64,
    read_ahead: Option<Box<ReadAhead>>,
    ready: Vec<Completion>,
    host: HostCounters,
    power: PowerCounts,
}

impl Ssd {
    /// Builds the drive that `keys` describe.
    pub fn new(keys: &SsdKeys, build: &Build) -> Result<Self> {
        let keys = &keys.as_exposed()?;
        let geometry: Geometry = keys.geometry()?;
        let ftl = keys.ftl(&geometry, build)?;
        let flash = keys.flash(&geometry, build)?;
        let buffer = keys.buffer(&geometry, build)?;
        Ok(Ssd {
            capacity: keys.capacity.0,
            full_capacity: keys.full_capacity.map(|size| size.0),
            unit_bytes: keys.ftl.mapping_unit.0,
            keep_versions: build.keep_versions,
            rated_cycles: keys.nand.rated_pe_cycles,
            engine: Engine::new(
                flash,
                &ftl,
                keys.units_per_read(&geometry),
                buffer.as_ref(),
                &keys.controller,
                &geometry,
            ),
            ftl,
            calendar: Calendar::new(SLOTS),
            t_erase: keys.nand.t_erase.0,
            buffer,
            limit: keys.controller.write_limit.map(WriteLimit::new),
            trims: Trims::new(keys.controller.trim_unit_time.0),
            commands: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            waiting: VecDeque::new(),
            flushing: VecDeque::new(),
            purging: NONE,
            releasing: None,
            idle_after: keys.ftl.gc.idle_after.map(|t| t.0),
            idle_due: false,
            folding: IdleFolding::new(keys.fold_idle_after()),
            last_reads: vec![PageReads::default(); geometry.dies() as usize],
            map_fetches: Vec::new(),
            serial: 0,
            read_ahead: keys.controller.read_ahead.as_ref().map(|r| {
                let window = r.size.0 / keys.ftl.mapping_unit.0;
                Box::new(ReadAhead::new(window as u32, geometry.dies()))
            }),
            ready: Vec::new(),
            host: HostCounters::default(),
            power: PowerCounts::default(),
        })
    }

    /// The translation layer, for tests and reports.
    pub fn ftl(&self) -> &PageMap {
        &self.ftl
    }

    /// The unit that a byte lies in. Their size is a power of two, and a division takes as long as all else that is
    /// asked of a hint.
    #[inline]
    fn unit_of(&self, offset: u64) -> u32 {
        (offset >> self.unit_bytes.trailing_zeros()) as u32
    }

    /// When a die or the drive itself does something next.
    #[inline]
    fn next_due(&self) -> u64 {
        self.engine.flash.calendar.earliest().min(self.calendar.earliest())
    }

    fn plan_idle(&mut self) {
        self.plan_fold();
        self.plan_drain(self.engine.now);
        if let Some(after) = self.idle_after {
            self.calendar.set(IDLE, self.engine.now + after);
        }
    }

    /// The host is back.
    fn cancel_idle(&mut self) {
        if self.idle_after.is_some() {
            self.calendar.set(IDLE, NEVER);
            self.idle_due = false;
        }
        self.cancel_fold();
        self.cancel_drain();
    }

    /// A flash operation of a die has ended.
    #[inline]
    fn finished(&mut self, die: u32, f: &Finished) {
        if self.keep_versions {
            self.note_content(die, f);
        }
        if f.kind == OpKind::Program {
            self.engine.release(f.first, f.units);
            self.engine.replaced(f);
            let freed = self.engine.moves_ended(die, f);
            if f.epoch != NONE {
                self.engine.host_program_ended(die, f);
                self.programmed(f);
            } else if freed && !self.waiting.is_empty() {
                self.drain_waiting();
            }
        } else if fetches(f) {
            self.engine.arrived(f.first, f.op);
        }
        if f.owner != NONE && f.owner & FETCH != 0 {
            self.fetched(f);
        } else if f.owner != NONE {
            let remaining = &mut self.commands[f.owner as usize].remaining;
            *remaining -= 1;
            if *remaining == 0 {
                self.complete_after(f.owner, f);
            }
        }
        if self.purging != NONE {
            self.try_purge();
        }
        if self.idle_due && self.engine.quiet() {
            self.idle_due = false;
            self.collect_idle();
        }
        self.fold_if_quiet();
    }

    /// Collects a superblock of each region that wants it, and goes on after another quiet while.
    fn collect_idle(&mut self) {
        if self.ftl.collect_idle(&mut self.engine) {
            if self.buffer.is_none() {
                self.ftl.pad_all(&mut self.engine);
            }
            self.plan_idle();
        }
    }

    /// The event of one of the drive's own slots.
    fn own_event(&mut self, slot: u32) {
        self.calendar.set(slot, NEVER);
        match slot {
            CONTROLLER => {
                if let Some((index, next)) = self.engine.controller.handled() {
                    if let Some(next) = next {
                        self.calendar.set(slot, next);
                    }
                    self.handled(index);
                }
            }
            IDLE => {
                // While the flash still works for what came before, as soon as it is done.
                self.idle_due = !self.engine.quiet();
                if !self.idle_due {
                    self.collect_idle();
                }
            }
            FOLD => self.begin_fold(),
            PURGE => {
                let index = std::mem::replace(&mut self.purging, NONE);
                self.complete_at_once(index);
                self.drain_waiting();
            }
            LIMIT => self.drain_waiting(),
            TRIM => self.trim_event(),
            DRAIN => self.drain_idle(),
            _ => unreachable!("slots of the drive"),
        }
    }
}

impl Device for Ssd {
    fn kind(&self) -> &'static str {
        "ssd"
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn submit(&mut self, now: u64, command: Command) {
        (self.engine.now, self.engine.flash.acting) = (now, NONE);
        let index = self.free.pop().unwrap_or(self.commands.len() as u32);
        if index as usize == self.commands.len() {
            self.commands.push(Active::default());
        }
        // Made where it lies: it is large.
        self.commands[index as usize] = Active {
            command,
            submitted: now,
            handled: now,
            entered: now,
            limited: 0,
            placed: 0,
            remaining: 0,
            digest: 0,
        };
        if self.in_flight == 0 {
            self.cancel_idle();
        }
        self.in_flight += 1;
        if self.engine.controller.is_free(now, command.op) {
            return self.serve(index, &command);
        }
        self.ftl.expect(self.unit_of(command.offset));
        if let Some(done) = self.engine.controller.take(now, index, command.op) {
            self.calendar.set(CONTROLLER, done);
        }
    }

    fn expect(&self, op: Op, offset: u64, ahead: Distance) {
        self.expect_unit(op, self.unit_of(offset), ahead);
    }

    fn heeds_hints(&self) -> bool {
        true
    }

    fn next_event(&self) -> u64 {
        if self.ready.is_empty() { self.next_due() } else { self.engine.now }
    }

    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        let mut ended = Finished::default();
        loop {
            let (of_dies, own) = (self.engine.flash.calendar.earliest(), self.calendar.earliest());
            let time = of_dies.min(own);
            if time > self.engine.now {
                if !self.ready.is_empty() {
                    hand_over(&mut self.ready, done);
                    return self.engine.now;
                }
                if time > limit || time == NEVER {
                    return limit;
                }
            }
            if own < of_dies {
                (self.engine.now, self.engine.flash.acting) = (time, NONE);
                self.own_event(self.calendar.first());
                continue;
            }
            let die = self.engine.flash.calendar.first();
            (self.engine.now, self.engine.flash.acting) = (time, die);
            if self.engine.flash.step(die, time, &mut ended) {
                self.finished(die, &ended);
            }
        }
    }

    fn take_stock(&mut self, now: u64) {
        self.engine.now = self.engine.flash.take_stock(now).max(self.engine.now);
    }

    fn settle(&mut self, now: u64) -> u64 {
        self.settle_flash(now)
    }

    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.lose_power(now, missed)
    }

    fn is_volatile(&self) -> bool {
        self.buffer.as_ref().is_some_and(|b| !b.protected)
    }

    fn apply(&mut self, command: &Command) {
        debug_assert_eq!(self.in_flight, 0, "the untimed path needs a drive at rest");
        let dirty = self.buffer.as_ref().map_or(0, |buffer| buffer.dirty.count());
        debug_assert_eq!(dirty, 0, "a drive at rest has let go of what it held");
        match command.op {
            Op::Read => {
                self.host.reads += 1;
                self.host.bytes_read += command.len;
                self.fetch_untimed(command);
            }
            Op::Write => {
                self.host.writes += 1;
                self.host.bytes_written += command.len;
                let mut placed = 0;
                while placed < command.len {
                    let (write, bytes) = self.unit_write(command, placed);
                    if let Some(ahead) = &mut self.read_ahead {
                        ahead.forget(write.lpn, write.lpn + 1);
                    }
                    self.ftl.write(&write, &mut self.engine.untimed());
                    placed += bytes;
                }
                if self.buffer.is_none() {
                    self.ftl.pad_all(&mut self.engine.untimed());
                }
            }
            Op::Trim => {
                self.host.trims += 1;
                self.trim_units(command, false);
            }
            Op::Flush => {
                self.host.flushes += 1;
                self.ftl.trims_are_durable();
                if self.buffer.as_ref().is_some_and(|b| !b.protected) {
                    self.ftl.pad_all(&mut self.engine.untimed());
                }
            }
            Op::Purge => {
                self.ftl.pad_all(&mut self.engine.untimed());
                self.ftl.pad_map(&mut self.engine.untimed());
                self.purge();
            }
        }
        let returned = std::mem::take(&mut self.engine.returned);
        if let Some(buffer) = &mut self.buffer {
            buffer.used -= returned;
        }
        // It has been quiet since the last instant it saw, and idle work may be due.
        self.plan_idle();
    }

    fn content(&self, offset: u64) -> u64 {
        let sector = (offset % self.unit_bytes / SECTOR) as u32;
        self.version(self.unit_of(offset), sector)
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        counters::visit(self, visit);
    }

    fn built(&self) -> Option<Built> {
        Some(counters::built(self))
    }

    fn draw_steady(&mut self, write_bytes: u64, drawing: &mut Drawing<'_>) -> bool {
        self.draw_steady_map(write_bytes, drawing)
    }

    fn verify(&self) {
        self.ftl.check();
        if let Some(buffer) = &self.buffer {
            buffer.check();
        }
    }
}
