//! The untimed path: what a command would leave behind on the members.

use super::stripe_cache::Span;
use super::{Array, Piece};
use crate::contract::{Command, Op, SECTOR};
use crate::fleet::HostId;
use crate::persist::persistent;

/// A stripe whose data the untimed path has written, but not its parity: that follows when another
/// stripe begins, as a stripe cache would gather a sequential write.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unfinished {
    pub stripe: u64,
    span: Span,
}
persistent!(Unfinished { state { stripe, span } });

impl Array {
    /// Does a command in no time.
    pub(super) fn apply_command(&mut self, command: &Command) {
        self.note_change(command.op, command.offset, command.len);
        if command.op == Op::Write && self.layout.parity().is_some() {
            self.write_stripes_untimed(command);
            return;
        }
        self.finish_untimed();
        match command.op {
            Op::Flush | Op::Purge => {
                if command.op == Op::Purge {
                    self.stripes.forget();
                    self.hole.heal_stripes(0, u64::MAX);
                }
                self.unsettled.flushes.clear();
                for member in 0..self.seats.len() as u32 {
                    if self.alive(member) {
                        self.apply_to(member, command);
                    }
                }
            }
            Op::Trim if !self.trims => self.trims_dropped += 1,
            Op::Trim => self.split_trim(command),
            Op::Write => {
                let _ = self.split_all(command.offset, command.len);
            }
            Op::Read => self.split_read(HostId::NONE, command.offset, command.len),
        }
        let pieces = self.take_pieces();
        for piece in &pieces {
            let stamp = self.stamp_of_piece(command, piece);
            let Piece { member, offset, len } = *piece;
            self.apply_to(member, &Command { offset, len, stamp, ..*command });
        }
        self.give_back(pieces);
    }

    fn write_stripes_untimed(&mut self, command: &Command) {
        let parity = self.layout.parity().expect("stripes");
        let (width, chunk) = (parity.width(), parity.chunk);
        let (mut at, end) = (command.offset, command.offset + command.len);
        while at < end {
            let (stripe, lo) = (at / width, at % chunk);
            let hi = chunk.min(lo + end - at);
            let span = Span { lo, hi };
            let open = self.unfinished.filter(|u| u.stripe == stripe && u.span.joins(span));
            if open.is_none() {
                self.finish_untimed();
            }
            if self.degraded {
                self.write_degraded_untimed(command, at, span);
                at += hi - lo;
                continue;
            }
            let (place, _) = self.layout.place(at, 0);
            let piece = Piece { member: place.member, offset: place.offset, len: hi - lo };
            let stamp = self.stamp_of_piece(command, &piece);
            let Piece { member, offset, len } = piece;
            self.apply_to(member, &Command { offset, len, stamp, ..*command });
            let span = open.map_or(span, |u| u.span.hull(span));
            self.unfinished = Some(Unfinished { stripe, span });
            at += hi - lo;
        }
        let last = (command.offset + command.len - 1) / width;
        self.stripes.forget_range(command.offset / width, last + 1);
    }

    /// A part of a chunk, and the parity of it, where a member is missing.
    fn write_degraded_untimed(&mut self, command: &Command, at: u64, span: Span) {
        let parity = self.layout.parity().expect("stripes").clone();
        let stripe = at / parity.width();
        if self.is_lost(stripe) {
            return;
        }
        let role = (at / parity.chunk % u64::from(parity.data())) as u32;
        let stamps =
            self.stamp_degraded(stripe, role, span, command.stamp + (at - command.offset) / SECTOR);
        let (offset, len) = (stripe * parity.chunk + span.lo, span.hi - span.lo);
        for (nth, role) in std::iter::once(role).chain(parity.data()..parity.members).enumerate() {
            if self.has_chunk(stripe, role) {
                let compressible = if nth == 0 { command.compressible } else { 0 };
                let write = Command { offset, len, stamp: stamps[nth], compressible, ..*command };
                self.apply_to(parity.member(stripe, role), &write);
            }
        }
        self.hole.heal(stripe, span);
    }

    /// Writes the parity that the untimed path still owes.
    pub(super) fn finish_untimed(&mut self) {
        let Some(Unfinished { stripe, span }) = self.unfinished.take() else { return };
        let parity = self.layout.parity().expect("stripes").clone();
        for which in 0..parity.parities {
            let member = parity.member(stripe, parity.data() + which);
            let stamp = self.stamp_parity(stripe, which as usize, span);
            let (offset, len) = (stripe * parity.chunk + span.lo, span.hi - span.lo);
            let command = Command { op: Op::Write, offset, len, stamp, ..Command::default() };
            self.apply_to(member, &command);
        }
        self.hole.heal(stripe, span);
    }
}
