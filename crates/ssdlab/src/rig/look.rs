//! What a rig says: the values of its keys, and where its devices are.

use super::{PARTS, POWER_LOSS, Rig, device_of, plain};
use crate::error::Result;
use crate::units::{Bytes, Nanos};
use toml::{Table, Value};

impl Rig {
    /// The value at `key` as text, a table as TOML; `None` where the rig says nothing. `key` is one
    /// as [`Rig::set`] takes it, and the first device on the way down that has it answers.
    pub fn get(&self, key: &str) -> Option<String> {
        if key == POWER_LOSS {
            return (!self.power_loss.is_empty()).then(|| plain(&self.power_loss_value()));
        }
        let (mut place, own) = self.device_of(key);
        loop {
            let device = self.device_at(&place)?;
            if let Some(found) = value_at(device, own) {
                return Some(plain(found));
            }
            place.push(if device.contains_key("member") { "member" } else { "below" });
        }
    }

    /// Whether `key` is one that [`Rig::set`] takes, said or not.
    ///
    /// # Errors
    /// [`crate::Error::Rig`] where no device knows it, as of [`Rig::set`].
    pub fn check_key(&self, key: &str) -> Result<()> {
        let known = key == POWER_LOSS || PARTS.contains(&device_of(key).1);
        if known { Ok(()) } else { self.offered(key, &Value::Boolean(true), &[]).map(|_| ()) }
    }

    /// The value at `key` as a size, bytes.
    ///
    /// # Errors
    /// [`crate::Error::Value`] where it is none.
    pub fn bytes(&self, key: &str) -> Result<Option<u64>> {
        let size = self.get(key).map(|text| Bytes::parse(&text)).transpose();
        Ok(size.map_err(|e| e.under(key))?.map(|size| size.0))
    }

    /// The value at `key` as a time, ns.
    ///
    /// # Errors
    /// [`crate::Error::Value`] where it is none.
    pub fn nanos(&self, key: &str) -> Result<Option<u64>> {
        let time = self.get(key).map(|text| Nanos::parse(&text)).transpose();
        Ok(time.map_err(|e| e.under(key))?.map(|time| time.0))
    }

    /// Where the devices of a kind are: what stands before their keys, such as `below.`, each
    /// device before those that it is made of.
    pub fn find(&self, kind: &str) -> Vec<String> {
        let mut found = Vec::new();
        find_below(&self.device, kind, "", &mut found);
        found
    }

    /// The places of devices that a key begins with, and what follows them.
    pub(super) fn device_of<'k>(&self, key: &'k str) -> (Vec<&'k str>, &'k str) {
        let (mut place, mut own) = device_of(key);
        while self.device_at(&place).is_some_and(|table| !is_device(table)) {
            let Some(step) = place.pop() else { break };
            own = &key[key.len() - own.len() - step.len() - 1..];
        }
        (place, own)
    }

    /// The table of the device at `place`.
    pub(super) fn device_at(&self, place: &[&str]) -> Option<&Table> {
        let mut steps = place.iter();
        let mut device = &self.device;
        while let Some(step) = steps.next() {
            device = match device.get(*step)? {
                Value::Array(all) => all.get(steps.next()?.parse::<usize>().ok()?)?.as_table()?,
                one => one.as_table()?,
            };
        }
        Some(device)
    }
}

fn value_at<'a>(device: &'a Table, key: &str) -> Option<&'a Value> {
    let mut steps = key.split('.');
    let first = device.get(steps.next()?)?;
    steps.try_fold(first, |value, step| value.get(step))
}

fn find_below(device: &Table, kind: &str, place: &str, found: &mut Vec<String>) {
    if device.get("kind").and_then(Value::as_str) == Some(kind) {
        found.push(place.to_string());
    }
    for (step, part) in parts_of(device) {
        find_below(part, kind, &format!("{place}{step}."), found);
    }
}

/// Whether a table is a device and not keys of one, as the `cache` of a card is.
pub(super) fn is_device(table: &Table) -> bool {
    table.contains_key("kind")
}

/// The devices that one is made of, with the step to each in a key.
pub(super) fn parts_of(device: &Table) -> Vec<(String, &Table)> {
    let mut found = Vec::new();
    for part in PARTS {
        match device.get(part) {
            Some(Value::Table(inner)) if is_device(inner) => found.push((part.to_string(), inner)),
            Some(Value::Array(all)) => {
                let inner = all.iter().enumerate();
                found.extend(
                    inner.filter_map(|(i, one)| Some((format!("{part}.{i}"), one.as_table()?))),
                );
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIG: &str = r#"
        [device]
        kind = "cache"
        [device.cache]
        kind = "ssd"
        capacity = { value = "4GiB", source = "datasheet" }
        [device.below]
        kind = "array"
        level = "raid0"
        [[device.below.members]]
        kind = "hdd"
        [[device.below.members]]
        kind = "link"
        queue_slots = 32
        [device.below.members.below]
        kind = "ssd"
        ftl = { gc = { victim = "greedy", low = 0.5 } }
    "#;

    #[test]
    fn a_key_is_found_where_set_would_put_it() {
        let rig = Rig::parse(RIG, "t").unwrap();
        assert_eq!(rig.get("cache.capacity").as_deref(), Some("4GiB"));
        assert_eq!(rig.bytes("cache.capacity"), Ok(Some(4 << 30)));
        assert_eq!(rig.get("level").as_deref(), Some("raid0"), "looked for below");
        assert_eq!(rig.get("below.members.1.ftl.gc.low").as_deref(), Some("0.5"));
        assert_eq!(rig.get("below.members.1.queue_slots").as_deref(), Some("32"));
        assert_eq!(rig.get("below.members.0.ftl.gc.low"), None);
        assert_eq!(rig.get("below.members.7.kind"), None);
        assert!(rig.nanos("cache.capacity").is_err());
    }

    #[test]
    fn a_key_that_no_device_knows_is_told_from_one_that_is_not_said() {
        let mut rig = Rig::parse(RIG, "t").unwrap();
        for known in ["cache.ftl.gc.high", "power_loss", "below.members.0.rpm", "cache.below"] {
            assert_eq!((rig.get(known), rig.check_key(known)), (None, Ok(())), "{known}");
        }
        for nope in ["cache.ftl.nope", "nope", "cache.capacity.nope", "below.members.7.rpm", ""] {
            let told = rig.check_key(nope).unwrap_err();
            assert_eq!(rig.set(nope, "1").unwrap_err().to_string(), told.to_string(), "{nope}");
        }
        rig.set("power_loss", "[\"10s\"]").unwrap();
        assert_eq!(rig.get("power_loss").as_deref(), Some("[\"10s\"]"));
    }

    #[test]
    fn the_ram_of_a_card_is_no_device_but_keys_of_the_card() {
        let card = "[device]\nkind = \"controller\"\nbandwidth = \"1GB/s\"\ncache = { size = \"1GiB\" }\n\
                    [device.below]\nkind = \"null\"\ncapacity = \"1GiB\"\n";
        let mut rig = Rig::parse(card, "t").unwrap();
        assert_eq!(rig.bytes("cache.size"), Ok(Some(1 << 30)));
        let scaled = [("capacity", "268435456B"), ("cache.size", "268435456B")];
        let scaled = scaled.map(|(key, value)| (key.to_string(), value.to_string()));
        assert_eq!(rig.scale(4, 1).unwrap(), scaled);
        rig.set_all(&scaled).unwrap();
        assert_eq!(rig.bytes("cache.size"), Ok(Some(1 << 28)));
        let said = rig.set("cache.sise", "1MiB").unwrap_err().to_string();
        assert!(said.contains("cache.sise"), "{said}");
        assert_eq!(rig.scale(64, 1).unwrap()[1].1, "67108864B", "writes still gather in it");
    }

    #[test]
    fn devices_of_a_kind_are_found_wherever_they_are() {
        let rig = Rig::parse(RIG, "t").unwrap();
        assert_eq!(rig.find("ssd"), ["below.members.1.below.", "cache."]);
        assert_eq!(rig.find("cache"), [""]);
        assert!(rig.find("tier").is_empty());
    }
}
