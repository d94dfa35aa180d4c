//! What a card's RAM holds, in tests, over what the devices below it hold. What is written below gets versions of
//! its own, since one command may carry sectors of many writes.

use super::ram::Run;
use super::{Progress, Purpose};
use crate::contract::{SECTOR, digest};
use crate::fleet::{Fleet, sectors};
use crate::persist::persistent;
use std::collections::BTreeMap;

type Below = Fleet<Progress, Purpose>;

/// See the module.
#[derive(Default)]
pub(super) struct Contents {
    /// Content by sector, of those in RAM.
    ram: BTreeMap<u64, u64>,
}
persistent!(Contents { state { ram } });

impl Contents {
    /// Content of the sector at `offset`.
    pub fn of(&self, offset: u64, below: &Below) -> u64 {
        let ram = self.ram.get(&(offset / SECTOR)).copied();
        ram.unwrap_or_else(|| below.content(0, offset))
    }

    /// What a read of the run answers.
    pub fn digest(&self, run: Run, below: &Below) -> u64 {
        digest(0, sectors(run.offset, run.end()).map(|at| self.of(at, below)))
    }

    /// A write has come into RAM; its first sector has version `stamp`.
    pub fn write(&mut self, run: Run, stamp: u64) {
        self.ram.extend((run.offset / SECTOR..run.end() / SECTOR).zip(stamp..));
    }

    /// RAM holds what is below.
    pub fn keep(&mut self, run: Run, below: &Below) {
        for at in sectors(run.offset, run.end()) {
            self.ram.entry(at / SECTOR).or_insert_with(|| below.content(0, at));
        }
    }

    /// RAM does not hold the run any more.
    pub fn forget(&mut self, run: Run) {
        // A TRIM or a purge may reach far beyond what is in RAM.
        let range = run.offset / SECTOR..run.end() / SECTOR;
        while let Some((&sector, _)) = self.ram.range(range.clone()).next() {
            self.ram.remove(&sector);
        }
    }

    /// RAM holds only the sectors of which `held` holds, by their offsets.
    pub fn keep_only(&mut self, held: impl Fn(u64) -> bool) {
        self.ram.retain(|sector, _| held(sector * SECTOR));
    }

    /// Takes versions for a write from RAM.
    pub fn stamp_of_ram(&self, run: Run, below: &mut Below) -> u64 {
        let held = |at: u64| *self.ram.get(&(at / SECTOR)).expect("in RAM");
        below.stamp(sectors(run.offset, run.end()).map(held))
    }
}
