//! Versions of sectors, for devices that have no map of their own. Tests only.

use crate::contract::{Command, Op, SECTOR, digest};
use crate::persist::persistent;
use std::ops::Range;

/// Version by sector, up to the last that was ever written; 0 where a sector holds nothing. Flat, since the
/// devices of tests are small and are saved often.
#[derive(Clone, Debug, Default)]
struct BySector {
    versions: Vec<u64>,
}

persistent!(BySector { state { versions } });

impl BySector {
    fn get(&self, sector: u64) -> u64 {
        self.versions.get(sector as usize).copied().unwrap_or(0)
    }

    fn set(&mut self, sector: u64, version: u64) {
        if sector as usize >= self.versions.len() {
            self.versions.resize(sector as usize + 1, 0);
        }
        self.versions[sector as usize] = version;
    }

    /// Sectors hold nothing any more.
    fn forget(&mut self, sectors: Range<u64>) {
        let end = (sectors.end as usize).min(self.versions.len());
        if let Some(held) = self.versions.get_mut(sectors.start as usize..end) {
            held.fill(0);
        }
    }
}

/// Version by sector, as reads answer it and as a loss of power leaves it; nothing where versions are not
/// kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions {
    newest: Option<BySector>,
    durable: Option<BySector>,
    /// What is on its way from a volatile cache: sector and version.
    moving: Vec<(u64, u64)>,
}

persistent!(Versions { state { moving } parts { newest, durable } });

impl Versions {
    /// Kept or not.
    pub fn new(keep: bool) -> Self {
        let kept = || keep.then(BySector::default);
        Versions { newest: kept(), durable: kept(), moving: Vec::new() }
    }

    /// Version of the sector at `offset`; 0 if it holds nothing.
    pub fn content(&self, offset: u64) -> u64 {
        self.newest.as_ref().map_or(0, |kept| kept.get(offset / SECTOR))
    }

    /// Does what the command does to content; answers the digest of what it reads. A write is durable when it
    /// has [landed](Self::land).
    #[inline]
    pub fn perform(&mut self, command: &Command) -> u64 {
        if self.newest.is_none() { 0 } else { self.perform_kept(command) }
    }

    #[cold]
    fn perform_kept(&mut self, command: &Command) -> u64 {
        let (Some(newest), Some(durable)) = (&mut self.newest, &mut self.durable) else { return 0 };
        let (first, sectors) = (command.offset / SECTOR, command.len / SECTOR);
        let range = first..first + sectors;
        match command.op {
            Op::Read => return digest(0, range.map(|sector| newest.get(sector))),
            Op::Write => {
                range.zip(command.stamp..).for_each(|(sector, stamp)| newest.set(sector, stamp));
            }
            Op::Trim => {
                newest.forget(range.clone());
                durable.forget(range.clone());
                self.moving.retain(|(at, _)| !range.contains(at));
            }
            Op::Purge => {
                newest.versions.clear();
                durable.versions.clear();
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
    #[inline]
    pub fn land(&mut self, command: &Command, sectors: u64) {
        if self.newest.is_some() {
            self.land_kept(command, sectors);
        }
    }

    #[cold]
    fn land_kept(&mut self, command: &Command, sectors: u64) {
        let (Some(newest), Some(durable)) = (&self.newest, &mut self.durable) else { return };
        for i in 0..sectors {
            let at = command.offset / SECTOR + i;
            // A write that was submitted later may have come to rest before.
            if durable.get(at) != newest.get(at) {
                durable.set(at, command.stamp + i);
            }
        }
    }

    /// Sectors `first..end` leave a volatile cache as they are now.
    pub fn leave(&mut self, first: u64, end: u64) {
        let Some(newest) = &self.newest else { return };
        let held = (first..end).map(|at| (at, newest.get(at)));
        self.moving = held.filter(|&(_, version)| version != 0).collect();
    }

    /// Those of them before `end` have come to rest.
    pub fn arrive(&mut self, end: u64) {
        let Some(durable) = &mut self.durable else { return };
        for (at, version) in self.moving.drain(..).filter(|&(at, _)| at < end) {
            durable.set(at, version);
        }
    }

    /// What has not come to rest is gone.
    pub fn power_cut(&mut self) {
        self.moving.clear();
        self.newest.clone_from(&self.durable);
    }
}
