//! Random streams derived from the run's seed by label.
//!
//! A component asks for a stream by its own label, so a new component leaves the numbers of all
//! others as they were.

use crate::error::Result;
use crate::persist::{Archive, Persist};
use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One labelled stream of random numbers (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream called `label` of the run `seed`.
    pub fn new(seed: u64, label: &str) -> Self {
        // FNV-1a over the label, then SplitMix64 inside `seed_from_u64` spreads it.
        let hash = label.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
        Stream(Xoshiro256PlusPlus::seed_from_u64(seed.rotate_left(17) ^ hash))
    }
    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// Uniform integer in `0..n`; `n` must not be 0. Bias is below 2^-32 for n < 2^32.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }
    /// Uniform real in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
    /// Uniform integer in `0..=100` exclusive of 100: a percentage draw.
    #[inline]
    pub fn percent(&mut self) -> u32 {
        self.below(100) as u32
    }
}

impl Persist for Stream {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let mut state = self.0.state();
        archive.bytes(&mut state)?;
        self.0 = Xoshiro256PlusPlus::from_seed(state);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_label_and_repeat_by_seed() {
        let draw = |seed, label| Stream::new(seed, label).bits();
        assert_eq!(draw(1, "job/0/offset"), draw(1, "job/0/offset"));
        assert_ne!(draw(1, "job/0/offset"), draw(1, "job/1/offset"));
        assert_ne!(draw(1, "job/0/offset"), draw(2, "job/0/offset"));
    }

    #[test]
    fn below_is_uniform() {
        let mut s = Stream::new(7, "test");
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[s.below(10) as usize] += 1;
        }
        // 10 000 expected, sigma 95: six sigmas.
        assert!(counts.iter().all(|c| c.abs_diff(10_000) < 570), "{counts:?}");
    }
}
