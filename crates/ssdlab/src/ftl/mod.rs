//! The flash translation layer: where data is placed and how space is reclaimed.
//!
//! Placement is decided in the order in which writes are admitted and never looks at time, unless
//! a policy asks for the dies' backlog. Therefore the same code serves the timed path, where a
//! [`Sink`] queues the flash operations, and the untimed path of preconditioning, where nothing
//! does: both leave the same map, bit for bit.
//!
//! Words: a *unit* is the mapping unit; where the drive compresses, physical units are *granules*, of
//! which a logical unit takes several ([`compressed`]); a *program unit* is what one (multi-plane) program
//! operation writes; a *superblock* is what is erased together: one block of every plane of every
//! die of a *region*. Collection works inside a region: a die (`collection within each die`), a
//! channel, or the whole drive.

mod append;
mod blocks;
mod check;
mod collect;
mod compression;
mod content;
mod copies;
mod counters;
mod kind;
mod layout;
mod map;
pub mod mapping;
mod open;
mod pace;
mod page_map;
pub mod placement;
mod places;
mod power;
mod reclaim;
mod relocate;
mod slc_cache;
mod space;
mod stationary;
pub mod victim;
pub mod wear_leveling;

pub use blocks::{Blocks, OPEN};
pub use collect::Pace;
pub use compression::compressed;
pub use content::Contents;
pub use counters::FtlCounters;
pub use layout::{Layout, Scope};
pub use open::{Copied, NOTHING, Placed, first_units};
pub use pace::Batch;
pub use page_map::{PageMap, Policies, Settings, UnitWrite};
pub use power::{Cut, Lost};
pub use slc_cache::{SlcCache, SlcCounters, SlcSettings, WhenFull};

use crate::nand::{Cause, NONE};
use std::ops::Range;

/// A program unit as it goes to the flash.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    /// First physical unit.
    pub first: u32,
    /// Units that hold data; the rest is padding.
    pub units: u32,
    /// Units of those that came from the host in time, and have waited in RAM.
    pub host_units: u32,
    /// On whose behalf.
    pub cause: Cause,
    /// Into a superblock in SLC mode.
    pub slc: bool,
}

/// Receives the flash operations that the translation layer decides on. What a sink has no word for, it
/// lets pass: nothing takes time, nothing is counted.
pub trait Sink {
    /// Whether host data that is placed waits for a program in time, in the write buffer until then.
    fn timed(&self) -> bool {
        false
    }
    /// Whether flash operations take time, so that what is placed is not in flash at once.
    fn takes_time(&self) -> bool {
        self.timed()
    }
    /// Backlog of a die, for placement that looks at it: 0 idle, more is busier.
    fn backlog(&self, _die: u32) -> u32 {
        0
    }
    /// Whether writes of the host wait for room, which collection should make soon.
    fn pressed(&self) -> bool {
        false
    }
    /// Whether the data of a unit is still in the controller's RAM.
    fn in_ram(&self, _ppn: u32) -> bool {
        false
    }
    /// The data of `units` from `ppn` on, just placed, is in the controller's RAM until it has been
    /// programmed.
    fn hold(&mut self, _ppn: u32, _units: u32) {}
    /// A program unit opens on `die`; the handle serves until it is closed. [`NONE`] is answered by
    /// a sink that queues nothing; a sink that does opens such a unit anew when it comes to it.
    fn open_program(&mut self, _die: u32) -> u32 {
        NONE
    }
    /// The program unit is full, or padded, with these units from its first on; none for parity.
    fn close_program(&mut self, _handle: u32, _program: Filled, _placed: &[Placed]) {}
    /// A program unit of `die` that is full as soon as it opens, and waits for no read.
    #[inline(always)]
    fn program(&mut self, die: u32, program: Filled, placed: &[Placed]) {
        let handle = self.open_program(die);
        self.close_program(handle, program, placed);
    }
    /// A read of `units` of one program unit on `die`, which lie in `range`, for collection or folding.
    fn collect_read(&mut self, _die: u32, _range: Range<u32>, _units: u32, _cause: Cause) -> u32 {
        NONE
    }
    /// A read of `units` of one program unit from `ppn` on, of which a write replaces a part, with
    /// `slc` from a superblock in SLC mode, once the read `fetch` is done, if there is one. Answers
    /// [`NONE`] where they are still in the controller's RAM.
    fn modify_read(&mut self, _die: u32, _ppn: u32, _units: u32, _slc: bool, _fetch: u32) -> u32 {
        NONE
    }
    /// A read of the translation unit `unit`, which is `units` from `ppn` on, for a command. Answers
    /// [`NONE`] where it is still in the controller's RAM.
    fn map_read(&mut self, _die: u32, _ppn: u32, _units: u32, _unit: u32) -> u32 {
        NONE
    }
    /// The read of a translation unit that is under way, or [`NONE`].
    fn map_arriving(&self, _unit: u32) -> u32 {
        NONE
    }
    /// What tells the read `read` from others that will have its number.
    fn stamp(&self, _read: u32) -> u64 {
        0
    }
    /// Whether the read with that number and stamp is not done yet.
    fn under_way(&self, _read: u32, _stamp: u64) -> bool {
        false
    }
    /// `program` needs what `read` brings.
    fn feed(&mut self, _read: u32, _program: u32) {}
    /// `count` single-unit copies within `die`; in time, `run` says where they go and what they are.
    fn copy(&mut self, _die: u32, _count: u32, _run: &[Copied], _cause: Cause) {}
    /// Erases a block of every plane of `die`: its part of a superblock of the drive.
    fn erase(&mut self, _die: u32, _superblock: u32, _cause: Cause) {}
}

/// A sink without flash behind it.
pub struct Untimed;

impl Sink for Untimed {}
