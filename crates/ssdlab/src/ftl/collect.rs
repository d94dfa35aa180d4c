//! Garbage collection: making room in a region.

use super::Sink;
use super::append::Unit;
use super::blocks::OPEN;
use super::mapping::Mapping;
use super::page_map::{PageMap, Settings};
use super::region::Region;
use crate::nand::{Cause, NONE};
use crate::persist::persistent;

/// How foreground collection is spread over host writes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// A host write that finds no room waits for whole superblocks to be collected.
    Blocking,
    /// Each host write carries its share of the copying, so that a superblock is ready in time.
    Paced,
    /// Collection goes in batches: `ftl.gc.batch` says when they begin and end, and how fast they go.
    Periodic,
}

impl Settings {
    /// Superblocks that a region keeps free for collection while the host writes.
    pub fn reserve(&self) -> u32 {
        self.low + u32::from(self.pace == Pace::Paced)
    }

    /// Superblocks of a region that are being written, at most, in native mode.
    pub fn frontiers(&self) -> u32 {
        1 + u32::from(self.separate_frontier) + u32::from(self.moves_for_wear)
    }
}

/// A collection under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Collecting {
    pub(super) victim: u32,
    /// Next offset to look at.
    pub(super) cursor: u32,
    /// Valid units at the start, and units that the collection gains.
    valid: u32,
    gain: u32,
    /// Paced: copies owed, times `gain`.
    owed: u64,
    pub(super) cause: Cause,
}

persistent!(Collecting { state { victim, cursor, valid, gain, owed, cause } });

impl Collecting {
    /// The same of another victim with its valid units at the same offsets.
    pub(super) fn of(self, victim: u32) -> Self {
        Collecting { victim, ..self }
    }

    /// Where it is, as one number.
    pub(super) fn position(&self) -> u64 {
        u64::from(self.victim) << 32 ^ u64::from(self.cursor) << 16 ^ self.owed
    }
}

impl PageMap {
    /// Lets the next host unit, of so many physical ones, find room in `region`.
    #[inline]
    pub(super) fn make_room<S: Sink>(&mut self, region: u32, length: u32, sink: &mut S) {
        let r = &self.regions[region as usize];
        if r.leveling.is_some() {
            self.pace_leveling(region, length, sink);
        }
        let r = &self.regions[region as usize];
        match self.settings.pace {
            Pace::Blocking => {}
            Pace::Paced => {
                if r.collecting.is_some() || r.free.len() as u32 <= self.settings.low + 1 {
                    self.pace(region, length, sink);
                }
            }
            Pace::Periodic => self.carry_batch(region, length, sink),
        }
        loop {
            if length > 1 {
                self.close_short(region, length, Cause::HostWrite, sink);
            }
            if !self.needs_room(&self.regions[region as usize]) {
                return;
            }
            self.collect_one(region, sink);
        }
    }

    #[inline]
    fn needs_room(&self, r: &Region) -> bool {
        r.host.superblock == NONE && r.free.len() as u32 <= self.settings.low
    }

    /// Finishes the collection or the levelling under way, or collects one superblock.
    fn collect_one<S: Sink>(&mut self, region: u32, sink: &mut S) {
        let r = &self.regions[region as usize];
        if r.collecting.is_none() {
            // What moves for wear's sake may be all that there is to gain from.
            if r.leveling.is_some() {
                return self.move_for_wear(region, u32::MAX, sink);
            }
            let victim = self.pick_victim(region);
            self.begin(region, victim, Cause::Collection);
        }
        self.move_units(region, u32::MAX, sink);
    }

    /// Carries the share of a host unit of so many physical ones in the collection under way.
    fn pace<S: Sink>(&mut self, region: u32, length: u32, sink: &mut S) {
        if self.regions[region as usize].collecting.is_none() {
            if self.blocks.closed(region) == 0 {
                return;
            }
            let victim = self.pick_victim(region);
            self.begin(region, victim, Cause::Collection);
        }
        let Some(c) = &mut self.regions[region as usize].collecting else { return };
        c.owed += u64::from(c.valid) * u64::from(length);
        // Paid in what a mapping unit takes at most.
        let granules = u64::from(self.layout.granules());
        let (owed, gain) = (c.owed, u64::from(c.gain) * granules);
        let times = owed.checked_div(gain).unwrap_or(u64::MAX);
        c.owed -= times.min(owed) * gain;
        let units = times.saturating_mul(granules).min(u64::from(u32::MAX)) as u32;
        self.move_units(region, units, sink);
        self.refill_reserve(region, sink);
    }

    /// Collects ahead of need while the host is quiet; `true` if there was anything to do.
    pub fn collect_idle<S: Sink>(&mut self, sink: &mut S) -> bool {
        let mut worked = false;
        for region in 0..self.layout.regions {
            for _ in 0..self.settings.idle_superblocks {
                if !self.collect_one_idle(region, sink) {
                    break;
                }
                worked = true;
            }
        }
        worked
    }

    fn collect_one_idle<S: Sink>(&mut self, region: u32, sink: &mut S) -> bool {
        let r = &self.regions[region as usize];
        if r.leveling.is_some() && r.collecting.is_none() {
            self.move_for_wear(region, u32::MAX, sink);
            return true;
        }
        let free = r.free.len() as u32;
        let wanted =
            free < self.settings.high.max(self.idle_wish(region)) && self.blocks.closed(region) > 0;
        if !wanted && r.collecting.is_none() {
            return false;
        }
        if r.collecting.is_none() {
            let victim = self.pick_victim(region);
            // Without a program unit's worth of invalid units it would be copied for nothing.
            if !self.gains(victim) {
                return false;
            }
            // For the SLC cache not more is copied than is gained.
            let units = self.layout.data_units_per_superblock();
            if free >= self.settings.high && self.blocks.valid[victim as usize] * 2 > units {
                return false;
            }
            self.begin(region, victim, Cause::Collection);
        }
        self.move_units(region, u32::MAX, sink);
        true
    }

    pub(super) fn begin(&mut self, region: u32, victim: u32, cause: Cause) {
        let valid = self.blocks.valid[victim as usize];
        self.blocks.reopen(region, victim);
        let gain = self.layout.data_units_per_superblock() - valid;
        let begun = Some(Collecting { victim, cursor: 0, valid, gain, owed: 0, cause });
        if cause == Cause::Wear {
            self.regions[region as usize].leveling = begun;
            self.counters.wear_moves += 1;
        } else {
            self.regions[region as usize].collecting = begun;
            self.counters.collections += 1;
        }
    }

    /// Moves at least so many units of what is being collected, and levels wear when that is erased.
    pub(super) fn move_units<S: Sink>(&mut self, region: u32, units: u32, sink: &mut S) {
        let Some(c) = self.regions[region as usize].collecting else { return };
        let left = self.move_on(region, c, units, sink);
        self.regions[region as usize].collecting = left;
        if left.is_none() {
            self.level_wear(region, sink);
        }
    }

    /// Moves at least `units` valid units of the victim (to the end of a program unit), and erases
    /// it when all have moved. Answers what is left to do.
    fn move_on<S: Sink>(
        &mut self,
        region: u32,
        c: Collecting,
        units: u32,
        sink: &mut S,
    ) -> Option<Collecting> {
        let cursor = if self.copies_within_die() {
            self.copy_within_die(region, c, units, sink)
        } else {
            self.copy_through_programs(region, c, units, sink)
        };
        if self.blocks.valid[c.victim as usize] > OPEN {
            return Some(Collecting { cursor, ..c });
        }
        // What moved must be in flash before its old place is erased.
        if self.layout.units_per_program() > 1 {
            self.pad(region, self.lane_of(c.cause), c.cause, sink);
        }
        self.erase(region, c.victim, c.cause, sink);
        None
    }

    /// The next valid unit of the victim at or after `offset`, as an offset.
    #[inline]
    pub(super) fn next_valid(&self, victim: u32, offset: u32) -> Option<u32> {
        let first = self.layout.first_unit(victim);
        let end = first + self.layout.units_per_superblock();
        let mut ppn = first + offset;
        while ppn < end {
            let word = self.valid[(ppn >> 6) as usize] >> (ppn & 63);
            if word != 0 {
                ppn += word.trailing_zeros();
                return (ppn < end).then(|| ppn - first);
            }
            ppn = (ppn | 63) + 1;
        }
        None
    }

    /// Moves the logical unit at `from` to the frontier; `reads` bring it, `PACKED` says whether units
    /// are packed.
    #[inline]
    pub(super) fn move_unit<S: Sink, const PACKED: bool>(
        &mut self,
        region: u32,
        from: u32,
        c: &Collecting,
        reads: [u32; 2],
        sink: &mut S,
    ) {
        let lpn = self.owner[from as usize];
        let units = if PACKED { self.length(lpn) } else { 1 };
        self.unmark(from, units);
        self.blocks.valid[c.victim as usize] -= units;
        self.regions[region as usize].valid_units -= units;
        self.counters.units_mapped -= u64::from(units);
        let unit = Unit::new(lpn).from(from, units);
        let to = self.append_unit::<S, PACKED>(region, unit, c.cause, reads, sink);
        self.copy_content(from, to, sink);
        if let Mapping::Cached(cached) = &mut self.mapping {
            cached.moved(region, lpn);
        }
    }

    /// The general case: a read brings all valid units of a program unit, programs wait for reads.
    fn copy_through_programs<S: Sink>(
        &mut self,
        region: u32,
        c: Collecting,
        units: u32,
        sink: &mut S,
    ) -> u32 {
        if self.packs() {
            return self.copy_packed(region, &c, units, sink);
        }
        let first = self.layout.first_unit(c.victim);
        let per_program = self.layout.units_per_program();
        let (mut cursor, mut moved) = (c.cursor, 0);
        while moved < units {
            let Some(offset) = self.next_valid(c.victim, cursor) else { break };
            let end = (offset / per_program + 1) * per_program;
            let together = (offset..end).filter(|&o| self.is_valid(first + o)).count() as u32;
            let read = sink.collect_read(self.layout.die_of(first + offset), together, c.cause);
            cursor = offset;
            while let Some(offset) = self.next_valid(c.victim, cursor).filter(|&o| o < end) {
                self.move_unit::<S, false>(region, first + offset, &c, [read, NONE], sink);
                cursor = offset + 1;
                moved += 1;
            }
            cursor = end;
        }
        cursor
    }

    fn erase<S: Sink>(&mut self, region: u32, superblock: u32, cause: Cause, sink: &mut S) {
        self.erase_blocks(region, superblock, cause, sink);
        self.regions[region as usize].free.push_back(superblock);
        self.free += 1;
    }

    /// Erases a superblock of which nothing is valid.
    pub(super) fn erase_blocks<S: Sink>(
        &mut self,
        region: u32,
        superblock: u32,
        cause: Cause,
        sink: &mut S,
    ) {
        if let Mapping::Cached(cached) = &mut self.mapping {
            cached.settle(region, sink);
        }
        self.erase_in_turn(superblock, cause, sink);
    }

    /// After an erase: begins to move what wear levelling picks, if anything. How fast that goes is up to the
    /// pace of collection; one superblock of a region at a time.
    pub(super) fn level_wear<S: Sink>(&mut self, region: u32, sink: &mut S) {
        let Some(wear) = &mut self.wear else { return };
        let r = &self.regions[region as usize];
        if r.leveling.is_some() || r.free.is_empty() {
            return;
        }
        let old = self.counters.host_units_written.saturating_sub(self.map.len() as u64);
        let mut free = r.free.iter().copied();
        let Some(superblock) = wear.pick(&self.blocks, region, &mut free, old) else {
            return;
        };
        self.begin(region, superblock, Cause::Wear);
        if self.settings.pace == Pace::Blocking {
            self.move_for_wear(region, u32::MAX, sink);
        } else {
            // Now that there is a superblock more to go to.
            self.pace_leveling(region, 1, sink);
        }
    }

    /// Moves as many units as the host writes, unless that could take the last superblock that collection needs.
    #[cold]
    fn pace_leveling<S: Sink>(&mut self, region: u32, length: u32, sink: &mut S) {
        let r = &self.regions[region as usize];
        let room = match r.wear.superblock {
            NONE => 0,
            _ => self.layout.units_per_superblock() - r.wear.offset,
        };
        // What is begun goes on to the end of a program unit, and of a mapping unit.
        let most = length + self.layout.units_per_program() + self.layout.granules();
        if r.free.len() as u32 > self.settings.low || room >= most {
            self.move_for_wear(region, length, sink);
        }
    }

    fn move_for_wear<S: Sink>(&mut self, region: u32, units: u32, sink: &mut S) {
        let Some(c) = self.regions[region as usize].leveling else { return };
        self.regions[region as usize].leveling = self.move_on(region, c, units, sink);
    }
}
