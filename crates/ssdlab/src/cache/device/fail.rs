//! What happens by the clock: a change of the mode, the end of the cache device.

use super::{CACHE, CacheDevice, Kind, POOL, Piece, PieceId, Purpose, Run, Stage};
use crate::contract::{Command, Op};
use crate::fleet::{Composite, Io};
use crate::stats::Parts;
use crate::units::NEVER;

impl CacheDevice {
    /// When something happens by the clock.
    #[inline]
    pub(super) fn plan_timer(&mut self) {
        let due = self.switch_at().min(self.fails_at()).min(self.clean_due());
        self.fleet.set_timer(0, due);
    }

    #[inline]
    fn switch_at(&self) -> u64 {
        let at = self.keys.switch.as_ref().map_or(NEVER, |switch| switch.at.0);
        if self.switched { NEVER } else { at }
    }

    #[inline]
    fn fails_at(&self) -> u64 {
        let at = self.keys.cache_fails_at.map_or(NEVER, |at| at.0);
        if self.store.dead { NEVER } else { at }
    }

    /// Something is due.
    pub(super) fn something_is_due(&mut self) {
        if self.switch_at() <= self.fleet.now {
            self.switched = true;
            let to = self.keys.switch.as_ref().expect("it is due").to;
            self.mode = to;
            self.draining = !to.defers() && !self.store.dead;
        }
        if self.fails_at() <= self.fleet.now {
            self.fail();
        }
        self.clean();
    }

    /// The cache device fails, with what it was doing.
    fn fail(&mut self) {
        self.fleet.fail(CACHE);
        self.counts.lost_bytes += self.lost_now();
        self.store.die();
        for io in self.fleet.take_all_lost(CACHE) {
            match io.purpose {
                Purpose::Command(host) => self.command_answered(host, &Parts::default()),
                Purpose::Pieces(piece, _, at) => self.never_answered(io, piece, at),
                Purpose::Table(_) => self.read_table(0),
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
                while at != PieceId::NONE {
                    let piece = &self.pieces[at];
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

    /// A command of the cache device for a piece, from byte `at` of the pool on, will not be answered.
    fn never_answered(&mut self, io: Io<Purpose>, index: PieceId, at: u64) {
        let piece = self.pieces[index].clone();
        let mut run = Run::new(io.op);
        match (piece.kind, piece.stage) {
            (Kind::Read, Stage::Data) => self.join(&mut run, index, at, at + io.len),
            (Kind::Write, Stage::Data) if piece.dirty != 0 => {
                self.join(&mut run, index, at, at + io.len);
            }
            (Kind::Write, Stage::Entry) if piece.dirty != 0 => {
                // The host has no answer yet, and the data were on the cache device alone.
                let mut rest = piece.cached;
                self.pieces[index].stage = Stage::Data;
                while let Some((from, to)) = self.next_run(piece.key, &mut rest) {
                    self.join(&mut run, index, from.max(piece.begin), to.min(piece.end));
                }
            }
            _ => return self.piece_answered(index, &Parts::default()),
        }
        self.flush_run(&mut run);
        self.pieces[index].ios -= 1;
    }

    /// The devices have done without time what a command leaves behind.
    pub(super) fn apply_to(&mut self, member: usize, op: Op, offset: u64, len: u64, stamp: u64) {
        debug_assert!(member == POOL || !self.store.dead);
        self.fleet.apply(member, &Command { op, offset, len, stamp, ..Command::default() });
    }
}
