//! The device contract, kept once for all devices made of devices.

use super::{Composite, Host, IoId, Member};
use crate::contract::{Command, Completion, Device, Distance, Missed, Op, hand_over};
use crate::units::NEVER;

impl<C: Composite> Device for C {
    fn kind(&self) -> &'static str {
        C::KIND
    }

    #[inline]
    fn capacity(&self) -> u64 {
        self.fleet().capacity
    }

    fn submit(&mut self, now: u64, command: Command) {
        self.resume_time();
        let fleet = self.fleet_mut();
        fleet.now = now;
        fleet.counts.count(&command);
        fleet.commands += 1;
        (fleet.in_flight, fleet.last_host) = (fleet.in_flight + 1, now);
        if C::PASSES
            && fleet.may_pass(&command)
            && let Some((member, command)) = self.way_through(&command)
        {
            return self.fleet_mut().pass(member, command);
        }
        let fleet = self.fleet_mut();
        let host = fleet.hosts.insert(Host { command, submitted: now, ..Host::default() });
        if fleet.power.is_off() {
            fleet.power.hold(host);
        } else {
            self.take_in(host);
        }
        self.after_submit();
    }

    fn expect(&self, op: Op, offset: u64, ahead: Distance) {
        self.expect_below(op, offset, ahead);
    }

    fn next_event(&self) -> u64 {
        self.fleet().next_event()
    }

    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        self.resume_time();
        loop {
            let fleet = self.fleet_mut();
            let time = fleet.due();
            if !fleet.ready.is_empty() && time > fleet.now {
                hand_over(&mut fleet.ready, done);
                return fleet.now;
            }
            if time > limit || time == NEVER {
                return limit;
            }
            step(self, time, limit);
        }
    }

    fn take_stock(&mut self, now: u64) {
        let fleet = self.fleet_mut();
        let alive = fleet.members.iter_mut().filter(|member| !member.dead);
        alive.for_each(|member| member.take_stock(now));
        fleet.plan_all();
    }

    fn settle(&mut self, now: u64) -> u64 {
        let fleet = self.fleet_mut();
        debug_assert_eq!(fleet.in_flight, 0, "something is in flight");
        fleet.plan_members();
        fleet.now = fleet.now.max(now);
        fleet.settling = true;
        self.begin_settling();
        while self.is_working() || self.fleet().power.is_off() {
            let due = self.fleet().due();
            step(self, due, NEVER - 1);
        }
        self.end_settling();
        let fleet = self.fleet_mut();
        let now = fleet.now;
        let settled = |member: &mut Member, at| if member.dead { at } else { member.settle(at) };
        let end = fleet.members.iter_mut().map(|member| settled(member, now)).max().unwrap_or(now);
        // All of them have been quiet since the last one was.
        for member in &mut fleet.members {
            settled(member, end);
        }
        (fleet.now, fleet.settling, fleet.unplanned) = (end, false, true);
        fleet.last_host = fleet.last_host.max(end);
        fleet.plan_members();
        self.after_untimed();
        end
    }

    fn power_cut(&mut self, now: u64, missed: &mut Missed) -> u64 {
        self.lose_power(now, missed)
    }

    fn is_volatile(&self) -> bool {
        self.answers_early() || self.fleet().members.iter().any(|m| !m.dead && m.is_volatile())
    }

    fn fast_path(&self, command: &Command) -> bool {
        self.fast_path_below(command)
    }

    fn drive_commands(&self) -> Option<u64> {
        Some(self.fleet().drive_commands())
    }

    fn apply(&mut self, command: &Command) {
        debug_assert_eq!(self.fleet().in_flight, 0, "something is in flight");
        self.fleet_mut().counts.count(command);
        self.apply_untimed(command);
        self.after_untimed();
    }

    fn content(&self, offset: u64) -> u64 {
        self.content_of(offset)
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.visit_counters(visit);
        self.fleet().power.counters(visit);
    }

    fn children(&self) -> Vec<(String, &dyn Device)> {
        let shown = |member| if C::SOLE { Member::device(member) } else { member as &dyn Device };
        let members = self.fleet().members.iter().enumerate();
        members.map(|(nth, member)| (self.place_name(nth), shown(member))).collect()
    }

    fn verify(&self) {
        // What died may have died in the midst of something.
        self.fleet().members.iter().filter(|member| !member.dead).for_each(Member::verify);
        self.verify_own();
    }
}

/// Lets the next event happen, which is due then.
#[inline(always)]
fn step<C: Composite>(device: &mut C, due: u64, limit: u64) {
    let watched = C::SOLE && device.watches_below();
    let fleet = device.fleet_mut();
    let own = fleet.timers.due();
    if fleet.power.back == due {
        fleet.now = fleet.now.max(due);
        fleet.power.back = NEVER;
        device.start_up();
    } else if C::SOLE && due < own {
        // The only member may go on by itself until something of the device's own is due.
        let until = own.min(fleet.power.back).min(limit);
        let bound = match fleet.ready.is_empty() {
            _ if watched => due,
            true => until,
            false => fleet.now,
        };
        if watched {
            fleet.now = fleet.now.max(due);
        }
        proceed_sole(device, bound);
    } else {
        fleet.now = fleet.now.max(due);
        if !C::SOLE && fleet.calendar.earliest() == due {
            let member = fleet.calendar.first() as usize;
            proceed(device, member, due);
        } else {
            let which = fleet.timers.first();
            device.timer(which);
        }
    }
    device.after_event();
}

/// Lets a member go on, at most to an instant.
#[inline(always)]
fn proceed<C: Composite>(device: &mut C, member: usize, bound: u64) {
    let fleet = device.fleet_mut();
    let next = fleet.members[member].device.proceed(bound, &mut fleet.arrived);
    fleet.plan(member, next);
    if let Some(first) = fleet.arrived.first() {
        fleet.now = fleet.now.max(first.time);
        if !C::SOLE && fleet.calendar.earliest() <= bound {
            return proceed_together(device, member, bound);
        }
        answers(device, member);
    }
}

/// Others are due at the very instant at which a member has answered: they go on before anything is handed to them, so
/// that what they do then does not depend on whether it has an event of its own (see `nand/flash/rows.rs`).
#[inline(never)]
fn proceed_together<C: Composite>(device: &mut C, first: usize, now: u64) {
    let fleet = device.fleet_mut();
    let (mut all, mut counts) = std::mem::take(&mut fleet.together);
    std::mem::swap(&mut all, &mut fleet.arrived);
    counts.push((first, all.len()));
    while fleet.calendar.earliest() <= now {
        let (member, before) = (fleet.calendar.first() as usize, all.len());
        let next = fleet.members[member].device.proceed(now, &mut all);
        fleet.plan(member, next);
        if all.len() > before {
            counts.push((member, all.len() - before));
        }
    }
    let mut rest = all.drain(..);
    for &(member, count) in &counts {
        device.fleet_mut().arrived.extend(rest.by_ref().take(count));
        answers(device, member);
    }
    drop(rest);
    counts.clear();
    device.fleet_mut().together = (all, counts);
}

/// The same for the only one, by itself: timers, which such a device has more of, do not pay for what answers take.
#[inline(never)]
fn proceed_sole<C: Composite>(device: &mut C, bound: u64) {
    proceed(device, 0, bound);
}

/// Hands on what a member has answered.
#[inline]
fn answers<C: Composite>(device: &mut C, member: usize) {
    if C::PASSES && device.fleet_mut().passed_on(member) {
        return;
    }
    let mut arrived = std::mem::take(&mut device.fleet_mut().arrived);
    for completion in &mut arrived {
        let id = IoId::from_bits(completion.tag);
        let fleet = device.fleet_mut();
        if C::PASSES && !fleet.is_own(completion.tag) {
            fleet.passed(member, 1);
            fleet.ready.push(std::mem::take(completion));
            continue;
        }
        if !fleet.ios.holds(id) || fleet.ios[id].member != member {
            // The member failed in the very instant in which it answered.
            continue;
        }
        fleet.members[member].returned(fleet.now, 1);
        fleet.check_digest(id, completion.digest);
        device.returned(id, completion);
    }
    arrived.clear();
    device.fleet_mut().arrived = arrived;
}
