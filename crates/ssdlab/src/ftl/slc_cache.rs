//! The SLC cache: superblocks written with one bit per cell, fast, and folded into native ones later.
//!
//! A superblock in SLC mode offers the first `1 / bits` of its offsets (one page per word line), in the
//! same numbering as ever, and takes the times of SLC mode. Host data goes to the region's frontier in
//! SLC mode while there is one. A *static* part of the cache has superblocks of its own, behind
//! those for data; a *dynamic* part borrows free superblocks for data. What is full is folded in the
//! order in which it was filled: its valid units move to the host's native frontier, and it is
//! erased. What has been overwritten or trimmed by then is never written a second time.
//!
//! How much is lent follows from the data at hand: the flash behind unused logical space, with its
//! share of the over-provisioning, so that native collection keeps what it was built with. The
//! dynamic part is therefore proportional to the share of the drive that holds no data, and nothing
//! on a full one, or already at a lower mark. Nothing is lent out of what collection needs at once.
//!
//! After Im & Shin, "ComboFTL" (J. Systems Architecture 56, 2010) for the two modes of a block and
//! FIFO folding, and Samsung's TurboWrite white paper (2013, 2018) for the static and the dynamic
//! part. Simplified: data moves through the controller; every mode of a block erases alike.
//! Cost: constant for a write; folding as collection.

mod fold;

use super::Sink;
use super::blocks::OPEN;
use super::collect::Pace;
use super::layout::Layout;
use super::open::KEPT;
use super::page_map::{PageMap, Settings};
use super::region::{CLOSED, Frontier, Lane};
use crate::nand::{Cause, NONE};
use crate::persist::persistent;
use std::collections::VecDeque;

/// What a host write does that finds the cache full.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// It waits until folding has made room in the cache.
    Fold,
    /// It goes past the cache, in native mode.
    Direct,
}

/// Size and rules of an SLC cache; sizes are superblocks in each region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlcSettings {
    /// Bits of a cell in native mode.
    pub bits: u32,
    /// Most superblocks borrowed; those of the static part are the layout's `set_aside`.
    pub dynamic: u32,
    /// Share of the logical space in use at which nothing is borrowed any more.
    pub until: f64,
    /// What a write does that finds it full.
    pub when_full: WhenFull,
}

/// Work and state of the cache; units are mapping units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlcCounters {
    /// Host units placed in it.
    pub units_written: u64,
    /// Superblocks folded.
    pub folds: u64,
    /// Superblocks in SLC mode.
    pub superblocks: u64,
    /// Units in them that hold data.
    pub units_valid: u64,
    /// Bits of a cell in native mode.
    pub bits: u64,
    /// Superblocks of the dynamic part at most.
    pub dynamic: u64,
}

/// A superblock being folded.
#[derive(Clone, Copy, Debug, Default)]
struct Folding {
    victim: u32,
    /// Next offset to look at.
    cursor: u32,
    /// Valid units at the start, and host units for which the fold makes room.
    valid: u32,
    gain: u32,
    /// Paced: copies owed, times `gain`; negative when ahead.
    owed: i64,
}

/// The part of the cache in one region.
struct RegionCache {
    /// Erased superblocks of the static part.
    free: VecDeque<u32>,
    /// Full superblocks in SLC mode, the oldest in front.
    full: VecDeque<u32>,
    folding: Option<Folding>,
    /// Superblocks borrowed, the one being folded included.
    borrowed: u32,
    /// Valid units in SLC mode.
    valid: u32,
    /// Native units that the region may hold while so much is borrowed.
    limit: Limit,
}

/// Native units that a region may hold.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// Beyond so many, what is borrowed comes back.
    share: u32,
    /// Up to so many can be collected while two superblocks are being folded.
    safe: u32,
}

/// The SLC cache of a page map.
pub struct SlcCache {
    settings: SlcSettings,
    /// Units of a superblock in SLC mode, and those that hold data.
    units: u32,
    data_units: u32,
    /// Free superblocks of a region that are never lent.
    keep: usize,
    /// Whether folding is spread over host writes.
    paced: bool,
    /// Logical units of a region, and superblocks that hold them.
    share: (u64, u64),
    /// Logical units of a region in use at which nothing is lent.
    until: u64,
    /// By number of superblocks borrowed: see `RegionCache::limit`.
    limits: Vec<Limit>,
    /// By superblock: in SLC mode.
    slc: Vec<bool>,
    parts: Vec<RegionCache>,
    /// Whether the host unit before went to the cache.
    last: bool,
    written: u64,
    folds: u64,
}

persistent!(SlcCache {
    state { last, written, folds }
    parts { slc, parts }
    built { settings, units, data_units, keep, paced, share, until, limits }
});
persistent!(RegionCache { state { free, full, folding, borrowed, valid, limit } });
persistent!(Folding { state { victim, cursor, valid, gain, owed } });
persistent!(Limit { state { share, safe } });

impl SlcCache {
    /// An empty cache of a page map of `units` logical units.
    pub fn new(layout: &Layout, units: u32, settings: &Settings, slc: SlcSettings) -> Self {
        let paced = settings.pace != Pace::Blocking;
        let data = layout.superblocks - layout.set_aside;
        let lendable = data.saturating_sub(settings.low + u32::from(paced));
        let share = (u64::from(units.div_ceil(layout.regions)), u64::from(lendable));
        let size = Self::units_per_superblock(layout, slc.bits);
        let dynamic = slc.dynamic.min(lendable);
        let until = (share.0 as f64 * slc.until) as u64;
        let limit = |borrowed: u32| {
            let mut rest = *layout;
            rest.superblocks -= borrowed;
            let safe = PageMap::region_limit(&rest, settings).saturating_sub(2 * size);
            let lent = (u64::from(borrowed) * share.0).div_ceil(share.1.max(1));
            Limit { share: until.saturating_sub(lent).min(u64::from(safe)) as u32, safe }
        };
        // A batch of collection must not begin because something was lent.
        let keep = settings.batch.map_or(0, |batch| batch.end.ceil() as u32 + 1);
        let mut cache = SlcCache {
            settings: SlcSettings { dynamic, ..slc },
            units: size,
            data_units: Self::data_units_per_superblock(layout, slc.bits),
            // Folding opens a native superblock before it gives one back; paced collection would
            // begin with the last but one.
            keep: keep.max(settings.low + 1 + 2 * u32::from(paced)) as usize,
            paced,
            share,
            until,
            limits: (0..=dynamic).map(limit).collect(),
            slc: Vec::new(),
            parts: Vec::new(),
            last: false,
            written: 0,
            folds: 0,
        };
        cache.reset(layout);
        cache
    }

    /// Units of a superblock in SLC mode: those of whole pages.
    pub fn units_per_superblock(layout: &Layout, bits: u32) -> u32 {
        let stripe = layout.units_per_program() * layout.dies_per_region;
        layout.units_per_superblock() / stripe / bits * stripe
    }

    /// Of those, the ones that hold data: all but parity, of whole stripes.
    pub fn data_units_per_superblock(layout: &Layout, bits: u32) -> u32 {
        let programs = Self::units_per_superblock(layout, bits) / layout.units_per_program();
        let parity = programs.checked_div(layout.stripe()).unwrap_or(0);
        (programs - parity) * layout.units_per_program()
    }

    fn reset(&mut self, layout: &Layout) {
        self.slc = vec![false; (layout.regions * layout.superblocks) as usize];
        self.last = false;
        self.parts = (0..layout.regions)
            .map(|region| RegionCache {
                free: layout.set_aside_of(region).collect(),
                full: VecDeque::new(),
                folding: None,
                borrowed: 0,
                valid: 0,
                limit: self.limits[0],
            })
            .collect();
    }

    /// Superblocks set aside in a region that are erased.
    pub(super) fn free(&self, region: u32) -> &VecDeque<u32> {
        &self.parts[region as usize].free
    }

    /// A unit in SLC mode was written (`true`), or holds data no longer.
    #[inline]
    pub(super) fn count(&mut self, region: u32, superblock: u32, written: bool) {
        if self.slc[superblock as usize] {
            let valid = &mut self.parts[region as usize].valid;
            *valid = if written { *valid + 1 } else { *valid - 1 };
        }
    }

    /// Borrows or gives back.
    fn lend(&mut self, region: u32, borrowed: u32) {
        let limit = self.limits[borrowed as usize];
        let part = &mut self.parts[region as usize];
        (part.borrowed, part.limit) = (borrowed, limit);
    }

    /// Superblocks that could be borrowed if all data were native: what idle-time collection should
    /// make free.
    fn lendable(&self, valid_units: u32) -> u32 {
        let unused = self.until.saturating_sub(u64::from(valid_units));
        let superblocks = unused * self.share.1 / self.share.0.max(1);
        superblocks.min(u64::from(self.settings.dynamic)) as u32
    }

    /// All that decides what it does next, for fingerprints.
    pub(super) fn state(&self, add: &mut dyn FnMut(u64)) {
        self.slc.iter().for_each(|&slc| add(u64::from(slc)));
        for part in &self.parts {
            part.free.iter().chain(&part.full).for_each(|&s| add(u64::from(s)));
            let f = part
                .folding
                .map_or([0; 3], |f| [u64::from(f.victim), u64::from(f.cursor), f.owed as u64]);
            f.into_iter().for_each(&mut *add);
            [part.borrowed, part.valid].into_iter().for_each(|n| add(u64::from(n)));
        }
        [self.written, self.folds, u64::from(self.last)].into_iter().for_each(add);
    }
}

impl PageMap {
    /// The same, still empty, with an SLC cache.
    pub fn with_slc_cache(mut self, slc: SlcSettings) -> Self {
        let cache = SlcCache::new(&self.layout, self.units(), &self.settings, slc);
        self.cache = Some(Box::new(cache));
        self
    }

    /// Whether the unit lies in a superblock in SLC mode.
    #[inline]
    pub fn in_slc(&self, ppn: u32) -> bool {
        match &self.cache {
            Some(cache) => cache.slc[self.layout.superblock_of(ppn) as usize],
            None => false,
        }
    }

    /// What the SLC cache has done, if there is one.
    pub fn slc_counters(&self) -> Option<SlcCounters> {
        self.cache.as_ref().map(|cache| SlcCounters {
            units_written: cache.written,
            folds: cache.folds,
            superblocks: cache.slc.iter().filter(|&&slc| slc).count() as u64,
            units_valid: cache.parts.iter().map(|p| u64::from(p.valid)).sum(),
            bits: u64::from(cache.settings.bits),
            dynamic: u64::from(cache.settings.dynamic) * u64::from(self.layout.regions),
        })
    }

    /// Units of a superblock in SLC mode; of one in native mode where there is no cache.
    #[inline]
    pub(super) fn slc_units(&self) -> u32 {
        self.cache.as_ref().map_or(self.layout.units_per_superblock(), |cache| cache.units)
    }

    /// Where the host unit before went, for placement.
    #[inline]
    pub(super) fn last_lane(&self) -> Lane {
        match &self.cache {
            Some(cache) if cache.last => Lane::Slc,
            _ => Lane::Host,
        }
    }

    /// Places a unit of host data in the cache, or past it.
    pub(super) fn write_cached<S: Sink>(&mut self, region: u32, read: u32, sink: &mut S) -> u32 {
        let cached = self.slc_room(region, sink);
        if let Some(cache) = &mut self.cache {
            cache.last = cached;
            cache.written += u64::from(cached);
        }
        if cached {
            return self.append_slc(region, self.open.next, read, sink);
        }
        self.native_room(region, sink);
        self.append(region, self.open.next, Cause::HostWrite, read, sink)
    }

    /// Lets the next host unit find room in the cache; `false` where it must go past it.
    fn slc_room<S: Sink>(&mut self, region: u32, sink: &mut S) -> bool {
        let Some(cache) = &self.cache else { return false };
        let (direct, paced) = (cache.settings.when_full == WhenFull::Direct, cache.paced);
        if self.regions[region as usize].slc.superblock != NONE {
            if paced && !direct {
                self.pace_fold(region, sink);
            }
            // A late erase may have padded it to its end.
            if self.regions[region as usize].slc.superblock != NONE {
                return true;
            }
        }
        while !self.open_slc(region, sink) {
            if direct || !self.fold_one(region, false, sink) {
                return false;
            }
        }
        true
    }

    /// Room in the native frontier for a host unit. Before anything is collected for it, and where
    /// it is needed for the data at hand, what has been lent comes back.
    fn native_room<S: Sink>(&mut self, region: u32, sink: &mut S) {
        while let Some(cache) = &self.cache {
            let part = &cache.parts[region as usize];
            let native = self.regions[region as usize].valid_units - part.valid;
            let r = &self.regions[region as usize];
            let short = r.host.superblock == NONE && r.free.len() <= cache.keep;
            let back = part.borrowed > 0 && (short || native >= part.limit.share);
            if !back || !self.fold_one(region, true, sink) {
                break;
            }
        }
        self.make_room(region, 1, sink);
    }

    /// Whether a free superblock may be borrowed.
    fn may_borrow(&self, region: u32) -> bool {
        let Some(cache) = &self.cache else { return false };
        let (part, r) = (&cache.parts[region as usize], &self.regions[region as usize]);
        part.borrowed < cache.settings.dynamic
            && r.free.len() > cache.keep
            && r.valid_units - part.valid < cache.limits[part.borrowed as usize + 1].share
    }

    /// Opens a frontier in SLC mode; `false` where nothing is left for it.
    fn open_slc<S: Sink>(&mut self, region: u32, sink: &mut S) -> bool {
        let may_borrow = self.may_borrow(region);
        let from = self.open.next.from;
        let next = (from < KEPT).then(|| self.layout.superblock_of(from));
        let Some(cache) = &mut self.cache else { return false };
        let free = &mut cache.parts[region as usize].free;
        // Not the one with the old copy of what is about to be placed, if there is another.
        let at = free.iter().position(|&s| Some(s) != next).unwrap_or(0);
        let own = free.remove(at);
        let superblock = match own {
            Some(superblock) => superblock,
            None if may_borrow => self.take_free(region, Lane::Slc),
            None => return false,
        };
        let Some(cache) = &mut self.cache else { return false };
        if own.is_none() {
            cache.lend(region, cache.parts[region as usize].borrowed + 1);
        }
        cache.slc[superblock as usize] = true;
        self.see_to_erase(superblock, sink);
        self.regions[region as usize].slc = Frontier { superblock, ..CLOSED };
        true
    }

    /// The region's frontier in SLC mode is full.
    pub(super) fn close_slc(&mut self, region: u32, superblock: u32) {
        self.regions[region as usize].slc = CLOSED;
        if let Some(cache) = &mut self.cache {
            cache.parts[region as usize].full.push_back(superblock);
        }
    }

    /// Free superblocks that idle-time collection should see to in a region, for the cache to borrow.
    pub(super) fn idle_wish(&self, region: u32) -> u32 {
        let Some(cache) = &self.cache else { return 0 };
        let part = &cache.parts[region as usize];
        let wish = cache.lendable(self.regions[region as usize].valid_units);
        match wish.saturating_sub(part.borrowed) {
            0 => 0,
            wish => wish + cache.keep as u32,
        }
    }

    /// Back to an empty cache.
    pub(super) fn purge_slc(&mut self) {
        if let Some(cache) = &mut self.cache {
            cache.reset(&self.layout);
        }
    }

    /// Checks the cache against the superblocks. For tests.
    pub(super) fn check_slc(&self) {
        let Some(cache) = &self.cache else { return };
        for (region, part) in cache.parts.iter().enumerate() {
            let r = &self.regions[region];
            let open = Some(r.slc.superblock).filter(|&s| s != NONE);
            let folding = part.folding.map(|f| f.victim);
            let mut slc: Vec<u32> = part.full.iter().copied().chain(open).chain(folding).collect();
            slc.sort_unstable();
            let all =
                self.blocks.of_region(region as u32).chain(self.layout.set_aside_of(region as u32));
            let marked: Vec<u32> = all.filter(|&s| cache.slc[s as usize]).collect();
            assert_eq!(slc, marked, "superblocks in SLC mode of region {region}");
            let borrowed = slc.iter().filter(|&&s| !self.layout.is_set_aside(s)).count();
            assert_eq!(part.borrowed as usize, borrowed, "superblocks borrowed in region {region}");
            let own = slc.len() - borrowed + part.free.len();
            assert_eq!(own, self.layout.set_aside as usize, "superblocks set aside in {region}");
            let valid: u32 = slc.iter().map(|&s| self.blocks.valid[s as usize] & !OPEN).sum();
            assert_eq!(part.valid, valid, "valid units in SLC mode of region {region}");
            for &s in &slc {
                let beyond = cache.units..self.layout.units_per_superblock();
                let first = self.layout.first_unit(s);
                assert!(
                    !beyond.clone().any(|o| self.is_valid(first + o)),
                    "data beyond SLC in {s}"
                );
            }
        }
    }
}
