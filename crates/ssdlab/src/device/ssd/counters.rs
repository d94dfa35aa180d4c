//! What an SSD reports about itself: its own counters, and those a drive's SMART page shows.

use super::Ssd;
use crate::nand::Cause;

/// NVMe counts data in units of 1000 sectors.
const DATA_UNIT: u64 = 512_000;

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
    visit("host_units_written", c.host_units_written * granules);
    if granules > 1 {
        visit("host_units_saved", c.host_units_saved);
    }
    visit("programs_host", c.programs_host);
    visit("programs_collection", c.programs_collection);
    visit("programs_wear", c.programs_wear);
    visit("programs_padding", c.programs_padding + m.padding);
    visit("programs_map", m.programs);
    visit("programs_merge", c.programs_merge);
    visit("programs_parity", c.programs_parity + m.parity);
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
    visit("flash_reads", f.reads + u.reads);
    visit("flash_units_read", f.units_read + u.units_read);
    visit("flash_programs", f.programs + u.programs);
    visit("flash_units_programmed", f.units_programmed + u.units_programmed);
    visit("flash_erases", f.erases + u.erases);
    visit("flash_suspensions", f.suspensions);
    let (busy, channels) = engine.flash.busy();
    visit("busy_host_read_ns", busy[Cause::HostRead as usize]);
    visit("busy_host_write_ns", busy[Cause::HostWrite as usize]);
    visit("busy_collection_ns", busy[Cause::Collection as usize]);
    visit("busy_wear_ns", busy[Cause::Wear as usize]);
    visit("busy_map_ns", busy[Cause::Map as usize]);
    visit("busy_merge_ns", busy[Cause::Merge as usize]);
    visit("busy_parity_ns", busy[Cause::Parity as usize]);
    visit("busy_channels_ns", channels);
    visit_wear(ssd, visit);
}

/// Erases, and what the host wrote and read as a SMART page counts it.
fn visit_wear(ssd: &Ssd, visit: &mut dyn FnMut(&'static str, u64)) {
    let (ftl, host) = (&ssd.ftl, &ssd.host);
    let data = &ftl.blocks.erases;
    let own = ftl.mapping().table().map_or(&[][..], |t| &t.blocks.erases);
    let sum = |erases: &[u32]| erases.iter().map(|&e| u64::from(e)).sum::<u64>();
    let all = data.iter().chain(own).copied();
    visit("erases_min", u64::from(data.iter().copied().min().unwrap_or(0)));
    visit("erases_max", u64::from(all.max().unwrap_or(0)));
    visit("erases_sum", sum(data) + sum(own));
    visit("data_units_written", host.bytes_written.div_ceil(DATA_UNIT));
    visit("data_units_read", host.bytes_read.div_ceil(DATA_UNIT));
    // Superblocks of data and of the map are not exchanged: those that are worn more count.
    let mean = |erases: &[u32]| sum(erases) as f64 / erases.len().max(1) as f64;
    let mean = mean(data).max(mean(own));
    visit("percentage_used", (100.0 * mean / f64::from(ssd.rated_cycles)) as u64);
}
