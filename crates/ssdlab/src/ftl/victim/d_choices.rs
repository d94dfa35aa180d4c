//! d-choices: the superblock with the fewest valid units among d drawn at random.
//!
//! Van Houdt (2013). Draws are with replacement. Cost: d draws.

use super::VictimPolicy;
use super::random::draw;
use crate::ftl::Blocks;
use crate::persist::persistent;
use crate::rng::Stream;

pub struct DChoices {
    pub choices: u32,
    pub stream: Stream,
}

persistent!(DChoices { state { stream } built { choices } });

impl VictimPolicy for DChoices {
    fn pick(&mut self, blocks: &mut Blocks, region: u32, _now: u64) -> u32 {
        let mut best = draw(&mut self.stream, blocks, region);
        for _ in 1..self.choices {
            let other = draw(&mut self.stream, blocks, region);
            if blocks.valid[other as usize] < blocks.valid[best as usize] {
                best = other;
            }
        }
        best
    }
}
