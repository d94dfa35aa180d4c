//! Keys that are set: which device knows them, and what they need beside them.

use super::{
    PARTS, POWER_LOSS, Rig, Sourced, check, descend, device_of, explain, plain, put, read_value,
    supply, take_power_loss,
};
use crate::error::{Error, Result};
use toml::{Table, Value};

impl Rig {
    /// Sets a key, `ftl.gc.victim` or `below.queue_slots`, to a value written as in TOML (text needs
    /// no quotes). A key that the outermost device does not know is looked for below it.
    ///
    /// # Errors
    /// [`Error::Rig`] where no device knows the key, or the value cannot be its.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        self.set_beside(key, value, &[])
    }

    /// Sets keys one after the other. One that cannot be without another, such as the size of an
    /// SLC cache without its times, finds that also behind it.
    ///
    /// # Errors
    /// That of [`Rig::set`] for the first that is wrong.
    pub fn set_all(&mut self, pairs: &[(String, String)]) -> Result<()> {
        (0..pairs.len())
            .try_for_each(|n| self.set_beside(&pairs[n].0, &pairs[n].1, &pairs[n + 1..]))
    }

    /// Sets a key; what it needs beside it may be among the ones that are `still_to_come`.
    fn set_beside(
        &mut self,
        key: &str,
        value: &str,
        still_to_come: &[(String, String)],
    ) -> Result<()> {
        let (value, source) = read_value(key, value)?;
        if key == POWER_LOSS {
            self.power_loss = take_power_loss(&mut Table::from_iter([(key.to_string(), value)]))?;
            return Ok(());
        }
        match device_of(key).1 {
            part if PARTS.contains(&part) => {
                return Err(Error::rig(key, "is a device, expected one of its keys"));
            }
            "kind" => {
                return Err(Error::rig(key, "cannot be set, a rig file can say another kind"));
            }
            _ => {}
        }
        let Offered { place, own, said } = self.offered(key, &value, still_to_come)?;
        let mut rig = Rig { device: said?, ..self.clone() };
        rig.note(&place, own, &value, source);
        *self = if supply::decides(own) { rig.supplied_anew(&place)? } else { rig };
        Ok(())
    }

    /// Offers a value to the first device on the way down that knows the key.
    ///
    /// # Errors
    /// [`Error::Rig`] where no device knows the key.
    pub(super) fn offered<'k>(
        &self,
        key: &'k str,
        value: &Value,
        still_to_come: &[(String, String)],
    ) -> Result<Offered<'k>> {
        if key.split('.').any(str::is_empty) {
            return Err(Error::rig(key, "is no key, expected names joined by dots"));
        }
        let (mut place, own) = self.device_of(key);
        let mut unknown = Vec::new();
        loop {
            let mut device = self.device.clone();
            let Some(target) = descend(&mut device, &place) else { break };
            put(target, own, value.clone())?;
            match self.check_beside(&mut device, &place, still_to_come) {
                Err(e) if explain::knowledge(&e).is_some() => unknown.push(e),
                said => return Ok(Offered { place, own, said: said.map(|()| device) }),
            }
            let members =
                self.device_at(&place).is_some_and(|device| device.contains_key("member"));
            place.push(if members { "member" } else { "below" });
        }
        let none = || Error::rig(key, "there is no device below that one");
        Err(explain::nearest_miss(unknown).unwrap_or_else(none))
    }

    /// Checks the device at a place, into which what it misses is put from what is `still_to_come` for it.
    fn check_beside(
        &self,
        device: &mut Table,
        place: &[&str],
        still_to_come: &[(String, String)],
    ) -> Result<()> {
        while let Some(target) = descend(device, place) {
            let said = check(target.clone());
            let Some(field) = said.as_ref().err().and_then(explain::missing) else { return said };
            let said = said.clone().map_err(|e| e.under(&place.join(".")).in_file(&self.file));
            let mut beside = still_to_come.iter().filter(|(key, _)| device_of(key).1 == field);
            let so_far = Rig { device: device.clone(), ..self.clone() };
            let Some((key, value)) = beside.find(|(key, value)| so_far.is_for(place, key, value))
            else {
                return said;
            };
            let value = read_value(key, value)?.0;
            descend(device, place).map_or(Ok(()), |target| put(target, device_of(key).1, value))?;
        }
        Ok(())
    }

    /// Whether it is the device at that place that takes a key.
    fn is_for(&self, place: &[&str], key: &str, value: &str) -> bool {
        let offered = read_value(key, value).and_then(|(value, _)| self.offered(key, &value, &[]));
        offered.is_ok_and(|offered| offered.place == place)
    }

    /// Sets a key of the table at a place, whatever it is.
    pub(super) fn put_at(&mut self, place: &[&str], key: &str, value: &str) -> Result<()> {
        let (value, source) = read_value(key, value)?;
        if let Some(table) = descend(&mut self.device, place) {
            put(table, key, value.clone())?;
            self.note(place, key, &value, source);
        }
        Ok(())
    }

    /// Notes where a value comes from that has just been set, in place of what was there.
    fn note(&mut self, place: &[&str], key: &str, value: &Value, source: String) {
        let steps: Vec<&str> = place.iter().copied().chain([key]).collect();
        let key = steps.join(".");
        let below = format!("{key}.");
        self.sources.retain(|one| one.key != key && !one.key.starts_with(&below));
        self.sources.push(Sourced { key, value: plain(value), source, origin: String::new() });
    }
}

/// What a device says to a value that it was offered.
pub(super) struct Offered<'k> {
    /// Steps to it, from the outermost device on.
    place: Vec<&'k str>,
    /// The key as the device itself calls it.
    own: &'k str,
    /// The devices with the value set, or what is wrong with it.
    said: Result<Table>,
}
