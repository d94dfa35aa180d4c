//! What the cache and the pool hold, in tests.

use super::{CACHE, CacheDevice, Kind, POOL, PieceId};
use crate::contract::SECTOR;
use crate::fleet::{HostId, sectors};

impl CacheDevice {
    /// Content of a sector of the pool's range, as the device that has the newest answers it.
    fn held(&self, at: u64) -> u64 {
        let key = self.key_of(at);
        let bit = self.touched(at, at + SECTOR);
        match self.store.find(key) {
            Some(frame) if self.store.valid[frame as usize] & bit != 0 => {
                self.fleet.content(CACHE, self.place(frame, at))
            }
            _ => self.fleet.content(POOL, at),
        }
    }

    /// Content of a sector as a read that begins now answers it: that of a write that is under way, or what is held.
    pub(super) fn content_at(&self, at: u64) -> u64 {
        let Some(block) = self.busy.find(self.key_of(at)) else { return self.held(at) };
        let mut found = None;
        let mut next = self.busy.first(block);
        while next != PieceId::NONE {
            let piece = &self.pieces[next];
            let covers = piece.begin <= at && at < piece.end;
            if piece.kind == Kind::Write && piece.host != HostId::NONE && covers {
                let command = &self.fleet.hosts[piece.host].command;
                found = Some(command.stamp + (at - command.offset) / SECTOR);
            }
            next = piece.next;
        }
        found.unwrap_or_else(|| self.held(at))
    }

    /// Takes versions for a copy of what the pool holds.
    pub(super) fn stamp_of_pool(&mut self, begin: u64, end: u64) -> u64 {
        if !self.fleet.knows_content() {
            return 0;
        }
        let content: Vec<u64> =
            sectors(begin, end).map(|at| self.fleet.content(POOL, at)).collect();
        self.fleet.stamp(content.into_iter())
    }

    /// Takes versions for a copy of what the cache holds.
    pub(super) fn stamp_of_frames(&mut self, begin: u64, end: u64) -> u64 {
        if !self.fleet.knows_content() {
            return 0;
        }
        let content: Vec<u64> = sectors(begin, end).map(|at| self.held(at)).collect();
        self.fleet.stamp(content.into_iter())
    }

    /// Asserts that what is clean in the cache is what the pool holds.
    pub(super) fn verify_content(&self) {
        if !self.fleet.knows_content() || self.store.dead {
            return;
        }
        for frame in 0..self.store.frames.capacity() {
            let Some(key) = self.store.frames.key(frame) else { continue };
            if self.busy.find(key).is_some() {
                continue;
            }
            let (valid, dirty) = self.store.masks(key);
            assert_ne!(valid, 0, "an empty frame is kept");
            let mut clean = valid & !dirty;
            while let Some((from, to)) = self.next_run(key, &mut clean) {
                for at in sectors(from, to) {
                    let (here, there) = (self.held(at), self.fleet.content(POOL, at));
                    assert_eq!(here, there, "the cache holds another byte {at} than the pool");
                }
            }
        }
    }
}
