//! Interfaces between host and drive that exist: what a command takes on them, once for all drives that have one.

use crate::registry::{Entry, Registry};

/// Interfaces by name; each is TOML, keys of a link with their sources, the latency of a host with its driver among them.
/// The bandwidth is each drive's own, as few use all of it.
pub const INTERFACES: Registry<&'static str> = Registry {
    what: "host interface",
    entries: &[
        interface("sata-3g", "SATA at 3 Gb/s, with NCQ", include_str!("interfaces/sata-3g.toml")),
        interface("sata-6g", "SATA at 6 Gb/s, with NCQ", include_str!("interfaces/sata-6g.toml")),
        interface("sas-6g", "SAS at 6 Gb/s, one port", include_str!("interfaces/sas-6g.toml")),
        interface("sas-12g", "SAS at 12 Gb/s, one port", include_str!("interfaces/sas-12g.toml")),
        interface(
            "pcie3-x4",
            "NVMe over four lanes of PCIe 3",
            include_str!("interfaces/pcie3-x4.toml"),
        ),
        interface(
            "pcie4-x4",
            "NVMe over four lanes of PCIe 4",
            include_str!("interfaces/pcie4-x4.toml"),
        ),
        interface(
            "pcie5-x4",
            "NVMe over four lanes of PCIe 5",
            include_str!("interfaces/pcie5-x4.toml"),
        ),
    ],
};

const fn interface(
    name: &'static str,
    summary: &'static str,
    build: &'static str,
) -> Entry<&'static str> {
    Entry { name, summary, reference: "", build }
}
