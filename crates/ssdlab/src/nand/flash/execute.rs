//! What a die does next: the state machine of dies and channels.

use super::{Die, Finished, Flash, FlashOp, NONE, OpKind, OwnWork, Phase};
use crate::nand::schedule::Heads;

impl Die {
    /// What the die does next but for reads, and whether that is a read of what is to be moved.
    #[inline]
    pub(super) fn next(&self, ops: &[FlashOp]) -> (u32, bool) {
        let (stream, moving) = (self.stream.head, self.moving.head);
        let ready = stream != NONE && ops[stream as usize].awaits == 0;
        let order = |op: u32| ops[op as usize].order;
        // What is to be moved is read in its turn, or while a program waits for its data.
        let take_moving = moving != NONE && (!ready || order(moving) < order(stream));
        let other = match (self.suspended, take_moving) {
            (NONE, true) => moving,
            (NONE, false) if ready => stream,
            (suspended, _) => suspended,
        };
        (other, take_moving)
    }

    /// Begins an operation, or goes on with it: what it waited for begins as what the die had done when it was ready, with
    /// its planes or by itself.
    #[inline(always)]
    fn begin(
        &mut self,
        index: u32,
        op: &mut FlashOp,
        waited: &mut OwnWork,
        with_planes: Option<OwnWork>,
        now: u64,
    ) {
        // From here on `own_at_ready` holds the wait itself.
        if op.start == 0 {
            op.start = now;
            *waited = with_planes.unwrap_or(self.own).since(*waited);
        }
        (self.current, self.cause) = (index, op.cause);
        self.since = now;
    }
}

impl Flash {
    /// Whether the read `read` goes before the operation `other`.
    #[inline]
    pub(super) fn overtakes(&self, read: u32, other: u32) -> bool {
        let op = &self.ops[other as usize];
        (self.policy)(Heads {
            read: self.ops[read as usize].order,
            other: op.order,
            overtaken: op.overtaken,
        })
    }

    /// Plans when what a die does, or what takes all of it, is over.
    #[inline]
    pub(super) fn plan(&mut self, d: u32, at: u64) {
        match self.beside.get_mut(d as usize) {
            Some(beside) => beside.event = at,
            None => self.calendar.set(d, at),
        }
    }

    /// When that is.
    pub(super) fn planned(&self, d: u32) -> u64 {
        self.beside.get(d as usize).map_or_else(|| self.calendar.at(d), |beside| beside.event)
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
        let read = self.oldest_read(d);
        if !may || read == NONE || !self.overtakes(read, die.current) {
            return;
        }
        let end = self.planned(d);
        let die = &mut self.dies[d as usize];
        if die.phase == Phase::Program && now < die.filled {
            // When the program begins is the time to look again.
            die.phase = Phase::Bus;
            let filled = die.filled;
            return self.plan(d, filled);
        }
        let op = &mut self.ops[die.current as usize];
        // Not worth it when the operation ends before the die would be ready for the read.
        if op.suspended >= rule.limit || end <= now + rule.enter {
            return;
        }
        op.suspended += 1;
        self.counters.suspensions += 1;
        die.worked(now);
        die.since = now;
        die.remaining = end - now;
        die.suspended = die.current;
        die.suspended_phase = die.phase;
        die.current = NONE;
        die.phase = Phase::Suspending;
        self.plan(d, now + rule.enter);
    }

    /// Gives an idle die its next operation.
    #[inline(never)]
    pub(super) fn dispatch(&mut self, d: u32, now: u64) {
        let die = &mut self.dies[d as usize];
        if let Some(cause) = die.stuck {
            die.own.add(cause, now - die.since);
            die.stuck = None;
        }
        self.dispatch_next(d, now);
    }

    /// The same where it has not been stuck.
    #[inline(always)]
    fn dispatch_next(&mut self, d: u32, now: u64) {
        if !self.beside.is_empty() {
            return self.dispatch_planes(d, now);
        }
        let die = &mut self.dies[d as usize];
        // Most often there is nothing but the next operation of the stream.
        let alone = die.suspended & die.moving.head & die.reads.head == NONE;
        if alone && self.ops.get(die.stream.head as usize).is_some_and(|next| next.awaits == 0) {
            let index = Self::pop(&mut die.stream, &mut self.ops, &self.own_at_ready);
            return self.start(d, index, now);
        }
        let (other, moving) = die.next(&self.ops);
        let read = die.reads.head;
        if read != NONE && (other == NONE || self.overtakes(read, other)) {
            if other != NONE {
                self.ops[other as usize].overtaken += 1;
            }
            let die = &mut self.dies[d as usize];
            let index = Self::pop(&mut die.reads, &mut self.ops, &self.own_at_ready);
            return self.start(d, index, now);
        }
        self.resume_or_start(d, other, moving, now);
    }

    /// Resumes what was suspended, or starts what [`Die::next`] has answered.
    #[inline(always)]
    pub(super) fn resume_or_start(&mut self, d: u32, other: u32, take_moving: bool, now: u64) {
        let die = &mut self.dies[d as usize];
        if die.suspended != NONE {
            die.current = die.suspended;
            die.cause = self.ops[die.current as usize].cause;
            die.suspended = NONE;
            die.phase = die.suspended_phase;
            die.since = now;
            let end = now + self.timing.suspend.resume + die.remaining;
            if !self.beside.is_empty() {
                self.overwrite_registers(d);
            }
            self.plan(d, end);
        } else if other != NONE {
            let queue = if take_moving { &mut die.moving } else { &mut die.stream };
            let index = Self::pop(queue, &mut self.ops, &self.own_at_ready);
            self.start(d, index, now);
        } else {
            let stream = die.stream.head;
            die.current = NONE;
            die.phase = Phase::Idle;
            if stream != NONE {
                die.stuck = Some(self.ops[stream as usize].cause);
                die.since = now;
            }
            self.plan(d, crate::units::NEVER);
        }
    }

    /// Takes the planes of a die, if they read by themselves; answers what it has done with them then.
    #[inline(always)]
    fn with_planes(&mut self, d: u32, now: u64) -> Option<OwnWork> {
        if self.beside.is_empty() { None } else { Some(self.take_planes(d, now)) }
    }

    /// Gives a die to an operation.
    #[inline(always)]
    pub(super) fn begin(&mut self, d: u32, index: u32, now: u64) -> (&mut Die, &mut FlashOp) {
        let with_planes = self.with_planes(d, now);
        let (die, op) = (&mut self.dies[d as usize], &mut self.ops[index as usize]);
        die.begin(index, op, &mut self.own_at_ready[index as usize], with_planes, now);
        (die, op)
    }

    #[inline(always)]
    pub(super) fn start(&mut self, d: u32, index: u32, now: u64) {
        if self.ops[index as usize].kind == OpKind::Program {
            return self.fill_and_program(d, index, now);
        }
        let (die, op) = self.begin(d, index, now);
        let end = if op.kind == OpKind::Erase {
            die.phase = Phase::Erase;
            now + op.working
        } else {
            die.phase = Phase::Sense;
            let (end, fed) = (now + op.sensing, op.feeds[0]);
            Self::expect(&self.ops, &self.own_at_ready, fed);
            end
        };
        self.plan(d, end);
    }

    /// Begins the program `index`: books its transfer, and with it the program.
    #[inline(always)]
    fn fill_and_program(&mut self, d: u32, index: u32, now: u64) {
        // Reads that wait may suspend a program as soon as it has begun.
        let stops = self.timing.suspend.program && self.oldest_read(d) != NONE;
        let c = self.channel_of(d);
        self.catch_up(c, now);
        let with_planes = self.with_planes(d, now);
        let (die, op) = (&mut self.dies[d as usize], &mut self.ops[index as usize]);
        die.begin(index, op, &mut self.own_at_ready[index as usize], with_planes, now);
        let time = u64::from(op.units) * self.timing.transfer;
        let filled = self.channels[c].append_op(op, now, time);
        die.filled = filled;
        let apart = stops || self.registers.cache;
        die.phase = if apart { Phase::Bus } else { Phase::Program };
        let end = if apart { filled } else { filled + op.working };
        self.plan(d, end);
    }

    /// Books the transfer of what die `d` has sensed, and with it the program of a copy.
    #[inline]
    fn transfer(&mut self, d: u32, now: u64) {
        let index = self.dies[d as usize].current;
        let FlashOp { kind, working, repeat, .. } = self.ops[index as usize];
        let is_read = kind == OpKind::Read;
        if is_read && !self.beside.is_empty() {
            return self.send_of_die(d, now);
        }
        let end = self.book(index, self.channel_of(d), now);
        let over = end + working;
        // Reads that wait may suspend a program as soon as it has begun, or come in after a copy.
        let waits = self.oldest_read(d) != NONE;
        let die = &mut self.dies[d as usize];
        die.filled = end;
        if is_read || self.timing.suspend.program && waits || self.registers.cache {
            die.phase = Phase::Bus;
            return self.plan(d, end);
        }
        let copies_on = repeat > 1 && !waits && over > now && self.beside.is_empty();
        die.phase = Phase::Program;
        if copies_on {
            return self.begin_row(d, over);
        }
        self.plan(d, over);
    }

    /// The data of a program is there.
    pub(super) fn program_filled(&mut self, d: u32, now: u64) {
        let die = &mut self.dies[d as usize];
        die.phase = Phase::Program;
        die.filled = now;
        let end = now + self.ops[die.current as usize].working;
        self.plan(d, end);
        self.suspend(d, now);
    }

    /// Handles the event of die `d` at `now`; answers whether an operation ended, which one goes to `ended`: it is
    /// large, and is not moved on.
    #[inline]
    pub fn step(&mut self, d: u32, now: u64, ended: &mut Finished) -> bool {
        if self.beside.is_empty() {
            self.step_die(d, now, ended)
        } else {
            self.step_beside(d, now, ended)
        }
    }

    /// The event of what a die does, or of what takes all of it.
    #[inline(always)]
    pub(super) fn step_die(&mut self, d: u32, now: u64, ended: &mut Finished) -> bool {
        let over = match self.dies[d as usize].phase {
            Phase::Sense => {
                self.sense_is_over(d, now);
                false
            }
            Phase::Bus => self.transfer_is_over(d, now),
            Phase::Program => self.programmed(d, now),
            Phase::Copying => self.row_is_over(d, now) && self.programmed(d, now),
            Phase::Erase => {
                self.counters.erases += 1;
                true
            }
            Phase::Suspending => {
                self.dispatch(d, now);
                false
            }
            Phase::Idle | Phase::Planes => unreachable!("no event is planned in this phase"),
        };
        if over {
            self.finish(d, now, ended);
        }
        over
    }

    /// What die `d` reads has been sensed.
    #[inline]
    fn sense_is_over(&mut self, d: u32, now: u64) {
        if let Some(end) = self.sense_again(self.dies[d as usize].current, now) {
            return self.plan(d, end);
        }
        self.count_senses(d, 1);
        self.transfer(d, now);
    }

    /// A transfer of die `d` is over; whether the operation is.
    #[inline]
    fn transfer_is_over(&mut self, d: u32, now: u64) -> bool {
        let op = &self.ops[self.dies[d as usize].current as usize];
        let read = op.kind == OpKind::Read;
        if !read {
            self.program_filled(d, now);
        } else if self.beside.is_empty() {
            self.counters.units_read += u64::from(op.units);
            return true;
        } else {
            self.release_die(d, now);
        }
        false
    }

    /// What die `d` programs is over; whether the operation is.
    #[inline(always)]
    fn programmed(&mut self, d: u32, now: u64) -> bool {
        let op = &self.ops[self.dies[d as usize].current as usize];
        if op.kind == OpKind::Program {
            self.counters.programs += 1;
            self.counters.programs_slc += u64::from(op.slc);
            self.counters.units_programmed += u64::from(self.units_per_program);
            return true;
        }
        let over = self.copied(d, 1) == 0;
        if !over {
            self.next_copy(d, now);
        }
        over
    }

    /// So many of the copies that die `d` makes are programmed; answers how many are left.
    #[inline]
    pub(super) fn copied(&mut self, d: u32, made: u32) -> u32 {
        let op = &mut self.ops[self.dies[d as usize].current as usize];
        op.repeat -= made;
        let made = u64::from(made);
        self.counters.programs += made;
        self.counters.programs_slc += if op.slc { made } else { 0 };
        self.counters.units_programmed += made;
        self.counters.units_read += made;
        op.repeat
    }

    /// When what the first sense of a read has not brought is sensed, if there is such.
    #[inline]
    pub(super) fn sense_again(&mut self, index: u32, now: u64) -> Option<u64> {
        if self.places { self.sense_retries(index, now) } else { None }
    }

    #[inline(never)]
    fn sense_retries(&mut self, index: u32, now: u64) -> Option<u64> {
        let op = &mut self.ops[index as usize];
        if op.kind != OpKind::Read || op.working == 0 {
            return None;
        }
        let time = std::mem::take(&mut op.working);
        let Some(free) = self.retrying.iter_mut().min() else { return Some(now + time) };
        *free = now.max(*free) + time;
        Some(*free)
    }

    /// Counts what die `d` has sensed so many times.
    #[inline]
    pub(super) fn count_senses(&mut self, d: u32, times: u32) {
        let op = &self.ops[self.dies[d as usize].current as usize];
        let senses = u64::from(op.senses) * u64::from(times);
        self.counters.reads += senses;
        self.counters.reads_slc += if op.slc { senses } else { 0 };
    }

    /// Between two copies a waiting read may come in; otherwise the next copy begins.
    #[inline]
    fn next_copy(&mut self, d: u32, now: u64) {
        let waits = self.oldest_read(d) != NONE;
        let die = &mut self.dies[d as usize];
        let index = die.current;
        if !waits {
            die.phase = Phase::Sense;
            let end = now + self.ops[index as usize].sensing;
            return self.plan(d, end);
        }
        let op = &mut self.ops[index as usize];
        die.worked(now);
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

    #[inline(always)]
    fn finish(&mut self, d: u32, now: u64, ended: &mut Finished) {
        let die = &mut self.dies[d as usize];
        let index = die.current;
        die.worked(now);
        die.current = NONE;
        self.conclude(index, now, ended);
        self.dispatch_next(d, now);
    }

    /// The operation `index` has ended: its place is free, and what awaits it goes on.
    #[inline(always)]
    pub(super) fn conclude(&mut self, index: u32, now: u64, ended: &mut Finished) {
        let hidden = self.asides.get(index as usize).map_or(0, |aside| aside.hidden);
        let op = &mut self.ops[index as usize];
        let waited = self.own_at_ready[index as usize];
        *ended = Finished {
            kind: op.kind,
            owner: op.owner,
            op: index,
            first: op.first,
            units: op.units,
            host_units: op.host_units,
            epoch: op.epoch,
            ready: op.ready,
            collection_wait: waited.collection(),
            map_wait: waited.map(),
            fold_wait: waited.fold(),
            parity_wait: waited.parity(),
            start: op.start,
            bus_wait: u64::from(op.bus_wait),
            bus: u64::from(op.units) * self.timing.transfer - u64::from(hidden),
            fed: op.ready - op.queued,
            map_fed: op.map_fed,
            fed_by: op.fed_by,
        };
        (op.next, op.order) = (NONE, 0);
        self.free.push(index);
        self.active -= 1;
        if op.feeds[0] != NONE {
            let read = *op;
            self.feed_all(&read, now);
        }
    }
}
