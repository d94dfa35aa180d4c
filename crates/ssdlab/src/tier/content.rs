//! What the devices hold, in tests. They keep versions as every device does; what a version stands for is in a table
//! here, because a move copies what many writes have left.

use super::{Io, Kind, Tier};
use crate::device::{Command, Device, Op, SECTOR, mix};
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

impl Tier {
    /// Content of a sector of a device.
    fn payload(&self, tier: usize, offset: u64) -> u64 {
        let Some(versions) = &self.versions else { return 0 };
        versions.payload[self.slots[tier].content(offset) as usize]
    }

    /// Content of a sector as a read that begins now answers it: that of a write that waits, or what is held.
    pub(super) fn content_of(&self, at: u64) -> u64 {
        let waits = self.held.iter().rev().find(|held| held.begin <= at && at < held.end);
        if let Some(held) = waits {
            let command = &self.hosts.all[held.host as usize].command;
            return match command.op {
                Op::Trim => 0,
                _ => command.stamp + (at - command.offset) / SECTOR,
            };
        }
        let slot = self.map.slot((at >> self.shift) as u32);
        self.payload(self.map.tier_of(slot), self.place(slot, at))
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

    /// Takes versions for a copy of what the extent of these bytes holds where it lies.
    pub(super) fn stamp_of_copy(&mut self, begin: u64, end: u64) -> u64 {
        if self.versions.is_none() {
            return 0;
        }
        let slot = self.map.slot((begin >> self.shift) as u32);
        let of = |at| self.payload(self.map.tier_of(slot), self.place(slot, at));
        let content: Vec<u64> = sectors(begin, end).map(of).collect();
        self.stamp(content.into_iter())
    }

    /// Takes versions for the map.
    pub(super) fn stamp_blank(&mut self, sectors: u64) -> u64 {
        if self.versions.is_none() {
            return 0;
        }
        self.stamp((0..sectors).map(|_| 0))
    }

    /// Asserts that a device's read answered what the device says that it holds.
    pub(super) fn check_digest(&self, io: &Io, digest: u64) {
        if self.versions.is_none() {
            return;
        }
        let slot = &self.slots[io.tier];
        let held = sectors(io.offset, io.offset + io.len)
            .zip(0..)
            .fold(0u64, |sum, (at, i)| sum.wrapping_add(mix(slot.content(at), i)));
        assert_eq!(held, digest, "a device answered another content than it holds: {io:?}");
    }

    /// Adds what a device has read to the digest of the host's command.
    pub(super) fn add_digest(&mut self, io: &Io) {
        if self.versions.is_none() || io.kind != Kind::Host || io.op != Op::Read {
            return;
        }
        let begin = self.hosts.all[io.owner as usize].command.offset;
        let mut digest = 0u64;
        for step in sectors(0, io.len) {
            let content = self.payload(io.tier, io.offset + step);
            digest = digest.wrapping_add(mix(content, (io.at + step - begin) / SECTOR));
        }
        let host = &mut self.hosts.all[io.owner as usize];
        host.digest = host.digest.wrapping_add(digest);
    }
}
