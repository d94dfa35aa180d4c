//! Extent map: entries of variable length in a table of bounded size.
//!
//! An entry is a run of units whose physical numbers differ by as much as their logical ones. Physical
//! numbers count along a superblock over all dies, so that a sequential write is one entry however
//! many dies it is spread over, and leave parity out. Units that hold no data do not end a run, but the flash where they
//! would lie is not used for anything else. An entry does not reach beyond its *segment*, an aligned
//! part of the logical space. A small random write splits an entry into three. When the table is full,
//! segments are merged until there is room: the segment with most to gain is read and rewritten in
//! order, filled up where it holds no data, and one entry replaces many.
//!
//! This is how Intel's X25-M is understood to work: its random writes slow down within minutes, long
//! before free blocks run out. After µ-FTL (Lee et al., 2008) for the entries, simplified: a flat
//! table instead of a tree in flash. Entries are counted, not stored: they follow from the page map.
//! Cost: constant for a change of a unit; the search for a segment looks at the maxima of groups of 64.

use super::{Drive, Parameters, refused};
use crate::error::Result;
use crate::ftl::{Layout, Pace, Scope};
use crate::nand::NONE;
use crate::units::Bytes;

const GROUP: usize = 64;
/// Entries that a write can add: what was one becomes three.
const SPLIT: u64 = 2;

/// The number of extents, by segment as far as merging could save them.
pub struct ExtentTable {
    /// Entries that the table holds.
    limit: u64,
    /// Extents there are.
    extents: u64,
    /// log2 of the units of a segment.
    shift: u32,
    /// Logical units.
    units: u32,
    layout: Layout,
    /// By segment: extents.
    of_segment: Vec<u32>,
    /// One bit for each unit that holds data.
    mapped: Vec<u64>,
    /// By group of segments: an upper bound of their extents.
    most: Vec<u32>,
    /// Extents of a segment that merging surely makes fewer.
    worth: u32,
    /// Segments merged.
    pub merges: u64,
}

/// Whether the unit `next` lies where the run that `unit` is in would have it; each is given as its
/// logical and physical number.
#[inline]
fn follows(unit: (u32, u32), next: (u32, u32)) -> bool {
    next.1.wrapping_sub(unit.1) == next.0 - unit.0
}

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
        if drive.scope != Scope::Drive {
            let message = "\"extent\" needs ftl.gc.scope = \"drive\": a run of consecutive units \
                           lies over all dies";
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
            extents: 0,
            shift: per_segment.ilog2(),
            units: drive.units,
            layout: drive.layout,
            of_segment: vec![0; segments as usize],
            mapped: vec![0; (drive.units as usize).div_ceil(64)],
            most: vec![0; (segments as usize).div_ceil(GROUP)],
            worth,
            merges: 0,
        })
    }

    /// Extents in the table.
    pub fn extents(&self) -> u64 {
        self.extents
    }

    /// Whether a write of a unit would still fit, whatever it splits.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.extents + SPLIT <= self.limit
    }

    /// The units of a segment.
    pub fn segment(&self, segment: u32) -> std::ops::Range<u32> {
        let end = (u64::from(segment) + 1) << self.shift;
        segment << self.shift..end.min(u64::from(self.units)) as u32
    }

    /// The first unit in `range` that holds data.
    fn first_in(&self, range: std::ops::Range<u32>) -> Option<u32> {
        let mut lpn = range.start;
        while lpn < range.end {
            let word = self.mapped[(lpn >> 6) as usize] >> (lpn & 63);
            if word != 0 {
                lpn += word.trailing_zeros();
                return (lpn < range.end).then_some(lpn);
            }
            lpn = (lpn | 63) + 1;
        }
        None
    }

    /// The last unit in `range` that holds data.
    fn last_in(&self, range: std::ops::Range<u32>) -> Option<u32> {
        let mut end = range.end;
        while end > range.start {
            let lpn = end - 1;
            let word = self.mapped[(lpn >> 6) as usize] << (63 - (lpn & 63));
            if word != 0 {
                let found = lpn - word.leading_zeros();
                return (found >= range.start).then_some(found);
            }
            end = lpn & !63;
        }
        None
    }

    /// Puts `lpn` at `ppn` in the map, or nowhere, and keeps count: of the runs that begin at `lpn` and
    /// at the next unit that holds data.
    #[inline]
    pub fn remap(&mut self, map: &mut [u32], lpn: u32, ppn: u32) {
        let segment = lpn >> self.shift;
        let units = self.segment(segment);
        let place = |n: u32| (n, self.layout.data_number(map[n as usize]));
        let before = self.last_in(units.start..lpn).map(place);
        let after = self.first_in(lpn + 1..units.end).map(place);
        let begins = |unit: Option<(u32, u32)>, last: Option<(u32, u32)>| match (unit, last) {
            (None, _) => 0,
            (Some(_), None) => 1,
            (Some((n, at)), Some((m, behind))) => u32::from(!follows((m, behind), (n, at))),
        };
        let count = |at: u32| {
            let this = (at != NONE).then(|| (lpn, self.layout.data_number(at)));
            begins(this, before) + begins(after, this.or(before))
        };
        let (old, new) = (count(map[lpn as usize]), count(ppn));
        map[lpn as usize] = ppn;
        let bit = 1 << (lpn & 63);
        let word = &mut self.mapped[(lpn >> 6) as usize];
        *word = if ppn == NONE { *word & !bit } else { *word | bit };
        self.extents = self.extents + u64::from(new) - u64::from(old);
        let extents = &mut self.of_segment[segment as usize];
        *extents = *extents + new - old;
        let most = &mut self.most[segment as usize / GROUP];
        *most = (*most).max(*extents);
    }

    /// The first unit of a segment that holds data, and the unit after the last.
    pub fn in_use(&self, segment: u32) -> std::ops::Range<u32> {
        let units = self.segment(segment);
        let first = self.first_in(units.clone()).unwrap_or(units.end);
        first..self.last_in(units).map_or(first, |last| last + 1)
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
        self.extents = 0;
        self.of_segment.fill(0);
        self.mapped.fill(0);
        self.most.fill(0);
    }

    pub(super) fn state(&self, add: &mut dyn FnMut(u64)) {
        self.of_segment.iter().chain(&self.most).for_each(|&n| add(u64::from(n)));
        [self.extents, self.merges].into_iter().for_each(add);
    }

    /// Checks the counts against the map.
    pub fn check(&self, map: &[u32]) {
        let mut extents = 0;
        for segment in 0..self.of_segment.len() as u32 {
            let (mut count, mut last) = (0, None);
            for lpn in self.segment(segment) {
                let ppn = map[lpn as usize];
                let bit = self.mapped[(lpn >> 6) as usize] >> (lpn & 63) & 1;
                assert_eq!(bit != 0, ppn != NONE, "bit of unit {lpn}");
                if ppn != NONE {
                    let this = (lpn, self.layout.data_number(ppn));
                    count += u32::from(!last.is_some_and(|last| follows(last, this)));
                    last = Some(this);
                }
            }
            assert_eq!(self.of_segment[segment as usize], count, "extents of segment {segment}");
            assert!(self.most[segment as usize / GROUP] >= count, "group of segment {segment}");
            extents += u64::from(count);
        }
        assert_eq!(self.extents, extents, "extents");
    }
}
