//! What tests ask of a page map: whether it agrees with itself, and whether two are the same.

use super::mapping::Mapping;
use super::page_map::PageMap;
use crate::nand::Cause;
use crate::persist::{Archive, Persist};

/// Odd multiplier of [`PageMap::fingerprint`] (2^64 / golden ratio).
const FINGERPRINT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Length and CRC-32 of what is saved of a part.
pub(super) fn digest<T: Persist + Clone>(part: &T) -> u64 {
    let mut nowhere = std::io::sink();
    let mut archive = Archive::save(&mut nowhere);
    let (length, sum) = part
        .clone()
        .persist(&mut archive)
        .and_then(|()| archive.finish())
        .expect("nothing can go wrong on the way to nowhere");
    length << 32 | u64::from(sum)
}

impl PageMap {
    /// A hash of all that decides what the map does next, and of what it has done: where every unit
    /// lies, valid units, wear, the order of the superblocks, frontiers, collections under way,
    /// counters. Contents and the state of random policies are not in it. For tests.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut add = |value: u64| hash = (hash.rotate_left(5) ^ value).wrapping_mul(FINGERPRINT);
        add(digest(&self.map));
        add(digest(self.blocks()));
        add(digest(&self.counters));
        self.cache.iter().for_each(|cache| add(digest(&**cache)));
        self.reclaim.batches.iter().for_each(|batches| add(digest(batches)));
        for r in 0..self.layout.regions {
            self.space.state_of(r, &mut add);
            self.reclaim.state_of(r, &mut add);
        }
        [self.last_region, self.last_length].into_iter().for_each(|n| add(u64::from(n)));
        self.mapping.state(&mut add);
        hash
    }

    /// Checks that map, owners, valid bits and counts agree. For tests; scans everything.
    pub fn check(&self) {
        let counts = self.map.check(&self.layout);
        let mapped: u64 = counts.iter().map(|&units| u64::from(units)).sum();
        assert_eq!(self.counters.units_mapped, mapped, "mapped units");
        self.space.check(&counts);
        if let Some(cache) = &self.cache {
            (0..self.layout.regions).for_each(|region| {
                let folding = self.reclaim.moving(region, Cause::Fold).map(|job| job.victim);
                cache.check(region, &self.space, &self.map, folding);
            });
        }
        match &self.mapping {
            Mapping::Page => {}
            Mapping::Cached(cached) => cached.check(self.map.places()),
            Mapping::Extent(table) => table.check(self.map.places()),
        }
    }
}
