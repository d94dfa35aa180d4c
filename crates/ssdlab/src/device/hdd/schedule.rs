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
    /// How long it has waited, ns.
    pub waited: u64,
}

/// `asptf` takes from the way to a command what it has waited, divided by this. Random reads 32 deep of a Samsung HD103UJ:
/// p99 3.6 times the mean (fio-plot's benchmark data; 4.5 times without ageing, 3.6 times here).
const AGEING: u64 = 300;

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
            name: "asptf",
            summary: "as sptf, but the way counts less the longer a command has waited, so that none waits for ever",
            reference: "Jacobson & Wilkes, Disk scheduling algorithms based on rotational position, HPL-CSP-91-7 (1991)",
            // Shifted, as a score has no sign: no disk takes a second for a way.
            build: |candidate| {
                (1_000_000_000 + candidate.positioning).saturating_sub(candidate.waited / AGEING)
            },
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
