//! A cache as a device: a fast device before a slow one, the pool.
//!
//! A command of the host is cut into pieces, one per block. Pieces of one block that touch the same sub-blocks
//! stand in line: reads beside each other, a write, a fill or a destage by itself (`flow.rs`). A piece goes to the
//! cache, to the pool or to both; what of it goes to the pool joins what its neighbours send there. Misses are
//! filled after the host has its answer (`fill.rs`); dirty blocks are destaged in runs (`clean.rs`).
//!
//! `store.rs` knows what is in the cache, `admit.rs` who is let in, `content.rs` what tests know of contents.
//!
//! The time of a command is that of the piece that ended last: the devices' own parts, and `cache` for waiting: for
//! the turn at a sub-block, for a frame, for room below the dirty mark.

mod admit;
mod build;
mod busy;
mod clean;
mod content;
mod counters;
mod fail;
mod fill;
mod flow;
mod keys;
mod piece;
mod presets;
mod store;
mod untimed;
mod whole;
mod write;

pub use build::memory;
pub use keys::{CacheKeys, DestageOrder, FillSize, Metadata, Mode, SwitchKeys, WriteMiss};
pub use presets::{PRESETS, Preset};

use crate::array::Slot;
use crate::device::{Command, Completion, Device, Op};
use crate::persist::persistent;
use crate::sim::Calendar;
use crate::sim::Slab;
use crate::stats::Parts;
use crate::units::NEVER;
use admit::{Budget, Congestion, Streams, Uses};
use busy::{Busy, NONE};
use content::Versions;
use counters::Counts;
use piece::{Hold, Host, Io, Kind, Piece, Run, Stage};
use std::collections::VecDeque;
use store::Store;

/// Slots of the calendar, the first two those of the devices.
const POOL: u32 = 0;
const CACHE: u32 = 1;
const TIMERS: u32 = 2;

/// A cache before a pool.
pub struct CacheDevice {
    keys: CacheKeys,
    mode: Mode,
    /// The pool and the cache device.
    slots: [Slot; 2],
    /// Bytes of the pool.
    size: u64,
    /// Where the frames begin on the cache device.
    data: u64,
    /// Dirty sub-blocks at the marks.
    low: u64,
    high: u64,
    store: Store,
    uses: Uses,
    streams: Streams,
    budget: Budget,
    congestion: Congestion,
    busy: Busy,
    calendar: Calendar,
    hosts: Slab<Host>,
    pieces: Slab<Piece>,
    ios: Slab<Io>,
    /// Pieces that wait for a frame, or for room below the mark.
    waiting: VecDeque<u32>,
    /// TRIMs under way; hosts behind a purge, which is the first of them.
    trims: Vec<u32>,
    held: VecDeque<u32>,
    purging: bool,
    fills: u32,
    destages: u32,
    promised: u64,
    cursor: u64,
    /// When the next destage may begin by the rate.
    next_destage: u64,
    /// Commands of the host in flight, and when the last of them came or went.
    in_flight: u32,
    last_host: u64,
    settling: bool,
    /// All that is dirty is destaged, since then.
    draining: bool,
    switched: bool,
    counts: Counts,
    versions: Option<Versions>,
    now: u64,
    ready: Vec<Completion>,
    arrived: Vec<Completion>,
}
persistent!(CacheDevice {
    state {
        mode, slots, store, uses, streams, budget, congestion, busy, calendar, hosts, pieces, ios, waiting, trims,
        held, purging, fills, destages, promised, cursor, next_destage, in_flight, last_host, settling, draining,
        switched, counts, now, ready,
    }
    parts { versions }
    built { keys, size, data, low, high, arrived }
});

impl CacheDevice {
    /// The sub-blocks of a block that a range within it touches.
    #[inline]
    fn touched(&self, begin: u64, end: u64) -> u64 {
        let (block, sub) = (self.keys.block.0, self.keys.sub_block.0);
        let (first, last) = (begin % block / sub, (end - 1) % block / sub);
        (u64::MAX >> (63 - (last - first))) << first
    }

    /// Those that it covers.
    #[inline]
    fn covered(&self, begin: u64, end: u64) -> u64 {
        let sub = self.keys.sub_block.0;
        let to = if end == self.size { end.next_multiple_of(sub) } else { end / sub * sub };
        let from = begin.next_multiple_of(sub);
        if from < to { self.touched(from, to) } else { 0 }
    }

    /// All sub-blocks of a block; the last one may be short.
    #[inline]
    fn whole_block(&self, key: u64) -> u64 {
        let begin = key * self.keys.block.0;
        self.touched(begin, (begin + self.keys.block.0).min(self.size))
    }

    /// The bytes of the next run of sub-blocks of `mask`, which loses them.
    #[inline]
    fn next_run(&self, key: u64, mask: &mut u64) -> Option<(u64, u64)> {
        if *mask == 0 {
            return None;
        }
        let first = mask.trailing_zeros();
        let length = (!(*mask >> first)).trailing_zeros();
        *mask &= !((u64::MAX >> (64 - length)) << first);
        let begin = key * self.keys.block.0 + u64::from(first) * self.keys.sub_block.0;
        let end = begin + u64::from(length) * self.keys.sub_block.0;
        Some((begin, end.min(self.size)))
    }

    /// Where a byte of the pool is in a frame.
    #[inline]
    fn place(&self, frame: u32, at: u64) -> u64 {
        self.data + u64::from(frame) * self.keys.block.0 + at % self.keys.block.0
    }

    /// Sends a command to a device.
    fn send(&mut self, io: Io, stamp: u64, compressible: u8) {
        let Io { device, op, offset, len, .. } = io;
        self.counts.sent(device == CACHE, op, len);
        let tag = u64::from(self.ios.insert(Io { active: true, ..io }));
        let slot = &mut self.slots[device as usize];
        slot.submit(self.now, Command { tag, op, offset, len, compressible, stamp });
        self.calendar.set(device, slot.next_event());
    }

    /// A piece reads or writes a part of its frame.
    fn send_to_frame(&mut self, piece: u32, op: Op, begin: u64, end: u64) {
        let Piece { frame, host, kind, .. } = self.pieces.all[piece as usize];
        let offset = self.place(frame, begin);
        let (stamp, compressible) = match (op, kind) {
            (Op::Write, Kind::Write) => {
                let command = self.hosts.all[host as usize].command;
                (self.stamp_of_host(&command, begin, end), command.compressible)
            }
            (Op::Write, _) => (self.stamp_of_pool(begin, end), 0),
            _ => (0, 0),
        };
        self.pieces.all[piece as usize].ios += 1;
        let len = end - begin;
        let io = Io {
            device: CACHE,
            op,
            offset,
            len,
            at: begin,
            owner: piece,
            pieces: 1,
            ..Io::default()
        };
        self.send(io, stamp, compressible);
    }

    /// A piece reads or writes a part of the pool, joined to what is on its way there.
    fn join(&mut self, run: &mut Run, piece: u32, begin: u64, end: u64) {
        let joins = run.len > 0 && run.offset + run.len == begin;
        let same = run.last == piece;
        if joins && (same || self.pieces.all[run.last as usize].sibling == piece) {
            run.len += end - begin;
            if !same {
                run.pieces += 1;
                self.pieces.all[piece as usize].ios += 1;
            }
            run.last = piece;
            return;
        }
        self.flush_run(run);
        self.pieces.all[piece as usize].ios += 1;
        *run = Run {
            op: run.op,
            offset: begin,
            len: end - begin,
            first: piece,
            last: piece,
            pieces: 1,
        };
    }

    /// Sends what has come together.
    fn flush_run(&mut self, run: &mut Run) {
        let Run { op, offset, len, first, pieces, .. } = *run;
        if len == 0 {
            return;
        }
        *run = Run::new(op);
        let Piece { kind, host, .. } = self.pieces.all[first as usize];
        let (stamp, compressible) = match (op, kind) {
            (Op::Write, Kind::Write) => {
                let command = self.hosts.all[host as usize].command;
                (self.stamp_of_host(&command, offset, offset + len), command.compressible)
            }
            (Op::Write, _) => (self.stamp_of_frames(offset, offset + len), 0),
            _ => (0, 0),
        };
        let io =
            Io { device: POOL, op, offset, len, at: offset, owner: first, pieces, ..Io::default() };
        self.send(io, stamp, compressible);
    }

    /// A device has answered.
    fn answer(&mut self, device: u32, completion: &Completion) {
        let index = completion.tag as u32;
        let io = self.ios.all[index as usize];
        if !io.active || io.device != device {
            // The cache device failed in the very instant in which it answered.
            return;
        }
        self.ios.all[index as usize].active = false;
        self.ios.free.push(index);
        self.slots[device as usize].returned(self.now);
        if device == CACHE {
            self.congestion.note(self.now, completion.parts.total());
        }
        if io.op == Op::Read {
            self.check_digest(&io, completion.digest);
        }
        if io.whole {
            return self.whole_answered(io.owner, &completion.parts);
        }
        if io.op == Op::Read {
            self.add_digest(&io);
        }
        let mut piece = io.owner;
        for _ in 0..io.pieces {
            let sibling = self.pieces.all[piece as usize].sibling;
            self.piece_answered(piece, &completion.parts);
            piece = sibling;
        }
    }

    /// One command less that a piece waits for.
    fn piece_answered(&mut self, index: u32, parts: &Parts) {
        let now = self.now;
        let piece = &mut self.pieces.all[index as usize];
        piece.ios -= 1;
        if piece.ios > 0 {
            return;
        }
        piece.spend(now, parts);
        self.stage_done(index);
    }

    /// Lets the next event happen, at `time`.
    fn happen(&mut self, time: u64, slot: u32) {
        self.now = self.now.max(time);
        if slot == TIMERS {
            self.timer();
            return;
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        let device = &mut self.slots[slot as usize];
        device.advance(time, &mut arrived);
        self.calendar.set(slot, device.next_event());
        for completion in arrived.drain(..) {
            self.answer(slot, &completion);
        }
        self.arrived = arrived;
    }
}

impl Device for CacheDevice {
    fn kind(&self) -> &'static str {
        "cache"
    }

    #[inline]
    fn capacity(&self) -> u64 {
        self.size
    }

    fn submit(&mut self, now: u64, command: Command) {
        self.now = now;
        self.counts.host.count(&command);
        (self.in_flight, self.last_host) = (self.in_flight + 1, now);
        let host =
            self.hosts.insert(Host { command, submitted: now, first: NONE, ..Host::default() });
        if self.purging || command.op == Op::Purge {
            self.held.push_back(host);
            return self.purge_if_quiet();
        }
        self.begin(host);
        self.plan_timers();
    }

    fn next_event(&self) -> u64 {
        if self.ready.is_empty() { self.calendar.first().0 } else { self.now }
    }

    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        loop {
            let (time, slot) = self.calendar.first();
            if !self.ready.is_empty() && time > self.now {
                done.append(&mut self.ready);
                return self.now;
            }
            if time > limit || time == NEVER {
                return limit;
            }
            self.happen(time, slot);
        }
    }

    fn settle(&mut self, now: u64) -> u64 {
        debug_assert_eq!(self.in_flight, 0, "something is in flight");
        self.now = self.now.max(now);
        self.settling = true;
        // Fills and destages under way come to their end, no further ones begin.
        while self.pieces.free.len() < self.pieces.all.len() {
            let (time, slot) = self.calendar.first();
            self.happen(time, slot);
        }
        let now = self.now;
        let mut end = now;
        for slot in self.live() {
            end = end.max(self.slots[slot].settle(now));
        }
        // Both have been quiet since the last one was.
        for slot in self.live() {
            self.slots[slot].settle(end);
        }
        self.settling = false;
        (self.now, self.last_host) = (end, self.last_host.max(end));
        self.plan_devices();
        end
    }

    fn apply(&mut self, command: &Command) {
        self.apply_untimed(command);
        self.plan_devices();
    }

    fn content(&self, offset: u64) -> u64 {
        self.content_of(offset)
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.visit_counters(visit);
    }

    fn children(&self) -> Vec<(String, &dyn Device)> {
        vec![("below".into(), &self.slots[0]), ("cache".into(), &self.slots[1])]
    }

    fn verify(&self) {
        self.slots[POOL as usize].verify();
        if !self.store.dead {
            self.slots[CACHE as usize].verify();
        }
        self.store.verify();
        self.verify_content();
    }
}
