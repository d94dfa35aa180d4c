//! Greedy: the superblock with the fewest valid units; ties rotate over the drive.
//!
//! Bux & Iliadis (2010). Cost: a scan of N/64 + 64 counters.

use super::VictimPolicy;
use crate::ftl::Blocks;
use crate::persist::persistent;

pub struct Greedy;

persistent!(Greedy {});

impl VictimPolicy for Greedy {
    fn pick(&mut self, blocks: &mut Blocks, region: u32, _now: u64) -> u32 {
        blocks.least_valid(region)
    }

    fn likely(&self, blocks: &Blocks, region: u32) -> Option<u32> {
        (blocks.closed(region) > 0).then(|| blocks.find_least(region).1)
    }
}
