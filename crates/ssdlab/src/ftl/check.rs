//! What tests ask of a page map: whether it agrees with itself, and whether two are the same.

use super::blocks::OPEN;
use super::mapping::Mapping;
use super::pace::Batches;
use super::page_map::PageMap;
use super::region::LANES;
use crate::nand::NONE;

/// Odd multiplier of [`PageMap::fingerprint`] (2^64 / golden ratio).
const FINGERPRINT: u64 = 0x9e37_79b9_7f4a_7c15;

impl PageMap {
    /// A hash of all that decides what the map does next, and of what it has done: where every unit
    /// lies, valid units, wear, the order of the superblocks, frontiers, collections under way,
    /// counters. Contents and the state of random policies are not in it. For tests.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut add = |value: u64| hash = (hash.rotate_left(5) ^ value).wrapping_mul(FINGERPRINT);
        self.map.iter().for_each(|&ppn| add(u64::from(ppn)));
        for (ppn, &lpn) in self.owner.iter().enumerate() {
            add(if self.is_valid(ppn as u32) { u64::from(lpn) } else { u64::MAX });
        }
        let blocks = &self.blocks;
        for s in 0..blocks.valid.len() {
            add(u64::from(blocks.valid[s]));
            add(u64::from(blocks.erases[s]));
            add(blocks.closed_at[s]);
        }
        for (r, region) in self.regions.iter().enumerate() {
            blocks.oldest_first(r as u32).for_each(|s| add(u64::from(s)));
            region.free.iter().for_each(|&s| add(u64::from(s)));
            for f in region.frontiers() {
                add(u64::from(f.superblock));
                add(u64::from(f.offset));
            }
            add(region.collecting.map_or(0, |c| c.position()));
            add(region.leveling.map_or(0, |c| c.position()));
            add(region.owed.to_bits());
        }
        add(u64::from(self.last_region));
        add(u64::from(self.last_length));
        self.packing.state(&mut add);
        let c = &self.counters;
        for value in [
            c.host_units_written,
            c.programs_host,
            c.programs_collection,
            c.programs_wear,
            c.programs_padding,
            c.host_units_saved,
            c.read_modify_writes,
            c.units_trimmed,
            c.units_mapped,
            c.collections,
            c.wear_moves,
            c.superblocks_erased,
            c.programs_merge,
            c.programs_fold,
            c.programs_parity,
            c.batches,
        ] {
            add(value);
        }
        self.batches.iter().flat_map(Batches::state).for_each(&mut add);
        self.mapping.state(&mut add);
        if let Some(cache) = &self.cache {
            cache.state(&mut add);
        }
        hash
    }

    /// Checks that map, owners, valid bits and counts agree. For tests; scans everything.
    pub fn check(&self) {
        let mut counts = vec![0u32; self.blocks.valid.len()];
        let mut mapped = 0;
        for (lpn, &ppn) in self.map.iter().enumerate() {
            if ppn != NONE {
                assert_eq!(self.owner[ppn as usize], lpn as u32, "owner of ppn {ppn}");
                let length = self.length(lpn as u32);
                assert!((1..=self.layout.granules()).contains(&length), "length of unit {lpn}");
                let superblock = self.layout.superblock_of(ppn);
                let parts = self.layout.program_units(ppn, length);
                for ppn in parts.flat_map(|(ppn, units)| ppn..ppn + units) {
                    assert!(self.is_valid(ppn), "valid bit of ppn {ppn}");
                    assert_eq!(self.layout.superblock_of(ppn), superblock, "end of unit {lpn}");
                    let offset = ppn % self.layout.units_per_superblock();
                    assert!(!self.layout.is_parity(offset), "data at parity's ppn {ppn}");
                }
                counts[superblock as usize] += length;
                mapped += u64::from(length);
            }
        }
        let bits: u64 = self.valid.iter().map(|w| u64::from(w.count_ones())).sum();
        assert_eq!(bits, mapped, "valid bits");
        assert_eq!(self.counters.units_mapped, mapped, "mapped units");
        for (s, &count) in counts.iter().enumerate() {
            assert_eq!(self.blocks.valid[s] & !OPEN, count, "valid units of superblock {s}");
        }
        let free: usize = self.regions.iter().map(|r| r.free.len()).sum();
        assert_eq!(self.free as usize, free, "free superblocks");
        for (r, region) in self.regions.iter().enumerate() {
            let all = self.blocks.of_region(r as u32).chain(self.layout.set_aside_of(r as u32));
            let sum: u32 = all.map(|s| counts[s as usize]).sum();
            assert_eq!(region.valid_units, sum, "valid units of region {r}");
            let filled = region
                .frontiers()
                .map(|f| f.superblock == NONE || f.offset % self.layout.units_per_program() == 0);
            let listed = self.partial[r >> 6] >> (r & 63) & 1 != 0;
            assert!(
                listed || filled == [true; LANES.len()],
                "region {r} has a program unit filled in part"
            );
            for &s in &region.free {
                assert_eq!(counts[s as usize], 0, "free superblock {s} holds data");
            }
        }
        self.check_slc();
        match &self.mapping {
            Mapping::Page => {}
            Mapping::Cached(cached) => cached.check(&self.map),
            Mapping::Extent(table) => table.check(&self.map),
        }
    }
}
