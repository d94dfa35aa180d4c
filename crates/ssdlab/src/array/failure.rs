//! Members that fail, and what the array does without them.
//!
//! A member fails at a time or by its wear. Its commands in flight never come back: reads are done
//! again from what is left, writes are done without it. What no copy or parity covers any more is
//! lost: it is counted, and commands that touch it end in an error after [`crate::fleet::ERROR_TIME`].
//!
//! The write hole is the other danger: where power fails while a stripe is written, its parity may be
//! of neither the old nor the new data, and a member lost before the stripe is made good takes data
//! with it that nobody wrote (`write_hole.rs`). `write_hole_stripes` counts the stripes that were open to it:
//! those being written when a member failed.

use super::keys::FailKeys;
use super::layout::{Layout, Place};
use super::{Array, Io, Task};
use crate::contract::{Device, Op};
use crate::fleet::HostId;
use crate::persist::{persistent, persistent_enum};
use crate::stats::{Part, Parts};
use crate::units::NEVER;

/// Writes of a member between two looks at its wear.
const WRITES_PER_LOOK: u64 = 256;

/// Timers.
pub(super) const FAIL: u32 = 0;
pub(super) const ERROR: u32 = 1;
pub(super) const REBUILD: u32 = 2;
pub(super) const BITMAP: u32 = 3;
pub(super) const RESYNC: u32 = 4;
pub(super) const BUS: u32 = 5;

/// How far a member can be relied on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Condition {
    /// It holds what it should.
    #[default]
    Whole,
    /// It is gone.
    Missing,
    /// A spare in its place, which holds what it should up to `synced`.
    Rebuilding,
}
persistent_enum!(Condition { Whole, Missing, Rebuilding });

/// The place of a member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seat {
    /// The slot of the device that has it.
    pub slot: u32,
    pub condition: Condition,
    /// While rebuilding: bytes from the beginning that are as they should be.
    pub synced: u64,
    /// The number of the last flush that had begun when it was rebuilt, and one more; 0: it was not.
    pub rebuilt: u64,
}
persistent!(Seat { state { slot, condition, synced, rebuilt } });

/// Failures to come, and what came of those that were.
pub(super) struct Failures {
    /// By time.
    planned: Vec<(u64, u32)>,
    /// Percentage of wear at which a member fails.
    worn: Vec<(u32, u64)>,
    done: usize,
    /// Members that failed.
    pub failed: u64,
    /// Bytes of the host's that are gone.
    pub lost: u64,
    /// Stripes that were being written when a member failed.
    pub hole: u64,
}
persistent!(Failures {
    state { worn, done, failed, lost, hole }
    built { planned }
});

impl Failures {
    /// As the rig says.
    pub fn new(keys: &[FailKeys]) -> Self {
        let mut planned: Vec<(u64, u32)> =
            keys.iter().filter_map(|k| Some((k.at?.0, k.member))).collect();
        planned.sort_unstable();
        let worn = keys.iter().filter_map(|k| Some((k.member, k.worn?))).collect();
        Failures { planned, worn, done: 0, failed: 0, lost: 0, hole: 0 }
    }

    /// When the next one is due.
    pub fn next(&self) -> u64 {
        self.planned.get(self.done).map_or(NEVER, |&(time, _)| time)
    }
}

/// The highest wear in a device, percent.
fn wear(device: &dyn Device) -> u64 {
    let mut most = 0;
    device.counters(&mut |name, value| {
        most = most.max(if name == "percentage_used" { value } else { 0 })
    });
    device.children().iter().fold(most, |most, (_, child)| most.max(wear(*child)))
}

impl Array {
    /// Whether the member takes commands.
    #[inline]
    pub(super) fn alive(&self, member: u32) -> bool {
        self.seats[member as usize].condition != Condition::Missing
    }

    /// Whether the member can be relied on for these bytes.
    #[inline]
    pub(super) fn holds(&self, place: Place, len: u64) -> bool {
        let seat = &self.seats[place.member as usize];
        match seat.condition {
            Condition::Whole => true,
            Condition::Missing => false,
            Condition::Rebuilding => {
                place.offset + len <= seat.synced
                    || self.rebuild.has(place.member, place.offset, len)
            }
        }
    }

    /// Whether a chunk of a stripe can be read and written.
    #[inline]
    pub(super) fn has_chunk(&self, stripe: u64, role: u32) -> bool {
        if !self.degraded {
            return true;
        }
        let parity = self.layout.parity().expect("stripes");
        let (member, offset) = (parity.member(stripe, role), stripe * parity.chunk);
        self.holds(Place { member, offset }, parity.chunk)
    }

    /// Whether the stripe has lost more than its parity makes good.
    pub(super) fn is_lost(&self, stripe: u64) -> bool {
        if !self.degraded {
            return false;
        }
        let parity = self.layout.parity().expect("stripes");
        let missing = (0..parity.members).filter(|&role| !self.has_chunk(stripe, role)).count();
        missing > parity.parities as usize
    }

    /// The command touches what is lost: it ends in an error.
    pub(super) fn fail_command(&mut self, host: HostId) {
        if !self.fleet.hosts[host].failed {
            self.fleet.fail_host(host);
            self.plan_timers();
        }
    }

    /// When the array acts by itself.
    pub(super) fn plan_timers(&mut self) {
        let bitmap = self.bitmap.as_ref().map_or(NEVER, |bitmap| bitmap.due);
        for (timer, due) in [
            (FAIL, self.failures.next()),
            (ERROR, self.fleet.next_error()),
            (REBUILD, self.rebuild.due),
            (BITMAP, bitmap),
            (RESYNC, self.resync.due),
        ] {
            self.fleet.set_timer(timer, due);
        }
    }

    /// Something of the array's own is due.
    pub(super) fn something_is_due(&mut self, which: u32) {
        match which {
            BUS => return self.bus_event(),
            FAIL => {
                let (_, member) = self.failures.planned[self.failures.done];
                self.failures.done += 1;
                self.fail(member);
            }
            ERROR => {
                if let Some(host) = self.fleet.take_error() {
                    self.release(host, 0, &Parts::default(), Part::Controller);
                }
            }
            BITMAP => self.look_at_bitmap(),
            RESYNC => {
                self.resync.due = NEVER;
                self.resync_step();
            }
            _ => {
                self.rebuild.due = NEVER;
                self.rebuild_step();
            }
        }
        self.plan_timers();
    }

    /// One thing less that a command waits for; what it took beyond the members is `rest`.
    pub(super) fn release(&mut self, host: HostId, ios: u32, sum: &Parts, rest: Part) {
        if self.fleet.release(host) {
            let active = &self.fleet.hosts[host];
            let least = if ios == 0 { 0 } else { sum.total() / u64::from(ios) };
            let waited =
                self.fleet.now - active.submitted - active.own.held.max(active.own.logged) - least;
            self.complete(host, ios, sum, &[(rest, waited)]);
        }
    }

    /// Looks at the wear of a member now and then.
    #[inline]
    pub(super) fn look_at_wear(&mut self, member: u32) {
        if self.failures.worn.is_empty() {
            return;
        }
        if !self.member(member).counts.writes.is_multiple_of(WRITES_PER_LOOK) {
            return;
        }
        let limit = self.failures.worn.iter().position(|&(m, _)| m == member);
        if let Some(at) = limit
            && wear(self.member(member).device()) >= self.failures.worn[at].1
        {
            self.failures.worn.remove(at);
            self.fail(member);
        }
    }

    /// A member fails: now, with its commands in flight.
    fn fail(&mut self, member: u32) {
        let seat = &mut self.seats[member as usize];
        if seat.condition == Condition::Missing {
            return;
        }
        let slot = seat.slot;
        (seat.condition, seat.synced) = (Condition::Missing, 0);
        self.degraded = true;
        self.failures.failed += 1;
        self.failures.hole += self.stripes.being_written();
        self.fleet.fail(slot as usize);
        self.stripes.forget();
        self.stripes.read_again();
        if self.rebuild.member == Some(member) {
            self.abandon_rebuild();
        }
        self.failures.lost = self.failures.lost.max(self.lost_now());
        self.count_exposed();
        let mut from = 0;
        while let Some(io) = self.fleet.take_lost(slot as usize, &mut from) {
            self.never_answered(io);
        }
        self.take_spare(member);
        self.plan_timers();
    }

    /// A command of a member that has failed.
    fn never_answered(&mut self, io: Io) {
        match io.purpose.task {
            Task::Host(host) if io.op == Op::Read => {
                self.fleet.hosts[host].own.ios -= 1;
                let lost = Place { member: io.purpose.seat, offset: io.offset };
                self.read_again(host, lost, io.len);
                let last = self.fleet.release(host);
                debug_assert!(!last, "a read is done again or fails");
            }
            Task::Host(host) => {
                // Writes, TRIMs and flushes are done without it.
                self.fleet.hosts[host].own.ios -= 1;
                if self.layout.copies() == 1 && io.op == Op::Write {
                    self.fail_command(host);
                }
                let own = &self.fleet.hosts[host].own;
                let summed = own.summed.then(|| self.sums[host.index()].clone());
                self.release(host, own.ios, &summed.unwrap_or_default(), Part::SlowestMember);
            }
            // Planned again, or it goes on without.
            Task::StripeRead(stripe) => self.stripe_answered(stripe, false, &Parts::default()),
            Task::StripeWrite(stripe) => {
                self.stripes.all[stripe as usize].ios -= 1;
                self.stripe_answered(stripe, true, &Parts::default());
            }
            // The rebuild has been abandoned, or reads from another copy next time.
            Task::CopyRead(_) | Task::CopyWrite(_) => self.copy_unanswered(&io),
            Task::Bitmap() => self.bitmap_answered(),
            Task::SyncRead(_) | Task::SyncWrite(_) => self.sync_unanswered(&io),
        }
    }

    /// Reads of a host's command what a member that failed did not answer.
    fn read_again(&mut self, host: HostId, lost: Place, len: u64) {
        let command = self.fleet.hosts[host].command;
        let (mut at, end) = (command.offset, command.offset + command.len);
        while at < end {
            let mut step = end - at;
            let mut hit = false;
            for copy in 0..self.layout.copies() {
                let (place, run) = self.layout.place(at, copy);
                step = step.min(run);
                hit |= place.member == lost.member
                    && (lost.offset..lost.offset + len).contains(&place.offset);
            }
            if hit {
                self.split_read(host, at, step);
            }
            at += step;
        }
        self.send_pieces(host);
    }

    /// Bytes of the host's that nothing holds any more.
    fn lost_now(&self) -> u64 {
        match &self.layout {
            Layout::Linear(_) | Layout::Striped(_) => (0..self.seats.len() as u32)
                .filter(|&member| !self.alive(member))
                .map(|member| self.layout.used(member))
                .sum(),
            Layout::Mirrored(mirrored) => {
                let mut lost = 0;
                let step = mirrored.chunk.min(self.rebuild.block);
                let mut at = 0;
                while at < mirrored.capacity() {
                    let len = step.min(mirrored.capacity() - at);
                    let held = (0..mirrored.copies())
                        .any(|copy| self.holds(mirrored.place(at, copy).0, len));
                    lost += if held { 0 } else { len };
                    at += len;
                }
                lost
            }
            Layout::Parity(parity) => {
                let of = |stripe: u64| {
                    let gone = |role: &u32| !self.has_chunk(stripe, *role);
                    (0..parity.data()).filter(gone).count() as u64 * parity.chunk
                };
                (0..parity.rows).filter(|&s| self.is_lost(s)).map(of).sum()
            }
        }
    }

    /// How many members are missing or not yet rebuilt.
    pub(super) fn missing(&self) -> u64 {
        self.seats.iter().filter(|seat| seat.condition != Condition::Whole).count() as u64
    }
}
