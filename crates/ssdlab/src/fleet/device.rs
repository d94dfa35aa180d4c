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
            step(self, limit);
        }
    }

    fn take_stock(&mut self, now: u64) {
        let alive = self.fleet_mut().members.iter_mut().filter(|member| !member.dead);
        alive.for_each(|member| member.take_stock(now));
    }

    fn settle(&mut self, now: u64) -> u64 {
        let fleet = self.fleet_mut();
        debug_assert_eq!(fleet.in_flight, 0, "something is in flight");
        fleet.plan_members();
        fleet.now = fleet.now.max(now);
        fleet.settling = true;
        self.begin_settling();
        while self.is_working() || self.fleet().power.is_off() {
            step(self, NEVER - 1);
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

/// Lets the next event happen.
#[inline]
fn step<C: Composite>(device: &mut C, limit: u64) {
    let watched = C::SOLE && device.watches_below();
    let fleet = device.fleet_mut();
    let (time, slot) = (fleet.calendar.earliest(), fleet.calendar.first());
    let sole_first = C::SOLE && fleet.sole_due < time;
    if fleet.power.back <= if sole_first { fleet.sole_due } else { time } {
        fleet.now = fleet.now.max(fleet.power.back);
        fleet.power.back = NEVER;
        device.start_up();
        return device.after_event();
    }
    if !sole_first && slot >= fleet.first_timer {
        let which = slot - fleet.first_timer;
        fleet.now = fleet.now.max(time);
        device.timer(which);
    } else {
        let member = if C::SOLE { 0 } else { slot as usize };
        // The only member may go on by itself until something of the device's own is due.
        let bound = match (C::SOLE, fleet.ready.is_empty()) {
            (true, _) if watched => fleet.sole_due,
            (true, true) => time.min(fleet.power.back).min(limit),
            (true, false) => fleet.now,
            (false, _) => time,
        };
        if !C::SOLE || watched {
            fleet.now = fleet.now.max(if C::SOLE { fleet.sole_due } else { time });
        }
        let next = fleet.members[member].device.proceed(bound, &mut fleet.arrived);
        fleet.plan(member, next);
        if let Some(first) = fleet.arrived.first() {
            fleet.now = fleet.now.max(first.time);
            answers(device, member);
        }
    }
    device.after_event();
}

/// Hands on what a member has answered.
#[inline]
fn answers<C: Composite>(device: &mut C, member: usize) {
    let mut arrived = std::mem::take(&mut device.fleet_mut().arrived);
    for completion in &arrived {
        let id = IoId::of(completion.tag as u32);
        let fleet = device.fleet_mut();
        if !fleet.ios.holds(id) || fleet.ios[id].member != member {
            // The member failed in the very instant in which it answered.
            continue;
        }
        fleet.members[member].returned(fleet.now);
        fleet.check_digest(id, completion.digest);
        device.returned(id, completion);
    }
    arrived.clear();
    device.fleet_mut().arrived = arrived;
}
