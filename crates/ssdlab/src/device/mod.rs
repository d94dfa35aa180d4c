//! The device contract.
//!
//! A device is a state machine without a clock. Virtual time drives it in an experiment; nothing
//! in it reads a clock, sleeps, prints or draws randomness except from a labelled stream.
//!
//! What every device promises (the law tests run over every device and stack of devices):
//! each command completes exactly once, not before it was submitted; completions come in time
//! order; the parts of a completion add up to its latency.

mod controller;
mod counts;
pub mod hdd;
mod link;
pub mod measured;
mod null;
mod partition;
pub mod ssd;
mod versions;

pub use controller::{Controller, ControllerKeys, RamKeys, RamOrder, WriteMode};
pub use counts::{HOST, HostCounts, PowerCounts};
pub use hdd::{Hdd, HddKeys};
pub use link::{Duplex, LatencyOf, Link, LinkKeys};
pub use measured::{Measured, MeasuredKeys};
pub use null::{Null, NullKeys};
pub use partition::{Partition, PartitionKeys};

use crate::array::{Array, ArrayKeys};
use crate::cache::device::{CacheDevice, CacheKeys};
use crate::error::Result;
use crate::persist::{Persist, persistent, persistent_enum};
use crate::registry::{Entry, Registry};
use crate::rig::{keys_of, memory_below, memory_members, take_below, take_members, take_part};
use crate::rng::Stream;
use crate::stats::Parts;
use crate::tier::{Tier, TierKeys};

/// What a command asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Op {
    /// Read `len` bytes at `offset`.
    #[default]
    Read,
    /// Write `len` bytes at `offset`.
    Write,
    /// Deallocate the device's mapping units that lie wholly within `len` bytes at `offset`; later
    /// reads of those answer zeros. Parts of units keep their content.
    Trim,
    /// Completes when everything that was completed before is safe from power loss.
    Flush,
    /// Erase everything: back to the state fresh out of the box (offset and length are ignored).
    Purge,
}

/// Bytes per sector: the unit of addresses; offsets and lengths are multiples of it.
pub const SECTOR: u64 = 512;

/// One request to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Command {
    /// Chosen by the submitter, handed back in the completion; unique among those in flight.
    pub tag: u64,
    /// What is asked for.
    pub op: Op,
    /// First byte; a multiple of [`SECTOR`].
    pub offset: u64,
    /// Bytes; a multiple of [`SECTOR`].
    pub len: u64,
    /// How much the written data would shrink, in percent (fio's `buffer_compress_percentage`).
    pub compressible: u8,
    /// Version of what is written, for tests: sector `i` of a write holds `stamp + i`. 0 in runs.
    pub stamp: u64,
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Completion {
    /// The command's tag.
    pub tag: u64,
    /// When it completed.
    pub time: u64,
    /// Where the time between submission and completion went; adds up to it.
    pub parts: Parts,
    /// Sum over the sectors read of [`mix`]`(content, sector index in the command)`; 0 unless the
    /// device was built to keep versions.
    pub digest: u64,
}

persistent_enum!(Op { Read, Write, Trim, Flush, Purge });
persistent!(Command { state { tag, op, offset, len, compressible, stamp } });
persistent!(Completion { state { tag, time, parts, digest } });

/// Contribution of one sector to a read's digest: content and position both matter.
#[inline]
pub fn mix(content: u64, index: u64) -> u64 {
    let x = (content ^ index.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// A storage device in virtual time.
///
/// All of its state can be saved, with commands in flight too, and loaded into a device built the
/// same way ([`Persist`]), which then goes on as this one would.
pub trait Device: Persist + Send {
    /// The kind's name in the registry.
    fn kind(&self) -> &'static str;

    /// Bytes that the host can address.
    fn capacity(&self) -> u64;

    /// Takes a command at `now`, which is not before any instant seen so far. The device queues
    /// as much as it is given. The command lies within the capacity and is not empty, except for
    /// `Flush` and `Purge`.
    fn submit(&mut self, now: u64, command: Command);

    /// The earliest instant at which the device would change by itself; [`crate::units::NEVER`] if none.
    fn next_event(&self) -> u64;

    /// Moves on to the first instant at which something completes, or to `limit` if that is
    /// earlier; appends what completed then (all of one instant) and returns the instant.
    fn advance(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64;

    /// [`Device::advance`], and then [`Device::next_event`]: for who moves many devices in turn, in
    /// one call.
    #[inline]
    fn proceed(&mut self, limit: u64, done: &mut Vec<Completion>) -> u64 {
        self.advance(limit, done);
        self.next_event()
    }

    /// Brings what the device still does by itself to an end, from `now` on, and begins nothing new:
    /// writes behind a buffer, a collection under way, not the next one. Answers when that was done:
    /// `now` if nothing was. No command may be in flight. The quiet time before idle work
    /// begins counts from there.
    fn settle(&mut self, now: u64) -> u64;

    /// Power goes at `now`, when all that was due by then has happened. Commands in flight are never
    /// answered and may have been done in part, what was volatile is gone, what is durable stays. Answers when
    /// the device is ready again; commands that it is given before wait until then. [`None`]: this kind of
    /// device does not model it, and nothing has changed.
    fn power_cut(&mut self, now: u64) -> Option<u64> {
        let _ = now;
        None
    }

    /// Does at once, in no time, what the command would leave behind: the untimed path for
    /// preconditioning. Nothing may be in flight, and a device that has worked in time has been
    /// settled.
    fn apply(&mut self, command: &Command);

    /// Version of the sector at `offset`, as a read that begins now answers it; 0 unless the device
    /// was built to keep versions. For devices made of devices, which must know it in tests.
    fn content(&self, offset: u64) -> u64 {
        let _ = offset;
        0
    }

    /// Reports every counter of this device (not of its parts): name and value so far.
    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64));

    /// The devices this one is made of, with the name of each place.
    fn children(&self) -> Vec<(String, &dyn Device)> {
        Vec::new()
    }

    /// Asserts that the device's own bookkeeping agrees with itself, in all its parts. For tests:
    /// it may look at every unit of flash.
    fn verify(&self) {
        for (_, child) in self.children() {
            child.verify();
        }
    }
}

/// What a device needs while it is built, besides its own keys.
pub struct Build {
    /// The run's seed; a device derives labelled streams from it.
    pub seed: u64,
    /// Keep versions of all content, for tests.
    pub keep_versions: bool,
    /// Dotted path of the device in the rig: the label of its streams and of its errors.
    pub path: String,
}

impl Build {
    /// The stream `label` of this device.
    pub fn stream(&self, label: &str) -> Stream {
        Stream::new(self.seed, &format!("{}/{label}", self.path))
    }
}

/// How a kind of device is made from its table in the rig (`kind` taken out).
#[derive(Clone, Copy)]
pub struct Kind {
    /// Reads the keys only, and says what is wrong with them; `below` is left out.
    pub check: fn(toml::Table) -> Result<()>,
    /// JSON schema of the keys, from which their documentation is made.
    pub schema: fn() -> schemars::Schema,
    /// Memory that the device takes, and the one below it, bytes.
    pub memory: fn(toml::Table) -> Result<u64>,
    /// Builds the device, and the one below it.
    pub build: fn(toml::Table, &Build) -> Result<Box<dyn Device>>,
}

/// Known kinds of devices.
pub const DEVICES: Registry<Kind> = Registry {
    what: "device",
    entries: &[
        Entry {
            name: "ssd",
            summary: "a solid-state drive: flash, translation layer, write buffer, controller",
            reference: "",
            build: Kind {
                check: |table| keys_of::<ssd::SsdKeys>(table).map(|_| ()),
                schema: || schemars::schema_for!(ssd::SsdKeys),
                memory: |table| keys_of::<ssd::SsdKeys>(table)?.memory(),
                build: |table, build| Ok(Box::new(ssd::Ssd::new(&keys_of(table)?, build)?)),
            },
        },
        Entry {
            name: "null",
            summary: "k servers with a fixed service time and no memory of what they do",
            reference: "",
            build: Kind {
                check: |table| keys_of::<NullKeys>(table).map(|_| ()),
                schema: || schemars::schema_for!(NullKeys),
                memory: |_| Ok(0),
                build: |table, build| Ok(Box::new(Null::new(keys_of(table)?, build)?)),
            },
        },
        Entry {
            name: "measured",
            summary: "a drive given by measured latencies alone: histograms, logs, or distributions",
            reference: "",
            build: Kind {
                check: |table| keys_of::<MeasuredKeys>(table).map(|_| ()),
                schema: || schemars::schema_for!(MeasuredKeys),
                memory: |_| Ok(0),
                build: |table, build| Ok(Box::new(Measured::new(&keys_of(table)?, build)?)),
            },
        },
        Entry {
            name: "hdd",
            summary: "a hard disk: seeks, rotation, zones, read-ahead, write cache, queue",
            reference: "Ruemmler & Wilkes, An introduction to disk drive modeling, IEEE Computer 27:3 (1994)",
            build: Kind {
                check: |table| keys_of::<HddKeys>(table).map(|_| ()),
                schema: || schemars::schema_for!(HddKeys),
                memory: |_| Ok(0),
                build: |table, build| Ok(Box::new(Hdd::new(&keys_of(table)?, build)?)),
            },
        },
        Entry {
            name: "partition",
            summary: "a slice of the device below; what it never writes acts as spare there",
            reference: "",
            build: Kind {
                check: |table| keys_of::<PartitionKeys>(table).map(|_| ()),
                schema: || schemars::schema_for!(PartitionKeys),
                memory: memory_below,
                build: |mut table, build| {
                    let below = take_below(&mut table, build)?;
                    Ok(Box::new(Partition::new(&keys_of(table)?, below)?))
                },
            },
        },
        Entry {
            name: "link",
            summary: "a host interface: bandwidth, command overhead, queue slots",
            reference: "",
            build: Kind {
                check: |table| keys_of::<LinkKeys>(table).map(|_| ()),
                schema: || schemars::schema_for!(LinkKeys),
                memory: memory_below,
                build: |mut table, build| {
                    let below = take_below(&mut table, build)?;
                    Ok(Box::new(Link::new(&keys_of(table)?, below, build)?))
                },
            },
        },
        Entry {
            name: "controller",
            summary: "an HBA or RAID card: cores, a shared bandwidth, a queue, RAM with write-back",
            reference: "",
            build: Kind {
                check: |table| keys_of::<ControllerKeys>(table).map(|_| ()),
                schema: || schemars::schema_for!(ControllerKeys),
                memory: |table| {
                    let mut own = table.clone();
                    own.remove("below");
                    Ok(keys_of::<ControllerKeys>(own)?.memory()? + memory_below(table)?)
                },
                build: |mut table, build| {
                    let below = take_below(&mut table, build)?;
                    Ok(Box::new(Controller::new(&keys_of(table)?, below, build)?))
                },
            },
        },
        Entry {
            name: "array",
            summary: "several devices as one: RAID 0, 1, 10, 5, 6 or linear, laid out as by Linux md",
            reference: "md(4), mdadm(8)",
            build: Kind {
                check: |table| keys_of::<ArrayKeys>(table).map(|_| ()),
                schema: || schemars::schema_for!(ArrayKeys),
                memory: memory_members,
                build: |mut table, build| {
                    let members = take_members(&mut table, build)?;
                    Ok(Box::new(Array::new(&keys_of(table)?, members, build)?))
                },
            },
        },
        Entry {
            name: "cache",
            summary: "a fast device as cache before a slow one: fills, write modes, destaging, bypasses",
            reference: "Linux bcache, dm-cache(8), dm-writecache; Open CAS; controllers with SSD cache",
            build: Kind {
                check: |table| CacheKeys::read(table).map(|_| ()),
                schema: || schemars::schema_for!(CacheKeys),
                memory: crate::cache::device::memory,
                build: |mut table, build| {
                    let below = take_below(&mut table, build)?;
                    let cache = take_part(&mut table, "cache", build)?;
                    Ok(Box::new(CacheDevice::new(&CacheKeys::read(table)?, below, cache, build)?))
                },
            },
        },
        Entry {
            name: "tier",
            summary: "a fast and a slow device as one of their sum, extents moving between them by heat",
            reference: "Guerra et al., Cost effective storage using extent based dynamic tiering, FAST 2011",
            build: Kind {
                check: |table| keys_of::<TierKeys>(table).map(|_| ()),
                schema: || schemars::schema_for!(TierKeys),
                memory: crate::tier::memory,
                build: |mut table, build| {
                    let below = take_below(&mut table, build)?;
                    let fast = take_part(&mut table, "fast", build)?;
                    Ok(Box::new(Tier::new(&keys_of(table)?, fast, below, build)?))
                },
            },
        },
    ],
};
