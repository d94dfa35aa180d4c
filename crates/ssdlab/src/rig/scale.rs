//! Drives at reduced size: fewer blocks per plane, every ratio kept.

use super::look::parts_of;
use super::{Attachment, Rig, take_kind};
use crate::error::{Error, Result};
use crate::units::figures;
use toml::Table;

/// Capacities are whole mapping units.
const UNIT: u64 = 4096;

/// Superblocks of a drive that erases many dies together: their number decides how finely it can
/// choose what to collect.
const SUPERBLOCKS_TOGETHER: u64 = 400;

/// The same of a drive with a map of extents. It merges whole segments, which then become invalid together, so that
/// superblocks of few segments are emptier when they are collected: of an X25-M 5 MiB amplify 18 % less than 20 MiB.
const SUPERBLOCKS_OF_SEGMENTS: u64 = 128;

/// The same of a region where collection goes on between batches. Of few superblocks the marks are so low that single regions
/// begin batches, not the drive: an S3700 whose dies have 62 begins 60 times as many as one of the same size with 248.
const SUPERBLOCKS_BETWEEN_BATCHES: u64 = 128;

/// Times that a superblock holds what is copied in a row, so that its end seldom comes in between.
const BURSTS: u64 = 4;

/// RAM of a card is made no smaller than this: stripes and long writes gather in it.
const CARD_RAM: u64 = 64 << 20;

/// Superblocks of a region: those that its data fills, all of them, and how many are kept free beyond those that are
/// collected when need be.
struct Superblocks {
    data: f64,
    all: f64,
    ahead: Ahead,
}

/// How far collection is ahead of need.
enum Ahead {
    /// Not at all: what is free is written at once.
    None,
    /// Paced: by the superblock that it begins with before it must, of so much that is spare.
    One(f64),
    /// Periodic: up to a mark, which shrinks with the drive but not below the least one.
    Mark { start: f64, least: f64 },
}

impl Superblocks {
    /// Spare superblocks that do not become fewer with the drive.
    fn lasting(&self, fewer: f64) -> f64 {
        match self.ahead {
            Ahead::None => 0.0,
            Ahead::One(spare) => spare.min(1.0),
            Ahead::Mark { start, least } if fewer > 1.0 => {
                (least - start / fewer).max(0.0) / (1.0 - 1.0 / fewer)
            }
            Ahead::Mark { .. } => 0.0,
        }
    }

    /// How many a drive has that is so many times smaller.
    fn left(&self, fewer: f64) -> f64 {
        let lasting = self.lasting(fewer);
        (self.all - lasting) / fewer + lasting
    }

    /// Those that its data fills of `all` in a drive so many times smaller: the same share of what is not lasting.
    fn data_left(&self, all: f64, fewer: f64) -> f64 {
        let lasting = self.lasting(fewer);
        self.data * (all - lasting) / (self.all - lasting)
    }
}

impl Rig {
    /// Keys and values that make its drives `factor` times smaller; none for 1.
    ///
    /// A die keeps its planes, pages and timing and has fewer blocks. Blocks are whole, so the
    /// capacity is not quite the full one divided by `factor`, but chosen such that reserve and data
    /// fill whole superblocks. Where collection is paced it is about a superblock of each region ahead of need, whatever the
    /// size, and where it is periodic up to a mark; what is spare beside that stays the same share of the data, so that
    /// over-provisioning of a smaller drive is more in name, a number of its own that its dies do not decide. Where the drive erases
    /// blocks of many dies together, too few superblocks would remain; then blocks have fewer pages,
    /// and are erased in less time; superblocks stay whole stripes of parity. The same is done where fewer than `fewest`
    /// would remain: what is collected has to be chosen among many. The table of an extent
    /// map, the RAM of a cached one, an SLC cache and the marks of periodic collection shrink with the drive. So do the caches
    /// of a hard disk, whose seeks are shares of its stroke. A write buffer keeps its size, as it fills the program units
    /// of as many dies, unless host writes wait for whole superblocks to be collected (`blocking`): what it has to take in
    /// meanwhile shrinks with the blocks. It absorbs no overwrites: of a load over the whole drive there are next to none
    /// at full size, and it would find more the less there is to write to. Partitions shrink with what they are of, and so does the RAM of
    /// cards, down to 64 MiB; the tables of arrays, caches and tiers stay as they are.
    ///
    /// Blocks of a few pages amplify less, as how many of their units are valid differs more, and a drive that is small
    /// at full size comes to them soon: docs/experiments.md has the numbers. With a map of extents, which writes segments of
    /// many units, longer blocks do, so that fewer superblocks are left instead.
    ///
    /// # Errors
    /// [`Error::Rig`] where a drive does not say how large it is, or cannot be that small.
    pub fn scale(&self, factor: u64, fewest: u64) -> Result<Vec<(String, String)>> {
        if factor == 0 {
            return Err(Error::rig(
                &self.file,
                "cannot be made 0 times smaller, expected 1 or more",
            ));
        }
        if factor == 1 {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        let mut places = Vec::new();
        leaves(&self.device, "", &mut places);
        for place in &places {
            let mut drive = self.part(place).expect("it was found there");
            let kind = drive.get("kind");
            // Where the rig says nothing a default does.
            drive.device = (take_kind(&mut drive.device)?.build.read)(drive.device)?;
            let own = match kind.as_deref() {
                Some("hdd") => drive.scaled_disk(factor),
                Some("ssd") => drive.scaled_ssd(factor, fewest),
                _ => drive.scaled_sizes(&["capacity"], factor),
            }?;
            // Of a drive alone, behind a link perhaps, the keys are known as they are.
            let alone =
                places.len() == 1 && place.split('.').all(|step| matches!(step, "below" | ""));
            let before = if alone { "" } else { place.as_str() };
            all.extend(own.into_iter().map(|(key, value)| (format!("{before}{key}"), value)));
        }
        for place in self.find("controller") {
            let card = self.part(&place).expect("it was found there");
            if let Some(ram) = card.bytes("cache.size")? {
                let size = smaller_ram(ram, factor as f64, CARD_RAM);
                all.push((format!("{place}cache.size"), format!("{size}B")));
            }
        }
        for place in self.find("partition") {
            let slice = self.part(&place).expect("it was found there");
            for key in ["offset", "size"] {
                let size = slice.device.get(key).map(|_| slice.bytes(key)).transpose()?.flatten();
                let smaller = size.map(|size| (format!("{place}{key}"), scaled_size(size, factor)));
                all.extend(smaller);
            }
        }
        Ok(all)
    }

    fn scaled_disk(&self, factor: u64) -> Result<Vec<(&'static str, String)>> {
        self.scaled_sizes(&["buffer", "capacity"], factor)
    }

    fn scaled_sizes(
        &self,
        keys: &[&'static str],
        factor: u64,
    ) -> Result<Vec<(&'static str, String)>> {
        let scaled = |key: &&'static str| {
            let size = self.needed(key, self.bytes(key)?)?;
            Ok((*key, scaled_size(size, factor)))
        };
        keys.iter().map(scaled).collect()
    }

    fn scaled_ssd(&self, factor: u64, fewest: u64) -> Result<Vec<(&'static str, String)>> {
        let capacity = self.needed("capacity", self.bytes("capacity")?)?;
        let (full, stripe) = self.superblocks(capacity)?;
        let whole = self.count("nand.pages_per_block")?;
        let shorter = self.shorter_blocks(&full, factor, fewest)?;
        let pages = whole / shorter;
        let mut own = Vec::new();
        if shorter > 1 {
            let erase = self.needed("nand.t_erase", self.nanos("nand.t_erase")?)?;
            own.push(("nand.pages_per_block", pages.to_string()));
            own.push(("nand.t_erase", format!("{}ns", erase / shorter)));
        }
        let fewer = factor as f64 / shorter as f64;
        let all = (full.left(fewer).round_ties_even()).max(2.0);
        let data = full.data_left(all, fewer);
        let less = data / full.data / shorter as f64;
        let sized = |size: u64| format!("{}B", (size as f64 * less) as u64 / UNIT * UNIT);
        own.push(("capacity", sized(capacity)));
        own.push(("ftl.over_provisioning", figures(9, all / data - 1.0)));
        let namespace = self.bytes("namespace")?;
        if let Some(namespace) = namespace {
            own.push(("namespace", sized(namespace)));
        }
        let stands_for = self.bytes("full_capacity")?.or(namespace).unwrap_or(capacity);
        own.push(("full_capacity", format!("{stands_for}B")));
        match self.get("ftl.map.kind").as_deref() {
            Some("extent") => {
                let entries = self.count("ftl.map.entries")? / factor;
                own.push(("ftl.map.entries", entries.to_string()));
            }
            Some("cached") => own.extend(self.scaled_sizes(&["ftl.map.cache"], factor)?),
            _ => {}
        }
        own.extend(self.scaled_marks(fewer)?);
        if let Some(size) = self.bytes("write_buffer.size")? {
            own.push(("write_buffer.drain", "immediate".to_string()));
            if shorter > 1 && self.get("ftl.gc.pace").as_deref() == Some("blocking") {
                own.push(("write_buffer.size", format!("{}B", (size / shorter).max(stripe))));
            }
        }
        for key in ["ftl.slc_cache.static_size", "ftl.slc_cache.dynamic_size"] {
            if let Some(size) = self.bytes(key)? {
                own.push((key, format!("{}B", size / factor)));
            }
        }
        Ok(own)
    }

    /// The superblocks of a region at full size, and bytes of a page of every die.
    fn superblocks(&self, capacity: u64) -> Result<(Superblocks, u64)> {
        let dies = self.count("nand.channels")? * self.count("nand.ways")?;
        let page = self.needed("nand.page", self.bytes("nand.page")?)?;
        let stripe = dies * page * self.count("nand.planes")?;
        let parity = self.get("ftl.parity.stripe").and_then(|text| text.parse::<f64>().ok());
        let held = parity.filter(|stripe| *stripe > 1.0).map_or(1.0, |stripe| 1.0 - 1.0 / stripe);
        let pages = self.count("nand.pages_per_block")?;
        let data = capacity as f64 / held / stripe as f64 / pages as f64;
        let all = data * (1.0 + self.number("ftl.over_provisioning")?);
        let ahead = match self.get("ftl.gc.pace").as_deref() {
            Some("paced") => Ahead::One(all - data),
            Some("periodic") => {
                Ahead::Mark { start: self.number("ftl.gc.batch.start")?, least: self.least_mark()? }
            }
            _ => Ahead::None,
        };
        Ok((Superblocks { data, all, ahead }, stripe))
    }

    /// How many times shorter blocks are, so that there are superblocks enough.
    fn shorter_blocks(&self, full: &Superblocks, factor: u64, fewest: u64) -> Result<u64> {
        let extents = self.get("ftl.map.kind").as_deref() == Some("extent");
        let together = match self.get("ftl.gc.scope").as_deref() {
            Some("drive") if extents => SUPERBLOCKS_OF_SEGMENTS,
            Some("drive" | "channel") => SUPERBLOCKS_TOGETHER,
            _ if self.collects_between_batches() => SUPERBLOCKS_BETWEEN_BATCHES,
            _ => 1,
        };
        let wanted = fewest.max(together) as f64;
        let left = |shorter: u64| full.left(factor as f64 / shorter as f64);
        // Of less than two superblocks, a whole number is not about as many.
        let coarse = |left: f64| (left.round_ties_even().max(1.0) - left).abs() > left / 4.0;
        let (program, whole) = (self.pages_per_program(), self.count("nand.pages_per_block")?);
        let few = |shorter: u64| left(shorter) < wanted || coarse(left(shorter));
        let (mut shorter, mut pages) = (1, whole);
        let in_row = self.get("ftl.gc.in_row").and_then(|text| text.parse::<u64>().ok());
        let least = BURSTS * program * in_row.unwrap_or(0);
        // In SLC mode, too, a block holds a program unit.
        let slc = match self.get("ftl.slc_cache.t_read") {
            Some(_) => self.count("nand.bits_per_cell")? * program,
            None => 0,
        };
        while few(shorter) {
            let Some(step) = least_divisor(pages, program) else { break };
            let enough = left(shorter) >= fewest as f64;
            if pages / step < slc || enough && pages / step < least {
                break;
            }
            pages /= step;
            shorter *= step;
        }
        let stripes = self.superblocks_of_stripes(program)?;
        if stripes(whole) && !stripes(pages) {
            let divisors = (1..=whole / program).filter(|n| whole.is_multiple_of(program * n));
            let fit: Vec<u64> = divisors.filter(|&n| stripes(whole / n)).collect();
            shorter = *fit.iter().find(|&&n| !few(n)).or(fit.last()).unwrap_or(&1);
        }
        if left(shorter) >= fewest as f64 {
            return Ok(shorter);
        }
        let most = left(shorter) * factor as f64 / fewest as f64;
        let problem = format!(
            "cannot be made {factor} times smaller: {:.0} superblocks would be left, expected at least \
             {fewest}; {} times can be",
            left(shorter),
            (most as u64).max(1)
        );
        Err(Error::rig(format!("{}: capacity", self.file), problem))
    }

    fn collects_between_batches(&self) -> bool {
        let between = self.get("ftl.gc.batch.between").and_then(|text| text.parse::<f64>().ok());
        self.get("ftl.gc.pace").as_deref() == Some("periodic") && between.is_some_and(|b| b > 0.0)
    }

    /// Whether a superblock with so many pages in a block consists of whole stripes of parity, where those of the drive
    /// are longer than one program unit of each die.
    fn superblocks_of_stripes(&self, program: u64) -> Result<impl Fn(u64) -> bool> {
        let stripe = self.get("ftl.parity.stripe").and_then(|text| text.parse::<u64>().ok());
        let dies = match self.get("ftl.gc.scope").as_deref() {
            Some("drive") => self.count("nand.channels")? * self.count("nand.ways")?,
            Some("channel") => self.count("nand.ways")?,
            _ => 1,
        };
        let longer = stripe.filter(|&stripe| stripe > dies);
        Ok(move |pages: u64| {
            longer.is_none_or(|stripe| (dies * pages / program).is_multiple_of(stripe))
        })
    }

    /// Pages that are programmed together, of which a block has a whole number.
    fn pages_per_program(&self) -> u64 {
        let one_shot = self.get("nand.one_shot").as_deref() == Some("true");
        if one_shot { self.count("nand.bits_per_cell").unwrap_or(3) } else { 1 }
    }

    /// The marks of periodic collection: superblocks of the region, above the reserve of collection. There are `fewer`
    /// times fewer of them.
    fn scaled_marks(&self, fewer: f64) -> Result<Vec<(&'static str, String)>> {
        if self.get("ftl.gc.pace").as_deref() != Some("periodic") {
            return Ok(Vec::new());
        }
        let start = self.number("ftl.gc.batch.start")?;
        let end = self.number("ftl.gc.batch.end")?;
        let begin = (start / fewer).max(self.least_mark()?);
        Ok(vec![
            ("ftl.gc.batch.start", figures(6, begin)),
            ("ftl.gc.batch.end", figures(6, begin + (end - start) / fewer)),
        ])
    }

    /// The mark at which periodic collection begins, at least: host writes must not come to the reserve before.
    fn least_mark(&self) -> Result<f64> {
        let low = if self.get("ftl.gc.low").is_some() { self.number("ftl.gc.low")? } else { 1.0 };
        Ok(low + 0.5)
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

impl Attachment {
    /// The same with a card's RAM `factor` times smaller, but not below `least` bytes; absent: as of [`Rig::scale`].
    ///
    /// # Errors
    /// [`Error::Value`] where its size is none.
    pub fn scaled(&self, factor: f64, least: Option<u64>) -> Result<Attachment> {
        const KEY: &str = "controller.cache.size";
        let mut other = self.clone();
        if let Some(ram) = self.keys().bytes(KEY)? {
            let size = smaller_ram(ram, factor, least.unwrap_or(CARD_RAM));
            other.set(KEY, &format!("{size}B"))?;
        }
        Ok(other)
    }
}

/// Whole units of it, at least `least`, and never more than there is.
fn smaller_ram(size: u64, factor: f64, least: u64) -> u64 {
    ((size as f64 / factor.max(1.0)) as u64 / UNIT * UNIT).max(least).min(size)
}

/// In whole units, and something of what there is.
fn scaled_size(size: u64, factor: u64) -> String {
    format!("{}B", (size / factor / UNIT * UNIT).max(size.min(UNIT)))
}

/// Where devices are that are made of no others, with the dot behind.
fn leaves(device: &Table, place: &str, found: &mut Vec<String>) {
    let before = found.len();
    for (step, part) in parts_of(device) {
        leaves(part, &format!("{place}{step}."), found);
    }
    if found.len() == before {
        found.push(place.to_string());
    }
}

/// The least whole number above 1 by which pages divide into whole programs: 2 as long as it does.
fn least_divisor(pages: u64, program: u64) -> Option<u64> {
    (2..=pages / program).find(|step| pages.is_multiple_of(program * step))
}
