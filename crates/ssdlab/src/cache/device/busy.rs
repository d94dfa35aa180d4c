//! Blocks with something under way: from a block's number to the line of those who want it.
//!
//! Such a block is found by chains of entries that share a hash: they come and go with every command, and are few.

use super::NONE;
use super::piece::PieceId;
use crate::error::Result;
use crate::persist::{Archive, Persist};

/// The ends of a line of pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    pub first: PieceId,
    pub last: PieceId,
}
crate::persist::persistent!(Line { state { first, last } });

/// See the module.
pub(super) struct Busy {
    /// First entry of each chain; a power of two of them.
    heads: Vec<u32>,
    /// By entry: the next one of its chain.
    next: Vec<u32>,
    keys: Vec<u64>,
    lines: Vec<Line>,
    free: Vec<u32>,
    /// Entries that there are chains for.
    room: usize,
}

impl Busy {
    pub fn new() -> Self {
        let room = 256;
        let heads = vec![NONE; room];
        Busy { heads, next: vec![], keys: vec![], lines: vec![], free: vec![], room }
    }

    /// The chain that a block is in.
    #[inline]
    fn chain(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.heads.len() - 1)
    }

    /// The entry of a block at which there is a line.
    #[inline]
    pub fn find(&self, key: u64) -> Option<u32> {
        let mut entry = self.heads[self.chain(key)];
        while entry != NONE {
            if self.keys[entry as usize] == key {
                return Some(entry);
            }
            entry = self.next[entry as usize];
        }
        None
    }

    /// Puts an entry first in the chain of its block.
    #[inline]
    fn link(&mut self, key: u64, entry: u32) {
        let chain = self.chain(key);
        self.next[entry as usize] = std::mem::replace(&mut self.heads[chain], entry);
    }

    /// The entry of a block, with an empty line if there was none.
    #[inline]
    pub fn open(&mut self, key: u64) -> u32 {
        if let Some(entry) = self.find(key) {
            return entry;
        }
        let Some(entry) = self.free.pop() else { return self.add(key) };
        self.keys[entry as usize] = key;
        self.link(key, entry);
        entry
    }

    #[cold]
    fn add(&mut self, key: u64) -> u32 {
        let entry = self.keys.len() as u32;
        self.keys.push(key);
        self.lines.push(Line::default());
        self.next.push(NONE);
        if self.keys.len() > self.room {
            self.room *= 2;
            self.rebuild();
        } else {
            self.link(key, entry);
        }
        entry
    }

    /// The last one has left the line.
    #[inline]
    pub fn close(&mut self, entry: u32) {
        self.lines[entry as usize] = Line::default();
        let chain = self.chain(self.keys[entry as usize]);
        let after = self.next[entry as usize];
        let mut at = self.heads[chain];
        if at == entry {
            self.heads[chain] = after;
        } else {
            while self.next[at as usize] != entry {
                at = self.next[at as usize];
            }
            self.next[at as usize] = after;
        }
        self.free.push(entry);
    }

    #[inline]
    pub fn line(&mut self, entry: u32) -> &mut Line {
        &mut self.lines[entry as usize]
    }

    #[inline]
    pub fn first(&self, entry: u32) -> PieceId {
        self.lines[entry as usize].first
    }

    /// Blocks with a line.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        let mut all: Vec<u64> = (0..self.keys.len())
            .filter(|&entry| self.find(self.keys[entry]) == Some(entry as u32))
            .map(|entry| self.keys[entry])
            .collect();
        all.sort_unstable();
        all.into_iter()
    }

    fn rebuild(&mut self) {
        self.heads = vec![NONE; self.room];
        self.next = vec![NONE; self.keys.len()];
        let mut used = vec![true; self.keys.len()];
        self.free.iter().for_each(|&entry| used[entry as usize] = false);
        for (entry, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            self.link(self.keys[entry], entry as u32);
        }
    }
}

impl Persist for Busy {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let Busy { heads: _, next: _, keys, lines, free, room } = self;
        keys.persist(archive)?;
        lines.persist(archive)?;
        free.persist(archive)?;
        room.persist(archive)?;
        if archive.loads() {
            self.rebuild();
        }
        Ok(())
    }
}
