//! Moves of extents.
//!
//! Piece by piece: when the rate allows it and writes of before are done, a piece is read here and written there.
//! What the host writes meanwhile: see `Tier::write_moving`. After the last piece, and where it is written the entry
//! of the map, the map switches; the old slot is free when the last command of the host has left it.

use super::keys::{MapIn, PAGE};
use super::{BELOW, FAST, Purpose, Tier};
use crate::contract::Op;
use crate::fleet::{Io, sectors};
use crate::persist::{persistent, persistent_enum};
use crate::sim::Id;

/// What a move is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Stage {
    /// Waiting for its turn by the rate.
    #[default]
    Paced,
    /// Waiting for writes of the piece that began earlier.
    Blocked,
    Reading,
    Writing,
    /// Writing the entry of the map.
    Entry,
    /// It is not to be; waiting for its last command.
    Cancelled,
}
persistent_enum!(Stage { Paced, Blocked, Reading, Writing, Entry, Cancelled });

/// An extent on its way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Move {
    pub stage: Stage,
    pub extent: u32,
    pub from: u32,
    pub to: u32,
    /// Bytes that have been copied, and up to where the present piece reaches.
    pub copied: u64,
    pub piece_end: u64,
    /// A command of its own is in flight.
    pub waits: bool,
}
persistent!(Move { state { stage, extent, from, to, copied, piece_end, waits } });

/// Bytes of an entry of the map.
const ENTRY: u64 = 8;

/// Bytes of the map of so many extents.
pub(super) fn table(extents: u64, unit: u64) -> u64 {
    (extents * ENTRY).next_multiple_of(PAGE.max(unit))
}

impl Tier {
    /// The move of an extent that is being moved.
    pub(super) fn move_of(&self, extent: u32) -> Id<Move> {
        let own = |m: &Move| m.stage != Stage::Cancelled && m.extent == extent;
        self.moves.find(own).expect("a marked extent has a move")
    }

    /// A period is over.
    pub(super) fn look(&mut self) {
        let rises = |m: &&Move| m.stage != Stage::Cancelled && m.to < self.map.fast;
        let rising = self.moves.iter().filter(rises).count() as u32;
        self.heat.look(self.fleet.now, &self.map, rising);
    }

    /// Begins as many moves as may be under way.
    pub(super) fn start_moves(&mut self) {
        if self.fleet.settling || self.fleet.purging || self.fleet.power.is_off() {
            return;
        }
        while self.moves.len() < self.keys.moves as usize {
            let free = |tier: usize| !self.map.free[tier].is_empty();
            let (up, down) = (!self.heat.ups.is_empty(), !self.heat.downs.is_empty());
            if up && free(FAST) {
                let extent = self.heat.ups.pop_front().expect("there is one");
                self.start(extent, FAST);
            } else if down && free(BELOW) {
                let extent = self.heat.downs.pop_front().expect("there is one");
                self.start(extent, BELOW);
            } else {
                return;
            }
        }
    }

    fn start(&mut self, extent: u32, tier: usize) {
        let from = self.map.slot(extent);
        if self.map.tier_of(from) == tier || self.map.moves(extent) {
            return;
        }
        let to = self.map.free[tier].pop().expect("asked for");
        self.map.mark(extent, true);
        let index = self.moves.insert(Move { extent, from, to, ..Move::default() });
        self.next_piece_of(index);
    }

    /// The next piece of a move, or its end.
    fn next_piece_of(&mut self, index: Id<Move>) {
        let m = self.moves[index];
        let size = 1 << self.shift;
        if m.copied == size {
            return self.write_entry(index);
        }
        if let Some(rate) = self.keys.move_rate {
            if self.fleet.now < self.next_piece {
                self.moves[index].stage = Stage::Paced;
                self.paced.push_back(index);
                return;
            }
            self.next_piece = self.fleet.now + rate.time(self.keys.piece());
        }
        let m = &mut self.moves[index];
        m.piece_end = (m.copied + self.keys.piece()).min(size);
        m.stage = Stage::Blocked;
        self.blocked += 1;
        self.read_piece(index);
    }

    /// It is a move's turn by the rate.
    pub(super) fn next_paced(&mut self) {
        while self.fleet.now >= self.next_piece
            && let Some(index) = self.paced.pop_front()
        {
            self.next_piece_of(index);
        }
    }

    /// Writes of before have ended.
    pub(super) fn unblock(&mut self) {
        for number in 0..self.moves.places() {
            if let Some(id) = self.moves.at(number)
                && self.moves[id].stage == Stage::Blocked
            {
                self.read_piece(id);
            }
        }
    }

    /// Reads a piece, unless the host still writes there.
    fn read_piece(&mut self, index: Id<Move>) {
        let Move { extent, from, copied, piece_end, .. } = self.moves[index];
        let base = u64::from(extent) << self.shift;
        let (begin, end) = (base + copied, base + piece_end);
        if self.fleet.is_touched(0, begin, end - begin) {
            return;
        }
        self.blocked -= 1;
        self.copy(index, Stage::Reading, Op::Read, from, (begin, end));
    }

    /// Sends a command of a move.
    fn copy(&mut self, index: Id<Move>, stage: Stage, op: Op, slot: u32, (begin, end): (u64, u64)) {
        let stamp = if op == Op::Write { self.stamp_of_copy(begin, end) } else { 0 };
        let m = &mut self.moves[index];
        (m.stage, m.waits) = (stage, true);
        let (member, offset) = (self.map.tier_of(slot), self.place(slot, begin));
        let io = Io { member, op, offset, len: end - begin, purpose: Purpose::Copy(index) };
        self.fleet.send(io, stamp, 0);
    }

    /// Takes versions for a copy of what the extent of these bytes holds where it lies.
    fn stamp_of_copy(&mut self, begin: u64, end: u64) -> u64 {
        if !self.fleet.knows_content() {
            return 0;
        }
        let slot = self.map.slot((begin >> self.shift) as u32);
        let of = |at| self.fleet.content(self.map.tier_of(slot), self.place(slot, at));
        let content: Vec<u64> = sectors(begin, end).map(of).collect();
        self.fleet.stamp(content.into_iter())
    }

    /// A command of a move has come back.
    pub(super) fn move_answered(&mut self, index: Id<Move>) {
        let m = &mut self.moves[index];
        m.waits = false;
        let base = u64::from(m.extent) << self.shift;
        let piece = (base + m.copied, base + m.piece_end);
        match m.stage {
            Stage::Reading => {
                let to = m.to;
                self.copy(index, Stage::Writing, Op::Write, to, piece);
            }
            Stage::Writing => {
                self.counts.moved(m.to < self.map.fast, m.piece_end - m.copied);
                m.copied = m.piece_end;
                self.resume_writes(index);
                self.next_piece_of(index);
            }
            Stage::Entry => self.switch(index),
            Stage::Cancelled => self.retire(index),
            Stage::Paced | Stage::Blocked => unreachable!("nothing of it is in flight"),
        }
    }

    /// All is copied: the entry of the map.
    fn write_entry(&mut self, index: Id<Move>) {
        if self.keys.metadata == MapIn::Ram {
            return self.switch(index);
        }
        self.counts.map_writes += 1;
        let m = &mut self.moves[index];
        (m.stage, m.waits) = (Stage::Entry, true);
        let offset = u64::from(m.extent) * ENTRY / PAGE * PAGE;
        let stamp = self.fleet.stamp_blank(PAGE);
        let purpose = Purpose::Entry(index);
        self.fleet.send(Io { member: FAST, op: Op::Write, offset, len: PAGE, purpose }, stamp, 0);
    }

    /// The extent lies at its new place.
    fn switch(&mut self, index: Id<Move>) {
        let Move { extent, from, to, .. } = self.moves[index];
        self.map.switch(extent, to);
        self.counts.switched(to < self.map.fast, self.fleet.now);
        self.note_moved(self.map.tier_of(to));
        self.end(index);
        self.abandon(from);
    }

    /// A move that is not to be has come to its end.
    fn retire(&mut self, index: Id<Move>) {
        let to = self.moves[index].to;
        self.end(index);
        self.abandon(to);
    }

    fn end(&mut self, index: Id<Move>) {
        self.moves.remove(index);
    }

    /// Nothing lies in a slot any more.
    fn abandon(&mut self, slot: u32) {
        if self.map.abandon(slot) {
            self.vacate(slot);
        }
    }

    /// Nobody uses a slot any more: it is deallocated, and then free.
    pub(super) fn vacate(&mut self, slot: u32) {
        let tier = self.map.tier_of(slot);
        if self.keys.trim_unit.0 == 0 || self.is_dead(tier) {
            self.map.free[tier].push(slot);
            return;
        }
        let (offset, len) = (self.place(slot, 0), 1 << self.shift);
        let purpose = Purpose::Vacate(slot);
        self.fleet.send(Io { member: tier, op: Op::Trim, offset, len, purpose }, 0, 0);
    }

    /// Gives up all moves: their extents stay where they are.
    pub(super) fn cancel_moves(&mut self) {
        self.paced.clear();
        for number in 0..self.moves.places() {
            let Some(index) = self.moves.at(number) else { continue };
            if self.moves[index].stage == Stage::Cancelled {
                continue;
            }
            let m = &mut self.moves[index];
            self.blocked -= u32::from(m.stage == Stage::Blocked);
            (m.stage, m.copied, m.piece_end) = (Stage::Cancelled, 0, 0);
            let (extent, waits) = (m.extent, m.waits);
            self.counts.cancelled += 1;
            self.map.mark(extent, false);
            self.resume_writes(index);
            if !waits {
                self.retire(index);
            }
        }
    }
}
