//! Versions of sectors, for devices that have no map of their own. Tests only.

use super::{Command, Op, SECTOR, mix};
use crate::persist::persistent;
use std::collections::BTreeMap;

/// Version by sector; nothing where versions are not kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions {
    kept: Option<BTreeMap<u64, u64>>,
}

persistent!(Versions { parts { kept } });

impl Versions {
    /// Kept or not.
    pub fn new(keep: bool) -> Self {
        Versions { kept: keep.then(BTreeMap::new) }
    }

    /// Version of the sector at `offset`; 0 if it holds nothing.
    pub fn content(&self, offset: u64) -> u64 {
        self.kept.as_ref().and_then(|kept| kept.get(&(offset / SECTOR)).copied()).unwrap_or(0)
    }

    /// Does what the command does to content; answers the digest of what it reads.
    pub fn perform(&mut self, command: &Command) -> u64 {
        let Some(kept) = &mut self.kept else { return 0 };
        let (first, sectors) = (command.offset / SECTOR, command.len / SECTOR);
        match command.op {
            Op::Read => {
                return (0..sectors).fold(0u64, |digest, i| {
                    let version = kept.get(&(first + i)).copied().unwrap_or(0);
                    digest.wrapping_add(mix(version, i))
                });
            }
            Op::Write => kept.extend((0..sectors).map(|i| (first + i, command.stamp + i))),
            Op::Trim => kept.retain(|s, _| !(first..first + sectors).contains(s)),
            Op::Purge => kept.clear(),
            Op::Flush => {}
        }
        0
    }
}
