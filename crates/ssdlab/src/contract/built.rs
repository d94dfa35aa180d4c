//! What was built of a rig: sizes that rounding makes, which its keys do not say.

/// The flash of an SSD as it was built. Superblocks of a static SLC cache and of a map's own table are left out:
/// they are never exchanged with those for data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Built {
    /// Bytes that the host can address.
    pub capacity_bytes: u64,
    /// Bytes that the superblocks for data hold in native mode, those that collection keeps free and parity
    /// included.
    pub physical_bytes: u64,
    /// What `ftl.over_provisioning` became: space for data, without the superblocks that collection keeps free,
    /// per byte of capacity, less 1. Each region has whole superblocks.
    pub over_provisioning: f64,
    /// Dies of the drive.
    pub dies: u32,
    /// Superblocks for data, those that collection keeps free included.
    pub superblocks: u64,
    /// Bytes of a superblock in native mode, parity included.
    pub superblock_bytes: u64,
    /// Superblocks that collection keeps free while the host writes.
    pub reserve_superblocks: u64,
}
