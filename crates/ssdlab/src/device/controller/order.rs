//! Lines in the order of their addresses: a skip list in flat arrays (Pugh, CACM 33(6), 1990), so
//! that an elevator finds the next line in O(log n). How high a line stands follows from its address.

use crate::persist::persistent;

const LEVELS: usize = 12;
const NONE: u32 = u32::MAX;

/// See the module. Lines are known by their slot.
pub(super) struct Order {
    /// Address of the line in each slot, as it was put in.
    keys: Vec<u64>,
    /// The next slot on every level; the last entry is the head.
    next: Vec<[u32; LEVELS]>,
    len: u32,
}

persistent!(Order { state { len } parts { keys, next } });

impl Order {
    pub fn new(slots: u32) -> Self {
        let slots = slots as usize;
        Order { keys: vec![0; slots], next: vec![[NONE; LEVELS]; slots + 1], len: 0 }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    fn head(&self) -> usize {
        self.next.len() - 1
    }

    /// How many levels a line is on: each further one with probability 1/4.
    fn height(key: u64) -> usize {
        let x = (key ^ 0x51_7c_c1_b7_27_22_0a_95).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        1 + (((x ^ (x >> 29)).trailing_zeros() / 2) as usize).min(LEVELS - 1)
    }

    /// On every level the last slot before `key`.
    fn before(&self, key: u64) -> [u32; LEVELS] {
        let mut at = self.head();
        let mut found = [at as u32; LEVELS];
        for level in (0..LEVELS).rev() {
            loop {
                let next = self.next[at][level];
                if next == NONE || self.keys[next as usize] >= key {
                    break;
                }
                at = next as usize;
            }
            found[level] = at as u32;
        }
        found
    }

    /// Puts a slot at its place; it must not be in the list.
    pub fn insert(&mut self, slot: u32, key: u64) {
        let before = self.before(key);
        self.keys[slot as usize] = key;
        for (level, &place) in before.iter().enumerate().take(Self::height(key)) {
            let place = place as usize;
            self.next[slot as usize][level] = self.next[place][level];
            self.next[place][level] = slot;
        }
        self.len += 1;
    }

    /// Takes out the slot that was put in with `key`.
    pub fn remove(&mut self, slot: u32, key: u64) {
        let before = self.before(key);
        for (level, &place) in before.iter().enumerate().take(Self::height(key)) {
            debug_assert_eq!(self.next[place as usize][level], slot, "not in the list");
            self.next[place as usize][level] = self.next[slot as usize][level];
        }
        self.len -= 1;
    }

    /// The slot with the least key from `key` on.
    pub fn first_from(&self, key: u64) -> Option<u32> {
        let slot = self.next[self.before(key)[0] as usize][0];
        (slot != NONE).then_some(slot)
    }

    /// Calls `visit` for every slot, in order. For tests.
    pub fn each(&self, mut visit: impl FnMut(u32, u64)) {
        let mut at = self.next[self.head()][0];
        while at != NONE {
            visit(at, self.keys[at as usize]);
            at = self.next[at as usize][0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_plain_map() {
        let mut order = Order::new(300);
        let mut plain: BTreeMap<u64, u32> = BTreeMap::new();
        let mut free: Vec<u32> = (0..300).collect();
        let mut rng = Stream::new(1, "order");
        for _ in 0..30_000 {
            let key = rng.below(1000);
            match (plain.get(&key).copied(), free.len()) {
                (Some(slot), _) => {
                    order.remove(slot, key);
                    plain.remove(&key);
                    free.push(slot);
                }
                (None, 0) => {}
                (None, _) => {
                    let slot = free.pop().unwrap();
                    order.insert(slot, key);
                    plain.insert(key, slot);
                }
            }
            let from = rng.below(1100);
            let expected = plain.range(from..).next().map(|(_, &slot)| slot);
            assert_eq!(order.first_from(from), expected);
            assert_eq!(order.len() as usize, plain.len());
        }
        let mut all = Vec::new();
        order.each(|slot, key| all.push((key, slot)));
        assert_eq!(all, plain.into_iter().collect::<Vec<_>>());
    }
}
