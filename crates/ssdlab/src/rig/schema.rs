//! The keys of devices as the structs say that read them: what they may hold, in words.

use super::explain;
use crate::device::Kind;
use crate::error::Error;
use crate::registry::Entry;
use serde_json::Value;

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

/// Every key of a kind of device.
pub fn keys(kind: &'static Entry<Kind>) -> Vec<Key> {
    let mut keys = Vec::new();
    let schema = (kind.build.schema)().to_value();
    walk(kind.name, &schema, &schema, "", &mut keys);
    keys
}

/// An error about a device of a kind; where a key is missing or holds no text, with what it may hold.
pub(super) fn told(kind: &'static Entry<Kind>, error: Error) -> Error {
    let Error::Rig { key, problem } = &error else { return error };
    let may_hold = |own: &str| {
        let known = keys(kind).into_iter().find(|one| one.key == *key);
        known.map_or_else(|| "a table of keys".into(), |one| format!("{own}{}", one.values))
    };
    match problem.as_str() {
        explain::MISSING => {
            let (needed, name) = (may_hold(""), kind.name);
            let problem = format!("{}; kind = \"{name}\" needs it ({needed})", explain::MISSING);
            Error::rig(key, problem)
        }
        explain::NO_NAME => {
            Error::rig(key, format!("{}, expected {}", explain::NO_NAME, may_hold("one of ")))
        }
        _ => error,
    }
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
