//! Attribution: where the time of a command went.

use crate::error::Result;
use crate::persist::{Archive, Persist};
use std::ops::{Index, IndexMut};

/// One place where a command spends time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Part {
    /// Transfer over the host link and its per-command overhead.
    Link,
    /// Waiting for a queue slot of the link.
    LinkWait,
    /// Command handling by the controller, waiting for it included.
    Controller,
    /// Waiting for map entries that are not in RAM.
    MapFetch,
    /// Waiting for room in the write buffer.
    BufferWait,
    /// Waiting for the turn that a limit on host writes gives, behind other writes included.
    WriteLimit,
    /// Waiting for the old content of a partly written unit.
    ReadModifyWrite,
    /// The die was busy with other host work.
    DieHost,
    /// The die was busy with collection (or wear levelling).
    DieCollection,
    /// The die was busy with the map: translation units, merging of extents.
    DieMap,
    /// The die was busy with folding the SLC cache.
    DieFold,
    /// The die was busy with parity of the drive's own stripes.
    DieParity,
    /// Sensing, programming or erasing cells.
    Cells,
    /// Waiting for the channel, register held.
    ChannelWait,
    /// Transfer over the channel.
    Channel,
    /// Waiting for a stripe of an array: for earlier writes of its rows, or for room in the cache.
    StripeWait,
    /// Waiting for old data and parity of a stripe that is written in part.
    Parity,
    /// Waiting for the write-intent bitmap of an array.
    Bitmap,
    /// Waiting for the slowest member of an array, beyond what its members needed on the average.
    SlowestMember,
    /// Waiting for other work of a disk's heads.
    DiskWait,
    /// Moving the heads to the track.
    Seek,
    /// Waiting until the sector comes around.
    Rotation,
    /// Sectors passing under the head, switches of tracks between them included.
    Platter,
    /// Cache work: miss, fill, destage; in a controller card, waiting for room in its RAM.
    Cache,
    /// Waiting for an extent that is being moved between tiers, or behind a purge of them.
    MoveWait,
    /// Command handling by a controller card, waiting for it and for one of its places included.
    Card,
    /// Transfer over a bandwidth that several share (a card, a bus), waiting for it included.
    Bus,
    /// Plain service of a device that has no finer parts, waiting for it included.
    Service,
}

/// Number of parts.
pub const PARTS: usize = 28;

/// Names of the parts as they appear in results, in the order of [`Part`].
pub const PART_NAMES: [&str; PARTS] = [
    "link",
    "link_wait",
    "controller",
    "map_fetch",
    "buffer_wait",
    "write_limit",
    "read_modify_write",
    "die_host",
    "die_collection",
    "die_map",
    "die_fold",
    "die_parity",
    "cells",
    "channel_wait",
    "channel",
    "stripe_wait",
    "parity",
    "bitmap",
    "slowest_member",
    "disk_wait",
    "seek",
    "rotation",
    "platter",
    "cache",
    "move_wait",
    "card",
    "bus",
    "service",
];

/// Nanoseconds by part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Parts(pub [u64; PARTS]);

impl Parts {
    /// All parts together.
    #[inline]
    pub fn total(&self) -> u64 {
        // Four sums that do not wait for each other.
        let mut sums = [0; 4];
        for part in self.0.chunks_exact(4) {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        const { assert!(PARTS.is_multiple_of(4)) };
        sums.iter().sum()
    }
    /// Adds `other` part by part.
    #[inline]
    pub fn add(&mut self, other: &Parts) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a += b;
        }
    }
}

impl Index<Part> for Parts {
    type Output = u64;
    #[inline]
    fn index(&self, part: Part) -> &u64 {
        &self.0[part as usize]
    }
}

impl IndexMut<Part> for Parts {
    #[inline]
    fn index_mut(&mut self, part: Part) -> &mut u64 {
        &mut self.0[part as usize]
    }
}

impl Persist for Parts {
    fn persist(&mut self, archive: &mut Archive<'_>) -> Result<()> {
        self.0.persist(archive)
    }
}
