//! Reclaiming: what is being moved, and what will be moved next.

use super::copies::Copies;
use super::pace::Batches;
use super::relocate::{Relocation, Sensed};
use super::space::Space;
use super::victim::VictimPolicy;
use super::wear_leveling::WearLeveling;
use crate::nand::Cause;
use crate::persist::persistent;

/// What is going on in one region.
#[derive(Clone, Copy, Debug, Default)]
struct Region {
    /// For collection, for wear, and what is folded.
    jobs: [Option<Relocation>; 3],
    /// Copies of periodic collection that host units have carried and that are still to be made.
    owed: f64,
    /// Clean units, as periodic collection counted them last.
    clean: i64,
    /// What was read last, where the drive compresses.
    sensed: Sensed,
    /// Victims in a row that gained nothing, where the drive compresses.
    fruitless: u32,
}

/// How space is reclaimed.
///
/// Owns the policies that choose victims and level wear, the batches of periodic collection, and the superblocks that
/// are being moved: in each region one for collection, one for wear and one that is folded, at most. None of these is
/// free, at a frontier or closed.
pub(super) struct Reclaim {
    pub victim: Box<dyn VictimPolicy>,
    pub wear: Option<Box<dyn WearLeveling>>,
    pub batches: Option<Batches>,
    regions: Vec<Region>,
    /// The run of copies at hand, empty between two; kept for its memory.
    pub copies: Copies,
}

persistent!(Reclaim {
    state { victim }
    parts { wear, batches, regions }
    built { copies }
});
persistent!(Region { state { jobs, owed, clean, sensed, fruitless } });

/// Where a region has what it moves on this behalf.
#[inline]
fn slot(cause: Cause) -> usize {
    match cause {
        Cause::Wear => 1,
        Cause::Fold => 2,
        _ => 0,
    }
}

impl Reclaim {
    /// Nothing is being moved, in so many regions.
    pub fn new(
        victim: Box<dyn VictimPolicy>,
        wear: Option<Box<dyn WearLeveling>>,
        batches: Option<Batches>,
        regions: u32,
    ) -> Self {
        let regions = vec![Region::default(); regions as usize];
        Reclaim { victim, wear, batches, regions, copies: Copies::default() }
    }

    /// Nothing holds data any more.
    pub fn purge(&mut self, batches: Option<Batches>) {
        self.batches = batches;
        self.regions.fill(Region::default());
    }

    /// What a region moves on this behalf.
    #[inline]
    pub fn moving(&self, region: u32, cause: Cause) -> &Option<Relocation> {
        &self.regions[region as usize].jobs[slot(cause)]
    }

    /// The same, to change it.
    #[inline]
    pub fn job(&mut self, region: u32, cause: Cause) -> &mut Option<Relocation> {
        &mut self.regions[region as usize].jobs[slot(cause)]
    }

    /// Whether there is anything.
    #[inline]
    pub fn is_moving(&self, region: u32, cause: Cause) -> bool {
        self.moving(region, cause).is_some()
    }

    /// Copies of periodic collection that a region owes.
    pub fn owed(&mut self, region: u32) -> &mut f64 {
        &mut self.regions[region as usize].owed
    }

    /// Counts so many clean units in a region, for the batches of periodic collection.
    pub fn count_clean(&mut self, region: u32, clean: i64) {
        let before = std::mem::replace(&mut self.regions[region as usize].clean, clean);
        self.batches.iter_mut().for_each(|batches| batches.count(clean - before));
    }

    /// What a region read last, where the drive compresses.
    pub fn sensed(&mut self, region: u32) -> &mut Sensed {
        &mut self.regions[region as usize].sensed
    }

    /// The superblock of a region that is collected next: what the policy says. Units that no longer
    /// fit together as before can take more room than they had; a policy that finds nothing to gain
    /// for a whole round is overruled.
    pub fn pick_victim(&mut self, space: &mut Space, region: u32, now: u64) -> u32 {
        let victim = self.victim.pick(&mut space.blocks, region, now);
        if space.layout.granules() == 1 {
            return victim;
        }
        let fruitless = &mut self.regions[region as usize].fruitless;
        *fruitless = if space.gains(victim) { 0 } else { *fruitless + 1 };
        let overruled = *fruitless > space.blocks.closed(region);
        if overruled { space.blocks.least_valid(region) } else { victim }
    }

    /// A region is drawn to be where collection has come so far.
    pub fn resume(&mut self, region: u32, collecting: Option<Relocation>) {
        let jobs = [collecting, None, None];
        self.regions[region as usize] = Region { jobs, ..Region::default() };
    }

    /// All that decides what a region does next, for fingerprints.
    pub fn state_of(&self, region: u32, add: &mut dyn FnMut(u64)) {
        let r = &self.regions[region as usize];
        for job in r.jobs {
            add(job.map_or(0, |job| job.position()));
        }
        add(r.owed.to_bits());
        add(u64::from(r.sensed.program));
        add(u64::from(r.fruitless));
    }
}
