//! Commands that go to the members at once: everything but the writes of RAID 5 and 6.

use super::layout::{Copies, Layout, Place};
use super::{Array, Io, Piece, ReadBalance, Task};
use crate::contract::{Command, Distance, Op};
use crate::fleet::HostId;
use crate::stats::Parts;

const NO_PIECE: u32 = u32::MAX;

impl Array {
    /// Members will be asked for the first bytes of a command: where they lie, and what a write changes with them.
    pub(super) fn expect_of_members(&self, op: Op, offset: u64, ahead: Distance) {
        let expect = |Place { member, offset }: Place| {
            self.member(member).device.expect(op, offset, ahead);
        };
        let (place, _) = self.layout.place(offset, 0);
        expect(place);
        if op != Op::Write {
            return;
        }
        (1..self.layout.copies()).for_each(|copy| expect(self.layout.place(offset, copy).0));
        if let Some(parity) = self.layout.parity() {
            let row = place.offset / parity.chunk;
            let roles = parity.data()..parity.members;
            roles.for_each(|role| expect(Place { member: parity.member(row, role), ..place }));
        }
    }

    /// A flush or a purge goes to every member.
    pub(super) fn everywhere(&mut self, host: HostId) {
        let command = self.fleet.hosts[host].command;
        if command.op == Op::Purge {
            self.stripes.forget();
            self.hole.heal_stripes(0, u64::MAX);
        } else {
            self.fleet.hosts[host].own.flush = self.unsettled.flushes.begin();
        }
        for member in 0..self.seats.len() as u32 {
            if self.alive(member) {
                self.piece(member, command.offset, command.len);
            }
        }
        self.send_pieces(host);
    }

    pub(super) fn write(&mut self, host: HostId) {
        let command = self.fleet.hosts[host].command;
        let (first, run) = self.layout.place(command.offset, 0);
        // Copies have runs of one length.
        if command.len <= run && !self.degraded && !self.watches_wear {
            self.send_uncut(host, first);
            for copy in 1..self.layout.copies() {
                self.send_uncut(host, self.layout.place(command.offset, copy).0);
            }
            return;
        }
        let whole = self.split_all(command.offset, command.len);
        self.send_pieces(host);
        if !whole {
            self.fail_command(host);
        }
    }

    /// Where a command lies that lies on one member, of an array of which nothing is missing or to be made equal, and
    /// changes nothing on others.
    #[inline]
    fn place_alone(&self, command: &Command) -> Option<Place> {
        let alone = match command.op {
            Op::Read => true,
            Op::Write => self.layout.copies() == 1 && self.layout.parity().is_none(),
            Op::Trim | Op::Flush | Op::Purge => false,
        };
        if !alone || self.degraded || !self.resync.stale.is_empty() {
            return None;
        }
        let (place, run) = self.layout.place(command.offset, 0);
        (command.len <= run).then_some(place)
    }

    /// Whether a card need not show a command to its firmware.
    pub(super) fn is_fast_path(&self, command: &Command) -> bool {
        self.place_alone(command).is_some_and(|Place { member, offset }| {
            self.member(member).device.fast_path(&Command { offset, ..*command })
        })
    }

    /// The member that does a command by itself, and as what.
    #[inline]
    pub(super) fn only_member(&mut self, command: &Command) -> Option<(usize, Command)> {
        let remade = command.op == Op::Read && self.versions.is_some();
        if self.may_fail || self.bus.is_some() || remade {
            return None;
        }
        let place = self.place_alone(command)?;
        let place = match self.layout.copies() {
            1 => place,
            copies => self.choose(command.offset, command.len, copies)?,
        };
        let Place { member, offset } = place;
        let stamp = match self.versions {
            None => 0,
            Some(_) => self.stamp_of_piece(command, &Piece { member, offset, len: command.len }),
        };
        Some((member as usize, Command { offset, stamp, ..*command }))
    }

    pub(super) fn trim(&mut self, host: HostId) {
        let command = self.fleet.hosts[host].command;
        self.split_trim(&command);
        self.send_pieces(host);
    }

    /// Pieces of a TRIM: of all copies; of whole stripes, parity included.
    pub(super) fn split_trim(&mut self, command: &Command) {
        let Some(parity) = self.layout.parity() else {
            let _ = self.split_all(command.offset, command.len);
            return;
        };
        let (width, chunk, members) = (parity.width(), parity.chunk, parity.members);
        let first = command.offset.div_ceil(width);
        let end = (command.offset + command.len) / width;
        if first >= end {
            return;
        }
        self.stripes.forget_range(first, end);
        self.hole.heal_stripes(first, end);
        for member in 0..members {
            if self.alive(member) {
                self.piece(member, first * chunk, (end - first) * chunk);
            }
        }
    }

    pub(super) fn read(&mut self, host: HostId) {
        let command = self.fleet.hosts[host].command;
        if self.layout.copies() == 1
            && !self.degraded
            && let (place, run) = self.layout.place(command.offset, 0)
            && command.len <= run
        {
            return self.send_uncut(host, place);
        }
        self.split_read(host, command.offset, command.len);
        self.send_pieces(host);
    }

    /// Sends a command that lies on one member as it is.
    #[inline]
    fn send_uncut(&mut self, host: HostId, Place { member, offset }: Place) {
        let active = &mut self.fleet.hosts[host];
        active.remaining += 1;
        active.own.ios += 1;
        let Command { op, len, compressible, .. } = active.command;
        let stamp = match self.versions {
            None => 0,
            Some(_) => {
                let command = self.fleet.hosts[host].command;
                self.stamp_of_piece(&command, &Piece { member, offset, len })
            }
        };
        let io = self.io(Task::Host(host), member, op, offset, len);
        self.send(io, stamp, compressible);
    }

    /// Pieces of one copy of a range.
    pub(super) fn split_read(&mut self, host: HostId, offset: u64, len: u64) {
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let run = self.layout.place(at, 0).1;
            let len = run.min(end - at);
            let place = match self.layout.copies() {
                1 => Some(self.layout.place(at, 0).0).filter(|&place| self.readable(place, len)),
                copies => self.choose(at, len, copies),
            };
            match place {
                Some(place) => self.piece(place.member, place.offset, len),
                None if host == HostId::NONE => {}
                None => self.read_without_member(host, at, len),
            }
            at += len;
        }
    }

    /// Whether the member itself can be asked for these bytes.
    #[inline]
    fn readable(&self, place: Place, len: u64) -> bool {
        if !self.degraded {
            return true;
        }
        match self.layout.parity() {
            // A stripe is rebuilt as a whole.
            Some(parity) => {
                let offset = place.offset / parity.chunk * parity.chunk;
                self.holds(Place { offset, ..place }, parity.chunk)
            }
            None => self.holds(place, len),
        }
    }

    /// The copy that a read takes.
    fn choose(&mut self, offset: u64, len: u64, copies: u32) -> Option<Place> {
        let Layout::Mirrored(mirrored) = &self.layout else { unreachable!("no copies") };
        let near = mirrored.arrangement == Copies::Near;
        // RAID 1.
        let in_place = mirrored.rows == 1 && self.read_balance != ReadBalance::RoundRobin;
        let mut best = None;
        for copy in 0..copies {
            let copy = match self.read_balance {
                ReadBalance::RoundRobin => (self.turn + copy) % copies,
                _ => copy,
            };
            let (place, _) = self.layout.place(offset, copy);
            if !self.holds(place, len) {
                continue;
            }
            if self.is_stale(offset, len) {
                // The copies may differ: the first one counts.
                return (0..copies)
                    .map(|copy| self.layout.place(offset, copy).0)
                    .find(|&place| self.holds(place, len));
            }
            let member = self.member(place.member);
            if in_place && member.read_end == place.offset {
                return Some(place);
            }
            let distance = member.head.abs_diff(place.offset);
            let cost = match self.read_balance {
                ReadBalance::RoundRobin => (0, 0),
                ReadBalance::LeastPending => (u64::from(member.pending), distance),
                ReadBalance::Nearest if !near => (place.offset, 0),
                ReadBalance::Nearest if member.pending == 0 => (0, 0),
                ReadBalance::Nearest => (distance, 0),
            };
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, place));
            }
        }
        self.turn = if self.turn + 1 >= copies { 0 } else { self.turn + 1 };
        best.map(|(_, place)| place)
    }

    /// Pieces of all copies of a range; whether all of it has a member left.
    pub(super) fn split_all(&mut self, offset: u64, len: u64) -> bool {
        let (mut at, end) = (offset, offset + len);
        let mut whole = true;
        while at < end {
            let mut step = end - at;
            let mut some = false;
            for copy in 0..self.layout.copies() {
                let (place, run) = self.layout.place(at, copy);
                step = step.min(run);
                if self.alive(place.member) {
                    some = true;
                    self.piece(place.member, place.offset, step);
                }
            }
            whole &= some;
            at += step;
        }
        whole
    }

    /// Adds a piece, to the last one of its member where it follows on.
    #[inline]
    fn piece(&mut self, member: u32, offset: u64, len: u64) {
        let last = self.last_piece[member as usize];
        if let Some(piece) = self.pieces.get_mut(last as usize)
            && piece.offset + piece.len == offset
        {
            piece.len += len;
            return;
        }
        self.last_piece[member as usize] = self.pieces.len() as u32;
        self.member_mut(member).pending += 1;
        self.pieces.push(Piece { member, offset, len });
    }

    /// Sends the pieces that were collected for a command of the host.
    pub(super) fn send_pieces(&mut self, host: HostId) {
        let active = &mut self.fleet.hosts[host];
        active.remaining += self.pieces.len() as u32;
        active.own.ios += self.pieces.len() as u32;
        let command = active.command;
        let Command { op, compressible, .. } = command;
        let pieces = self.take_pieces();
        for &piece in &pieces {
            let stamp = self.stamp_of_piece(&command, &piece);
            let Piece { member, offset, len } = piece;
            let io = self.io(Task::Host(host), member, op, offset, len);
            self.send(io, stamp, compressible);
        }
        if op == Op::Write && self.watches_wear {
            pieces.iter().for_each(|piece| self.look_at_wear(piece.member));
        }
        self.give_back(pieces);
    }

    /// The pieces collected; their buffer is to be given back.
    pub(super) fn take_pieces(&mut self) -> Vec<Piece> {
        let pieces = std::mem::take(&mut self.pieces);
        for piece in &pieces {
            self.last_piece[piece.member as usize] = NO_PIECE;
            // It counted as chosen. The member may have failed since.
            let pending = &mut self.member_mut(piece.member).pending;
            *pending = pending.saturating_sub(1);
        }
        pieces
    }

    pub(super) fn give_back(&mut self, mut pieces: Vec<Piece>) {
        pieces.clear();
        self.pieces = pieces;
    }

    /// A member has answered a piece.
    pub(super) fn host_answered(&mut self, id: HostId, io: &Io, parts: &Parts) {
        if self.versions.is_some() && io.op == Op::Read {
            self.add_digest_of_piece(id, io);
        }
        let last = self.fleet.release(id);
        let own = &mut self.fleet.hosts[id].own;
        let (ios, summed) = (own.ios, std::mem::replace(&mut own.summed, true));
        if last && !summed {
            self.complete(id, ios, parts, &[]);
            return;
        }
        let sum = &mut self.sums[id.index()];
        if summed {
            sum.add_all(parts);
        } else {
            *sum = parts.clone();
        }
        if last {
            let sum = std::mem::take(sum);
            self.complete(id, ios, &sum, &[]);
        }
    }
}
