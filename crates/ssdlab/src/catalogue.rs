//! Everything that has a name: all registries as one list, for `ssdlab list` and the docs.

use crate::registry::Registry;
use serde_json::Value;

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

/// One key that a rig may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Kind of device it belongs to.
    pub device: &'static str,
    /// Dotted path within the device's table.
    pub key: String,
    /// Type or allowed values.
    pub values: String,
    /// Default, as JSON; empty where the key must be given or has none.
    pub default: String,
    /// What it means.
    pub summary: String,
}

/// Every key of every device, from the schema of the structs that read them.
pub fn device_keys() -> Vec<Key> {
    let mut keys = Vec::new();
    for entry in crate::device::DEVICES.entries {
        let schema = (entry.build.schema)().to_value();
        walk(entry.name, &schema, &schema, "", &mut keys);
    }
    keys
}

/// Follows a reference into the schema's definitions.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let inner = schema
        .get("anyOf")
        .and_then(|choices| choices.as_array()?.iter().find(|c| c.get("$ref").is_some()))
        .unwrap_or(schema);
    match inner.get("$ref").and_then(Value::as_str) {
        Some(path) => root.pointer(path.trim_start_matches('#')).unwrap_or(schema),
        None => schema,
    }
}

fn walk(device: &'static str, root: &Value, schema: &Value, path: &str, keys: &mut Vec<Key>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let target = resolve(root, property);
        if target.get("properties").is_some() {
            walk(device, root, target, &key, keys);
            continue;
        }
        let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
        let summary = property.get("description").or_else(|| target.get("description"));
        keys.push(Key {
            device,
            key,
            values: values(target),
            default: property.get("default").filter(|d| !d.is_null()).map(text).unwrap_or_default(),
            summary: summary.map(text).unwrap_or_default().replace('\n', " "),
        });
    }
}

/// What a key may hold, in words.
fn values(schema: &Value) -> String {
    if let Some(choices) = schema.get("oneOf").or_else(|| schema.get("enum")) {
        let one = |c: &Value| c.get("const").unwrap_or(c).as_str().unwrap_or_default().to_string();
        let list = choices.as_array().into_iter().flatten().map(one);
        return list.collect::<Vec<_>>().join(", ");
    }
    let examples = schema.get("examples").and_then(Value::as_array);
    if let Some(example) = examples.and_then(|e| e.first()).and_then(Value::as_str) {
        return format!("such as \"{example}\"");
    }
    let kind = schema.get("type").map(|t| match t {
        Value::Array(types) => types.first().cloned().unwrap_or_default(),
        other => other.clone(),
    });
    match kind.as_ref().and_then(Value::as_str) {
        Some("integer") => "whole number".into(),
        Some("string") => "name".into(),
        Some("boolean") => "true, false".into(),
        other => other.unwrap_or("value").into(),
    }
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
