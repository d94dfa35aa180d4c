//! Optimal (MIN): the block whose next use is farthest in the future, which is known.
//!
//! Belady (1966), proved by Mattson et al. (1970): no policy that brings in every miss has fewer. Two passes: the
//! first finds when each block is used next, the second plays. Uses have distinct times, so the farthest one is the
//! highest bit of a bitmap over time, found through its summaries (64-ary tree). Cost: constant in practice;
//! 4 bytes per access beside the trace, and 4 bits.

use crate::cache::directory::Directory;
use crate::cache::hit_ratio::{Counts, Request, Tally};
use crate::cache::index::Index;
use crate::error::{Error, Result};

/// There is no next use.
const NEVER: u32 = u32::MAX;

/// A trace in blocks, and the next use of each access.
pub struct Future {
    keys: Vec<u64>,
    writes: Vec<u64>,
    next: Vec<u32>,
}

impl Future {
    /// Looks through a trace.
    ///
    /// Errors: a trace of 2^32 - 1 accesses or more.
    pub fn of(requests: impl IntoIterator<Item = Request>) -> Result<Self> {
        let (mut keys, mut writes) = (Vec::new(), Vec::new());
        for request in requests {
            for block in 0..u64::from(request.blocks) {
                if keys.len() % 64 == 0 {
                    writes.push(0u64);
                }
                writes[keys.len() / 64] |= u64::from(request.write) << (keys.len() % 64);
                keys.push(request.key.wrapping_add(block));
            }
        }
        let accesses = keys.len();
        if accesses >= NEVER as usize {
            let expected = format!("for the optimal policy fewer than {NEVER}");
            return Err(Error::value(format!("a trace of {accesses} accesses"), expected));
        }
        let mut next = vec![NEVER; accesses];
        let mut names: Vec<u64> = Vec::new();
        let mut seen: Vec<u32> = Vec::new();
        let mut index = Index::new(1024);
        for (at, &key) in keys.iter().enumerate().rev() {
            match index.find(key, &names) {
                Some(entry) => {
                    next[at] = std::mem::replace(&mut seen[entry as usize], at as u32);
                }
                None => {
                    index.reserve();
                    index.insert(key, names.len() as u32);
                    names.push(key);
                    seen.push(at as u32);
                }
            }
        }
        Ok(Future { keys, writes, next })
    }

    /// The accesses, one by one.
    pub fn requests(&self) -> impl Iterator<Item = Request> + '_ {
        (0..self.keys.len()).map(|at| Request::one(self.keys[at], self.write(at)))
    }

    fn write(&self, at: usize) -> bool {
        self.writes[at / 64] >> (at % 64) & 1 == 1
    }
}

/// A set of times whose last is found at once: a bitmap, and above each a bitmap of its words in use.
struct Times {
    levels: Vec<Vec<u64>>,
}

impl Times {
    fn new(length: usize) -> Self {
        let mut levels = vec![vec![0; length.div_ceil(64).max(1)]];
        while levels[levels.len() - 1].len() > 1 {
            let words = levels[levels.len() - 1].len();
            levels.push(vec![0; words.div_ceil(64)]);
        }
        Times { levels }
    }

    fn insert(&mut self, time: u32) {
        let mut at = time as usize;
        for level in &mut self.levels {
            level[at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    fn remove(&mut self, time: u32) {
        let mut at = time as usize;
        for level in &mut self.levels {
            level[at / 64] &= !(1 << (at % 64));
            if level[at / 64] != 0 {
                return;
            }
            at /= 64;
        }
    }

    fn last(&self) -> Option<u32> {
        let mut word = 0;
        for level in self.levels.iter().rev() {
            let bits = level[word];
            if bits == 0 {
                return None;
            }
            word = word * 64 + 63 - bits.leading_zeros() as usize;
        }
        Some(word as u32)
    }
}

/// Plays the trace through a cache of `capacity` frames.
pub fn optimal(future: &Future, capacity: u32) -> Counts {
    let mut names = Directory::new(capacity, 0);
    let mut tally = Tally::new(capacity);
    // Next uses of what is in the cache; frames whose blocks are never used again go first, in any order.
    let mut times = Times::new(future.keys.len());
    let mut done: Vec<u32> = Vec::new();
    for (at, (&key, &next)) in future.keys.iter().zip(&future.next).enumerate() {
        let found = names.find(key);
        if found.is_some() {
            times.remove(at as u32);
        }
        let slot = found.unwrap_or_else(|| {
            let slot = names.vacant().unwrap_or_else(|| {
                let slot = done.pop().unwrap_or_else(|| {
                    let last = times.last().expect("a full cache");
                    times.remove(last);
                    names.find(future.keys[last as usize]).expect("in the cache")
                });
                names.release(slot);
                slot
            });
            names.insert(key, slot);
            slot
        });
        if next == NEVER {
            done.push(slot);
        } else {
            times.insert(next);
        }
        tally.count(found.is_some(), slot, future.write(at));
    }
    tally.counts
}
