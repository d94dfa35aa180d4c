//! What members hold, in tests. They keep versions as every device does; what a version stands for is in a table
//! here, because what a device copies from one member to another is what many writes have left.

use super::{Fleet, HostId, Io, IoId};
use crate::contract::{Command, Device, Op, SECTOR, digest};
use crate::persist::persistent;

/// Content by version of the members; version 0 is zeros.
#[derive(Default)]
pub(super) struct Payload {
    content: Vec<u64>,
}
persistent!(Payload { state { content } });

/// The sectors from `begin` to `end`, by their bytes.
pub fn sectors(begin: u64, end: u64) -> impl Iterator<Item = u64> {
    (begin..end).step_by(SECTOR as usize)
}

impl<O: Copy + Default, P: Copy + Default + std::fmt::Debug> Fleet<O, P> {
    /// The same, with contents known by version if that is asked for.
    pub fn with_payload(mut self, keep: bool) -> Self {
        self.payload = keep.then(|| Payload { content: vec![0] });
        self
    }

    /// Whether contents are known.
    #[inline]
    pub fn knows_content(&self) -> bool {
        self.payload.is_some()
    }

    /// Content of a sector of a member.
    pub fn content(&self, member: usize, offset: u64) -> u64 {
        let Some(payload) = &self.payload else { return 0 };
        payload.content[self.members[member].content(offset) as usize]
    }

    /// Takes versions for contents, one per sector: a command's stamp.
    pub fn stamp(&mut self, content: impl Iterator<Item = u64>) -> u64 {
        let Some(payload) = &mut self.payload else { return 0 };
        let first = payload.content.len() as u64;
        payload.content.extend(content);
        first
    }

    /// Takes versions for a part of what a command of the host writes.
    #[inline]
    pub fn stamp_of_host(&mut self, command: &Command, begin: u64, end: u64) -> u64 {
        if self.payload.is_none() {
            return 0;
        }
        self.stamp(sectors(begin, end).map(|at| command.stamp + (at - command.offset) / SECTOR))
    }

    /// Takes versions for so many bytes of the device's own.
    pub fn stamp_blank(&mut self, bytes: u64) -> u64 {
        self.stamp((0..bytes / SECTOR).map(|_| 0))
    }

    /// Asserts that a member's read answered what the member says that it holds.
    #[inline]
    pub(super) fn check_digest(&self, id: IoId, found: u64) {
        if self.payload.is_none() || self.ios[id].op != Op::Read {
            return;
        }
        let Io { member, offset, len, .. } = self.ios[id];
        let member = &self.members[member];
        let held = digest(0, sectors(offset, offset + len).map(|at| member.content(at)));
        assert_eq!(
            held, found,
            "a member answered another content than it holds: {:?}",
            self.ios[id]
        );
    }

    /// Adds what a member has read to the digest of a command of the host; byte `at` of the host's is the first.
    pub fn add_digest(&mut self, host: HostId, io: &Io<P>, at: u64) {
        if self.payload.is_none() || io.op != Op::Read {
            return;
        }
        let first = (at - self.hosts[host].command.offset) / SECTOR;
        let held = sectors(io.offset, io.offset + io.len).map(|at| self.content(io.member, at));
        let digest = digest(first, held);
        let host = &mut self.hosts[host];
        host.digest = host.digest.wrapping_add(digest);
    }
}
