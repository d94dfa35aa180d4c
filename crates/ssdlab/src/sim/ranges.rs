//! Byte ranges in flight, and whether any of them overlaps another range, without a walk over all of them.
//!
//! A range is filed by its size class, a power of two that it is not longer than, and by where it begins in units of
//! that: so it overlaps another one only if it is filed at a few places that can be named. Places are lists
//! in a hash table that grows with what is in flight.

use super::steps::look;
use crate::persist::persistent;

const NONE: u32 = u32::MAX;

/// The smallest size class, 64 KiB: below it there would be too many places to look at.
const SMALLEST: u32 = 16;

/// Ranges by number; see the module.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// First of each list; a power of two of them.
    heads: Vec<u32>,
    filed: Vec<Filed>,
    count: u32,
    /// Ranges of each size class.
    classes: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Filed {
    space: u32,
    class: u8,
    used: bool,
    begin: u64,
    end: u64,
    next: u32,
    prev: u32,
}

persistent!(Filed { state { space, class, used, begin, end, next, prev } });
persistent!(Ranges { state { heads, filed, count, classes } });

impl Ranges {
    /// Files `len` bytes from `begin` on of a space, under a number that is free.
    pub fn insert(&mut self, number: u32, space: u32, begin: u64, len: u64) {
        if self.classes.is_empty() {
            self.classes.resize(65, 0);
        }
        let at = number as usize;
        if self.filed.len() <= at {
            self.filed.resize(at + 1, Filed::default());
        }
        debug_assert!(!self.filed[at].used, "{number} is filed");
        let class = len.max(1).next_power_of_two().trailing_zeros().max(SMALLEST) as u8;
        self.count += 1;
        self.classes[usize::from(class)] += 1;
        let filed = Filed { space, class, used: true, begin, end: begin + len, next: 0, prev: 0 };
        self.filed[at] = filed;
        if self.count as usize > self.heads.len() {
            self.grow();
        } else {
            self.link(number);
        }
    }

    /// Forgets the range of a number, if there is one.
    #[inline]
    pub fn remove(&mut self, number: u32) {
        if self.filed.get(number as usize).is_some_and(|filed| filed.used) {
            self.unlink(number);
        }
    }

    fn unlink(&mut self, number: u32) {
        let filed = &mut self.filed[number as usize];
        filed.used = false;
        let Filed { space, class, begin, next, prev, .. } = *filed;
        self.count -= 1;
        self.classes[usize::from(class)] -= 1;
        match prev {
            NONE => {
                let list = self.list(space, class, begin >> class);
                self.heads[list] = next;
            }
            _ => self.filed[prev as usize].next = next,
        }
        if next != NONE {
            self.filed[next as usize].prev = prev;
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Ranges::default();
    }

    /// Whether one of them has a byte in common with `len` bytes from `begin` on of a space.
    pub fn overlap(&self, space: u32, begin: u64, len: u64) -> bool {
        let end = begin + len;
        let overlap = |filed: &Filed| {
            look();
            filed.space == space && filed.begin < end && begin < filed.end
        };
        if len >> SMALLEST > self.filed.len() as u64 {
            // There would be more places to look at.
            return self.filed.iter().any(|filed| filed.used && overlap(filed));
        }
        let mut classes = (0u8..).zip(&self.classes).filter(|(_, count)| **count > 0);
        classes.any(|(class, _)| {
            // It begins not more than its own length before.
            let first = (begin >> class).saturating_sub(1);
            (first..=(end - 1) >> class).any(|unit| {
                let mut at = self.heads[self.list(space, class, unit)];
                while at != NONE {
                    let filed = &self.filed[at as usize];
                    if overlap(filed) {
                        return true;
                    }
                    at = filed.next;
                }
                false
            })
        })
    }

    #[inline]
    fn list(&self, space: u32, class: u8, unit: u64) -> usize {
        let key = unit ^ u64::from(space) << 40 ^ u64::from(class) << 56;
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.heads.len() - 1)
    }

    #[inline]
    fn link(&mut self, number: u32) {
        let Filed { space, class, begin, .. } = self.filed[number as usize];
        let list = self.list(space, class, begin >> class);
        let next = std::mem::replace(&mut self.heads[list], number);
        let filed = &mut self.filed[number as usize];
        (filed.next, filed.prev) = (next, NONE);
        if next != NONE {
            self.filed[next as usize].prev = number;
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.heads = vec![NONE; (2 * self.heads.len()).max(64)];
        for number in 0..self.filed.len() as u32 {
            if self.filed[number as usize].used {
                self.link(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use crate::sim::steps::looks;

    #[test]
    fn agrees_with_a_plain_list() {
        let mut rng = Stream::new(1, "ranges");
        let (mut ranges, mut plain) = (Ranges::default(), vec![None; 300]);
        let mut overlapping = 0;
        for _ in 0..20_000 {
            let number = rng.below(300) as usize;
            let (space, begin) = (rng.below(3) as u32, rng.below(1 << 14) * 4096);
            let len = 512 << rng.below(14);
            if plain[number].take().is_some() {
                ranges.remove(number as u32);
            } else if rng.below(2) == 0 {
                ranges.insert(number as u32, space, begin, len);
                plain[number] = Some((space, begin, begin + len));
            }
            let (space, begin) = (rng.below(3) as u32, rng.below(1 << 14) * 4096);
            let end = begin + (512 << rng.below(12));
            let overlap = |&(s, b, e): &(u32, u64, u64)| s == space && b < end && begin < e;
            let expected = plain.iter().flatten().any(overlap);
            assert_eq!(ranges.overlap(space, begin, end - begin), expected);
            overlapping += u32::from(expected);
        }
        assert!((1000..19_000).contains(&overlapping), "{overlapping} overlapping");
        ranges.clear();
        assert!(!ranges.overlap(0, 0, 1 << 40));
    }

    #[test]
    fn how_many_are_looked_at_does_not_grow_with_how_many_there_are() {
        let mut ranges = Ranges::default();
        for number in 0..10_000 {
            ranges.insert(number, 0, u64::from(number) << 20, 4096);
        }
        let before = looks();
        for place in 0..1000 {
            assert!(!ranges.overlap(0, (place << 20) + 65_536, 4096));
        }
        assert!(looks() - before < 5000, "{} looked at", looks() - before);
    }
}
