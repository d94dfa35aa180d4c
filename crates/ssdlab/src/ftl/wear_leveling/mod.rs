//! Static wear levelling: moving data that never changes off blocks that are hardly worn.
//!
//! To add a policy: a file here that implements [`WearLeveling`], and a line in [`WEAR_LEVELINGS`].

mod threshold;

use super::Blocks;
use crate::persist::Persist;
use crate::registry::{Entry, Registry};

/// Decides, after an erase, whether a superblock should be moved for wear's sake.
pub trait WearLeveling: Persist + Send {
    /// A closed superblock of `region` whose data should move, if any.
    fn pick(&mut self, blocks: &Blocks, region: u32) -> Option<u32>;
}

/// Parameters of all wear-levelling policies.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// `threshold`: largest difference of erase counts within a region that is let be.
    pub spread: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters { spread: 20 }
    }
}

/// Builds a policy; `None` where nothing is ever moved.
pub type BuildWearLeveling = fn(&Parameters) -> Option<Box<dyn WearLeveling>>;

/// Known wear-levelling policies.
pub const WEAR_LEVELINGS: Registry<BuildWearLeveling> = Registry {
    what: "wear-levelling policy",
    entries: &[
        Entry {
            name: "none",
            summary: "only what free superblocks' rotation brings",
            reference: "",
            build: |_| None,
        },
        Entry {
            name: "threshold",
            summary: "moves the least worn superblock when erase counts differ too much",
            reference: "Chang, On efficient wear leveling for large-scale flash-memory storage systems, SAC 2007 (threshold rule, simplified)",
            build: |p| Some(Box::new(threshold::Threshold::new(p.spread))),
        },
    ],
};
