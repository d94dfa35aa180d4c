//! The untimed path: everything is done where it lies. Nothing gets hot, and nothing moves.

use super::Tier;
use crate::device::{Command, Device, Op};

impl Tier {
    /// Does a command in no time.
    pub(super) fn apply_untimed(&mut self, command: &Command) {
        debug_assert!(!self.is_moving(), "something is in flight");
        self.counts.host.count(command);
        match command.op {
            Op::Flush | Op::Purge => {
                for tier in self.live() {
                    self.slots[tier].apply(&Command { op: command.op, ..Command::default() });
                }
                if command.op == Op::Purge {
                    self.map.reset();
                    self.heat.reset(self.now);
                }
            }
            Op::Read | Op::Write | Op::Trim => {
                let (mut at, end) = self.range(command);
                self.counts.trims_dropped += u64::from(at >= end);
                while at < end {
                    at = self.apply_run(command, at, end);
                }
            }
        }
    }

    /// Does what lies in one piece from `begin` on; answers where the rest begins.
    fn apply_run(&mut self, command: &Command, begin: u64, end: u64) -> u64 {
        let slot = |at: u64| self.map.slot((at >> self.shift) as u32);
        let next = |at: u64| ((at >> self.shift) + 1) << self.shift;
        let first = slot(begin);
        let (tier, offset) = (self.map.tier_of(first), self.place(first, begin));
        let mut at = next(begin).min(end);
        while at < end
            && self.map.tier_of(slot(at)) == tier
            && self.place(slot(at), at) == offset + (at - begin)
        {
            at = next(at).min(end);
        }
        if self.slots[tier].dead {
            self.counts.error(command.op);
            return at;
        }
        let write = command.op == Op::Write;
        let stamp = if write { self.stamp_of_host(command, begin, at) } else { 0 };
        self.slots[tier].apply(&Command { offset, len: at - begin, stamp, ..*command });
        at
    }
}
