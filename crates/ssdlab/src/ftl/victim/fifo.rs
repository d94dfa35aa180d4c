//! FIFO: the superblock that was closed first, whatever it holds.
//!
//! Called LRU in the write-amplification literature (Desnoyers 2014). Cost: constant.

use super::VictimPolicy;
use crate::ftl::Blocks;
use crate::persist::persistent;

pub struct Fifo;

persistent!(Fifo {});

impl VictimPolicy for Fifo {
    fn pick(&mut self, blocks: &mut Blocks, region: u32, _now: u64) -> u32 {
        blocks.oldest_first(region).next().expect("a region with a closed superblock")
    }
}
