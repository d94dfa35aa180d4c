//! What is in the cache under which number: frames, and ghosts that remember keys only.
//!
//! Entries `0..capacity` are the frames; those beyond are ghosts, of which a policy may keep as many as it asked for.

use super::index::Index;
use crate::error::Result;
use crate::persist::{Archive, Part, Persist};

/// No entry.
const NONE: u32 = u32::MAX;

/// A range of entry numbers, some in use. Entries never used follow each other; freed ones are chained through
/// their keys.
struct Pool {
    end: u32,
    fresh: u32,
    free: u32,
    used: u32,
}

impl Pool {
    fn new(begin: u32, end: u32) -> Self {
        Pool { end, fresh: begin, free: NONE, used: 0 }
    }

    #[inline]
    fn take(&mut self, keys: &[u64]) -> Option<u32> {
        let entry = if self.free != NONE {
            let entry = self.free;
            self.free = keys[entry as usize] as u32;
            entry
        } else if self.fresh < self.end {
            self.fresh += 1;
            self.fresh - 1
        } else {
            return None;
        };
        self.used += 1;
        Some(entry)
    }

    #[inline]
    fn give(&mut self, keys: &mut [u64], entry: u32) {
        keys[entry as usize] = u64::from(self.free);
        self.free = entry;
        self.used -= 1;
    }
}

/// Keys of frames and ghosts, and the way from a key to its entry.
pub struct Directory {
    index: Index,
    keys: Vec<u64>,
    /// Which entries are in use, a bit each.
    live: Vec<u64>,
    frames: Pool,
    ghosts: Pool,
    capacity: u32,
}

impl Directory {
    /// `capacity` frames and at most `ghosts` ghosts, all free.
    pub fn new(capacity: u32, ghosts: u32) -> Self {
        let entries = capacity + ghosts;
        Directory {
            index: Index::new(entries as usize),
            keys: vec![0; entries as usize],
            live: vec![0; entries.div_ceil(64) as usize],
            frames: Pool::new(0, capacity),
            ghosts: Pool::new(capacity, entries),
            capacity,
        }
    }

    /// Frames.
    #[inline]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Frames in use.
    #[inline]
    pub fn len(&self) -> u32 {
        self.frames.used
    }

    /// Ghosts in use.
    #[inline]
    pub fn ghosts(&self) -> u32 {
        self.ghosts.used
    }

    /// Whether no ghost is free.
    #[inline]
    pub fn ghosts_full(&self) -> bool {
        self.ghosts.free == NONE && self.ghosts.fresh == self.ghosts.end
    }

    /// The entry of a key, frame or ghost.
    #[inline]
    pub fn find(&self, key: u64) -> Option<u32> {
        self.index.find(key, &self.keys)
    }

    /// Whether the entry is a ghost.
    #[inline]
    pub fn is_ghost(&self, entry: u32) -> bool {
        entry >= self.capacity
    }

    /// Whether the entry is in use.
    #[inline]
    pub fn is_live(&self, entry: u32) -> bool {
        self.live[entry as usize / 64] >> (entry % 64) & 1 == 1
    }

    /// The key of an entry in use.
    #[inline]
    pub fn key(&self, entry: u32) -> u64 {
        debug_assert!(self.is_live(entry));
        self.keys[entry as usize]
    }

    /// The key that a released frame held last.
    #[inline]
    pub fn last_key(&self, slot: u32) -> u64 {
        self.keys[slot as usize]
    }

    #[inline]
    fn mark(&mut self, entry: u32, live: bool) {
        let bit = 1 << (entry % 64);
        let word = &mut self.live[entry as usize / 64];
        *word = if live { *word | bit } else { *word & !bit };
    }

    /// A free frame, for [`insert`](Self::insert).
    #[inline]
    pub fn vacant(&mut self) -> Option<u32> {
        self.frames.take(&self.keys)
    }

    /// A frame that was taken or released comes to hold a key that is absent.
    #[inline]
    pub fn insert(&mut self, key: u64, slot: u32) {
        self.keys[slot as usize] = key;
        self.index.insert(key, slot);
        self.mark(slot, true);
    }

    /// The key of a ghost comes to a frame that was taken or released; the ghost is free.
    #[inline]
    pub fn revive(&mut self, ghost: u32, slot: u32) {
        let key = self.keys[ghost as usize];
        self.keys[slot as usize] = key;
        self.index.renumber(key, ghost, slot);
        self.mark(slot, true);
        self.mark(ghost, false);
        self.ghosts.give(&mut self.keys, ghost);
    }

    /// A frame gives up its key without a trace. It is released: who does so puts something else there, or gives it
    /// back.
    #[inline]
    pub fn release(&mut self, slot: u32) {
        self.index.remove(self.keys[slot as usize], slot);
        self.mark(slot, false);
    }

    /// A frame gives up its key to a ghost, of which one must be free; answers the ghost. The frame is released.
    #[inline]
    pub fn release_to_ghost(&mut self, slot: u32) -> u32 {
        let key = self.keys[slot as usize];
        let ghost =
            self.ghosts.take(&self.keys).expect("a policy keeps to the ghosts it asked for");
        self.keys[ghost as usize] = key;
        self.index.renumber(key, slot, ghost);
        self.mark(ghost, true);
        self.mark(slot, false);
        ghost
    }

    /// A frame that was taken or released is free again.
    #[inline]
    pub fn give_back(&mut self, slot: u32) {
        self.frames.give(&mut self.keys, slot);
    }

    /// A ghost is forgotten.
    #[inline]
    pub fn forget(&mut self, ghost: u32) {
        self.index.remove(self.keys[ghost as usize], ghost);
        self.mark(ghost, false);
        self.ghosts.give(&mut self.keys, ghost);
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.index.bytes() + (self.keys.capacity() + self.live.capacity()) * size_of::<u64>()
    }
}

impl Persist for Directory {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let Directory { index, keys, live, frames, ghosts, capacity: _ } = self;
        keys.persist_part(archive)?;
        live.persist_part(archive)?;
        for pool in [frames, ghosts] {
            let Pool { end: _, fresh, free, used } = pool;
            fresh.persist(archive)?;
            free.persist(archive)?;
            used.persist(archive)?;
        }
        if archive.loads() {
            // The index follows from the keys.
            *index = Index::new(keys.len());
            for entry in (0..keys.len()).filter(|e| live[e / 64] >> (e % 64) & 1 == 1) {
                index.insert(keys[entry], entry as u32);
            }
        }
        Ok(())
    }
}
