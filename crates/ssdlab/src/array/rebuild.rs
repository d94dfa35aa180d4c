//! Rebuilding what a spare must hold, block by block, in competition with the host: as fast as
//! `rebuild_max` while the host is quiet, no faster than `rebuild_min` while it is not (md's
//! `speed_limit_max` and `speed_limit_min`).
//!
//! A stripe of RAID 5 and 6 is rebuilt under its lock. Of mirrors a block is copied; writes and TRIMs
//! of it wait meanwhile.

use super::failure::Condition;
use super::keys::{ArrayKeys, ROW};
use super::layout::{Layout, Place};
use super::{Array, Io, Purpose};
use crate::device::{Command, Op};
use crate::persist::persistent;
use crate::rng::Stream;
use crate::units::{NEVER, Rate};

/// What is being rebuilt.
pub(super) struct Rebuild {
    /// The member, while one is.
    pub member: Option<u32>,
    /// Slots of spares not yet used.
    spares: Vec<u32>,
    /// When the next block begins.
    pub due: u64,
    /// A block is being rebuilt.
    pub busy: bool,
    /// Which copy that is, and commands for it and for abandoned ones in flight.
    copy: u32,
    in_flight: u32,
    /// Since when, and whether the host wanted something since the one before.
    started: u64,
    pub host_seen: bool,
    /// Bytes of a block, on the spare.
    pub block: u64,
    /// What is copied at the moment.
    window: (u64, u64),
    min: Rate,
    max: Rate,
    /// Commands of the host that wait for the block.
    pub held: Vec<u32>,
    /// Errors per bit read.
    uber: f64,
    stream: Stream,
    pub bytes: u64,
    pub errors: u64,
    pub lost: u64,
    pub done: u64,
}
persistent!(Rebuild {
    state {
        member, spares, due, busy, copy, in_flight, started, host_seen, window, held, stream, bytes, errors, lost, done,
    }
    built { block, min, max, uber }
});

impl Rebuild {
    /// As the rig says, with the slots of the spares.
    pub fn new(keys: &ArrayKeys, spares: std::ops::Range<u32>, stream: Stream) -> Self {
        Rebuild {
            member: None,
            spares: spares.rev().collect(),
            due: NEVER,
            busy: false,
            copy: 0,
            in_flight: 0,
            started: 0,
            host_seen: false,
            block: keys.chunk.0,
            window: (0, 0),
            min: keys.rebuild_min,
            max: keys.rebuild_max,
            held: Vec::new(),
            uber: keys.uber,
            stream,
            bytes: 0,
            errors: 0,
            lost: 0,
            done: 0,
        }
    }
}

impl Rebuild {
    /// Whether commands of it are in flight.
    pub fn is_under_way(&self) -> bool {
        self.busy || self.in_flight > 0
    }
}

impl Array {
    /// A spare takes the place of a member that failed, if there is one and something to rebuild from.
    pub(super) fn take_spare(&mut self, member: u32) {
        let redundant = self.layout.parity().is_some() || self.layout.copies() > 1;
        if !redundant || self.failures.lost > 0 {
            return;
        }
        let Some(slot) = self.rebuild.spares.pop() else { return };
        let seat = &mut self.seats[member as usize];
        (seat.slot, seat.condition, seat.synced) = (slot, Condition::Rebuilding, 0);
        if self.rebuild.member.is_none() {
            (self.rebuild.member, self.rebuild.due) = (Some(member), self.now);
        }
    }

    /// What was being rebuilt is no more, or there is another one.
    pub(super) fn abandon_rebuild(&mut self) {
        (self.rebuild.member, self.rebuild.due) = (None, NEVER);
        // A stripe under way ends by itself; a copy does not.
        if self.layout.parity().is_none() {
            self.rebuild.busy = false;
            self.let_go();
        }
        self.next_rebuild();
    }

    fn next_rebuild(&mut self) {
        let waits = |condition| condition == Condition::Rebuilding;
        let next = self.seats.iter().position(|seat| waits(seat.condition));
        if let (None, Some(member)) = (self.rebuild.member, next) {
            (self.rebuild.member, self.rebuild.due) = (Some(member as u32), self.now);
        }
    }

    /// Begins with the next block.
    pub(super) fn rebuild_step(&mut self) {
        let Some(member) = self.rebuild.member else { return };
        if self.rebuild.busy || self.power.off {
            return;
        }
        let synced = self.seats[member as usize].synced;
        if synced >= self.layout.used(member) {
            self.seats[member as usize].condition = Condition::Whole;
            self.rebuild.member = None;
            self.rebuild.done += 1;
            self.degraded = self.missing() > 0;
            self.next_rebuild();
            self.begin_resync();
            return;
        }
        let clears = |io: &Io| io.active && matches!(io.op, Op::Trim | Op::Purge);
        if self.ios.all.iter().any(clears) {
            // What is read and written must not change meanwhile.
            self.rebuild.due = NEVER;
            return;
        }
        (self.rebuild.started, self.rebuild.host_seen) = (self.now, false);
        if let Some(parity) = self.layout.parity() {
            let stripe = synced / parity.chunk;
            if self.is_lost(stripe) {
                self.rebuild.member = None;
                return;
            }
            self.rebuild.busy = true;
            self.rebuild_stripe(stripe);
            return;
        }
        self.copy_block(member, synced);
    }

    /// Copies a block of a mirror, once no write of it is in flight.
    fn copy_block(&mut self, member: u32, from: u64) {
        let Layout::Mirrored(mirrored) = &self.layout else { unreachable!("no copies") };
        let row = from / mirrored.chunk;
        let to = (from + self.rebuild.block)
            .min((row + 1) * mirrored.chunk)
            .min(self.layout.used(member));
        let source = mirrored.chunk_at(member, row).and_then(|chunk| {
            let at = chunk * mirrored.chunk + from % mirrored.chunk;
            let copies = (0..mirrored.copies()).map(|copy| mirrored.place(at, copy).0);
            copies.filter(|p| p.member != member).find(|&p| self.holds(p, to - from))
        });
        // A write that began before the spare took its place is on the way to the source alone.
        let spare = Place { member, offset: from };
        let written = |io: &Io| {
            let overlaps = |place: Place| {
                let end = place.offset + (to - from);
                io.member == place.member && io.offset < end && place.offset < io.offset + io.len
            };
            let hit = overlaps(spare) || source.is_some_and(overlaps);
            io.active && io.op == Op::Write && hit
        };
        if self.ios.all.iter().any(written) {
            // Looked at again when the next command of the host is answered.
            self.rebuild.due = NEVER;
            return;
        }
        self.rebuild.window = (from, to);
        self.rebuild.busy = true;
        match source {
            Some(Place { member, offset }) => {
                let io = Io {
                    purpose: Purpose::CopyRead,
                    op: Op::Read,
                    member,
                    offset,
                    ..Io::default()
                };
                self.slot_mut(member).pending += 1;
                self.rebuild.copy = self.rebuild.copy.wrapping_add(1);
                self.rebuild.in_flight += 1;
                self.send(Io { len: to - from, owner: self.rebuild.copy, ..io }, 0, 0);
            }
            // Nothing of the host's lies there, or nothing is left of it.
            None => self.block_done(to - from),
        }
    }

    /// The block was read: it is written to the spare.
    pub(super) fn copy_answered(&mut self, io: Io) {
        self.rebuild.in_flight -= 1;
        if !self.rebuild.busy || io.owner != self.rebuild.copy {
            return;
        }
        let (from, to) = self.rebuild.window;
        if io.purpose == Purpose::CopyWrite {
            self.block_done(to - from);
            return;
        }
        self.rebuild_was_read(to - from, 0);
        let Some(member) = self.rebuild.member else { return };
        let stamp = self.stamp_copy(&io);
        let write = Io { purpose: Purpose::CopyWrite, op: Op::Write, member, offset: from, ..io };
        self.slot_mut(member).pending += 1;
        self.rebuild.in_flight += 1;
        self.send(write, stamp, 0);
    }

    /// A copy that a failed member did not answer is tried again from another one.
    pub(super) fn copy_unanswered(&mut self, io: Io) {
        self.rebuild.in_flight -= 1;
        let current = self.rebuild.busy && io.owner == self.rebuild.copy;
        if io.purpose == Purpose::CopyRead && current {
            self.rebuild.busy = false;
            self.rebuild.due = self.now;
            self.let_go();
        }
    }

    /// Bytes were read to rebuild: some of them may not be readable; `spare` more parities make
    /// that good.
    pub(super) fn rebuild_was_read(&mut self, bytes: u64, spare: u32) {
        if self.rebuild.uber <= 0.0 {
            return;
        }
        let error = 1.0 - (-8.0 * bytes as f64 * self.rebuild.uber).exp();
        if self.rebuild.stream.unit() < error {
            self.rebuild.errors += 1;
            if spare == 0 {
                self.rebuild.lost += ROW;
            }
        }
    }

    /// A stripe was rebuilt on the device in `slot`.
    pub(super) fn stripe_rebuilt(&mut self, slot: u32, stripe: u64) {
        let chunk = self.layout.parity().expect("stripes").chunk;
        let seat = self.rebuild.member.map(|member| self.seats[member as usize]);
        if seat.is_some_and(|seat| seat.slot == slot && seat.synced == stripe * chunk) {
            self.rebuilt_as_is(stripe, self.rebuild.member.expect("it has a seat"));
            self.block_done(chunk);
            return;
        }
        // It was for a spare that has failed meanwhile.
        self.rebuild.busy = false;
        self.rebuild.due = if seat.is_some() { self.now } else { NEVER };
        self.let_go();
        self.plan_timers();
    }

    /// A block is rebuilt: the next one begins as soon as the rate allows.
    fn block_done(&mut self, len: u64) {
        self.rebuild.busy = false;
        self.rebuild.bytes += len;
        if let Some(member) = self.rebuild.member {
            self.seats[member as usize].synced += len;
            let rate = self.rebuild_rate();
            self.rebuild.due = self.now.max(self.rebuild.started + rate.time(len));
        }
        self.let_go();
        self.plan_timers();
    }

    /// How fast the array may work on its own behalf.
    pub(super) fn rebuild_rate(&self) -> Rate {
        let quiet = !self.rebuild.host_seen && self.hosts.free.len() == self.hosts.all.len();
        if quiet { self.rebuild.max } else { self.rebuild.min }
    }

    /// Power is gone: the block on the way is begun again.
    pub(super) fn cut_rebuild(&mut self) {
        (self.rebuild.busy, self.rebuild.due, self.rebuild.in_flight) = (false, NEVER, 0);
        self.rebuild.copy = self.rebuild.copy.wrapping_add(1);
        self.rebuild.held.clear();
    }

    /// Commands of the host that waited for a block go on.
    pub(super) fn let_go(&mut self) {
        let mut held = std::mem::take(&mut self.rebuild.held);
        for &host in &held {
            let active = &mut self.hosts.all[host as usize];
            active.held = self.now - active.submitted;
            active.remaining -= 1;
            // Another one may be on the way.
            if !self.waits_for_block(host) {
                self.dispatch(host);
            }
        }
        held.clear();
        held.append(&mut self.rebuild.held);
        self.rebuild.held = held;
    }

    /// Whether a command must wait for the block that is being rebuilt; it does so then.
    pub(super) fn waits_for_block(&mut self, host: u32) -> bool {
        let command = self.hosts.all[host as usize].command;
        let busy = self.rebuild.busy || self.resync.busy;
        if !busy || matches!(command.op, Op::Read | Op::Flush) {
            return false;
        }
        let waits = match (command.op, &self.layout) {
            // Stripes have locks of their own against writes.
            (Op::Write, Layout::Parity(_)) => false,
            (Op::Write, _) => {
                self.touches_window(&command) || self.touches_synced(command.offset, command.len)
            }
            _ => true,
        };
        if waits {
            self.hosts.all[host as usize].remaining += 1;
            self.rebuild.held.push(host);
        }
        waits
    }

    fn touches_window(&self, command: &Command) -> bool {
        if !self.rebuild.busy {
            return false;
        }
        let (from, to) = self.rebuild.window;
        let (mut at, end) = (command.offset, command.offset + command.len);
        while at < end {
            let mut step = end - at;
            for copy in 0..self.layout.copies() {
                let (place, run) = self.layout.place(at, copy);
                step = step.min(run);
                let here = Some(place.member) == self.rebuild.member;
                if here && place.offset < to && from < place.offset + step {
                    return true;
                }
            }
            at += step;
        }
        false
    }
}
