//! Rebuilding what a spare must hold, block by block, in competition with the host: as fast as
//! `rebuild_max` while the host is quiet, no faster than `rebuild_min` while it is not (md's
//! `speed_limit_max` and `speed_limit_min`). Several blocks are under way at once, begun in order and
//! at that rate; each is whole as soon as it is done.
//!
//! A stripe of RAID 5 and 6 is rebuilt under its lock. Of mirrors a block is copied; writes and TRIMs
//! of it wait meanwhile.

use super::failure::Condition;
use super::keys::{ArrayKeys, ROW};
use super::layout::{Layout, Place};
use super::{Array, Io, Level, Task};
use crate::contract::{Command, Op};
use crate::fleet::HostId;
use crate::persist::persistent;
use crate::rng::Stream;
use crate::units::{NEVER, Rate};

/// A block that is being rebuilt, bytes of the spare.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    from: u64,
    to: u64,
    /// Of mirrors: which copy that is.
    copy: u32,
    done: bool,
}
persistent!(Block { state { from, to, copy, done } });

/// What is being rebuilt.
pub(super) struct Rebuild {
    /// The member, while one is.
    pub member: Option<u32>,
    /// Slots of spares not yet used.
    spares: Vec<u32>,
    /// When the next block begins.
    pub due: u64,
    /// Blocks under way, and those that are done before others that lie before them; in order.
    blocks: Vec<Block>,
    /// How many at most.
    blocks_max: usize,
    /// Copies begun so far; commands of copies and stripes in flight, of abandoned ones too.
    copies: u32,
    in_flight: u32,
    /// The earliest instant that the rate allows for the next block.
    paced: u64,
    /// It waits for writes or TRIMs to end.
    waits: bool,
    /// No block is begun.
    pub paused: bool,
    /// The host wanted something since the last block began.
    pub host_seen: bool,
    /// Bytes of a block, on the spare.
    pub block: u64,
    min: Rate,
    max: Rate,
    /// Commands of the host that wait for the block.
    pub held: Vec<HostId>,
    /// Those of them that TRIM or purge.
    held_clears: u32,
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
        member, spares, due, blocks, copies, in_flight, paced, waits, paused, host_seen, held, held_clears, stream,
        bytes, errors, lost, done,
    }
    built { block, blocks_max, min, max, uber }
});

impl Rebuild {
    /// As the rig says, with the slots of the spares.
    pub fn new(keys: &ArrayKeys, spares: std::ops::Range<u32>, stream: Stream) -> Self {
        Rebuild {
            member: None,
            spares: spares.rev().collect(),
            due: NEVER,
            blocks: Vec::new(),
            blocks_max: blocks_max(keys),
            copies: 0,
            in_flight: 0,
            paced: 0,
            waits: false,
            paused: false,
            host_seen: false,
            block: keys.chunk.0,
            min: keys.rebuild_min,
            max: keys.rebuild_max,
            held: Vec::new(),
            held_clears: 0,
            uber: keys.uber,
            stream,
            bytes: 0,
            errors: 0,
            lost: 0,
            done: 0,
        }
    }
}

/// Blocks under way at most; of stripes no more than fill half of the stripe cache, so that writes of
/// the host have their turn.
fn blocks_max(keys: &ArrayKeys) -> usize {
    let window = keys.rebuild_window.0 / keys.chunk.0;
    let most = match keys.level {
        Level::Raid5 | Level::Raid6 => u64::from(keys.stripe_cache / 2) / (keys.chunk.0 / ROW),
        _ => u64::MAX,
    };
    window.min(most).max(1) as usize
}

impl Rebuild {
    /// Whether commands of it are in flight.
    pub fn is_under_way(&self) -> bool {
        self.in_flight > 0
    }

    /// Whether these bytes of the spare are done, though others before them are not.
    pub fn has(&self, member: u32, offset: u64, len: u64) -> bool {
        let covers = |b: &Block| b.done && b.from <= offset && offset + len <= b.to;
        self.member == Some(member) && self.blocks.iter().any(covers)
    }

    /// Something ended for which the next block may have waited; whether it did.
    #[inline]
    pub fn resume_if_waiting(&mut self, now: u64) -> bool {
        let looks = std::mem::take(&mut self.waits) && self.member.is_some() && !self.paused;
        if looks {
            self.due = now;
        }
        looks
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
            (self.rebuild.member, self.rebuild.due) = (Some(member), self.fleet.now);
        }
    }

    /// What was being rebuilt is no more, or there is another one.
    pub(super) fn abandon_rebuild(&mut self) {
        (self.rebuild.member, self.rebuild.due) = (None, NEVER);
        // Stripes under way end by themselves, copies that are read are forgotten.
        self.rebuild.blocks.clear();
        self.resume_held();
        self.next_rebuild();
    }

    fn next_rebuild(&mut self) {
        let waits = |condition| condition == Condition::Rebuilding;
        let next = self.seats.iter().position(|seat| waits(seat.condition));
        if let (None, Some(member)) = (self.rebuild.member, next) {
            (self.rebuild.member, self.rebuild.due) = (Some(member as u32), self.fleet.now);
        }
    }

    /// Begins with the next block.
    pub(super) fn rebuild_step(&mut self) {
        let Some(member) = self.rebuild.member else { return };
        let rebuild = &self.rebuild;
        if self.fleet.power.is_off() || rebuild.paused || rebuild.blocks.len() >= rebuild.blocks_max
        {
            return;
        }
        let used = self.layout.used(member);
        let synced = self.seats[member as usize].synced;
        let from = rebuild.blocks.last().map_or(synced, |block| block.to);
        if from >= used {
            if synced >= used {
                self.seats[member as usize].condition = Condition::Whole;
                self.rebuild.member = None;
                self.rebuild.done += 1;
                self.note_rebuilt(member);
                self.degraded = self.missing() > 0;
                self.next_rebuild();
                self.begin_resync();
            }
            return;
        }
        if self.fleet.is_clearing() || self.rebuild.held_clears > 0 {
            // What is read and written must not change meanwhile; and they have their turn.
            self.rebuild.waits = true;
            return;
        }
        let to = match &self.layout {
            Layout::Mirrored(mirrored) => (from + self.rebuild.block)
                .min((from / mirrored.chunk + 1) * mirrored.chunk)
                .min(used),
            _ => from + self.rebuild.block,
        };
        let block = Block { from, to, ..Block::default() };
        if let Some(parity) = self.layout.parity() {
            let stripe = from / parity.chunk;
            if self.is_lost(stripe) {
                self.rebuild.member = None;
                return;
            }
            self.pace_rebuild(block);
            self.rebuild.in_flight += 1;
            self.rebuild_stripe(stripe);
        } else if self.is_written(member, block) {
            // Looked at again when a command of the host is answered.
            self.rebuild.waits = true;
        } else {
            self.pace_rebuild(block);
            self.copy_block(member, block);
        }
    }

    /// A block begins: the next one when the rate allows it.
    fn pace_rebuild(&mut self, block: Block) {
        let time = self.rebuild_rate().time(block.to - block.from);
        let rebuild = &mut self.rebuild;
        rebuild.paced = self.fleet.now + time;
        (rebuild.due, rebuild.host_seen) = (rebuild.paced, false);
        rebuild.blocks.push(block);
    }

    /// A copy of what lies on a block of the spare, if there is one.
    fn source_of(&self, member: u32, block: Block) -> Option<Place> {
        let Layout::Mirrored(mirrored) = &self.layout else { unreachable!("no copies") };
        let len = block.to - block.from;
        let chunk = mirrored.chunk_at(member, block.from / mirrored.chunk)?;
        let at = chunk * mirrored.chunk + block.from % mirrored.chunk;
        let mut copies = (0..mirrored.copies()).map(|copy| mirrored.place(at, copy).0);
        copies.find(|&p| p.member != member && self.holds(p, len))
    }

    /// Whether a write of a block is on the way: one that began before the spare took its place is on
    /// the way to the source alone.
    fn is_written(&self, member: u32, block: Block) -> bool {
        let len = block.to - block.from;
        let written = |place: Place| self.is_written_to(place, len);
        written(Place { member, offset: block.from })
            || self.source_of(member, block).is_some_and(written)
    }

    /// Copies a block of a mirror.
    fn copy_block(&mut self, member: u32, block: Block) {
        let Some(Place { member, offset }) = self.source_of(member, block) else {
            // Nothing of the host's lies there, or nothing is left of it.
            return self.block_done(block.from);
        };
        self.rebuild.copies = self.rebuild.copies.wrapping_add(1);
        let owner = self.rebuild.copies;
        if let Some(own) = self.rebuild.blocks.iter_mut().find(|own| own.from == block.from) {
            own.copy = owner;
        }
        let len = block.to - block.from;
        self.rebuild.in_flight += 1;
        let io = self.io(Task::CopyRead(owner), member, Op::Read, offset, len);
        self.send(io, 0, 0);
    }

    /// The block that a command of a copy is for, if it still is.
    fn block_of(&self, io: &Io) -> Option<Block> {
        let (Task::CopyRead(copy) | Task::CopyWrite(copy)) = io.purpose.task else { return None };
        self.rebuild.blocks.iter().find(|block| block.copy == copy && !block.done).copied()
    }

    /// The block was read: it is written to the spare.
    pub(super) fn copy_answered(&mut self, io: &Io) {
        self.rebuild.in_flight -= 1;
        let Some(block) = self.block_of(io) else { return };
        if io.op == Op::Write {
            self.block_done(block.from);
            return;
        }
        self.rebuild_was_read(block.to - block.from, 0);
        let Some(member) = self.rebuild.member else { return };
        let stamp = self.stamp_copy(io);
        self.rebuild.in_flight += 1;
        let task = Task::CopyWrite(block.copy);
        let io = self.io(task, member, Op::Write, block.from, io.len);
        self.send(io, stamp, 0);
    }

    /// A copy that a failed member did not answer is tried again from another one.
    pub(super) fn copy_unanswered(&mut self, io: &Io) {
        self.rebuild.in_flight -= 1;
        if let (Op::Read, Some(block), Some(member)) =
            (io.op, self.block_of(io), self.rebuild.member)
        {
            self.copy_block(member, block);
        }
    }

    /// Bytes were read to rebuild: some of them may not be readable; `spare` more parities make
    /// that good.
    pub(super) fn rebuild_was_read(&mut self, bytes: u64, spare: u32) {
        if self.rebuild.uber <= 0.0 {
            return;
        }
        let error = 1.0 - libm::exp(-8.0 * bytes as f64 * self.rebuild.uber);
        if self.rebuild.stream.unit() < error {
            self.rebuild.errors += 1;
            if spare == 0 {
                self.rebuild.lost += ROW;
            }
        }
    }

    /// A stripe was rebuilt on the device in `slot`.
    pub(super) fn stripe_rebuilt(&mut self, slot: u32, stripe: u64) {
        self.rebuild.in_flight -= 1;
        let from = stripe * self.layout.parity().expect("stripes").chunk;
        match self.rebuild.member {
            Some(member) if self.seats[member as usize].slot == slot => {
                self.rebuilt_as_is(stripe, member);
                self.block_done(from);
            }
            // It was for a spare that has failed meanwhile.
            _ => {
                self.resume_held();
                self.plan_timers();
            }
        }
    }

    /// The block that begins at `from` is rebuilt.
    fn block_done(&mut self, from: u64) {
        let Some(member) = self.rebuild.member else { return };
        let rebuild = &mut self.rebuild;
        let Some(block) = rebuild.blocks.iter_mut().find(|block| block.from == from) else {
            return;
        };
        block.done = true;
        rebuild.bytes += block.to - block.from;
        let first = rebuild.blocks.iter().position(|block| !block.done);
        if let Some(last) =
            rebuild.blocks.drain(..first.unwrap_or(rebuild.blocks.len())).next_back()
        {
            self.seats[member as usize].synced = last.to;
        }
        if !rebuild.paused {
            rebuild.due = self.fleet.now.max(rebuild.paced);
        }
        self.resume_held();
        self.plan_timers();
    }

    /// Whether blocks may begin: none does while what is under way is brought to its end.
    pub(super) fn pause_rebuild(&mut self, paused: bool) {
        self.rebuild.paused = paused;
        self.rebuild.due = match self.rebuild.member {
            Some(_) if !paused => self.fleet.now.max(self.rebuild.paced),
            _ => NEVER,
        };
        if !paused && self.resync.due == NEVER {
            self.begin_resync();
        }
        self.plan_timers();
    }

    /// How fast the array may work on its own behalf.
    pub(super) fn rebuild_rate(&self) -> Rate {
        let quiet = !self.rebuild.host_seen && self.fleet.in_flight == 0;
        if quiet { self.rebuild.max } else { self.rebuild.min }
    }

    /// Power is gone: the block on the way is begun again.
    pub(super) fn cut_rebuild(&mut self) {
        (self.rebuild.due, self.rebuild.in_flight, self.rebuild.waits) = (NEVER, 0, false);
        self.rebuild.blocks.clear();
        self.rebuild.held.clear();
        self.rebuild.held_clears = 0;
    }

    /// Commands of the host that waited for a block go on.
    pub(super) fn resume_held(&mut self) {
        let mut held = std::mem::take(&mut self.rebuild.held);
        self.rebuild.held_clears = 0;
        for &host in &held {
            let active = &mut self.fleet.hosts[host];
            active.own.held = self.fleet.now - active.submitted;
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
    #[inline]
    pub(super) fn waits_for_block(&mut self, host: HostId) -> bool {
        (self.rebuild.is_under_way() || self.resync.busy) && self.waits_for_busy_block(host)
    }

    fn waits_for_busy_block(&mut self, host: HostId) -> bool {
        let command = self.fleet.hosts[host].command;
        if matches!(command.op, Op::Read | Op::Flush) {
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
            self.fleet.hosts[host].remaining += 1;
            self.rebuild.held.push(host);
            self.rebuild.held_clears += u32::from(command.op != Op::Write);
        }
        waits
    }

    fn touches_window(&self, command: &Command) -> bool {
        let Some(member) = self.rebuild.member else { return false };
        let (mut at, end) = (command.offset, command.offset + command.len);
        while at < end {
            let mut step = end - at;
            for copy in 0..self.layout.copies() {
                let (place, run) = self.layout.place(at, copy);
                step = step.min(run);
                let hit =
                    |b: &Block| !b.done && place.offset < b.to && b.from < place.offset + step;
                if place.member == member && self.rebuild.blocks.iter().any(hit) {
                    return true;
                }
            }
            at += step;
        }
        false
    }
}
