//! In what order a disk works off what it has been given (SATA NCQ, SCSI tagged queueing).

use crate::registry::{Entry, Registry};

/// What a policy may look at: one command that could be next.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Position in the order of arrival.
    pub order: u64,
    /// Cylinders that the heads have to cross, and in which direction they lie.
    pub distance: u64,
    /// Cylinders to cross if heads only move inwards and jump back to the outermost one.
    pub inwards: u64,
    /// Time until the first sector is under the head: seek and rotation, ns.
    pub positioning: u64,
}

/// The score of a candidate; the least is next, the oldest of equals.
pub type Policy = fn(&Candidate) -> u64;

/// Known policies.
pub const DISK_SCHEDULES: Registry<Policy> = Registry {
    what: "disk scheduling policy",
    entries: &[
        Entry {
            name: "sptf",
            summary: "the command that the heads reach first, rotation counted in",
            reference: "Jacobson & Wilkes, Disk scheduling algorithms based on rotational position, HPL-CSP-91-7 (1991)",
            build: |candidate| candidate.positioning,
        },
        Entry {
            name: "sstf",
            summary: "the command on the nearest cylinder",
            reference: "Denning, Effects of scheduling on file memory operations, AFIPS SJCC 1967",
            build: |candidate| candidate.distance,
        },
        Entry {
            name: "c-look",
            summary: "inwards over the cylinders that are asked for, then back to the outermost",
            reference: "Worthington, Ganger & Patt, Scheduling algorithms for modern disk drives, SIGMETRICS 1994",
            build: |candidate| candidate.inwards,
        },
        Entry {
            name: "fcfs",
            summary: "strictly in order of arrival",
            reference: "",
            build: |candidate| candidate.order,
        },
    ],
};
