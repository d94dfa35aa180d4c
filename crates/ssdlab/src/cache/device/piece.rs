//! Commands and their pieces.

use crate::contract::Op;
use crate::fleet::HostId;
use crate::persist::{persistent, persistent_cases, persistent_enum};
use crate::sim::Id;
use crate::stats::{Part, Parts};

/// The place of a piece.
pub(crate) type PieceId = Id<Piece>;

/// How a command of the host, or a run of blocks that is destaged, is cut.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cut {
    /// It goes past the cache as far as it can.
    pub past: bool,
    /// The chain of its pieces.
    pub first: PieceId,
    pub last: PieceId,
    /// Pieces that are not done, and those not yet ready where all go on together (TRIM, destaging).
    pub pieces: u32,
    pub unready: u32,
    /// The piece of a TRIM that was ready last.
    pub ready_last: PieceId,
    /// The number of a flush.
    pub flush: u64,
}
persistent!(Cut { state { past, first, last, pieces, unready, ready_last, flush } });

/// What a piece is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Kind {
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
pub(crate) enum Hold {
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
    pub fn is_compatible(self, other: Hold) -> bool {
        matches!((self, other), (Hold::Read, Hold::Read | Hold::Copy) | (Hold::Copy, Hold::Read))
    }
}

/// What a piece is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Stage {
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
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    pub kind: Kind,
    pub hold: Hold,
    pub stage: Stage,
    pub granted: bool,
    pub host: HostId,
    /// The next piece of the same host.
    pub sibling: PieceId,
    /// Block, bytes within the pool.
    pub key: u64,
    pub begin: u64,
    pub end: u64,
    /// Sub-blocks that it touches.
    pub mask: u64,
    /// Those that it brings into the cache, and those of them that the pool does not get.
    pub cached: u64,
    pub dirty: u64,
    /// Those that were in the cache alone, and that it drops because the pool gets them.
    pub dropped: u64,
    /// Dirty sub-blocks promised to it below the mark: writes beside it need no room for them.
    pub promised: u64,
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
    pub next: PieceId,
    pub prev: PieceId,
}
persistent!(Piece {
    state {
        kind, hold, stage, granted, host, sibling, key, begin, end, mask, cached, dirty, dropped, promised, frame,
        fills, entry, ios, since, parts, block, next, prev,
    }
});

/// What a command of a device is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// So many pieces in a chain, and the byte of the pool with which it begins.
    Pieces(PieceId, u32, u64),
    /// All of a command: a TRIM of the pool, a flush, a purge.
    Command(HostId),
    /// The table when the cache starts, of which this byte is next.
    Table(u64),
}
persistent_cases!(Purpose { Pieces(first, count, at), Command(host), Table(next) });

/// Neighbouring parts of pieces on their way to the pool, as one command.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub op: Op,
    pub offset: u64,
    pub len: u64,
    pub first: PieceId,
    pub last: PieceId,
    pub pieces: u32,
}

impl Run {
    pub fn new(op: Op) -> Self {
        Run { op, offset: 0, len: 0, first: PieceId::NONE, last: PieceId::NONE, pieces: 0 }
    }
}

impl Piece {
    /// Accounts for the time up to now: the parts of a command that was sent when the stage began, the rest was
    /// waiting.
    #[inline]
    pub fn spend(&mut self, now: u64, parts: &Parts) {
        self.parts.add_all(parts);
        self.since += parts.total();
        self.wait(now);
    }

    /// The time up to now was waiting.
    #[inline]
    pub fn wait(&mut self, now: u64) {
        self.parts.add(Part::Cache, now - self.since);
        self.since = now;
    }
}
