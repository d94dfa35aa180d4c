//! Which blocks are in which sample.

use crate::cache::hit_ratio::Request;
use crate::error::{Error, Result};

/// How much of a trace is followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// All of it: exact.
    Whole,
    /// Samples of a fixed share of all blocks each (SHARDS, fixed rate).
    Rate {
        /// Share of the blocks in one sample, above 0.
        rate: f64,
        /// Disjoint samples; all together at most all blocks.
        samples: u32,
    },
    /// Samples of so many blocks at most, whose share falls as blocks appear (SHARDS, fixed size). LRU only.
    Blocks {
        /// Blocks in one sample.
        blocks: u32,
        /// Disjoint samples.
        samples: u32,
    },
}

impl Sampling {
    /// That it can be done.
    pub fn check(&self) -> Result<()> {
        match *self {
            Sampling::Whole => Ok(()),
            Sampling::Rate { samples: 0, .. } | Sampling::Blocks { samples: 0, .. } => {
                Err(Error::value("0 samples", "at least one sample"))
            }
            Sampling::Rate { rate, samples }
                if !(rate > 0.0 && rate * f64::from(samples) <= 1.0) =>
            {
                let most = 1.0 / f64::from(samples);
                let found = format!("a rate of {rate} for {samples} disjoint samples");
                Err(Error::value(found, format!("a rate above 0 and up to {most}")))
            }
            Sampling::Blocks { blocks: 0..16, .. } => {
                Err(Error::value("a sample of fewer than 16 blocks", "at least 16"))
            }
            _ => Ok(()),
        }
    }

    /// How many samples.
    pub fn samples(&self) -> u32 {
        match *self {
            Sampling::Whole => 1,
            Sampling::Rate { samples, .. } | Sampling::Blocks { samples, .. } => samples,
        }
    }
}

/// Spreads a block number over 64 bits: the finisher of MurmurHash3, other than the one of the index, so that a
/// sample's keys spread over its table. The seed makes other samples.
#[inline]
pub fn hash(key: u64, seed: u64) -> u64 {
    let mut x = key.wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// Reads and writes, in blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Blocks read.
    pub reads: u64,
    /// Blocks written.
    pub writes: u64,
}

impl Totals {
    /// Counts a request.
    #[inline]
    pub fn add(&mut self, request: &Request) {
        if request.write {
            self.writes += u64::from(request.blocks);
        } else {
            self.reads += u64::from(request.blocks);
        }
    }
}

/// Hands each block of the trace that is in one of `samples` samples to `follow`, with the sample and its place in
/// it, up to `limit`; `follow` answers the limit from then on. Counts all.
#[inline]
pub fn select(
    requests: impl IntoIterator<Item = Request>,
    samples: u32,
    seed: u64,
    mut limit: u64,
    mut follow: impl FnMut(u32, u64, u64, bool) -> u64,
) -> Totals {
    let mut totals = Totals::default();
    for request in requests {
        totals.add(&request);
        for block in 0..u64::from(request.blocks) {
            let key = request.key.wrapping_add(block);
            let hash = hash(key, seed);
            // The high bits say how far a rate must fall to lose the block, the low ones which sample it is in.
            let place = hash >> 32;
            if place <= limit {
                let sample = (((hash & 0xffff_ffff) * u64::from(samples)) >> 32) as u32;
                limit = follow(sample, key, place, request.write);
            }
        }
    }
    totals
}

/// All places of the samples.
const TWO_32: f64 = (1u64 << 32) as f64;
/// Blocks of a sampled cache at least: rounding then moves its size by 3 % at most.
const BLOCKS_MIN: f64 = 16.0;

/// The smallest cache that samples of a share of all blocks can stand for.
pub fn smallest(share: f64) -> u64 {
    if share < 1.0 { (BLOCKS_MIN / share).ceil() as u64 } else { 1 }
}

/// That samples of a share of all blocks can stand for caches of these sizes.
pub fn check_sizes(sizes: &[u64], share: f64) -> Result<()> {
    let least = smallest(share);
    let Some(small) = sizes.iter().find(|&&size| size < least) else { return Ok(()) };
    if share == 1.0 {
        return Err(Error::value(format!("a cache of {small} blocks"), "at least one"));
    }
    Err(Error::value(
        format!("a cache of {small} blocks at a sampling rate of {share:.6}"),
        format!("at least {least} blocks, or a higher rate: too few of its blocks are followed"),
    ))
}

/// Highest place in a sample of a fixed rate.
pub fn limit(rate: f64, samples: u32) -> u64 {
    let share = (rate * f64::from(samples) * TWO_32).round();
    (share as u64).clamp(1, 1 << 32) - 1
}

/// The share of all blocks that is in each of `samples` samples up to a limit.
pub fn rate(limit: u64, samples: u32) -> f64 {
    (limit + 1) as f64 / TWO_32 / f64::from(samples)
}
