//! Dies and channels executing operations in virtual time.
//!
//! A die does one thing at a time and a channel carries one transfer at a time. A read senses into
//! the page register and holds the register until its transfer is done; a program fills the
//! register first; collection on one die reads, moves the unit through the controller (so that
//! it is corrected) and programs it. All of that is one small state machine per die, with one
//! pending event each in the [`Calendar`].

mod cause;
mod counters;
mod execute;
mod feed;
mod persist;
mod power;

pub use cause::Cause;
use cause::{CAUSES, OwnWork};
pub use counters::FlashCounters;
pub use power::{Dropped, Work};

use super::geometry::{Geometry, Timing};
use super::schedule::Policy;
use crate::sim::Calendar;

/// No operation, no owner, no unit.
pub const NONE: u32 = u32::MAX;

/// Kinds of flash operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OpKind {
    /// Sense once, transfer `units`.
    #[default]
    Read,
    /// Transfer `units`, program once.
    Program,
    /// `repeat` times: sense, move one unit out and back in, program.
    Copy,
    /// Erase a block of every plane.
    Erase,
}

/// What became of an operation; read it before the next [`Flash::step`].
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// What it was.
    pub kind: OpKind,
    /// Who waits for it ([`NONE`]: nobody).
    pub owner: u32,
    /// Its number while it was queued.
    pub op: u32,
    /// First unit it programmed; of a fetch by [`Flash::map_read`], the translation unit; of an erase, the
    /// superblock.
    pub first: u32,
    /// Units it programmed.
    pub units: u32,
    /// Units of those that occupied the write buffer.
    pub host_units: u32,
    /// Flush epoch it belongs to, [`NONE`]: to none.
    pub epoch: u32,
    /// When the flash could have begun.
    pub ready: u64,
    /// Of the wait before it began: while the die worked for collection.
    pub collection_wait: u64,
    /// Of the same wait: while the die worked for the map.
    pub map_wait: u64,
    /// Of the same wait: while the die folded the SLC cache.
    pub fold_wait: u64,
    /// Of the same wait: while the die programmed parity.
    pub parity_wait: u64,
    /// When it began.
    pub start: u64,
    /// Of its time: waiting for the channel.
    pub bus_wait: u64,
    /// Of its time: on the channel.
    pub bus: u64,
    /// Time before `ready` in which it waited for the reads that feed it.
    pub fed: u64,
    /// Of that: for map entries.
    pub map_fed: u64,
}

/// A program about to be queued.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// First unit.
    pub first: u32,
    /// Units transferred.
    pub units: u32,
    /// For whom.
    pub cause: Cause,
    /// Who waits.
    pub owner: u32,
    /// Units that leave the write buffer when it is done.
    pub host_units: u32,
    /// Flush epoch, [`NONE`]: no flush waits for it.
    pub epoch: u32,
    /// Into a block in SLC mode.
    pub slc: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct FlashOp {
    queued: u64,
    ready: u64,
    own_at_ready: OwnWork,
    /// Of the wait for the reads that feed it: for map entries.
    map_fed: u64,
    start: u64,
    order: u64,
    next: u32,
    owner: u32,
    first: u32,
    units: u32,
    repeat: u32,
    feeds: [u32; 2],
    /// List of the operations after those two.
    feeds_more: u32,
    host_units: u32,
    epoch: u32,
    bus_wait: u32,
    overtaken: u32,
    suspended: u32,
    die: u16,
    awaits: u16,
    kind: OpKind,
    cause: Cause,
    /// The block is in SLC mode.
    slc: bool,
    in_stream: bool,
    /// Never to be queued; its place is free once the reads that feed it are done.
    discarded: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    Sense,
    /// Until the transfer is over, the wait for the channel included.
    Bus,
    /// Until the program is over, the transfer before it included.
    Program,
    Erase,
    Suspending,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
}
const EMPTY: Queue = Queue { head: NONE, tail: NONE };

#[derive(Clone, Copy, Debug)]
struct Die {
    /// Programs, erases and copies, in order.
    stream: Queue,
    /// Reads of what is to be moved. They may overtake a program that waits for its data on another
    /// die, never an operation placed before them that could begin.
    moving: Queue,
    reads: Queue,
    current: u32,
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

#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    /// When all transfers asked for so far are over.
    free_at: u64,
    /// Time of those transfers.
    booked: u64,
}

impl Channel {
    /// Books a transfer of so long that may begin at `now`; answers when it begins.
    #[inline]
    fn book(&mut self, now: u64, time: u64) -> u64 {
        let start = self.free_at.max(now);
        self.free_at = start + time;
        self.booked += time;
        start
    }
    /// Time on the channel up to `now`: what is booked for later follows without a gap.
    fn busy(&self, now: u64) -> u64 {
        self.booked - self.free_at.saturating_sub(now)
    }
}

/// All dies and channels of a drive.
pub struct Flash {
    /// Slots 0 .. dies are the dies'; the owner of the flash may use the slots after them.
    pub calendar: Calendar,
    /// Executed so far.
    pub counters: FlashCounters,
    timing: Timing,
    units_per_program: u32,
    policy: Policy,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    ops: Vec<FlashOp>,
    free: u32,
    /// Operation fed and the next in the list, for reads that feed more than two.
    feeds: Vec<(u32, u32)>,
    free_feed: u32,
    order: u64,
    active: u32,
}

impl Flash {
    /// Idle flash with `extra` calendar slots for its owner.
    pub fn new(geometry: &Geometry, timing: Timing, policy: Policy, extra: u32) -> Self {
        let dies = (0..geometry.dies())
            .map(|d| Die { channel: (d % geometry.channels) as u16, ..IDLE })
            .collect();
        Flash {
            calendar: Calendar::new((geometry.dies() + extra) as usize),
            counters: FlashCounters::default(),
            timing,
            units_per_program: geometry.units_per_program(),
            policy,
            dies,
            channels: vec![Channel::default(); geometry.channels as usize],
            ops: Vec::new(),
            free: NONE,
            feeds: Vec::new(),
            free_feed: NONE,
            order: 0,
            active: 0,
        }
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

    fn allocate(&mut self, op: FlashOp) -> u32 {
        self.active += 1;
        if self.free == NONE {
            self.ops.push(op);
            return (self.ops.len() - 1) as u32;
        }
        let index = self.free;
        self.free = self.ops[index as usize].next;
        self.ops[index as usize] = op;
        index
    }

    #[inline]
    fn template(&mut self, now: u64, die: u32, kind: OpKind, cause: Cause) -> FlashOp {
        self.order += 1;
        FlashOp {
            queued: now,
            ready: now,
            own_at_ready: OwnWork::default(),
            map_fed: 0,
            start: 0,
            order: self.order,
            next: NONE,
            owner: NONE,
            first: NONE,
            units: 0,
            repeat: 0,
            feeds: [NONE; 2],
            feeds_more: NONE,
            host_units: 0,
            epoch: 0,
            bus_wait: 0,
            overtaken: 0,
            suspended: 0,
            die: die as u16,
            awaits: 0,
            kind,
            cause,
            slc: false,
            in_stream: false,
            discarded: false,
        }
    }

    /// Queues a host read of `units` of one page (or page of every plane), with `slc` from a block in
    /// SLC mode.
    pub fn read(&mut self, now: u64, die: u32, units: u32, slc: bool, owner: u32) -> u32 {
        let mut op = self.template(now, die, OpKind::Read, Cause::HostRead);
        op.units = units;
        op.slc = slc;
        op.owner = owner;
        self.queue_read(now, op)
    }

    #[inline]
    fn queue_read(&mut self, now: u64, mut op: FlashOp) -> u32 {
        let die = u32::from(op.die);
        op.own_at_ready = self.own_work(die, now);
        let index = self.allocate(op);
        Self::push(&mut self.dies[die as usize].reads, &mut self.ops, index);
        self.arrival(die, now, true);
        index
    }

    /// Queues a read of the translation unit `unit`, which is so many units and needed by a command.
    pub fn map_read(&mut self, now: u64, die: u32, units: u32, unit: u32, owner: u32) -> u32 {
        let mut op = self.template(now, die, OpKind::Read, Cause::Map);
        op.units = units;
        op.first = unit;
        op.owner = owner;
        self.queue_read(now, op)
    }

    /// So many more units to transfer for a read queued at this very instant.
    pub fn widen_read(&mut self, op: u32, units: u32) {
        // Sensing takes longer than an instant, so the transfer has not begun.
        self.ops[op as usize].units += units;
    }

    /// Queues a read for collection, wear levelling, merging or folding.
    pub fn collect_read(&mut self, now: u64, die: u32, units: u32, cause: Cause) -> u32 {
        let mut op = self.template(now, die, OpKind::Read, cause);
        op.units = units;
        // What is folded, and nothing else that is moved, lies in blocks in SLC mode.
        op.slc = cause == Cause::Fold;
        let index = self.allocate(op);
        Self::push(&mut self.dies[die as usize].moving, &mut self.ops, index);
        self.arrival(die, now, false);
        index
    }

    /// Announces a program that is filled later; [`Flash::close_program`] queues it.
    pub fn open_program(&mut self, now: u64, die: u32) -> u32 {
        let op = self.template(now, die, OpKind::Program, Cause::HostWrite);
        self.allocate(op)
    }

    /// Queues a program announced before.
    pub fn close_program(&mut self, now: u64, index: u32, program: Program) {
        self.order += 1;
        let op = &mut self.ops[index as usize];
        op.order = self.order;
        op.queued = now;
        op.first = program.first;
        op.units = program.units;
        op.cause = program.cause;
        op.owner = program.owner;
        op.host_units = program.host_units;
        op.epoch = program.epoch;
        op.slc = program.slc;
        let die = u32::from(op.die);
        self.enqueue(now, die, index);
    }

    /// Forgets a program announced but never queued.
    pub fn discard_program(&mut self, index: u32) {
        self.active -= 1;
        let op = &mut self.ops[index as usize];
        op.discarded = true;
        if op.awaits == 0 {
            op.next = self.free;
            self.free = index;
        }
    }

    /// Queues `repeat` copies of single units within a die.
    pub fn copy(&mut self, now: u64, die: u32, repeat: u32, cause: Cause) -> u32 {
        let mut op = self.template(now, die, OpKind::Copy, cause);
        op.units = 2;
        op.repeat = repeat;
        let index = self.allocate(op);
        self.enqueue(now, die, index);
        index
    }

    /// Queues the erase of a part of a superblock; where it is `held`, it does not begin before
    /// [`Flash::release`].
    pub fn erase(&mut self, now: u64, die: u32, superblock: u32, cause: Cause, held: bool) -> u32 {
        let mut op = self.template(now, die, OpKind::Erase, cause);
        op.first = superblock;
        op.awaits = u16::from(held);
        let index = self.allocate(op);
        self.enqueue(now, die, index);
        index
    }

    fn push(queue: &mut Queue, ops: &mut [FlashOp], index: u32) {
        if queue.tail == NONE {
            queue.head = index;
        } else {
            ops[queue.tail as usize].next = index;
        }
        queue.tail = index;
    }

    #[inline]
    fn pop(queue: &mut Queue, ops: &mut [FlashOp]) -> u32 {
        let index = queue.head;
        queue.head = ops[index as usize].next;
        if queue.head == NONE {
            queue.tail = NONE;
        }
        ops[index as usize].next = NONE;
        index
    }

    #[inline]
    fn enqueue(&mut self, now: u64, die: u32, index: u32) {
        let own = self.own_work(die, now);
        let op = &mut self.ops[index as usize];
        op.in_stream = true;
        op.ready = now;
        op.own_at_ready = own;
        Self::push(&mut self.dies[die as usize].stream, &mut self.ops, index);
        self.arrival(die, now, false);
    }

    #[inline]
    fn arrival(&mut self, die: u32, now: u64, read: bool) {
        let state = &self.dies[die as usize];
        if state.phase == Phase::Idle {
            self.dispatch(die, now);
        } else if read && state.suspended == NONE {
            self.suspend(die, now);
        }
    }
}
