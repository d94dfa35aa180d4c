//! Drives at reduced size: fewer blocks per plane, every ratio kept.

use super::Rig;
use crate::error::{Error, Result};

/// Capacities are whole mapping units.
const UNIT: u64 = 4096;

/// Superblocks of a drive that erases many dies together: their number decides how finely it can
/// choose what to collect.
const SUPERBLOCKS_TOGETHER: u64 = 400;

impl Rig {
    /// Keys and values that make a drive `factor` times smaller; none for 1.
    ///
    /// A die keeps its planes, pages and timing and has fewer blocks. Blocks are whole, so the
    /// capacity is not quite the full one divided by `factor`, but chosen such that reserve and data
    /// fill whole superblocks and over-provisioning stays exactly what it was. Where the drive erases
    /// blocks of many dies together, too few superblocks would remain; then blocks have fewer pages,
    /// and are erased in less time. The same is done where fewer than `fewest` would remain: a drive
    /// of ten superblocks has no reserve left but those that are being written. The table of an extent
    /// map, an SLC cache and the marks of periodic collection shrink with the drive. So do the caches
    /// of a hard disk, whose seeks are shares of its stroke. A write buffer keeps its size, as it fills the program units
    /// of as many dies, and absorbs no overwrites: of a load over the whole drive there are next to none at full
    /// size, and it would find more the less there is to write to.
    ///
    /// # Errors
    /// [`Error::Rig`] where the rig is no single SSD or hard disk, or does not say how large it is.
    pub fn scale(&self, factor: u64, fewest: u64) -> Result<Vec<(&'static str, String)>> {
        if factor == 0 {
            return Err(Error::rig(
                &self.file,
                "cannot be made 0 times smaller, expected 1 or more",
            ));
        }
        if factor == 1 {
            return Ok(Vec::new());
        }
        match self.drive_kind().as_str() {
            "hdd" => self.scaled_disk(factor),
            "ssd" => self.scaled_ssd(factor, fewest),
            kind => {
                let problem = format!("is {kind}, and only an ssd or hdd can be made smaller");
                Err(Error::rig(format!("{}: kind", self.file), problem))
            }
        }
    }

    /// The kind of the innermost device.
    fn drive_kind(&self) -> String {
        let mut place = Vec::new();
        while self.device_at(&place).is_some_and(|device| device.contains_key("below")) {
            place.push("below");
        }
        let device = self.device_at(&place);
        device.and_then(|d| d.get("kind")?.as_str()).unwrap_or("nothing").to_string()
    }

    fn scaled_disk(&self, factor: u64) -> Result<Vec<(&'static str, String)>> {
        let mut own = Vec::new();
        for key in ["read_cache", "write_cache", "capacity"] {
            let size = self.needed(key, self.bytes(key)?)? / factor;
            let size = if key == "capacity" { size / UNIT * UNIT } else { size };
            own.push((key, format!("{size}B")));
        }
        Ok(own)
    }

    fn scaled_ssd(&self, factor: u64, fewest: u64) -> Result<Vec<(&'static str, String)>> {
        let capacity = self.needed("capacity", self.bytes("capacity")?)?;
        let reserve = 1.0 + self.number("ftl.over_provisioning")?;
        let ways = self.count("nand.ways")?;
        let dies = self.count("nand.channels")? * ways;
        let mut pages = self.count("nand.pages_per_block")?;
        let page = self.needed("nand.page", self.bytes("nand.page")?)?;
        let stripe = dies * page * self.count("nand.planes")?;
        let together = match self.get("ftl.gc.scope").as_deref() {
            Some("drive" | "channel") => SUPERBLOCKS_TOGETHER,
            _ => 1,
        };
        let fewest = fewest.max(together) as f64;
        let remain =
            |pages: u64| capacity as f64 * reserve / stripe as f64 / pages as f64 / factor as f64;
        let mut shorter = 1;
        while remain(pages) < fewest && pages.is_multiple_of(2) {
            pages /= 2;
            shorter *= 2;
        }
        let mut own = Vec::new();
        if shorter > 1 {
            let erase = self.needed("nand.t_erase", self.nanos("nand.t_erase")?)?;
            own.push(("nand.pages_per_block", pages.to_string()));
            own.push(("nand.t_erase", format!("{}ns", erase / shorter)));
        }
        let superblocks = (remain(pages).round_ties_even() as u64).max(1);
        let data = (superblocks * stripe * pages) as f64 / reserve;
        own.push(("capacity", format!("{}B", data as u64 / UNIT * UNIT)));
        if let Some(namespace) = self.bytes("namespace")? {
            let share = namespace as f64 / capacity as f64;
            own.push(("namespace", format!("{}B", (data * share) as u64 / UNIT * UNIT)));
        }
        if self.get("ftl.map.kind").as_deref() == Some("extent") {
            let entries = self.count("ftl.map.entries")? / factor;
            own.push(("ftl.map.entries", entries.to_string()));
        }
        if self.get("ftl.gc.pace").as_deref() == Some("periodic") {
            // Its marks are a share of the drive, but above the reserve of collection.
            let start = self.number("ftl.gc.batch.start")?;
            let end = self.number("ftl.gc.batch.end")?;
            let low =
                if self.get("ftl.gc.low").is_some() { self.number("ftl.gc.low")? } else { 1.0 };
            let begin = (start / factor as f64).max(low + 0.5);
            own.push(("ftl.gc.batch.start", six_digits(begin)));
            own.push(("ftl.gc.batch.end", six_digits(begin + (end - start) / factor as f64)));
        }
        if self.get("write_buffer.size").is_some() {
            own.push(("write_buffer.drain", "immediate".to_string()));
        }
        for key in ["ftl.slc_cache.static_size", "ftl.slc_cache.dynamic_size"] {
            if let Some(size) = self.bytes(key)? {
                own.push((key, format!("{}B", size / factor)));
            }
        }
        Ok(own)
    }

    fn needed<T>(&self, key: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| {
            let problem = "is not set, and how much smaller the drive would be depends on it";
            Error::rig(format!("{}: {key}", self.file), problem)
        })
    }

    fn number(&self, key: &str) -> Result<f64> {
        let text = self.needed(key, self.get(key))?;
        text.parse().map_err(|_| Error::value(text, "a number").under(key))
    }

    fn count(&self, key: &str) -> Result<u64> {
        let text = self.needed(key, self.get(key))?;
        let count = text.parse().ok().filter(|count| *count > 0);
        count.ok_or_else(|| Error::value(text, "a whole number above 0").under(key))
    }
}

/// A number with six significant digits.
fn six_digits(x: f64) -> String {
    let rounded: f64 = format!("{x:.5e}").parse().unwrap_or(x);
    rounded.to_string()
}
