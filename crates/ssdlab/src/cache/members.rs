//! A set of numbers in which the next member is found.

use crate::persist::persistent;

/// A set of numbers that finds the next member: words of bits, and words that say which of those are not empty.
pub struct Members {
    levels: Vec<Vec<u64>>,
}
persistent!(Members { state { levels } });

impl Members {
    pub fn new(numbers: u64) -> Self {
        let mut levels = Vec::new();
        let mut words = numbers.max(1).div_ceil(64);
        loop {
            levels.push(vec![0; words as usize]);
            if words == 1 {
                return Members { levels };
            }
            words = words.div_ceil(64);
        }
    }

    /// All of so many numbers.
    pub fn all(numbers: u64) -> Self {
        let mut members = Members::new(numbers);
        (0..numbers).for_each(|number| members.insert(number));
        members
    }

    pub fn has(&self, number: u64) -> bool {
        self.levels[0][(number / 64) as usize] >> (number % 64) & 1 == 1
    }

    pub fn insert(&mut self, mut number: u64) {
        for level in &mut self.levels {
            let word = &mut level[(number / 64) as usize];
            let before = *word;
            *word |= 1 << (number % 64);
            if before != 0 {
                return;
            }
            number /= 64;
        }
    }

    pub fn remove(&mut self, mut number: u64) {
        for level in &mut self.levels {
            let word = &mut level[(number / 64) as usize];
            *word &= !(1 << (number % 64));
            if *word != 0 {
                return;
            }
            number /= 64;
        }
    }

    pub fn set(&mut self, number: u64, member: bool) {
        if member {
            self.insert(number);
        } else {
            self.remove(number);
        }
    }

    /// The first member from `from` on.
    pub fn next(&self, mut from: u64) -> Option<u64> {
        let mut level = 0;
        loop {
            let word = self.levels[level].get((from / 64) as usize).copied().unwrap_or(0);
            let rest = word & (u64::MAX << (from % 64));
            if rest != 0 {
                let mut found = from / 64 * 64 + u64::from(rest.trailing_zeros());
                while level > 0 {
                    level -= 1;
                    let word = self.levels[level][found as usize];
                    found = found * 64 + u64::from(word.trailing_zeros());
                }
                return Some(found);
            }
            level += 1;
            from = from / 64 + 1;
            if level == self.levels.len() {
                return None;
            }
        }
    }

    /// The first member from `from` on, and then from 0 on, of which `may` holds.
    pub fn around(&self, from: u64, mut may: impl FnMut(u64) -> bool) -> Option<u64> {
        let mut find = |mut at: u64, end: u64| {
            while let Some(number) = self.next(at).filter(|&number| number < end) {
                if may(number) {
                    return Some(number);
                }
                at = number + 1;
            }
            None
        };
        find(from, u64::MAX).or_else(|| find(0, from))
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.capacity() * size_of::<u64>()).sum()
    }
}
