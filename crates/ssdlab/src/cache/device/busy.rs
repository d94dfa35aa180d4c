//! Blocks with something under way: from a block's number to the line of those who want it.

use super::piece::PieceId;
use crate::cache::index::Index;
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
    index: Index,
    keys: Vec<u64>,
    lines: Vec<Line>,
    free: Vec<u32>,
    /// Entries that the index has room for.
    room: usize,
}

impl Busy {
    pub fn new() -> Self {
        let room = 256;
        Busy { index: Index::new(room), keys: vec![], lines: vec![], free: vec![], room }
    }

    /// The entry of a block at which there is a line.
    #[inline]
    pub fn find(&self, key: u64) -> Option<u32> {
        self.index.find(key, &self.keys)
    }

    /// The entry of a block, with an empty line if there was none.
    #[inline]
    pub fn open(&mut self, key: u64) -> u32 {
        if let Some(entry) = self.find(key) {
            return entry;
        }
        let entry = match self.free.pop() {
            Some(entry) => entry,
            None => {
                self.keys.push(0);
                self.lines.push(Line::default());
                (self.keys.len() - 1) as u32
            }
        };
        self.keys[entry as usize] = key;
        self.lines[entry as usize] = Line::default();
        if self.keys.len() > self.room {
            self.room *= 2;
            self.free.push(entry);
            self.rebuild();
            self.free.pop();
        }
        self.index.insert(key, entry);
        entry
    }

    /// The line is empty.
    #[inline]
    pub fn close(&mut self, entry: u32) {
        self.index.remove(self.keys[entry as usize], entry);
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
        self.index = Index::new(self.room);
        let mut used = vec![true; self.keys.len()];
        self.free.iter().for_each(|&entry| used[entry as usize] = false);
        for (entry, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            self.index.insert(self.keys[entry], entry as u32);
        }
    }
}

impl Persist for Busy {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        let Busy { index: _, keys, lines, free, room } = self;
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
