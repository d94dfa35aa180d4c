//! Versions of sectors, for devices that have no map of their own. Tests only.

use crate::contract::{Command, Op, SECTOR, digest};
use crate::persist::persistent;
use std::collections::BTreeMap;

/// Version by sector, as reads answer it and as a loss of power leaves it; nothing where versions are not
/// kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions {
    newest: Option<BTreeMap<u64, u64>>,
    durable: Option<BTreeMap<u64, u64>>,
    /// What is on its way from a volatile cache: sector and version.
    moving: Vec<(u64, u64)>,
}

persistent!(Versions { state { moving } parts { newest, durable } });

impl Versions {
    /// Kept or not.
    pub fn new(keep: bool) -> Self {
        let kept = || keep.then(BTreeMap::new);
        Versions { newest: kept(), durable: kept(), moving: Vec::new() }
    }

    /// Version of the sector at `offset`; 0 if it holds nothing.
    pub fn content(&self, offset: u64) -> u64 {
        self.newest.as_ref().and_then(|kept| kept.get(&(offset / SECTOR)).copied()).unwrap_or(0)
    }

    /// Does what the command does to content; answers the digest of what it reads. A write is durable when it
    /// has [landed](Self::land).
    pub fn perform(&mut self, command: &Command) -> u64 {
        let (Some(newest), Some(durable)) = (&mut self.newest, &mut self.durable) else { return 0 };
        let (first, sectors) = (command.offset / SECTOR, command.len / SECTOR);
        match command.op {
            Op::Read => {
                let version = |sector| newest.get(&sector).copied().unwrap_or(0);
                return digest(0, (first..first + sectors).map(version));
            }
            Op::Write => newest.extend((0..sectors).map(|i| (first + i, command.stamp + i))),
            Op::Trim => {
                for sector in first..first + sectors {
                    newest.remove(&sector);
                    durable.remove(&sector);
                }
                self.moving.retain(|(at, _)| !(first..first + sectors).contains(at));
            }
            Op::Purge => {
                newest.clear();
                durable.clear();
                self.moving.clear();
            }
            Op::Flush => {}
        }
        0
    }

    /// Does in no time what the command leaves behind for good.
    pub fn apply(&mut self, command: &Command) {
        self.perform(command);
        if command.op == Op::Write {
            self.land(command, command.len / SECTOR);
        }
    }

    /// The first `sectors` of a write have come to rest.
    pub fn land(&mut self, command: &Command, sectors: u64) {
        let (Some(newest), Some(durable)) = (&self.newest, &mut self.durable) else { return };
        for i in 0..sectors {
            let at = command.offset / SECTOR + i;
            // A write that was submitted later may have come to rest before.
            if durable.get(&at) != newest.get(&at) {
                durable.insert(at, command.stamp + i);
            }
        }
    }

    /// Sectors `first..end` leave a volatile cache as they are now.
    pub fn leave(&mut self, first: u64, end: u64) {
        let Some(newest) = &self.newest else { return };
        self.moving = newest.range(first..end).map(|(&at, &version)| (at, version)).collect();
    }

    /// Those of them before `end` have come to rest.
    pub fn arrive(&mut self, end: u64) {
        let Some(durable) = &mut self.durable else { return };
        durable.extend(self.moving.drain(..).filter(|&(at, _)| at < end));
    }

    /// What has not come to rest is gone.
    pub fn power_cut(&mut self) {
        self.moving.clear();
        self.newest.clone_from(&self.durable);
    }
}
