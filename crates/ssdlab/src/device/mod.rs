//! Devices, the [contract](crate::contract) that they keep, and the list of them.

mod controller;
pub mod hdd;
mod interfaces;
mod kinds;
mod link;
pub mod measured;
mod null;
mod partition;
pub mod ssd;
mod versions;

pub use crate::contract::{
    Build, Built, Command, Completion, Device, Distance, Drawing, HOST, HostCounts, Missed, Op,
    PowerCounts, SECTOR, mix,
};
pub use controller::{Controller, ControllerKeys, FirmwareKeys, RamKeys, RamOrder, WriteMode};
pub use hdd::{Hdd, HddKeys};
pub use interfaces::INTERFACES;
pub use kinds::{DEVICES, Kind};
pub use link::{Duplex, Link, LinkKeys};
pub use measured::{Measured, MeasuredKeys};
pub use null::{Null, NullKeys};
pub use partition::{Partition, PartitionKeys};
