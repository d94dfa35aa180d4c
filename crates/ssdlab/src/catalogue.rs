//! Everything that has a name: all registries as one list, for `ssdlab list` and the docs.

use crate::registry::Registry;
use crate::rig::schema;
pub use crate::rig::schema::Key;

/// One thing that can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// What it is, in the singular: "victim policy".
    pub kind: &'static str,
    /// The name users write.
    pub name: &'static str,
    /// One line: what it is.
    pub summary: &'static str,
    /// Where it comes from; empty where it needs none.
    pub reference: &'static str,
}

/// The entries of one registry.
fn list<B>(registry: &'static Registry<B>) -> impl Iterator<Item = Listing> {
    registry.entries.iter().map(|entry| Listing {
        kind: registry.what,
        name: entry.name,
        summary: entry.summary,
        reference: entry.reference,
    })
}

/// All entries of all registries, in the order in which they are kept.
pub fn catalogue() -> Vec<Listing> {
    list(&crate::device::DEVICES)
        .chain(list(&crate::ftl::victim::VICTIMS))
        .chain(list(&crate::ftl::placement::PLACEMENTS))
        .chain(list(&crate::ftl::mapping::MAPS))
        .chain(list(&crate::ftl::wear_leveling::WEAR_LEVELINGS))
        .chain(list(&crate::nand::schedule::SCHEDULES))
        .chain(list(&crate::nand::parts::PARTS))
        .chain(list(&crate::device::INTERFACES))
        .chain(list(&crate::device::ssd::DRAINS))
        .chain(list(&crate::cache::REPLACEMENTS))
        .chain(list(&crate::cache::ADMISSIONS))
        .chain(list(&crate::cache::device::PRESETS))
        .chain(list(&crate::device::hdd::schedule::DISK_SCHEDULES))
        .chain(list(&crate::trace::FORMATS))
        .chain(list(&crate::rig::CLASSES))
        .collect()
}

/// Every key of every device, from the schema of the structs that read them.
pub fn device_keys() -> Vec<Key> {
    crate::device::DEVICES.entries.iter().flat_map(schema::keys).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_every_device_says_what_it_means() {
        let keys = device_keys();
        let find = |d: &str, k: &str| keys.iter().find(|x| x.device == d && x.key == k);
        assert_eq!(find("ssd", "ftl.gc.pace").unwrap().values, "blocking, paced, periodic");
        assert_eq!(find("ssd", "ftl.gc.victim").unwrap().default, "greedy");
        assert_eq!(find("ssd", "nand.t_read").unwrap().values, "such as \"75us\"");
        assert_eq!(find("link", "queue_slots").unwrap().values, "whole number");
        assert!(find("ssd", "write_buffer.size").is_some());
        for key in &keys {
            assert!(!key.summary.is_empty(), "{} {} has no summary", key.device, key.key);
        }
    }

    #[test]
    fn every_registry_of_the_source_is_listed() {
        let mut declared = 0;
        let mut folders = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let text = std::fs::read_to_string(path).unwrap();
                    let constant = |line: &&str| {
                        line.starts_with("pub const ") && line.contains(": Registry<")
                    };
                    declared += text.lines().filter(constant).count();
                }
            }
        }
        let mut kinds: Vec<&str> = catalogue().iter().map(|entry| entry.kind).collect();
        kinds.dedup();
        assert_eq!(kinds.len(), declared, "listed are {kinds:?}");
    }
}
