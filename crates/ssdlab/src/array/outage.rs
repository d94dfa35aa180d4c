//! Loss of power of the whole: array and members.
//!
//! What of their writes has reached the members is theirs to say. The array knows what may disagree: what was being
//! written or deallocated, and on members with a volatile write cache all that was since they were flushed. That is
//! resynchronised with what the bitmap names, or with everything where there is none (`resync.rs`). Of RAID 5 and 6
//! the parity of such stripes is written anew. Where a member is missing meanwhile, its chunks of them cannot be told:
//! they are the write hole, and counted as exposed.
//!
//! A member with a volatile write cache that was rebuilt and not flushed since is rebuilt again.

use super::bitmap::Bitmap;
use super::failure::{Condition, Seat};
use super::layout::Layout;
use super::{Array, Power};
use crate::contract::{Command, Device, Op};
use crate::fleet::{Composite, Exposed};
use crate::persist::persistent;
use crate::units::NEVER;

/// Stretches of an array that a flush has still to make equal on its members.
pub(super) struct Unsettled {
    /// Bytes of a stretch: a stripe, a region of the bitmap, or all.
    unit: u64,
    /// By stretch: the number of the last flush that had begun when it was written, and one more; 0: never.
    written: Vec<u64>,
    pub flushes: Exposed,
    /// Stripes whose parity may be wrong all over, one bit each.
    torn: Vec<u64>,
    /// Bytes of chunks that could not be told because their stripe was torn.
    exposed_bytes: u64,
}
persistent!(Unsettled {
    state { flushes, exposed_bytes }
    parts { written, torn }
    built { unit }
});

impl Unsettled {
    /// Of an array of this layout, all of which agrees.
    pub fn new(layout: &Layout, bitmap: Option<&Bitmap>) -> Self {
        let capacity = layout.capacity();
        let (unit, stripes) = match layout {
            Layout::Parity(parity) => (parity.width(), parity.rows),
            _ => (bitmap.map_or(capacity, Bitmap::region), 0),
        };
        let redundant = layout.parity().is_some() || layout.copies() > 1;
        let stretches = if redundant { capacity.div_ceil(unit.max(1)) } else { 0 };
        Unsettled {
            unit,
            written: vec![0; stretches as usize],
            flushes: Exposed::default(),
            torn: vec![0; stripes.div_ceil(64) as usize],
            exposed_bytes: 0,
        }
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

    /// Whether the parity of a stripe may be wrong all over.
    #[inline]
    pub fn is_torn(&self, stripe: u64) -> bool {
        self.torn.get((stripe / 64) as usize).is_some_and(|word| word >> (stripe % 64) & 1 == 1)
    }

    /// The parity of a stripe is right.
    pub fn heal(&mut self, stripe: u64) {
        if let Some(word) = self.torn.get_mut((stripe / 64) as usize) {
            *word &= !(1 << (stripe % 64));
        }
    }

    /// All stripes from `first` to before `end` agree.
    pub fn heal_all(&mut self, first: u64, end: u64) {
        (first..end.min(self.torn.len() as u64 * 64)).for_each(|stripe| self.heal(stripe));
    }

    fn torn_stripes(&self) -> impl Iterator<Item = u64> {
        (0..self.torn.len() as u64 * 64).filter(|&stripe| self.is_torn(stripe))
    }
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
        let (disagree, everything) = self.disagreeing();
        let mut stale = self.stale_after_cut();
        let unit = self.layout.parity().map_or(1, |parity| parity.width());
        if everything {
            stale = vec![(0, self.layout.capacity().div_ceil(unit))];
        }
        stale.extend(disagree.iter().map(|&(from, to)| (from / unit, to.div_ceil(unit))));
        let ready = self.fleet.cut(now);
        if let Some(bus) = &mut self.bus {
            bus.cut(now);
        }
        self.stripes.cut();
        self.cut_rebuild();
        self.rebuild_again();
        self.tear_stripes(&disagree);
        self.cut_resync(super::power::merged(stale));
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.cut();
        }
        if let Some(versions) = &mut self.versions {
            versions.forget_kept();
        }
        self.power.forget();
        self.plan_timers();
        ready
    }

    /// The bytes on which members may disagree now, but for those that the bitmap names; and whether that is
    /// everything, where there is no bitmap.
    fn disagreeing(&self) -> (Vec<(u64, u64)>, bool) {
        let unsettled = &self.unsettled;
        if unsettled.written.is_empty() {
            return (Vec::new(), false);
        }
        let capacity = self.layout.capacity();
        let unsafe_now = |&written: &u64| written > 0 && !unsettled.flushes.is_safe(written - 1);
        let changes = |op: Op| matches!(op, Op::Write | Op::Trim | Op::Purge);
        let under_way = self.fleet.hosts.iter().map(|host| host.command);
        let under_way = under_way.filter(|command| changes(command.op));
        let range = |command: Command| match command.op {
            Op::Purge => unsettled.stretches(0, capacity),
            _ => unsettled.stretches(command.offset, command.len),
        };
        let mut stretches: Vec<usize> = under_way.flat_map(range).collect();
        let written = unsettled.written.iter().enumerate();
        stretches.extend(written.filter(|(_, written)| unsafe_now(written)).map(|(nth, _)| nth));
        stretches.sort_unstable();
        stretches.dedup();
        let bytes = |nth: usize| {
            let from = nth as u64 * unsettled.unit;
            (from, (from + unsettled.unit).min(capacity))
        };
        let everything = self.bitmap.is_none() && !stretches.is_empty();
        (stretches.into_iter().map(bytes).collect(), everything)
    }

    /// Notes which stripes may have a wrong parity, and what of them cannot be told.
    fn tear_stripes(&mut self, disagree: &[(u64, u64)]) {
        let Some(parity) = self.layout.parity() else { return };
        let stripes: Vec<u64> = disagree.iter().map(|&(from, _)| from / parity.width()).collect();
        for &stripe in &stripes {
            self.unsettled.torn[(stripe / 64) as usize] |= 1 << (stripe % 64);
        }
        (0..self.seats.len() as u32).for_each(|member| self.count_exposed(member, &stripes));
    }

    /// A member has failed: what the torn stripes have of it cannot be told.
    pub(super) fn lose_torn(&mut self, member: u32) {
        if self.unsettled.torn.iter().any(|&word| word != 0) {
            let stripes: Vec<u64> = self.unsettled.torn_stripes().collect();
            self.count_exposed(member, &stripes);
        }
    }

    /// Counts the chunks of a member, if it is missing, in stripes that have just been torn or lost it.
    fn count_exposed(&mut self, member: u32, stripes: &[u64]) {
        let Some(parity) = self.layout.parity() else { return };
        if self.seats[member as usize].condition == Condition::Whole {
            return;
        }
        let untold = |stripe: &&u64| {
            let mut roles = 0..parity.data();
            let role = roles.find(|&role| parity.member(**stripe, role) == member);
            role.is_some_and(|role| !self.has_chunk(**stripe, role)) && !self.is_lost(**stripe)
        };
        let count = stripes.iter().filter(untold).count() as u64;
        self.unsettled.exposed_bytes += count * parity.chunk;
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
    pub(super) fn visit_outage_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        if self.fleet.power.losses > 0 {
            visit("power_exposed_bytes", self.unsettled.exposed_bytes);
        }
    }
}

impl Power {
    /// An outage of the whole ends one of the array alone.
    fn forget(&mut self) {
        (self.off, self.back, self.outstanding) = (false, NEVER, 0);
        self.cut.clear();
        self.held.clear();
    }
}
