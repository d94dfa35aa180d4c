//! When the write buffer lets go of what it holds, and of what first.
//!
//! What has been let go is placed in flash, and a write to it finds it there; what is still held is replaced
//! by the next write to it. So the longer a policy holds data, the more it absorbs, and the less room
//! is left for bursts. To add one: a struct here that implements [`Drain`], and an entry in [`DRAINS`].

use crate::registry::{Entry, Registry};

/// What a buffer holds, in physical units.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Dirty units that have not been let go, at least one.
    pub dirty: u32,
    /// The size of the buffer.
    pub size: u32,
    /// What one program operation writes.
    pub program: u32,
    /// Whether a die has less than two programs of host data: one under way, and one ready behind it.
    pub die_free: bool,
    /// Whether a write waits for room.
    pub full: bool,
    /// Whether the host has been quiet for `write_buffer.idle_after`.
    pub idle: bool,
}

/// Decides when a program unit's worth of dirty units goes to the flash.
pub trait Drain: Send {
    /// Whether the oldest go now; asked again after each program unit's worth.
    fn drains(&self, held: &Held) -> bool;

    /// Whether a unit counts as new when it is written again.
    fn renews(&self) -> bool {
        false
    }
}

/// Parameters of all policies.
#[derive(Clone, Copy, Debug)]
pub struct DrainParameters {
    /// Share of the buffer that dirty units may fill.
    pub watermark: f64,
}

/// Each unit at once: nothing is ever found in the buffer.
struct Immediate;

impl Drain for Immediate {
    fn drains(&self, _held: &Held) -> bool {
        true
    }
}

/// Whole program units while a die can take them; also less than one where a write waits for room.
struct ProgramUnit;

impl Drain for ProgramUnit {
    fn drains(&self, held: &Held) -> bool {
        held.die_free && (held.dirty >= held.program || held.full)
    }
}

/// The same above a share of the buffer, or when the host is quiet.
struct Watermark {
    share: f64,
    renews: bool,
}

impl Drain for Watermark {
    fn drains(&self, held: &Held) -> bool {
        let above = f64::from(held.dirty) > self.share * f64::from(held.size);
        let whole = held.dirty >= held.program;
        held.die_free && whole && (above || held.idle)
    }

    fn renews(&self) -> bool {
        self.renews
    }
}

/// Builds a policy.
pub type BuildDrain = fn(&DrainParameters) -> Box<dyn Drain>;

/// Known policies.
pub const DRAINS: Registry<BuildDrain> = Registry {
    what: "drain policy",
    entries: &[
        Entry {
            name: "program-unit",
            summary: "whole program units, the oldest data first, as soon as a die can take one",
            reference: "",
            build: |_| Box::new(ProgramUnit),
        },
        Entry {
            name: "watermark",
            summary: "the same only above a share of the buffer, or when the host is quiet",
            reference: "Linux, dm-writecache (high_watermark: writeback starts at 50 % by default)",
            build: |p| Box::new(Watermark { share: p.watermark, renews: false }),
        },
        Entry {
            name: "least-recent",
            summary: "above a share of the buffer, or when the host is quiet, the least recently written data first",
            reference: "Kim & Ahn, BPLRU, FAST 2008 (there by block); Tavakkol et al., MQSim, FAST 2018 (its data cache)",
            build: |p| Box::new(Watermark { share: p.watermark, renews: true }),
        },
        Entry {
            name: "immediate",
            summary: "each unit as it comes: overwrites are never absorbed",
            reference: "",
            build: |_| Box::new(Immediate),
        },
    ],
};
