//! Channels: whose transfer is next.
//!
//! Transfers follow one another without a gap. What a read of the host has sensed goes before what else waits for the
//! channel, as far as the policy of the dies lets it overtake: data of programs and copies, and what is read to be moved. Those
//! are one for a die, or two, so that a look at the dies of the channel finds them; their ends are put off. Cost: constant,
//! or for a read that finds the channel taken a look at its dies.

use super::rows::Row;
use super::{Flash, FlashOp, NONE, OpKind, Phase};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Channel {
    /// When all transfers asked for so far are over.
    pub free_at: u64,
    /// When those are that nothing overtakes: of reads of the host.
    pub settled: u64,
    /// Time of all transfers.
    pub booked: u64,
}

impl Channel {
    /// Puts a transfer of so long behind all others; answers when it begins.
    #[inline]
    pub fn append(&mut self, now: u64, time: u64) -> u64 {
        let start = self.free_at.max(now);
        self.free_at = start + time;
        self.booked += time;
        start
    }

    /// The same with that of an operation; answers when it is over.
    #[inline(always)]
    pub fn append_op(&mut self, op: &mut FlashOp, now: u64, time: u64) -> u64 {
        let start = self.append(now, time);
        op.waited(start - now);
        start + time
    }

    /// Time on the channel up to `now`: what is booked for later follows without a gap.
    pub fn busy(&self, now: u64) -> u64 {
        self.booked - self.free_at.saturating_sub(now)
    }
}

/// The transfer of an operation, which is not over.
#[derive(Clone, Copy)]
struct Transfer {
    op: u32,
    end: u64,
}

impl Flash {
    /// Books the transfer of the operation `index` on its channel; answers when it is over.
    #[inline(always)]
    pub(super) fn book(&mut self, index: u32, c: usize, now: u64) -> u64 {
        // What copies in a row have asked for comes before.
        self.catch_up(c, now);
        let (op, channel) = (&mut self.ops[index as usize], &mut self.channels[c]);
        let time = u64::from(op.units) * self.timing.transfer;
        if op.kind != OpKind::Read {
            return channel.append_op(op, now, time);
        }
        let first = !op.moves;
        let overtakes = channel.settled < channel.free_at;
        let mut start = channel.append(now, time);
        if first && start > now && overtakes {
            start = self.go_first(c, index, now, time);
        }
        // Of a die that goes on meanwhile the transfers are in the order of its registers.
        if first || !self.beside.is_empty() {
            self.channels[c].settled = start + time;
        }
        self.ops[index as usize].waited(start - now);
        start + time
    }

    /// When the transfer of a read begins on a channel that is taken; those that it overtakes are put off.
    fn go_first(&mut self, c: usize, read: u32, now: u64, time: u64) -> u64 {
        let mut start = self.channels[c].settled.max(now);
        let dies = (c as u32..self.dies()).step_by(self.channels.len());
        for d in dies.clone() {
            for Transfer { op, end } in self.waiting(d, now) {
                let its = &self.ops[op as usize];
                let begun = end - u64::from(its.units) * self.timing.transfer <= now;
                if begun || !self.overtakes(read, op) {
                    start = start.max(end);
                }
            }
        }
        for d in dies {
            for Transfer { op, end } in self.waiting(d, now) {
                if end > start {
                    self.put_off(d, op, now, time);
                }
            }
        }
        start
    }

    /// Transfers of die `d` that are not over and can be put off: of what it does, and of a program that is loaded.
    fn waiting(&self, d: u32, now: u64) -> impl Iterator<Item = Transfer> + use<> {
        let die = &self.dies[d as usize];
        let kind = match die.phase {
            Phase::Bus | Phase::Program | Phase::Copying => {
                Some(self.ops[die.current as usize].kind)
            }
            _ => None,
        };
        let can = kind.is_some_and(|kind| {
            kind != OpKind::Read || self.ops[die.current as usize].moves && self.beside.is_empty()
        });
        let end = self.row_of(d).map_or(die.filled, Row::filled);
        let own = (can && end > now).then_some(Transfer { op: die.current, end });
        let beside = self.beside.get(d as usize).filter(|b| b.loaded != NONE && b.filled > now);
        let loaded = beside.map(|beside| Transfer { op: beside.loaded, end: beside.filled });
        own.into_iter().chain(loaded)
    }

    /// The transfer of `op` is over so much later, and what follows it in its die.
    fn put_off(&mut self, d: u32, op: u32, now: u64, time: u64) {
        self.ops[op as usize].overtaken += 1;
        let die = &mut self.dies[d as usize];
        if die.current != op {
            self.beside[d as usize].filled += time;
            return;
        }
        die.filled += time;
        if die.phase == Phase::Copying {
            self.put_off_row(d, time);
        }
        self.ops[op as usize].waited(time);
        let at = self.planned(d) + time;
        self.plan(d, at);
        if !self.beside.is_empty() {
            self.plan_beside(d, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, Finished, Place, Program, Registers};
    use super::*;
    use crate::nand::geometry::Geometry;
    use crate::nand::schedule::Policy;
    use crate::nand::timing::{ReadRetries, Suspend, Times, Timing, Variation};

    const TRANSFER: u64 = 10_000;
    const PROGRAM: u64 = 700_000;

    /// When three programs of four units and a read of one unit end that begin at once, on dies of one channel.
    fn ends(policy: Policy, read: fn(&mut Flash)) -> [u64; 4] {
        let geometry = Geometry {
            channels: 1,
            ways: 4,
            planes: 1,
            pages: 64,
            pages_per_program: 1,
            units_per_page: 4,
            unit_bytes: 4096,
        };
        let timing = Timing {
            read: Times::alike(5_000),
            program: Times::alike(PROGRAM),
            slc_read: 0,
            slc_program: 0,
            erase: 0,
            transfer: TRANSFER,
            suspend: Suspend::default(),
            pages_per_program: 1,
            variation: Variation::default(),
            retries: ReadRetries::default(),
        };
        let none = Registers { planes: 1, independent: false, keep: false, cache: false };
        let mut flash = Flash::new(&geometry, timing, none, policy);
        for die in 0..3 {
            let (units, cause) = (4, Cause::HostWrite);
            let op = flash.open_program(0, die);
            let program = Program {
                first: 0,
                units,
                cause,
                owner: NONE,
                host_units: 4,
                epoch: NONE,
                slc: false,
                time: PROGRAM,
            };
            flash.close_program(0, op, program);
        }
        read(&mut flash);
        let (mut ends, mut ended) = ([0; 4], Finished::default());
        while flash.active() > 0 {
            let (now, die) = (flash.calendar.earliest(), flash.calendar.first());
            if flash.step(die, now, &mut ended) {
                ends[die as usize] = now;
            }
        }
        ends
    }

    fn of_host(flash: &mut Flash) {
        flash.read(0, 3, 1, Place::anywhere(false), NONE);
    }

    fn to_move(flash: &mut Flash) {
        flash.collect_read(0, 3, 1, Place::anywhere(false), Cause::Collection);
    }

    const WHOLE: u64 = 4 * TRANSFER;

    #[test]
    fn a_read_goes_before_data_that_waits_for_the_channel_and_puts_it_off() {
        let later = |n: u64| n * WHOLE + TRANSFER + PROGRAM;
        let expected = [WHOLE + PROGRAM, later(2), later(3), WHOLE + TRANSFER];
        assert_eq!(ends(|_| true, of_host), expected);
    }

    #[test]
    fn what_may_not_be_overtaken_and_what_is_read_to_be_moved_take_their_turns() {
        let expected = [1, 2, 3].map(|n: u64| n * WHOLE + PROGRAM);
        for found in [ends(|_| false, of_host), ends(|_| true, to_move)] {
            assert_eq!(found[..3], expected);
            assert_eq!(found[3], 3 * WHOLE + TRANSFER);
        }
    }
}
