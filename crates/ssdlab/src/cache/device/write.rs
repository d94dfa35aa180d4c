//! Pieces of writes: to the cache, to the pool, or to both.

use super::keys::{Metadata, Mode, WriteMiss};
use super::{CACHE, CacheDevice, Kind, NONE, Piece, PieceId, Purpose, Run, Stage};
use crate::contract::Op;
use crate::fleet::Io;

/// Where a piece goes, as far as it can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Pool,
    Both,
    Cache,
    /// It has to wait for a frame or for room below the mark.
    Wait,
}

/// The frame of a block, if it has one, and its valid and dirty sub-blocks.
type Found = (Option<u32>, (u64, u64));

/// Bytes of a page of the cache's own table.
pub(super) const PAGE: u64 = 4096;

impl CacheDevice {
    /// It is the turn of a piece of a write.
    pub(super) fn begin_write(&mut self, index: PieceId, run: &mut Run) {
        let Piece { key, mask, .. } = self.pieces[index];
        let uses = self.uses.count(key, true);
        // A block at which a piece is keeps its frame, so that it is looked up once.
        let mut found = self.store.look(key);
        let (frame, (valid, _)) = found;
        self.counts.looked_up(true, mask, valid);
        if let Some(frame) = frame
            && valid & mask != 0
        {
            self.hit(frame);
        }
        let admitted = self.admits(uses, self.keys.write_threshold);
        // What it may do is kept where it waits.
        self.pieces[index].fills = admitted;
        match self.way(index, false, &mut found) {
            Way::Wait => {
                self.pieces[index].stage = Stage::Waits;
                self.waiting.push_back(index);
                self.counts.waits += 1;
                self.clean();
            }
            way => self.start_write(index, way, found, run),
        }
    }

    /// Where a write goes, which is or is not the first of those that wait; brings its block in, if it is let in, and
    /// finds it then.
    fn way(&mut self, index: PieceId, first: bool, found: &mut Found) -> Way {
        if self.mode.goes_around() || self.store.dead {
            return Way::Pool;
        }
        let Piece { key, begin, end, mask, host, fills: admitted, block, .. } = self.pieces[index];
        if self.fleet.hosts[host].own.past {
            return Way::Pool;
        }
        let (frame, (valid, dirty)) = *found;
        let cached = (self.covered(begin, end) | valid) & mask;
        let wanted = (frame.is_some() || admitted) && cached != 0;
        if !wanted || self.races_with_trim(begin, end) {
            return Way::Pool;
        }
        let defers = self.mode.defers();
        let both = !defers || (self.keys.write_miss == WriteMiss::Both && mask & !valid != 0);
        let fresh = u64::from((cached & !dirty & !self.promised_at(block)).count_ones());
        let full = self.store.dirty_now + self.promised + fresh > self.high;
        if !both && fresh > 0 && (full || (!first && !self.waiting.is_empty())) {
            return Way::Wait;
        }
        let frame = match frame.or_else(|| self.frame_for(key)) {
            Some(frame) => frame,
            None if defers && !both => return Way::Wait,
            None => return Way::Pool,
        };
        *found = (Some(frame), self.store.masks_of(frame));
        if !self.budget.take(self.fleet.now, end - begin) {
            if !self.is_beside_others(index) {
                return Way::Pool;
            }
            // What others write to is not dropped meanwhile.
            self.budget.charge(self.fleet.now, end - begin);
        }
        self.pieces[index].frame = frame;
        if both { Way::Both } else { Way::Cache }
    }

    /// Sends what a write needs.
    fn start_write(&mut self, index: PieceId, way: Way, found: Found, run: &mut Run) {
        if let (Way::Pool, None) = (way, found.0) {
            return self.start_past(index, run);
        }
        let Piece { key, begin, end, mask, block, .. } = self.pieces[index];
        let (frame, (valid, dirty)) = found;
        let covered = self.covered(begin, end);
        // Of a dirty sub-block that is written in part, only the cache has the rest.
        let partial = dirty & mask & !covered;
        let (cached, to_pool) = match way {
            Way::Cache => ((covered | valid) & mask, mask & !(covered | valid)),
            Way::Both => ((covered | valid) & mask, mask),
            _ => (partial, mask),
        };
        let dirties = if way == Way::Cache { cached } else { 0 };
        let fresh = dirties & !dirty;
        let mut entry = if way == Way::Cache { fresh != 0 } else { cached & !valid != 0 };
        if let Some(frame) = frame {
            let dropped = valid & mask & !cached;
            entry |= dropped != 0;
            self.store.set(key, frame, valid & !dropped, dirty & !dropped);
            let dropped_alone = dropped & (dirty | self.unpooled.of(frame));
            self.left(frame, dropped & !dropped_alone);
            let piece = &mut self.pieces[index];
            (piece.frame, piece.dropped) = (frame, dropped_alone);
        }
        if way == Way::Pool && partial != 0 {
            self.budget.charge(self.fleet.now, end - begin);
        }
        let promised = fresh & !self.promised_at(block);
        self.promised += u64::from(promised.count_ones());
        let written = self.keys.metadata == Metadata::Written;
        let piece = &mut self.pieces[index];
        piece.stage = Stage::Data;
        (piece.cached, piece.dirty) = (cached, dirties);
        piece.promised = promised;
        piece.entry = entry && written && piece.frame != NONE;
        // Brought in afterwards from what the host wrote.
        piece.fills = self.mode == Mode::WriteAroundFill && (valid & mask != 0 || piece.fills);
        let whole = (begin, end, mask);
        let (mut to_cache, mut to_pool) = (cached, to_pool);
        while let Some((from, to)) = self.next_part(key, whole, &mut to_cache) {
            self.send_to_frame(index, Op::Write, from, to);
        }
        while let Some((from, to)) = self.next_part(key, whole, &mut to_pool) {
            self.join(run, index, from, to);
        }
    }

    /// The same where nothing of its block is in the cache, nor will be.
    #[inline]
    fn start_past(&mut self, index: PieceId, run: &mut Run) {
        let piece = &mut self.pieces[index];
        piece.stage = Stage::Data;
        piece.fills &= self.mode == Mode::WriteAroundFill;
        let Piece { begin, end, .. } = *piece;
        self.join(run, index, begin, end);
    }

    /// The data of a write are where they should be; the table follows.
    #[inline]
    pub(super) fn written(&mut self, index: PieceId) {
        if !self.write_entry(index) {
            self.write_done(index);
        }
    }

    /// Writes the page of the table that a piece has changed, if it must be.
    #[inline]
    pub(super) fn write_entry(&mut self, index: PieceId) -> bool {
        let Piece { entry, frame, .. } = self.pieces[index];
        if !entry || self.store.dead {
            return false;
        }
        self.send_entry(index, frame);
        true
    }

    fn send_entry(&mut self, index: PieceId, frame: u32) {
        let offset = u64::from(frame) * self.keys.metadata_bytes.0 / PAGE * PAGE;
        let piece = &mut self.pieces[index];
        (piece.entry, piece.stage, piece.ios) = (false, Stage::Entry, 1);
        self.counts.entries += 1;
        self.budget.charge(self.fleet.now, PAGE);
        let stamp = self.fleet.stamp_blank(PAGE);
        let (op, purpose) = (Op::Write, Purpose::Pieces(index, 1, 0));
        self.fleet.send(Io { member: CACHE, op, offset, len: PAGE, purpose }, stamp, 0);
    }

    /// A write is done.
    #[inline]
    pub(super) fn write_done(&mut self, index: PieceId) {
        self.promise_kept(index, u64::MAX);
        let Piece { key, begin, end, cached, dirty: dirties, .. } = self.pieces[index];
        if cached != 0
            && let Some(frame) = self.store.find(key)
        {
            let (valid, dirty) = self.store.masks_of(frame);
            // What the pool has too is clean, where nothing older is left beside it.
            let clean = cached & !dirties & self.covered(begin, end);
            self.store.set(key, frame, valid | cached, dirty & !clean | dirties);
            if dirties & !dirty != 0 {
                self.kept_by_another(index, dirties);
            }
            self.note_written(index, frame, dirty, clean);
        }
        self.note_dropped(index);
        self.host_part_done(index);
        self.fill_or_finish(index);
    }

    /// Dirty sub-blocks of a piece are no longer promised but there.
    #[inline]
    fn promise_kept(&mut self, index: PieceId, there: u64) {
        let piece = &mut self.pieces[index];
        self.promised -= u64::from((piece.promised & there).count_ones());
        piece.promised &= !there;
    }

    /// A write made sub-blocks dirty that may have been promised to one beside it.
    fn kept_by_another(&mut self, index: PieceId, there: u64) {
        let mut at = self.busy.first(self.pieces[index].block);
        while at != PieceId::NONE {
            self.promise_kept(at, there);
            at = self.pieces[at].next;
        }
    }

    /// The sub-blocks of a block that are promised to writes under way at it.
    #[inline]
    pub(super) fn promised_at(&self, block: u32) -> u64 {
        let (mut at, mut found) = (self.busy.first(block), 0);
        while at != PieceId::NONE {
            found |= self.pieces[at].promised;
            at = self.pieces[at].next;
        }
        found
    }

    /// Tries the writes again that wait for a frame or for room, in their order.
    pub(super) fn retry_waiting(&mut self) {
        while let Some(&index) = self.waiting.front() {
            self.waiting.pop_front();
            if self.retry(index) {
                continue;
            }
            self.waiting.push_front(index);
            return;
        }
    }

    /// Tries a write again that waited.
    fn retry(&mut self, index: PieceId) -> bool {
        let mut found = self.store.look(self.pieces[index].key);
        let way = self.way(index, true, &mut found);
        if way == Way::Wait {
            return false;
        }
        self.start_waiting(index, way, found);
        true
    }

    /// Nothing can be destaged: those that wait go to the pool.
    pub(super) fn send_past_waiting(&mut self) {
        while let Some(index) = self.waiting.pop_front() {
            self.counts.sent_past += 1;
            let found = self.store.look(self.pieces[index].key);
            self.start_waiting(index, Way::Pool, found);
        }
    }

    fn start_waiting(&mut self, index: PieceId, way: Way, found: Found) {
        let now = self.fleet.now;
        let piece = &mut self.pieces[index];
        debug_assert_eq!((piece.kind, piece.stage), (Kind::Write, Stage::Waits));
        piece.wait(now);
        let mut run = Run::new(Op::Write);
        self.start_write(index, way, found, &mut run);
        self.flush_run(&mut run);
    }
}
