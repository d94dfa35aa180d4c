//! How often keys were used, roughly: a counting Bloom filter.
//!
//! Fan et al., Summary cache (1998); as libCacheSim 0.3.5 has it for W-TinyLFU, where an error of a thousandth is asked
//! for: 14.4 counters per key expected, ten of which are a key's own, in steps (Kirsch & Mitzenmacher, 2006) that two
//! XXH64 hashes (Collet's specification) say. Counts are too high where keys share all of their counters, which is
//! common in small caches: only the same hashes come to the same decisions there. 29 bytes per key expected.

use crate::persist::persistent;
use std::f64::consts::LN_2;

/// Counters of a key.
const ROWS: u32 = 10;
/// Share of keys that are taken for others.
const ERROR: f64 = 0.001;
/// Of where a key begins, and of its step.
const SEEDS: [u64; 2] = [0x1234_5678, 0x1234_4321];

pub struct Sketch {
    counters: Vec<u16>,
    /// What a remainder by their number is told by, with products instead of a division (Lemire et al., 2019).
    inverse: u64,
}

persistent!(Sketch { parts { counters } built { inverse } });

/// The 64-bit hash of the xxHash family, of 8 bytes.
#[inline]
fn xxh64(key: u64, seed: u64) -> u64 {
    const P1: u64 = 0x9e37_79b1_85eb_ca87;
    const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
    const P3: u64 = 0x1656_67b1_9e37_79f9;
    const P4: u64 = 0x85eb_ca77_c2b2_ae63;
    const P5: u64 = 0x27d4_eb2f_1656_67c5;
    let lane = key.wrapping_mul(P2).rotate_left(31).wrapping_mul(P1);
    let hash = seed.wrapping_add(P5).wrapping_add(8) ^ lane;
    let hash = hash.rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
    let hash = (hash ^ hash >> 33).wrapping_mul(P2);
    let hash = (hash ^ hash >> 29).wrapping_mul(P3);
    hash ^ hash >> 32
}

impl Sketch {
    /// For about so many keys.
    pub fn new(keys: u32) -> Self {
        let per_key = -libm::log(ERROR) / (LN_2 * LN_2);
        let wanted = (f64::from(keys) * per_key).ceil() as u32;
        let counters = if wanted < ROWS { 2 * ROWS } else { wanted };
        let inverse = u64::MAX / u64::from(counters) + 1;
        Sketch { counters: vec![0; counters as usize], inverse }
    }

    #[inline]
    fn places(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let [first, step] = SEEDS.map(|seed| xxh64(key, seed) as u32);
        let (counters, inverse) = (self.counters.len() as u128, self.inverse);
        (0..ROWS).map(move |row| {
            let hash = first.wrapping_add(row.wrapping_mul(step));
            let fraction = inverse.wrapping_mul(u64::from(hash));
            ((u128::from(fraction) * counters) >> 64) as usize
        })
    }

    /// Counts of a key, an upper bound.
    #[inline]
    pub fn count(&self, key: u64) -> u16 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_specification() {
        // Of the reference implementation: eight bytes of zeros, and the number 1, little-endian.
        assert_eq!(xxh64(0, 0), 0x34c9_6acd_cadb_1bbb);
        assert_eq!(xxh64(1, 0), 0x9f29_cb17_a2a4_9995);
    }

    #[test]
    fn the_remainder_by_products_is_the_remainder() {
        for keys in [1, 7, 99, 12_345] {
            let sketch = Sketch::new(keys);
            for key in 0..2000u64 {
                let [first, step] = SEEDS.map(|seed| xxh64(key, seed) as u32);
                let divided = (0..ROWS).map(|row| {
                    first.wrapping_add(row.wrapping_mul(step)) as usize % sketch.counters.len()
                });
                assert!(divided.eq(sketch.places(key)));
            }
        }
    }
}
