//! Copies that a die makes in a row, with one event for all of them.
//!
//! While no read waits, what happens between two copies concerns nobody but the die and its channel. So a row has one
//! event, the earliest instant at which it can be over. Its transfers are booked and its copies counted when somebody
//! else asks for the channel, or asks for the die: in the order in which they take place, at the instants at which they
//! do. Cost: constant for a copy.

use super::{Channel, Flash, Phase};
use crate::persist::persistent;

/// A die that copies in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    /// When the next copy has been sensed.
    sensed: u64,
    die: u32,
    /// Copies that are not programmed yet.
    left: u32,
    /// Time of a transfer, and of a whole copy.
    transfer: u64,
    copy: u64,
    /// Time that transfers have waited for the channel.
    waited: u32,
}

/// The rows on a channel, in a ring: that comes first of which the next copy is sensed first.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    ring: Vec<Row>,
    first: usize,
}

persistent!(Row { state { sensed, die, left, transfer, copy, waited } });
persistent!(Rows { state { ring, first } });

impl Row {
    /// Its order among what happens.
    #[inline]
    fn order(&self) -> (u64, u32) {
        (self.sensed, self.die)
    }

    /// When the last transfer that was booked is over.
    pub fn filled(&self) -> u64 {
        self.sensed - (self.copy - self.transfer)
    }

    /// A copy has been programmed, and the next one sensed, which is transferred.
    #[inline]
    fn step(&mut self, channel: &mut Channel) {
        let start = channel.append(self.sensed, self.transfer);
        self.waited = self.waited.saturating_add((start - self.sensed) as u32);
        self.left -= 1;
        self.sensed = start + self.copy;
    }
}

impl Rows {
    /// The row of which a copy is sensed first.
    #[inline]
    fn first(&mut self) -> Option<&mut Row> {
        self.ring.get_mut(self.first)
    }

    /// The first row comes where it belongs now: last, unless times differ.
    #[inline]
    fn rotate(&mut self) {
        let (mut at, last) = (self.first, self.ring.len() - 1);
        self.first = if at == last { 0 } else { at + 1 };
        while at != self.first {
            let before = if at == 0 { last } else { at - 1 };
            if self.ring[before].order() <= self.ring[at].order() {
                break;
            }
            self.ring.swap(before, at);
            at = before;
        }
    }

    /// Copies until a row has transferred its last copy, which is the first one then, and answers whether one has, or
    /// else until then; `last` is the last instant at which one was sensed.
    #[inline]
    fn copy_until(&mut self, channel: &mut Channel, until: (u64, u32), last: &mut u64) -> bool {
        while let Some(row) = self.first()
            && row.order() < until
        {
            *last = row.sensed;
            row.step(channel);
            if row.left == 1 {
                return true;
            }
            self.rotate();
        }
        false
    }

    /// Puts a row where it belongs.
    fn insert(&mut self, row: Row) {
        self.ring.rotate_left(self.first);
        self.first = 0;
        self.ring.insert(self.ring.partition_point(|other| other.order() < row.order()), row);
    }

    /// Where the row of a die is, which has one.
    fn place_of(&self, d: u32) -> usize {
        self.ring.iter().position(|row| row.die == d).expect("a die that copies has a row")
    }

    /// The row of a die, which has one.
    fn of(&self, d: u32) -> &Row {
        &self.ring[self.place_of(d)]
    }

    /// Takes the row of a die out.
    fn take(&mut self, d: u32) -> Row {
        self.ring.rotate_left(self.first);
        self.first = 0;
        let at = self.place_of(d);
        self.ring.remove(at)
    }

    /// Nothing is copied any more.
    pub fn clear(&mut self) {
        *self = Rows::default();
    }
}

impl Flash {
    /// Die `d`, which has just booked the transfer of a copy that is programmed until `over`, goes on in a row.
    pub(super) fn begin_row(&mut self, d: u32, over: u64) {
        let die = &mut self.dies[d as usize];
        die.phase = Phase::Copying;
        let op = &self.ops[die.current as usize];
        let transfer = u64::from(op.units) * self.timing.transfer;
        let row = Row {
            sensed: over + op.sensing,
            die: d,
            left: op.repeat,
            transfer,
            copy: transfer + op.working + op.sensing,
            waited: 0,
        };
        self.rows[usize::from(die.channel)].insert(row);
        self.plan_row(&row);
    }

    /// Plans the earliest end of a row.
    fn plan_row(&mut self, row: &Row) {
        let sensing = self.ops[self.dies[row.die as usize].current as usize].sensing;
        self.plan(row.die, row.sensed - sensing + u64::from(row.left - 1) * row.copy);
    }

    /// The row of die `d`, if it copies in one.
    pub(super) fn row_of(&self, d: u32) -> Option<&Row> {
        let die = &self.dies[d as usize];
        (die.phase == Phase::Copying).then(|| self.rows[usize::from(die.channel)].of(d))
    }

    /// The transfer that the row of die `d` has booked is over so much later.
    pub(super) fn put_off_row(&mut self, d: u32, time: u64) {
        let rows = &mut self.rows[usize::from(self.dies[d as usize].channel)];
        let mut row = rows.take(d);
        row.sensed += time;
        rows.insert(row);
    }

    /// What the rows of a channel have come to when something else happens at `now`; answers the last instant at which
    /// anything did. Of events at the same time that of the lower slot happens first.
    #[inline(always)]
    pub(super) fn catch_up(&mut self, channel: usize, now: u64) -> u64 {
        match self.rows[channel].first() {
            Some(row) if row.sensed <= now => self.go_on_in_rows(channel, now),
            _ => 0,
        }
    }

    fn go_on_in_rows(&mut self, channel: usize, now: u64) -> u64 {
        let (until, mut last) = ((now, self.acting), 0);
        while self.rows[channel].copy_until(&mut self.channels[channel], until, &mut last) {
            self.end_row(channel);
        }
        last
    }

    /// The last copy of the first row is transferred.
    fn end_row(&mut self, channel: usize) {
        let rows = &mut self.rows[channel];
        let row = rows.ring[rows.first];
        rows.take(row.die);
        self.leave_row(&row);
        let die = &mut self.dies[row.die as usize];
        let op = &self.ops[die.current as usize];
        let over = row.sensed - op.sensing;
        die.phase = Phase::Program;
        die.filled = over - op.working;
        if self.calendar.at(row.die) != over {
            self.plan(row.die, over);
        }
    }

    /// Counts what a row has come to, which is none any more.
    fn leave_row(&mut self, row: &Row) {
        let op = &mut self.ops[self.dies[row.die as usize].current as usize];
        op.bus_wait = op.bus_wait.saturating_add(row.waited);
        let made = op.repeat - row.left;
        self.count_senses(row.die, made);
        self.copied(row.die, made);
    }

    /// The end of a row was planned for `now`; whether it is over, or goes on because it has waited for the channel.
    pub(super) fn row_is_over(&mut self, d: u32, now: u64) -> bool {
        let channel = usize::from(self.dies[d as usize].channel);
        self.catch_up(channel, now);
        if self.dies[d as usize].phase != Phase::Copying {
            return self.calendar.at(d) == now;
        }
        let row = *self.rows[channel].of(d);
        self.plan_row(&row);
        false
    }

    /// Ends the row of die `d`, if it makes one: it has programmed a copy by now, or not yet. Answers the last instant
    /// at which anything has happened in it.
    pub(super) fn part_copies(&mut self, d: u32, now: u64) -> u64 {
        let channel = usize::from(self.dies[d as usize].channel);
        if self.dies[d as usize].phase != Phase::Copying {
            return 0;
        }
        let last = self.catch_up(channel, now);
        if self.dies[d as usize].phase != Phase::Copying {
            return last;
        }
        let row = self.rows[channel].take(d);
        self.leave_row(&row);
        let die = &mut self.dies[d as usize];
        let op = &self.ops[die.current as usize];
        let over = row.sensed - op.sensing;
        die.filled = over - op.working;
        if (over, d) < (now, self.acting) {
            die.phase = Phase::Sense;
            self.copied(d, 1);
            self.plan(d, row.sensed);
            return last.max(over);
        }
        die.phase = Phase::Program;
        self.plan(d, over);
        last
    }

    /// All that is over by `now` is counted; answers when the last of what had not been was.
    pub fn take_stock(&mut self, now: u64) -> u64 {
        self.acting = super::NONE;
        (0..self.dies()).fold(0, |last, d| last.max(self.part_copies(d, now)))
    }
}
