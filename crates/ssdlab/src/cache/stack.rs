//! LRU stack distances: how many other keys were used since a key was used last.
//!
//! A key's last use is a bit in a row of positions; the distance is the number of bits after it. Bits are counted
//! word by word within 512 positions, and by a Fenwick tree above that (Bennett & Kruskal 1975, Fenwick 1994), which
//! stays in the nearest cache. When the row is full, positions close up. Cost: O(log n) with a small constant.

use super::index::Index;

/// Words of a group, whose sum the tree knows.
const GROUP_WORDS: usize = 8;
const GROUP: usize = GROUP_WORDS * 64;
/// Positions at least.
const SHORTEST: usize = 1 << 14;

/// What a use found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Number of the key, below the number of keys ever present at once.
    pub entry: u32,
    /// Distinct other keys since its last use; none, if it had none. LRU caches of more frames hit.
    pub distance: Option<u32>,
}

/// Keys in the order of their last use.
pub struct Distances {
    index: Index,
    keys: Vec<u64>,
    /// Position of the last use of each entry; [`GONE`] if it is free.
    last: Vec<u32>,
    free: Vec<u32>,
    bits: Vec<u64>,
    /// Fenwick tree over groups, from 1 on.
    tree: Vec<u32>,
    now: usize,
    live: u32,
}

/// Position of a free entry.
const GONE: u32 = u32::MAX;

impl Default for Distances {
    fn default() -> Self {
        let mut new = Distances {
            index: Index::new(1024),
            keys: Vec::new(),
            last: Vec::new(),
            free: Vec::new(),
            bits: Vec::new(),
            tree: Vec::new(),
            now: 0,
            live: 0,
        };
        new.lay_out();
        new
    }
}

impl Distances {
    /// Keys present.
    pub fn len(&self) -> u32 {
        self.live
    }

    /// Uses a key.
    #[inline]
    pub fn touch(&mut self, key: u64) -> Use {
        if self.now == self.bits.len() * 64 {
            self.close_up();
        }
        let now = self.now;
        self.now += 1;
        if let Some(entry) = self.index.find(key, &self.keys) {
            let at = std::mem::replace(&mut self.last[entry as usize], now as u32) as usize;
            let distance = self.live - self.rank(at);
            if now / GROUP != at / GROUP {
                self.add(at / GROUP, u32::MAX);
                self.add(now / GROUP, 1);
            }
            self.bits[at / 64] &= !(1 << (at % 64));
            self.bits[now / 64] |= 1 << (now % 64);
            return Use { entry, distance: Some(distance) };
        }
        let entry = self.free.pop().unwrap_or_else(|| {
            self.keys.push(0);
            self.last.push(GONE);
            self.keys.len() as u32 - 1
        });
        self.keys[entry as usize] = key;
        self.last[entry as usize] = now as u32;
        self.index.reserve();
        self.index.insert(key, entry);
        self.bits[now / 64] |= 1 << (now % 64);
        self.add(now / GROUP, 1);
        self.live += 1;
        Use { entry, distance: None }
    }

    /// Forgets a key that is present.
    pub fn forget(&mut self, entry: u32) {
        let at = std::mem::replace(&mut self.last[entry as usize], GONE) as usize;
        self.index.remove(self.keys[entry as usize], entry);
        self.bits[at / 64] &= !(1 << (at % 64));
        self.add(at / GROUP, u32::MAX);
        self.live -= 1;
        self.free.push(entry);
    }

    /// Distinct other keys since the last use of each entry that is present.
    pub fn depths(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let present = self.last.iter().enumerate().filter(|&(_, &at)| at != GONE);
        present.map(|(entry, &at)| (entry as u32, self.live - self.rank(at as usize)))
    }

    /// Bits up to and with a position.
    #[inline]
    fn rank(&self, at: usize) -> u32 {
        let (group, word) = (at / GROUP, at / 64);
        let mut count = 0;
        for bits in &self.bits[group * GROUP_WORDS..word] {
            count += bits.count_ones();
        }
        count += (self.bits[word] << (63 - at % 64)).count_ones();
        let mut node = group;
        while node > 0 {
            count += self.tree[node];
            node &= node - 1;
        }
        count
    }

    /// Adds to the sum of a group; `u32::MAX` takes one away.
    #[inline]
    fn add(&mut self, group: usize, one: u32) {
        let mut node = group + 1;
        while node < self.tree.len() {
            self.tree[node] = self.tree[node].wrapping_add(one);
            node += node & node.wrapping_neg();
        }
    }

    /// Closes the gaps between the bits.
    #[cold]
    fn close_up(&mut self) {
        for entry in 0..self.last.len() {
            if self.last[entry] != GONE {
                self.last[entry] = self.rank(self.last[entry] as usize) - 1;
            }
        }
        self.lay_out();
    }

    /// The first `live` positions are in use, and the row is four times as long.
    fn lay_out(&mut self) {
        let live = self.live as usize;
        let groups = (live * 4).max(SHORTEST).div_ceil(GROUP);
        self.bits.clear();
        self.bits.resize(groups * GROUP_WORDS, 0);
        self.bits[..live / 64].fill(u64::MAX);
        self.bits[live / 64] = (1 << (live % 64)) - 1;
        self.tree.clear();
        self.tree.resize(groups + 1, 0);
        for group in 0..groups {
            let held = live.saturating_sub(group * GROUP).min(GROUP) as u32;
            let node = group + 1;
            self.tree[node] += held;
            let above = node + (node & node.wrapping_neg());
            if above <= groups {
                self.tree[above] += self.tree[node];
            }
        }
        self.now = live;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn distances_are_those_of_a_plain_list() {
        let mut random = Stream::new(1, "distances");
        let mut plain: Vec<u64> = Vec::new();
        let mut distances = Distances::default();
        for n in 0..60_000u64 {
            // Keys drift, so that some are never used again.
            let span = 1 + random.below(300);
            let key = n / 100 + random.below(span);
            let found = plain.iter().rev().position(|&k| k == key);
            let used = distances.touch(key);
            assert_eq!(used.distance, found.map(|d| d as u32), "use {n}");
            plain.retain(|&k| k != key);
            plain.push(key);
            if random.below(5) == 0 {
                distances.forget(used.entry);
                plain.pop();
            }
        }
        let mut depths: Vec<u32> = distances.depths().map(|(_, depth)| depth).collect();
        depths.sort_unstable();
        assert!(depths.iter().copied().eq(0..plain.len() as u32));
        assert_eq!(distances.len() as usize, plain.len());
    }
}
