//! Commands of the host: where their parts go.

use super::moves::Move;
use super::{Purpose, Tier};
use crate::contract::{Command, Op, SECTOR};
use crate::fleet::{HostId, Io};
use crate::persist::persistent;
use crate::sim::Id;
use crate::stats::Parts;

/// A part of a write within an extent, which waits for a move.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub host: HostId,
    pub moving: Id<Move>,
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
    pub(super) fn begin_command(&mut self, host: HostId) {
        let command = self.fleet.hosts[host].command;
        match command.op {
            Op::Flush => {
                let number = self.exposed.begin();
                self.fleet.send_to_all(host, Purpose::Flush(host, number));
            }
            Op::Purge => {
                self.heat.reset(self.fleet.now);
                self.fleet.send_to_all(host, Purpose::Host(host, 0));
            }
            Op::Read | Op::Write | Op::Trim => {
                let (mut at, end) = self.range(&command);
                self.counts.trims_dropped += u64::from(at >= end);
                let mut run = Run::default();
                while at < end {
                    let to = end.min(((at >> self.shift) + 1) << self.shift);
                    self.heat.count(self.fleet.now, command.op, (at >> self.shift) as u32);
                    self.route(host, at, to, &mut run);
                    at = to;
                }
                self.send_run(host, &mut run);
            }
        }
        if self.fleet.hosts[host].remaining == 0 {
            self.complete(host, &Parts::default());
        }
    }

    /// The tier that does a command by itself, and as what.
    #[inline]
    pub(super) fn only_tier(&mut self, command: &Command) -> Option<(usize, Command)> {
        if !self.keys.is_still() {
            return None;
        }
        let &Command { op, offset, len, .. } = command;
        let extent = (offset >> self.shift) as u32;
        let whole = (offset + len - 1) >> self.shift == u64::from(extent);
        let remade = op == Op::Read && self.fleet.knows_content();
        if !whole || remade {
            return None;
        }
        let slot = self.map.slot(extent);
        let tier = self.map.tier_of(slot);
        self.counts.sent(tier, op, len);
        let stamp = match op {
            Op::Write => self.fleet.stamp_of_host(command, offset, offset + len),
            _ => 0,
        };
        Some((tier, Command { offset: self.place(slot, offset), stamp, ..*command }))
    }

    /// A part of a command within one extent.
    fn route(&mut self, host: HostId, begin: u64, end: u64, run: &mut Run) {
        let extent = (begin >> self.shift) as u32;
        if self.map.moves(extent) && self.fleet.hosts[host].command.op != Op::Read {
            self.send_run(host, run);
            return self.write_moving(host, extent, begin, end);
        }
        self.join(host, self.map.slot(extent), begin, end, run);
    }

    /// Adds a part to a run, or begins a new one.
    #[inline]
    fn join(&mut self, host: HostId, slot: u32, begin: u64, end: u64, run: &mut Run) {
        let (tier, offset) = (self.map.tier_of(slot), self.place(slot, begin));
        if run.len > 0 && run.tier == tier && run.offset + run.len == offset {
            run.len += end - begin;
            return;
        }
        self.send_run(host, run);
        *run = Run { tier, offset, len: end - begin, at: begin };
    }

    /// Sends what has come together.
    fn send_run(&mut self, host: HostId, run: &mut Run) {
        let run = std::mem::take(run);
        if run.len > 0 {
            self.send_part(Purpose::Host(host, run.at), host, run);
        }
    }

    /// A part of a command goes to a device.
    fn send_part(&mut self, purpose: Purpose, host: HostId, run: Run) {
        let Run { tier, offset, len, at } = run;
        let command = self.fleet.hosts[host].command;
        if self.is_dead(tier) {
            return self.fleet.fail_host(host);
        }
        self.fleet.hosts[host].remaining += 1;
        if matches!(purpose, Purpose::Host(..)) {
            self.counts.sent(tier, command.op, len);
        }
        for slot in self.slots_of(tier, offset, len) {
            self.map.enter(slot);
        }
        let stamp = match command.op {
            Op::Write => self.fleet.stamp_of_host(&command, at, at + len),
            _ => 0,
        };
        let io = Io { member: tier, op: command.op, offset, len, purpose };
        let id = self.fleet.send(io, stamp, command.compressible);
        if command.op != Op::Read && self.keys.moves > 0 {
            // A move reads nothing that is still being written.
            self.fleet.watch(id, 0, at, len);
        }
    }

    /// A write or a TRIM within an extent that is being moved.
    fn write_moving(&mut self, host: HostId, extent: u32, begin: u64, end: u64) {
        let index = self.move_of(extent);
        let m = self.moves[index];
        let base = u64::from(extent) << self.shift;
        let (from, to) = (begin - base, end - base);
        if m.copied < m.piece_end && from < m.piece_end && m.copied < to {
            self.counts.writes_held += 1;
            self.fleet.hosts[host].remaining += 1;
            self.held.push_back(Held { host, moving: index, begin, end });
            return;
        }
        let part = |tier: &Self, slot| {
            let offset = tier.place(slot, begin);
            Run { tier: tier.map.tier_of(slot), offset, len: end - begin, at: begin }
        };
        let (source, target) = (part(self, m.from), part(self, m.to));
        self.send_part(Purpose::Host(host, begin), host, source);
        if from < m.copied {
            self.counts.writes_doubled += 1;
            self.send_part(Purpose::Mirror(host, begin), host, target);
        }
    }

    /// Writes that waited for a piece of a move go on.
    pub(super) fn resume_writes(&mut self, moving: Id<Move>) {
        for _ in 0..self.held.len() {
            let held = self.held.pop_front().expect("counted");
            if held.moving != moving {
                self.held.push_back(held);
                continue;
            }
            let mut run = Run::default();
            self.route(held.host, held.begin, held.end, &mut run);
            self.send_run(held.host, &mut run);
            self.fleet.hosts[held.host].remaining -= 1;
        }
    }

    /// A command of the host has come back from a slot.
    pub(super) fn leave(&mut self, io: &Io<Purpose>) {
        if matches!(io.op, Op::Flush | Op::Purge) {
            return;
        }
        for slot in self.slots_of(io.member, io.offset, io.len) {
            if self.map.leave(slot) {
                self.vacate(slot);
            }
        }
    }

    /// Content of a sector as a read that begins now answers it: that of a write that waits, or what is held.
    pub(super) fn content_at(&self, at: u64) -> u64 {
        let waits = self.held.iter().rev().find(|held| held.begin <= at && at < held.end);
        if let Some(held) = waits {
            let command = &self.fleet.hosts[held.host].command;
            return match command.op {
                Op::Trim => 0,
                _ => command.stamp + (at - command.offset) / SECTOR,
            };
        }
        let slot = self.map.slot((at >> self.shift) as u32);
        self.fleet.content(self.map.tier_of(slot), self.place(slot, at))
    }
}
