//! The list of devices.

use super::{
    Build, Controller, ControllerKeys, Device, Hdd, HddKeys, Link, LinkKeys, Measured,
    MeasuredKeys, Null, NullKeys, Partition, PartitionKeys, ssd,
};
use crate::array::{Array, ArrayKeys};
use crate::cache::device::{CacheDevice, CacheKeys};
use crate::error::Result;
use crate::registry::{Entry, Registry};
use crate::rig::{keys_of, memory_below, memory_members, take_below, take_members, take_part};
use crate::tier::{Tier, TierKeys};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

/// How a kind of device is made from its table in the rig (`kind` taken out).
#[derive(Clone, Copy)]
pub struct Kind {
    /// Reads the keys only, and says what is wrong with them, or answers all of them, with defaults; `below` is
    /// left out.
    pub read: fn(toml::Table) -> Result<toml::Table>,
    /// JSON schema of the keys, from which their documentation is made.
    pub schema: fn() -> schemars::Schema,
    /// Memory that the device takes, and the one below it, bytes.
    pub memory: fn(toml::Table) -> Result<u64>,
    /// Builds the device, and the one below it.
    pub build: fn(toml::Table, &Build) -> Result<Box<dyn Device>>,
}

impl Kind {
    /// A kind with the keys `K`.
    const fn of<K: DeserializeOwned + Serialize + JsonSchema>(
        memory: fn(toml::Table) -> Result<u64>,
        build: fn(toml::Table, &Build) -> Result<Box<dyn Device>>,
    ) -> Self {
        let read = |table| written(&keys_of::<K>(table)?);
        Kind { read, schema: || schemars::schema_for!(K), memory, build }
    }
}

/// Keys as a table of a rig.
fn written(keys: &impl Serialize) -> Result<toml::Table> {
    Ok(toml::Table::try_from(keys).expect("keys of a rig can be written as one"))
}

/// Known kinds of devices.
pub const DEVICES: Registry<Kind> = Registry {
    what: "device",
    entries: &[
        Entry {
            name: "ssd",
            summary: "a solid-state drive: flash, translation layer, write buffer, controller",
            reference: "",
            build: Kind::of::<ssd::SsdKeys>(
                |table| keys_of::<ssd::SsdKeys>(table)?.memory(),
                |table, build| Ok(Box::new(ssd::Ssd::new(&keys_of(table)?, build)?)),
            ),
        },
        Entry {
            name: "null",
            summary: "k servers with a fixed service time and no memory of what they do",
            reference: "",
            build: Kind::of::<NullKeys>(
                |_| Ok(0),
                |table, build| Ok(Box::new(Null::new(keys_of(table)?, build)?)),
            ),
        },
        Entry {
            name: "measured",
            summary: "a drive given by measured latencies alone: histograms, logs, or distributions",
            reference: "",
            build: Kind::of::<MeasuredKeys>(
                |_| Ok(0),
                |table, build| Ok(Box::new(Measured::new(&keys_of(table)?, build)?)),
            ),
        },
        Entry {
            name: "hdd",
            summary: "a hard disk: seeks, rotation, zones, read-ahead, write cache, queue",
            reference: "Ruemmler & Wilkes, An introduction to disk drive modeling, IEEE Computer 27:3 (1994)",
            build: Kind::of::<HddKeys>(
                |_| Ok(0),
                |table, build| Ok(Box::new(Hdd::new(&keys_of(table)?, build)?)),
            ),
        },
        Entry {
            name: "partition",
            summary: "a slice of the device below; what it never writes acts as spare there",
            reference: "",
            build: Kind::of::<PartitionKeys>(memory_below, |mut table, build| {
                let below = take_below(&mut table, build)?;
                Ok(Box::new(Partition::new(&keys_of(table)?, below)?))
            }),
        },
        Entry {
            name: "link",
            summary: "a host interface: bandwidth, command overhead, queue slots",
            reference: "",
            build: Kind::of::<LinkKeys>(memory_below, |mut table, build| {
                let below = take_below(&mut table, build)?;
                Ok(Box::new(Link::new(&keys_of(table)?, below, build)?))
            }),
        },
        Entry {
            name: "controller",
            summary: "an HBA or RAID card: cores, a shared bandwidth, a queue, RAM with write-back",
            reference: "",
            build: Kind::of::<ControllerKeys>(
                |table| {
                    let mut own = table.clone();
                    own.remove("below");
                    Ok(keys_of::<ControllerKeys>(own)?.memory()? + memory_below(table)?)
                },
                |mut table, build| {
                    let below = take_below(&mut table, build)?;
                    Ok(Box::new(Controller::new(&keys_of(table)?, below, build)?))
                },
            ),
        },
        Entry {
            name: "array",
            summary: "several devices as one: RAID 0, 1, 10, 5, 6 or linear, laid out as by Linux md",
            reference: "md(4), mdadm(8)",
            build: Kind::of::<ArrayKeys>(memory_members, |mut table, build| {
                let members = take_members(&mut table, build)?;
                Ok(Box::new(Array::new(&keys_of(table)?, members, build)?))
            }),
        },
        Entry {
            name: "cache",
            summary: "a fast device as cache before a slow one: fills, write modes, destaging, bypasses",
            reference: "Linux bcache, dm-cache(8), dm-writecache; Open CAS; controllers with SSD cache",
            build: Kind {
                read: |table| written(&CacheKeys::read(table)?),
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
            build: Kind::of::<TierKeys>(crate::tier::memory, |mut table, build| {
                let below = take_below(&mut table, build)?;
                let fast = take_part(&mut table, "fast", build)?;
                Ok(Box::new(Tier::new(&keys_of(table)?, fast, below, build)?))
            }),
        },
    ],
};
