//! Commands and their pieces.

use super::busy::NONE;
use crate::device::{Command, Op};
use crate::persist::{persistent, persistent_enum};
use crate::stats::{Part, Parts};

/// A command of the host, or a run of blocks that is destaged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host {
    pub command: Command,
    /// It destages; nobody waits for it.
    pub own: bool,
    /// It goes past the cache as far as it can.
    pub past: bool,
    pub submitted: u64,
    pub first: u32,
    /// Pieces that are not done, and those not yet ready where all go on together (TRIM, destaging).
    pub pieces: u32,
    pub unready: u32,
    /// The last piece while they are added; then commands for all of it in flight (TRIM of the pool, flush, purge).
    pub whole: u32,
    pub parts: Parts,
    pub digest: u64,
}
persistent!(Host {
    state { command, own, past, submitted, first, pieces, unready, whole, parts, digest }
});

/// What a piece is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    #[default]
    Read,
    Write,
    Trim,
    Fill,
    Destage,
}
persistent_enum!(Kind { Read, Write, Trim, Fill, Destage });

/// Who may be at the same sub-blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hold {
    /// Others that read, and one that copies.
    #[default]
    Read,
    /// Those that read: it copies.
    Copy,
    /// Nobody.
    Alone,
}
persistent_enum!(Hold { Read, Copy, Alone });

impl Hold {
    pub fn bears(self, other: Hold) -> bool {
        matches!((self, other), (Hold::Read, Hold::Read | Hold::Copy) | (Hold::Copy, Hold::Read))
    }
}

/// What a piece is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stage {
    /// In line, or for room in the cache.
    #[default]
    Waits,
    /// What the host asked for.
    Data,
    /// Reading what is to be copied.
    CopyRead,
    /// Waiting for its neighbours.
    Ready,
    /// Writing it.
    CopyWrite,
    /// Writing the entry of the table.
    Entry,
}
persistent_enum!(Stage { Waits, Data, CopyRead, Ready, CopyWrite, Entry });

/// A part of a command within one block, or work of the cache's own on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Piece {
    pub kind: Kind,
    pub hold: Hold,
    pub stage: Stage,
    pub active: bool,
    pub granted: bool,
    pub host: u32,
    /// The next piece of the same host.
    pub sibling: u32,
    /// Block, bytes within the pool.
    pub key: u64,
    pub begin: u64,
    pub end: u64,
    /// Sub-blocks that it touches.
    pub mask: u64,
    /// Those that it brings into the cache, and those of them that the pool does not get.
    pub cached: u64,
    pub dirty: u64,
    /// Dirty sub-blocks promised to it below the mark.
    pub promised: u32,
    pub frame: u32,
    /// To be filled when the host has its answer.
    pub fills: bool,
    /// The entry of the table must be written.
    pub entry: bool,
    /// Commands in flight.
    pub ios: u32,
    /// Up to when `parts` account for the time.
    pub since: u64,
    pub parts: Parts,
    /// The line at its block.
    pub block: u32,
    pub next: u32,
    pub prev: u32,
}
persistent!(Piece {
    state {
        kind, hold, stage, active, granted, host, sibling, key, begin, end, mask, cached, dirty, promised, frame,
        fills, entry, ios, since, parts, block, next, prev,
    }
});

/// A command of a device in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Io {
    pub active: bool,
    /// The cache device, or the pool.
    pub device: u32,
    pub op: Op,
    /// Where it is on the device, and which byte of the pool that is.
    pub offset: u64,
    pub len: u64,
    pub at: u64,
    /// The first of the pieces that wait for it, or the host where it is for all of it.
    pub owner: u32,
    pub pieces: u32,
    pub whole: bool,
}
persistent!(Io { state { active, device, op, offset, len, at, owner, pieces, whole } });

/// Neighbouring parts of pieces on their way to the pool, as one command.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub op: Op,
    pub offset: u64,
    pub len: u64,
    pub first: u32,
    pub last: u32,
    pub pieces: u32,
}

impl Run {
    pub fn new(op: Op) -> Self {
        Run { op, offset: 0, len: 0, first: NONE, last: NONE, pieces: 0 }
    }
}

impl Piece {
    /// Accounts for the time up to now: the parts of a command that was sent when the stage began, the rest was
    /// waiting.
    #[inline]
    pub fn spend(&mut self, now: u64, parts: &Parts) {
        self.parts.add(parts);
        self.parts[Part::Cache] += now - self.since - parts.total();
        self.since = now;
    }
}
