//! Threshold: the least worn closed superblock moves when the spread of erase counts is too large.
//!
//! After Chang (2007), simplified: no hot and cold pools. Checked once per N/8 erases of a region,
//! at the cost of a scan of its N counts.

use super::WearLeveling;
use crate::ftl::{Blocks, OPEN};
use crate::persist::persistent;

pub struct Threshold {
    spread: u32,
    /// Erases until the next check, by region.
    countdown: Vec<u32>,
}

persistent!(Threshold { state { countdown } built { spread } });

impl Threshold {
    pub fn new(spread: u32) -> Self {
        Threshold { spread, countdown: Vec::new() }
    }
}

impl WearLeveling for Threshold {
    fn pick(&mut self, blocks: &Blocks, region: u32) -> Option<u32> {
        let r = region as usize;
        if self.countdown.len() <= r {
            self.countdown.resize(r + 1, 1);
        }
        self.countdown[r] -= 1;
        if self.countdown[r] > 0 {
            return None;
        }
        self.countdown[r] = (blocks.per_region() / 8).max(1);
        let most = blocks.of_region(region).map(|s| blocks.erases[s as usize]).max()?;
        let least = blocks
            .of_region(region)
            .filter(|&s| blocks.valid[s as usize] < OPEN)
            .min_by_key(|&s| blocks.erases[s as usize])?;
        if most - blocks.erases[least as usize] <= self.spread {
            return None;
        }
        // Still too large: look again after the next erase.
        self.countdown[r] = 1;
        Some(least)
    }
}
