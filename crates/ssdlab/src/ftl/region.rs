//! A region: what it has free, where it appends, what it moves.

use super::collect::Collecting;
use crate::nand::{Cause, NONE};
use crate::persist::persistent;
use std::collections::VecDeque;

/// Where data is being appended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frontier {
    pub superblock: u32,
    pub offset: u32,
    pub handle: u32,
    pub host_units: u32,
}
/// No superblock is open.
pub(super) const CLOSED: Frontier =
    Frontier { superblock: NONE, offset: 0, handle: NONE, host_units: 0 };

/// The write frontiers of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Data of the host in native mode, and what is collected unless it is kept apart.
    Host,
    /// What is collected, where it is kept apart.
    Collected,
    /// Data of the host in SLC mode.
    Slc,
    /// What is moved for wear's sake.
    Wear,
}

/// All of them.
pub(super) const LANES: [Lane; 4] = [Lane::Host, Lane::Collected, Lane::Slc, Lane::Wear];

impl Lane {
    /// On whose behalf a program unit is padded here.
    pub fn cause(self) -> Cause {
        match self {
            Lane::Host | Lane::Slc => Cause::HostWrite,
            Lane::Collected => Cause::Collection,
            Lane::Wear => Cause::Wear,
        }
    }
}

pub(super) struct Region {
    pub free: VecDeque<u32>,
    pub host: Frontier,
    pub collected: Frontier,
    pub slc: Frontier,
    pub wear: Frontier,
    pub collecting: Option<Collecting>,
    /// The superblock that is moving for wear's sake.
    pub leveling: Option<Collecting>,
    /// Copies of periodic collection that host units have carried and that are still to be made.
    pub owed: f64,
    pub valid_units: u32,
}

impl Region {
    #[inline(always)]
    pub fn frontier(&self, lane: Lane) -> &Frontier {
        match lane {
            Lane::Host => &self.host,
            Lane::Collected => &self.collected,
            Lane::Slc => &self.slc,
            Lane::Wear => &self.wear,
        }
    }
    #[inline(always)]
    pub fn frontier_mut(&mut self, lane: Lane) -> &mut Frontier {
        match lane {
            Lane::Host => &mut self.host,
            Lane::Collected => &mut self.collected,
            Lane::Slc => &mut self.slc,
            Lane::Wear => &mut self.wear,
        }
    }
    /// All of them.
    pub fn frontiers(&self) -> [&Frontier; LANES.len()] {
        LANES.map(|lane| self.frontier(lane))
    }
}

persistent!(Region {
    state { free, host, collected, slc, wear, collecting, leveling, owed, valid_units }
});
persistent!(Frontier { state { superblock, offset, handle, host_units } });
