//! What happens by the clock: a change of the mode, the end of the cache device.

use super::{CACHE, CacheDevice, Io, Kind, POOL, Piece, Run, Stage, TIMERS};
use crate::device::{Device, Op};
use crate::stats::Parts;
use crate::units::NEVER;

impl CacheDevice {
    /// The devices that are there.
    pub(super) fn live(&self) -> std::ops::Range<usize> {
        0..if self.store.dead { 1 } else { 2 }
    }

    /// The calendar after devices changed without time.
    pub(super) fn plan_devices(&mut self) {
        for slot in self.live() {
            self.calendar.set(slot as u32, self.slots[slot].next_event());
        }
        self.plan_timers();
    }

    /// When something happens by the clock.
    pub(super) fn plan_timers(&mut self) {
        let due = self.switch_at().min(self.fails_at()).min(self.clean_due());
        self.calendar.set(TIMERS, due);
    }

    fn switch_at(&self) -> u64 {
        let at = self.keys.switch.as_ref().map_or(NEVER, |switch| switch.at.0);
        if self.switched { NEVER } else { at }
    }

    fn fails_at(&self) -> u64 {
        let at = self.keys.cache_fails_at.map_or(NEVER, |at| at.0);
        if self.store.dead { NEVER } else { at }
    }

    /// Something is due.
    pub(super) fn timer(&mut self) {
        if self.switch_at() <= self.now {
            self.switched = true;
            let to = self.keys.switch.as_ref().expect("it is due").to;
            self.mode = to;
            self.draining = !to.defers() && !self.store.dead;
        }
        if self.fails_at() <= self.now {
            self.fail();
        }
        self.clean();
        self.plan_timers();
    }

    /// The cache device fails, with what it was doing.
    fn fail(&mut self) {
        self.calendar.set(CACHE, NEVER);
        self.slots[CACHE as usize].died(self.now);
        self.counts.lost_bytes += self.lost_now();
        self.store.die();
        let lost: Vec<Io> =
            self.ios.all.iter().filter(|io| io.active && io.device == CACHE).copied().collect();
        for index in 0..self.ios.all.len() {
            let io = &mut self.ios.all[index];
            if io.active && io.device == CACHE {
                io.active = false;
                self.ios.free.push(index as u32);
            }
        }
        for io in lost {
            if io.whole {
                self.whole_answered(io.owner, &Parts::default());
            } else {
                self.never_answered(io);
            }
        }
        self.send_past_waiting();
        self.purge_if_quiet();
    }

    /// Bytes that nothing but the cache device held, and nobody is writing to the pool.
    fn lost_now(&self) -> u64 {
        let mut bytes = 0;
        for frame in 0..self.store.frames.capacity() {
            let mut dirty = self.store.dirty[frame as usize];
            let Some(key) = self.store.frames.key(frame).filter(|_| dirty != 0) else { continue };
            if let Some(block) = self.busy.find(key) {
                let mut at = self.busy.first(block);
                while let Some(piece) = self.pieces.all.get(at as usize) {
                    dirty &= !self.saved_by(piece);
                    at = piece.next;
                }
            }
            while let Some((from, to)) = self.next_run(key, &mut dirty) {
                bytes += to - from;
            }
        }
        bytes
    }

    /// Sub-blocks that a piece writes to the pool, or will.
    fn saved_by(&self, piece: &Piece) -> u64 {
        match (piece.kind, piece.stage) {
            (Kind::Destage | Kind::Trim, Stage::CopyWrite) => piece.cached,
            (Kind::Write, _) if piece.granted => self.covered(piece.begin, piece.end),
            _ => 0,
        }
    }

    /// A command of the cache device will not be answered.
    fn never_answered(&mut self, io: Io) {
        let piece = self.pieces.all[io.owner as usize];
        let mut run = Run::new(io.op);
        match (piece.kind, piece.stage) {
            (Kind::Read, Stage::Data) => {
                self.join(&mut run, io.owner, io.at, io.at + io.len);
            }
            (Kind::Write, Stage::Data) if piece.dirty != 0 => {
                self.join(&mut run, io.owner, io.at, io.at + io.len);
            }
            (Kind::Write, Stage::Entry) if piece.dirty != 0 => {
                // The host has no answer yet, and the data were on the cache device alone.
                let mut rest = piece.cached;
                self.pieces.all[io.owner as usize].stage = Stage::Data;
                while let Some((from, to)) = self.next_run(piece.key, &mut rest) {
                    let (from, to) = (from.max(piece.begin), to.min(piece.end));
                    self.join(&mut run, io.owner, from, to);
                }
            }
            _ => return self.piece_answered(io.owner, &Parts::default()),
        }
        self.flush_run(&mut run);
        self.pieces.all[io.owner as usize].ios -= 1;
    }

    /// The devices have done without time what a command leaves behind.
    pub(super) fn apply_to(&mut self, device: u32, op: Op, offset: u64, len: u64, stamp: u64) {
        debug_assert!(device == POOL || !self.store.dead);
        let command = crate::device::Command { op, offset, len, stamp, ..Default::default() };
        self.counts.sent(device == CACHE, op, len);
        self.slots[device as usize].apply(&command);
    }
}
