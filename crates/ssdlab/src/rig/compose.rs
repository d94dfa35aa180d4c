//! Rigs made of rigs: a device around others, a device by itself, and what arrays stand behind.

use super::{PARTS, Rig, Sourced, build_device, read_table, strip_sources};
use crate::device::Build;
use crate::error::{Error, Result};
use crate::units::Nanos;
use toml::{Table, Value};

impl Rig {
    /// A device of a kind around the devices of other rigs: keys as in a rig file, sources and all,
    /// and by the name of each part what it is made of (several for `members`). When any of them loses power, all do.
    ///
    /// # Errors
    /// [`Error::Rig`] where a part is none, or not given once.
    pub fn wrap(kind: &str, mut keys: Table, parts: &[(&str, Vec<&Rig>)]) -> Result<Self> {
        keys.insert("kind".into(), Value::String(kind.into()));
        let mut sources = Vec::new();
        strip_sources(&mut keys, "", &mut sources)?;
        for (part, rigs) in parts {
            let many = *part == "members";
            if !PARTS.contains(part) || (!many && rigs.len() != 1) {
                let problem =
                    "expected one rig as below, cache, fast or member, or several as members";
                return Err(Error::rig(*part, problem));
            }
            for (i, rig) in rigs.iter().enumerate() {
                let place = if many { format!("members.{i}") } else { (*part).to_string() };
                sources.extend(rig.sources.iter().map(|one| below(one, &place)));
            }
            let mut tables = rigs.iter().map(|rig| Value::Table(rig.device.clone()));
            let value = if many { Value::Array(tables.collect()) } else { tables.next().unwrap() };
            keys.insert((*part).to_string(), value);
        }
        let (file, name) = (kind.to_string(), kind.to_string());
        let rigs = parts.iter().flat_map(|(_, rigs)| rigs.iter().copied());
        let class = super::class::shared(rigs.clone());
        let mut power_loss: Vec<Nanos> = rigs.flat_map(|rig| rig.power_loss.clone()).collect();
        power_loss.sort_unstable();
        power_loss.dedup();
        let summary = String::new();
        Ok(Rig { file, name, summary, class, power_loss, device: keys, sources })
    }

    /// The device at a place that [`Rig::find`] answers, as a rig of its own.
    pub fn part(&self, place: &str) -> Option<Rig> {
        let steps: Vec<&str> = place.split('.').filter(|step| !step.is_empty()).collect();
        let device = self.device_at(&steps)?.clone();
        let start = steps.iter().map(|step| format!("{step}.")).collect::<String>();
        let own = |one: &Sourced| {
            one.key.strip_prefix(&start).map(|key| Sourced { key: key.into(), ..one.clone() })
        };
        let sources = self.sources.iter().filter_map(own).collect();
        Some(Rig { device, sources, ..self.clone() })
    }

    /// The same under another name, which stands in errors too, with what it says that it is.
    pub fn called(self, name: &str, summary: &str) -> Rig {
        let text = || name.to_string();
        Rig { file: text(), name: text(), summary: summary.into(), ..self }
    }

    /// Bytes that the host can address. The devices are built for it.
    ///
    /// # Errors
    /// What [`Rig::build`] says.
    pub fn capacity(&self) -> Result<u64> {
        Ok(self.build(1, false)?.capacity())
    }
}

fn below(one: &Sourced, place: &str) -> Sourced {
    Sourced { key: format!("{place}.{}", one.key), ..one.clone() }
}

/// What an array stands behind: the keys of a controller card, and those of a bus its members share.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Both tables, as if they were the keys of a device.
    keys: Rig,
}

impl Attachment {
    /// Reads a file with `[controller]` or `[bus]`, and perhaps `name` and `summary`; `file` stands in
    /// errors.
    ///
    /// # Errors
    /// [`Error::Rig`] where the text says something else, or a key is wrong.
    pub fn parse(text: &str, file: &str) -> Result<Self> {
        let (mut device, name, summary) = read_table(text, file)?;
        let wrong = device.iter().find(|(key, value)| {
            !matches!(key.as_str(), "controller" | "bus") || !value.is_table()
        });
        if wrong.is_some() || device.is_empty() {
            let found = wrong.map_or("neither", |(key, _)| key);
            let problem = "expected tables [controller] or [bus] (docs/arrays.md)";
            return Err(Error::rig(file, format!("found {found}, {problem}")));
        }
        let mut sources = Vec::new();
        strip_sources(&mut device, "", &mut sources).map_err(|e| e.in_file(file))?;
        let (file, power_loss) = (file.into(), Vec::new());
        let keys = Rig { file, name, summary, class: None, power_loss, device, sources };
        let found = Attachment { keys };
        found.check().map_err(|e| e.in_file(&found.keys.file))?;
        Ok(found)
    }

    /// Builds each table around drives that take no time, so that what is wrong is told as of this file.
    fn check(&self) -> Result<()> {
        let drive = Rig::parse("[device]\nkind = \"null\"\ncapacity = \"1TiB\"\n", "")?;
        let raid0 =
            Table::from_iter([("level".into(), "raid0".into()), ("count".into(), 2.into())]);
        let array = Rig::wrap("array", raid0, &[("member", vec![&drive])])?;
        let build = Build { seed: 1, keep_versions: false, path: "device".into() };
        for (part, place) in [("bus", ""), ("controller", "controller")] {
            let mut alone = self.clone();
            alone.keys.device.retain(|key, _| key == part);
            let rig = alone.around(&array)?;
            build_device(rig.device, &build).map_err(|error| error.under(place))?;
        }
        Ok(())
    }

    /// Nothing: each member is at the host by itself.
    pub fn direct() -> Self {
        let (file, name, summary) = Default::default();
        let (power_loss, device, sources) = Default::default();
        Attachment { keys: Rig { file, name, summary, class: None, power_loss, device, sources } }
    }

    /// The values, as those of a rig: `controller.cache.size`, `bus.bandwidth`.
    pub fn keys(&self) -> &Rig {
        &self.keys
    }

    /// What it is called in sentences.
    pub fn rename(&mut self, name: &str) {
        self.keys.name = name.into();
    }

    /// Sets a value, written as in TOML or as bare text.
    ///
    /// # Errors
    /// [`Error::Rig`] where the key goes through a value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        self.keys.put_at(&[], key, value)
    }

    /// Takes a key away, and what is below it.
    pub fn remove(&mut self, key: &str) {
        super::take(&mut self.keys.device, key);
        let below = format!("{key}.");
        self.keys.sources.retain(|one| one.key != key && !one.key.starts_with(&below));
    }

    /// A rig with its bus, if it has one, and below its card, if there is one.
    ///
    /// # Errors
    /// [`Error::Rig`] where the rig has a bus and is no array, which alone can have one.
    pub fn around(&self, array: &Rig) -> Result<Rig> {
        let mut rig = array.clone();
        let table = |place: &str| self.keys.device.get(place).and_then(Value::as_table);
        if let Some(bus) = table("bus") {
            if rig.get("kind").as_deref() != Some("array") {
                return Err(Error::rig(
                    &self.keys.file,
                    "a bus takes an array of drives behind it",
                ));
            }
            rig.device.insert("bus".into(), Value::Table(bus.clone()));
            let own = self.keys.sources.iter().filter(|one| one.key.starts_with("bus."));
            rig.sources.extend(own.cloned());
        }
        let Some(Value::Table(card)) = self.keys.with_sources().remove("controller") else {
            return Ok(rig);
        };
        let found = Rig::wrap("controller", card, &[("below", vec![&rig])])?;
        Ok(Rig { file: rig.file, name: rig.name, summary: rig.summary, ..found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn null() -> Rig {
        let text = "name = \"n\"\n[device]\nkind = \"null\"\nservers = 1\n\
                    capacity = { value = \"64MiB\", source = \"assumed\" }\n";
        Rig::parse(text, "n").unwrap()
    }

    fn keys(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn an_array_of_a_rig_is_the_rig_below_its_keys() {
        let drive = null();
        let array =
            Rig::wrap("array", keys("level = \"raid0\"\ncount = 3"), &[("member", vec![&drive])]);
        let array = array.unwrap();
        assert_eq!(array.get("member.capacity").as_deref(), Some("64MiB"));
        assert_eq!(array.part("member.").unwrap().identity(), drive.identity());
        assert_eq!(array.capacity(), Ok(3 * drive.capacity().unwrap()));
        assert!(
            array.sources().iter().any(|s| s.key == "member.capacity" && s.source == "assumed")
        );
    }

    #[test]
    fn a_part_is_given_once_and_members_in_order() {
        let (one, mut other) = (null(), null());
        other.set("servers", "2").unwrap();
        let level = keys("level = \"raid0\"");
        let mixed = Rig::wrap("array", level.clone(), &[("members", vec![&one, &other])]).unwrap();
        assert_eq!(mixed.get("members.1.servers").as_deref(), Some("2"));
        assert_eq!(mixed.part("members.1.").unwrap().identity(), other.identity());
        assert!(Rig::wrap("array", level.clone(), &[("member", vec![&one, &other])]).is_err());
        assert!(Rig::wrap("array", level, &[("disks", vec![&one])]).is_err());
    }

    #[test]
    fn what_an_array_stands_behind_keeps_its_sources() {
        let text = "name = \"card\"\n[controller]\nbandwidth = { value = \"1GB/s\", source = \"sheet\" }\n\
                    [controller.cache]\nsize = \"1MiB\"\n[bus]\nbandwidth = \"2GB/s\"\n";
        let mut card = Attachment::parse(text, "card.toml").unwrap();
        let array =
            Rig::wrap("array", keys("level = \"raid0\"\ncount = 2"), &[("member", vec![&null()])]);
        let array = array.unwrap();
        card.set("controller.cache.size", "2MiB").unwrap();
        let rig = card.around(&array).unwrap();
        assert_eq!(rig.get("kind").as_deref(), Some("controller"));
        assert!(rig.sources().iter().any(|s| s.key == "bandwidth" && s.source == "sheet"));
        assert_eq!(rig.get("below.bus.bandwidth").as_deref(), Some("2GB/s"));
        assert_eq!(card.keys().bytes("controller.cache.size"), Ok(Some(2 << 20)));
        card.remove("controller.cache");
        assert_eq!(card.keys().get("controller.cache.size"), None);
        assert!(card.around(&null()).is_err(), "a drive has no bus");
        let same = Attachment::direct().around(&array).unwrap();
        assert_eq!(same.identity(), array.identity());
    }

    #[test]
    fn what_is_no_attachment_is_refused() {
        for text in ["= 1", "name = \"x\"", "[card]\nx = 1", "bus = 3", "[bus]\n[device]\n"] {
            let said = Attachment::parse(text, "card.toml").unwrap_err().to_string();
            assert!(said.starts_with("card.toml"), "{said}");
        }
    }
}
