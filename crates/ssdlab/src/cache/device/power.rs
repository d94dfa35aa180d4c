//! What a loss of power leaves of the cache.
//!
//! The table of blocks outlives it. What is dirty is found again; of what was being written the old is there or
//! the new. Where both devices are safe, what is clean stays too.
//!
//! A device with a volatile write cache loses what was not flushed. The frames of such a cache device may then hold
//! something else than the table says, so that what became dirty since the last flush is dropped: the pool has what was
//! there before. A pool like that may lose what was destaged, so that what is still in the cache is dirty
//! again; what has left it is counted. In both cases nothing clean stays.

use super::busy::Busy;
use super::keys::Metadata;
use super::{CACHE, CacheDevice, Kind, POOL, Piece, PieceId, Purpose, Stage};
use crate::contract::{Device, Op};
use crate::fleet::{Composite, Io};
use crate::sim::Slab;

/// Bytes of the table that are read at once when the cache starts.
const TABLE_READ: u64 = 1 << 20;

impl CacheDevice {
    /// Power goes; answers when the devices are ready again.
    pub(super) fn cut_power(&mut self, now: u64) -> u64 {
        let volatile = |member: usize| {
            let member = &self.fleet.members[member];
            !member.dead && member.is_volatile()
        };
        // A purge under way has erased one device, perhaps, and not the other.
        let drops_clean = volatile(POOL) || volatile(CACHE) || self.fleet.purging;
        let (ready, _) = self.fleet.cut(now);
        let pieces = std::mem::take(&mut self.pieces);
        pieces.iter().for_each(|piece| self.cut_write(piece));
        for frame in 0..self.store.frames.capacity() {
            self.cut_frame(frame, drops_clean);
        }
        self.counts.exposed_bytes += self.unpooled.gone.now() * self.keys.sub_block.0;
        self.all_safe();
        (self.busy, self.pieces) = (Busy::new(), Slab::new());
        self.waiting.clear();
        self.trims.clear();
        (self.fills, self.destages, self.promised) = (0, 0, 0);
        self.next_destage = self.next_destage.min(now);
        self.draining = !self.mode.defers() && self.store.dirty_now > 0;
        self.plan_timer();
        ready
    }

    /// A write was under way: what it replaces in its frame is neither here nor there, and what it was to drop stays.
    fn cut_write(&mut self, piece: &Piece) {
        let under_way = piece.kind == Kind::Write && piece.stage != Stage::Waits;
        let Some(frame) = self.store.find(piece.key).filter(|_| under_way) else { return };
        let (valid, dirty) = self.store.masks_of(frame);
        let replaced = piece.cached & !dirty & !self.unpooled.of(frame);
        self.store.set(piece.key, frame, valid & !replaced | piece.dropped, dirty | piece.dropped);
    }

    fn cut_frame(&mut self, frame: u32, drops_clean: bool) {
        let Some(key) = self.store.frames.key(frame).filter(|_| !self.store.dead) else { return };
        let (valid, dirty) = self.store.masks(key);
        let dirty = dirty | self.unpooled.of(frame) & valid;
        let lost = dirty & self.uncached.of(frame);
        self.fleet.power.lost_bytes += u64::from(lost.count_ones()) * self.keys.sub_block.0;
        let dirty = dirty & !lost;
        let valid = if drops_clean { dirty } else { valid & !lost };
        self.store.set(key, frame, valid, dirty);
        self.store.free_if_empty(key);
    }

    /// The devices are ready: the table is read, if it is on the cache device.
    pub(super) fn read_table(&mut self, from: u64) {
        let written = self.keys.metadata == Metadata::Written;
        let end = if written { self.data } else { 0 };
        let len = end.saturating_sub(from).min(TABLE_READ);
        if len == 0 || self.store.dead {
            self.started();
            return self.clean();
        }
        let purpose = Purpose::Table(from + len);
        self.fleet.send(Io { member: CACHE, op: Op::Read, offset: from, len, purpose }, 0, 0);
    }

    /// Sub-blocks of a frame that are dirty no more because the pool has them.
    pub(super) fn pooled(&mut self, frame: u32, mask: u64) {
        self.unpooled.add(frame, mask);
    }

    /// Sub-blocks leave a frame whose content the pool may have in its volatile write cache alone.
    pub(super) fn left(&mut self, frame: u32, mask: u64) {
        self.unpooled.leave((self.unpooled.of(frame) & mask).count_ones());
        self.unpooled.remove(frame, mask);
        self.uncached.remove(frame, mask);
    }

    /// A frame was used again, which may cost one its place at which nobody is.
    pub(super) fn hit(&mut self, frame: u32) {
        let busy = &self.busy;
        if let Some(freed) = self.store.hit(frame, |other| busy.find(other).is_none()) {
            self.left(freed, u64::MAX);
        }
    }

    /// A frame for a block, of one at which nobody is.
    pub(super) fn frame_for(&mut self, key: u64) -> Option<u32> {
        let busy = &self.busy;
        let frame = self.store.admit(key, |other| busy.find(other).is_none())?;
        self.left(frame, u64::MAX);
        Some(frame)
    }

    /// What a piece of a write has changed, when it is done; `before` was dirty in its frame.
    pub(super) fn note_written(&mut self, index: PieceId, frame: u32, before: u64, clean: u64) {
        let Piece { dirty, .. } = self.pieces[index];
        let fresh = dirty & !before & !self.unpooled.of(frame);
        self.uncached.add(frame, fresh);
        self.pooled(frame, before & clean);
    }

    /// A write is done that the pool got alone.
    #[inline]
    pub(super) fn note_dropped(&mut self, index: PieceId) {
        let Piece { frame, dropped, .. } = self.pieces[index];
        if dropped != 0 {
            self.unpooled.add(frame, dropped);
            self.left(frame, dropped);
        }
    }
}
