//! Operations: what they are, their places while they are queued, and queues of them.

use std::slice::from_ref;

use prefetch_index::prefetch_index;

use super::{Cause, Flash, NONE, OwnWork};

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
#[derive(Clone, Copy, Debug, Default)]
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
    /// The `Cause` of the last of those reads.
    pub fed_by: u8,
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
    /// How long it takes: see [`Flash::programming`].
    pub time: u64,
}

/// Where an operation works, as far as anything depends on it: in which mode the block is, for the times the page
/// and the block, for registers what is sensed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The superblock of the drive whose part on the die it is.
    pub block: u32,
    /// First page in the block.
    pub page: u32,
    /// Pages of the block that are sensed one after the other.
    pub pages: u32,
    /// Number in the drive of the page, or page of every plane, that is sensed; [`NONE`]: of several.
    pub group: u32,
    /// The plane that is sensed, 0 where all are.
    pub plane: u32,
    /// The block is in SLC mode.
    pub slc: bool,
}

impl Place {
    /// Somewhere in a block in or out of SLC mode.
    #[inline]
    pub fn anywhere(slc: bool) -> Self {
        Place { block: 0, page: 0, pages: 1, group: NONE, plane: 0, slc }
    }
}

const _: () = assert!(size_of::<FlashOp>() == 128);

/// How many operations are queued from the time that a place for one is expected to that at which it is taken.
const AHEAD: usize = 4;

/// Two lines of the cache, which come together.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(128))]
pub(super) struct FlashOp {
    pub queued: u64,
    pub ready: u64,
    /// Of the wait for the reads that feed it: for map entries.
    pub map_fed: u64,
    pub start: u64,
    pub order: u64,
    pub next: u32,
    pub owner: u32,
    pub first: u32,
    pub units: u32,
    pub repeat: u32,
    pub feeds: [u32; 2],
    /// List of the operations after those two.
    pub feeds_more: u32,
    pub host_units: u32,
    pub epoch: u32,
    pub bus_wait: u32,
    pub overtaken: u32,
    pub suspended: u32,
    /// Time of sensing, of each copy before it is programmed.
    pub sensing: u64,
    /// Time of programming or erasing; of a read, of sensing again what its first sense does not bring.
    pub working: u64,
    /// Sense operations that a read takes; none where its page is in the register.
    pub senses: u16,
    pub die: u16,
    pub awaits: u16,
    pub kind: OpKind,
    pub cause: Cause,
    /// That of the read which feeds it last, in the byte that is left.
    pub fed_by: u8,
    /// The block is in SLC mode.
    pub slc: bool,
    pub in_stream: bool,
    /// A read of what is to be moved.
    pub moves: bool,
    /// Never to be queued; its place is free once the reads that feed it are done.
    pub discarded: bool,
}

impl FlashOp {
    /// It has waited so much longer for the channel.
    #[inline(always)]
    pub fn waited(&mut self, time: u64) {
        self.bus_wait = self.bus_wait.saturating_add(time as u32);
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub head: u32,
    pub tail: u32,
}
pub(super) const EMPTY: Queue = Queue { head: NONE, tail: NONE };

impl Flash {
    #[inline(always)]
    pub(super) fn allocate(&mut self, op: FlashOp, own_at_ready: OwnWork) -> u32 {
        self.active += 1;
        if self.free.is_empty() {
            self.add_place();
        }
        let index = self.free.pop().unwrap_or_default();
        self.ops[index as usize] = op;
        self.own_at_ready[index as usize] = own_at_ready;
        if let Some(soon) = self.free.len().checked_sub(AHEAD) {
            Self::expect(&self.ops, &self.own_at_ready, self.free[soon]);
        }
        if !self.beside.is_empty() {
            self.set_aside(index);
        }
        index
    }

    #[cold]
    fn add_place(&mut self) {
        self.free.push(self.ops.len() as u32);
        self.ops.push(FlashOp { next: NONE, ..FlashOp::default() });
        self.own_at_ready.push(OwnWork::default());
    }

    #[inline(always)]
    pub(super) fn template(&mut self, now: u64, die: u32, kind: OpKind, cause: Cause) -> FlashOp {
        self.order += 1;
        FlashOp {
            queued: now,
            ready: now,
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
            sensing: 0,
            working: 0,
            senses: 1,
            die: die as u16,
            awaits: 0,
            kind,
            cause,
            fed_by: 0,
            slc: false,
            in_stream: false,
            moves: false,
            discarded: false,
        }
    }

    pub(super) fn push(queue: &mut Queue, ops: &mut [FlashOp], index: u32) {
        if queue.tail == NONE {
            queue.head = index;
        } else {
            ops[queue.tail as usize].next = index;
        }
        queue.tail = index;
    }

    #[inline]
    pub(super) fn pop(queue: &mut Queue, ops: &mut [FlashOp], own_at_ready: &[OwnWork]) -> u32 {
        let index = queue.head;
        queue.head = ops[index as usize].next;
        if queue.head == NONE {
            queue.tail = NONE;
        }
        ops[index as usize].next = NONE;
        Self::expect(ops, own_at_ready, queue.head);
        index
    }

    /// The operation `index`, if any, will be needed soon: of those of a collected superblock no cache has room for all.
    #[inline(always)]
    pub(super) fn expect(ops: &[FlashOp], own_at_ready: &[OwnWork], index: u32) {
        if let Some(op) = ops.get(index as usize) {
            prefetch_index(from_ref(&op.queued), 0);
            prefetch_index(from_ref(&op.awaits), 0);
            prefetch_index(own_at_ready, index as usize);
        }
    }
}
