//! A linear feedback shift register of maximal length: a permutation of the blocks without memory
//! of those done (`random_generator=lfsr`).
//!
//! The state runs through all elements of GF(2^n) but 0 by multiplication with x modulo a
//! primitive polynomial; states above the number of blocks are passed over.

/// Primitive polynomials of degree 2, 3, ...: the coefficients below the leading one, the smallest
/// for each degree. A test checks the small ones by counting and all of them by arithmetic.
const POLYNOMIALS: [u64; 43] = [
    0x3, 0x3, 0x3, 0x5, 0x3, 0x3, 0x1d, 0x11, 0x9, 0x5, 0x53, 0x1b, 0x2b, 0x3, 0x2d, 0x9, 0x27,
    0x27, 0x9, 0x5, 0x3, 0x21, 0x1b, 0x9, 0x47, 0x27, 0x9, 0x5, 0x53, 0x9, 0xaf, 0x53, 0xe7, 0x5,
    0x77, 0x3f, 0x63, 0x11, 0x39, 0x9, 0x3f, 0x59, 0x65,
];

/// A permutation of `0..blocks`.
#[derive(Clone, Debug)]
pub struct Lfsr {
    blocks: u64,
    left: u64,
    state: u64,
    degree: u32,
    polynomial: u64,
}

impl Lfsr {
    /// A permutation of `0..blocks` that begins where `start` (any number) says; at most 2^44.
    pub fn new(blocks: u64, start: u64) -> Self {
        let degree = (64 - blocks.leading_zeros()).clamp(2, 44);
        assert!(blocks < 1 << 44, "a file of more than 2^44 blocks");
        let polynomial = POLYNOMIALS[degree as usize - 2] | 1 << degree;
        let mut lfsr = Lfsr { blocks, left: blocks, state: 1, degree, polynomial };
        lfsr.restart(start);
        lfsr
    }

    /// Begins again at another place.
    pub fn restart(&mut self, start: u64) {
        self.state = 1 + start % ((1 << self.degree) - 1);
        self.left = self.blocks;
    }

    /// The next block; `None` when each has come once.
    #[inline]
    pub fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        loop {
            self.state <<= 1;
            if self.state >> self.degree != 0 {
                self.state ^= self.polynomial;
            }
            if self.state <= self.blocks {
                return Some(self.state - 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_comes_exactly_once() {
        for blocks in [1, 2, 3, 7, 8, 100, 4095, 4096, 65_537, 1_000_000] {
            let mut lfsr = Lfsr::new(blocks, 12_345);
            let mut seen = vec![false; blocks as usize];
            while let Some(block) = lfsr.next() {
                assert!(!std::mem::replace(&mut seen[block as usize], true), "{block} twice");
            }
            assert!(seen.iter().all(|s| *s));
        }
    }

    /// x has order 2^n - 1: its power is 1 there, and at no proper divisor.
    #[test]
    fn the_polynomials_are_primitive() {
        let multiply = |mut a: u64, mut b: u64, polynomial: u64, degree: u32| {
            let mut product = 0;
            while b != 0 {
                product ^= if b & 1 != 0 { a } else { 0 };
                (a, b) = (a << 1, b >> 1);
                a ^= if a >> degree != 0 { polynomial } else { 0 };
            }
            product
        };
        for (i, low) in POLYNOMIALS.iter().enumerate() {
            let degree = i as u32 + 2;
            let polynomial = low | 1 << degree;
            let power = |mut e: u64| {
                let (mut result, mut x) = (1, 2);
                while e != 0 {
                    if e & 1 != 0 {
                        result = multiply(result, x, polynomial, degree);
                    }
                    x = multiply(x, x, polynomial, degree);
                    e >>= 1;
                }
                result
            };
            let order = (1u64 << degree) - 1;
            assert_eq!(power(order), 1, "degree {degree}");
            let (mut rest, mut prime) = (order, 2);
            while rest > 1 {
                if prime * prime > rest {
                    prime = rest;
                }
                if rest % prime == 0 {
                    assert_ne!(power(order / prime), 1, "degree {degree}, prime {prime}");
                    while rest % prime == 0 {
                        rest /= prime;
                    }
                }
                prime += 1;
            }
        }
    }
}
