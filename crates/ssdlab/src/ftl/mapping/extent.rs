//! Extent map: entries of variable length in a table of bounded size.
//!
//! An entry says where a run of the logical space begins and where it lies; it ends where the next
//! begins. A run is of units whose physical numbers count up with their logical ones, or of units that
//! hold no data. Physical numbers count along a superblock over all dies, so that a sequential write is
//! one entry however many dies it is spread over, and leave parity out. An entry does not reach beyond its *segment*, an
//! aligned part of the logical space. A small random write splits an entry into three, on a drive that
//! holds no data too. When the table is full, segments are merged until there is room: the segment with
//! most entries is read and rewritten in order, with zeros where it held no data, and one entry replaces
//! many.
//!
//! A flat table may hold an entry for each *chunk* beside it: then only runs that begin within a chunk take room here,
//! and writes of whole chunks none.
//!
//! This is how Intel's X25-M is understood to work: its random writes slow down within minutes, long
//! before free blocks run out. After µ-FTL (Lee et al., 2008) for the entries, simplified: a flat
//! table instead of a tree in flash. Entries are counted, not stored: they follow from the page map.
//! Cost: constant for a change of a unit; the search for a segment looks at the maxima of groups of 64.

use super::{Drive, Parameters, refused};
use crate::error::Result;
use crate::ftl::places::Places;
use crate::ftl::{Layout, Pace, Scope};
use crate::nand::NONE;
use crate::persist::persistent;
use crate::units::Bytes;

const GROUP: usize = 64;
/// Entries that a change of a unit can add: what was one becomes three.
const SPLIT: u64 = 2;

/// The number of extents, by segment as far as merging could save them.
#[derive(Clone)]
pub struct ExtentTable {
    /// Entries that the table holds.
    limit: u64,
    /// Extents there are.
    extents: u64,
    /// log2 of the units of a segment.
    shift: u32,
    /// Units of a chunk, less one: where a chunk begins, the flat table has the entry.
    chunk: u32,
    /// Logical units.
    units: u32,
    layout: Layout,
    /// By segment: extents.
    of_segment: Vec<u32>,
    /// By group of segments: an upper bound of their extents.
    most: Vec<u32>,
    /// Extents of a segment that merging surely makes fewer.
    worth: u32,
    /// Segments merged.
    pub merges: u64,
}

persistent!(ExtentTable {
    state { extents, merges }
    parts { of_segment, most }
    built { limit, shift, chunk, units, layout, worth }
});

impl ExtentTable {
    /// An empty table.
    pub(super) fn new(parameters: &Parameters, drive: &Drive) -> Result<Self> {
        let unit_bytes = u64::from(drive.geometry.unit_bytes);
        let bytes = parameters.segment_bytes;
        if !bytes.is_power_of_two() || !(2 * unit_bytes..=1 << 30).contains(&bytes) {
            let message = format!(
                "found {}, expected a power of two from two mapping units ({}) to 1 GiB",
                Bytes(bytes),
                Bytes(2 * unit_bytes)
            );
            return Err(refused("segment", message));
        }
        let chunk_bytes = if parameters.chunk_bytes == 0 { bytes } else { parameters.chunk_bytes };
        if !chunk_bytes.is_power_of_two() || !(2 * unit_bytes..=bytes).contains(&chunk_bytes) {
            let message = format!(
                "found {}, expected a power of two from two mapping units ({}) to ftl.map.segment ({})",
                Bytes(chunk_bytes),
                Bytes(2 * unit_bytes),
                Bytes(bytes)
            );
            return Err(refused("chunk", message));
        }
        if drive.scope != Scope::Drive {
            let message = "\"extent\" needs ftl.gc.scope = \"drive\": a run of consecutive units \
                           lies over all dies";
            return Err(refused("kind", message.into()));
        }
        if drive.layout.granules() > 1 {
            let message = "\"extent\" does not go with an ftl.compression.granule below \
                           ftl.mapping_unit: units of a run must take the same room";
            return Err(refused("kind", message.into()));
        }
        if drive.settings.pace != Pace::Blocking && !drive.settings.separate_frontier {
            let pace = if drive.settings.pace == Pace::Paced { "paced" } else { "periodic" };
            let message = format!(
                "\"extent\" with ftl.gc.pace = \"{pace}\" needs ftl.gc.separate_frontier: \
                 what is collected would come between the units of every write"
            );
            return Err(refused("kind", message));
        }
        let per_segment = (bytes / unit_bytes) as u32;
        let segments = drive.units.div_ceil(per_segment);
        // A merged segment begins anew with each superblock that it reaches into.
        let worth = (per_segment - 1) / drive.layout.data_units_per_superblock() + 3;
        let least = u64::from(segments) * (u64::from(worth) + 1);
        if parameters.entries < least {
            let message = format!(
                "found {}, expected at least {least}: {} for each of {segments} segments",
                parameters.entries,
                worth + 1
            );
            return Err(refused("entries", message));
        }
        Ok(ExtentTable {
            limit: parameters.entries,
            extents: u64::from(segments),
            shift: per_segment.ilog2(),
            chunk: (chunk_bytes / unit_bytes) as u32 - 1,
            units: drive.units,
            layout: drive.layout,
            of_segment: vec![1; segments as usize],
            most: vec![1; (segments as usize).div_ceil(GROUP)],
            worth,
            merges: 0,
        })
    }

    /// Extents in the table.
    pub fn extents(&self) -> u64 {
        self.extents
    }

    /// Whether a change of a unit would still fit, whatever it splits.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.extents + SPLIT <= self.limit
    }

    /// The units of a segment.
    pub fn segment(&self, segment: u32) -> std::ops::Range<u32> {
        let end = (u64::from(segment) + 1) << self.shift;
        segment << self.shift..end.min(u64::from(self.units)) as u32
    }

    /// Whether a unit at `next` goes on with the run of the unit before it, at `last`.
    #[inline]
    fn follows(&self, last: u32, next: u32) -> bool {
        if last == NONE || next == NONE {
            return last == next;
        }
        self.layout.data_number(next) == self.layout.data_number(last) + 1
    }

    /// Whether a run that begins at `lpn` takes room: not where the flat table or a segment has its entry.
    #[inline]
    fn within(&self, lpn: u32) -> bool {
        lpn & self.chunk != 0 && lpn < self.units
    }

    /// `lpn` is about to be put at `ppn` in the map, or nowhere: keeps count of the runs that begin at `lpn` and
    /// behind it.
    #[inline]
    pub(in crate::ftl) fn count(&mut self, map: &Places, lpn: u32, ppn: u32) {
        let segment = lpn >> self.shift;
        let next = lpn + 1;
        let count = |at: u32| {
            u32::from(self.within(lpn) && !self.follows(map.at(lpn - 1), at))
                + u32::from(self.within(next) && !self.follows(at, map.at(next)))
        };
        let (old, new) = (count(map.at(lpn)), count(ppn));
        self.extents = self.extents + u64::from(new) - u64::from(old);
        let extents = &mut self.of_segment[segment as usize];
        *extents = *extents + new - old;
        let most = &mut self.most[segment as usize / GROUP];
        *most = (*most).max(*extents);
    }

    /// The segment with most to gain by merging, if there is any that is worth it.
    pub fn most_split(&mut self) -> Option<u32> {
        loop {
            let most = *self.most.iter().max()?;
            if most < self.worth {
                return None;
            }
            let group = self.most.iter().position(|&m| m == most)?;
            let first = group * GROUP;
            let group_of = &self.of_segment[first..self.of_segment.len().min(first + GROUP)];
            let actual = *group_of.iter().max()?;
            if actual == most {
                return group_of.iter().position(|&n| n == most).map(|at| (first + at) as u32);
            }
            self.most[group] = actual;
        }
    }

    /// Nothing holds data any more.
    pub fn purge(&mut self) {
        self.extents = self.of_segment.len() as u64;
        self.of_segment.fill(1);
        self.most.fill(1);
    }

    /// Checks the counts against the map.
    pub(in crate::ftl) fn check(&self, map: &Places) {
        let mut extents = 0;
        for segment in 0..self.of_segment.len() as u32 {
            let units = self.segment(segment);
            let begins = |&at: &u32| self.within(at) && !self.follows(map.at(at - 1), map.at(at));
            let count = 1 + (units.start + 1..units.end).filter(begins).count() as u32;
            assert_eq!(self.of_segment[segment as usize], count, "extents of segment {segment}");
            assert!(self.most[segment as usize / GROUP] >= count, "group of segment {segment}");
            extents += u64::from(count);
        }
        assert_eq!(self.extents, extents, "extents");
    }
}
