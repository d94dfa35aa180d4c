//! Versions of sectors, for devices that have no map of their own. Tests only.

use crate::contract::{Command, Op, SECTOR, digest};
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
                let version = |sector| kept.get(&sector).copied().unwrap_or(0);
                return digest(0, (first..first + sectors).map(version));
            }
            Op::Write => kept.extend((0..sectors).map(|i| (first + i, command.stamp + i))),
            Op::Trim => {
                for sector in first..first + sectors {
                    kept.remove(&sector);
                }
            }
            Op::Purge => kept.clear(),
            Op::Flush => {}
        }
        0
    }
}
