//! Die scheduling: what a die does next when both reads and other work wait for it.
//!
//! A die has two queues: host reads, and the stream of programs, erases and collection work in
//! the order in which the flash translation layer placed them (pages of a block are programmed in
//! order, an erased block is not programmed before its erase). A policy chooses between the oldest
//! read and the other work: the head of the stream, or what is under way where the flash can suspend
//! it, or what is suspended already.

use crate::registry::{Entry, Registry};

/// What a policy may look at: the oldest read, and the operation that it would overtake.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// Position of the read in the order of arrival at the drive's flash.
    pub read: u64,
    /// Position of the other operation, which is queued, under way or suspended.
    pub other: u64,
    /// Reads that have overtaken that operation already, while it was queued or suspended.
    pub overtaken: u32,
}

/// Chooses the read (`true`) or the other operation (`false`).
pub type Policy = fn(Heads) -> bool;

/// Known scheduling policies.
pub const SCHEDULES: Registry<Policy> = Registry {
    what: "die scheduling policy",
    entries: &[
        Entry {
            name: "reads-first",
            summary: "host reads overtake programs, erases and collection work, which may wait for ever",
            reference: "Wu & He, Reducing SSD Read Latency via NAND Flash Program and Erase Suspension, FAST 2012 (read priority)",
            build: |_| true,
        },
        Entry {
            name: "reads-first-bounded",
            summary: "host reads overtake, but each operation at most eight times, queued and suspended together",
            reference: "",
            build: |heads| heads.overtaken < 8,
        },
        Entry {
            name: "fifo",
            summary: "strictly in order of arrival; nothing is suspended",
            reference: "",
            build: |heads| heads.read < heads.other,
        },
    ],
};
