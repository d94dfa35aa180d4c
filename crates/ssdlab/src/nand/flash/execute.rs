//! What a die does next: the state machine of dies and channels.

use super::{Finished, Flash, NONE, OpKind, Phase};
use crate::nand::schedule::Heads;

impl Flash {
    /// Whether the oldest read of die `d` goes before the operation `other`.
    #[inline]
    fn overtakes(&self, d: u32, other: u32) -> bool {
        let (read, op) = (self.dies[d as usize].reads.head, &self.ops[other as usize]);
        read != NONE
            && (self.policy)(Heads {
                read: self.ops[read as usize].order,
                other: op.order,
                overtaken: op.overtaken,
            })
    }

    /// Suspends an erase or program under way in favour of reads, where the flash can and the
    /// policy would.
    pub(super) fn suspend(&mut self, d: u32, now: u64) {
        let rule = self.timing.suspend;
        let die = &self.dies[d as usize];
        let may = match die.phase {
            Phase::Erase => rule.erase,
            Phase::Program => rule.program,
            _ => false,
        };
        if !may || !self.overtakes(d, die.current) {
            return;
        }
        let die = &mut self.dies[d as usize];
        if die.phase == Phase::Program && now < die.filled {
            // When the program begins is the time to look again.
            die.phase = Phase::Bus;
            self.calendar.set(d, die.filled);
            return;
        }
        let op = &mut self.ops[die.current as usize];
        let end = self.calendar.at(d);
        // Not worth it when the operation ends before the die would be ready for the read.
        if op.suspended >= rule.limit || end <= now + rule.enter {
            return;
        }
        op.suspended += 1;
        self.counters.suspensions += 1;
        die.worked(op.cause, now);
        die.since = now;
        die.remaining = end - now;
        die.suspended = die.current;
        die.suspended_phase = die.phase;
        die.current = NONE;
        die.phase = Phase::Suspending;
        self.calendar.set(d, now + rule.enter);
    }

    /// Gives an idle die its next operation.
    #[inline]
    pub(super) fn dispatch(&mut self, d: u32, now: u64) {
        let die = &mut self.dies[d as usize];
        if let Some(cause) = die.stuck.take() {
            die.own.add(cause, now - die.since);
        }
        let (stream, moving) = (die.stream.head, die.moving.head);
        let ready = stream != NONE && self.ops[stream as usize].awaits == 0;
        let order = |op: u32| self.ops[op as usize].order;
        // What is to be moved is read in its turn, or while a program waits for its data.
        let take_moving = moving != NONE && (!ready || order(moving) < order(stream));
        let other = match (die.suspended, take_moving) {
            (NONE, true) => moving,
            (NONE, false) if ready => stream,
            (suspended, _) => suspended,
        };
        if die.reads.head != NONE && (other == NONE || self.overtakes(d, other)) {
            if other != NONE {
                self.ops[other as usize].overtaken += 1;
            }
            let die = &mut self.dies[d as usize];
            let index = Self::pop(&mut die.reads, &mut self.ops);
            return self.start(d, index, now);
        }
        let die = &mut self.dies[d as usize];
        if die.suspended != NONE {
            die.current = die.suspended;
            die.suspended = NONE;
            die.phase = die.suspended_phase;
            die.since = now;
            self.calendar.set(d, now + self.timing.suspend.resume + die.remaining);
        } else if other != NONE {
            let queue = if take_moving { &mut die.moving } else { &mut die.stream };
            let index = Self::pop(queue, &mut self.ops);
            self.start(d, index, now);
        } else {
            die.current = NONE;
            die.phase = Phase::Idle;
            if stream != NONE {
                die.stuck = Some(self.ops[stream as usize].cause);
                die.since = now;
            }
            self.calendar.set(d, crate::units::NEVER);
        }
    }

    #[inline]
    fn start(&mut self, d: u32, index: u32, now: u64) {
        let own = self.dies[d as usize].own;
        let op = &mut self.ops[index as usize];
        // From here on `own_at_ready` holds the wait itself.
        if op.start == 0 {
            op.start = now;
            op.own_at_ready = own.since(op.own_at_ready);
        }
        let die = &mut self.dies[d as usize];
        die.current = index;
        die.since = now;
        match op.kind {
            OpKind::Read | OpKind::Copy => {
                die.phase = Phase::Sense;
                let time = if op.slc { self.timing.slc_read } else { self.timing.read };
                self.calendar.set(d, now + time);
            }
            OpKind::Program => self.transfer(d, now),
            OpKind::Erase => {
                die.phase = Phase::Erase;
                self.calendar.set(d, now + self.timing.erase);
            }
        }
    }

    /// Books the transfer of what die `d` reads or programs, and with it the program.
    #[inline]
    fn transfer(&mut self, d: u32, now: u64) {
        let die = &mut self.dies[d as usize];
        let op = &mut self.ops[die.current as usize];
        let time = u64::from(op.units) * self.timing.transfer;
        let start = self.channels[die.channel as usize].book(now, time);
        op.bus_wait = op.bus_wait.saturating_add((start - now) as u32);
        let end = start + time;
        // Reads that wait may suspend a program as soon as it has begun.
        let suspends = self.timing.suspend.program && die.reads.head != NONE;
        if op.kind == OpKind::Read || suspends {
            die.phase = Phase::Bus;
            self.calendar.set(d, end);
            return;
        }
        die.phase = Phase::Program;
        die.filled = end;
        let time = if op.slc { self.timing.slc_program } else { self.timing.program };
        self.calendar.set(d, end + time);
    }

    /// Handles the event of die `d` at `now`; answers the operation that ended, if one did.
    #[inline]
    pub fn step(&mut self, d: u32, now: u64) -> Option<Finished> {
        let die = &mut self.dies[d as usize];
        match die.phase {
            Phase::Sense => {
                self.counters.reads += 1;
                self.counters.reads_slc += u64::from(self.ops[die.current as usize].slc);
                self.transfer(d, now);
                None
            }
            Phase::Bus => {
                let op = &self.ops[die.current as usize];
                if op.kind == OpKind::Read {
                    self.counters.units_read += u64::from(op.units);
                    return Some(self.finish(d, now));
                }
                die.phase = Phase::Program;
                let time = if op.slc { self.timing.slc_program } else { self.timing.program };
                die.filled = now;
                self.calendar.set(d, now + time);
                self.suspend(d, now);
                None
            }
            Phase::Program => {
                self.counters.programs += 1;
                let op = &mut self.ops[die.current as usize];
                self.counters.programs_slc += u64::from(op.slc);
                if op.kind == OpKind::Program {
                    self.counters.units_programmed += u64::from(self.units_per_program);
                    return Some(self.finish(d, now));
                }
                self.counters.units_programmed += 1;
                self.counters.units_read += 1;
                op.repeat -= 1;
                if op.repeat == 0 {
                    return Some(self.finish(d, now));
                }
                self.next_copy(d, now);
                None
            }
            Phase::Erase => {
                self.counters.erases += 1;
                Some(self.finish(d, now))
            }
            Phase::Suspending => {
                self.dispatch(d, now);
                None
            }
            Phase::Idle => unreachable!("no event is planned in this phase"),
        }
    }

    /// Between two copies a waiting read may come in; otherwise the next copy begins.
    #[inline]
    fn next_copy(&mut self, d: u32, now: u64) {
        let die = &mut self.dies[d as usize];
        if die.reads.head == NONE {
            die.phase = Phase::Sense;
            self.calendar.set(d, now + self.timing.read);
            return;
        }
        let index = die.current;
        let op = &mut self.ops[index as usize];
        die.worked(op.cause, now);
        // Each copy may be overtaken as often as a program.
        op.overtaken = 0;
        op.next = die.stream.head;
        if die.stream.head == NONE {
            die.stream.tail = index;
        }
        die.stream.head = index;
        die.current = NONE;
        self.dispatch(d, now);
    }

    #[inline]
    fn finish(&mut self, d: u32, now: u64) -> Finished {
        let die = &mut self.dies[d as usize];
        let index = die.current;
        let op = &mut self.ops[index as usize];
        die.worked(op.cause, now);
        die.current = NONE;
        let finished = Finished {
            kind: op.kind,
            owner: op.owner,
            op: index,
            first: op.first,
            units: op.units,
            host_units: op.host_units,
            epoch: op.epoch,
            ready: op.ready,
            collection_wait: op.own_at_ready.collection(),
            map_wait: op.own_at_ready.map(),
            fold_wait: op.own_at_ready.fold(),
            parity_wait: op.own_at_ready.parity(),
            start: op.start,
            bus_wait: u64::from(op.bus_wait),
            bus: u64::from(op.units) * self.timing.transfer,
            fed: op.ready - op.queued,
            map_fed: op.map_fed,
        };
        (op.next, op.order) = (self.free, 0);
        self.free = index;
        self.active -= 1;
        if op.feeds[0] != NONE {
            let read = *op;
            self.feed_all(&read, now);
        }
        self.dispatch(d, now);
        finished
    }
}
