//! The untimed path: everything is done where it lies. Nothing gets hot, and nothing moves.

use super::Tier;
use crate::contract::{Command, Op};
use crate::fleet::Composite;

impl Tier {
    /// Does a command in no time.
    pub(super) fn apply_command(&mut self, command: &Command) {
        debug_assert!(!self.is_working(), "something is under way");
        match command.op {
            Op::Flush | Op::Purge => {
                self.fleet.apply_to_all(command.op);
                self.exposed.clear();
                if command.op == Op::Purge {
                    self.map.reset();
                    self.heat.reset(self.fleet.now);
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
        if self.is_dead(tier) {
            self.fleet.errors[usize::from(command.op != Op::Read)] += 1;
            return at;
        }
        let write = command.op == Op::Write;
        let stamp = if write { self.fleet.stamp_of_host(command, begin, at) } else { 0 };
        self.fleet.apply(tier, &Command { offset, len: at - begin, stamp, ..*command });
        at
    }
}
