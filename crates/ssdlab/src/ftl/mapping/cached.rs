//! Cached map: the page map lies in flash, and the units of it in use are in RAM.
//!
//! After Gupta et al. (2009). The map is cut into *translation units*: one mapping unit of flash with
//! an entry of 4 bytes for each of so many logical units. A read or write whose translation unit is
//! not in the cache waits for its read from flash; a changed one is programmed again when it is
//! evicted. Collection changes the entries of what it moves: in the cache where they are there,
//! otherwise their translation units are read, changed and programmed once for each victim.
//!
//! Translation units have superblocks of their own in every region, which are placed and collected
//! like those of data; where they lie is always known (DFTL's global translation directory), so
//! that their collection needs no map. Simplified: CLOCK instead of segmented LRU; whole translation
//! units are cached, not single entries; a translation unit that is still on its way into flash
//! is read from RAM. Cost: constant for a look-up.

use super::{Drive, MapCounters, Parameters, refused};
use crate::error::Result;
use crate::ftl::page_map::Policies;
use crate::ftl::placement::PLACEMENTS;
use crate::ftl::places::Places;
use crate::ftl::victim::{self, VICTIMS};
use crate::ftl::{Copied, Filled, Layout, Pace, PageMap, Placed, Settings, Sink, UnitWrite};
use crate::nand::{Cause, NONE};
use crate::persist::persistent;
use crate::rng::Stream;
use std::ops::Range;

/// Bytes of an entry of the map.
const ENTRY_BYTES: u64 = 4;
/// Whether a slot has been used since the hand passed, and whether its content differs from flash.
const USED: u8 = 1;
const DIRTY: u8 = 2;
/// Parts into which a write of a translation unit is divided: all of them, or less than all.
const WHOLE: u32 = 2;

/// Translation units in flash, and a cache of them.
pub struct CachedMap {
    /// Where translation units lie in flash.
    pub table: PageMap,
    /// Physical units of a translation unit.
    length: u32,
    /// First of the physical units that hold them.
    base: u32,
    /// log2 of the entries of a translation unit.
    shift: u32,
    /// Slot of each translation unit; [`NONE`] where it is not cached.
    slot_of: Vec<u32>,
    /// Translation unit in each slot.
    holds: Vec<u32>,
    flags: Vec<u8>,
    /// Slots filled so far, and where the search for one to evict goes on.
    filled: u32,
    hand: u32,
    /// By region: translation units not in the cache of what a collection has moved.
    moved: Vec<Vec<u32>>,
    hits: u64,
    misses: u64,
}

persistent!(CachedMap {
    state { table, filled, hand, moved, hits, misses }
    parts { slot_of, holds, flags }
    built { length, base, shift }
});

impl CachedMap {
    /// An empty map, nothing cached.
    pub(super) fn new(parameters: &Parameters, drive: &Drive) -> Result<Self> {
        let length = drive.layout.granules();
        let unit_bytes = u64::from(drive.geometry.unit_bytes) * u64::from(length);
        let slots = parameters.cache_bytes / unit_bytes;
        if slots == 0 {
            let message = format!("expected room for at least one mapping unit ({unit_bytes} B)");
            return Err(refused("cache", message));
        }
        let entries = unit_bytes / ENTRY_BYTES;
        let units = u64::from(drive.units).div_ceil(entries) as u32;
        let slots = slots.min(u64::from(units)) as usize;
        let table = table(drive, units);
        let base = drive.layout.units();
        if base + table.layout.units() >= u64::from(u32::MAX) {
            let message = "data and translation units are more than the 2^32 units that a drive \
                           can have; take a larger ftl.mapping_unit";
            return Err(refused("kind", message.into()));
        }
        Ok(CachedMap {
            base: base as u32,
            length,
            shift: entries.ilog2(),
            slot_of: vec![NONE; units as usize],
            holds: vec![NONE; slots],
            flags: vec![0; slots],
            filled: 0,
            hand: 0,
            moved: vec![Vec::new(); drive.layout.regions as usize],
            hits: 0,
            misses: 0,
            table,
        })
    }

    pub(super) fn counters(&self) -> MapCounters {
        let c = &self.table.counters;
        MapCounters {
            hits: self.hits,
            misses: self.misses,
            programs: c.programs_host + c.programs_collection,
            padding: c.programs_padding,
            parity: c.programs_parity,
            superblocks_erased: c.superblocks_erased,
            units_open: self.table.open_units(),
            ..MapCounters::default()
        }
    }

    /// Sees to it that the entry of `lpn` is in RAM, changed or not. Answers the read that brings
    /// it, if one is under way.
    #[inline]
    pub fn fetch<S: Sink>(&mut self, lpn: u32, change: bool, sink: &mut S) -> u32 {
        let unit = lpn >> self.shift;
        let slot = self.slot_of[unit as usize];
        let dirty = if change { DIRTY } else { 0 };
        if slot == NONE {
            return self.miss(unit, dirty, sink);
        }
        self.hits += 1;
        self.flags[slot as usize] |= USED | dirty;
        sink.map_arriving(unit)
    }

    fn miss(&mut self, unit: u32, dirty: u8, sink: &mut dyn Sink) -> u32 {
        let in_flash = self.table.lookup(unit) != NONE;
        if !in_flash && dirty == 0 {
            // None of its units has ever been written: there is nothing to look up.
            return NONE;
        }
        let slot = self.free_slot(sink);
        self.slot_of[unit as usize] = slot;
        self.holds[slot as usize] = unit;
        self.flags[slot as usize] = dirty;
        if !in_flash {
            return NONE;
        }
        self.misses += 1;
        // Looked up after the eviction, which may have moved it.
        let ppn = self.table.lookup(unit);
        sink.map_read(self.table.layout.die_of(ppn), self.base + ppn, self.length, unit)
    }

    /// A slot with nothing in it any more.
    fn free_slot(&mut self, sink: &mut dyn Sink) -> u32 {
        if (self.filled as usize) < self.holds.len() {
            self.filled += 1;
            return self.filled - 1;
        }
        loop {
            let slot = self.hand;
            self.hand = if slot + 1 == self.filled { 0 } else { slot + 1 };
            let flags = &mut self.flags[slot as usize];
            if *flags & USED != 0 {
                *flags &= !USED;
                continue;
            }
            let (unit, dirty) = (self.holds[slot as usize], *flags & DIRTY != 0);
            self.slot_of[unit as usize] = NONE;
            if dirty {
                self.program(unit, WHOLE, sink);
            }
            return slot;
        }
    }

    /// Programs a translation unit; where only a part of it is known, its old content is read first.
    fn program(&mut self, unit: u32, parts: u32, sink: &mut dyn Sink) {
        let write =
            UnitWrite { lpn: unit, first_sector: 0, sectors: parts, stamp: 0, compressible: 0 };
        let ppn = self.table.write(&write, &mut TableSink { sink, base: self.base });
        sink.hold(self.base + ppn, self.length);
    }

    /// Collection in `region` has moved `lpn`.
    #[inline]
    pub fn moved(&mut self, region: u32, lpn: u32) {
        let unit = lpn >> self.shift;
        match self.slot_of[unit as usize] {
            NONE => self.moved[region as usize].push(unit),
            slot => self.flags[slot as usize] |= DIRTY,
        }
    }

    /// All of a victim has moved: the translation units that know it and are not cached are changed
    /// in flash, each once.
    pub fn settle<S: Sink>(&mut self, region: u32, sink: &mut S) {
        let mut moved = std::mem::take(&mut self.moved[region as usize]);
        moved.sort_unstable();
        moved.dedup();
        for unit in moved.drain(..) {
            match self.slot_of[unit as usize] {
                NONE => self.program(unit, WHOLE - 1, sink),
                // Fetched since by a command.
                slot => self.flags[slot as usize] |= DIRTY,
            }
        }
        self.moved[region as usize] = moved;
    }

    /// Programs what waits for a full program unit.
    pub fn pad_all(&mut self, sink: &mut dyn Sink) {
        self.table.pad_all(&mut TableSink { sink, base: self.base });
    }

    /// Forgets everything; `erases` counts the erases of each region.
    pub fn purge(&mut self, erases: &mut [u32]) {
        self.table.purge_regions(erases);
        self.empty();
        self.moved.iter_mut().for_each(Vec::clear);
    }

    /// The cache is gone: what differs from flash is found again and programmed, and what is read next is
    /// fetched.
    pub fn power_cut<S: Sink>(&mut self, sink: &mut S) {
        for slot in 0..self.filled as usize {
            if self.flags[slot] & DIRTY != 0 {
                self.program(self.holds[slot], WHOLE, sink);
            }
        }
        self.empty();
        self.pad_all(sink);
    }

    /// Nothing is cached.
    fn empty(&mut self) {
        self.slot_of.fill(NONE);
        self.holds.fill(NONE);
        self.flags.fill(0);
        (self.filled, self.hand) = (0, 0);
    }

    pub(super) fn state(&self, add: &mut dyn FnMut(u64)) {
        add(self.table.fingerprint());
        let slots = self.holds.iter().zip(&self.flags);
        slots.for_each(|(&unit, &flags)| add(u64::from(unit) << 8 | u64::from(flags)));
        self.moved.iter().flatten().for_each(|&unit| add(u64::from(unit)));
        [u64::from(self.hand), self.hits, self.misses].into_iter().for_each(add);
    }

    /// Checks that the cache agrees with itself, and that every unit's entry is somewhere.
    pub(in crate::ftl) fn check(&self, map: &Places) {
        self.table.check();
        for (slot, &unit) in self.holds[..self.filled as usize].iter().enumerate() {
            assert_eq!(self.slot_of[unit as usize], slot as u32, "slot of translation unit {unit}");
        }
        let cached = self.slot_of.iter().filter(|&&slot| slot != NONE).count();
        assert_eq!(cached, self.filled as usize, "translation units cached");
        for (lpn, _) in map.used() {
            let unit = lpn >> self.shift;
            let known = self.slot_of[unit as usize] != NONE || self.table.lookup(unit) != NONE;
            assert!(known, "translation unit {unit} of unit {lpn} is nowhere");
        }
    }
}

/// The page map of the translation units, over superblocks of its own with as much spare as data:
/// there are few of them, so that it costs next to nothing.
fn table(drive: &Drive, units: u32) -> PageMap {
    let settings = Settings {
        low: 1,
        high: 1,
        idle_superblocks: 0,
        pace: Pace::Blocking,
        batch: None,
        separate_frontier: false,
        in_row: None,
        moves_for_wear: false,
    };
    let granules = drive.layout.granules();
    let layout = |superblocks| {
        Layout::new(&drive.geometry, drive.scope, superblocks)
            .with_parity(drive.layout.stripe())
            .packed(granules)
    };
    let probe = layout(1);
    let per_region = units.div_ceil(probe.regions) * 2 * granules;
    let mut superblocks = per_region.div_ceil(probe.data_units_per_superblock()) + settings.low + 1;
    // Padding can take more in very small superblocks.
    while u64::from(PageMap::region_limit(&layout(superblocks), &settings))
        * u64::from(probe.regions)
        < u64::from(units) * u64::from(granules)
    {
        superblocks += 1;
    }
    let first = |name| VICTIMS.entries.iter().find(|e| e.name == name);
    let greedy = first("greedy").expect("a known policy").build;
    let policies = Policies {
        // Greedy draws nothing from its stream.
        victim: greedy(&victim::Parameters::default(), Stream::new(0, "translation units")),
        placement: (PLACEMENTS.entries[0].build)(),
        wear: None,
    };
    let data = drive.layout.regions * drive.layout.superblocks;
    PageMap::new(layout(superblocks), units, settings, policies, WHOLE, false)
        .with_first_superblock(data)
}

/// The drive's sink for translation units: never `timed`, as nothing of them waits in the write buffer.
struct TableSink<'a> {
    sink: &'a mut dyn Sink,
    base: u32,
}

impl Sink for TableSink<'_> {
    fn takes_time(&self) -> bool {
        self.sink.takes_time()
    }
    fn backlog(&self, die: u32) -> u32 {
        self.sink.backlog(die)
    }
    fn in_ram(&self, ppn: u32) -> bool {
        self.sink.in_ram(self.base + ppn)
    }
    fn hold(&mut self, ppn: u32, units: u32) {
        self.sink.hold(self.base + ppn, units);
    }
    fn open_program(&mut self, die: u32) -> u32 {
        self.sink.open_program(die)
    }
    fn close_program(&mut self, handle: u32, filled: Filled, placed: &[Placed]) {
        let first = self.base + filled.first;
        let cause = if filled.cause == Cause::Parity { Cause::Parity } else { Cause::Map };
        self.sink.close_program(handle, Filled { first, cause, ..filled }, placed);
    }
    fn collect_read(&mut self, die: u32, range: Range<u32>, units: u32, _: Cause) -> u32 {
        let range = self.base + range.start..self.base + range.end;
        self.sink.collect_read(die, range, units, Cause::Map)
    }
    fn modify_read(&mut self, die: u32, ppn: u32, units: u32, _: bool, _: u32) -> u32 {
        match self.in_ram(ppn) {
            true => NONE,
            false => self.collect_read(die, ppn..ppn + units, units, Cause::Map),
        }
    }
    fn stamp(&self, read: u32) -> u64 {
        self.sink.stamp(read)
    }
    fn under_way(&self, read: u32, stamp: u64) -> bool {
        self.sink.under_way(read, stamp)
    }
    fn feed(&mut self, read: u32, program: u32) {
        self.sink.feed(read, program);
    }
    fn copy(&mut self, die: u32, count: u32, run: &[Copied], _: Cause) {
        self.sink.copy(die, count, run, Cause::Map);
    }
    fn erase(&mut self, die: u32, superblock: u32, _: Cause) {
        self.sink.erase(die, superblock, Cause::Map);
    }
}
