//! The plain map that every device is compared with: a version for each sector.

use ssdlab::device::{SECTOR, mix};

/// What a device should hold.
pub struct Oracle {
    content: Vec<u64>,
    /// TRIM deallocates units of so many sectors that lie wholly inside its range...
    unit: u64,
    /// ... where the device's first sector is so far into a unit.
    shift: u64,
    /// Purge of a partition is a TRIM of all of it.
    purge_is_trim: bool,
}

impl Oracle {
    /// An empty device of `capacity` bytes.
    pub fn new(capacity: u64, unit_bytes: u64, shift_bytes: u64, purge_is_trim: bool) -> Self {
        Oracle {
            content: vec![0; (capacity / SECTOR) as usize],
            unit: unit_bytes / SECTOR,
            shift: shift_bytes / SECTOR,
            purge_is_trim,
        }
    }
    /// Sectors.
    pub fn sectors(&self) -> u64 {
        self.content.len() as u64
    }
    /// `sectors` from `first` on hold `stamp`, `stamp + 1`, ...
    pub fn write(&mut self, first: u64, sectors: u64, stamp: u64) {
        for i in 0..sectors {
            self.content[(first + i) as usize] = stamp + i;
        }
    }
    /// The whole units inside the range hold nothing.
    pub fn trim(&mut self, first: u64, sectors: u64) {
        let begin = (first + self.shift).div_ceil(self.unit) * self.unit;
        let end = (first + sectors + self.shift) / self.unit * self.unit;
        for sector in begin..end {
            self.content[(sector - self.shift) as usize] = 0;
        }
    }
    /// Nothing holds anything.
    pub fn purge(&mut self) {
        if self.purge_is_trim {
            self.trim(0, self.sectors());
        } else {
            self.content.fill(0);
        }
    }
    /// What a read must answer.
    pub fn digest(&self, first: u64, sectors: u64) -> u64 {
        (0..sectors)
            .fold(0u64, |sum, i| sum.wrapping_add(mix(self.content[(first + i) as usize], i)))
    }
}
