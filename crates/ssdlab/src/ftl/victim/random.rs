//! Random: any closed superblock with equal probability.
//!
//! Van Houdt (2013), d = 1. Cost: one draw, repeated for the few superblocks that are not closed.

use super::VictimPolicy;
use crate::error::Result;
use crate::ftl::{Blocks, OPEN};
use crate::persist::{Archive, Persist};
use crate::rng::Stream;

pub struct Random(pub Stream);

impl Persist for Random {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.0.persist(archive)
    }
}

impl VictimPolicy for Random {
    fn pick(&mut self, blocks: &mut Blocks, region: u32, _now: u64) -> u32 {
        draw(&mut self.0, blocks, region)
    }
}

/// A closed superblock drawn uniformly.
pub fn draw(stream: &mut Stream, blocks: &Blocks, region: u32) -> u32 {
    let range = blocks.of_region(region);
    loop {
        let superblock = range.start + stream.below(u64::from(range.end - range.start)) as u32;
        if blocks.valid[superblock as usize] < OPEN {
            return superblock;
        }
    }
}
