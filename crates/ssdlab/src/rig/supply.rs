//! What a rig leaves to others: to the NAND part that a drive names, to the interface that a link names, and to the
//! number and size of a drive's dies.

use super::{PARTS, Rig, Sourced, Table, Value, keys_of, plain, strip_sources};
use crate::device::INTERFACES;
use crate::device::ssd::SsdKeys;
use crate::error::{Error, Result};
use crate::nand::parts;
use crate::registry::Registry;
use crate::units::Bytes;

/// Origin of what follows from the dies.
const DIES: &str = "dies";
/// What exists and is described once, with all that devices which name it leave to it.
struct Supplier {
    /// Of the devices.
    kind: &'static str,
    /// Their key that names a description.
    key: &'static str,
    /// What stands before the keys of a description.
    table: &'static str,
    descriptions: &'static Registry<&'static str>,
}
const SUPPLIERS: [Supplier; 2] = [
    Supplier { kind: "link", key: "interface", table: "", descriptions: &INTERFACES },
    Supplier { kind: "ssd", key: "nand.part", table: "nand.", descriptions: &parts::PARTS },
];
const OVER_PROVISIONING: &str = "ftl.over_provisioning";
/// Least over-provisioning that a drive can have.
const LEAST: f64 = 0.001;

/// Whether a key of a device decides what is supplied.
pub(super) fn decides(key: &str) -> bool {
    ["nand.die_size", "nand.reserve"].contains(&key) || SUPPLIERS.iter().any(|one| one.key == key)
}

impl Rig {
    /// The rig with what its drives leave to others.
    pub(super) fn supplied(mut self) -> Result<Rig> {
        for supplier in &SUPPLIERS {
            for place in self.find(supplier.kind) {
                let steps: Vec<&str> = place.split_terminator('.').collect();
                self.supply(&steps, supplier).map_err(|e| e.under(place.trim_end_matches('.')))?;
            }
        }
        self.sources.sort_by(|a, b| path(&a.key).cmp(path(&b.key)));
        Ok(self)
    }

    /// The rig after a key was set that decides what the device at `place` is supplied with.
    pub(super) fn supplied_anew(mut self, place: &[&str]) -> Result<Rig> {
        let start: String = place.iter().map(|step| format!("{step}.")).collect();
        let device = super::descend(&mut self.device, place).expect("it was set there");
        self.sources.retain(|one| {
            let own = one.key.strip_prefix(&start).filter(|_| !one.origin.is_empty());
            // What the devices below are supplied with stays.
            let own =
                own.filter(|key| !key.split('.').next().is_some_and(|step| PARTS.contains(&step)));
            own.into_iter().for_each(|key| super::take(device, key));
            own.is_none()
        });
        self.supplied()
    }

    fn supply(&mut self, place: &[&str], supplier: &Supplier) -> Result<()> {
        let Some(device) = self.device_at(place).cloned() else { return Ok(()) };
        let device = Value::Table(device);
        if let Some(name) = within(&device, supplier.key).map(plain) {
            let description = supplier.descriptions.find(&name);
            for (one, value) in values(description.map_err(|e| e.under(supplier.key))?.build)? {
                let key = format!("{}{}", supplier.table, one.key);
                if within(&device, &key).is_none() {
                    let one = Sourced { origin: name.clone(), ..one };
                    self.receive(place, &key, value, &one)?;
                }
            }
        }
        let drive = (supplier.kind == "ssd").then(|| self.device_at(place).cloned()).flatten();
        if let Some((share, source)) = drive.map_or(Ok(None), over_provisioning)? {
            let value = Value::Float(share);
            let one =
                Sourced { key: String::new(), value: plain(&value), source, origin: DIES.into() };
            self.receive(place, OVER_PROVISIONING, value, &one)?;
        }
        Ok(())
    }

    /// Takes a value that the device at `place` is supplied with.
    fn receive(&mut self, place: &[&str], key: &str, value: Value, one: &Sourced) -> Result<()> {
        let device = super::descend(&mut self.device, place).expect("it was found there");
        super::put(device, key, value)?;
        let key = place.iter().copied().chain([key]).collect::<Vec<_>>().join(".");
        self.sources.push(Sourced { key, ..one.clone() });
        Ok(())
    }
}

/// What a NAND part or a host interface supplies: keys of `nand` or of a link, with where the values come from.
///
/// # Errors
/// [`Error::Unknown`] where no part and no interface is called so.
pub fn description(name: &str) -> Result<Vec<Sourced>> {
    let interface = INTERFACES.entries.iter().find(|one| one.name == name);
    let found = interface.map_or_else(|| parts::PARTS.find(name), Ok)?;
    Ok(values(found.build)?.into_iter().map(|(one, _)| one).collect())
}

fn values(description: &str) -> Result<Vec<(Sourced, Value)>> {
    let mut table: Table = description.parse().expect("it is TOML, which a test says of all");
    let mut sources = Vec::new();
    strip_sources(&mut table, "", &mut sources)?;
    let table = Value::Table(table);
    let with_value = |one: Sourced| {
        let value = within(&table, &one.key).expect("it was found there").clone();
        (one, value)
    };
    Ok(sources.into_iter().map(with_value).collect())
}

/// The value of a key with dots.
fn within<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    key.split('.').try_fold(value, |value, step| value.get(step))
}

/// Over-provisioning of a drive that says the size of its dies and nothing of it: what they hold
/// beyond the capacity, and how that was reckoned. `None`, too, where other keys are missing or
/// wrong, which building the drive says.
fn over_provisioning(mut drive: Table) -> Result<Option<(f64, String)>> {
    let said = drive.get("ftl").is_some_and(|ftl| ftl.get("over_provisioning").is_some());
    drive.remove("kind");
    let Some(keys) = (!said).then(|| keys_of::<SsdKeys>(drive).ok()).flatten() else {
        return Ok(None);
    };
    let (nand, Some(die)) = (&keys.nand, keys.nand.die_size) else { return Ok(None) };
    let dies = u64::from(nand.channels) * u64::from(nand.ways);
    if dies == 0 {
        return Ok(None); // Which is refused with its own name.
    }
    let slc = keys.ftl.slc_cache.as_ref().map_or(0, |slc| slc.static_size.0);
    let cache = slc.saturating_mul(nand.bits_per_cell.into());
    let usable = dies as f64 * die.0 as f64 * (1.0 - nand.reserve) - cache as f64;
    let stripe = f64::from(keys.ftl.parity.stripe);
    let data = if stripe > 1.0 { usable * (stripe - 1.0) / stripe } else { usable };
    // Three significant digits: what is reserved is not known better.
    let exact = data / keys.capacity.0.max(1) as f64 - 1.0;
    let share: f64 = format!("{exact:.2e}").parse().unwrap_or(exact);
    let capacity = keys.capacity.0 as f64 / 1e9;
    let mut how = format!("from {dies} dies of {die} and a capacity of {capacity:.2} GB");
    if nand.reserve > 0.0 {
        how += &format!(", less a reserve of {} %", (1e4 * nand.reserve).round() / 1e2);
    }
    if cache > 0 {
        how += &format!(", less {} behind the static cache", Bytes(cache));
    }
    if stripe > 1.0 {
        how += &format!(", less parity of one in {stripe}");
    }
    if share < LEAST {
        let problem =
            format!("is too little: {how}; expected larger dies, or ftl.over_provisioning");
        return Err(Error::rig("nand.die_size", problem));
    }
    Ok(Some((share, how)))
}

/// The steps of a key, members of an array by number.
fn path(key: &str) -> impl Iterator<Item = (usize, &str)> {
    key.split('.').map(|step| (step.parse().unwrap_or(0), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four dies of 8 GiB, of which 30 GiB are sold.
    const RIG: &str = "[device]\nkind = \"link\"\nbandwidth = \"300MB/s\"\n[device.below]\nkind = \"ssd\"\n\
                       capacity = \"30GiB\"\n[device.below.nand]\npart = \"imft-25nm-mlc\"\nchannels = 2\n\
                       ways = 2\nt_read = { value = \"60us\", source = \"the drive\" }\n";

    fn rig(more: &str) -> Result<Rig> {
        Rig::parse(&format!("{RIG}{more}"), "t")
    }

    fn said(rig: &Rig, key: &str) -> Sourced {
        let key = format!("below.{key}");
        rig.sources().iter().find(|one| one.key == key).unwrap_or_else(|| panic!("{key}")).clone()
    }

    #[test]
    fn every_part_has_every_value_with_a_source_and_makes_a_drive() {
        for part in parts::PARTS.entries {
            let values = values(part.build).unwrap();
            for (one, _) in &values {
                assert!(!one.source.is_empty(), "{}: {}", part.name, one.key);
            }
            let own = if part.build.contains("transfer_mts") { "" } else { "transfer_mts = 200\n" };
            let text = format!(
                "[device]\nkind = \"ssd\"\ncapacity = \"15GiB\"\n[device.nand]\nchannels = 4\nways = 4\n\
                 part = \"{}\"\n{own}",
                part.name
            );
            let mut rig = Rig::parse(&text, part.name).unwrap();
            for key in [
                "bits_per_cell",
                "page",
                "planes",
                "pages_per_block",
                "die_size",
                "t_read",
                "t_program",
                "t_erase",
                "rated_pe_cycles",
            ] {
                assert!(values.iter().any(|(one, _)| one.key == key), "{}: {key}", part.name);
            }
            rig.set("ftl.over_provisioning", "0.3").unwrap();
            rig.memory_bytes().unwrap();
        }
    }

    #[test]
    fn a_part_supplies_what_the_rig_does_not_set() {
        let rig = rig("").unwrap();
        assert_eq!(rig.get("nand.t_program").as_deref(), Some("1300us"));
        assert_eq!(said(&rig, "nand.t_program").origin, "imft-25nm-mlc");
        assert!(said(&rig, "nand.t_program").source.contains("L74A"));
        assert_eq!(
            (rig.get("nand.t_read").as_deref(), ""),
            (Some("60us"), &*said(&rig, "nand.t_read").origin)
        );
        let keys: Vec<&str> = rig.sources().iter().map(|one| one.key.as_str()).collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        assert_eq!(keys, sorted, "where the keys of a file stand");
    }

    #[test]
    fn an_interface_supplies_what_the_link_does_not_set() {
        for one in INTERFACES.entries {
            let all = values(one.build).unwrap();
            assert!(all.iter().all(|(one, _)| !one.source.is_empty()), "{}", one.name);
        }
        let text = RIG.replace("bandwidth", "interface = \"pcie3-x4\"\nqueue_slots = 7\nbandwidth");
        let mut rig = Rig::parse(&text, "t").unwrap();
        let below = |rig: &Rig| {
            rig.sources()
                .iter()
                .filter(|one| one.key.starts_with("below."))
                .cloned()
                .collect::<Vec<_>>()
        };
        let before = below(&rig);
        assert_eq!(rig.get("command_time").as_deref(), Some("40ns"));
        assert_eq!(rig.get("queue_slots").as_deref(), Some("7"));
        let origin = |rig: &Rig, key: &str| {
            rig.sources().iter().find(|one| one.key == key).unwrap().origin.clone()
        };
        assert_eq!(origin(&rig, "latency"), "pcie3-x4");
        rig.set("interface", "sata-6g").unwrap();
        assert_eq!(rig.get("command_time").as_deref(), Some("3us"));
        assert_eq!(rig.get("duplex").as_deref(), Some("half"));
        assert_eq!((rig.get("latency"), rig.get("queue_slots").as_deref()), (None, Some("7")));
        assert_eq!(below(&rig), before, "what the drive is supplied with stays");
        rig.memory_bytes().unwrap();
        let said = rig.set("interface", "sata-7g").unwrap_err().to_string();
        assert!(said.contains("interface: no host interface is called"), "{said}");
    }

    #[test]
    fn an_unknown_part_is_named_with_a_suggestion() {
        let said = Rig::parse(&RIG.replace("25nm", "25-nm"), "t").unwrap_err().to_string();
        assert!(said.starts_with("t: below.nand.part: no NAND part is called"), "{said}");
        assert!(said.contains("did you mean \"imft-25nm-mlc\"?"), "{said}");
        let mut rig = rig("").unwrap();
        let before = rig.write();
        assert!(rig.set("nand.part", "none").is_err());
        assert_eq!(rig.write(), before);
    }

    #[test]
    fn another_part_takes_the_place_of_what_the_first_one_supplied() {
        let mut rig = rig("").unwrap();
        rig.set("nand.part", "imft-34nm-mlc").unwrap_err();
        rig.set("capacity", "15GiB").unwrap();
        rig.set("nand.part", "imft-34nm-mlc").unwrap();
        assert_eq!(rig.get("nand.page").as_deref(), Some("4KiB"));
        assert_eq!(said(&rig, "nand.page").origin, "imft-34nm-mlc");
        assert_eq!(rig.get("nand.t_read").as_deref(), Some("60us"), "the rig says it");
        assert_eq!(rig.get("ftl.over_provisioning").as_deref(), Some("0.0667"));
    }

    #[test]
    fn over_provisioning_is_what_the_dies_hold_beyond_the_capacity() {
        let share = |more: &str| rig(more).unwrap().get("ftl.over_provisioning").unwrap();
        assert_eq!(share(""), "0.0667");
        assert_eq!(said(&rig("").unwrap(), "ftl.over_provisioning").origin, DIES);
        assert_eq!(share("[device.below.ftl]\nover_provisioning = 0.2\n"), "0.2");
        assert_eq!(share("reserve = 0.05\n"), "0.0133");
        assert_eq!(share("die_size = \"9GiB\"\n"), "0.2");
        // A stripe of 32 gives a part in 32 for parity.
        assert_eq!(share("[device.below.ftl.parity]\nstripe = 32\n"), "0.0333");
        let cache = "[device.below.ftl.slc_cache]\nstatic_size = \"512MiB\"\nt_read = \"20us\"\n\
                     t_program = \"200us\"\n";
        assert_eq!(share(cache), "0.0333", "a GiB of the flash is a cache of half of it");
        let said = rig("reserve = 0.07\n").unwrap_err().to_string();
        assert!(said.starts_with("t: below.nand.die_size: is too little"), "{said}");
    }

    #[test]
    fn a_drive_made_smaller_for_a_run_has_over_provisioning_of_its_own() {
        let mut rig = rig("").unwrap();
        for (key, value) in rig.scale(10, 1).unwrap() {
            rig.set(&key, &value).unwrap();
        }
        let small = rig.get("ftl.over_provisioning");
        rig.set("nand.reserve", "0.01").unwrap();
        assert_eq!(rig.get("ftl.over_provisioning"), small, "dies of full size say nothing of it");
    }

    #[test]
    fn what_was_supplied_is_written_with_its_origin() {
        let rig = rig("").unwrap();
        let again = Rig::parse(&rig.write(), "again").unwrap();
        assert_eq!((again.sources(), again.identity()), (rig.sources(), rig.identity()));
        assert!(rig.write().contains("origin = \"dies\""), "{}", rig.write());
    }
}
