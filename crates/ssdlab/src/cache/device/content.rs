//! What the devices hold, in tests. They keep versions as every device does; what a version stands for, the cache
//! knows by a table, because a fill and a destage copy what many writes have left.

use super::busy::NONE;
use super::{CACHE, CacheDevice, Io, Kind, POOL};
use crate::device::{Command, Device, SECTOR, mix};
use crate::persist::persistent;

/// Content by version of the devices; version 0 is zeros.
pub(super) struct Versions {
    payload: Vec<u64>,
}
persistent!(Versions { state { payload } });

impl Versions {
    pub fn new() -> Self {
        Versions { payload: vec![0] }
    }
}

fn sectors(begin: u64, end: u64) -> impl Iterator<Item = u64> {
    (begin..end).step_by(SECTOR as usize)
}

impl CacheDevice {
    /// Content of a sector of a device.
    fn payload(&self, device: u32, offset: u64) -> u64 {
        let Some(versions) = &self.versions else { return 0 };
        versions.payload[self.slots[device as usize].content(offset) as usize]
    }

    /// Content of a sector of the pool's range, as the device that has the newest answers it.
    fn held(&self, at: u64) -> u64 {
        let key = at / self.keys.block.0;
        let bit = self.touched(at, at + SECTOR);
        match self.store.find(key) {
            Some(frame) if self.store.valid[frame as usize] & bit != 0 => {
                self.payload(CACHE, self.place(frame, at))
            }
            _ => self.payload(POOL, at),
        }
    }

    /// Content of a sector as a read that begins now answers it: that of a write that is under way, or what is held.
    pub(super) fn content_of(&self, at: u64) -> u64 {
        let Some(block) = self.busy.find(at / self.keys.block.0) else { return self.held(at) };
        let mut found = None;
        let mut next = self.busy.first(block);
        while next != NONE {
            let piece = &self.pieces.all[next as usize];
            let covers = piece.begin <= at && at < piece.end;
            if piece.kind == Kind::Write && piece.host != NONE && covers {
                let command = &self.hosts.all[piece.host as usize].command;
                found = Some(command.stamp + (at - command.offset) / SECTOR);
            }
            next = piece.next;
        }
        found.unwrap_or_else(|| self.held(at))
    }

    fn stamp(&mut self, content: impl Iterator<Item = u64>) -> u64 {
        let versions = self.versions.as_mut().expect("asked for where versions are kept");
        let first = versions.payload.len() as u64;
        versions.payload.extend(content);
        first
    }

    /// Takes versions for a part of what a command of the host writes.
    pub(super) fn stamp_of_host(&mut self, command: &Command, begin: u64, end: u64) -> u64 {
        if self.versions.is_none() {
            return 0;
        }
        let of = |at: u64| command.stamp + (at - command.offset) / SECTOR;
        self.stamp(sectors(begin, end).map(of))
    }

    /// Takes versions for a copy of what the pool holds.
    pub(super) fn stamp_of_pool(&mut self, begin: u64, end: u64) -> u64 {
        if self.versions.is_none() {
            return 0;
        }
        let content: Vec<u64> = sectors(begin, end).map(|at| self.payload(POOL, at)).collect();
        self.stamp(content.into_iter())
    }

    /// Takes versions for a copy of what the cache holds.
    pub(super) fn stamp_of_frames(&mut self, begin: u64, end: u64) -> u64 {
        if self.versions.is_none() {
            return 0;
        }
        let content: Vec<u64> = sectors(begin, end).map(|at| self.held(at)).collect();
        self.stamp(content.into_iter())
    }

    /// Takes versions for the cache's own table.
    pub(super) fn stamp_blank(&mut self, bytes: u64) -> u64 {
        if self.versions.is_none() {
            return 0;
        }
        self.stamp((0..bytes / SECTOR).map(|_| 0))
    }

    /// Asserts that a device's read answered what the device says that it holds.
    pub(super) fn check_digest(&self, io: &Io, digest: u64) {
        if self.versions.is_none() {
            return;
        }
        let slot = &self.slots[io.device as usize];
        let held = sectors(io.offset, io.offset + io.len)
            .zip(0..)
            .fold(0u64, |sum, (at, i)| sum.wrapping_add(mix(slot.content(at), i)));
        assert_eq!(held, digest, "a device answered another content than it holds: {io:?}");
    }

    /// Adds what a device has read to the digest of the host's command.
    pub(super) fn add_digest(&mut self, io: &Io) {
        let piece = &self.pieces.all[io.owner as usize];
        if self.versions.is_none() || piece.kind != Kind::Read {
            return;
        }
        let host = piece.host;
        let begin = self.hosts.all[host as usize].command.offset;
        let mut digest = 0u64;
        for step in sectors(0, io.len) {
            let content = self.payload(io.device, io.offset + step);
            digest = digest.wrapping_add(mix(content, (io.at + step - begin) / SECTOR));
        }
        let host = &mut self.hosts.all[host as usize];
        host.digest = host.digest.wrapping_add(digest);
    }

    /// Asserts that what is clean in the cache is what the pool holds.
    pub(super) fn verify_content(&self) {
        if self.versions.is_none() || self.store.dead {
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
                    let (here, there) = (self.held(at), self.payload(POOL, at));
                    assert_eq!(here, there, "the cache holds another byte {at} than the pool");
                }
            }
        }
    }
}
