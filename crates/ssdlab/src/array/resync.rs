//! Resynchronisation: after a loss of power, copies are made equal and parities right again, stripe
//! by stripe, at the rate of rebuilding and after it (md does them in this order). With a bitmap the
//! regions whose bits were set, without it everything.
//!
//! A stripe of RAID 5 and 6 is read whole under its lock, parity too; parity is written where it is
//! wrong. Of mirrors one copy is read and the others are written (as md's raid1 does); writes of the
//! block wait meanwhile, and until then reads take the first copy, so that none is answered twice
//! differently.

use super::keys::ROW;
use super::layout::Place;
use super::plan::Part;
use super::stripe_cache::Span;
use super::{Array, Io, Task};
use crate::contract::Op;
use crate::persist::persistent;
use crate::units::NEVER;

/// See the module.
pub(super) struct Resync {
    /// When the next stripe or block begins.
    pub due: u64,
    /// One is on the way.
    pub busy: bool,
    started: u64,
    /// Of mirrors: which block that is, what of the host's it is, and writes in flight for it.
    block: u32,
    window: (u64, u64),
    writes: u32,
    /// What is still to be done, in order: stripes, or bytes of mirrors.
    pub stale: Vec<(u64, u64)>,
    pub stripes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}
persistent!(Resync {
    state { due, busy, started, block, window, writes, stale, stripes, bytes_read, bytes_written }
});

impl Resync {
    pub fn new() -> Self {
        Resync {
            due: NEVER,
            busy: false,
            started: 0,
            block: 0,
            window: (0, 0),
            writes: 0,
            stale: Vec::new(),
            stripes: 0,
            bytes_read: 0,
            bytes_written: 0,
        }
    }

    /// Whether something of `from..to` is still to be done.
    pub fn touches(&self, from: u64, to: u64) -> bool {
        let after = self.stale.partition_point(|&(_, end)| end <= from);
        self.stale.get(after).is_some_and(|&(begin, _)| begin < to)
    }
}

impl Array {
    /// Whether copies or parity of the host's bytes may still disagree.
    #[inline]
    pub(super) fn is_stale(&self, offset: u64, len: u64) -> bool {
        !self.resync.stale.is_empty() && self.resync.touches(offset, offset + len)
    }

    /// Power is gone: what must be resynchronised when it is back.
    pub(super) fn cut_resync(&mut self, stale: Vec<(u64, u64)>) {
        (self.resync.due, self.resync.busy, self.resync.stale) = (NEVER, false, stale);
        self.resync.writes = 0;
        self.resync.block = self.resync.block.wrapping_add(1);
    }

    /// Goes on as soon as possible, if there is anything to do.
    pub(super) fn begin_resync(&mut self) {
        if !self.resync.stale.is_empty() && !self.resync.busy {
            self.resync.due = self.fleet.now;
        }
    }

    /// A command was answered, for which the next stripe or block may have waited.
    #[inline]
    pub(super) fn resume_resync(&mut self) {
        if !self.resync.stale.is_empty() && self.resync.due == NEVER && !self.power.off {
            self.begin_resync();
            self.plan_timers();
        }
    }

    pub(super) fn bytes_to_resync(&self) -> u64 {
        let unit = self.layout.parity().map_or(1, |parity| parity.width());
        self.resync.stale.iter().map(|(from, to)| (to - from) * unit).sum()
    }

    /// Begins with the next stripe or block.
    pub(super) fn resync_step(&mut self) {
        let off = self.power.off || self.fleet.power.is_off();
        let paused = off || self.rebuild.paused || self.rebuild.member.is_some();
        if self.resync.busy || paused {
            return;
        }
        let clears = |io: &Io| matches!(io.op, Op::Trim | Op::Purge);
        let Some(&(from, to)) = self.resync.stale.first() else { return };
        if self.fleet.ios.iter().any(clears) {
            // Looked at again when they are answered.
            return;
        }
        (self.resync.started, self.rebuild.host_seen) = (self.fleet.now, false);
        let Some(parity) = self.layout.parity() else { return self.sync_block(from, to) };
        // Without a parity to spare, what is there is right by definition.
        let parities = parity.parities as usize;
        let gone =
            |stripe: u64| (0..parity.members).filter(|&role| !self.has_chunk(stripe, role)).count();
        match (from..to).find(|&stripe| !self.degraded || gone(stripe) < parities) {
            None => {
                self.power.heal_stripes(from, to);
                self.unsettled.heal_all(from, to);
                self.resync.stale.remove(0);
                self.begin_resync();
            }
            Some(stripe) => {
                self.power.heal_stripes(from, stripe);
                self.unsettled.heal_all(from, stripe);
                self.resync.stale[0].0 = stripe;
                self.resync.busy = true;
                self.sync_stripe(stripe);
            }
        }
    }

    /// What is written of a stripe to make its parity right: nothing where it is.
    pub(super) fn parts_to_sync(&self, stripe: u64, parts: &mut Vec<Part>) {
        let parity = self.layout.parity().expect("stripes");
        let Span { lo, hi } = match self.unsettled.is_torn(stripe) {
            true => Span { lo: 0, hi: parity.chunk },
            false => self.power.torn(stripe),
        };
        let span = Span { lo: lo / ROW * ROW, hi: hi.next_multiple_of(ROW).min(parity.chunk) };
        if span.lo < span.hi {
            let roles =
                (parity.data()..parity.members).filter(|&role| self.has_chunk(stripe, role));
            parts.extend(roles.map(|role| Part { role, span }));
        }
    }

    /// A stripe was read, and written where it was wrong.
    pub(super) fn stripe_synced(&mut self, stripe: u64) {
        let chunk = self.layout.parity().expect("stripes").chunk;
        self.unsettled.heal(stripe);
        if self.resync.busy && self.resync.stale.first().is_some_and(|s| s.0 == stripe) {
            self.block_synced(1, chunk);
        }
    }

    /// Makes the copies of the host's bytes from `from` on equal, once no write of them is in flight.
    fn sync_block(&mut self, from: u64, to: u64) {
        let len = (to - from).min(self.rebuild.block).min(self.layout.place(from, 0).1);
        let places: Vec<Place> =
            (0..self.layout.copies()).map(|copy| self.layout.place(from, copy).0).collect();
        let written =
            |io: &Io| io.op == Op::Write && places.iter().any(|&place| io.touches(place, len));
        if self.fleet.ios.iter().any(written) {
            return;
        }
        let Some(&source) = places.iter().find(|&&place| self.holds(place, len)) else {
            return self.block_synced(len, 0);
        };
        (self.resync.busy, self.resync.window) = (true, (from, from + len));
        self.resync.block = self.resync.block.wrapping_add(1);
        let Place { member, offset } = source;
        let io = self.io(Task::SyncRead(self.resync.block), member, Op::Read, offset, len);
        self.send(io, 0, 0);
    }

    /// Whether a command is for the block that is being made equal.
    fn is_of_block(&self, io: &Io) -> bool {
        let block = self.resync.block;
        [Task::SyncRead(block), Task::SyncWrite(block)].contains(&io.purpose.task)
    }

    /// A copy was read, or written.
    pub(super) fn sync_answered(&mut self, io: &Io) {
        if !self.resync.busy || !self.is_of_block(io) {
            return;
        }
        let (from, to) = self.resync.window;
        let len = to - from;
        if io.op == Op::Read {
            self.resync.bytes_read += len;
            let stamp = self.stamp_copy(io);
            let source = Place { member: io.purpose.seat, offset: io.offset };
            for copy in 0..self.layout.copies() {
                let place = self.layout.place(from, copy).0;
                if place == source || !self.holds(place, len) {
                    continue;
                }
                let Place { member, offset } = place;
                self.resync.writes += 1;
                self.resync.bytes_written += len;
                let task = Task::SyncWrite(self.resync.block);
                let io = self.io(task, member, Op::Write, offset, io.len);
                self.send(io, stamp, 0);
            }
        } else {
            self.resync.writes -= 1;
        }
        if self.resync.writes == 0 {
            self.block_synced(len, len);
        }
    }

    /// A member failed: what it was to give is read from another one, what it was to get is not needed.
    pub(super) fn sync_unanswered(&mut self, io: &Io) {
        if io.op == Op::Write {
            self.sync_answered(io);
        } else if self.resync.busy && self.is_of_block(io) {
            (self.resync.busy, self.resync.due) = (false, self.fleet.now);
            self.resume_held();
            self.rebuild.resume_if_waiting(self.fleet.now);
        }
    }

    /// So many units of what is to be done are done, which took so many bytes of each member.
    fn block_synced(&mut self, units: u64, bytes: u64) {
        self.resync.busy = false;
        self.resync.writes = 0;
        self.resync.stripes += 1;
        let (from, unit) = (self.resync.stale[0].0, self.layout.parity().map_or(1, |p| p.width()));
        self.note_change(Op::Write, from * unit, units * unit);
        let first = &mut self.resync.stale[0];
        first.0 += units;
        if first.0 >= first.1 {
            self.resync.stale.remove(0);
        }
        self.resync.due = if self.resync.stale.is_empty() {
            NEVER
        } else {
            self.fleet.now.max(self.resync.started + self.rebuild_rate().time(bytes))
        };
        self.resume_held();
        // A spare may have waited for the copies.
        self.rebuild.resume_if_waiting(self.fleet.now);
        self.plan_timers();
    }

    /// Whether a write touches the block whose copies are being made equal.
    pub(super) fn touches_synced(&self, offset: u64, len: u64) -> bool {
        let (from, to) = self.resync.window;
        self.resync.busy && offset < to && from < offset + len
    }
}
