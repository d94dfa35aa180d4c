//! Rigs: a tree of devices described in TOML.
//!
//! ```toml
//! name = "my-drive"
//! summary = "what it stands for"
//! class = "client"
//! [device]
//! kind = "link"
//! bandwidth = "550MB/s"
//! queue_slots = 32
//! [device.below]
//! kind = "null"
//! capacity = { value = "4GiB", source = "assumed" }
//! service_time = "20us"
//! ```
//! Any value may be a table `{ value, source }`: the source is kept for reports. The structs that
//! the devices' keys are read into are the schema; nothing else knows it.

mod class;
mod compare;
mod compose;
mod explain;
mod look;
mod scale;
pub mod schema;
mod set;
mod supply;
mod write;

pub use class::CLASSES;
pub use compose::Attachment;
pub use supply::description;

use crate::device::{Build, DEVICES, Device, Kind};
use crate::error::{Error, Result};
use crate::registry::Entry;
use crate::units::Nanos;
use serde::de::DeserializeOwned;
pub use toml::{Table, Value};

/// A value of a rig and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Sourced {
    /// Dotted path under `device`.
    pub key: String,
    /// The value as text.
    pub value: String,
    /// Datasheet, measurement, fit, assumption; empty where the rig says nothing.
    pub source: String,
    /// What supplied it: the name of a NAND part, or `dies` for what follows from their number and
    /// size; empty where the rig itself says it.
    pub origin: String,
}

/// A device tree before it is built.
#[derive(Clone, Debug)]
pub struct Rig {
    /// The file it was read from, for errors.
    file: String,
    /// Short name.
    pub name: String,
    /// One line: what it stands for.
    pub summary: String,
    /// The class of drive that it says it is, one of [`CLASSES`]; `None` where it says none.
    pub class: Option<&'static str>,
    /// When all of it loses power, in the time of a run.
    pub power_loss: Vec<Nanos>,
    device: Table,
    sources: Vec<Sourced>,
}

impl Rig {
    /// Reads a rig; `name` stands in errors and where the rig does not name itself.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        let (mut table, own_name, summary) = read_table(text, name)?;
        let class = text_of(&mut table, "class", "", name)?;
        let class = class::named(&class).map_err(|e| e.under("class").in_file(name))?;
        let power_loss = take_power_loss(&mut table).map_err(|e| e.in_file(name))?;
        let mut device = match table.remove("device") {
            Some(Value::Table(device)) => device,
            _ => return Err(Error::rig(name, "has no [device] table, expected one with a kind")),
        };
        table.remove(FIT);
        if let Some(key) = table.keys().next() {
            return Err(Error::rig(
                format!("{name}: {key}"),
                "unknown key, expected name, summary, class, power_loss, [device] or [fit]",
            ));
        }
        let mut sources = Vec::new();
        strip_sources(&mut device, "", &mut sources).map_err(|e| e.in_file(name))?;
        let file = name.to_string();
        let rig = Rig { file, name: own_name, summary, class, power_loss, device, sources };
        rig.supplied().map_err(|e| e.in_file(name))
    }

    /// Builds the devices.
    pub fn build(&self, seed: u64, keep_versions: bool) -> Result<Box<dyn Device>> {
        let build = Build { seed, keep_versions, path: "device".into() };
        build_device(self.device.clone(), &build).map_err(|e| e.in_file(&self.file))
    }

    /// Memory that the devices take, bytes, estimated.
    pub fn memory_bytes(&self) -> Result<u64> {
        memory_of(self.device.clone()).map_err(|e| e.in_file(&self.file))
    }

    /// Refuses a rig that needs more than `available` bytes of memory, before anything is built;
    /// what it leaves of them otherwise.
    pub fn check_memory(&self, available: u64) -> Result<u64> {
        let needed = self.memory_bytes()?;
        if needed <= available {
            return Ok(available - needed);
        }
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        let problem = format!(
            "needs about {:.1} GB of memory, and {:.1} GB are available; \
             take a smaller capacity or a larger ftl.mapping_unit",
            gigabytes(needed),
            gigabytes(available)
        );
        Err(Error::Memory(format!("{}: {problem}", self.file)))
    }

    /// Every value with its source, in the order of the file.
    pub fn sources(&self) -> &[Sourced] {
        &self.sources
    }

    /// The rig as run, overrides applied, sources left out (see [`Rig::write`]).
    pub fn to_toml(&self) -> String {
        let mut table = Table::new();
        table.insert("name".into(), Value::String(self.name.clone()));
        table.insert("summary".into(), Value::String(self.summary.clone()));
        if let Some(class) = self.class {
            table.insert("class".into(), Value::String(class.into()));
        }
        if !self.power_loss.is_empty() {
            table.insert(POWER_LOSS.into(), self.power_loss_value());
        }
        table.insert("device".into(), Value::Table(self.device.clone()));
        toml::to_string(&table).unwrap_or_default()
    }
}

/// The key of a rig for losses of power.
const POWER_LOSS: &str = "power_loss";

/// Takes the losses of power out of a rig's own table.
fn take_power_loss(table: &mut Table) -> Result<Vec<Nanos>> {
    match table.remove(POWER_LOSS) {
        None => Ok(Vec::new()),
        Some(times) => times.clone().try_into().map_err(|_| {
            let expected = "expected times in a list, such as [\"10s\", \"25s\"]";
            Error::rig(POWER_LOSS, format!("found {times}, {expected}"))
        }),
    }
}

/// Reads TOML; takes out what it calls itself, `file` where it does not, and its summary.
fn read_table(text: &str, file: &str) -> Result<(Table, String, String)> {
    let mut table: Table = text.parse().map_err(|e: toml::de::Error| {
        let line = e.span().map_or(0, |s| text[..s.start].matches('\n').count() + 1);
        let what = e.message().lines().next().unwrap_or("not TOML").to_string();
        Error::rig(format!("{file}:{line}"), what)
    })?;
    let name = text_of(&mut table, "name", file, file)?;
    let summary = text_of(&mut table, "summary", "", file)?;
    Ok((table, name, summary))
}

/// Takes a text out of the table of a file; what it is where it is not said.
fn text_of(table: &mut Table, key: &str, default: &str, file: &str) -> Result<String> {
    match table.remove(key) {
        None => Ok(default.to_string()),
        Some(Value::String(s)) => Ok(s),
        Some(other) => {
            let problem = format!("found {other}, expected a text");
            Err(Error::rig(format!("{file}: {key}"), problem))
        }
    }
}

/// A table beside the device that says how its values were fitted, for those who predict with them: nothing of it
/// changes what the device does.
const FIT: &str = "fit";

/// The keys under which a device has those that it is made of.
const PARTS: [&str; 5] = ["below", "cache", "fast", "member", "members"];

/// Takes the kind out of a device's table.
fn take_kind(table: &mut Table) -> Result<&'static Entry<Kind>> {
    match table.remove("kind") {
        Some(Value::String(kind)) => DEVICES.find(&kind).map_err(|e| e.under("kind")),
        other => {
            let known = DEVICES.names().collect::<Vec<_>>().join(", ");
            let problem =
                format!("{}, expected the kind of device: {known}", found(other.as_ref()));
            Err(Error::rig("kind", problem))
        }
    }
}

/// What stands in the place of what is expected.
fn found(value: Option<&Value>) -> String {
    value.map_or_else(|| explain::MISSING.to_string(), |value| format!("found {value}"))
}

/// Builds the device that a table describes.
fn build_device(mut table: Table, build: &Build) -> Result<Box<dyn Device>> {
    let kind = take_kind(&mut table)?;
    (kind.build.build)(table, build).map_err(|e| schema::told(kind, e))
}

/// Memory that the devices of a table take, bytes.
fn memory_of(mut table: Table) -> Result<u64> {
    let kind = take_kind(&mut table)?;
    (kind.build.memory)(table).map_err(|e| schema::told(kind, e))
}

/// Memory that the device in the table `below` takes, bytes.
pub fn memory_below(table: Table) -> Result<u64> {
    memory_of_part(&table, "below")
}

/// Memory that the device in the table `part` takes, bytes.
pub fn memory_of_part(table: &Table, part: &str) -> Result<u64> {
    match table.get(part) {
        Some(Value::Table(inner)) => memory_of(inner.clone()).map_err(|e| e.under(part)),
        _ => Ok(0),
    }
}

/// Takes the table `below` out and builds the device it describes.
pub fn take_below(table: &mut Table, build: &Build) -> Result<Box<dyn Device>> {
    take_part(table, "below", build)
}

/// Takes the table `part` out and builds the device it describes.
pub fn take_part(table: &mut Table, part: &str, build: &Build) -> Result<Box<dyn Device>> {
    let inner = match table.remove(part) {
        Some(Value::Table(inner)) => inner,
        other => {
            let what = if part == "below" { "the device below" } else { "the fast device" };
            let found = found(other.as_ref());
            return Err(Error::rig(part, format!("{found}, expected a table with {what}")));
        }
    };
    let build = Build {
        seed: build.seed,
        keep_versions: build.keep_versions,
        path: format!("{}.{part}", build.path),
    };
    build_device(inner, &build).map_err(|e| e.under(part))
}

/// The members of an array: the tables of `members`, or `member` as often as `count` says; the name
/// of the key for errors, and the table, of each.
fn members(table: &mut Table) -> Result<Vec<(String, Table)>> {
    let expected = |key: &str| {
        let problem = "expected the members: a table [[members]] for each, or [member] and count";
        Error::rig(key, problem)
    };
    match (table.remove("members"), table.remove("member"), table.get("count")) {
        (Some(Value::Array(all)), None, None) => {
            let one = |(i, value)| match value {
                Value::Table(member)
                    if member.contains_key("count") == member.contains_key("member") =>
                {
                    Ok((format!("members.{i}"), member))
                }
                Value::Table(_) => Err(Error::rig(format!("members.{i}.count"), COUNTED)),
                _ => Err(expected("members")),
            };
            all.into_iter().enumerate().map(one).collect()
        }
        (None, Some(Value::Table(member)), Some(Value::Integer(count))) => {
            let most = i64::from(crate::array::MEMBERS_MAX);
            if !(1..=most).contains(count) {
                return Err(Error::rig(
                    "count",
                    format!("found {count}, expected from 1 to {most}"),
                ));
            }
            let spares = table.get("spares").and_then(Value::as_integer).unwrap_or(0);
            let all = count + spares.clamp(0, most);
            Ok((0..all).map(|_| ("member".to_string(), member.clone())).collect())
        }
        (None, Some(_), None) => Err(Error::rig("count", "is missing, expected how many members")),
        (Some(_), None, Some(_)) => Err(Error::rig("count", COUNTED)),
        (Some(_), Some(_), _) => Err(expected("member")),
        _ => Err(expected("members")),
    }
}

const COUNTED: &str = "goes with [member], not [[members]]";

/// Memory that the members of an array take, bytes.
pub fn memory_members(mut table: Table) -> Result<u64> {
    let one = |(key, member): (String, Table)| memory_of(member).map_err(|e| e.under(&key));
    members(&mut table)?.into_iter().map(one).sum()
}

/// Takes the tables of an array's members out and builds them, each with random streams of its own.
pub fn take_members(table: &mut Table, build: &Build) -> Result<Vec<Box<dyn Device>>> {
    let one = |(i, (key, member)): (usize, (String, Table))| {
        let (seed, keep_versions) = (build.seed, build.keep_versions);
        let inner = Build { seed, keep_versions, path: format!("{}.member{i}", build.path) };
        build_device(member, &inner).map_err(|e| e.under(&key))
    };
    members(table)?.into_iter().enumerate().map(one).collect()
}

/// Reads a device's keys; an error names the key and what would be right.
pub fn keys_of<T: DeserializeOwned>(table: Table) -> Result<T> {
    serde_path_to_error::deserialize(Value::Table(table))
        .map_err(|e| explain::explain(&e.path().to_string(), &e.inner().to_string()))
}

/// Refuses times that no device has, so that sums of them stay far from the end of virtual time.
pub fn at_most_an_hour(key: &str, time: Nanos) -> Result<()> {
    at_most(key, time, Nanos::millis(3_600_000), "an hour")
}

/// Refuses times beyond `most`, which is `said` in words.
pub fn at_most(key: &str, time: Nanos, most: Nanos, said: &str) -> Result<()> {
    if time <= most {
        return Ok(());
    }
    Err(Error::rig(key, format!("found {time}, expected at most {said}")))
}

/// Whether a device's own keys can be read (what is below is not looked at).
fn check(mut table: Table) -> Result<()> {
    table.retain(|key, value| {
        !PARTS.contains(&key) || value.as_table().is_some_and(|inner| !look::is_device(inner))
    });
    let kind = take_kind(&mut table)?;
    (kind.build.read)(table).map(drop).map_err(|e| schema::told(kind, e))
}

/// Reads a value written as in TOML, or bare text, and where it comes from.
fn read_value(key: &str, text: &str) -> Result<(Value, String)> {
    let parsed = format!("v = {text}").parse::<Table>().ok().filter(|table| table.len() == 1);
    let mut table = parsed.unwrap_or_else(|| {
        let text = Value::String(text.to_string());
        Table::from_iter([("v".to_string(), text)])
    });
    let mut sources = Vec::new();
    strip_sources(&mut table, "", &mut sources)?;
    let source = sources.into_iter().map(|s| s.source).find(|source| !source.is_empty());
    match table.remove("v") {
        Some(value) => Ok((value, source.unwrap_or_else(|| "set for this run".into()))),
        None => Err(Error::rig(key, format!("found {text}, expected a value"))),
    }
}

/// The places of devices that a key begins with, and what follows them.
fn device_of(key: &str) -> (Vec<&str>, &str) {
    let (mut place, mut own) = (Vec::new(), key);
    while let Some((step, rest)) = own.split_once('.') {
        match (step, rest.split_once('.')) {
            ("below" | "cache" | "fast" | "member", _) => {
                place.push(step);
                own = rest;
            }
            ("members", Some((number, rest))) if number.parse::<usize>().is_ok() => {
                place.extend([step, number]);
                own = rest;
            }
            _ => break,
        }
    }
    (place, own)
}

fn descend<'a>(table: &'a mut Table, place: &[&str]) -> Option<&'a mut Table> {
    let mut at = table;
    let mut steps = place.iter();
    while let Some(step) = steps.next() {
        at = match at.get_mut(*step)? {
            Value::Table(inner) => inner,
            Value::Array(all) => {
                all.get_mut(steps.next()?.parse::<usize>().ok()?)?.as_table_mut()?
            }
            _ => return None,
        };
    }
    Some(at)
}

fn put(table: &mut Table, key: &str, value: Value) -> Result<()> {
    let (parents, last) = key.rsplit_once('.').map_or((None, key), |(p, l)| (Some(p), l));
    let mut table = table;
    for step in parents.into_iter().flat_map(|p| p.split('.')) {
        let entry = table.entry(step).or_insert_with(|| Value::Table(Table::new()));
        table = entry
            .as_table_mut()
            .ok_or_else(|| Error::rig(key, format!("{step} is a value, not a table")))?;
    }
    table.insert(last.to_string(), value);
    Ok(())
}

/// Takes a key away, and what is below it.
fn take(table: &mut Table, key: &str) {
    let (parents, last) = key.rsplit_once('.').unwrap_or(("", key));
    let mut table = Some(table);
    for step in parents.split('.').filter(|step| !step.is_empty()) {
        table = table.and_then(|table| table.get_mut(step)?.as_table_mut());
    }
    table.map(|table| table.remove(last));
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// Replaces every `{ value, source, origin }` by its value and notes all leaves with their sources.
fn strip_sources(table: &mut Table, path: &str, sources: &mut Vec<Sourced>) -> Result<()> {
    for (name, value) in table.iter_mut() {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let (mut source, mut origin) = (String::new(), String::new());
        if let Some(inner) = value.as_table_mut().filter(|t| t.contains_key("value")) {
            let known = ["value", "source", "origin"];
            if let Some(other) = inner.keys().find(|k| !known.contains(&k.as_str())) {
                let problem = "unknown key beside value, expected source".to_string();
                return Err(Error::rig(format!("{key}.{other}"), problem));
            }
            source = inner.get("source").map(plain).unwrap_or_default();
            origin = inner.get("origin").map(plain).unwrap_or_default();
            let Some(bare) = inner.remove("value") else { continue };
            *value = bare;
        } else if value.as_table().is_some_and(|t| t.len() == 1 && t.contains_key("source")) {
            return Err(Error::rig(key, "has a source, but no value"));
        }
        match value {
            Value::Table(inner) => strip_sources(inner, &key, sources)?,
            // Members of an array.
            Value::Array(all) if all.iter().any(Value::is_table) => {
                for (i, inner) in all.iter_mut().enumerate() {
                    let Some(inner) = inner.as_table_mut() else { continue };
                    strip_sources(inner, &format!("{key}.{i}"), sources)?;
                }
            }
            leaf => sources.push(Sourced { key, value: plain(leaf), source, origin }),
        }
    }
    Ok(())
}
