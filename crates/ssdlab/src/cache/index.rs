//! From a key to the number of its entry: open addressing in the order of the hashes.
//!
//! Linear probing after Amble & Knuth, "Ordered hash tables" (1974): the cells stay sorted by a 31-bit tag of the
//! key, and the tag's share of its range is the place where a search begins. So a search for what is absent ends as
//! soon as one for what is present, which lets four fifths of the cells be in use: 10 bytes per entry.
//! The keys themselves stand with the caller.

/// A free cell; its tag is above all others.
const EMPTY: u64 = u64::MAX;
const TAG_BITS: u32 = 31;

/// A table of tags and entry numbers.
pub struct Index {
    /// Tag above, entry below. The last cell is always free, so that no search passes the end.
    cells: Vec<u64>,
    homes: u64,
    used: usize,
}

/// The tag of a key: the high bits of a product, mixed once more for keys in strides.
#[inline]
fn tag(key: u64) -> u64 {
    let product = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product ^ (product >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> (64 - TAG_BITS)
}

impl Index {
    /// A table for up to `entries` keys.
    pub fn new(entries: usize) -> Self {
        let homes = (entries + entries / 4 + 1) as u64;
        Index { cells: vec![EMPTY; homes as usize + 16], homes, used: 0 }
    }

    #[inline]
    fn home(&self, tag: u64) -> usize {
        ((tag * self.homes) >> TAG_BITS) as usize
    }

    /// The entry whose key, of all `keys`, is `key`.
    #[inline]
    pub fn find(&self, key: u64, keys: &[u64]) -> Option<u32> {
        let tag = tag(key);
        let mut at = self.home(tag);
        loop {
            let cell = self.cells[at];
            let found = cell >> 32;
            if found >= tag {
                if found > tag {
                    return None;
                }
                if keys[cell as u32 as usize] == key {
                    return Some(cell as u32);
                }
            }
            at += 1;
        }
    }

    /// Where the cell of an entry that is present stands.
    #[inline]
    fn place(&self, key: u64, entry: u32) -> usize {
        let tag = tag(key);
        let wanted = tag << 32 | u64::from(entry);
        let mut at = self.home(tag);
        while self.cells[at] != wanted {
            debug_assert!(self.cells[at] >> 32 <= tag, "the key is present");
            at += 1;
        }
        at
    }

    /// Adds a key that is absent.
    #[inline]
    pub fn insert(&mut self, key: u64, entry: u32) {
        let tag = tag(key);
        let mut at = self.home(tag);
        while self.cells[at] >> 32 <= tag {
            at += 1;
        }
        let mut carried = tag << 32 | u64::from(entry);
        while carried != EMPTY {
            carried = std::mem::replace(&mut self.cells[at], carried);
            at += 1;
        }
        if at == self.cells.len() {
            // Not twice as much memory for what spills over the last home.
            self.cells.reserve_exact(64);
            self.cells.push(EMPTY);
        }
        self.used += 1;
    }

    /// Removes a key that is present as `entry`.
    #[inline]
    pub fn remove(&mut self, key: u64, entry: u32) {
        let mut at = self.place(key, entry);
        loop {
            let next = self.cells[at + 1];
            if next == EMPTY || self.home(next >> 32) > at {
                break;
            }
            self.cells[at] = next;
            at += 1;
        }
        self.cells[at] = EMPTY;
        self.used -= 1;
    }

    /// The key that was `old` is entry `new` from now on.
    #[inline]
    pub fn renumber(&mut self, key: u64, old: u32, new: u32) {
        let at = self.place(key, old);
        self.cells[at] = self.cells[at] >> 32 << 32 | u64::from(new);
    }

    /// Makes the table twice as large if another key would fill it too far.
    #[inline]
    pub fn reserve(&mut self) {
        if self.used as u64 * 5 >= self.homes * 4 {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let old = std::mem::replace(self, Index::new(self.used * 2 + 16));
        self.used = old.used;
        // In the order of the tags no cell has to move for another.
        let mut at = 0;
        for cell in old.cells.into_iter().filter(|&cell| cell != EMPTY) {
            at = at.max(self.home(cell >> 32));
            if at + 1 >= self.cells.len() {
                self.cells.resize(at + 2, EMPTY);
            }
            self.cells[at] = cell;
            at += 1;
        }
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use std::collections::BTreeMap;

    #[test]
    fn it_finds_what_a_plain_map_finds() {
        for stride in [1u64, 4096, 1 << 32, 0x9e37_79b9_7f4a_7c15] {
            let mut random = Stream::new(stride, "index");
            let mut keys = vec![0u64; 256];
            let mut free: Vec<u32> = (0..256).rev().collect();
            let mut plain = BTreeMap::new();
            let mut index = Index::new(256);
            for _ in 0..20_000 {
                let key = random.below(400).wrapping_mul(stride);
                assert_eq!(index.find(key, &keys), plain.get(&key).copied());
                match plain.remove(&key) {
                    Some(entry) if random.below(2) == 0 && !free.is_empty() => {
                        let other = free.pop().unwrap();
                        keys[other as usize] = key;
                        index.renumber(key, entry, other);
                        plain.insert(key, other);
                        free.push(entry);
                    }
                    Some(entry) => {
                        index.remove(key, entry);
                        free.push(entry);
                    }
                    None => {
                        let Some(entry) = free.pop() else { continue };
                        keys[entry as usize] = key;
                        index.insert(key, entry);
                        plain.insert(key, entry);
                    }
                }
            }
        }
    }

    #[test]
    fn it_grows_and_keeps_all() {
        let keys: Vec<u64> = (0..100_000).map(|n| n * 4096).collect();
        let mut index = Index::new(1);
        for (entry, &key) in keys.iter().enumerate() {
            index.reserve();
            index.insert(key, entry as u32);
        }
        assert!((0..keys.len()).all(|n| index.find(keys[n], &keys) == Some(n as u32)));
        assert_eq!(index.find(1, &keys), None);
        assert!(index.bytes() < 30 * keys.len());
    }
}
