//! Commands of the host: where their parts go.

use super::{Io, Kind, Tier};
use crate::device::{Command, Completion, Op};
use crate::persist::persistent;
use crate::stats::{Part, Parts};

/// A command of the host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Host {
    pub command: Command,
    pub submitted: u64,
    /// Parts of it that are not done.
    pub remaining: u32,
    pub digest: u64,
    /// It touches what is lost.
    pub failed: bool,
}
persistent!(Host { state { command, submitted, remaining, digest, failed } });

/// A part of a write within an extent, which waits for a move.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub host: u32,
    pub moving: u32,
    pub begin: u64,
    pub end: u64,
}
persistent!(Held { state { host, moving, begin, end } });

/// A part of a command that lies in one piece on a device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    tier: usize,
    offset: u64,
    len: u64,
    at: u64,
}

impl Tier {
    /// The bytes that a command is for: of a TRIM whole units.
    pub(super) fn range(&self, command: &Command) -> (u64, u64) {
        let (begin, end) = (command.offset, command.offset + command.len);
        match (command.op, self.keys.trim_unit.0) {
            (Op::Trim, 0) => (begin, begin),
            (Op::Trim, unit) => (begin.next_multiple_of(unit), end / unit * unit),
            _ => (begin, end),
        }
    }

    /// Does what a command of the host asks for.
    pub(super) fn begin(&mut self, host: u32) {
        let command = self.hosts.all[host as usize].command;
        match command.op {
            Op::Flush | Op::Purge => self.everywhere(host),
            Op::Read | Op::Write | Op::Trim => {
                let (mut at, end) = self.range(&command);
                self.counts.trims_dropped += u64::from(at >= end);
                let mut run = Run::default();
                while at < end {
                    let to = end.min(((at >> self.shift) + 1) << self.shift);
                    self.heat.count(self.now, command.op, (at >> self.shift) as u32);
                    self.route(host, at, to, &mut run);
                    at = to;
                }
                self.send_run(host, &mut run);
            }
        }
        if self.hosts.all[host as usize].remaining == 0 {
            self.complete(host, &Parts::default());
        }
    }

    /// A part of a command within one extent.
    fn route(&mut self, host: u32, begin: u64, end: u64, run: &mut Run) {
        let extent = (begin >> self.shift) as u32;
        if self.map.moves(extent) && self.hosts.all[host as usize].command.op != Op::Read {
            self.send_run(host, run);
            return self.write_moving(host, extent, begin, end);
        }
        self.join(host, self.map.slot(extent), begin, end, run);
    }

    /// Adds a part to a run, or begins a new one.
    #[inline]
    fn join(&mut self, host: u32, slot: u32, begin: u64, end: u64, run: &mut Run) {
        let (tier, offset) = (self.map.tier_of(slot), self.place(slot, begin));
        if run.len > 0 && run.tier == tier && run.offset + run.len == offset {
            run.len += end - begin;
            return;
        }
        self.send_run(host, run);
        *run = Run { tier, offset, len: end - begin, at: begin };
    }

    /// Sends what has come together.
    fn send_run(&mut self, host: u32, run: &mut Run) {
        let run = std::mem::take(run);
        if run.len > 0 {
            self.send_part(host, Kind::Host, run);
        }
    }

    /// A part of a command goes to a device.
    fn send_part(&mut self, host: u32, kind: Kind, run: Run) {
        let Run { tier, offset, len, at } = run;
        let command = self.hosts.all[host as usize].command;
        if self.slots[tier].dead {
            return self.fail_command(host);
        }
        self.hosts.all[host as usize].remaining += 1;
        if kind == Kind::Host {
            self.counts.sent(tier, command.op, len);
        }
        for slot in self.slots_of(tier, offset, len) {
            self.map.enter(slot);
        }
        let stamp = match command.op {
            Op::Write => self.stamp_of_host(&command, at, at + len),
            _ => 0,
        };
        let io = Io { kind, tier, op: command.op, offset, len, at, owner: host, ..Io::default() };
        self.send(io, stamp, command.compressible);
    }

    /// A write or a TRIM within an extent that is being moved.
    fn write_moving(&mut self, host: u32, extent: u32, begin: u64, end: u64) {
        let index = self.move_of(extent);
        let m = self.moves.all[index as usize];
        let base = u64::from(extent) << self.shift;
        let (from, to) = (begin - base, end - base);
        if m.copied < m.piece_end && from < m.piece_end && m.copied < to {
            self.counts.writes_held += 1;
            self.hosts.all[host as usize].remaining += 1;
            self.held.push_back(Held { host, moving: index, begin, end });
            return;
        }
        let part = |tier: &Self, slot| {
            let offset = tier.place(slot, begin);
            Run { tier: tier.map.tier_of(slot), offset, len: end - begin, at: begin }
        };
        let (source, target) = (part(self, m.from), part(self, m.to));
        self.send_part(host, Kind::Host, source);
        if from < m.copied {
            self.counts.writes_doubled += 1;
            self.send_part(host, Kind::Mirror, target);
        }
    }

    /// Writes that waited for a piece of a move go on.
    pub(super) fn let_go(&mut self, moving: u32) {
        for _ in 0..self.held.len() {
            let held = self.held.pop_front().expect("counted");
            if held.moving != moving {
                self.held.push_back(held);
                continue;
            }
            let mut run = Run::default();
            self.route(held.host, held.begin, held.end, &mut run);
            self.send_run(held.host, &mut run);
            self.hosts.all[held.host as usize].remaining -= 1;
        }
    }

    /// A command of the host has come back from a slot.
    pub(super) fn leave(&mut self, io: &Io) {
        if matches!(io.op, Op::Flush | Op::Purge) {
            return;
        }
        for slot in self.slots_of(io.tier, io.offset, io.len) {
            if self.map.leave(slot) {
                self.vacate(slot);
            }
        }
    }

    /// A part of a command is done.
    pub(super) fn part_done(&mut self, host: u32, parts: &Parts) {
        let active = &mut self.hosts.all[host as usize];
        active.remaining -= 1;
        if active.remaining == 0 {
            self.complete(host, parts);
        }
    }

    /// A command is done, its last part in so much time.
    fn complete(&mut self, host: u32, parts: &Parts) {
        let Host { command, submitted, digest, .. } = self.hosts.all[host as usize];
        self.hosts.free.push(host);
        let mut parts = *parts;
        parts[Part::MoveWait] += self.now - submitted - parts.total();
        self.ready.push(Completion { tag: command.tag, time: self.now, parts, digest });
        if command.op == Op::Purge {
            self.purged();
        }
    }

    /// A flush or a purge: to both devices.
    fn everywhere(&mut self, host: u32) {
        let op = self.hosts.all[host as usize].command.op;
        for tier in self.live() {
            self.hosts.all[host as usize].remaining += 1;
            self.send(Io { tier, op, owner: host, ..Io::default() }, 0, 0);
        }
    }

    /// A purge has come: nothing else begins before it is done.
    pub(super) fn begin_purge(&mut self) {
        self.purging = true;
        self.heat.forget();
        self.cancel_moves();
        self.purge_if_quiet();
    }

    /// Begins a purge when nothing else is under way.
    pub(super) fn purge_if_quiet(&mut self) {
        let Some(&first) = self.behind.front() else { return };
        let active = self.hosts.all.len() - self.hosts.free.len();
        if self.purging && !self.is_moving() && active == self.behind.len() {
            self.behind.pop_front();
            self.map.reset();
            self.heat.reset(self.now);
            self.begin(first);
        }
    }

    /// A purge is done; what came after it begins.
    fn purged(&mut self) {
        self.purging = false;
        while let Some(&next) = self.behind.front() {
            if self.hosts.all[next as usize].command.op == Op::Purge {
                self.purging = true;
                return;
            }
            self.behind.pop_front();
            self.begin(next);
        }
    }
}
