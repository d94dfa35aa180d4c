//! Dies whose planes read by themselves, or keep and send on what they have sensed.
//!
//! A host read has its plane from the beginning of sensing until its register is free: without a second
//! register, until the transfer is over. Planes read one at a time, or independently of each other. Whatever else a
//! die does takes all of it, and begins when no plane works. A die has one event in the calendar, the earliest of its
//! planes', its transfers' and its own. Cost: a look at the planes of the die for an event.

use super::cause::OwnWork;
use super::{Aside, Beside, Cause, Finished, Flash, FlashOp, NONE, Phase, Plane};
use crate::units::NEVER;
use std::ops::Range;

impl Flash {
    /// The planes of die `d`.
    #[inline]
    pub(super) fn planes_of(&self, d: u32) -> Range<usize> {
        let first = (d * self.registers.planes) as usize;
        first..first + self.registers.planes as usize
    }

    /// The plane of a read.
    #[inline]
    fn plane_of(&self, d: u32, read: u32) -> usize {
        self.planes_of(d).start + self.asides[read as usize].plane as usize
    }

    /// A read of a plane may begin from now on.
    #[inline(never)]
    pub(super) fn admit_plane_read(&mut self, d: u32, index: u32, now: u64) {
        let p = self.plane_of(d, index);
        let mut own = self.own_of_array(d, now).plus(self.planes[p].own);
        let plane = &self.planes[p];
        if plane.current != NONE {
            own.add(plane.cause, now - plane.since);
        }
        self.own_at_ready[index as usize] = own;
        if self.rides_along(index) {
            return;
        }
        Self::push(&mut self.planes[p].reads, &mut self.ops, index);
        self.arrival_beside(d, now, true);
    }

    /// Something may begin on die `d` that could not before.
    #[inline(never)]
    pub(super) fn arrival_beside(&mut self, d: u32, now: u64, read: bool) {
        let die = &self.dies[d as usize];
        if matches!(die.phase, Phase::Idle | Phase::Planes) {
            self.dispatch(d, now);
        } else if read && die.suspended == NONE {
            self.suspend(d, now);
        }
        self.plan_beside(d, now);
    }

    /// Plans the earliest event of die `d`, and loads what can be.
    pub(super) fn plan_beside(&mut self, d: u32, now: u64) {
        self.load_next(d, now);
        let beside = &self.beside[d as usize];
        let of_planes = || self.planes[self.planes_of(d)].iter().map(|plane| plane.until).min();
        let mut at = beside.event;
        if !self.takes_all(d) {
            at = of_planes().unwrap_or(NEVER);
        } else {
            debug_assert_eq!(of_planes(), Some(NEVER), "a plane works in a die that is taken");
        }
        if beside.sending.head != NONE {
            at = at.min(self.asides[beside.sending.head as usize].sent);
        }
        if self.calendar.at(d) != at {
            self.calendar.set(d, at);
        }
    }

    /// Whether something takes the whole die.
    #[inline]
    fn takes_all(&self, d: u32) -> bool {
        !matches!(self.dies[d as usize].phase, Phase::Idle | Phase::Planes)
    }

    /// Handles an event of die `d`.
    #[inline(never)]
    pub(super) fn step_beside(&mut self, d: u32, now: u64, ended: &mut Finished) -> bool {
        // What lets a register go comes before the end of its transfer.
        let done = if self.takes_all(d) && self.beside[d as usize].event <= now {
            self.step_die(d, now, ended)
        } else if let Some(p) = self.planes_of(d).find(|&p| self.planes[p].until <= now) {
            self.step_plane(d, p, now);
            false
        } else {
            let index =
                Self::pop(&mut self.beside[d as usize].sending, &mut self.ops, &self.own_at_ready);
            self.counters.units_read += u64::from(self.ops[index as usize].units);
            self.conclude(index, now, ended);
            true
        };
        self.plan_beside(d, now);
        done
    }

    /// Gives a die of which nothing takes all its next operations.
    #[inline(never)]
    pub(super) fn dispatch_planes(&mut self, d: u32, now: u64) {
        if self.beside[d as usize].loaded != NONE && self.dies[d as usize].suspended == NONE {
            return self.start_loaded(d, now);
        }
        let (mut plane, mut working) = self.next_plane(d);
        loop {
            let (other, moving) = self.dies[d as usize].next(&self.ops);
            let read = plane.map_or(NONE, |p| self.planes[p].reads.head);
            if read != NONE && (other == NONE || self.overtakes(read, other)) {
                if other != NONE {
                    self.ops[other as usize].overtaken += 1;
                }
                self.sense(d, self.plane_of(d, read), now);
                (plane, working) = self.next_plane(d);
                continue;
            }
            if working {
                self.dies[d as usize].phase = Phase::Planes;
            } else {
                self.resume_or_start(d, other, moving, now);
            }
            return;
        }
    }

    /// The plane that may begin with the oldest read, and whether any works.
    fn next_plane(&self, d: u32) -> (Option<usize>, bool) {
        let planes = self.planes_of(d);
        let working = planes.clone().any(|p| self.planes[p].current != NONE);
        if working && !self.registers.independent {
            return (None, true);
        }
        let may = |p: &usize| {
            let plane = &self.planes[*p];
            plane.current == NONE && plane.reads.head != NONE
        };
        let order = |p: &usize| self.ops[self.planes[*p].reads.head as usize].order;
        (planes.filter(may).min_by_key(order), working)
    }

    /// The oldest read that waits for die `d`.
    #[inline(always)]
    pub(super) fn oldest_read(&self, d: u32) -> u32 {
        if self.beside.is_empty() {
            return self.dies[d as usize].reads.head;
        }
        self.oldest_of_planes(d)
    }

    fn oldest_of_planes(&self, d: u32) -> u32 {
        let heads = self.planes[self.planes_of(d)].iter().map(|plane| plane.reads.head);
        let waiting = heads.filter(|&read| read != NONE);
        waiting.min_by_key(|&read| self.ops[read as usize].order).unwrap_or(NONE)
    }

    /// A plane begins with the oldest of its reads.
    fn sense(&mut self, d: u32, p: usize, now: u64) {
        self.count_planes(d, now);
        let plane = &mut self.planes[p];
        let index = Self::pop(&mut plane.reads, &mut self.ops, &self.own_at_ready);
        let op = &mut self.ops[index as usize];
        op.start = now;
        let at_ready = &mut self.own_at_ready[index as usize];
        *at_ready = self.dies[d as usize].own.plus(plane.own).since(*at_ready);
        let Aside { group, .. } = self.asides[index as usize];
        let held = self.registers.keep && group != NONE && group == plane.group;
        if held {
            (op.senses, op.sensing, op.working) = (0, 0, 0);
        }
        (plane.current, plane.cause, plane.sensing) = (index, op.cause, true);
        (plane.since, plane.until, plane.group) = (now, now + op.sensing, group);
    }

    /// A plane has sensed, or its register is free.
    fn step_plane(&mut self, d: u32, p: usize, now: u64) {
        let Plane { current: index, sensing, sent: before, .. } = self.planes[p];
        if sensing {
            if let Some(end) = self.sense_again(index, now) {
                self.planes[p].until = end;
                return;
            }
            let FlashOp { senses, slc, .. } = self.ops[index as usize];
            self.counters.reads += u64::from(senses);
            self.counters.reads_slc += if slc { u64::from(senses) } else { 0 };
            self.counters.register_hits += u64::from(senses == 0);
            self.sensed(index);
            let end = self.send(d, index, now);
            let end = self.send_riders(d, index, now, end);
            let free = self.register_free(now, before, end);
            let plane = &mut self.planes[p];
            (plane.sensing, plane.sent, plane.until) = (false, end, free);
            if free > now {
                return;
            }
        }
        self.count_planes(d, now);
        let plane = &mut self.planes[p];
        plane.own.add(plane.cause, now - plane.since);
        (plane.current, plane.until) = (NONE, NEVER);
        self.dispatch(d, now);
    }

    /// On whose behalf planes of die `d` work, the drive's own first.
    fn cause_of_planes(&self, d: u32) -> Option<Cause> {
        if self.takes_all(d) {
            return None;
        }
        let planes = self.planes[self.planes_of(d)].iter().filter(|plane| plane.current != NONE);
        planes.map(|plane| plane.cause).max_by_key(|cause| cause.is_own())
    }

    /// Counts the work of the planes of die `d` up to now: at the same time once.
    fn count_planes(&mut self, d: u32, now: u64) {
        let cause = self.cause_of_planes(d);
        let beside = &mut self.beside[d as usize];
        let time = now - std::mem::replace(&mut beside.since, now);
        if let Some(cause) = cause {
            self.dies[d as usize].busy[cause as usize] += time;
            beside.own.add(cause, time);
        }
    }

    /// What planes of die `d` have done on the drive's own behalf.
    #[inline(never)]
    pub(super) fn own_of_planes(&self, d: u32, now: u64) -> OwnWork {
        let Beside { mut own, since, .. } = self.beside[d as usize];
        if let Some(cause) = self.cause_of_planes(d) {
            own.add(cause, now - since);
        }
        own
    }

    /// Power goes: all registers are empty.
    pub(super) fn planes_lose_power(&mut self, now: u64) {
        for d in 0..self.beside.len() as u32 {
            self.count_planes(d, now);
            let Beside { since, own, .. } = self.beside[d as usize];
            self.beside[d as usize] = Beside { since, own, ..Beside::IDLE };
            let planes = self.planes_of(d);
            self.planes[planes]
                .iter_mut()
                .for_each(|plane| *plane = Plane { own: plane.own, ..Plane::IDLE });
        }
        self.riders.clear();
    }
}
