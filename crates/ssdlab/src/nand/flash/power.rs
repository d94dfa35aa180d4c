//! Loss of power: what the dies have not done.

use super::{Channel, EMPTY, Flash, FlashOp, IDLE, NONE, OpKind, Rows};
use crate::units::NEVER;

/// An operation that was queued or under way.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// Its number.
    pub op: u32,
    /// What it was.
    pub kind: OpKind,
    /// Where.
    pub die: u32,
    /// First unit of a program, superblock of an erase.
    pub first: u32,
    /// Units of a program.
    pub units: u32,
    /// Copies that were still to be made.
    pub repeat: u32,
    /// Into a block in SLC mode.
    pub slc: bool,
}

/// Operations that the dies share.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Sense operations, each with the transfer of a program unit.
    pub reads: u64,
    /// Programs, likewise.
    pub programs: u64,
    /// Erases.
    pub erases: u64,
}

impl Flash {
    /// Forgets all that is queued and under way; programs that were announced and not queued stay so. Answers
    /// what was to be done, in no order, without reads.
    pub fn power_cut(&mut self, now: u64) -> Vec<Dropped> {
        self.take_stock(now);
        let mut live = vec![true; self.ops.len()];
        self.free.iter().for_each(|&free| live[free as usize] = false);
        self.planes_lose_power(now);
        for d in 0..self.dies.len() {
            let die = &mut self.dies[d];
            if die.current != NONE {
                die.worked(now);
            }
            *die = super::Die { busy: die.busy, own: die.own, channel: die.channel, ..IDLE };
            self.calendar.set(d as u32, NEVER);
        }
        self.channels.iter_mut().for_each(|channel| channel.power_cut(now));
        self.rows.iter_mut().for_each(Rows::clear);
        self.retrying.fill(0);
        (self.feeds, self.free_feed) = (Vec::new(), NONE);
        let mut dropped = Vec::new();
        for index in (0..self.ops.len() as u32).filter(|&index| live[index as usize]) {
            let op = self.ops[index as usize];
            if op.kind == OpKind::Program && !op.in_stream && !op.discarded {
                self.ops[index as usize].awaits = 0;
                continue;
            }
            let FlashOp { kind, first, units, repeat, slc, .. } = op;
            if kind != OpKind::Read && !op.discarded {
                let die = u32::from(op.die);
                dropped.push(Dropped { op: index, kind, die, first, units, repeat, slc });
            }
            self.active -= u32::from(!op.discarded);
            let op = &mut self.ops[index as usize];
            (op.next, op.order) = (NONE, 0);
            self.free.push(index);
        }
        debug_assert!(self.dies.iter().all(|die| die.stream.head == EMPTY.head));
        dropped
    }

    /// Time that so much work takes, spread evenly over the dies.
    pub fn time_of(&self, work: Work) -> u64 {
        let dies = self.dies.len() as u64;
        let transfer = u64::from(self.units_per_program) * self.timing.transfer;
        let per_channel = dies.div_ceil(self.channels.len() as u64);
        // Dies of a channel take turns on it.
        let reads = work.reads.div_ceil(dies) * (self.timing.read.mean() + per_channel * transfer);
        let programs =
            work.programs.div_ceil(dies) * (self.timing.program.mean() + per_channel * transfer);
        reads + programs + work.erases.div_ceil(dies) * self.timing.erase
    }
}

impl Channel {
    /// Transfers that were booked for later do not take place.
    fn power_cut(&mut self, now: u64) {
        self.booked -= self.free_at.saturating_sub(now);
        self.free_at = self.free_at.min(now);
        self.settled = self.settled.min(now);
    }
}
