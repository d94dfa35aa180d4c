//! Victim policies: which superblock is collected next.
//!
//! To add one: a file here that implements [`VictimPolicy`], and an entry in [`VICTIMS`].

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod random;
mod windowed;

use super::Blocks;
use crate::persist::Persist;
use crate::registry::{Entry, Registry};
use crate::rng::Stream;

/// Chooses what to collect in a region that has at least one closed superblock.
pub trait VictimPolicy: Persist + Send {
    /// A closed superblock of `region`. `now` is the number of host units written so far.
    fn pick(&mut self, blocks: &mut Blocks, region: u32, now: u64) -> u32;

    /// What it would pick now, if that is easily told: a hint for the caches of the machine that simulates.
    fn likely(&self, _blocks: &Blocks, _region: u32) -> Option<u32> {
        None
    }
}

/// Parameters of all victim policies; each takes its own.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// `d-choices`: how many superblocks are compared.
    pub choices: u32,
    /// `windowed`: share of the closed superblocks, the oldest, that is searched.
    pub window: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters { choices: 10, window: 0.1 }
    }
}

/// Builds a policy from the parameters and its own random stream.
pub type BuildVictim = fn(&Parameters, Stream) -> Box<dyn VictimPolicy>;

/// Known victim policies.
pub const VICTIMS: Registry<BuildVictim> = Registry {
    what: "victim policy",
    entries: &[
        Entry {
            name: "greedy",
            summary: "the superblock with the fewest valid units",
            reference: "Bux & Iliadis, Performance of greedy garbage collection in flash-based SSDs, Performance Evaluation 67 (2010)",
            build: |_, _| Box::new(greedy::Greedy),
        },
        Entry {
            name: "fifo",
            summary: "the superblock that was closed first (LRU)",
            reference: "Desnoyers, Analytic models of SSD write performance, ACM ToS 10 (2014)",
            build: |_, _| Box::new(fifo::Fifo),
        },
        Entry {
            name: "random",
            summary: "any superblock",
            reference: "Van Houdt, A mean field model for a class of garbage collection algorithms, SIGMETRICS 2013 (d = 1)",
            build: |_, stream| Box::new(random::Random(stream)),
        },
        Entry {
            name: "d-choices",
            summary: "the best of d superblocks drawn at random",
            reference: "Van Houdt, A mean field model for a class of garbage collection algorithms, SIGMETRICS 2013",
            build: |p, stream| Box::new(d_choices::DChoices { choices: p.choices.max(1), stream }),
        },
        Entry {
            name: "windowed",
            summary: "greedy among the oldest share of the superblocks",
            reference: "Hu et al., Write amplification analysis in flash-based solid state drives, SYSTOR 2009",
            build: |p, _| Box::new(windowed::Windowed { window: p.window }),
        },
        Entry {
            name: "cost-benefit",
            summary: "weighs the space gained against the copying and prefers old data",
            reference: "Kawaguchi, Nishioka & Motoda, A flash-memory based file system, USENIX 1995",
            build: |_, _| Box::new(cost_benefit::CostBenefit),
        },
    ],
};
