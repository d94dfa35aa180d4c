//! Commands of the host: what they ask for, and their end.

use super::Array;
use crate::contract::Op;
use crate::fleet::{Host, HostId};
use crate::persist::persistent;
use crate::stats::{Part, Parts};

/// What an array knows of a command of the host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Own {
    /// Commands of members sent for it directly.
    pub ios: u32,
    /// It waited so long for a block that was being rebuilt.
    pub held: u64,
    /// Until when it waited for the bitmap, from its submission.
    pub logged: u64,
    /// What the first of its members needed is in `sums`.
    pub summed: bool,
    /// The bitmap knows of it.
    pub marked: bool,
    /// The number of a flush.
    pub flush: u64,
}
persistent!(Own { state { ios, held, logged, summed, marked, flush } });

impl Array {
    /// The command is done: what its last members needed on the average, what it had to wait for
    /// before that, and what came on top.
    pub(super) fn complete(&mut self, host: HostId, ios: u32, sum: &Parts, before: &[(Part, u64)]) {
        let Host { command, own: Own { held, logged, marked, .. }, .. } = self.fleet.hosts[host];
        if self.rebuild.resume_if_waiting(self.fleet.now) {
            self.plan_timers();
        }
        self.resume_resync();
        self.note_change(command.op, command.offset, command.len);
        if command.op == Op::Flush {
            let number = self.fleet.hosts[host].own.flush;
            self.unsettled.flushes.end(number);
        }
        if command.op == Op::Write {
            self.power.last_write = self.fleet.now;
            if let (Some(bitmap), true) = (&mut self.bitmap, marked) {
                bitmap.end(command.offset, command.len);
            }
        }
        let waited = [(Part::StripeWait, held), (Part::Bitmap, logged - held.min(logged))];
        let before = before.iter().copied().chain(waited);
        if ios == 1 {
            return self.fleet.complete(host, sum, before, Part::SlowestMember);
        }
        let mean = if ios > 1 { sum.divided_by(ios.into()) } else { Parts::default() };
        self.fleet.complete(host, &mean, before, Part::SlowestMember);
    }

    /// Does what a command of the host asks for.
    pub(super) fn dispatch(&mut self, host: HostId) {
        let command = self.fleet.hosts[host].command;
        match command.op {
            Op::Purge if self.purge_waits_for_bitmap(host) => {}
            Op::Flush | Op::Purge => self.everywhere(host),
            Op::Trim if !self.trims => self.trims_dropped += 1,
            Op::Trim => self.trim(host),
            Op::Read => self.read(host),
            Op::Write if self.waits_for_bitmap(host) => {}
            Op::Write => return self.begin_write(host),
        }
        if self.fleet.hosts[host].remaining == 0 {
            self.complete(host, 0, &Parts::default(), &[]);
        }
    }

    /// Does what a write asks for.
    pub(super) fn begin_write(&mut self, host: HostId) {
        match self.layout.parity() {
            Some(_) => self.write_stripes(host),
            None => self.write(host),
        }
        if self.fleet.hosts[host].remaining == 0 {
            self.complete(host, 0, &Parts::default(), &[]);
        }
    }
}
