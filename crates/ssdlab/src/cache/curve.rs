//! Miss-ratio curves: misses and write-backs of caches of many sizes.
//!
//! LRU in one pass: a cache of C blocks hits where the stack distance is below C (Mattson et al. 1970). Write-backs
//! come from the same pass: since its last write a block is dirty in all caches that have kept it since, those above
//! the greatest distance so far; a use at distance d finds that all caches of at most d blocks have evicted it
//! (after Thompson & Smith, "Efficient (stack) algorithms for analysis of write-back and sector memories", 1989).
//! Other policies are replayed at each size.
//!
//! Both can look at a sample of the blocks (SHARDS, Waldspurger et al., "Efficient MRC construction with SHARDS",
//! FAST 2015): a block is in the sample if its hash says so, and stands for 1/rate blocks, so that distances and
//! caches shrink with the rate; the difference between the accesses expected in a sample and found goes to distance
//! 0 (SHARDS-adj). Several disjoint samples give the curve as their mean, and its standard error from how they differ.

mod lru;
mod replay;
mod sample;

pub use lru::lru_curve;
pub use replay::replay_curve;
pub use sample::Sampling;

/// Misses at each of some sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Sizes of the cache, blocks.
    pub sizes: Vec<u64>,
    /// Blocks read in all.
    pub reads: u64,
    /// Blocks written in all.
    pub writes: u64,
    /// Reads that miss, at each size; estimated, if sampled.
    pub read_misses: Vec<f64>,
    /// Writes that miss.
    pub write_misses: Vec<f64>,
    /// Blocks that were dirty when they were evicted. Those still in the cache at the end are not among them.
    pub write_backs: Vec<f64>,
    /// Standard error of the miss ratio at each size, from the difference between samples: 0 for the whole trace,
    /// and not a number for one sample.
    pub error: Vec<f64>,
    /// Distinct blocks; estimated, if sampled; not a number where a replay did not count them.
    pub footprint: f64,
    /// Accesses that were followed.
    pub followed: u64,
}

impl Curve {
    /// Misses per access, at each size.
    pub fn miss_ratios(&self) -> Vec<f64> {
        let accesses = (self.reads + self.writes).max(1) as f64;
        let misses = self.read_misses.iter().zip(&self.write_misses);
        misses.map(|(r, w)| (r + w) / accesses).collect()
    }

    /// The mean of curves of disjoint samples, which have their sizes and accesses in common.
    fn mean(curves: &[Curve]) -> Curve {
        if let [curve] = curves {
            return curve.clone();
        }
        let n = curves.len() as f64;
        let ratios: Vec<Vec<f64>> = curves.iter().map(Curve::miss_ratios).collect();
        let column = |of: &dyn Fn(&Curve) -> &Vec<f64>| -> Vec<f64> {
            (0..curves[0].sizes.len())
                .map(|at| curves.iter().map(|c| of(c)[at]).sum::<f64>() / n)
                .collect()
        };
        let spread = |at: usize| {
            let mean = ratios.iter().map(|r| r[at]).sum::<f64>() / n;
            let squares = ratios.iter().map(|r| (r[at] - mean) * (r[at] - mean)).sum::<f64>();
            (squares / (n - 1.0) / n).sqrt()
        };
        Curve {
            sizes: curves[0].sizes.clone(),
            reads: curves[0].reads,
            writes: curves[0].writes,
            read_misses: column(&|c| &c.read_misses),
            write_misses: column(&|c| &c.write_misses),
            write_backs: column(&|c| &c.write_backs),
            error: (0..curves[0].sizes.len()).map(spread).collect(),
            footprint: curves.iter().map(|c| c.footprint).sum::<f64>() / n,
            followed: curves.iter().map(|c| c.followed).sum(),
        }
    }
}

/// About `points` sizes up to that of everything, each as much greater than the one before.
pub fn sizes_up_to(footprint: u64, points: u32) -> Vec<u64> {
    let top = footprint.max(1) as f64;
    let mut sizes: Vec<u64> = (1..=points)
        .map(|n| libm::pow(top, f64::from(n) / f64::from(points)).round() as u64)
        .collect();
    sizes.dedup();
    sizes
}
