//! Windowed greedy: greedy among the oldest share of the closed superblocks.
//!
//! Hu et al. (2009). Cost: the window's length.

use super::VictimPolicy;
use crate::ftl::Blocks;
use crate::persist::persistent;

pub struct Windowed {
    pub window: f64,
}

persistent!(Windowed { built { window } });

impl VictimPolicy for Windowed {
    fn pick(&mut self, blocks: &mut Blocks, region: u32, _now: u64) -> u32 {
        let length = (f64::from(blocks.closed(region)) * self.window).round().max(1.0) as usize;
        blocks
            .oldest_first(region)
            .take(length)
            .min_by_key(|&s| blocks.valid[s as usize])
            .expect("a region with a closed superblock")
    }
}
