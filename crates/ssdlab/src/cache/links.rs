//! Doubly linked lists of entries in one flat array, ordered from the newest to the oldest.

use crate::persist::persistent;

/// Several circular lists; an entry is in one of them at most. Each list has an entry of its own beyond all others,
/// its end, so that no link is ever missing and none has to be asked for.
pub struct Links {
    /// Newer neighbour above, older neighbour below.
    ends: Vec<u64>,
    entries: u32,
}

persistent!(Links { parts { ends } built { entries } });

impl Links {
    /// `lists` empty lists for `entries` entries.
    pub fn new(entries: u32, lists: u32) -> Self {
        let end = |e: u32| u64::from(e) << 32 | u64::from(e);
        let mut ends = Vec::with_capacity((entries + lists) as usize);
        ends.resize(entries as usize, 0);
        ends.extend((entries..entries + lists).map(end));
        Links { ends, entries }
    }

    /// The end of a list, which follows its oldest entry and precedes its newest.
    #[inline]
    pub fn end(&self, list: u32) -> u32 {
        self.entries + list
    }

    /// Whether this is the end of a list.
    #[inline]
    pub fn is_end(&self, entry: u32) -> bool {
        entry >= self.entries
    }

    /// The next newer entry.
    #[inline]
    pub fn newer(&self, entry: u32) -> u32 {
        (self.ends[entry as usize] >> 32) as u32
    }

    /// The next older entry.
    #[inline]
    pub fn older(&self, entry: u32) -> u32 {
        self.ends[entry as usize] as u32
    }

    /// The oldest entry of a list; its end, if it is empty.
    #[inline]
    pub fn oldest(&self, list: u32) -> u32 {
        self.newer(self.end(list))
    }

    #[inline]
    fn join(&mut self, newer: u32, older: u32) {
        let (a, b) = (newer as usize, older as usize);
        self.ends[a] = self.ends[a] >> 32 << 32 | u64::from(older);
        self.ends[b] = u64::from(newer) << 32 | self.ends[b] & u64::from(u32::MAX);
    }

    /// Puts an entry that is in no list to the newest end of one.
    #[inline]
    pub fn push(&mut self, list: u32, entry: u32) {
        self.push_below(self.end(list), entry);
    }

    /// Puts an entry that is in no list next to another, or to an end, as the older of the two.
    #[inline]
    pub fn push_below(&mut self, newer: u32, entry: u32) {
        let older = self.older(newer);
        self.join(entry, older);
        self.join(newer, entry);
    }

    /// Puts an entry that is in no list to the oldest end of one.
    pub fn push_oldest(&mut self, list: u32, entry: u32) {
        let end = self.end(list);
        let oldest = self.newer(end);
        self.join(oldest, entry);
        self.join(entry, end);
    }

    /// Takes an entry out of its list.
    #[inline]
    pub fn unlink(&mut self, entry: u32) {
        let (newer, older) = (self.newer(entry), self.older(entry));
        self.join(newer, older);
    }

    /// Makes an entry the newest of a list.
    #[inline]
    pub fn renew(&mut self, list: u32, entry: u32) {
        self.unlink(entry);
        self.push(list, entry);
    }

    /// Another entry takes the place of one.
    #[inline]
    pub fn replace(&mut self, old: u32, new: u32) {
        let (newer, older) = (self.newer(old), self.older(old));
        self.join(newer, new);
        self.join(new, older);
    }

    /// The oldest entry of a list of which `may` holds.
    #[inline]
    pub fn oldest_that(&self, list: u32, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut entry = self.oldest(list);
        while !self.is_end(entry) {
            if may(entry) {
                return Some(entry);
            }
            entry = self.newer(entry);
        }
        None
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> usize {
        self.ends.capacity() * size_of::<u64>()
    }
}
