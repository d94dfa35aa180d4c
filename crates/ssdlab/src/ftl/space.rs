//! Space: which superblocks are free, and where each region appends.

use super::append::Unit;
use super::blocks::{Blocks, OPEN};
use super::layout::Layout;
use super::open::{KEPT, NOTHING, Placed};
use super::slc_cache::SlcCache;
use super::wear_leveling::WearLeveling;
use crate::nand::{Cause, NONE};
use crate::persist::persistent;
use std::collections::VecDeque;

/// Where data is being appended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frontier {
    pub superblock: u32,
    pub offset: u32,
    pub handle: u32,
    pub host_units: u32,
}

impl Frontier {
    /// The start of a superblock; of [`NONE`]: nothing is open.
    pub const fn at(superblock: u32) -> Self {
        Frontier { superblock, offset: 0, handle: NONE, host_units: 0 }
    }
}

/// No superblock is open.
pub(super) const CLOSED: Frontier = Frontier::at(NONE);

/// The write frontiers of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Data of the host in native mode, and what is collected unless it is kept apart.
    Host,
    /// What is collected, where it is kept apart.
    Collected,
    /// Data of the host in SLC mode.
    Slc,
    /// What is moved for wear's sake.
    Wear,
}

/// All of them.
pub(super) const LANES: [Lane; 4] = [Lane::Host, Lane::Collected, Lane::Slc, Lane::Wear];

impl Lane {
    /// On whose behalf a program unit is padded here.
    pub fn cause(self) -> Cause {
        match self {
            Lane::Host | Lane::Slc => Cause::HostWrite,
            Lane::Collected => Cause::Collection,
            Lane::Wear => Cause::Wear,
        }
    }
}

struct Region {
    free: VecDeque<u32>,
    /// By lane.
    frontiers: [Frontier; LANES.len()],
    valid_units: u32,
}

/// The superblocks of a drive, and what each is for.
///
/// Owns their table, the free lists, the write frontiers, and what is known of program units that are not full. A
/// superblock is free, at a frontier, closed, being moved, or one that the SLC cache has; no two of these at a time.
/// `free` counts all free lists, a region's `valid_units` what its superblocks hold; `partial` has the bit of every
/// region with a program unit that is filled in part. What is still to be erased is free.
pub(super) struct Space {
    pub(super) layout: Layout,
    pub blocks: Blocks,
    regions: Vec<Region>,
    partial: Vec<u64>,
    free: u32,
    /// Offsets of a superblock in SLC mode.
    slc_units: u32,
    /// Program units that are not full, by region, lane and place.
    pub(super) placed: Vec<Placed>,
    /// Pieces placed so far.
    pub(super) order: u64,
    /// The unit of the host that is about to be placed, once there is room.
    pub next: Unit,
    /// Free superblocks that are still to be erased, in their order, and on whose behalf.
    pub late: Vec<(u32, Cause)>,
}

persistent!(Space {
    state { blocks, free, order, late }
    parts { regions, partial, placed }
    built { layout, slc_units, next }
});
persistent!(Region { state { free, frontiers, valid_units } });
persistent!(Frontier { state { superblock, offset, handle, host_units } });

impl Space {
    /// All superblocks free and never erased.
    pub fn new(layout: Layout) -> Self {
        let lanes = layout.regions as usize * LANES.len();
        let mut space = Space {
            layout,
            blocks: Blocks::new(&layout),
            regions: Vec::new(),
            partial: vec![0; layout.regions.div_ceil(64) as usize],
            free: 0,
            slc_units: layout.units_per_superblock(),
            placed: vec![NOTHING; lanes * layout.units_per_program() as usize],
            order: 0,
            next: Unit::new(NONE),
            late: Vec::new(),
        };
        space.free_all();
        space
    }

    /// So many offsets of a superblock are written in SLC mode.
    pub fn with_slc_units(self, slc_units: u32) -> Self {
        Space { slc_units, ..self }
    }

    fn free_all(&mut self) {
        let region = |r| Region {
            free: self.blocks.of_region(r).collect(),
            frontiers: [CLOSED; LANES.len()],
            valid_units: 0,
        };
        self.regions = (0..self.layout.regions).map(region).collect();
        self.free = self.layout.regions * (self.layout.superblocks - self.layout.set_aside);
    }

    /// Nothing holds data any more, and every superblock that did is erased once; adds the erases of each region.
    pub fn purge(&mut self, cache: Option<&SlcCache>, erased: &mut [u32]) {
        let mut erases = std::mem::take(&mut self.blocks.erases);
        for (r, region) in self.regions.iter().enumerate() {
            let idle = cache.map(|cache| cache.free(r as u32));
            for s in self.superblocks_of(r as u32) {
                let free = region.free.contains(&s) || idle.is_some_and(|idle| idle.contains(&s));
                if !free || self.is_late(s) {
                    erased[r] += 1;
                    erases[s as usize] += 1;
                }
            }
        }
        self.blocks = Blocks::new(&self.layout);
        self.blocks.erases = erases;
        self.late.clear();
        self.free_all();
    }

    /// The superblocks of a region, those set aside behind those for data.
    pub fn superblocks_of(&self, region: u32) -> impl Iterator<Item = u32> + use<> {
        self.blocks.of_region(region).chain(self.layout.set_aside_of(region))
    }

    #[inline(always)]
    pub fn frontier(&self, region: u32, lane: Lane) -> &Frontier {
        &self.regions[region as usize].frontiers[lane as usize]
    }

    #[inline(always)]
    pub fn frontier_mut(&mut self, region: u32, lane: Lane) -> &mut Frontier {
        &mut self.regions[region as usize].frontiers[lane as usize]
    }

    /// All frontiers with a superblock: region, lane and where each is.
    pub fn frontiers(&self) -> impl Iterator<Item = (u32, Lane, &Frontier)> {
        let lanes = (0..self.layout.regions).flat_map(|r| LANES.map(|lane| (r, lane)));
        let all = lanes.map(|(r, lane)| (r, lane, self.frontier(r, lane)));
        all.filter(|(.., frontier)| frontier.superblock != NONE)
    }

    /// Offset at which a frontier has come to the end of its superblock.
    #[inline(always)]
    pub fn end_of(&self, lane: Lane) -> u32 {
        if lane == Lane::Slc { self.slc_units } else { self.layout.units_per_superblock() }
    }

    /// Free superblocks of a region.
    #[inline]
    pub fn free_in(&self, region: u32) -> u32 {
        self.regions[region as usize].free.len() as u32
    }

    /// The same, in the order in which they became free.
    pub fn free_of(&self, region: u32) -> impl Iterator<Item = u32> + '_ {
        self.regions[region as usize].free.iter().copied()
    }

    /// Free superblocks of all regions.
    #[inline]
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Units of a region that hold data.
    #[inline]
    pub fn valid_units(&self, region: u32) -> u32 {
        self.regions[region as usize].valid_units
    }

    /// `units` more of a superblock hold data now.
    #[inline(always)]
    pub fn fill(&mut self, region: u32, superblock: u32, units: u32) {
        self.regions[region as usize].valid_units += units;
        self.blocks.fill(superblock, units);
    }

    /// `units` of a superblock hold no data any more.
    #[inline(always)]
    pub fn vacate(&mut self, region: u32, superblock: u32, units: u32) {
        self.blocks.invalidate(region, superblock, units);
        self.regions[region as usize].valid_units -= units;
    }

    /// `units` of a superblock, which is closed, hold data again.
    pub fn refill(&mut self, region: u32, superblock: u32, units: u32) {
        self.blocks.refill(region, superblock, units);
        self.regions[region as usize].valid_units += units;
    }

    /// Whether collecting a superblock surely yields a program unit, however its units come to lie.
    pub fn gains(&self, superblock: u32) -> bool {
        let most = self.blocks.valid[superblock as usize] + self.layout.granules() - 1;
        let per_program = self.layout.units_per_program();
        most.div_ceil(per_program) * per_program < self.layout.data_units_per_superblock()
    }

    /// Takes a free superblock of a region for a frontier: the one that wear levelling chooses or that became free
    /// first, another one than what is about to be placed replaces something in, if there is one.
    #[cold]
    pub fn take_free(&mut self, region: u32, lane: Lane, wear: Option<&dyn WearLeveling>) -> u32 {
        let free = &mut self.regions[region as usize].free;
        let replaced = self.layout.superblock_of(self.next.from);
        let replaces = self.next.from < KEPT;
        let other = |&(_, superblock): &(usize, u32)| !(replaces && superblock == replaced);
        let mut suitable = free.iter().copied().enumerate().filter(other);
        let at = match wear {
            None => suitable.next().map(|(at, _)| at),
            Some(wear) => wear.choose(&self.blocks, &mut suitable, lane == Lane::Wear),
        };
        self.free -= 1;
        free.remove(at.unwrap_or(0)).expect("a reserve superblock")
    }

    /// The superblock is free, and erased or still to be.
    pub fn give_back(&mut self, region: u32, superblock: u32) {
        self.regions[region as usize].free.push_back(superblock);
        self.free += 1;
    }

    /// Makes a region what it is drawn to be: what is free, and what is at the host's frontier and that of collection.
    pub fn set_region(
        &mut self,
        region: u32,
        free: VecDeque<u32>,
        host: Frontier,
        collected: Frontier,
    ) {
        let frontiers = [host, collected, CLOSED, CLOSED];
        self.regions[region as usize] = Region { free, frontiers, valid_units: 0 };
    }

    /// Counts anew what is free and what holds data.
    pub fn recount(&mut self) {
        for r in 0..self.layout.regions {
            let valid = |s: u32| self.blocks.valid[s as usize] & !OPEN;
            let valid_units = self.superblocks_of(r).map(valid).sum();
            self.regions[r as usize].valid_units = valid_units;
            // Regions that have no program unit filled in part are passed over.
            self.note_partial(r);
        }
        self.free = self.regions.iter().map(|r| r.free.len() as u32).sum();
    }

    /// A region has a program unit that is filled in part.
    #[inline]
    pub fn note_partial(&mut self, region: u32) {
        self.partial[(region >> 6) as usize] |= 1 << (region & 63);
    }

    /// A region that may have program units filled in part, which will be closed now.
    #[inline]
    pub fn take_partial(&mut self) -> Option<u32> {
        let word = self.partial.iter().position(|&word| word != 0)?;
        let bit = self.partial[word].trailing_zeros();
        self.partial[word] &= self.partial[word] - 1;
        Some(word as u32 * 64 + bit)
    }

    /// All that decides what a region does next, for fingerprints.
    pub fn state_of(&self, region: u32, add: &mut dyn FnMut(u64)) {
        self.blocks
            .oldest_first(region)
            .chain(self.free_of(region))
            .for_each(|s| add(u64::from(s)));
        for f in &self.regions[region as usize].frontiers {
            add(u64::from(f.superblock));
            add(u64::from(f.offset));
        }
    }

    /// Checks what is counted against what superblocks hold. For tests.
    pub fn check(&self, counts: &[u32]) {
        for (s, &count) in counts.iter().enumerate() {
            assert_eq!(self.blocks.valid[s] & !OPEN, count, "valid units of superblock {s}");
        }
        let free: usize = self.regions.iter().map(|r| r.free.len()).sum();
        assert_eq!(self.free as usize, free, "free superblocks");
        for (r, region) in self.regions.iter().enumerate() {
            let sum: u32 = self.superblocks_of(r as u32).map(|s| counts[s as usize]).sum();
            assert_eq!(region.valid_units, sum, "valid units of region {r}");
            for &s in &region.free {
                assert_eq!(counts[s as usize], 0, "free superblock {s} holds data");
            }
        }
        for (r, ..) in self.open_programs() {
            let listed = self.partial[(r >> 6) as usize] >> (r & 63) & 1 != 0;
            assert!(listed, "region {r} has a program unit filled in part");
        }
    }
}
