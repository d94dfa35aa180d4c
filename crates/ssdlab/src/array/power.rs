//! Loss of power: at an instant everything in flight in the array is cut, and after a while the array
//! comes back.
//!
//! A command of a member that writes and was not answered has reached the member or it has not; a
//! stream of the run's seed decides for each. TRIMs under way are carried out. Commands of the host
//! that were not answered end in an error when the array is back; those that arrive meanwhile wait.
//! The stripe cache is forgotten, the bitmap is not.
//!
//! Stripes written in part are left with the write hole (`write_hole.rs`) until they are made good
//! (`resync.rs`).
//!
//! Members end what they have begun by themselves, without power too, and keep all that they have
//! answered: what a drive loses of its own (its volatile buffer) is not modelled.

use super::bitmap::Bitmap;
use super::host::Own;
use super::keys::ArrayKeys;
use super::layout::Layout;
use super::stripes::Kind;
use super::write_hole::Run;
use super::{Array, Task};
use crate::contract::Op;
use crate::fleet::{Host, HostId, IoId};
use crate::persist::persistent;
use crate::rng::Stream;
use crate::stats::{Part as Time, Parts};
use crate::units::NEVER;

/// An array without a bitmap that was not written for so long is marked clean and needs no
/// resynchronisation (md's `safe_mode_delay`).
const SAFE_MODE_DELAY: u64 = 200_000_000;

/// What losses of power have done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PowerCounts {
    pub losses: u64,
    /// Commands of members cut that write, and those of them that did not reach their member.
    pub writes: u64,
    pub unwritten: u64,
    /// Stripes (writes, of mirrors) being written, and those that were left inconsistent.
    pub open: u64,
    pub torn: u64,
    /// Bytes lost by the write hole.
    pub hole: u64,
}
persistent!(PowerCounts { state { losses, writes, unwritten, open, torn, hole } });

/// See the module.
pub(super) struct Power {
    planned: Vec<u64>,
    done: usize,
    restart: u64,
    pub off: bool,
    /// When it comes back.
    pub back: u64,
    /// Commands of members that were cut and are not back.
    pub outstanding: u32,
    stream: Stream,
    /// When the last write of the host ended.
    pub last_write: u64,
    /// Commands of the host that were cut, and those that wait for the power.
    pub cut: Vec<HostId>,
    pub held: Vec<HostId>,
    pub open: Vec<Run>,
    pub counts: PowerCounts,
}
persistent!(Power {
    state { done, off, back, outstanding, stream, last_write, cut, held, open, counts }
    built { planned, restart }
});

impl Power {
    /// As the rig says.
    pub fn new(keys: &ArrayKeys, stream: Stream) -> Self {
        let mut planned: Vec<u64> = keys.power_loss.iter().map(|at| at.0).collect();
        planned.sort_unstable();
        Power {
            planned,
            done: 0,
            restart: keys.restart_after.0,
            off: false,
            back: NEVER,
            outstanding: 0,
            stream,
            last_write: 0,
            cut: Vec::new(),
            held: Vec::new(),
            open: Vec::new(),
            counts: PowerCounts::default(),
        }
    }

    /// Whether power will ever be lost.
    pub fn is_planned(&self) -> bool {
        !self.planned.is_empty()
    }

    /// When it goes or comes back.
    pub fn due(&self) -> u64 {
        match self.off {
            true => self.back,
            false => self.planned.get(self.done).copied().unwrap_or(NEVER),
        }
    }
}

/// Ranges in order, those that touch as one.
pub(super) fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
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
    /// Power goes, or comes back.
    pub(super) fn power_timer(&mut self) {
        if self.power.off { self.power_back() } else { self.cut_power() }
    }

    /// A command waits for the power.
    pub(super) fn waits_for_power(&mut self, host: HostId) -> bool {
        if self.power.off {
            self.fleet.hosts[host].remaining += 1;
            self.power.held.push(host);
        }
        self.power.off
    }

    /// Everything in flight is cut.
    fn cut_power(&mut self) {
        let stale = self.stale_after_cut();
        let power = &mut self.power;
        power.done += 1;
        (power.off, power.back) = (true, self.fleet.now + power.restart);
        power.counts.losses += 1;
        self.fleet.power.losses += 1;
        let between = self.cut_bus();
        let reached = self.cut_ios(&between);
        self.cut_stripes(&reached);
        self.drop_cut(&between);
        self.cut_hosts();
        self.stripes.cut();
        self.cut_rebuild();
        self.cut_resync(stale);
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.cut();
        }
        if let Some(versions) = &mut self.versions {
            versions.forget_kept();
        }
        self.fleet.forget_errors();
        self.count_write_hole();
        self.plan_timers();
    }

    /// What must be resynchronised if power goes now: stripes, or bytes of mirrors.
    pub(super) fn stale_after_cut(&self) -> Vec<(u64, u64)> {
        let capacity = self.layout.capacity();
        let unit = match &self.layout {
            Layout::Parity(parity) => parity.width(),
            Layout::Mirrored(_) => 1,
            Layout::Linear(_) | Layout::Striped(_) => return Vec::new(),
        };
        let mut stale = self.resync.stale.clone();
        let units = |(from, to): (u64, u64)| (from / unit, to.min(capacity).div_ceil(unit));
        let writes = |host: &Host<Own>| host.remaining > 0 && host.command.op == Op::Write;
        match &self.bitmap {
            Some(bitmap) => stale.extend(bitmap.dirty().map(units)),
            None => {
                let lately = self.fleet.counts.writes > 0
                    && self.fleet.now < self.power.last_write + SAFE_MODE_DELAY;
                if lately || self.fleet.hosts.iter().any(writes) {
                    stale.push(units((0, capacity)));
                }
            }
        }
        merged(stale)
    }

    /// Cuts the commands of members, those `between` array and member too; which of them have reached
    /// their member.
    fn cut_ios(&mut self, between: &[(IoId, bool)]) -> Vec<bool> {
        let places = self.fleet.ios.places() as usize;
        let (mut reached, mut under_way) = (vec![true; places], vec![false; places]);
        between.iter().for_each(|&(io, back)| under_way[io.index()] = !back);
        for (index, reached) in reached.iter_mut().enumerate() {
            let id = IoId::of(index as u32);
            if !self.fleet.ios.holds(id) {
                continue;
            }
            let io = &mut self.fleet.ios[id];
            io.purpose.cut = true;
            self.power.outstanding += 1;
            let host = match io.purpose.task {
                Task::Host(_) => true,
                Task::StripeWrite(stripe) => self.stripes.all[stripe as usize].kind == Kind::Write,
                _ => false,
            };
            if io.op != Op::Write || !host {
                continue;
            }
            let io = *io;
            *reached = !under_way[index] && self.power.stream.below(2) == 0;
            self.power.counts.writes += 1;
            self.power.counts.unwritten += u64::from(!*reached);
            if !*reached && !under_way[index] {
                self.undo_content(id, &io);
            }
        }
        reached
    }

    /// Commands that were between array and member come back from nobody.
    fn drop_cut(&mut self, between: &[(IoId, bool)]) {
        for &(io, back) in between {
            let member = self.fleet.take(io).member;
            if !back {
                self.fleet.members[member].pending -= 1;
            }
            self.power.outstanding -= 1;
        }
    }

    /// Commands of the host that were not answered will end in an error.
    fn cut_hosts(&mut self) {
        let mirrors = self.layout.copies() > 1;
        for id in (0..self.fleet.hosts.places()).map(HostId::of) {
            let host = &mut self.fleet.hosts[id];
            if host.remaining == 0 {
                continue;
            }
            let op = host.command.op;
            if !std::mem::replace(&mut host.failed, true) {
                self.fleet.errors[usize::from(op != Op::Read)] += 1;
            }
            self.power.counts.open += u64::from(mirrors && op == Op::Write && host.own.ios > 0);
            (host.remaining, host.digest, host.own) = (1, 0, Own::default());
            self.power.cut.push(id);
        }
        self.fleet.power.commands_cut += self.power.cut.len() as u64;
    }

    /// A command of a member that was cut is back, or never will be.
    pub(super) fn cut_returned(&mut self) {
        self.power.outstanding -= 1;
        if self.power.outstanding == 0 && self.power.back == NEVER {
            self.power.back = self.fleet.now;
            self.plan_timers();
        }
    }

    fn power_back(&mut self) {
        if self.power.outstanding > 0 {
            // As soon as the members are ready.
            self.power.back = NEVER;
            return;
        }
        let now = self.fleet.now;
        let power = &mut self.power;
        (power.off, power.back) = (false, NEVER);
        while power.planned.get(power.done).is_some_and(|&at| at <= now) {
            power.done += 1;
        }
        let (mut cut, mut held) = (std::mem::take(&mut power.cut), std::mem::take(&mut power.held));
        if self.rebuild.member.is_some() {
            self.rebuild.due = now;
        }
        self.begin_resync();
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.resume(now);
        }
        for host in cut.drain(..) {
            self.release(host, 0, &Parts::default(), Time::Controller);
        }
        for host in held.drain(..) {
            let active = &mut self.fleet.hosts[host];
            active.own.held = now - active.submitted;
            active.remaining -= 1;
            if !self.waits_for_block(host) {
                self.dispatch(host);
            }
        }
        (self.power.cut, self.power.held) = (cut, held);
    }

    pub(super) fn visit_power_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        if !self.power.is_planned() && self.fleet.power.losses == 0 {
            return;
        }
        let c = &self.power.counts;
        visit("power_member_writes_cut", c.writes);
        visit("power_member_writes_lost", c.unwritten);
        visit("power_open_stripes", c.open);
        visit("power_torn_stripes", c.torn);
        visit("write_hole_lost_bytes", c.hole);
        let r = &self.resync;
        visit("resynced_stripes", r.stripes);
        visit("resync_bytes_read", r.bytes_read);
        visit("resync_bytes_written", r.bytes_written);
        visit("resync_left_bytes", self.bytes_to_resync());
    }

    /// Whether power is off, or the bitmap is being written, or a block is being brought up to date.
    pub(super) fn has_own_work(&self) -> bool {
        let bitmap = self.bitmap.as_ref().is_some_and(Bitmap::is_busy);
        self.power.off || bitmap || self.rebuild.is_under_way() || self.resync.busy
    }
}
