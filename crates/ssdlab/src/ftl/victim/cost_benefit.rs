//! Cost-benefit: free space gained, weighed by age, for the copying it costs.
//!
//! Kawaguchi, Nishioka & Motoda (1995): the greatest age * (1 - u) / 2u, where u is the share of
//! valid units. Age is counted in host units written since the superblock was closed. Cost: a scan
//! of all superblocks of the region.

use super::VictimPolicy;
use crate::ftl::{Blocks, OPEN};
use crate::persist::persistent;

pub struct CostBenefit;

persistent!(CostBenefit {});

impl VictimPolicy for CostBenefit {
    fn pick(&mut self, blocks: &mut Blocks, region: u32, now: u64) -> u32 {
        let score = |s: u32| {
            let valid = f64::from(blocks.valid[s as usize]);
            let used = valid / f64::from(blocks.units_per_superblock);
            let age = (now - blocks.closed_at[s as usize]) as f64 + 1.0;
            if used == 0.0 { f64::INFINITY } else { age * (1.0 - used) / (2.0 * used) }
        };
        blocks
            .of_region(region)
            .filter(|&s| blocks.valid[s as usize] < OPEN)
            .max_by(|&a, &b| score(a).total_cmp(&score(b)))
            .expect("a region with a closed superblock")
    }
}
