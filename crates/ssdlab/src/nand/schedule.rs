//! Die scheduling: what a die does next when both reads and other work wait for it.
//!
//! A die has two queues: host reads, and the stream of programs, erases and collection work in
//! the order in which the flash translation layer placed them (pages of a block are programmed in
//! order, an erased block is not programmed before its erase). A policy chooses between the heads.

use crate::registry::{Entry, Registry};

/// What a policy may look at: the heads of a die's two queues.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// Position of the oldest read in the order of arrival at the drive's flash.
    pub read: u64,
    /// Position of the head of the stream.
    pub stream: u64,
    /// Reads that have overtaken the head of the stream already.
    pub overtaken: u32,
}

/// Chooses the read (`true`) or the head of the stream (`false`).
pub type Policy = fn(Heads) -> bool;

/// Known scheduling policies.
pub const SCHEDULES: Registry<Policy> = Registry {
    what: "die scheduling policy",
    entries: &[
        Entry {
            name: "reads-first",
            summary: "host reads overtake all queued programs, erases and collection work",
            reference: "Wu & He, Reducing SSD Read Latency via NAND Flash Program and Erase Suspension, FAST 2012 (read priority)",
            build: |_| true,
        },
        Entry {
            name: "reads-first-bounded",
            summary: "host reads overtake, but each queued operation at most eight times",
            reference: "",
            build: |heads| heads.overtaken < 8,
        },
        Entry {
            name: "fifo",
            summary: "strictly in order of arrival",
            reference: "",
            build: |heads| heads.read < heads.stream,
        },
    ],
};
