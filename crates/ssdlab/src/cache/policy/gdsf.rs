//! GDSF: the object of least uses per byte, counted on top of what was evicted last, so that old uses fade.
//!
//! Cherkasova (1998), with a cost of 1: an object's worth is L + uses / bytes, and L becomes the worth of each victim;
//! among equals the one that came to its worth first goes, and what has just come may be the first. Of blocks, all
//! of one size, it makes LFU with dynamic aging; each is let in. A binary heap, which pinned frames are out of once they
//! have been its first. Cost: logarithmic at a use; 32 bytes per frame.

use super::{Policy, Sizes};
use crate::cache::directory::Directory;
use crate::cache::members::Members;
use crate::persist::persistent;

/// Uses per megabyte: the scale in which libCacheSim rounds.
const SCALE: f64 = 1.0e6;

/// The place of a frame that is not in the heap.
const ASIDE: u32 = u32::MAX;

/// Worth and since when.
type Rank = (f64, u64);

pub struct Gdsf {
    /// Frames as a heap, the least worth first.
    heap: Vec<u32>,
    place: Vec<u32>,
    rank: Vec<Rank>,
    uses: Vec<u32>,
    bytes: Vec<u32>,
    pinned: Members,
    least: f64,
    now: u64,
}

persistent!(Gdsf { state { heap, pinned, least, now } parts { place, rank, uses, bytes } });

impl Gdsf {
    pub fn new(capacity: u32) -> Self {
        let frames = capacity as usize;
        Gdsf {
            heap: Vec::new(),
            place: vec![0; frames],
            rank: vec![(0.0, 0); frames],
            uses: vec![0; frames],
            bytes: vec![1; frames],
            pinned: Members::new(u64::from(capacity)),
            least: 0.0,
            now: 0,
        }
    }

    fn before(&self, a: usize, b: usize) -> bool {
        let rank = |at: usize| self.rank[self.heap[at] as usize];
        let (a, b) = (rank(a), rank(b));
        a.0 < b.0 || a.0 == b.0 && a.1 < b.1
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a] as usize] = a as u32;
        self.place[self.heap[b] as usize] = b as u32;
    }

    /// Puts the frame at a place where it belongs.
    fn sift(&mut self, mut at: usize) {
        while at > 0 && self.before(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        loop {
            let children = [2 * at + 1, 2 * at + 2].into_iter().filter(|&c| c < self.heap.len());
            let least = children.reduce(|a, b| if self.before(b, a) { b } else { a });
            let Some(child) = least.filter(|&child| self.before(child, at)) else { return };
            self.swap(at, child);
            at = child;
        }
    }

    /// The worth of a frame follows from its uses and bytes now.
    fn weigh(&mut self, slot: u32) {
        let at = slot as usize;
        self.now += 1;
        let worth = f64::from(self.uses[at]) * SCALE / f64::from(self.bytes[at].max(1));
        self.rank[at] = (self.least + worth, self.now);
        if self.place[at] != ASIDE {
            self.sift(self.place[at] as usize);
        }
    }

    fn put(&mut self, slot: u32) {
        let at = self.heap.len();
        self.place[slot as usize] = at as u32;
        self.heap.push(slot);
        self.sift(at);
    }

    fn take(&mut self, slot: u32) {
        let at = std::mem::replace(&mut self.place[slot as usize], ASIDE);
        if at == ASIDE {
            return;
        }
        let at = at as usize;
        let last = self.heap.len() - 1;
        self.heap.swap_remove(at);
        if at < last {
            self.place[self.heap[at] as usize] = at as u32;
            self.sift(at);
        }
    }
}

impl Policy for Gdsf {
    const SIZES: Sizes = Sizes::Weighed;

    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        let uses = &mut self.uses[slot as usize];
        *uses = uses.saturating_add(1);
        self.weigh(slot);
    }

    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let mut refused = Vec::new();
        let found = loop {
            let Some(&slot) = self.heap.first() else { break None };
            self.take(slot);
            if !self.pinned.has(u64::from(slot)) {
                if may(slot) {
                    break Some(slot);
                }
                refused.push(slot);
            }
        };
        refused.into_iter().for_each(|slot| self.put(slot));
        let slot = found?;
        self.least = self.rank[slot as usize].0;
        names.release(slot);
        Some(slot)
    }

    fn admit(&mut self, _names: &mut Directory, slot: u32, _ghost: Option<u32>) {
        let at = slot as usize;
        (self.uses[at], self.bytes[at]) = (1, 1);
        self.place[at] = self.heap.len() as u32;
        self.heap.push(slot);
        self.weigh(slot);
    }

    fn sized(&mut self, slot: u32, bytes: u32) {
        self.bytes[slot as usize] = bytes;
        self.weigh(slot);
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.take(slot);
        self.pinned.remove(u64::from(slot));
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        self.pinned.set(u64::from(slot), pinned);
        if !pinned && self.place[slot as usize] == ASIDE {
            self.put(slot);
        }
    }

    fn bytes(&self) -> usize {
        let words = self.heap.capacity() + self.place.capacity() + self.uses.capacity();
        (words + self.bytes.capacity()) * 4
            + self.rank.capacity() * size_of::<Rank>()
            + self.pinned.bytes()
    }
}
