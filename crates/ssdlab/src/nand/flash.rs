//! Dies and channels executing operations in virtual time.
//!
//! A die does one thing at a time and a channel carries one transfer at a time. A read senses into
//! the page register and holds the register until its transfer is done; a program fills the
//! register first; collection on one die reads, moves the unit through the controller (so that
//! it is corrected) and programs it. All of that is one small state machine per die, with one
//! pending event each in the [`Calendar`].

mod cause;
mod channel;
mod counters;
mod execute;
mod feed;
mod ops;
mod persist;
mod planes;
mod power;
mod registers;
mod riders;
mod rows;

pub use cause::Cause;
use cause::{CAUSES, OwnWork};
use channel::Channel;
pub use counters::FlashCounters;
use ops::{EMPTY, FlashOp, Queue};
pub use ops::{Finished, OpKind, Place, Program};
pub use power::{Dropped, Work};
pub use registers::Registers;
use registers::{Aside, Beside, Plane};
use riders::Riders;
use rows::Rows;

use super::geometry::Geometry;
use super::schedule::Policy;
use super::timing::Timing;
use crate::sim::Calendar;

/// No operation, no owner, no unit.
pub const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    Sense,
    /// Until the transfer is over, the wait for the channel included.
    Bus,
    /// Until the program is over, the transfer before it included.
    Program,
    /// One copy after the other, until the last one is programmed: see [`Rows`].
    Copying,
    Erase,
    Suspending,
    /// Planes read, and nothing has the whole die.
    Planes,
}

#[derive(Clone, Copy, Debug)]
struct Die {
    /// Programs, erases and copies, in order.
    stream: Queue,
    /// Reads of what is to be moved. They may overtake a program that waits for its data on another
    /// die, never an operation placed before them that could begin.
    moving: Queue,
    reads: Queue,
    current: u32,
    /// For whom the current operation is.
    cause: Cause,
    suspended: u32,
    /// When the current stretch of work began.
    since: u64,
    /// When the transfer of what is programmed is over.
    filled: u64,
    /// Time left of the suspended operation.
    remaining: u64,
    busy: [u64; CAUSES],
    own: OwnWork,
    /// Standing still since then because the head of the stream waits for data: on whose behalf.
    stuck: Option<Cause>,
    channel: u16,
    phase: Phase,
    suspended_phase: Phase,
}

/// A die that has never done anything, on the first channel.
const IDLE: Die = Die {
    stream: EMPTY,
    moving: EMPTY,
    reads: EMPTY,
    current: NONE,
    cause: Cause::HostRead,
    suspended: NONE,
    since: 0,
    filled: 0,
    remaining: 0,
    busy: [0; CAUSES],
    own: OwnWork([0; 4]),
    stuck: None,
    channel: 0,
    phase: Phase::Idle,
    suspended_phase: Phase::Idle,
};

/// All dies and channels of a drive.
pub struct Flash {
    /// By die.
    pub calendar: Calendar,
    /// Executed so far.
    pub counters: FlashCounters,
    timing: Timing,
    /// Whether times depend on places.
    places: bool,
    units_per_program: u32,
    policy: Policy,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    /// By channel.
    rows: Vec<Rows>,
    ops: Vec<FlashOp>,
    /// By operation: what its die had done on the drive's own behalf when it was ready; once it has begun, what of that
    /// it has waited for.
    own_at_ready: Vec<OwnWork>,
    /// Operations whose place is free; the last is taken first.
    free: Vec<u32>,
    /// Operation fed and the next in the list, for reads that feed more than two.
    feeds: Vec<(u32, u32)>,
    free_feed: u32,
    order: u64,
    active: u32,
    /// The die whose event is happening; [`NONE`]: all that is due has happened.
    pub acting: u32,
    registers: Registers,
    /// What dies do beside the work of the whole die, where they can do anything; their planes, those of a die in a row.
    beside: Vec<Beside>,
    planes: Vec<Plane>,
    /// By operation.
    asides: Vec<Aside>,
    riders: Riders,
    /// Until when the firmware has a page sensed again, for each that it can at a time; none: for any number.
    retrying: Vec<u64>,
}

impl Flash {
    /// Idle flash.
    pub fn new(geometry: &Geometry, timing: Timing, registers: Registers, policy: Policy) -> Self {
        let beside = if registers.any() { geometry.dies() } else { 0 };
        let dies = (0..geometry.dies())
            .map(|d| Die { channel: (d % geometry.channels) as u16, ..IDLE })
            .collect();
        Flash {
            calendar: Calendar::new(geometry.dies() as usize),
            counters: FlashCounters::default(),
            timing,
            places: timing.depends_on_place(),
            units_per_program: geometry.units_per_program(),
            policy,
            dies,
            channels: vec![Channel::default(); geometry.channels as usize],
            rows: vec![Rows::default(); geometry.channels as usize],
            ops: Vec::new(),
            own_at_ready: Vec::new(),
            free: Vec::new(),
            feeds: Vec::new(),
            free_feed: NONE,
            order: 0,
            active: 0,
            acting: NONE,
            registers,
            beside: vec![Beside::IDLE; beside as usize],
            planes: vec![Plane::IDLE; (beside * registers.planes) as usize],
            asides: Vec::new(),
            riders: Riders::new(registers.keep),
            retrying: vec![0; timing.retries.at_once as usize],
        }
    }

    /// Whether it must be told where operations work.
    #[inline]
    pub fn looks_at_places(&self) -> bool {
        !self.beside.is_empty() || self.places
    }

    /// Whether times depend on places.
    #[inline]
    pub fn times_differ(&self) -> bool {
        self.places
    }

    /// Senses of the pages at `at` beyond one each.
    #[inline]
    pub fn retries(&self, die: u32, at: Place) -> u32 {
        self.timing.retries(die, at).0
    }

    /// Operations queued or under way.
    #[inline]
    pub fn active(&self) -> u32 {
        self.active
    }

    /// Number of dies.
    pub fn dies(&self) -> u32 {
        self.dies.len() as u32
    }

    /// The channel of die `d`.
    #[inline]
    fn channel_of(&self, d: u32) -> usize {
        usize::from(self.dies[d as usize].channel)
    }

    /// The die of an operation.
    #[inline]
    pub fn die_of(&self, op: u32) -> u32 {
        u32::from(self.ops[op as usize].die)
    }

    /// Whether die `d` has anything to do, as a rough backlog: 0 idle, 1 busy, 2 queued behind.
    #[inline]
    pub fn backlog(&self, d: u32) -> u32 {
        let die = &self.dies[d as usize];
        let queued = die.stream.head != NONE || die.moving.head != NONE;
        u32::from(die.phase != Phase::Idle) + u32::from(queued)
    }

    /// Busy time of all dies by cause up to their last change, and of all channels up to `now`.
    pub fn busy(&self, now: u64) -> ([u64; CAUSES], u64) {
        let mut sum = [0; CAUSES];
        for die in &self.dies {
            for (s, b) in sum.iter_mut().zip(die.busy) {
                *s += b;
            }
        }
        (sum, self.channels.iter().map(|c| c.busy(now)).sum())
    }

    #[inline]
    fn sensing(&self, die: u32, at: Place) -> u64 {
        match self.places {
            true => self.timing.sensing(die, at),
            false => self.timing.sensing_anywhere(at.slc),
        }
    }

    /// Time of programming; asks where only if that depends on it.
    #[inline(always)]
    pub fn programming(&self, die: u32, slc: bool, at: impl FnOnce() -> Place) -> u64 {
        match self.places {
            true => self.timing.programming(die, at()),
            false => self.timing.programming_anywhere(slc),
        }
    }

    /// Queues a host read of `units` at a place.
    pub fn read(&mut self, now: u64, die: u32, units: u32, at: Place, owner: u32) -> u32 {
        let op = self.read_op(now, die, units, at, Cause::HostRead);
        self.queue_read(now, FlashOp { owner, ..op }, at)
    }

    #[inline]
    fn read_op(&mut self, now: u64, die: u32, units: u32, at: Place, cause: Cause) -> FlashOp {
        let mut op = self.template(now, die, OpKind::Read, cause);
        op.units = units;
        op.slc = at.slc;
        op.sensing = self.sensing(die, at);
        op.senses = at.pages as u16;
        if self.places {
            let (senses, time) = self.timing.retries(die, at);
            op.senses += senses as u16;
            op.working = time;
        }
        op
    }

    #[inline]
    fn queue_read(&mut self, now: u64, op: FlashOp, at: Place) -> u32 {
        let index = self.allocate_read(op, at);
        self.admit_read(index, now);
        index
    }

    #[inline]
    fn allocate_read(&mut self, op: FlashOp, at: Place) -> u32 {
        let index = self.allocate(op, OwnWork::default());
        if let Some(aside) = self.asides.get_mut(index as usize) {
            (aside.group, aside.plane) = (at.group, at.plane);
        }
        index
    }

    /// A read may begin from now on.
    #[inline]
    fn admit_read(&mut self, index: u32, now: u64) {
        let die = u32::from(self.ops[index as usize].die);
        if !self.beside.is_empty() {
            return self.admit_plane_read(die, index, now);
        }
        self.own_at_ready[index as usize] = self.own_work(die, now);
        Self::push(&mut self.dies[die as usize].reads, &mut self.ops, index);
        self.arrival(die, now, true);
    }

    /// Queues a read of the translation unit `unit`, which is so many units and needed by a command.
    pub fn map_read(
        &mut self,
        now: u64,
        die: u32,
        units: u32,
        at: Place,
        unit: u32,
        owner: u32,
    ) -> u32 {
        let op = self.read_op(now, die, units, at, Cause::Map);
        self.queue_read(now, FlashOp { owner, first: unit, ..op }, at)
    }

    /// So many more units to transfer for a read queued at this very instant.
    pub fn widen_read(&mut self, op: u32, units: u32) {
        // The transfer begins with an event of its own, so that it has not begun.
        self.ops[op as usize].units += units;
    }

    /// Queues a read for collection, wear levelling, merging or folding.
    pub fn collect_read(&mut self, now: u64, die: u32, units: u32, at: Place, cause: Cause) -> u32 {
        let op = self.read_op(now, die, units, at, cause);
        let index = self.allocate_read(FlashOp { moves: true, ..op }, at);
        Self::push(&mut self.dies[die as usize].moving, &mut self.ops, index);
        self.arrival(die, now, false);
        index
    }

    /// Announces a program that is filled later; [`Flash::close_program`] queues it.
    pub fn open_program(&mut self, now: u64, die: u32) -> u32 {
        let op = self.template(now, die, OpKind::Program, Cause::HostWrite);
        self.allocate(op, OwnWork::default())
    }

    /// Queues a program announced before.
    #[inline(always)]
    pub fn close_program(&mut self, now: u64, index: u32, program: Program) {
        self.order += 1;
        let die = u32::from(self.ops[index as usize].die);
        let op = &mut self.ops[index as usize];
        op.working = program.time;
        op.order = self.order;
        op.queued = now;
        op.first = program.first;
        op.units = program.units;
        op.cause = program.cause;
        op.owner = program.owner;
        op.host_units = program.host_units;
        op.epoch = program.epoch;
        op.slc = program.slc;
        self.enqueue(now, die, index);
    }

    /// Queues a program that was not announced.
    #[inline(always)]
    pub fn program(&mut self, now: u64, die: u32, program: Program) -> u32 {
        let Program { first, units, cause, owner, host_units, epoch, slc, time: working } = program;
        let op = self.template(now, die, OpKind::Program, cause);
        let op = FlashOp { working, first, units, owner, host_units, epoch, slc, ..op };
        self.enqueue_new(now, die, op)
    }

    /// Forgets a program announced but never queued.
    pub fn discard_program(&mut self, index: u32) {
        self.active -= 1;
        let op = &mut self.ops[index as usize];
        op.discarded = true;
        if op.awaits == 0 {
            self.free.push(index);
        }
    }

    /// Queues `repeat` copies of single units within a die that take the times of those places.
    pub fn copy(
        &mut self,
        now: u64,
        die: u32,
        repeat: u32,
        (from, to): (Place, Place),
        cause: Cause,
    ) -> u32 {
        let mut op = self.template(now, die, OpKind::Copy, cause);
        op.sensing = self.sensing(die, from);
        if self.places {
            let (senses, time) = self.timing.retries(die, from);
            op.senses += senses as u16;
            op.sensing += time;
        }
        op.working = self.programming(die, to.slc, || to);
        op.units = 2;
        op.repeat = repeat;
        self.enqueue_new(now, die, op)
    }

    /// Queues the erase of a part of a superblock; where it is `held`, it does not begin before
    /// [`Flash::release`].
    pub fn erase(&mut self, now: u64, die: u32, superblock: u32, cause: Cause, held: bool) -> u32 {
        let mut op = self.template(now, die, OpKind::Erase, cause);
        op.first = superblock;
        op.working = self.timing.erasing(die, superblock);
        op.awaits = u16::from(held);
        self.enqueue_new(now, die, op)
    }

    /// Queues an operation that was not announced, which is ready now; answers its number.
    #[inline(always)]
    fn enqueue_new(&mut self, now: u64, die: u32, op: FlashOp) -> u32 {
        let own = self.own_work(die, now);
        let index = self.allocate(FlashOp { in_stream: true, ..op }, own);
        self.line_up(now, die, index, op.awaits);
        index
    }

    /// The same of one that was.
    #[inline]
    fn enqueue(&mut self, now: u64, die: u32, index: u32) {
        self.own_at_ready[index as usize] = self.own_work(die, now);
        let op = &mut self.ops[index as usize];
        op.in_stream = true;
        op.ready = now;
        let awaits = op.awaits;
        self.line_up(now, die, index, awaits);
    }

    /// Puts an operation into the stream of its die.
    #[inline(always)]
    fn line_up(&mut self, now: u64, die: u32, index: u32, awaits: u16) {
        let state = &mut self.dies[die as usize];
        if state.phase == Phase::Idle || !self.beside.is_empty() {
            return self.line_up_and_look(now, die, index, awaits);
        }
        Self::push(&mut state.stream, &mut self.ops, index);
    }

    /// The same where the die may begin something: at once if it rests.
    #[inline(never)]
    fn line_up_and_look(&mut self, now: u64, die: u32, index: u32, awaits: u16) {
        let state = &mut self.dies[die as usize];
        if self.beside.is_empty() && awaits == 0 && state.stream.head == NONE {
            debug_assert!(state.reads.head == NONE && state.moving.head == NONE, "it rests");
            return self.start(die, index, now);
        }
        Self::push(&mut state.stream, &mut self.ops, index);
        self.arrival(die, now, false);
    }

    /// Something may begin that could not before.
    #[inline]
    fn arrival(&mut self, die: u32, now: u64, read: bool) {
        if !self.beside.is_empty() {
            return self.arrival_beside(die, now, read);
        }
        if read {
            self.part_copies(die, now);
        }
        let state = &self.dies[die as usize];
        if state.phase == Phase::Idle {
            self.dispatch(die, now);
        } else if read && state.suspended == NONE {
            self.suspend(die, now);
        }
    }
}
