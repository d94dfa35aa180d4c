//! The page map: every unit can lie anywhere.

use super::Sink;
use super::append::Unit;
use super::blocks::Blocks;
use super::collect::Pace;
use super::compression::compressed;
use super::content::{Contents, Sectors};
use super::counters::FtlCounters;
use super::kind::{Bare, Kind, Packed, Whole};
use super::layout::Layout;
use super::map::Map;
use super::mapping::{MapCounters, Mapping};
use super::pace::{Batch, Batches};
use super::placement::Placement;
use super::power::Trimmed;
use super::reclaim::Reclaim;
use super::slc_cache::{SlcCache, SlcCounters, SlcSettings};
use super::space::{Lane, Space};
use super::victim::VictimPolicy;
use super::wear_leveling::WearLeveling;
use crate::nand::{Cause, NONE};
use crate::persist::persistent;
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
    /// Program units of each die that are copied in a row; none: two of each channel.
    pub in_row: Option<u32>,
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
///
/// Its parts own what they know: where every unit lies ([`Map`]), what superblocks are for ([`Space`]), what is moved
/// ([`Reclaim`]), what a look-up costs ([`Mapping`]), the SLC cache, and in tests what units hold. What takes several
/// of them is done here and in [`append`](super::append), [`collect`](super::collect), [`relocate`](super::relocate).
pub struct PageMap {
    /// Numbering of physical units.
    pub layout: Layout,
    /// Counted so far.
    pub counters: FtlCounters,
    /// What units hold, where versions are kept.
    pub contents: Contents,
    pub(super) settings: Settings,
    pub(super) map: Map,
    pub(super) mapping: Mapping,
    pub(super) space: Space,
    pub(super) reclaim: Reclaim,
    /// Superblocks in SLC mode.
    pub(super) cache: Option<Box<SlcCache>>,
    /// TRIMs that are not durable yet.
    pub(super) trims: Vec<Trimmed>,
    pub(super) placement: Box<dyn Placement>,
    pub(super) last_region: u32,
    /// Physical units of the unit that the host placed last.
    pub(super) last_length: u32,
    pub(super) region_limit: u32,
    /// Where a frontier has come when only two program units of each of its dies are left.
    pub(super) nearly_full: u32,
    pub(super) sectors_per_unit: u32,
    /// Whole units are [`Bare`](super::kind::Bare).
    pub(super) bare: bool,
    /// Number in the drive of the first superblock.
    pub(super) first_superblock: u32,
}

persistent!(PageMap {
    state { counters, contents, map, mapping, space, reclaim, trims, placement, last_region, last_length }
    parts { cache }
    built { layout, settings, region_limit, nearly_full, sectors_per_unit, bare, first_superblock }
});

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
        let Policies { victim, placement, wear } = policies;
        let batches = settings.batch.map(|batch| Batches::new(&batch, &layout));
        PageMap {
            counters: FtlCounters::default(),
            contents: Contents::new(layout, if keep_versions { sectors_per_unit } else { 0 }),
            settings,
            map: Map::new(units, &layout),
            mapping: Mapping::Page,
            space: Space::new(layout),
            reclaim: Reclaim::new(victim, wear, batches, layout.regions),
            cache: None,
            trims: Vec::new(),
            placement,
            last_region: layout.regions - 1,
            last_length: 1,
            region_limit: Self::region_limit(&layout, &settings),
            nearly_full: layout
                .units_per_superblock()
                .saturating_sub(2 * layout.units_per_program() * layout.dies_per_region),
            sectors_per_unit,
            bare: layout.is_bare() && !keep_versions,
            first_superblock: 0,
            layout,
        }
    }

    /// The same, still empty, with another kind of map.
    pub fn with_mapping(self, mapping: Mapping) -> Self {
        PageMap { bare: self.bare && matches!(mapping, Mapping::Page), mapping, ..self }
    }

    /// The same, still empty, with an SLC cache.
    pub fn with_slc_cache(self, slc: SlcSettings) -> Self {
        let cache = SlcCache::new(&self.layout, self.units(), &self.settings, slc);
        let space = self.space.with_slc_units(cache.units_per_superblock());
        PageMap { space, cache: Some(Box::new(cache)), bare: false, ..self }
    }

    /// The same, still empty, whose superblocks are numbered from there in the drive.
    pub(super) fn with_first_superblock(self, first_superblock: u32) -> Self {
        PageMap { first_superblock, ..self }
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
        let mut erased = vec![0; counts.len()];
        self.space.purge(self.cache.as_deref(), &mut erased);
        for (count, erased) in counts.iter_mut().zip(erased) {
            *count += erased;
            self.counters.superblocks_erased += u64::from(erased);
        }
        self.map.purge();
        self.reclaim.purge(self.settings.batch.map(|batch| Batches::new(&batch, &self.layout)));
        if let Some(cache) = &mut self.cache {
            cache.reset(&self.layout);
        }
        self.trims.clear();
        self.counters.units_mapped = 0;
        self.last_region = self.layout.regions - 1;
        self.last_length = 1;
    }

    /// First physical unit of a logical one, [`NONE`] if it holds no data.
    #[inline]
    pub fn lookup(&self, lpn: u32) -> u32 {
        self.map.lookup(lpn)
    }

    /// Physical units that a logical unit takes, where it holds data: 1 without compression.
    #[inline]
    pub fn length(&self, lpn: u32) -> u32 {
        self.map.length(lpn)
    }

    /// Physical units that a unit will take when it has been written.
    #[inline]
    pub fn length_after(&self, write: &UnitWrite) -> u32 {
        if !self.map.packs() {
            return 1;
        }
        let old = if self.lookup(write.lpn) == NONE { 0 } else { self.length(write.lpn) };
        let (of, granules) = (self.sectors_per_unit, self.layout.granules());
        compressed(granules, write.sectors, of, write.compressible, old)
    }

    /// The map entry of a unit will be needed soon.
    #[inline]
    pub fn expect(&self, lpn: u32) {
        self.map.expect(lpn);
    }

    /// The copy of a unit at `ppn` will be replaced soon.
    #[inline]
    pub fn expect_old(&self, ppn: u32) {
        self.map.expect_old(ppn);
        prefetch_index(&self.space.blocks.valid, self.layout.superblock_of(ppn) as usize);
    }

    /// Content of a sector of a logical unit (0: never written), where versions are kept.
    pub fn content(&self, lpn: u32, sector: u32) -> u64 {
        match self.lookup(lpn) {
            ppn if ppn != NONE && self.contents.are_kept() => {
                self.contents.newest(ppn)[sector as usize]
            }
            _ => 0,
        }
    }

    /// The unit just placed at `ppn` holds that.
    pub(super) fn put_content<S: Sink>(&mut self, ppn: u32, sectors: Sectors, sink: &S) {
        let waits = sink.timed() || self.space.is_open(ppn);
        self.contents.put(ppn, sectors, waits);
    }

    /// The unit at `to` is a copy of the one at `from`, where versions are kept.
    #[inline]
    pub(super) fn copy_content<S: Sink>(&mut self, from: u32, to: u32, sink: &S) {
        if let Some(sectors) = self.contents.unit(from) {
            self.put_content(to, sectors, sink);
        }
    }

    /// Logical units.
    pub fn units(&self) -> u32 {
        self.map.places().len()
    }

    /// How space is reclaimed.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Superblocks.
    pub fn blocks(&self) -> &Blocks {
        &self.space.blocks
    }

    /// The kind of map.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// What the map has cost so far.
    pub fn map_counters(&self) -> MapCounters {
        self.mapping.counters()
    }

    /// Whether the unit lies in a superblock in SLC mode.
    #[inline]
    pub fn in_slc(&self, ppn: u32) -> bool {
        let superblock = self.layout.superblock_of(ppn);
        self.cache.as_ref().is_some_and(|cache| cache.has(superblock))
    }

    /// What the SLC cache has done, if there is one.
    pub fn slc_counters(&self) -> Option<SlcCounters> {
        self.cache.as_ref().map(|cache| cache.counters())
    }

    /// Sees to it that the entry of `lpn` is in RAM for a read; answers the flash read that brings it,
    /// or [`NONE`].
    #[inline]
    pub fn fetch<S: Sink>(&mut self, lpn: u32, sink: &mut S) -> u32 {
        self.mapping.fetch(lpn, false, sink)
    }

    /// Puts a unit somewhere in the map, or nowhere.
    #[inline(always)]
    pub(super) fn remap(&mut self, lpn: u32, ppn: u32) {
        if let Mapping::Extent(table) = &mut self.mapping {
            table.count(self.map.places(), lpn, ppn);
        }
        self.map.set(lpn, ppn);
    }

    /// The logical unit at `ppn`, of so many physical ones, holds no data there any more.
    #[inline]
    pub(super) fn invalidate(&mut self, ppn: u32, units: u32) {
        let superblock = self.layout.superblock_of(ppn);
        self.vacate(self.layout.region_of(superblock), superblock, ppn, units);
    }

    /// The same where the superblock is known.
    #[inline(always)]
    pub(super) fn vacate(&mut self, region: u32, superblock: u32, ppn: u32, units: u32) {
        self.map.unmark(&self.layout, ppn, units);
        self.space.vacate(region, superblock, units);
        self.counters.units_mapped -= u64::from(units);
        if let Some(cache) = &mut self.cache {
            cache.count(region, superblock, false);
        }
    }

    /// Unmaps a unit.
    pub fn trim<S: Sink>(&mut self, lpn: u32, sink: &mut S) {
        let old = self.lookup(lpn);
        self.mapping.fetch(lpn, old != NONE, sink);
        if old == NONE {
            return;
        }
        // A unit without data is an entry too.
        self.make_entries(sink);
        // Which may have moved it.
        let old = self.lookup(lpn);
        self.remap(lpn, NONE);
        self.invalidate(old, self.length(lpn));
        self.counters.units_trimmed += 1;
        self.note_trim(lpn, old);
    }

    /// Places one unit of host data; answers its first physical unit.
    #[inline(always)]
    pub fn write<S: Sink>(&mut self, write: &UnitWrite, sink: &mut S) -> u32 {
        if self.bare && write.sectors == self.sectors_per_unit {
            self.write_unit::<S, Bare>(*write, sink)
        } else if self.map.packs() {
            self.write_packed(*write, sink)
        } else {
            self.write_unit::<S, Whole>(*write, sink)
        }
    }

    /// By itself, so that the other way has all registers.
    #[inline(never)]
    fn write_packed<S: Sink>(&mut self, write: UnitWrite, sink: &mut S) -> u32 {
        self.write_unit::<S, Packed>(write, sink)
    }

    /// Places one unit of host data on a drive of this kind; answers its first physical unit.
    #[inline(always)]
    fn write_unit<S: Sink, K: Kind>(&mut self, write: UnitWrite, sink: &mut S) -> u32 {
        let lpn = write.lpn;
        let mut reads = [NONE; 2];
        if !K::BARE {
            reads[0] = self.mapping.fetch(lpn, true, sink);
            self.make_entries(sink);
        }
        let old = self.lookup(lpn);
        let length = if K::PACKED { self.length_after(&write) } else { 1 };
        let mut unit = Unit::new(lpn);
        let kept = if K::BARE { None } else { self.contents.unit(old) };
        if old != NONE {
            if !K::BARE && write.sectors != self.sectors_per_unit {
                self.counters.read_modify_writes += 1;
                reads = self.modify_reads(old, reads[0], sink);
            }
            let units = if K::PACKED { self.length(lpn) } else { 1 };
            unit = unit.from(old, units);
            self.invalidate(old, units);
            self.remap(lpn, NONE);
        }
        self.space.next = unit;
        let region = self.choose_region::<S, K>(lpn, sink);
        if K::PACKED {
            self.map.set_length(lpn, length);
            self.last_length = length;
            self.counters.host_units_saved += u64::from(self.layout.granules() - length);
        }
        // Nothing shrinks where there is an SLC cache.
        let ppn = if self.slc::<K>().is_some() {
            self.write_cached(region, reads, sink)
        } else {
            self.make_room(region, length, sink);
            let (unit, why) = (self.space.next, (Cause::HostWrite, reads));
            self.append_unit::<S, K>(region, Lane::Host, unit, why, sink)
        };
        self.space.next = Unit::new(NONE);
        self.counters.host_units_written += 1;
        if let Some(kept) = kept {
            self.put_content(ppn, write.over(kept), sink);
        }
        ppn
    }

    /// Queues the reads of the old content of a unit of which a write replaces a part, after that of
    /// its map entry: one for each program unit that it lies in.
    fn modify_reads<S: Sink>(&self, old: u32, fetch: u32, sink: &mut S) -> [u32; 2] {
        let mut reads = [NONE; 2];
        let mut queued = 0;
        for (ppn, units) in self.layout.program_units(old, self.map.length_at(old)) {
            let slc = self.in_slc(ppn);
            let read = sink.modify_read(self.layout.die_of(ppn), ppn, units, slc, fetch);
            if read != NONE {
                reads[queued] = read;
                queued += 1;
            }
        }
        if queued == 0 {
            reads[0] = fetch;
        }
        reads
    }

    /// Whether the unit placed last, which ends at `offset`, filled a program unit.
    #[inline]
    pub(super) fn program_boundary(&self, offset: u32) -> bool {
        let per_program = self.layout.units_per_program();
        per_program == 1 || offset % per_program < self.last_length
    }

    #[inline(always)]
    fn choose_region<S: Sink, K: Kind>(&mut self, lpn: u32, sink: &S) -> u32 {
        let regions = self.layout.regions;
        if regions == 1 {
            return 0;
        }
        // Where the host unit before went.
        let cached = self.slc::<K>().is_some_and(|cache| cache.took_last());
        let lane = if cached { Lane::Slc } else { Lane::Host };
        let several = self.per_program::<K>() > 1;
        let place = || self.space.frontier(self.last_region, lane).offset;
        let open = several && !self.program_boundary(place());
        let layout = &self.layout;
        let backlog = |region: u32| {
            (0..layout.dies_per_region)
                .map(|k| sink.backlog(layout.die_in_region(region, k)))
                .max()
                .unwrap_or(0)
        };
        let mut region = self.placement.pick(lpn, self.last_region, open, regions, &backlog);
        // A region that is full of valid data could not collect; the next one takes the unit.
        while self.space.valid_units(region) >= self.region_limit {
            region = (region + 1) % regions;
        }
        self.last_region = region;
        region
    }
}
