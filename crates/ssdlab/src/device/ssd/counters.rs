//! What an SSD reports about itself: its own counters, and those a drive's SMART page shows.

use super::Ssd;
use super::buffer::Buffer;
use crate::device::Built;
use crate::nand::Cause;
use crate::persist::persistent;
use std::ops::Range;

/// NVMe counts data in units of 1000 sectors.
const DATA_UNIT: u64 = 512_000;

/// Host traffic so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostCounters {
    pub reads: u64,
    pub bytes_read: u64,
    pub writes: u64,
    pub bytes_written: u64,
    pub trims: u64,
    pub flushes: u64,
    pub units_read_flash: u64,
    pub units_read_ram: u64,
    pub units_read_unmapped: u64,
}

persistent!(HostCounters {
    state {
        reads, bytes_read, writes, bytes_written, trims, flushes, units_read_flash, units_read_ram,
        units_read_unmapped,
    }
});

/// Visits every counter; units are mapping units, times ns summed over dies or channels. Where the
/// drive compresses, units are granules: of what the host writes, reads and trims those that it
/// would take if it did not shrink, of what lies in flash those that it takes.
pub(super) fn visit(ssd: &Ssd, visit: &mut dyn FnMut(&'static str, u64)) {
    let (ftl, host, engine) = (&ssd.ftl, &ssd.host, &ssd.engine);
    let (f, c) = (&engine.flash.counters, &ftl.counters);
    let (u, m) = (&engine.untimed, ftl.map_counters());
    let granules = u64::from(ftl.layout.granules());
    visit("host_reads", host.reads);
    visit("host_bytes_read", host.bytes_read);
    visit("host_writes", host.writes);
    visit("host_bytes_written", host.bytes_written);
    visit("host_trims", host.trims);
    visit("host_flushes", host.flushes);
    visit("host_units_written", (c.host_units_written + buffered(ssd)) * granules);
    if let Some(buffer) = &ssd.buffer {
        visit("buffer_overwrites", buffer.overwrites * granules);
        visit("buffer_dropped", buffer.dropped * granules);
        visit("buffer_dirty", u64::from(buffer.dirty.count()) * granules);
    }
    if granules > 1 {
        visit("host_units_saved", c.host_units_saved);
    }
    visit_programs(ssd, visit);
    visit("read_modify_writes", c.read_modify_writes);
    visit("units_trimmed", c.units_trimmed * granules);
    visit("units_mapped", c.units_mapped);
    visit("units_open", ftl.open_units() + m.units_open);
    visit("units_read_flash", host.units_read_flash * granules);
    visit("units_read_ram", host.units_read_ram * granules);
    visit("units_read_unmapped", host.units_read_unmapped * granules);
    if let Some(ahead) = &ssd.read_ahead {
        visit("units_read_ahead", ahead.units_found * granules);
        visit("units_fetched_ahead", ahead.units_fetched * granules);
    }
    if let Some(slc) = ftl.slc_counters() {
        visit("slc_units_written", slc.units_written);
        visit("slc_units_valid", slc.units_valid);
        visit("slc_superblocks", slc.superblocks);
        visit("slc_folds", slc.folds);
        visit("flash_reads_slc", f.reads_slc + u.reads_slc);
        visit("flash_programs_slc", f.programs_slc + u.programs_slc);
    }
    visit("collections", c.collections);
    visit("collection_batches", c.batches);
    visit("wear_moves", c.wear_moves);
    visit("superblocks_erased", c.superblocks_erased + m.superblocks_erased);
    visit("map_hits", m.hits);
    visit("map_misses", m.misses);
    visit("map_extents", m.extents);
    visit("map_merges", m.merges);
    visit("map_units_open", m.units_open);
    visit("free_superblocks", ftl.free_superblocks());
    visit_flash(ssd, visit);
    ssd.power.visit(visit);
    visit_wear(ssd, visit);
}

/// What dies and channels have done, and on whose behalf.
fn visit_flash(ssd: &Ssd, visit: &mut dyn FnMut(&'static str, u64)) {
    let engine = &ssd.engine;
    let (f, u) = (&engine.flash.counters, &engine.untimed);
    visit("flash_reads", f.reads + u.reads);
    visit("flash_units_read", f.units_read + u.units_read);
    visit("flash_programs", f.programs + u.programs);
    visit("flash_units_programmed", f.units_programmed + u.units_programmed);
    visit("flash_erases", f.erases + u.erases);
    visit("flash_suspensions", f.suspensions);
    if engine.flash.keeps_pages() {
        visit("flash_register_hits", f.register_hits);
    }
    let (busy, channels) = engine.flash.busy(engine.now);
    visit("busy_host_read_ns", busy[Cause::HostRead as usize]);
    visit("busy_host_write_ns", busy[Cause::HostWrite as usize]);
    visit("busy_collection_ns", busy[Cause::Collection as usize]);
    visit("busy_wear_ns", busy[Cause::Wear as usize]);
    visit("busy_map_ns", busy[Cause::Map as usize]);
    visit("busy_merge_ns", busy[Cause::Merge as usize]);
    visit("busy_fold_ns", busy[Cause::Fold as usize]);
    visit("busy_parity_ns", busy[Cause::Parity as usize]);
    visit("busy_channels_ns", channels);
    if ssd.engine.controller.has_firmware() {
        visit("busy_cores_commands_ns", ssd.engine.controller.command_busy);
        visit("busy_cores_firmware_ns", ssd.engine.controller.own_busy);
    }
}

impl Ssd {
    /// Physical / logical - 1 as built: superblocks are whole, so it differs a little from the
    /// number asked for in small drives.
    pub fn over_provisioning(&self, reserve: u32) -> f64 {
        let layout = &self.ftl.layout;
        let data = f64::from(layout.superblocks - layout.set_aside - reserve)
            * f64::from(layout.regions)
            * f64::from(layout.data_units_per_superblock());
        data / f64::from(self.ftl.units()) / f64::from(layout.granules()) - 1.0
    }
}

/// Units that the host has written and that were not placed in flash, or not yet.
fn buffered(ssd: &Ssd) -> u64 {
    let buffered = |b: &Buffer| b.overwrites + b.dropped + u64::from(b.dirty.count());
    ssd.buffer.as_ref().map_or(0, buffered)
}

/// What was built.
pub(super) fn built(ssd: &Ssd) -> Built {
    let layout = &ssd.ftl.layout;
    let regions = u64::from(layout.regions);
    let superblocks = regions * u64::from(ssd.ftl.blocks().per_region());
    let reserve = regions * u64::from(ssd.ftl.settings().reserve());
    let unit_bytes = ssd.unit_bytes / u64::from(layout.granules());
    let bytes = |units: u32| u64::from(units) * unit_bytes;
    let room = (superblocks - reserve) * bytes(layout.data_units_per_superblock());
    let superblock_bytes = bytes(layout.units_per_superblock());
    Built {
        capacity_bytes: ssd.capacity,
        physical_bytes: superblocks * superblock_bytes,
        over_provisioning: room as f64 / ssd.capacity as f64 - 1.0,
        dies: ssd.engine.flash.dies(),
        superblocks,
        superblock_bytes,
        reserve_superblocks: reserve,
    }
}

/// What was programmed: in bytes whatever for, in units by cause.
fn visit_programs(ssd: &Ssd, visit: &mut dyn FnMut(&'static str, u64)) {
    let (c, m) = (&ssd.ftl.counters, ssd.ftl.map_counters());
    let programs = [
        ("programs_host", c.programs_host),
        ("programs_collection", c.programs_collection),
        ("programs_wear", c.programs_wear),
        ("programs_padding", c.programs_padding + m.padding),
        ("programs_map", m.programs),
        ("programs_merge", c.programs_merge),
        ("programs_fold", c.programs_fold),
        ("programs_parity", c.programs_parity + m.parity),
    ];
    let unit_bytes = ssd.unit_bytes / u64::from(ssd.ftl.layout.granules());
    let units: u64 = programs.iter().map(|(_, units)| units).sum();
    visit("flash_bytes_written", units * unit_bytes);
    visit("unit_bytes", unit_bytes);
    programs.into_iter().for_each(|(name, units)| visit(name, units));
}

/// Erases of the superblocks, and the drive's own view of its wear.
fn visit_wear(ssd: &Ssd, visit: &mut dyn FnMut(&'static str, u64)) {
    let ftl = &ssd.ftl;
    let regions = 0..ftl.layout.regions;
    let of = |range: Range<u32>| &ftl.blocks().erases[range.start as usize..range.end as usize];
    let data = Wear::of(regions.clone().map(|r| of(ftl.blocks().of_region(r))));
    let set_aside = Wear::of(regions.map(|r| of(ftl.layout.set_aside_of(r))));
    let table = ftl.mapping().table().map_or(&[][..], |t| &t.blocks().erases);
    let table = Wear::of(std::iter::once(table));
    visit("erases_min", u64::from(data.min));
    visit("erases_max", u64::from(data.max.max(table.max).max(set_aside.max)));
    visit("erases_sum", data.sum + table.sum + set_aside.sum);
    if let Some(slc) = ftl.slc_counters() {
        visit("slc_static_erases_max", u64::from(set_aside.max));
        visit("slc_static_erases_sum", set_aside.sum);
        visit("slc_dynamic_superblocks", slc.dynamic);
        visit("slc_bits_per_cell", slc.bits);
    }
    // What the wear spreads over, as the drive was built.
    visit("data_erases_sum", data.sum);
    visit("data_superblocks", data.superblocks);
    visit("map_superblocks", table.superblocks);
    visit("superblock_units", u64::from(ftl.layout.units_per_superblock()));
    visit("capacity_bytes", ssd.capacity);
    if let Some(full) = ssd.full_capacity {
        visit("full_capacity_bytes", full);
    }
    visit("rated_pe_cycles", u64::from(ssd.rated_cycles));
    visit("data_units_written", ssd.host.bytes_written.div_ceil(DATA_UNIT));
    visit("data_units_read", ssd.host.bytes_read.div_ceil(DATA_UNIT));
    // Superblocks of data and of the map are not exchanged: those that are worn more count. Those
    // of a static SLC cache are never written in native mode, and are rated for many more cycles.
    let mean = data.mean().max(table.mean());
    visit("percentage_used", (100.0 * mean / f64::from(ssd.rated_cycles)) as u64);
}

/// Erases of some superblocks; all 0 for none.
#[derive(Default)]
struct Wear {
    sum: u64,
    superblocks: u64,
    min: u32,
    max: u32,
}

impl Wear {
    /// One figure after the other over each stretch of superblocks, so that several counts are looked at at once.
    fn of<'a>(erases: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut wear = Wear { min: u32::MAX, ..Wear::default() };
        for erases in erases {
            wear.sum += erases.iter().map(|&count| u64::from(count)).sum::<u64>();
            wear.superblocks += erases.len() as u64;
            wear.min = erases.iter().fold(wear.min, |least, &count| least.min(count));
            wear.max = erases.iter().fold(wear.max, |most, &count| most.max(count));
        }
        Wear { min: wear.min.min(wear.max), ..wear }
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / self.superblocks.max(1) as f64
    }
}
