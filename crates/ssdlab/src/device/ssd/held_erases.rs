//! Erases that wait until what replaces data of their superblock has been programmed.
//!
//! Almost none has to: what a program unit replaces is therefore not counted by superblock as it is queued and as it
//! ends, but looked for among the program units under way when a superblock is to be erased. Cost: constant for a program,
//! a look at what is under way for a superblock erased; but for programs of what moves within its die, which are many where
//! they have several units.

use super::engine::Engine;
use crate::ftl::{Layout, NOTHING, Placed};
use crate::nand::{Cause, Finished};
use crate::persist::persistent;
use crate::sim::{bits, ones};

/// A program unit that was closed, so many of which were by then; none of them: there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closed {
    sequence: u64,
    /// Its first unit.
    first: u32,
}

/// An erase that waits until what replaces data of its superblock has been programmed.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldErase {
    superblock: u32,
    /// Programs that it waits for, so many: a bit for each flash operation.
    programs: Vec<u64>,
    left: u32,
    /// All of them were closed before so many program units were.
    closed: u64,
    /// On whose behalf, and where.
    cause: Cause,
    dies: Vec<u32>,
    /// The erases of its dies, once they are queued: before what is written there next.
    ops: Vec<u32>,
}

/// Those that are held, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldErases {
    erases: Vec<HeldErase>,
    /// A bit for each flash operation that one of them waits for.
    awaited: Vec<u64>,
    /// Superblocks whose erases are not queued yet.
    unqueued: Vec<u32>,
}

persistent!(Closed { state { sequence, first } });
persistent!(HeldErase { state { superblock, programs, left, closed, cause, dies, ops } });
persistent!(HeldErases { state { erases, awaited, unqueued } });

impl HeldErases {
    /// There are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.erases.is_empty()
    }

    /// None any more.
    pub fn clear(&mut self) {
        *self = HeldErases::default();
    }

    /// One more, which waits for something.
    fn push(&mut self, erase: HeldErase) {
        self.awaited.resize(self.awaited.len().max(erase.programs.len()), 0);
        self.awaited.iter_mut().zip(&erase.programs).for_each(|(all, bits)| *all |= bits);
        self.unqueued.push(erase.superblock);
        self.erases.push(erase);
    }

    /// The units of a program are in flash; answers whether an erase has waited for it.
    #[inline]
    fn takes_note(&mut self, op: u32) -> bool {
        let (word, bit) = (op as usize >> 6, 1 << (op & 63));
        let Some(bits) = self.awaited.get_mut(word) else { return false };
        let awaited = *bits & bit != 0;
        *bits &= !bit;
        awaited
    }

    /// The erases of a superblock are queued now.
    fn queued(&mut self, superblock: u32) {
        self.unqueued.retain(|&other| other != superblock);
    }
}

impl Engine {
    /// Remembers the units of a program that is queued.
    #[inline(always)]
    pub(super) fn note(&mut self, op: u32, first: u32, placed: &[Placed]) {
        let op = op as usize;
        if op >= self.closed.len() {
            self.add_places(op + 1);
        }
        self.closed[op] = Closed { sequence: self.sequence, first };
        match placed {
            [unit] if self.units_per_program == 1 => self.placed[op] = *unit,
            _ => self.note_several(op, first, placed),
        }
    }

    /// By itself, since where there is one that is quick.
    #[inline(never)]
    fn note_several(&mut self, op: usize, first: u32, placed: &[Placed]) {
        let units = self.units_per_program as usize;
        let (filled, rest) = self.placed[op * units..][..units].split_at_mut(placed.len());
        filled.copy_from_slice(placed);
        rest.fill(NOTHING);
        let layout = if first >= self.table_first { &self.table } else { &self.data };
        if placed.iter().any(|unit| unit.may_hold(layout)) {
            self.holding[op >> 6] |= 1 << (op & 63);
        }
    }

    /// Makes room for what so many flash operations program.
    #[cold]
    fn add_places(&mut self, ops: usize) {
        self.closed.resize(ops, Closed::default());
        self.placed.resize(ops * self.units_per_program as usize, NOTHING);
        if self.units_per_program > 1 {
            self.holding.resize(ops.div_ceil(64), 0);
        }
    }

    /// A program has ended: what it replaced need not be kept.
    #[inline]
    pub fn replaced(&mut self, f: &Finished) {
        if !self.held.is_empty() && self.held.takes_note(f.op) {
            self.replaced_in_held(f.op);
        }
        self.closed[f.op as usize].sequence = 0;
        if let Some(word) = self.holding.get_mut((f.op >> 6) as usize) {
            *word &= !(1 << (f.op & 63));
        }
    }

    /// The numbering of the units of a superblock, and the number in the drive of the first superblock and unit of it.
    fn numbering(&self, superblock: u32) -> (&Layout, u32, u32) {
        match self.data.superblock_of(self.table_first) {
            table if superblock >= table => (&self.table, table, self.table_first),
            _ => (&self.data, 0, 0),
        }
    }

    /// Programs under way with units that hold a superblock back, of those closed after so many.
    fn programs_before(&self, superblock: u32, after: u64) -> Vec<u32> {
        let (layout, first_superblock, first) = self.numbering(superblock);
        let start = layout.first_unit(superblock - first_superblock);
        let size = layout.units_per_superblock();
        // Most have nothing to do with it, and are passed by at a glance.
        let replaces = |unit: &Placed| unit.from.wrapping_sub(start) < size;
        let of_table = |unit: u32| unit >= self.table_first;
        let units = self.units_per_program as usize;
        let holds = |(at, unit): (usize, &Placed)| {
            if !replaces(unit) {
                return false;
            }
            let closed = &self.closed[at / units];
            closed.sequence > after
                && of_table(closed.first) == of_table(first)
                && unit.holds(layout, closed.first - first + (at % units) as u32)
        };
        if units == 1 {
            let all = self.placed.iter().enumerate();
            return all.filter(|&place| holds(place)).map(|(op, _)| op as u32).collect();
        }
        let any_holds = |op: &u32| {
            let places = *op as usize * units..(*op as usize + 1) * units;
            self.placed[places.clone()].iter().zip(places).any(|(unit, at)| holds((at, unit)))
        };
        ones(&self.holding).filter(any_holds).collect()
    }

    /// Holds an erase back where something under way replaces data of its superblock, and answers whether.
    pub(super) fn hold_erase(&mut self, die: u32, superblock: u32, cause: Cause) -> bool {
        let sequence = self.sequence;
        // The dies of a superblock follow each other.
        if self.unheld == (superblock, sequence) {
            return false;
        }
        if let Some(last) = self.held.erases.last_mut()
            && (last.superblock, last.closed) == (superblock, sequence)
        {
            last.dies.push(die);
            return true;
        }
        let earlier = self.held.erases.iter().rev().find(|erase| erase.superblock == superblock);
        let after = earlier.map_or(0, |erase| erase.closed);
        let programs = self.programs_before(superblock, after);
        if programs.is_empty() {
            self.unheld = (superblock, sequence);
            return false;
        }
        let (dies, ops, left) = (vec![die], Vec::new(), programs.len() as u32);
        let programs = bits(&programs);
        self.held.push(HeldErase {
            superblock,
            programs,
            left,
            closed: sequence,
            cause,
            dies,
            ops,
        });
        true
    }

    /// The units of a program are in flash, for which an erase has waited.
    #[cold]
    fn replaced_in_held(&mut self, op: u32) {
        let (word, bit) = (op as usize >> 6, 1 << (op & 63));
        let mut at = 0;
        while let Some(erase) = self.held.erases.get_mut(at) {
            if let Some(bits) = erase.programs.get_mut(word)
                && *bits & bit != 0
            {
                *bits &= !bit;
                erase.left -= 1;
            }
            if erase.left == 0 {
                self.release_held(at);
            } else {
                at += 1;
            }
        }
    }

    /// Nothing is left that an erase waits for.
    fn release_held(&mut self, at: usize) {
        let HeldErase { superblock, cause, dies, ops, .. } = self.held.erases.remove(at);
        if ops.is_empty() {
            self.held.queued(superblock);
            for die in dies {
                self.flash.erase(self.now, die, superblock, cause, false);
            }
        }
        ops.into_iter().for_each(|op| self.flash.release(op, self.now));
    }

    /// What is queued next is written from `ppn` on: behind the erase of its superblock.
    #[inline]
    pub(super) fn queue_held(&mut self, ppn: u32) {
        if !self.held.is_empty() {
            self.queue_held_before(ppn);
        }
    }

    #[cold]
    fn queue_held_before(&mut self, ppn: u32) {
        let superblock = self.data.superblock_of(ppn);
        if !self.held.unqueued.contains(&superblock) {
            return;
        }
        for erase in &mut self.held.erases {
            if erase.superblock == superblock && erase.ops.is_empty() {
                let (now, flash, cause) = (self.now, &mut self.flash, erase.cause);
                let dies = erase.dies.iter();
                erase.ops = dies.map(|&d| flash.erase(now, d, superblock, cause, true)).collect();
            }
        }
        self.held.queued(superblock);
    }

    /// Erases that are held and not queued: superblock and die.
    pub fn unqueued(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let unqueued = self.held.erases.iter().filter(|erase| erase.ops.is_empty());
        unqueued.flat_map(|erase| erase.dies.iter().map(|&die| (erase.superblock, die)))
    }
}
