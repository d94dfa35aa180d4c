//! Wear levelling. Dynamic: which free block is written next. Static: moving data that never changes off
//! blocks that are hardly worn.
//!
//! To add a policy: a file here that implements [`WearLeveling`], and an entry in [`WEAR_LEVELINGS`].

mod dynamic;
mod threshold;

use super::Blocks;
use crate::persist::Persist;
use crate::registry::{Entry, Registry};

/// Decides which free superblock is written next and, after an erase, whether one should be moved for wear's
/// sake.
pub trait WearLeveling: Persist + Send {
    /// Place of one of these free superblocks, each with its place, in the order in which they became free; `None`
    /// if there are none. The least worn, but the most worn for what moves for wear's sake (`cold`). Cost: a look at each; there are few in a drive that is full.
    fn choose(
        &self,
        blocks: &Blocks,
        free: &mut dyn Iterator<Item = (usize, u32)>,
        cold: bool,
    ) -> Option<usize> {
        let wear = |&(_, superblock): &(usize, u32)| {
            let erases = blocks.erases[superblock as usize];
            if cold { u32::MAX - erases } else { erases }
        };
        free.min_by_key(wear).map(|(at, _)| at)
    }

    /// Whether it ever moves anything.
    fn moves_data(&self) -> bool {
        false
    }

    /// A closed superblock of a region whose data should move, if any; `free`: those to which it could; `old`: where
    /// in the order of closing that came (as [`Blocks::closed_at`]) which has stayed over a drive write.
    fn pick(
        &mut self,
        _blocks: &Blocks,
        _region: u32,
        _free: &mut dyn Iterator<Item = u32>,
        _old: u64,
    ) -> Option<u32> {
        None
    }
}

/// Parameters of all wear-levelling policies.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// `threshold`: how much more often a free superblock may have been erased than one whose data stays.
    pub spread: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters { spread: 20 }
    }
}

/// Builds a policy; `None` where wear decides nothing.
pub type BuildWearLeveling = fn(&Parameters) -> Option<Box<dyn WearLeveling>>;

/// Known wear-levelling policies.
pub const WEAR_LEVELINGS: Registry<BuildWearLeveling> = Registry {
    what: "wear-levelling policy",
    entries: &[
        Entry {
            name: "none",
            summary: "free blocks are written in the order in which they became free",
            reference: "",
            build: |_| None,
        },
        Entry {
            name: "dynamic",
            summary: "of the free blocks, the least worn is written next: as none where ftl.gc.low is 1 and all of a drive holds data, as then one is free",
            reference: "Chang, Hsieh & Kuo, Endurance enhancement of flash-memory storage systems: an efficient static wear leveling design, DAC 2007 (what it calls dynamic)",
            build: |_| Some(Box::new(dynamic::Dynamic)),
        },
        Entry {
            name: "threshold",
            summary: "the same, and data that stays moves to a free superblock that is worn too much more than its own",
            reference: "Chang, On efficient wear leveling for large-scale flash-memory storage systems, SAC 2007 (threshold rule, simplified)",
            build: |p| Some(Box::new(threshold::Threshold::new(p.spread))),
        },
    ],
};
