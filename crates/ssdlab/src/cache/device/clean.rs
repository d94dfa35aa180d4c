//! Destaging: dirty sub-blocks go to the pool, neighbours together; and TRIM, which does that before it drops them.

use super::keys::Metadata;
use super::{CacheDevice, Hold, Kind, NONE, Piece, PieceId, Run, Stage};
use crate::contract::Op;
use crate::fleet::{Host, HostId};
use crate::units::NEVER;

impl CacheDevice {
    /// Whether something should be destaged now.
    fn wants_clean(&self) -> bool {
        let dirty = self.store.dirty_now;
        let mark = if self.reducing { self.until } else { self.low };
        dirty > 0 && (dirty > mark || self.draining || !self.waiting.is_empty() || self.is_idle())
    }

    /// Whether the host has been quiet for long enough.
    fn is_idle(&self) -> bool {
        self.fleet.in_flight == 0 && self.fleet.now >= self.idle_at()
    }

    /// When it will have been.
    fn idle_at(&self) -> u64 {
        self.keys
            .idle_after
            .map_or(NEVER, |time| self.fleet.last_host.saturating_add(time.0.max(1)))
    }

    /// When destaging should be thought of again.
    #[inline]
    pub(super) fn clean_due(&self) -> u64 {
        if self.store.dirty_now == 0 { NEVER } else { self.clean_due_of_some() }
    }

    fn clean_due_of_some(&self) -> u64 {
        if self.is_stopped() {
            return NEVER;
        }
        if self.destages < self.keys.destage_depth
            && self.wants_clean()
            && self.next_destage > self.fleet.now
        {
            return self.next_destage;
        }
        let idle = if self.fleet.in_flight == 0 { self.idle_at() } else { NEVER };
        if idle > self.fleet.now { idle } else { NEVER }
    }

    /// Whether nothing is destaged now.
    fn is_stopped(&self) -> bool {
        let fleet = &self.fleet;
        fleet.settling || fleet.purging || fleet.power.is_off() || self.store.dead
    }

    /// Begins to destage as much as may be under way, if it is time to.
    #[inline]
    pub(super) fn clean(&mut self) {
        if self.store.dirty_now == 0 && self.waiting.is_empty() && !self.draining {
            self.reducing = false;
            return;
        }
        self.clean_some();
    }

    fn clean_some(&mut self) {
        let stopped = self.is_stopped();
        let mut limited = false;
        let dirty = self.store.dirty_now;
        self.reducing = dirty > self.low || self.reducing && dirty > self.until;
        while !stopped && self.destages < self.keys.destage_depth && self.wants_clean() {
            limited = self.fleet.now < self.next_destage && !self.draining;
            if limited || !self.begin_destage() {
                break;
            }
        }
        // Who waits for what can never come goes to the pool.
        if self.destages == 0 && !limited && !self.waiting.is_empty() {
            self.send_past_waiting();
        }
        if self.draining && self.store.dirty_now + self.promised == 0 {
            self.draining = false;
            self.counts.drained_ns = self.fleet.now;
        }
    }

    /// Dirty sub-blocks of a block that can be destaged now.
    fn cleanable(&self, key: u64) -> u64 {
        let (_, dirty) = self.store.masks(key);
        dirty & !self.busy.find(key).map_or(0, |block| self.held_by_others(block, PieceId::NONE))
    }

    /// Begins to destage a run of neighbours.
    fn begin_destage(&mut self) -> bool {
        let may = |key| self.cleanable(key) != 0;
        let Some(key) = self.store.next_dirty(self.cursor, may) else { return false };
        let command = crate::contract::Command { op: Op::Write, ..Default::default() };
        let submitted = self.fleet.now;
        let host = self.fleet.hosts.insert(Host { command, submitted, ..Host::default() });
        let (mut at, mut bytes) = (key, 0);
        loop {
            let mask = self.cleanable(at);
            let (begin, end) = self.hull(at, mask);
            self.add_piece(host, Kind::Destage, Hold::Copy, begin, end);
            let index = self.fleet.hosts[host].own.last;
            self.pieces[index].mask = mask;
            bytes += u64::from(mask.count_ones()) * self.keys.sub_block.0;
            let (_, border) = self.hull(at, u64::MAX);
            let full = bytes + self.keys.block.0 > self.keys.destage_merge.0;
            if full
                || end != border
                || border >= self.fleet.capacity
                || !self.store.is_dirty(at + 1)
            {
                break;
            }
            at += 1;
            if self.cleanable(at) & 1 == 0 {
                break;
            }
        }
        self.cursor = at + 1;
        self.destages += 1;
        self.counts.destages += 1;
        self.counts.destaged_bytes += bytes;
        if let Some(rate) = self.keys.destage_rate {
            self.next_destage = self.next_destage.max(self.fleet.now) + rate.time(bytes);
        }
        self.begin_pieces(host);
        true
    }

    /// From the first to the last sub-block of a mask.
    pub(super) fn hull(&self, key: u64, mask: u64) -> (u64, u64) {
        let (block, sub) = (self.keys.block.0, self.keys.sub_block.0);
        let begin = key * block + u64::from(mask.trailing_zeros()) * sub;
        let end = key * block + ((64 - u64::from(mask.leading_zeros())) * sub).min(block);
        (begin, end.min(self.fleet.capacity))
    }

    /// It is the turn of a piece that copies from the cache to the pool.
    pub(super) fn begin_copy(&mut self, index: PieceId) {
        let Piece { kind, key, mask, .. } = self.pieces[index];
        let (frame, (_, dirty)) = self.store.look(key);
        let mut rest = dirty & mask;
        let frame = frame.unwrap_or(NONE);
        let piece = &mut self.pieces[index];
        (piece.cached, piece.frame, piece.stage) = (rest, frame, Stage::CopyRead);
        if rest == 0 {
            debug_assert_eq!(kind, Kind::Trim, "what is destaged is dirty");
            return self.trim_drop(index);
        }
        while let Some((from, to)) = self.next_run(key, &mut rest) {
            self.send_to_frame(index, Op::Read, from, to);
        }
    }

    /// What is to be copied has been read.
    pub(super) fn copy_read(&mut self, index: PieceId) {
        let Piece { kind, host, .. } = self.pieces[index];
        if kind == Kind::Trim {
            if self.store.dead {
                return self.trim_drop(index);
            }
            let mut run = Run::new(Op::Write);
            self.copy_write(index, &mut run);
            return self.flush_run(&mut run);
        }
        self.pieces[index].stage = Stage::Ready;
        let group = &mut self.fleet.hosts[host].own;
        group.unready -= 1;
        if group.unready > 0 {
            return;
        }
        let mut at = group.first;
        let mut run = Run::new(Op::Write);
        while at != PieceId::NONE {
            let sibling = self.pieces[at].sibling;
            if self.store.dead {
                self.destaged(at, Stage::Entry);
            } else {
                self.copy_write(at, &mut run);
            }
            at = sibling;
        }
        self.flush_run(&mut run);
    }

    /// Writes what was read to the pool.
    fn copy_write(&mut self, index: PieceId, run: &mut Run) {
        let now = self.fleet.now;
        let piece = &mut self.pieces[index];
        piece.wait(now);
        piece.stage = Stage::CopyWrite;
        let Piece { key, cached: mut rest, .. } = *piece;
        while let Some((from, to)) = self.next_run(key, &mut rest) {
            self.join(run, index, from, to);
        }
    }

    /// A destaged block is clean, and the table knows it.
    pub(super) fn destaged(&mut self, index: PieceId, stage: Stage) {
        let Piece { key, cached, host, .. } = self.pieces[index];
        if stage == Stage::CopyWrite {
            if let Some(frame) = self.store.find(key) {
                let (valid, dirty) = self.store.masks_of(frame);
                self.store.set(key, frame, valid, dirty & !cached);
                self.pooled(frame, dirty & cached);
            }
            self.pieces[index].entry = self.keys.metadata == Metadata::Written;
            if self.write_entry(index) {
                return;
            }
        }
        let group = &mut self.fleet.hosts[host].own;
        group.pieces -= 1;
        if group.pieces == 0 {
            self.fleet.hosts.remove(host);
            self.destages -= 1;
        }
        self.finish(index);
    }

    /// A TRIM: what is cached stands in line at its block, then the pool gets all of it at once.
    pub(super) fn begin_trim(&mut self, host: HostId) {
        let command = self.fleet.hosts[host].command;
        let (begin, end) = (command.offset, command.offset + command.len);
        for key in self.known_blocks(begin, end) {
            let from = begin.max(key * self.keys.block.0);
            let to = end.min((key + 1) * self.keys.block.0);
            self.add_piece(host, Kind::Trim, Hold::Alone, from, to);
        }
        self.trims.insert(host.number(), 0, begin, end - begin);
        if self.fleet.hosts[host].own.pieces == 0 {
            return self.trim_pool(host);
        }
        self.begin_pieces(host);
    }

    /// Blocks of a range that are in the cache, or at which something is under way; in order.
    pub(super) fn known_blocks(&self, begin: u64, end: u64) -> Vec<u64> {
        let (first, last) = (self.key_of(begin), self.key_of(end - 1));
        let known = |key: &u64| self.store.find(*key).is_some() || self.busy.find(*key).is_some();
        if last - first <= u64::from(self.store.frames.len()) {
            return (first..=last).filter(known).collect();
        }
        let frames = &self.store.frames;
        let mut all: Vec<u64> = (0..frames.capacity()).filter_map(|f| frames.key(f)).collect();
        all.extend(self.busy.keys());
        all.retain(|key| (first..=last).contains(key) && known(key));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The dirty sub-blocks under a TRIM have been destaged, or the table knows what is dropped.
    pub(super) fn trim_destaged(&mut self, index: PieceId) {
        if self.pieces[index].stage == Stage::CopyWrite {
            return self.trim_drop(index);
        }
        self.trim_ready(index);
    }

    /// Drops what a TRIM touches.
    fn trim_drop(&mut self, index: PieceId) {
        let Piece { key, mask, cached, .. } = self.pieces[index];
        if let Some(frame) = self.store.find(key) {
            let (valid, dirty) = self.store.masks_of(frame);
            self.store.set(key, frame, valid & !mask, dirty & !mask);
            self.pooled(frame, cached & dirty);
            self.left(frame, mask);
            let entry = self.keys.metadata == Metadata::Written && valid & mask != 0;
            let piece = &mut self.pieces[index];
            (piece.entry, piece.frame) = (entry, frame);
            if self.write_entry(index) {
                return;
            }
        }
        self.trim_ready(index);
    }

    /// One piece less that the pool's TRIM waits for.
    fn trim_ready(&mut self, index: PieceId) {
        let now = self.fleet.now;
        let piece = &mut self.pieces[index];
        piece.stage = Stage::Ready;
        piece.wait(now);
        let host = piece.host;
        let cut = &mut self.fleet.hosts[host].own;
        cut.unready -= 1;
        if cut.unready == 0 {
            cut.ready_last = index;
            self.trim_pool(host);
        }
    }
}
