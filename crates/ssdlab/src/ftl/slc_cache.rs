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

mod flow;

use super::blocks::OPEN;
use super::collect::Pace;
use super::layout::Layout;
use super::map::Map;
use super::page_map::{PageMap, Settings};
use super::relocate::Relocation;
use super::space::{Lane, Space};
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

/// The part of the cache in one region.
#[derive(Clone)]
struct RegionCache {
    /// Erased superblocks of the static part.
    free: VecDeque<u32>,
    /// Full superblocks in SLC mode, the oldest in front.
    full: VecDeque<u32>,
    /// Superblocks borrowed, the one being folded included.
    borrowed: u32,
    /// Valid units in SLC mode.
    valid: u32,
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
///
/// Owns which superblocks are in SLC mode, the erased ones of the static part and the full ones in the order in which
/// they were filled, and how many are borrowed in each region. One that is being filled is at the region's frontier in
/// SLC mode, one that is being folded is in [`Reclaim`](super::reclaim::Reclaim).
#[derive(Clone)]
pub struct SlcCache {
    settings: SlcSettings,
    /// Units of a superblock in SLC mode, and those that hold data.
    units: u32,
    data_units: u32,
    /// Free superblocks of a region that are never lent.
    keep: u32,
    /// Whether folding is spread over host writes.
    paced: bool,
    /// Logical units of a region, and superblocks that hold them.
    share: (u64, u64),
    /// Logical units of a region in use at which nothing is lent.
    until: u64,
    /// By number of superblocks borrowed: native units that a region may hold meanwhile.
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
persistent!(RegionCache { state { free, full, borrowed, valid } });

impl SlcCache {
    /// An empty cache of a page map of `units` logical units.
    pub fn new(layout: &Layout, units: u32, settings: &Settings, slc: SlcSettings) -> Self {
        let paced = settings.pace != Pace::Blocking;
        let data = layout.superblocks - layout.set_aside;
        let lendable = data.saturating_sub(settings.low + u32::from(paced));
        let share = (u64::from(units.div_ceil(layout.regions)), u64::from(lendable));
        let size = Self::units_of(layout, slc.bits);
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
            keep: keep.max(settings.low + 1 + 2 * u32::from(paced)),
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
    pub fn units_of(layout: &Layout, bits: u32) -> u32 {
        let stripe = layout.units_per_program() * layout.dies_per_region;
        layout.units_per_superblock() / stripe / bits * stripe
    }

    /// Of those, the ones that hold data: all but parity, of whole stripes.
    pub fn data_units_per_superblock(layout: &Layout, bits: u32) -> u32 {
        let programs = Self::units_of(layout, bits) / layout.units_per_program();
        let parity = programs.checked_div(layout.stripe()).unwrap_or(0);
        (programs - parity) * layout.units_per_program()
    }

    /// The same of this cache.
    pub(super) fn units_per_superblock(&self) -> u32 {
        self.units
    }

    /// Back to an empty cache.
    pub(super) fn reset(&mut self, layout: &Layout) {
        self.slc = vec![false; (layout.regions * layout.superblocks) as usize];
        self.last = false;
        self.parts = (0..layout.regions)
            .map(|region| RegionCache {
                free: layout.set_aside_of(region).collect(),
                full: VecDeque::new(),
                borrowed: 0,
                valid: 0,
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

    /// Whether a superblock is in SLC mode.
    #[inline]
    pub(super) fn has(&self, superblock: u32) -> bool {
        self.slc[superblock as usize]
    }

    /// Whether the host unit before went to the cache.
    #[inline]
    pub(super) fn took_last(&self) -> bool {
        self.last
    }

    /// What it has done.
    pub(super) fn counters(&self) -> SlcCounters {
        SlcCounters {
            units_written: self.written,
            folds: self.folds,
            superblocks: self.slc.iter().filter(|&&slc| slc).count() as u64,
            units_valid: self.parts.iter().map(|p| u64::from(p.valid)).sum(),
            bits: u64::from(self.settings.bits),
            dynamic: u64::from(self.settings.dynamic) * self.parts.len() as u64,
        }
    }

    /// A superblock in SLC mode is full.
    pub(super) fn filled(&mut self, region: u32, superblock: u32) {
        self.parts[region as usize].full.push_back(superblock);
    }

    /// Units in native mode, of so many in a region.
    fn native(&self, region: u32, valid_units: u32) -> u32 {
        valid_units - self.parts[region as usize].valid
    }

    /// Whether a region, with so many units and free superblocks, may lend one more.
    fn may_borrow(&self, region: u32, valid_units: u32, free: u32) -> bool {
        let part = &self.parts[region as usize];
        part.borrowed < self.settings.dynamic
            && free > self.keep
            && self.native(region, valid_units) < self.limits[part.borrowed as usize + 1].share
    }

    /// Whether what is lent must come back, as the region holds so many units or, with `short`, needs a superblock.
    fn is_due(&self, region: u32, valid_units: u32, short: bool) -> bool {
        let borrowed = self.parts[region as usize].borrowed;
        let share = self.limits[borrowed as usize].share;
        borrowed > 0 && (short || self.native(region, valid_units) >= share)
    }

    /// Takes the superblock of a region, which holds so many units, that is folded next, if there is one: the oldest,
    /// but with `lent`, or where native data is close to what it may be, the oldest that gives a superblock back.
    fn take_full(
        &mut self,
        region: u32,
        valid_units: u32,
        lent: bool,
        layout: &Layout,
    ) -> Option<u32> {
        let native = self.native(region, valid_units);
        let part = &mut self.parts[region as usize];
        let safe = self.limits[part.borrowed as usize].safe;
        let any = part.borrowed == 0 || !lent && native + self.units <= safe;
        let suits = |&s: &u32| any || !layout.is_set_aside(s);
        let at = part.full.iter().position(suits)?;
        part.full.remove(at)
    }

    /// The folding of a superblock with so many valid units, and the host units for which it makes room.
    fn folding(&self, victim: u32, valid: u32, layout: &Layout) -> Relocation {
        let units = layout.data_units_per_superblock();
        // Of a borrowed superblock, the native units that take the data do not come back.
        let gain = match layout.is_set_aside(victim) {
            true => self.data_units,
            false => {
                (u64::from(self.data_units) * u64::from(units - valid) / u64::from(units)) as u32
            }
        };
        Relocation::new(victim, valid, gain.max(1), Cause::Fold)
    }

    /// A superblock has been folded; `false` where it was borrowed, and is not the cache's any more.
    pub(super) fn take_back(&mut self, region: u32, superblock: u32, layout: &Layout) -> bool {
        self.slc[superblock as usize] = false;
        self.folds += 1;
        let own = layout.is_set_aside(superblock);
        let part = &mut self.parts[region as usize];
        if own {
            part.free.push_back(superblock);
        } else {
            part.borrowed -= 1;
        }
        own
    }

    /// Free superblocks that idle-time collection should see to in a region with so many units: what could be
    /// borrowed if all data were native.
    fn idle_wish(&self, region: u32, valid_units: u32) -> u32 {
        let unused = self.until.saturating_sub(u64::from(valid_units));
        let lendable = unused * self.share.1 / self.share.0.max(1);
        let lendable = lendable.min(u64::from(self.settings.dynamic)) as u32;
        match lendable.saturating_sub(self.parts[region as usize].borrowed) {
            0 => 0,
            wish => wish + self.keep,
        }
    }

    /// Checks a region's part against its superblocks; `folding`: the one that is being folded. For tests.
    pub(super) fn check(&self, region: u32, space: &Space, map: &Map, folding: Option<u32>) {
        let (part, layout) = (&self.parts[region as usize], &space.layout);
        let open = Some(space.frontier(region, Lane::Slc).superblock).filter(|&s| s != NONE);
        let mut slc: Vec<u32> = part.full.iter().copied().chain(open).chain(folding).collect();
        slc.sort_unstable();
        let marked: Vec<u32> = space.superblocks_of(region).filter(|&s| self.has(s)).collect();
        assert_eq!(slc, marked, "superblocks in SLC mode of region {region}");
        let borrowed = slc.iter().filter(|&&s| !layout.is_set_aside(s)).count();
        assert_eq!(part.borrowed as usize, borrowed, "superblocks borrowed in region {region}");
        let own = slc.len() - borrowed + part.free.len();
        assert_eq!(own, layout.set_aside as usize, "superblocks set aside in {region}");
        let valid: u32 = slc.iter().map(|&s| space.blocks.valid[s as usize] & !OPEN).sum();
        assert_eq!(part.valid, valid, "valid units in SLC mode of region {region}");
        for &s in &slc {
            let beyond = layout.first_unit(s) + self.units..layout.units_of(s).end;
            assert_eq!(map.next_valid(beyond), None, "data beyond SLC in {s}");
        }
    }
}
