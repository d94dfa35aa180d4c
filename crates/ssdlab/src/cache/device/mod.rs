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
mod everywhere;
mod fail;
mod fill;
mod flow;
mod keys;
mod piece;
mod power;
mod presets;
mod store;
mod unflushed;
mod untimed;
mod write;

pub use build::memory;
pub use keys::{CacheKeys, DestageOrder, FillSize, Metadata, Mode, SwitchKeys, WriteMiss};
pub use presets::PRESETS;

use crate::contract::{Command, Completion, Missed, Op};
use crate::fleet::{Composite, Fleet, HostId, Io, fleet_of};
use crate::persist::persistent;
use crate::sim::{Ranges, Slab};
use crate::stats::Parts;
use admit::{Budget, Congestion, Streams, Uses};
use busy::Busy;
use counters::Counts;
use piece::{Cut, Hold, Kind, Piece, PieceId, Purpose, Run, Stage};
use std::collections::VecDeque;
use store::Store;
use unflushed::Unflushed;

/// Members of the fleet.
const POOL: usize = 0;
const CACHE: usize = 1;
/// Instead of a frame.
const NONE: u32 = u32::MAX;

/// A cache before a pool.
pub struct CacheDevice {
    keys: CacheKeys,
    mode: Mode,
    /// The pool and the cache device.
    fleet: Fleet<Cut, Purpose>,
    /// Where the frames begin on the cache device.
    data: u64,
    /// Dirty sub-blocks at the marks.
    /// Where destaging ends that began above `low`.
    until: u64,
    low: u64,
    high: u64,
    store: Store,
    /// What became dirty, and what was destaged, since a device with a volatile write cache was flushed.
    uncached: Unflushed,
    unpooled: Unflushed,
    uses: Uses,
    streams: Streams,
    budget: Budget,
    congestion: Congestion,
    busy: Busy,
    pieces: Slab<Piece>,
    /// Pieces that wait for a frame, or for room below the mark.
    waiting: VecDeque<PieceId>,
    /// TRIMs under way, by the numbers of their commands.
    trims: Ranges,
    fills: u32,
    destages: u32,
    promised: u64,
    cursor: u64,
    /// When the next destage may begin by the rate.
    next_destage: u64,
    /// All that is dirty is destaged, since then.
    draining: bool,
    /// Destages since the low mark was passed, down to `until`.
    reducing: bool,
    switched: bool,
    counts: Counts,
}
persistent!(CacheDevice {
    state {
        mode, fleet, store, uncached, unpooled, uses, streams, budget, congestion, busy, pieces, waiting, trims, fills, destages, promised,
        cursor, next_destage, draining, reducing, switched, counts,
    }
    built { keys, data, until, low, high }
});

impl CacheDevice {
    /// The block that a byte lies in. Sizes are powers of two, and a division takes long.
    #[inline]
    fn key_of(&self, at: u64) -> u64 {
        at >> self.keys.block.0.trailing_zeros()
    }

    /// The sub-blocks of a block that a range within it touches.
    #[inline]
    fn touched(&self, begin: u64, end: u64) -> u64 {
        let sub = self.keys.sub_block.0.trailing_zeros();
        let within = |at: u64| (at & (self.keys.block.0 - 1)) >> sub;
        let (first, last) = (within(begin), within(end - 1));
        (u64::MAX >> (63 - (last - first))) << first
    }

    /// Those that it covers.
    #[inline]
    fn covered(&self, begin: u64, end: u64) -> u64 {
        let within = self.keys.sub_block.0 - 1;
        let up = |at: u64| (at + within) & !within;
        let to = if end == self.fleet.capacity { up(end) } else { end & !within };
        let from = up(begin);
        if from < to { self.touched(from, to) } else { 0 }
    }

    /// All sub-blocks of a block; the last one may be short.
    #[inline]
    fn sub_blocks_of(&self, key: u64) -> u64 {
        let begin = key * self.keys.block.0;
        self.touched(begin, (begin + self.keys.block.0).min(self.fleet.capacity))
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
        Some((begin, end.min(self.fleet.capacity)))
    }

    /// The bytes of the next run of those sub-blocks that are left of a part of a block, which is given by its bytes and
    /// the sub-blocks that they touch. Mostly all or none are.
    #[inline]
    fn next_part(
        &self,
        key: u64,
        (begin, end, mask): (u64, u64, u64),
        left: &mut u64,
    ) -> Option<(u64, u64)> {
        if *left == mask {
            *left = 0;
            return Some((begin, end));
        }
        self.next_run(key, left).map(|(from, to)| (from.max(begin), to.min(end)))
    }

    /// Where a byte of the pool is in a frame.
    #[inline]
    fn place(&self, frame: u32, at: u64) -> u64 {
        self.data + u64::from(frame) * self.keys.block.0 + (at & (self.keys.block.0 - 1))
    }

    /// A piece reads or writes a part of its frame.
    fn send_to_frame(&mut self, piece: PieceId, op: Op, begin: u64, end: u64) {
        let Piece { frame, host, kind, .. } = self.pieces[piece];
        let offset = self.place(frame, begin);
        let (stamp, compressible) = match (op, kind) {
            (Op::Write, Kind::Write) => {
                let command = self.fleet.hosts[host].command;
                (self.fleet.stamp_of_host(&command, begin, end), command.compressible)
            }
            (Op::Write, _) => (self.stamp_of_pool(begin, end), 0),
            _ => (0, 0),
        };
        self.pieces[piece].ios += 1;
        let purpose = Purpose::Pieces(piece, 1, begin);
        let io = Io { member: CACHE, op, offset, len: end - begin, purpose };
        self.fleet.send(io, stamp, compressible);
    }

    /// A piece reads or writes a part of the pool, joined to what is on its way there.
    #[inline]
    fn join(&mut self, run: &mut Run, piece: PieceId, begin: u64, end: u64) {
        let joins = run.len > 0 && run.offset + run.len == begin;
        let same = run.last == piece;
        if joins && (same || self.pieces[run.last].sibling == piece) {
            run.len += end - begin;
            if !same {
                run.pieces += 1;
                self.pieces[piece].ios += 1;
            }
            run.last = piece;
            return;
        }
        self.flush_run(run);
        self.pieces[piece].ios += 1;
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
    #[inline]
    fn flush_run(&mut self, run: &mut Run) {
        if run.len > 0 {
            self.send_run(run);
            *run = Run::new(run.op);
        }
    }

    fn send_run(&mut self, run: &Run) {
        let Run { op, offset, len, first, pieces, .. } = *run;
        let Piece { kind, host, .. } = self.pieces[first];
        let (stamp, compressible) = match (op, kind) {
            (Op::Write, Kind::Write) => {
                let command = self.fleet.hosts[host].command;
                (self.fleet.stamp_of_host(&command, offset, offset + len), command.compressible)
            }
            (Op::Write, _) => (self.stamp_of_frames(offset, offset + len), 0),
            _ => (0, 0),
        };
        let purpose = Purpose::Pieces(first, pieces, offset);
        self.fleet.send(Io { member: POOL, op, offset, len, purpose }, stamp, compressible);
    }

    /// One command less that a piece waits for.
    #[inline]
    fn piece_answered(&mut self, index: PieceId, parts: &Parts) {
        let now = self.fleet.now;
        let piece = &mut self.pieces[index];
        piece.ios -= 1;
        if piece.ios > 0 {
            return;
        }
        piece.spend(now, parts);
        self.stage_done(index);
    }
}

impl Composite for CacheDevice {
    fleet_of!(Cut, Purpose);
    const KIND: &'static str = "cache";
    const PLACES: &'static [&'static str] = &["below", "cache"];
    const PURGES_ALONE: bool = true;

    #[inline]
    fn begin(&mut self, host: HostId) {
        self.begin_command(host);
    }

    fn answered(&mut self, io: Io<Purpose>, completion: &Completion) {
        if io.member == CACHE {
            self.congestion.note(self.fleet.now, completion.parts.total());
        }
        let (first, count, at) = match io.purpose {
            Purpose::Command(host) => return self.command_answered(host, &completion.parts),
            Purpose::Table(next) => return self.read_table(next),
            Purpose::Pieces(first, count, at) => (first, count, at),
        };
        if self.pieces[first].kind == Kind::Read {
            self.fleet.add_digest(self.pieces[first].host, &io, at);
        }
        let mut piece = first;
        for _ in 0..count {
            let sibling = self.pieces[piece].sibling;
            self.piece_answered(piece, &completion.parts);
            piece = sibling;
        }
    }

    fn timer(&mut self, _which: u32) {
        self.something_is_due();
    }

    #[inline]
    fn after_submit(&mut self) {
        self.plan_timer();
    }

    #[inline]
    fn after_event(&mut self) {
        self.plan_timer();
    }

    fn after_untimed(&mut self) {
        self.plan_timer();
    }

    fn purge_waits(&mut self) {
        if !self.waiting.is_empty() {
            self.clean();
        }
    }

    fn is_working(&self) -> bool {
        !self.pieces.is_empty()
    }

    fn lose_power(&mut self, now: u64, missed: &mut Missed) -> u64 {
        missed.cannot_tell();
        self.cut_power(now)
    }

    fn start_up(&mut self) {
        self.read_table(0);
    }

    fn apply_untimed(&mut self, command: &Command) {
        self.apply_command(command);
    }

    fn content_of(&self, at: u64) -> u64 {
        self.content_at(at)
    }

    fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.show_counters(visit);
    }

    fn verify_own(&self) {
        self.store.verify();
        self.verify_content();
    }
}
