//! A limit on host writes: each is let in when the bytes before it have had their time.
//!
//! Some drives hold host writes to what they can keep up, so that service stays even. A write has its
//! turn no earlier than that of the write before it plus the time of that one's bytes; nothing is
//! saved up while the host is quiet. TRIMs and flushes cost nothing and keep their place between
//! writes; reads pass.

use super::{LIMIT, Ssd};
use crate::device::Op;
use crate::nand::NONE;
use crate::persist::persistent;
use crate::units::{NEVER, Rate};

const SECOND_NS: u128 = 1_000_000_000;

/// The state of the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteLimit {
    rate: Rate,
    /// When the next write has its turn, and what the division by the rate has left over.
    turn: u64,
    rest: u128,
    /// Since when the command in front has waited for its turn.
    since: u64,
    /// Time for which commands in front have waited so far.
    waited: u64,
    /// The write that has had its turn and may still wait for room.
    passed: u32,
}

persistent!(WriteLimit { state { turn, rest, since, waited, passed } built { rate } });

impl WriteLimit {
    pub fn new(rate: Rate) -> Self {
        WriteLimit { rate, turn: 0, rest: 0, since: NEVER, waited: 0, passed: NONE }
    }

    /// Time for which a command in front has waited for its turn, up to `now`.
    fn waited(&self, now: u64) -> u64 {
        self.waited + now.saturating_sub(self.since)
    }

    /// Nobody waits.
    pub fn power_cut(&mut self) {
        (self.since, self.passed) = (NEVER, NONE);
    }

    /// Takes the time of so many bytes from `now` on.
    fn charge(&mut self, now: u64, bytes: u64) {
        let rate = u128::from(self.rate.0);
        let time = u128::from(bytes) * SECOND_NS + self.rest;
        self.turn = now.max(self.turn) + (time / rate) as u64;
        self.rest = time % rate;
    }
}

impl Ssd {
    /// The controller is done with a command that is subject to the limit.
    pub(super) fn begin_limit(&mut self, index: u32) {
        let Some(limit) = &mut self.limit else { return };
        if limit.passed == index {
            // Of an earlier command in the same place.
            limit.passed = NONE;
        }
        self.commands[index as usize].limited = limit.waited(self.engine.now);
    }

    /// Whether the command in front may go on. If it may not, the drive wakes up at its turn; if it
    /// may, its wait for the limit is known.
    pub(super) fn may_proceed(&mut self, index: u32) -> bool {
        let now = self.engine.now;
        let Some(limit) = &mut self.limit else { return true };
        if limit.passed == index {
            return true;
        }
        let active = &mut self.commands[index as usize];
        let write = active.command.op == Op::Write;
        if write && now < limit.turn {
            limit.since = limit.since.min(now);
            self.calendar.set(LIMIT, limit.turn);
            return false;
        }
        limit.waited = limit.waited(now);
        limit.since = NEVER;
        active.limited = limit.waited - active.limited;
        if write {
            limit.charge(now, active.command.len);
            limit.passed = index;
        }
        true
    }
}
