//! Loss of power of array and members.
//!
//! What of their writes has reached the members is theirs to say. The array knows what may disagree: what was being
//! written or deallocated, and on members with a volatile write cache all that was since they were flushed. That is
//! resynchronised with what the bitmap names, or with everything where there is none (`resync.rs`). Of RAID 5 and 6
//! the parity of such stripes is written anew. Where a member is missing meanwhile, its chunks of them may be recovered
//! wrong (`write_hole.rs`).
//!
//! A member with a volatile write cache that was rebuilt and not flushed since is rebuilt again.

use super::Array;
use super::bitmap::Bitmap;
use super::failure::{Condition, Seat};
use super::layout::Layout;
use crate::contract::{Command, Device, Missed, Op};
use crate::fleet::{Composite, Exposed};
use crate::persist::persistent;

/// An array without a bitmap that was not written for so long is marked clean and needs no
/// resynchronisation (md's `safe_mode_delay`).
const SAFE_MODE_DELAY: u64 = 200_000_000;

/// Stretches of an array that a flush has still to make equal on its members.
pub(super) struct Unsettled {
    /// Bytes of a stretch: a stripe, a region of the bitmap, or all.
    unit: u64,
    /// By stretch: the number of the last flush that had begun when it was written, and one more; 0: never.
    written: Vec<u64>,
    pub flushes: Exposed,
    /// When the last write of the host ended.
    pub last_write: u64,
}
persistent!(Unsettled {
    state { flushes, last_write }
    parts { written }
    built { unit }
});

impl Unsettled {
    /// Of an array of this layout, all of which agrees.
    pub fn new(layout: &Layout, bitmap: Option<&Bitmap>) -> Self {
        let capacity = layout.capacity();
        let unit = match layout {
            Layout::Parity(parity) => parity.width(),
            _ => bitmap.map_or(capacity, Bitmap::region),
        };
        let redundant = layout.parity().is_some() || layout.copies() > 1;
        let stretches = if redundant { capacity.div_ceil(unit.max(1)) } else { 0 };
        let (written, flushes) = (vec![0; stretches as usize], Exposed::default());
        Unsettled { unit, written, flushes, last_write: 0 }
    }

    fn stretches(&self, offset: u64, len: u64) -> std::ops::Range<usize> {
        let end = ((offset + len).div_ceil(self.unit) as usize).min(self.written.len());
        ((offset / self.unit) as usize).min(end)..end
    }

    /// Bytes have been written that a flush has still to settle.
    pub fn note(&mut self, offset: u64, len: u64) {
        let (now, stretches) = (self.flushes.number() + 1, self.stretches(offset, len));
        self.written[stretches].fill(now);
    }

    /// Stretches that no flush has settled.
    fn unsafe_now(&self) -> impl Iterator<Item = usize> + '_ {
        let open = |written: u64| written > 0 && !self.flushes.is_safe(written - 1);
        (0..).zip(&self.written).filter(move |&(_, &written)| open(written)).map(|(nth, _)| nth)
    }
}

/// Ranges in order, those that touch as one.
fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (from, to) in ranges {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

impl Array {
    /// The host has written or deallocated something, or the array made it agree.
    pub(super) fn note_change(&mut self, op: Op, offset: u64, len: u64) {
        let unsettled = match op {
            Op::Write => self.volatile_members,
            Op::Trim => self.trims,
            _ => false,
        };
        if unsettled {
            self.unsettled.note(offset, len);
        }
    }

    /// Power goes; answers when the members are ready again.
    pub(super) fn lose_all_power(&mut self, now: u64) -> u64 {
        self.fleet.now = now;
        let mut unsure = self.under_way(|op| matches!(op, Op::Trim | Op::Purge));
        unsure.extend(self.unsettled.unsafe_now());
        let writes = self.under_way(|op| op == Op::Write);
        let stale = self.stale_after_cut(&[&unsure[..], &writes].concat());
        let stripes = self.stripes_under_way();
        let on_the_bus = self.cut_bus(now);
        let (ready, mut missed) = self.fleet.cut(now);
        on_the_bus.iter().for_each(|io| missed[io.member].range(io.offset, io.len));
        self.stripes.cut();
        self.cut_rebuild();
        self.rebuild_again();
        if let Some(parity) = self.layout.parity() {
            let chunk = parity.chunk;
            if self.volatile_members || !missed.iter().all(Missed::is_known) {
                unsure.extend(writes);
            } else {
                stripes.iter().for_each(|stripe| self.tear_stripe(stripe, &missed));
            }
            unsure.sort_unstable();
            unsure.dedup();
            self.hole.stripes += unsure.len() as u64;
            unsure.iter().for_each(|&stripe| self.hole.tear_all(stripe as u64, chunk));
            self.count_exposed();
        }
        self.cut_resync(stale);
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.cut();
        }
        if let Some(versions) = &mut self.versions {
            versions.forget_kept();
        }
        self.plan_timers();
        ready
    }

    /// Stretches that commands of the host under way may change.
    fn under_way(&self, of: impl Fn(Op) -> bool) -> Vec<usize> {
        let unsettled = &self.unsettled;
        let range = |command: Command| match command.op {
            Op::Purge => 0..unsettled.written.len(),
            _ => unsettled.stretches(command.offset, command.len),
        };
        let commands = self.fleet.hosts.iter().map(|host| host.command);
        commands.filter(|command| of(command.op)).flat_map(range).collect()
    }

    /// What must be resynchronised if power goes now, stripes or bytes of mirrors: these stretches may disagree.
    fn stale_after_cut(&self, disagree: &[usize]) -> Vec<(u64, u64)> {
        let capacity = self.layout.capacity();
        let unit = match &self.layout {
            Layout::Parity(parity) => parity.width(),
            Layout::Mirrored(_) => 1,
            Layout::Linear(_) | Layout::Striped(_) => return Vec::new(),
        };
        let mut stale = self.resync.stale.clone();
        let units = |(from, to): (u64, u64)| (from / unit, to.min(capacity).div_ceil(unit));
        match &self.bitmap {
            Some(bitmap) => {
                let stretch = self.unsettled.unit;
                let bytes = |&nth: &usize| (nth as u64 * stretch, (nth as u64 + 1) * stretch);
                stale.extend(bitmap.dirty().chain(disagree.iter().map(bytes)).map(units));
            }
            None => {
                let lately = self.fleet.counts.writes > 0
                    && self.fleet.now < self.unsettled.last_write + SAFE_MODE_DELAY;
                if lately || !disagree.is_empty() {
                    stale.push(units((0, capacity)));
                }
            }
        }
        merged(stale)
    }

    /// A member is as it should be, which a flush has still to make safe.
    pub(super) fn note_rebuilt(&mut self, member: u32) {
        self.seats[member as usize].rebuilt = self.unsettled.flushes.number() + 1;
    }

    /// What was rebuilt on a volatile write cache and not flushed since is rebuilt again.
    fn rebuild_again(&mut self) {
        for member in 0..self.seats.len() {
            let Seat { slot, condition, rebuilt, .. } = self.seats[member];
            let unsafe_still = rebuilt > 0 && !self.unsettled.flushes.is_safe(rebuilt - 1);
            if !self.fleet.members[slot as usize].is_volatile() {
                continue;
            }
            let seat = &mut self.seats[member];
            match condition {
                Condition::Rebuilding => seat.synced = 0,
                Condition::Whole if unsafe_still => {
                    (seat.condition, seat.synced) = (Condition::Rebuilding, 0);
                    self.degraded = true;
                    self.rebuild.member.get_or_insert(member as u32);
                }
                _ => {}
            }
        }
        self.unsettled.flushes.clear();
    }

    /// The members are ready.
    pub(super) fn resume_after_outage(&mut self) {
        let now = self.fleet.now;
        if self.rebuild.member.is_some() {
            self.rebuild.due = now;
        }
        self.begin_resync();
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.resume(now);
        }
        self.plan_timers();
        self.started();
    }

    /// Shows what losses of power have cost.
    pub(super) fn visit_power_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        if self.fleet.power.losses == 0 {
            return;
        }
        if self.layout.parity().is_some() {
            visit("power_torn_stripes", self.hole.stripes);
        }
        visit("power_exposed_bytes", self.hole.exposed_bytes);
        let r = &self.resync;
        visit("resynced_stripes", r.stripes);
        visit("resync_bytes_read", r.bytes_read);
        visit("resync_bytes_written", r.bytes_written);
        visit("resync_left_bytes", self.bytes_to_resync());
    }
}
