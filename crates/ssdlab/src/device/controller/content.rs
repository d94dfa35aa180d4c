//! What a card's RAM and the devices below it hold, in tests. What is written below gets versions of
//! its own, since one command may carry sectors of many writes; a table tells what they stand for.

use super::ram::Run;
use crate::device::{Device, SECTOR, mix};
use crate::persist::persistent;
use std::collections::BTreeMap;

/// See the module.
pub(super) struct Contents {
    /// Content by version below; version 0 is zeros.
    payload: Vec<u64>,
    /// Content by sector, of those in RAM.
    ram: BTreeMap<u64, u64>,
}
persistent!(Contents { state { payload, ram } });

impl Contents {
    pub fn new() -> Self {
        Contents { payload: vec![0], ram: BTreeMap::new() }
    }

    fn sectors(run: Run) -> impl Iterator<Item = u64> {
        run.offset / SECTOR..run.end() / SECTOR
    }

    /// Content of the sector at `offset`.
    pub fn of(&self, offset: u64, below: &dyn Device) -> u64 {
        let ram = self.ram.get(&(offset / SECTOR)).copied();
        ram.unwrap_or_else(|| self.payload[below.content(offset) as usize])
    }

    /// What a read of the run answers.
    pub fn digest(&self, run: Run, below: &dyn Device) -> u64 {
        Self::sectors(run).zip(0..).fold(0u64, |sum, (sector, i)| {
            sum.wrapping_add(mix(self.of(sector * SECTOR, below), i))
        })
    }

    /// What the devices below answer to a read of the run.
    pub fn digest_below(run: Run, below: &dyn Device) -> u64 {
        Self::sectors(run)
            .zip(0..)
            .fold(0u64, |sum, (sector, i)| sum.wrapping_add(mix(below.content(sector * SECTOR), i)))
    }

    /// A write has come into RAM; its first sector has version `stamp`.
    pub fn write(&mut self, run: Run, stamp: u64) {
        self.ram.extend(Self::sectors(run).zip(stamp..));
    }

    /// RAM holds what is below.
    pub fn keep(&mut self, run: Run, below: &dyn Device) {
        for sector in Self::sectors(run) {
            let content = self.payload[below.content(sector * SECTOR) as usize];
            self.ram.entry(sector).or_insert(content);
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

    /// Versions for a write from RAM.
    pub fn stamp_of_ram(&mut self, run: Run) -> u64 {
        let first = self.payload.len() as u64;
        for sector in Self::sectors(run) {
            self.payload.push(*self.ram.get(&sector).expect("in RAM"));
        }
        first
    }

    /// Versions for a write of the host's that passes RAM by.
    pub fn stamp_of_host(&mut self, run: Run, stamp: u64) -> u64 {
        let first = self.payload.len() as u64;
        self.payload.extend(stamp..stamp + run.len / SECTOR);
        first
    }
}
