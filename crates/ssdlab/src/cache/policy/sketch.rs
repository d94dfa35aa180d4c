//! How often keys were used, roughly: a counting Bloom filter.
//!
//! Fan et al., Summary cache (1998); as large as libCacheSim 0.3.5 has it for W-TinyLFU, where an error of a thousandth
//! is asked for: 14.4 counters per key expected, ten of which are a key's own. Counts are too high where keys share all
//! of their counters. 14.4 bytes per key expected.

use crate::persist::persistent;

/// Counters of a key.
const ROWS: u32 = 10;
const COUNTERS_PER_KEY: f64 = 14.378;

pub struct Sketch {
    counters: Vec<u8>,
}

persistent!(Sketch { parts { counters } });

impl Sketch {
    /// For about so many keys.
    pub fn new(keys: u32) -> Self {
        let counters = (f64::from(keys) * COUNTERS_PER_KEY).ceil() as usize;
        Sketch { counters: vec![0; counters.max(2 * ROWS as usize)] }
    }

    #[inline]
    fn places(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let mixed = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let (mut hash, step) = (mixed as u32, (mixed >> 32) as u32 | 1);
        let counters = self.counters.len() as u64;
        (0..ROWS).map(move |_| {
            hash = hash.wrapping_add(step);
            ((u64::from(hash) * counters) >> 32) as usize
        })
    }

    /// Counts of a key, an upper bound.
    #[inline]
    pub fn count(&self, key: u64) -> u8 {
        self.places(key).map(|at| self.counters[at]).min().expect("a key has counters")
    }

    /// Counts a key once more.
    #[inline]
    pub fn add(&mut self, key: u64) {
        for at in self.places(key) {
            self.counters[at] = self.counters[at].saturating_add(1);
        }
    }

    /// Halves all counts.
    pub fn halve(&mut self) {
        self.counters.iter_mut().for_each(|counter| *counter /= 2);
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.counters.capacity()
    }
}
