//! Commands of the host: what they ask for, and their end.

use super::Array;
use crate::device::{Command, Completion, Op};
use crate::persist::persistent;
use crate::stats::{PARTS, Part, Parts};

/// A command of the host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Host {
    pub command: Command,
    pub submitted: u64,
    /// Commands of members and stripes that it waits for.
    pub remaining: u32,
    /// Commands of members sent for it directly.
    pub ios: u32,
    pub digest: u64,
    /// It waited so long for a block that was being rebuilt.
    pub held: u64,
    /// Until when it waited for the bitmap, from its submission.
    pub logged: u64,
    /// It touches what is lost.
    pub failed: bool,
    /// What the first of its members needed is in `sums`.
    pub summed: bool,
    /// The bitmap knows of it.
    pub marked: bool,
}
persistent!(Host {
    state { command, submitted, remaining, ios, digest, held, logged, failed, summed, marked }
});

impl Array {
    /// The command is done: what its last members needed on the average, what it had to wait for
    /// before that, and what came on top.
    pub(super) fn complete(&mut self, host: u32, ios: u32, sum: &Parts, before: &[(Part, u64)]) {
        let Host { command, submitted, digest, held, logged, marked, .. } =
            self.hosts.all[host as usize];
        self.hosts.free.push(host);
        if self.rebuild.looks_again(self.now) {
            self.plan_timers();
        }
        let mut parts = if ios == 1 { *sum } else { Parts::default() };
        if ios > 1 {
            for i in 0..PARTS {
                parts.0[i] = sum.0[i] / u64::from(ios);
            }
        }
        before.iter().for_each(|&(part, time)| parts[part] += time);
        parts[Part::StripeWait] += held;
        parts[Part::Bitmap] += logged - held.min(logged);
        self.resync_looks_again();
        if command.op == Op::Write {
            self.power.last_write = self.now;
            if let (Some(bitmap), true) = (&mut self.bitmap, marked) {
                bitmap.end(command.offset, command.len);
            }
        }
        parts[Part::SlowestMember] += self.now - submitted - parts.total();
        self.ready.push(Completion { tag: command.tag, time: self.now, parts, digest });
    }

    /// Does what a command of the host asks for.
    pub(super) fn dispatch(&mut self, host: u32) {
        let command = self.hosts.all[host as usize].command;
        match command.op {
            Op::Purge if self.purge_waits_for_bitmap(host) => {}
            Op::Flush | Op::Purge => self.everywhere(host),
            Op::Trim if !self.trims => self.counts.trims_dropped += 1,
            Op::Trim => self.trim(host),
            Op::Read => self.read(host),
            Op::Write if self.waits_for_bitmap(host) => {}
            Op::Write => return self.begin_write(host),
        }
        if self.hosts.all[host as usize].remaining == 0 {
            self.complete(host, 0, &Parts::default(), &[]);
        }
    }

    /// Does what a write asks for.
    pub(super) fn begin_write(&mut self, host: u32) {
        match self.layout.parity() {
            Some(_) => self.write_stripes(host),
            None => self.write(host),
        }
        if self.hosts.all[host as usize].remaining == 0 {
            self.complete(host, 0, &Parts::default(), &[]);
        }
    }
}
