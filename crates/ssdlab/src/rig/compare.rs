//! Whether two rigs build the same devices, and what tells them apart.

use super::{Rig, plain};
use std::collections::BTreeMap;
use toml::{Table, Value};

impl Rig {
    /// The devices as TOML: equal texts build equal devices. Names and sources are left out.
    pub fn identity(&self) -> String {
        toml::to_string(&self.device).unwrap_or_default()
    }

    /// What another rig, known by its identity, says otherwise than this one: the first key that
    /// differs, as a sentence's end. `None`: nothing.
    pub fn difference(&self, other: &str) -> Option<String> {
        if self.identity() == other {
            return None;
        }
        let other: Table = other.parse().unwrap_or_default();
        let (mut here, mut there) = (BTreeMap::new(), BTreeMap::new());
        leaves(&self.device, "", &mut here);
        leaves(&other, "", &mut there);
        let said = |of: &BTreeMap<String, String>, key: &str| match of.get(key) {
            Some(value) => format!("is {value}"),
            None => "is not set".to_string(),
        };
        let key = here.keys().chain(there.keys()).find(|&key| here.get(key) != there.get(key));
        Some(match key {
            Some(key) => format!("{key} {} there and {} here", said(&there, key), said(&here, key)),
            None => "its rig is written otherwise".to_string(),
        })
    }
}

fn leaves(table: &Table, path: &str, out: &mut BTreeMap<String, String>) {
    for (name, value) in table {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match value {
            Value::Table(inner) => leaves(inner, &key, out),
            leaf => {
                out.insert(key, plain(leaf));
            }
        }
    }
}
