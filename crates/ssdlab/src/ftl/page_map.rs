//! The page map: every unit can lie anywhere.

mod counters;
mod persist;

pub use counters::FtlCounters;

use super::Sink;
use super::append::Unit;
use super::blocks::Blocks;
use super::collect::Pace;
use super::compression::Packing;
use super::content::Contents;
use super::layout::Layout;
use super::mapping::{MapCounters, Mapping};
use super::open::OpenUnits;
use super::pace::{Batch, Batches};
use super::placement::Placement;
use super::region::{CLOSED, Region};
use super::slc_cache::SlcCache;
use super::victim::VictimPolicy;
use super::wear_leveling::WearLeveling;
use crate::nand::{Cause, NONE};
use prefetch_index::prefetch_index;

/// How the page map reclaims space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// A host write collects first when no more superblocks than this are free in its region; they
    /// are the reserve that collection itself needs.
    pub low: u32,
    /// Idle-time collection goes on until so many are free.
    pub high: u32,
    /// How foreground collection is spread over host writes.
    pub pace: Pace,
    /// Superblocks of a region that idle-time collection takes on at a time.
    pub idle_superblocks: u32,
    /// When periodic collection begins and ends.
    pub batch: Option<Batch>,
    /// Collected data has a write frontier of its own.
    pub separate_frontier: bool,
    /// Wear levelling moves data, to a frontier of its own.
    pub moves_for_wear: bool,
}

/// The policies of a page map.
pub struct Policies {
    /// What is collected next.
    pub victim: Box<dyn VictimPolicy>,
    /// Where host data goes.
    pub placement: Box<dyn Placement>,
    /// Wear levelling, if any.
    pub wear: Option<Box<dyn WearLeveling>>,
}

/// A write of one unit.
#[derive(Clone, Copy, Debug)]
pub struct UnitWrite {
    /// Logical unit.
    pub lpn: u32,
    /// First sector within the unit that is written.
    pub first_sector: u32,
    /// Sectors written.
    pub sectors: u32,
    /// Content of the first of them, where versions are kept.
    pub stamp: u64,
    /// How much they shrink where the drive compresses, percent.
    pub compressible: u8,
}

/// Page-mapped translation layer.
pub struct PageMap {
    /// Numbering of physical units.
    pub layout: Layout,
    /// Superblocks.
    pub blocks: Blocks,
    /// Counted so far.
    pub counters: FtlCounters,
    pub(super) settings: Settings,
    /// What a look-up and an update cost.
    pub(super) mapping: Mapping,
    pub(super) map: Vec<u32>,
    pub(super) owner: Vec<u32>,
    pub(super) valid: Vec<u64>,
    pub(super) regions: Vec<Region>,
    /// A bit for each region that may have a program unit which is filled in part.
    pub(super) partial: Vec<u64>,
    /// Free superblocks of all regions.
    pub(super) free: u32,
    pub(super) batches: Option<Batches>,
    pub(super) victim: Box<dyn VictimPolicy>,
    pub(super) wear: Option<Box<dyn WearLeveling>>,
    pub(super) placement: Box<dyn Placement>,
    /// Superblocks in SLC mode.
    pub(super) cache: Option<Box<SlcCache>>,
    pub(super) last_region: u32,
    /// Physical units of the unit that the host placed last.
    pub(super) last_length: u32,
    pub(super) packing: Packing,
    pub(super) region_limit: u32,
    pub(super) sectors_per_unit: u32,
    pub(super) open: OpenUnits,
    /// Where versions are kept.
    pub(super) content: Option<Contents>,
}

impl PageMap {
    /// An empty map of `units` logical units.
    pub fn new(
        layout: Layout,
        units: u32,
        settings: Settings,
        policies: Policies,
        sectors_per_unit: u32,
        keep_versions: bool,
    ) -> Self {
        let physical = layout.units() as usize;
        let per_superblock = layout.data_units_per_superblock();
        let mut ftl = PageMap {
            blocks: Blocks::new(layout.regions, layout.superblocks, per_superblock)
                .with_set_aside(layout.set_aside),
            layout,
            counters: FtlCounters::default(),
            settings,
            mapping: Mapping::Page,
            map: vec![NONE; units as usize],
            // Zeros take no memory until they are overwritten.
            owner: vec![0; physical],
            valid: vec![0; physical.div_ceil(64)],
            regions: Vec::new(),
            partial: vec![0; layout.regions.div_ceil(64) as usize],
            free: 0,
            batches: None,
            victim: policies.victim,
            placement: policies.placement,
            wear: policies.wear,
            cache: None,
            last_region: layout.regions - 1,
            last_length: 1,
            packing: Packing::new(layout.granules(), units, layout.regions),
            region_limit: Self::region_limit(&layout, &settings),
            sectors_per_unit,
            open: OpenUnits::new(&layout),
            content: keep_versions.then(|| Contents::new(physical, sectors_per_unit)),
        };
        ftl.reset_regions();
        ftl
    }

    /// The same, still empty, with another kind of map.
    pub fn with_mapping(self, mapping: Mapping) -> Self {
        PageMap { mapping, ..self }
    }

    /// Units of data that a region can hold and still collect: all but the reserve, the write
    /// frontiers and one superblock's worth of invalid units. What a collection moves is padded to
    /// whole program units, so there must also be a superblock with room for one of those among
    /// the closed ones, however the data lies. Where units take several physical ones, up to one
    /// less than the most can be lost where a superblock ends, and stay free in each region for
    /// the next.
    pub fn region_limit(layout: &Layout, settings: &Settings) -> u32 {
        let frontiers = settings.frontiers();
        let (units, program) = (layout.data_units_per_superblock(), layout.units_per_program());
        let superblocks = layout.superblocks - layout.set_aside;
        let closed = (superblocks + 1).saturating_sub(settings.low + frontiers);
        let lost = layout.granules() - 1;
        let room = (units - program + 1).saturating_sub(lost);
        (closed.saturating_sub(1) * units).min(closed * room).saturating_sub(lost)
    }

    fn reset_regions(&mut self) {
        self.regions = (0..self.layout.regions)
            .map(|r| Region {
                free: self.blocks.of_region(r).collect(),
                host: CLOSED,
                collected: CLOSED,
                slc: CLOSED,
                wear: CLOSED,
                collecting: None,
                leveling: None,
                owed: 0.0,
                valid_units: 0,
            })
            .collect();
        self.free = self.layout.regions * (self.layout.superblocks - self.layout.set_aside);
        self.batches = self.settings.batch.map(|b| Batches::new(&b, self.layout.regions));
    }

    /// Back to the state fresh out of the box; every superblock that held data is erased once.
    /// Answers the number of erases on the busiest die.
    pub fn purge(&mut self) -> u32 {
        let mut erases = vec![0; self.layout.regions as usize];
        match &mut self.mapping {
            Mapping::Page => {}
            Mapping::Cached(cached) => cached.purge(&mut erases),
            Mapping::Extent(table) => table.purge(),
        }
        self.purge_regions(&mut erases);
        erases.into_iter().max().unwrap_or(0)
    }

    /// The same without the kind of map; adds the erases of each region.
    pub(super) fn purge_regions(&mut self, counts: &mut [u32]) {
        let mut erases = std::mem::take(&mut self.blocks.erases);
        for (r, region) in self.regions.iter().enumerate() {
            let set_aside = self.layout.set_aside_of(r as u32);
            let idle = self.cache.as_ref().map(|cache| cache.free(r as u32));
            for s in self.blocks.of_region(r as u32).chain(set_aside) {
                let free = region.free.contains(&s) || idle.is_some_and(|idle| idle.contains(&s));
                if !free || self.open.is_late(s) {
                    counts[r] += 1;
                    erases[s as usize] += 1;
                    self.counters.superblocks_erased += 1;
                }
            }
        }
        let layout = self.layout;
        self.blocks =
            Blocks::new(layout.regions, layout.superblocks, layout.data_units_per_superblock())
                .with_set_aside(layout.set_aside);
        self.blocks.erases = erases;
        self.map.fill(NONE);
        self.valid.fill(0);
        self.counters.units_mapped = 0;
        self.last_region = layout.regions - 1;
        self.last_length = 1;
        self.packing.purge();
        self.open.purge();
        self.reset_regions();
        self.purge_slc();
    }

    /// First physical unit of a logical one, [`NONE`] if it holds no data.
    #[inline]
    pub fn lookup(&self, lpn: u32) -> u32 {
        self.map[lpn as usize]
    }

    /// The map entry of a unit will be needed soon.
    #[inline]
    pub fn expect(&self, lpn: u32) {
        prefetch_index(&self.map, lpn as usize);
    }

    /// The copy of a unit at `ppn` will be replaced soon.
    #[inline]
    pub fn expect_old(&self, ppn: u32) {
        prefetch_index(&self.valid, (ppn >> 6) as usize);
        prefetch_index(&self.blocks.valid, self.layout.superblock_of(ppn) as usize);
    }

    /// Something will be placed at `ppn` soon.
    #[inline]
    pub(super) fn expect_new(&self, ppn: u32) {
        prefetch_index(&self.owner, ppn as usize);
    }

    /// Logical units.
    pub fn units(&self) -> u32 {
        self.map.len() as u32
    }

    /// How space is reclaimed.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The kind of map.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// What the map has cost so far.
    pub fn map_counters(&self) -> MapCounters {
        self.mapping.counters()
    }

    /// Physical units, those of the map included.
    pub fn physical_units(&self) -> u64 {
        self.layout.units() + self.mapping.table().map_or(0, |t| t.layout.units())
    }

    /// Sees to it that the entry of `lpn` is in RAM for a read; answers the flash read that brings it,
    /// or [`NONE`].
    #[inline]
    pub fn fetch<S: Sink>(&mut self, lpn: u32, sink: &mut S) -> u32 {
        match &mut self.mapping {
            Mapping::Cached(cached) => cached.fetch(lpn, false, sink),
            Mapping::Page | Mapping::Extent(_) => NONE,
        }
    }

    /// Puts a unit somewhere in the map, or nowhere.
    #[inline]
    pub(super) fn remap(&mut self, lpn: u32, ppn: u32) {
        match &mut self.mapping {
            Mapping::Extent(table) => table.remap(&mut self.map, lpn, ppn),
            Mapping::Page | Mapping::Cached(_) => self.map[lpn as usize] = ppn,
        }
    }

    /// Free superblocks in all regions.
    pub fn free_superblocks(&self) -> u64 {
        u64::from(self.free)
    }

    #[inline]
    pub(super) fn is_valid(&self, ppn: u32) -> bool {
        self.valid[(ppn >> 6) as usize] >> (ppn & 63) & 1 != 0
    }

    /// The logical unit at `ppn` holds no data there any more.
    #[inline]
    pub(super) fn invalidate(&mut self, ppn: u32) {
        let units = self.length_at(ppn);
        let superblock = self.layout.superblock_of(ppn);
        let region = self.layout.region_of(superblock);
        self.unmark(ppn, units);
        self.blocks.invalidate(region, superblock, units);
        self.regions[region as usize].valid_units -= units;
        self.counters.units_mapped -= u64::from(units);
        if let Some(cache) = &mut self.cache {
            cache.count(region, superblock, false);
        }
    }

    /// Unmaps a unit.
    pub fn trim<S: Sink>(&mut self, lpn: u32, sink: &mut S) {
        match &mut self.mapping {
            Mapping::Page => {}
            Mapping::Cached(cached) => {
                cached.fetch(lpn, self.map[lpn as usize] != NONE, sink);
            }
            // A unit without data is an entry too.
            Mapping::Extent(_) if self.map[lpn as usize] != NONE => self.make_entries(sink),
            Mapping::Extent(_) => {}
        }
        let old = self.map[lpn as usize];
        if old != NONE {
            self.remap(lpn, NONE);
            self.invalidate(old);
            self.counters.units_trimmed += 1;
            self.note_trim(lpn, old);
        }
    }

    /// Places one unit of host data; answers its first physical unit.
    #[inline]
    pub fn write<S: Sink>(&mut self, write: UnitWrite, sink: &mut S) -> u32 {
        let lpn = write.lpn;
        let read = match &mut self.mapping {
            Mapping::Page => NONE,
            Mapping::Cached(cached) => cached.fetch(lpn, true, sink),
            Mapping::Extent(_) => {
                self.make_entries(sink);
                NONE
            }
        };
        let old = self.map[lpn as usize];
        let length = self.length_after(&write);
        let mut reads = [read, NONE];
        let mut unit = Unit::new(lpn);
        let kept = self.unit_content(old);
        if old != NONE {
            if write.sectors != self.sectors_per_unit {
                self.counters.read_modify_writes += 1;
                reads = self.modify_reads(old, read, sink);
            }
            unit = unit.from(old, self.length_at(old));
            self.invalidate(old);
            self.remap(lpn, NONE);
        }
        self.open.next = unit;
        let region = self.choose_region(lpn, sink);
        if self.packs() {
            self.packing.lengths[lpn as usize] = length as u8;
            self.last_length = length;
            self.counters.host_units_saved += u64::from(self.layout.granules() - length);
        }
        // Nothing shrinks where there is an SLC cache.
        let ppn = if self.cache.is_some() {
            self.write_cached(region, reads[0], sink)
        } else {
            self.make_room(region, length, sink);
            let (unit, cause) = (self.open.next, Cause::HostWrite);
            if self.packs() {
                self.append_unit::<S, true>(region, unit, cause, reads, sink)
            } else {
                self.append_unit::<S, false>(region, unit, cause, reads, sink)
            }
        };
        self.open.next = Unit::new(NONE);
        self.counters.host_units_written += 1;
        if let Some(kept) = kept {
            self.put_content(ppn, write.over(kept), sink);
        }
        ppn
    }

    #[inline]
    fn choose_region<S: Sink>(&mut self, lpn: u32, sink: &S) -> u32 {
        let regions = self.layout.regions;
        if regions == 1 {
            return 0;
        }
        let last = &self.regions[self.last_region as usize];
        let open = !self.program_boundary(last.frontier(self.last_lane()).offset);
        let layout = self.layout;
        let backlog = |region: u32| {
            (0..layout.dies_per_region)
                .map(|k| sink.backlog(layout.die_in_region(region, k)))
                .max()
                .unwrap_or(0)
        };
        let mut region = self.placement.pick(lpn, self.last_region, open, regions, &backlog);
        // A region that is full of valid data could not collect; the next one takes the unit.
        while self.regions[region as usize].valid_units >= self.region_limit {
            region = (region + 1) % regions;
        }
        self.last_region = region;
        region
    }
}
