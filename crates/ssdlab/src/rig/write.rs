//! A rig as a file that reads back as the same rig, with every source.

use super::{PARTS, POWER_LOSS, Rig};
use std::fmt::Write as _;
use toml::{Table, Value};

impl Rig {
    /// The rig as a file: what it is called, then each device under a heading, before what it is made
    /// of; values that have a source as `{ value, source }`.
    pub fn write(&self) -> String {
        let text = |text: &str| Value::String(text.into());
        let mut out = format!("name = {}\nsummary = {}\n", text(&self.name), text(&self.summary));
        if let Some(class) = self.class {
            let _ = writeln!(out, "class = {}", text(class));
        }
        if !self.power_loss.is_empty() {
            let _ = writeln!(out, "{POWER_LOSS} = {}", self.power_loss_value());
        }
        out.push_str("\n[device]\n");
        write_table(&self.with_sources(), "device", &mut out);
        out
    }

    /// The losses of power as a value.
    pub(super) fn power_loss_value(&self) -> Value {
        self.power_loss
            .iter()
            .map(|time| Value::String(time.to_string()))
            .collect::<Vec<_>>()
            .into()
    }

    /// The device with values as a rig file says them.
    pub(super) fn with_sources(&self) -> Table {
        let mut device = Value::Table(self.device.clone());
        for one in self.sources.iter().filter(|one| !one.source.is_empty()) {
            if let Some(found) = one.key.split('.').try_fold(&mut device, step_into) {
                let text = |text: &String| Value::String(text.clone());
                let mut sourced = Table::from_iter([("value".to_string(), found.clone())]);
                sourced.insert("source".into(), text(&one.source));
                if !one.origin.is_empty() {
                    sourced.insert("origin".into(), text(&one.origin));
                }
                *found = Value::Table(sourced);
            }
        }
        match device {
            Value::Table(device) => device,
            _ => Table::new(),
        }
    }
}

fn step_into<'a>(value: &'a mut Value, step: &str) -> Option<&'a mut Value> {
    match value {
        Value::Table(table) => table.get_mut(step),
        Value::Array(all) => all.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    }
}

fn write_table(table: &Table, place: &str, out: &mut String) {
    let (headed, plain): (Vec<_>, Vec<_>) = table.iter().partition(|(_, value)| is_headed(value));
    // The kind says what the other keys mean, and what a device is made of comes after its own keys.
    let (kind, plain): (Vec<_>, Vec<_>) = plain.into_iter().partition(|(key, _)| *key == "kind");
    for (key, value) in kind.into_iter().chain(plain) {
        let _ = writeln!(out, "{} = {value}", key_text(key));
    }
    let (parts, own): (Vec<_>, Vec<_>) =
        headed.into_iter().partition(|(key, _)| PARTS.contains(&key.as_str()));
    for (key, value) in own.into_iter().chain(parts) {
        let place = format!("{place}.{}", key_text(key));
        let headings = match value {
            Value::Array(all) => all.iter().map(|one| (format!("[[{place}]]"), one)).collect(),
            one => vec![(format!("[{place}]"), one)],
        };
        for (heading, one) in headings {
            let _ = writeln!(out, "\n{heading}");
            one.as_table().into_iter().for_each(|inner| write_table(inner, &place, out));
        }
    }
}

/// Whether a value stands under a heading; one with its source does not.
fn is_headed(value: &Value) -> bool {
    match value {
        Value::Table(table) => !(table.contains_key("value") && table.len() <= 3),
        Value::Array(all) => !all.is_empty() && all.iter().all(Value::is_table),
        _ => false,
    }
}

fn key_text(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) {
        key.to_string()
    } else {
        Value::String(key.into()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIG: &str = r#"
        name = "say \"x\""
        summary = "a pair, mixed"
        power_loss = ["10s", "250ms"]
        [device]
        kind = "array"
        level = "raid0"
        fail = [{ member = 0, at = { value = "1s", source = "the plan" } }]
        [[device.members]]
        kind = "measured"
        capacity = { value = "1GiB", source = "datasheet, p. 3" }
        read = [{ size = "4096B", bins = [[1000, 3], [2000, 4]] }, { mean = "1ms" }]
        [[device.members]]
        kind = "ssd"
        [device.members.ftl]
        over_provisioning = { value = 0.07, source = "assumed" }
        gc = { victim = "greedy", separate_frontier = false }
    "#;

    #[test]
    fn what_is_written_reads_back_with_its_sources() {
        let rig = Rig::parse(RIG, "t").unwrap();
        let again = Rig::parse(&rig.write(), "again").unwrap();
        assert_eq!((&again.name, &again.summary), (&rig.name, &rig.summary));
        assert_eq!((again.identity(), &again.power_loss), (rig.identity(), &rig.power_loss));
        assert_eq!(again.sources(), rig.sources());
        assert_eq!(again.write(), rig.write());
    }

    #[test]
    fn a_value_that_was_set_names_no_older_source() {
        let mut rig = Rig::parse(
            "[device]\nkind = \"null\"\ncapacity = { value = \"1GiB\", source = \"old\" }\n",
            "t",
        )
        .unwrap();
        rig.set("capacity", "2GiB").unwrap();
        assert!(!rig.write().contains("old"), "{}", rig.write());
        rig.set("capacity", "{ value = \"3GiB\", source = \"new\" }").unwrap();
        assert!(rig.write().contains("capacity = { "), "{}", rig.write());
        assert!(rig.write().contains("source = \"new\""), "{}", rig.write());
    }

    #[test]
    fn devices_stand_after_the_keys_of_what_they_make() {
        let text = Rig::parse(RIG, "t").unwrap().write();
        let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what}: {text}"));
        assert!(place("kind = \"array\"") < place("level = "));
        assert!(place("[[device.fail]]") < place("[[device.members]]"), "{text}");
    }
}
