//! From the keys of an SSD to its parts: what fits, what does not, and why.

use super::buffer::{Buffer, DRAINS, Dirty, DrainParameters};
use super::keys::{BatchKeys, SsdKeys, WearKeys};
use crate::device::{Build, SECTOR};
use crate::error::{Error, Result};
use crate::ftl::mapping::{self, MAPS, Mapping};
use crate::ftl::{
    Batch, Layout, Pace, PageMap, Policies, Settings, placement, victim,
    wear_leveling::{self, WearLeveling},
};
use crate::nand::Geometry;
use crate::rig::{at_most, at_most_an_hour};
use crate::units::{Bytes, Nanos, figures};

/// Largest physical / logical - 1.
const OVER_PROVISIONING_MAX: f64 = 20.0;

pub(super) fn between(key: &str, value: f64, low: f64, high: f64) -> Result<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::rig(key, format!("found {value}, expected a number from {low} to {high}")))
}

impl SsdKeys {
    /// The drive as its host finds it: that of a smaller capacity where there is a namespace, with the
    /// rest as over-provisioning.
    pub fn as_exposed(&self) -> Result<SsdKeys> {
        let mut keys = self.clone();
        let Some(namespace) = keys.namespace.take() else { return Ok(keys) };
        let unit = self.ftl.mapping_unit.0.max(1);
        if namespace.0 == 0 || namespace > self.capacity || !namespace.0.is_multiple_of(unit) {
            return Err(Error::rig(
                "namespace",
                format!(
                    "found {namespace}, expected a multiple of the mapping unit ({}) above 0, at \
                     most the capacity ({})",
                    self.ftl.mapping_unit, self.capacity
                ),
            ));
        }
        let times = self.capacity.0 as f64 / namespace.0 as f64;
        let physical = times * (1.0 + self.ftl.over_provisioning);
        if physical > 1.0 + OVER_PROVISIONING_MAX {
            return Err(Error::rig(
                "namespace",
                format!(
                    "found {namespace}, which leaves more than {OVER_PROVISIONING_MAX} times as \
                     much in reserve; expected a larger one"
                ),
            ));
        }
        keys.capacity = namespace;
        keys.ftl.over_provisioning = physical - 1.0;
        Ok(keys)
    }

    /// Checks every number against what it can be.
    fn check_ranges(&self) -> Result<()> {
        let nand = &self.nand;
        for (key, value, high) in [
            ("nand.channels", nand.channels, 64.0),
            ("nand.ways", nand.ways, 64.0),
            ("nand.planes", nand.planes, 16.0),
            ("nand.pages_per_block", nand.pages_per_block, 8192.0),
            ("nand.bits_per_cell", nand.bits_per_cell, 4.0),
            ("ftl.gc.low", self.ftl.gc.low, 1024.0),
            ("ftl.gc.in_row", self.ftl.gc.in_row.unwrap_or(1), 1024.0),
            ("ftl.gc.choices", self.ftl.gc.choices, 65_536.0),
            ("nand.rated_pe_cycles", nand.rated_pe_cycles, 1e7),
            ("controller.cores", self.controller.cores.max(1), 1024.0),
        ] {
            between(key, f64::from(value), 1.0, high)?;
        }
        for (key, time) in [
            ("nand.t_erase", nand.t_erase),
            ("nand.suspend.enter", nand.suspend.enter),
            ("nand.suspend.resume", nand.suspend.resume),
            ("controller.command_time", self.controller.command_time),
            ("controller.write_time", self.controller.write_time),
            ("controller.read_latency", self.controller.read_latency),
            ("controller.write_latency", self.controller.write_latency),
            ("controller.relocate_time", self.controller.relocate_time),
            ("controller.map_update_time", self.controller.map_update_time),
            ("ftl.gc.idle_after", self.ftl.gc.idle_after.unwrap_or_default()),
        ] {
            at_most_an_hour(key, time)?;
        }
        if let Some(full) = self.full_capacity.filter(|full| *full < self.capacity) {
            let problem =
                format!("found {full}, expected at least the capacity ({})", self.capacity);
            return Err(Error::rig("full_capacity", problem));
        }
        // There may be 2^32 of them in a command.
        let trim = self.controller.trim_unit_time;
        at_most("controller.trim_unit_time", trim, Nanos::millis(1), "1ms")?;
        between("ftl.gc.idle_superblocks", f64::from(self.ftl.gc.idle_superblocks), 0.0, 65_536.0)?;
        between("nand.transfer_mts", nand.transfer_mts, 1.0, 10_000.0)?;
        between("nand.reserve", nand.reserve, 0.0, 0.9)?;
        between("ftl.over_provisioning", self.ftl.over_provisioning, 0.001, OVER_PROVISIONING_MAX)?;
        between("ftl.gc.window", self.ftl.gc.window, 0.0, 1.0)?;
        // Whatever the pace; what else a batch must be is said where its superblocks are known.
        let batch = &self.ftl.gc.batch;
        for (key, value) in [
            ("ftl.gc.batch.start", batch.start),
            ("ftl.gc.batch.end", batch.end),
            ("ftl.gc.batch.copies", batch.copies),
            ("ftl.gc.batch.between", batch.between),
        ] {
            between(key, value, 0.0, f64::from(u32::MAX))?;
        }
        Ok(())
    }

    /// Bytes of a physical unit: a granule of compression, or a mapping unit.
    fn granule(&self) -> Result<u64> {
        let unit = self.ftl.mapping_unit.0;
        let Some(compression) = &self.ftl.compression else { return Ok(unit) };
        let (granule, least) = (compression.granule, Bytes((unit / 128).max(64)));
        if granule.0.is_power_of_two() && (least.0..=unit).contains(&granule.0) {
            return Ok(granule.0);
        }
        Err(Error::rig(
            "ftl.compression.granule",
            format!(
                "found {granule}, expected a power of two from {least} to the mapping unit ({})",
                self.ftl.mapping_unit
            ),
        ))
    }

    /// Checks every value on its own and makes the geometry.
    pub fn geometry(&self) -> Result<Geometry> {
        self.check_ranges()?;
        let nand = &self.nand;
        let unit = self.ftl.mapping_unit.0;
        if !unit.is_power_of_two() || !(512..=1 << 20).contains(&unit) {
            let found = self.ftl.mapping_unit;
            return Err(Error::rig(
                "ftl.mapping_unit",
                format!("found {found}, expected a power of two from 512 B to 1 MiB"),
            ));
        }
        if nand.page.0 == 0 || !nand.page.0.is_multiple_of(unit) || nand.page.0 > 1 << 20 {
            return Err(Error::rig(
                "nand.page",
                format!(
                    "found {}, expected a multiple of the mapping unit ({}), at most 1 MiB",
                    nand.page, self.ftl.mapping_unit
                ),
            ));
        }
        if self.capacity.0 == 0 || !self.capacity.0.is_multiple_of(unit) {
            return Err(Error::rig(
                "capacity",
                format!(
                    "found {}, expected a multiple of the mapping unit ({}) above 0",
                    self.capacity, self.ftl.mapping_unit
                ),
            ));
        }
        if let Some(ahead) = &self.controller.read_ahead
            && !(unit..=1 << 30).contains(&ahead.size.0)
        {
            return Err(Error::rig(
                "controller.read_ahead.size",
                format!(
                    "found {}, expected a size from the mapping unit ({}) to 1 GiB",
                    ahead.size, self.ftl.mapping_unit
                ),
            ));
        }
        let granule = self.granule()?;
        self.check_pages()?;
        let geometry = Geometry {
            channels: nand.channels,
            ways: nand.ways,
            planes: nand.planes,
            pages: nand.pages_per_block,
            pages_per_program: self.pages_per_program(),
            units_per_page: (nand.page.0 / granule) as u32,
            unit_bytes: granule as u32,
        };
        if let Some(limit) = self.controller.write_limit
            && limit.0 < 1000
        {
            let problem = format!("found {limit}, expected at least 1kB/s, such as \"200MB/s\"");
            return Err(Error::rig("controller.write_limit", problem));
        }
        // All dies' blocks together, the largest superblock there can be, must be countable.
        let factors = [geometry.channels, nand.ways, nand.planes, nand.pages_per_block];
        let units: u64 = factors.iter().map(|&n| u64::from(n)).product();
        if units * u64::from(geometry.units_per_page) >= 1 << 32 {
            return Err(Error::rig(
                "nand",
                "one block of every die is more than 2^32 mapping units or granules, expected fewer \
                 dies, planes, pages or larger ones",
            ));
        }
        self.check_parity(&geometry)?;
        Ok(geometry)
    }

    /// A stripe of parity must fit a superblock.
    fn check_parity(&self, geometry: &Geometry) -> Result<()> {
        let stripe = self.ftl.parity.stripe;
        let programs = Layout::new(geometry, self.ftl.gc.scope, 1).programs_per_superblock();
        if stripe == 0 || (2..=programs).contains(&stripe) {
            return Ok(());
        }
        Err(Error::rig(
            "ftl.parity.stripe",
            format!(
                "found {stripe}, expected 0 for no parity, or from 2 to the {programs} program \
                 units of a superblock"
            ),
        ))
    }

    /// When periodic collection begins and ends; `most` superblocks of a region can be free.
    fn check_batch(&self, most: f64) -> Result<()> {
        let gc = &self.ftl.gc;
        if gc.pace != Pace::Periodic {
            return Ok(());
        }
        let batch = &gc.batch;
        if *batch == BatchKeys::default() {
            return Err(Error::rig(
                "ftl.gc.batch",
                "is missing: ftl.gc.pace = \"periodic\" needs its start, end and copies",
            ));
        }
        between("ftl.gc.batch.copies", batch.copies, 0.001, 65_536.0)?;
        between("ftl.gc.batch.between", batch.between, 0.0, batch.copies)?;
        // At `low` host writes wait for collection, whatever a batch would do.
        let low = f64::from(gc.low);
        if batch.start <= low || batch.start.is_nan() {
            let start = batch.start;
            return Err(Error::rig(
                "ftl.gc.batch.start",
                format!("found {start}, expected more free superblocks than ftl.gc.low ({low})"),
            ));
        }
        if !(batch.end > batch.start && batch.end <= most) {
            return Err(Error::rig(
                "ftl.gc.batch.end",
                format!(
                    "found {}, expected more free superblocks than ftl.gc.batch.start ({}), and at \
                     most {most:.2}: so many of a region are free when the data lies as densely \
                     as it can",
                    batch.end, batch.start
                ),
            ));
        }
        Ok(())
    }

    /// Regions, superblocks and die arithmetic for the capacity and over-provisioning asked for.
    pub fn layout(&self, geometry: &Geometry) -> Result<Layout> {
        let units = (self.capacity.0 / u64::from(geometry.unit_bytes)) as f64;
        let granules = self.ftl.mapping_unit.0 / u64::from(geometry.unit_bytes);
        let stripe = self.ftl.parity.stripe;
        let layout = |superblocks| {
            Layout::new(geometry, self.ftl.gc.scope, superblocks)
                .with_parity(stripe)
                .packed(granules as u32)
        };
        let probe = layout(1);
        if granules > 1 && probe.data_units_per_superblock() == probe.units_per_program() {
            return Err(Error::rig(
                "ftl.compression",
                "needs superblocks of more than one program unit of data: expected more \
                 nand.pages_per_block",
            ));
        }
        let superblock = f64::from(probe.data_units_per_superblock());
        let per_region = units / f64::from(probe.regions) / superblock;
        let data = (per_region * (1.0 + self.ftl.over_provisioning)).round();
        let total = data + f64::from(self.settings().reserve());
        let physical = total * f64::from(probe.regions) * f64::from(probe.units_per_superblock());
        if physical >= f64::from(u32::MAX) {
            return Err(Error::rig(
                "capacity",
                format!(
                    "{} in units of {} is more than the 2^32 units that a drive can have; \
                     take a larger {}",
                    self.capacity,
                    Bytes(u64::from(geometry.unit_bytes)),
                    if granules > 1 { "ftl.compression.granule" } else { "ftl.mapping_unit" }
                ),
            ));
        }
        let layout = layout(total as u32);
        let layout = layout.with_set_aside(self.set_aside(&layout)?);
        let holds =
            f64::from(PageMap::region_limit(&layout, &self.settings())) * f64::from(layout.regions);
        if holds < units {
            return Err(self.too_little(&layout, per_region));
        }
        let frontiers = f64::from(self.settings().frontiers());
        self.check_batch(total - frontiers - per_region)?;
        Ok(layout)
    }

    /// Memory that the drive takes, bytes: the map and its inverse, the lengths of compressed units, a
    /// bit for what is valid and one for what is in RAM, and the bookkeeping of superblocks and of the
    /// write buffer.
    pub fn memory(&self) -> Result<u64> {
        if self.namespace.is_some() {
            return self.as_exposed()?.memory();
        }
        let geometry = self.geometry()?;
        let layout = self.layout(&geometry)?;
        let logical = self.capacity.0 / self.ftl.mapping_unit.0;
        let superblocks = u64::from(layout.regions) * u64::from(layout.superblocks);
        let lengths = if layout.granules() > 1 { logical } else { 0 };
        let per_superblock = 48 + u64::from(self.ftl.slc_cache.is_some());
        let buffer = self.write_buffer.as_ref().map_or(0, |buffer| {
            let units = buffer.size.0 / u64::from(geometry.unit_bytes);
            Dirty::memory(units.min(logical), self.ftl.mapping_unit.0)
        });
        Ok(4 * logical + lengths + 17 * layout.units() / 4 + per_superblock * superblocks + buffer)
    }

    /// The write buffer, if there is one.
    pub fn buffer(&self, geometry: &Geometry, build: &Build) -> Result<Option<Buffer>> {
        let Some(keys) = &self.write_buffer else { return Ok(None) };
        between("write_buffer.watermark", keys.watermark, 0.0, 1.0)?;
        let idle_after = keys.idle_after;
        at_most_an_hour("write_buffer.idle_after", idle_after.unwrap_or_default())?;
        let drain = DRAINS.find(&keys.drain).map_err(|e| e.under("write_buffer.drain"))?;
        let unit = u64::from(geometry.unit_bytes);
        // At least one mapping unit that does not shrink.
        let least = self.ftl.mapping_unit.0 / unit;
        Ok(Some(Buffer {
            units: (keys.size.0 / unit).clamp(least, u64::from(u32::MAX)) as u32,
            protected: keys.power_loss_protected,
            holds_moves: keys.holds_moves,
            idle_after: idle_after.map(|time| time.0),
            program: geometry.units_per_program(),
            ..Buffer::new(
                (drain.build)(&DrainParameters { watermark: keys.watermark }),
                Dirty::new(self.ftl.mapping_unit.0, build.keep_versions),
            )
        }))
    }

    /// The error for a region that cannot collect: `data` superblocks full of data are too many.
    fn too_little(&self, layout: &Layout, data: f64) -> Error {
        let room = |data: f64| (data * (1.0 + self.ftl.over_provisioning)).round();
        let superblock = u64::from(layout.data_units_per_superblock()) * self.ftl.mapping_unit.0
            / u64::from(layout.granules());
        // Rounded, that makes as many superblocks as there have to be.
        let least = (self.least_superblocks(layout, data) - 0.5) / data - 1.0;
        let mut ways = Vec::new();
        if least <= OVER_PROVISIONING_MAX {
            ways.push(format!("{:.3}", (least * 1000.0).ceil() / 1000.0));
        }
        let enough = (1..=10_000u32)
            .map(f64::from)
            .find(|&data| room(data) >= self.least_superblocks(layout, data));
        if let Some(data) = enough {
            let capacity = data as u64 * u64::from(layout.regions) * superblock;
            ways.push(format!("a capacity of {}", Bytes(capacity)));
        }
        Error::rig(
            "ftl.over_provisioning",
            format!(
                "{} is too little for collection at a capacity of {}: superblocks of {} in {} \
                 region{} need at least {}",
                figures(9, self.ftl.over_provisioning),
                self.capacity,
                Bytes(superblock),
                layout.regions,
                if layout.regions == 1 { "" } else { "s" },
                ways.join(", or ")
            ),
        )
    }

    /// Superblocks for data that a region should have to hold `data` superblocks full of it: the inverse of
    /// [`PageMap::region_limit`] where collection is blocking. Paced collection would do with one less, but begins
    /// then with superblocks that are full.
    fn least_superblocks(&self, layout: &Layout, data: f64) -> f64 {
        let frontiers = f64::from(self.settings().frontiers());
        let units = f64::from(layout.data_units_per_superblock());
        let lost = f64::from(layout.granules() - 1);
        let data = data + lost / units;
        let padded = data * units / (units - f64::from(layout.units_per_program()) + 1.0 - lost);
        (data.ceil() + frontiers).max(padded.ceil() + frontiers - 1.0)
    }

    fn settings(&self) -> Settings {
        Settings {
            low: self.ftl.gc.low,
            high: self.ftl.gc.high,
            idle_superblocks: self.ftl.gc.idle_superblocks,
            pace: self.ftl.gc.pace,
            batch: self.batch(),
            separate_frontier: self.ftl.gc.separate_frontier,
            in_row: self.ftl.gc.in_row,
            moves_for_wear: self.wear().is_ok_and(|wear| wear.is_some_and(|w| w.moves_data())),
        }
    }

    fn wear(&self) -> Result<Option<Box<dyn WearLeveling>>> {
        let WearKeys { policy, spread } = &self.ftl.wear_leveling;
        let wear = wear_leveling::WEAR_LEVELINGS.find(policy);
        let wear = wear.map_err(|e| e.under("ftl.wear_leveling.policy"))?;
        Ok((wear.build)(&wear_leveling::Parameters { spread: *spread }))
    }

    fn batch(&self) -> Option<Batch> {
        let BatchKeys { start, end, copies, between } = self.ftl.gc.batch;
        (self.ftl.gc.pace == Pace::Periodic).then_some(Batch { start, end, copies, between })
    }

    /// The translation layer.
    pub fn ftl(&self, geometry: &Geometry, build: &Build) -> Result<PageMap> {
        let layout = self.layout(geometry)?;
        let gc = &self.ftl.gc;
        let named = |key: &'static str| move |e: Error| e.under(key);
        let parameters = victim::Parameters { choices: gc.choices, window: gc.window };
        let victim = victim::VICTIMS.find(&gc.victim).map_err(named("ftl.gc.victim"))?;
        let placement =
            placement::PLACEMENTS.find(&self.ftl.placement).map_err(named("ftl.placement"))?;
        let units = (self.capacity.0 / self.ftl.mapping_unit.0) as u32;
        let mapping = self.mapping(geometry, layout, units)?;
        let slc = self.slc_settings(&layout)?;
        let ftl = PageMap::new(
            layout,
            units,
            self.settings(),
            Policies {
                victim: (victim.build)(&parameters, build.stream("victim")),
                placement: (placement.build)(),
                wear: self.wear()?,
            },
            (self.ftl.mapping_unit.0 / SECTOR) as u32,
            build.keep_versions,
        )
        .with_mapping(mapping);
        Ok(match slc {
            Some(slc) => ftl.with_slc_cache(slc),
            None => ftl,
        })
    }

    fn mapping(&self, geometry: &Geometry, layout: Layout, units: u32) -> Result<Mapping> {
        let map = &self.ftl.map;
        let parameters = mapping::Parameters {
            cache_bytes: map.cache.0,
            entries: map.entries,
            segment_bytes: map.segment.0,
            chunk_bytes: map.chunk.0,
        };
        let drive = mapping::Drive {
            geometry: *geometry,
            scope: self.ftl.gc.scope,
            settings: self.settings(),
            layout,
            units,
        };
        let kind = MAPS.find(&map.kind).map_err(|e| e.under("ftl.map.kind"))?;
        (kind.build)(&parameters, &drive)
    }
}
