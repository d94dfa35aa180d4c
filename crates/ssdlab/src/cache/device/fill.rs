//! Fills: what a host asked for is brought into the cache when it has its answer.

use super::keys::{FillSize, Metadata};
use super::{CacheDevice, Hold, Kind, Piece, PieceId, Run, Stage};
use crate::contract::Op;

impl CacheDevice {
    /// The host has what it wanted of a piece, which becomes a fill or leaves.
    #[inline]
    pub(super) fn fill_or_finish(&mut self, index: PieceId) {
        if !self.pieces[index].fills || !self.begin_fill(index) {
            self.finish(index);
        }
    }

    /// Begins to fill, if there is a frame and a fill to spare.
    fn begin_fill(&mut self, index: PieceId) -> bool {
        let Piece { key, begin, end, mask, block, .. } = self.pieces[index];
        let (valid, _) = self.store.masks(key);
        let wanted = match self.keys.fill {
            FillSize::Request => mask,
            FillSize::Block => self.sub_blocks_of(key),
        };
        let wanted = wanted & !valid & !self.held_by_others(block, index);
        if wanted == 0 {
            return false;
        }
        // More than the host asked for: a TRIM of it may be under way that found nothing here.
        let (from, to) = self.hull(key, wanted);
        let spare = self.fills < self.keys.fills && !self.fleet.purging && !self.fleet.settling;
        if self.store.dead || !spare || self.races_with_trim(from, to) {
            self.counts.fills_skipped += 1;
            return false;
        }
        let Some(frame) = self.store.find(key).or_else(|| self.frame_for(key)) else {
            self.counts.fills_skipped += 1;
            return false;
        };
        let bytes = u64::from(wanted.count_ones()) * self.keys.sub_block.0;
        if !self.budget.take(self.fleet.now, bytes) {
            return false;
        }
        self.fills += 1;
        self.counts.fills += 1;
        self.counts.fill_bytes += bytes;
        // What the host read or wrote is at hand.
        let mut rest = wanted & !self.covered(begin, end);
        let now = self.fleet.now;
        let entry = self.keys.metadata == Metadata::Written;
        let piece = &mut self.pieces[index];
        (piece.kind, piece.hold, piece.stage) = (Kind::Fill, Hold::Copy, Stage::CopyRead);
        (piece.mask, piece.cached, piece.dirty) = (wanted, wanted, 0);
        (piece.frame, piece.entry, piece.since) = (frame, entry, now);
        (piece.sibling, piece.fills) = (PieceId::NONE, false);
        if rest == 0 {
            self.fill_write(index);
        } else {
            let mut run = Run::new(Op::Read);
            while let Some((from, to)) = self.next_run(key, &mut rest) {
                self.join(&mut run, index, from, to);
            }
            self.flush_run(&mut run);
        }
        self.resume_line(block);
        true
    }

    /// All is at hand: into the frame.
    pub(super) fn fill_write(&mut self, index: PieceId) {
        if self.store.dead {
            return self.filled(index, Stage::Entry);
        }
        let Piece { key, cached: mut rest, .. } = self.pieces[index];
        self.pieces[index].stage = Stage::CopyWrite;
        while let Some((from, to)) = self.next_run(key, &mut rest) {
            self.send_to_frame(index, Op::Write, from, to);
        }
    }

    /// The data are in the frame, or the table knows it.
    pub(super) fn filled(&mut self, index: PieceId, stage: Stage) {
        if stage == Stage::CopyWrite && self.write_entry(index) {
            return;
        }
        let Piece { key, cached, .. } = self.pieces[index];
        if let Some(frame) = self.store.find(key) {
            let (valid, dirty) = self.store.masks_of(frame);
            self.store.set(key, frame, valid | cached, dirty);
        }
        self.fills -= 1;
        self.finish(index);
    }
}
