//! Interfaces between host and drive that exist: what a command takes on them, once for all drives that have one.

use crate::registry::{Registry, toml_entry};

/// Interfaces by name; each is TOML, keys of a link with their sources, the latency of a host with its driver among them.
/// The bandwidth is each drive's own, as few use all of it.
pub const INTERFACES: Registry<&'static str> = Registry {
    what: "host interface",
    entries: &[
        toml_entry!("interfaces", "sata-3g", "SATA at 3 Gb/s, with NCQ"),
        toml_entry!("interfaces", "sata-6g", "SATA at 6 Gb/s, with NCQ"),
        toml_entry!("interfaces", "sas-6g", "SAS at 6 Gb/s, one port"),
        toml_entry!("interfaces", "sas-12g", "SAS at 12 Gb/s, one port"),
        toml_entry!("interfaces", "pcie3-x4", "NVMe over four lanes of PCIe 3"),
        toml_entry!("interfaces", "pcie4-x4", "NVMe over four lanes of PCIe 4"),
        toml_entry!("interfaces", "pcie5-x4", "NVMe over four lanes of PCIe 5"),
    ],
};
