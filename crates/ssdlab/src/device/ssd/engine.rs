//! The sink of the translation layer into the queues of the dies; `untimed.rs` has the one into the counters only.

use super::buffer::Buffer;
use super::controller::Controller;
use super::epochs::Epochs;
use super::held_erases::{Closed, HeldErases};
use super::keys::ControllerKeys;
use super::untimed::Instantly;
use crate::ftl::{Copied, Cut, Filled, Layout, PageMap, Placed, Sink, first_units};
use crate::nand::{
    Cause, Dropped, FastDiv, Finished, Flash, FlashCounters, Geometry, NONE, OpKind, Place, Program,
};
use crate::persist::persistent;
use crate::sim::{Table, words};
use std::ops::Range;

/// Flash with the controller's bookkeeping of what is under way.
pub struct Engine {
    /// Dies and channels.
    pub flash: Flash,
    /// The cores, which what is queued takes time of, too.
    pub controller: Controller,
    /// The instant at which operations are queued.
    pub now: u64,
    /// The command on whose behalf programs of host data are queued; [`NONE`] with a write buffer.
    pub owner: u32,
    /// Programs queued for `owner`.
    pub queued: u32,
    /// Program units announced but not queued.
    pub open: u32,
    /// By die: programs of host data from the write buffer that are queued or under way; empty without one.
    programs: Vec<u32>,
    /// Dies with less than [`PROGRAMS`] of them.
    free_dies: u32,
    /// By die: units in programs queued or under way that the host did not write; empty where they take no room
    /// in the write buffer.
    moves: Vec<u32>,
    /// Room that they take.
    pub held_by_moves: u32,
    /// Writes of the host wait for room.
    pub pressed: bool,
    /// Programs of host data, queued or under way.
    pub(super) epochs: Epochs,
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
    pending: Table<u64>,
    /// By flash operation: the units of a program, in as many places as it has units.
    pub(super) placed: Vec<Placed>,
    /// By flash operation: the program unit that waits to be programmed.
    pub(super) closed: Vec<Closed>,
    /// One bit per flash operation: a program, queued or under way, for which erases may have to wait; none where programs
    /// have one unit.
    pub(super) holding: Vec<u64>,
    /// By flash operation: the run of a copy.
    runs: Vec<Vec<Copied>>,
    /// Program units closed so far.
    pub(super) sequence: u64,
    pub(super) held: HeldErases,
    /// The superblock that no erase has to wait for, as long as no more program units are closed.
    pub(super) unheld: (u32, u64),
    pub(super) units_per_program: u32,
    /// Numbering of the units of data, and of translation units, of which the first has this number in the drive.
    pub(super) data: Layout,
    pub(super) table: Layout,
    pub(super) table_first: u32,
    /// Time of a core for each unit that is moved, and for each translation unit.
    relocate_time: u64,
    map_update_time: u64,
    /// Physical units that one sense operation can bring.
    pub by_read: FastDiv,
}

/// Programs that keep a die busy: one under way, and one ready behind it.
const PROGRAMS: u32 = 2;

persistent!(Engine {
    state {
        flash, now, owner, queued, open, epochs, returned, untimed, fetch_owner, fetches,
        placed, closed, holding, runs, sequence, held, unheld, free_dies, held_by_moves, pressed,
        controller,
    }
    parts { arriving, pending, programs, moves }
    built { units_per_program, data, table, table_first, relocate_time, map_update_time, by_read }
});

impl Engine {
    /// An idle engine for all flash that the translation layer uses.
    pub fn new(
        flash: Flash,
        ftl: &PageMap,
        by_read: u32,
        buffer: Option<&Buffer>,
        controller: &ControllerKeys,
        geometry: &Geometry,
    ) -> Self {
        let table = ftl.mapping().table();
        let translation = table.map_or(0, PageMap::units);
        let dies = flash.dies();
        let holds_moves = buffer.is_some_and(|buffer| buffer.holds_moves);
        Engine {
            flash,
            controller: Controller::new(controller, geometry),
            programs: vec![0; if buffer.is_some() { dies as usize } else { 0 }],
            free_dies: dies,
            moves: vec![0; if holds_moves { dies as usize } else { 0 }],
            held_by_moves: 0,
            pressed: false,
            now: 0,
            owner: NONE,
            queued: 0,
            open: 0,
            epochs: Epochs::default(),
            returned: 0,
            untimed: FlashCounters::default(),
            fetch_owner: NONE,
            fetches: 0,
            arriving: vec![NONE; translation as usize],
            pending: Table::new(ftl.physical_units().div_ceil(64) as usize),
            placed: Vec::new(),
            closed: Vec::new(),
            holding: Vec::new(),
            runs: Vec::new(),
            sequence: 0,
            held: HeldErases::default(),
            unheld: (NONE, 0),
            units_per_program: ftl.layout.units_per_program(),
            data: ftl.layout,
            table: table.map_or(ftl.layout, |table| table.layout),
            table_first: ftl.layout.units() as u32,
            relocate_time: controller.relocate_time.0,
            map_update_time: controller.map_update_time.0,
            by_read: FastDiv::new(by_read),
        }
    }

    /// Whether a die can take another program of host data from the write buffer.
    #[inline]
    pub fn has_free_die(&self) -> bool {
        self.free_dies > 0
    }

    /// A program of host data is queued.
    #[inline(always)]
    fn host_program_queued(&mut self, first: u32) {
        if self.programs.is_empty() {
            return;
        }
        let programs = &mut self.programs[self.data.die_of(first) as usize];
        *programs += 1;
        self.free_dies -= u32::from(*programs == PROGRAMS);
    }

    /// A program of host data on `die` has ended.
    #[inline]
    pub fn host_program_ended(&mut self, die: u32, f: &Finished) {
        if f.host_units == 0 || self.programs.is_empty() {
            return;
        }
        let programs = &mut self.programs[die as usize];
        self.free_dies += u32::from(*programs == PROGRAMS);
        *programs -= 1;
    }

    /// A program is queued: of what is moved to its die, so much is in RAM as is programmed next. The rest is read
    /// when there is room for it.
    #[inline(always)]
    fn moves_queued(&mut self, die: u32, filled: &Filled) {
        if self.moves.is_empty() {
            return;
        }
        let most = PROGRAMS * self.units_per_program;
        let moves = &mut self.moves[die as usize];
        let before = (*moves).min(most);
        *moves += filled.units - filled.host_units;
        self.held_by_moves += (*moves).min(most) - before;
    }

    /// A program on `die` has ended. Answers whether there is more room for data of the host.
    #[inline]
    pub fn moves_ended(&mut self, die: u32, f: &Finished) -> bool {
        let Some(moves) = self.moves.get_mut(die as usize) else { return false };
        let most = PROGRAMS * self.units_per_program;
        let before = (*moves).min(most);
        *moves -= f.units - f.host_units;
        let freed = before - (*moves).min(most);
        self.held_by_moves -= freed;
        freed > 0
    }

    /// The read `op` has brought the translation unit `unit`.
    pub fn arrived(&mut self, unit: u32, op: u32) {
        let arriving = &mut self.arriving[unit as usize];
        // Unless it was evicted meanwhile and is being fetched again.
        if *arriving == op {
            *arriving = NONE;
        }
    }

    /// It will be asked whether a unit is in RAM.
    #[inline]
    pub fn expect(&self, ppn: u32) {
        self.pending.expect((ppn >> 6) as usize);
    }

    /// The units are in flash now.
    #[inline]
    pub fn release(&mut self, first: u32, units: u32) {
        let mut clear = |(word, bits): (usize, u64)| {
            self.pending.put(word, self.pending.at(word) & !bits);
        };
        match units {
            1 => clear(((first >> 6) as usize, 1 << (first & 63))),
            _ => words(first, units).for_each(clear),
        }
    }

    /// Where units begin that a program which has ended has brought into flash.
    pub fn programmed(&self, f: &Finished) -> impl Iterator<Item = u32> + '_ {
        let at = f.op as usize * self.units_per_program as usize;
        first_units(f.first, &self.placed[at..at + f.units as usize])
    }

    /// The units of a copy that has ended, and of the copies made so far by one that has not.
    pub fn copied(&self, op: u32, left: u32) -> impl Iterator<Item = u32> + '_ {
        let run = &self.runs[op as usize];
        run[..run.len() - left as usize].iter().map(|unit| unit.to)
    }

    /// Program units that were dropped.
    pub fn cut(&self, dropped: &[Dropped]) -> Vec<Cut> {
        let units = self.units_per_program as usize;
        let mut cut = Vec::new();
        for d in dropped {
            let op = d.op as usize;
            match d.kind {
                OpKind::Program => cut.push(Cut {
                    first: d.first,
                    placed: self.placed[op * units..(op + 1) * units].to_vec(),
                }),
                OpKind::Copy => {
                    let made = self.runs[op].len() - d.repeat as usize;
                    let left = self.runs[op][made..].iter();
                    cut.extend(
                        left.map(|unit| Cut { first: unit.to, placed: vec![unit.placed()] }),
                    );
                }
                OpKind::Read | OpKind::Erase => {}
            }
        }
        cut
    }

    /// After what was under way has been dropped: nothing waits, and what was dropped counts as done without time.
    pub fn power_cut(&mut self, dropped: &[Dropped]) {
        let untimed = &mut self.untimed;
        for d in dropped {
            match d.kind {
                OpKind::Program => {
                    untimed.programs += 1;
                    untimed.programs_slc += u64::from(d.slc);
                    untimed.units_programmed += u64::from(self.units_per_program);
                }
                OpKind::Copy => untimed.count_copies(u64::from(d.repeat)),
                OpKind::Erase => untimed.erases += 1,
                OpKind::Read => {}
            }
        }
        self.untimed.erases += self.unqueued().count() as u64;
        (self.owner, self.queued, self.fetch_owner, self.fetches) = (NONE, 0, NONE, 0);
        self.epochs.clear();
        self.arriving.fill(NONE);
        self.pending.fill(0);
        self.programs.fill(0);
        self.moves.fill(0);
        self.held_by_moves = 0;
        self.free_dies = self.flash.dies();
        self.closed.fill(Closed::default());
        self.holding.fill(0);
        self.held.clear();
    }

    /// So many physical units are moved, which takes a core.
    #[inline]
    fn relocated(&mut self, units: u32) {
        let time = u64::from(units) * self.relocate_time / u64::from(self.data.granules());
        self.controller.add_own_work(self.now, time);
    }

    /// Where a unit is copied from and to.
    pub(super) fn places_of(&self, &Copied { from, to, .. }: &Copied) -> (Place, Place) {
        // What moves stays in its part of the drive, which numbers its units for itself.
        let first = if to >= self.table_first { self.table_first } else { 0 };
        (self.place(first + from, 1, false), self.place(to, 1, false))
    }

    /// Copies that take the times of the first of them.
    fn copy_alike(&mut self, die: u32, count: u32, run: &[Copied], cause: Cause) {
        let places = match run.first() {
            Some(copy) if self.flash.times_differ() => self.places_of(copy),
            _ => (Place::anywhere(false), Place::anywhere(false)),
        };
        let op = self.flash.copy(self.now, die, count, places, cause);
        self.sequence += 1;
        if op as usize >= self.runs.len() {
            self.runs.resize(op as usize + 1, Vec::new());
        }
        self.runs[op as usize].clear();
        self.runs[op as usize].extend_from_slice(run);
    }

    /// The place of what is read to be moved: what is folded, and nothing else, lies in blocks in SLC mode.
    #[inline]
    pub(super) fn place_to_move(&self, range: Range<u32>, cause: Cause) -> Place {
        self.place(range.start, range.end - range.start, cause == Cause::Fold)
    }

    /// Where `units` from `ppn` on are for the flash, with `slc` in a block in SLC mode.
    #[inline]
    pub(super) fn place(&self, ppn: u32, units: u32, slc: bool) -> Place {
        if self.flash.looks_at_places() {
            self.look_up_place(ppn, units, slc)
        } else {
            Place::anywhere(slc)
        }
    }

    fn look_up_place(&self, ppn: u32, units: u32, slc: bool) -> Place {
        let (nth, last) = (self.by_read.quotient(ppn), ppn + units.max(1) - 1);
        let (group, plane) = self.flash.register_of(nth);
        let whole = last == ppn || self.by_read.quotient(last) == nth;
        let at = Place { group: if whole { group } else { NONE }, plane, ..Place::anywhere(slc) };
        if !self.flash.times_differ() {
            return at;
        }
        let (layout, block, first) = match self.table_first {
            table if ppn >= table => (&self.table, self.data.superblock_of(table), table),
            _ => (&self.data, 0, 0),
        };
        let (superblock, page) = layout.page_of(ppn - first);
        let end = if last == ppn { page } else { layout.page_of(last - first).1 };
        Place { block: block + superblock, page, pages: end + 1 - page, ..at }
    }

    /// Queues a read of `units` from `ppn` on of one page (or page of every plane) of `die`, not before the operation
    /// `fetch` is done, if there is one.
    #[inline]
    pub fn read(&mut self, die: u32, range: (u32, u32), slc: bool, owner: u32, fetch: u32) -> u32 {
        let (ppn, units) = range;
        let at = self.place(ppn, units, slc);
        match fetch {
            NONE => self.flash.read(self.now, die, units, at, owner),
            _ => self.flash.read_after(self.now, die, units, at, owner, fetch),
        }
    }

    /// What the flash is to be told of a program unit that is queued now: behind the erase of its superblock.
    #[inline(always)]
    fn program_of(&mut self, die: u32, filled: &Filled, placed: &[Placed]) -> Program {
        self.queue_held(filled.first);
        self.sequence += 1;
        let host = filled.host_units > 0;
        let owner = if host { self.owner } else { NONE };
        self.queued += u32::from(owner != NONE);
        if host {
            self.host_program_queued(filled.first);
        }
        // A flush waits for data of the host that was placed without time, too.
        let new = host || filled.cause != Cause::Map && placed.iter().any(|unit| unit.new);
        if filled.cause == Cause::Map {
            let time = u64::from(filled.units) * self.map_update_time;
            self.controller.add_own_work(self.now, time);
        }
        Program {
            first: filled.first,
            units: filled.units,
            cause: filled.cause,
            owner,
            host_units: filled.host_units,
            epoch: if new { self.epochs.queued() } else { NONE },
            slc: filled.slc,
            time: self
                .flash
                .programming(die, filled.slc, || self.look_up_place(filled.first, 1, filled.slc)),
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
    fn pressed(&self) -> bool {
        self.pressed
    }
    #[inline]
    fn in_ram(&self, ppn: u32) -> bool {
        self.pending.at((ppn >> 6) as usize) >> (ppn & 63) & 1 != 0
    }
    #[inline(always)]
    fn hold(&mut self, ppn: u32, units: u32) {
        words(ppn, units)
            .for_each(|(word, bits)| self.pending.put(word, self.pending.at(word) | bits));
    }
    #[inline]
    fn open_program(&mut self, die: u32) -> u32 {
        self.open += 1;
        self.flash.open_program(self.now, die)
    }
    #[inline]
    fn close_program(&mut self, handle: u32, filled: Filled, placed: &[Placed]) {
        let die = self.flash.die_of(handle);
        let program = self.program_of(die, &filled, placed);
        self.moves_queued(die, &filled);
        self.note(handle, filled.first, placed);
        self.open -= 1;
        self.flash.close_program(self.now, handle, program);
    }
    #[inline(always)]
    fn program(&mut self, die: u32, filled: Filled, placed: &[Placed]) {
        let program = self.program_of(die, &filled, placed);
        self.moves_queued(die, &filled);
        let op = self.flash.program(self.now, die, program);
        self.note(op, filled.first, placed);
    }
    fn collect_read(&mut self, die: u32, range: Range<u32>, units: u32, cause: Cause) -> u32 {
        self.relocated(units);
        let at = self.place_to_move(range, cause);
        self.flash.collect_read(self.now, die, units, at, cause)
    }
    fn modify_read(&mut self, die: u32, ppn: u32, units: u32, slc: bool, fetch: u32) -> u32 {
        if self.in_ram(ppn) { NONE } else { self.read(die, (ppn, units), slc, NONE, fetch) }
    }
    fn map_read(&mut self, die: u32, ppn: u32, units: u32, unit: u32) -> u32 {
        if self.in_ram(ppn) {
            return NONE;
        }
        self.controller.add_own_work(self.now, self.map_update_time);
        let at = self.place(ppn, units, false);
        let read = self.flash.map_read(self.now, die, units, at, unit, self.fetch_owner);
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
    fn copy(&mut self, die: u32, count: u32, run: &[Copied], cause: Cause) {
        if !self.held.is_empty() {
            run.iter().for_each(|unit| self.queue_held(unit.to));
        }
        self.relocated(count);
        if self.flash.times_differ() {
            // Each takes its own time.
            run.chunks(1).for_each(|one| self.copy_alike(die, 1, one, cause));
        } else {
            self.copy_alike(die, count, run, cause);
        }
    }
    fn erase(&mut self, die: u32, superblock: u32, cause: Cause) {
        if !self.hold_erase(die, superblock, cause) {
            self.flash.erase(self.now, die, superblock, cause, false);
        }
    }
}
