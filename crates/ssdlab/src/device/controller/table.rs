//! Which line of RAM holds a block: open addressing with linear probing, deletion by shifting back
//! (Knuth, TAOCP 3, 6.4, algorithm R), so that there are no tombstones.

use crate::persist::persistent;

const EMPTY: u32 = u32::MAX;

/// See the module. The block of a slot is asked of the caller, who knows it.
pub(super) struct Table {
    slots: Vec<u32>,
    mask: usize,
}

persistent!(Table { parts { slots } built { mask } });

impl Table {
    /// For so many slots at most; at most half of it is ever used.
    pub fn new(slots: u32) -> Self {
        let size = (2 * slots as usize).next_power_of_two().max(4);
        Table { slots: vec![EMPTY; size], mask: size - 1 }
    }

    #[inline]
    fn home(&self, block: u64) -> usize {
        ((block.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24) as usize) & self.mask
    }

    /// The slot that holds `block`.
    #[inline]
    pub fn find(&self, block: u64, block_of: impl Fn(u32) -> u64) -> Option<u32> {
        let mut at = self.home(block);
        loop {
            match self.slots[at] {
                EMPTY => return None,
                slot if block_of(slot) == block => return Some(slot),
                _ => at = (at + 1) & self.mask,
            }
        }
    }

    /// Adds a slot; its block is not there yet.
    pub fn insert(&mut self, block: u64, slot: u32) {
        let mut at = self.home(block);
        while self.slots[at] != EMPTY {
            at = (at + 1) & self.mask;
        }
        self.slots[at] = slot;
    }

    /// Takes a slot out, which is there.
    pub fn remove(&mut self, block: u64, slot: u32, block_of: impl Fn(u32) -> u64) {
        let mut hole = self.home(block);
        while self.slots[hole] != slot {
            debug_assert_ne!(self.slots[hole], EMPTY, "not in the table");
            hole = (hole + 1) & self.mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask;
            if self.slots[at] == EMPTY {
                break;
            }
            let home = self.home(block_of(self.slots[at]));
            // It may move into the hole if that lies on its way from home.
            if (at.wrapping_sub(home) & self.mask) >= (at.wrapping_sub(hole) & self.mask) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn agrees_with_a_plain_list() {
        let mut table = Table::new(100);
        let mut blocks = vec![u64::MAX; 100];
        let mut free: Vec<u32> = (0..100).collect();
        let mut rng = Stream::new(1, "table");
        for _ in 0..50_000 {
            // Few blocks, and some that share their home.
            let block = rng.below(150) << (8 * rng.below(2));
            let found = table.find(block, |slot| blocks[slot as usize]);
            let expected = blocks.iter().position(|&b| b == block).map(|i| i as u32);
            assert_eq!(found, expected);
            match (found, free.pop()) {
                (Some(slot), top) => {
                    free.extend(top);
                    table.remove(block, slot, |slot| blocks[slot as usize]);
                    blocks[slot as usize] = u64::MAX;
                    free.push(slot);
                }
                (None, Some(slot)) => {
                    blocks[slot as usize] = block;
                    table.insert(block, slot);
                }
                (None, None) => {}
            }
        }
    }
}
