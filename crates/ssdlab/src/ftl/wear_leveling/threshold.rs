//! Threshold: data that has stayed over a drive write moves to a free superblock that is worn too much more
//! than its own.
//!
//! After Chang (2007), simplified: the pools of hot and cold data are what has been moved lately and what has not,
//! and the worn superblock is one that is free. So no move is in vain: what never changes stays until others
//! have been erased `spread` times more, and where a share `c` of the superblocks holds such data,
//! `c / (spread + 1)` of all erases are of moves. Cost: a comparison with each free superblock for each erase, and
//! a look at what is old in a region for about each move.

use super::WearLeveling;
use crate::ftl::Blocks;
use crate::persist::persistent;

pub struct Threshold {
    spread: u32,
    /// Erases of the least worn superblock of a region, or fewer.
    least: Vec<u32>,
}

persistent!(Threshold { state { least } built { spread } });

impl Threshold {
    pub fn new(spread: u32) -> Self {
        Threshold { spread, least: Vec::new() }
    }
}

impl WearLeveling for Threshold {
    fn moves_data(&self) -> bool {
        true
    }
    fn pick(
        &mut self,
        blocks: &Blocks,
        region: u32,
        free: &mut dyn Iterator<Item = u32>,
        old: u64,
    ) -> Option<u32> {
        let r = region as usize;
        if self.least.len() <= r {
            self.least.resize(r + 1, 0);
        }
        let erases = |s: u32| blocks.erases[s as usize];
        let most = free.map(erases).max()?;
        if most <= self.least[r] + self.spread {
            return None;
        }
        self.least[r] = blocks.of_region(region).map(erases).min()?;
        let stays = |&s: &u32| blocks.closed_at[s as usize] <= old;
        let mut cold = blocks.oldest_first(region).take_while(stays);
        cold.find(|&s| most > erases(s) + self.spread)
    }
}
