//! The random map: which blocks of a file were done in this pass.
//!
//! A bitmap with a summary above it: a bit of the upper level says that a word of the level below
//! is full, so that the next free block is found in a few steps however full the map is.

/// Set of blocks done.
#[derive(Clone, Debug)]
pub struct RandomMap {
    blocks: u64,
    /// From the blocks up to one word.
    levels: Vec<Vec<u64>>,
    /// Words of all levels when nothing is done: only the bits behind the end are set.
    free: u64,
}

impl RandomMap {
    /// A map of `blocks` blocks, none of them done.
    pub fn new(blocks: u64) -> Self {
        let mut levels = Vec::new();
        let mut len = blocks;
        loop {
            len = len.div_ceil(64).max(1);
            levels.push(vec![0u64; len as usize]);
            if len == 1 {
                break;
            }
        }
        let mut map = RandomMap { blocks, levels, free: blocks };
        map.clear();
        map
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.free = self.blocks;
        let mut bits = self.blocks;
        for level in &mut self.levels {
            level.fill(0);
            // What lies behind the end counts as done.
            if !bits.is_multiple_of(64) || bits == 0 {
                *level.last_mut().expect("a level has a word") = u64::MAX << (bits % 64);
            }
            bits = level.len() as u64;
        }
    }

    /// Whether nothing comes from `block` on.
    #[inline]
    pub fn is_end(&self, block: u64) -> bool {
        block == self.blocks
    }

    /// Blocks not done.
    #[cfg(test)]
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Whether `block` is still to be done.
    #[inline]
    pub fn is_free(&self, block: u64) -> bool {
        self.levels[0][(block >> 6) as usize] & (1 << (block & 63)) == 0
    }

    /// The first block to be done from `from` on, from the start if there is none behind.
    #[inline]
    pub fn next_free(&self, from: u64) -> Option<u64> {
        if self.free == 0 {
            return None;
        }
        self.search(from).or_else(|| self.search(0))
    }

    fn search(&self, from: u64) -> Option<u64> {
        let (mut level, mut at) = (0, from);
        loop {
            let word = (at >> 6) as usize;
            let open = !*self.levels[level].get(word)? & (u64::MAX << (at & 63));
            if open != 0 {
                at = ((word as u64) << 6) + u64::from(open.trailing_zeros());
                break;
            }
            at = word as u64 + 1;
            level += 1;
            if level == self.levels.len() {
                return None;
            }
        }
        for below in self.levels[..level].iter().rev() {
            at = (at << 6) + u64::from((!below[at as usize]).trailing_zeros());
        }
        Some(at)
    }

    /// Marks up to `count` blocks from `block` on, stopping before one that is done; returns how
    /// many were marked.
    #[inline]
    pub fn take(&mut self, block: u64, count: u64) -> u64 {
        let mut taken = 0;
        while taken < count && block + taken < self.blocks && self.is_free(block + taken) {
            self.mark(block + taken);
            taken += 1;
        }
        self.free -= taken;
        taken
    }

    #[inline]
    fn mark(&mut self, mut at: u64) {
        for level in &mut self.levels {
            let word = &mut level[(at >> 6) as usize];
            *word |= 1 << (at & 63);
            if *word != u64::MAX {
                break;
            }
            at >>= 6;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use proptest::prelude::*;

    #[test]
    fn every_block_comes_exactly_once_in_random_order() {
        for blocks in [1, 2, 63, 64, 65, 4096, 4097, 300_000] {
            let mut map = RandomMap::new(blocks);
            let mut rng = Stream::new(1, "map");
            let mut seen = vec![false; blocks as usize];
            for _ in 0..blocks {
                let block = map.next_free(rng.below(blocks)).unwrap();
                assert!(!std::mem::replace(&mut seen[block as usize], true), "{block} twice");
                assert_eq!(map.take(block, 1), 1);
            }
            assert_eq!(map.next_free(0), None);
            map.clear();
            assert_eq!(map.free(), blocks);
        }
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_plain_list(
            blocks in 1u64..9000,
            steps in prop::collection::vec((0u64..9000, 1u64..200), 1..200),
        ) {
            let mut map = RandomMap::new(blocks);
            let mut plain = vec![false; blocks as usize];
            for (at, count) in steps {
                let at = at % blocks;
                let mut order = (at..blocks).chain(0..at);
                let expected = order.find(|b| !plain[*b as usize]);
                prop_assert_eq!(map.next_free(at), expected);
                let Some(block) = expected else { break };
                let run = plain[block as usize..]
                    .iter_mut()
                    .take(count as usize)
                    .take_while(|b| !**b)
                    .map(|b| *b = true)
                    .count() as u64;
                prop_assert_eq!(map.take(block, count), run);
            }
        }
    }
}
