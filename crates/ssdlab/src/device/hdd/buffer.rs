//! The disk's RAM: segments of what was read and read ahead, and writes that wait for the platters.

use crate::persist::persistent;
use std::collections::BTreeMap;

/// A stretch of the disk that is in RAM.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    /// When it was used last, counted in uses.
    used: u64,
}

/// What was read, in a few stretches; the one used longest ago makes room.
pub struct Segments {
    list: Vec<Segment>,
    /// Sectors of a segment at most.
    room: u64,
    uses: u64,
}

persistent!(Segment { state { start, end, used } });
persistent!(Segments { state { uses } parts { list } built { room } });

impl Segments {
    /// `count` segments in `sectors` of RAM; none where that is nothing.
    pub fn new(sectors: u64, count: u32) -> Self {
        let room = sectors / u64::from(count.max(1));
        let count = if room == 0 { 0 } else { count as usize };
        Segments { list: vec![Segment::default(); count], room, uses: 0 }
    }

    /// Sectors of a segment at most.
    pub fn room(&self) -> u64 {
        self.room
    }

    /// The segment that holds all of `start..end`.
    pub fn holding(&self, start: u64, end: u64) -> Option<usize> {
        self.list.iter().position(|s| s.start <= start && end <= s.end)
    }

    /// The segment that ends where `start` lies, or before within it: what is read from there belongs to it.
    pub fn extending(&self, start: u64) -> Option<usize> {
        self.list.iter().position(|s| s.start < s.end && s.start <= start && start <= s.end)
    }

    /// Begins a segment at `start`, in place of the one used longest ago.
    pub fn begin(&mut self, start: u64) -> Option<usize> {
        let place = (0..self.list.len()).min_by_key(|&i| self.list[i].used)?;
        self.list[place] = Segment { start, end: start, used: 0 };
        self.touch(place);
        Some(place)
    }

    /// It is used.
    pub fn touch(&mut self, place: usize) {
        self.uses += 1;
        self.list[place].used = self.uses;
    }

    /// It reaches to `end` now; what was read first goes where there is no room.
    pub fn extend(&mut self, place: usize, end: u64) {
        let segment = &mut self.list[place];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end.saturating_sub(self.room));
    }

    /// First sector of the segment.
    pub fn start(&self, place: usize) -> u64 {
        self.list[place].start
    }

    /// Whether the segment holds something of `start..end`.
    pub fn overlaps(&self, place: usize, start: u64, end: u64) -> bool {
        self.list[place].start < end && start < self.list[place].end
    }

    /// `start..end` is written: what segments hold of it is old.
    pub fn invalidate(&mut self, start: u64, end: u64) {
        for segment in &mut self.list {
            if segment.start < end && start < segment.end {
                *segment = Segment::default();
            }
        }
    }

    /// All is forgotten.
    pub fn clear(&mut self) {
        self.list.fill(Segment::default());
    }
}

/// Writes that are in RAM only, as stretches that do not touch each other.
pub struct Dirty {
    /// End by start.
    stretches: BTreeMap<u64, u64>,
    sectors: u64,
}

persistent!(Dirty { state { stretches, sectors } });

impl Dirty {
    /// Nothing is waiting.
    pub fn new() -> Self {
        Dirty { stretches: BTreeMap::new(), sectors: 0 }
    }

    /// Sectors that wait.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Stretches that wait.
    pub fn stretches(&self) -> usize {
        self.stretches.len()
    }

    /// Whether `start..end` touches a stretch that waits, and so becomes a part of it.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        let last = self.stretches.range(..=end).next_back();
        last.is_some_and(|(_, &until)| until >= start)
    }

    /// Whether all of `start..end` is waiting.
    pub fn holds(&self, start: u64, end: u64) -> bool {
        let before = self.stretches.range(..=start).next_back();
        before.is_some_and(|(_, &until)| end <= until)
    }

    /// `start..end` is written; what it touches becomes one stretch with it.
    pub fn insert(&mut self, mut start: u64, mut end: u64) {
        while let Some((&first, &until)) = self.stretches.range(..=end).next_back()
            && until >= start
        {
            self.stretches.remove(&first);
            self.sectors -= until - first;
            (start, end) = (start.min(first), end.max(until));
        }
        self.stretches.insert(start, end);
        self.sectors += end - start;
    }

    /// The stretches nearest to `sector` on both sides, at most `each` of a side.
    pub fn near(&self, sector: u64, each: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let after = self.stretches.range(sector..).take(each);
        let before = self.stretches.range(..sector).rev().take(each);
        after.chain(before).map(|(&start, &end)| (start, end))
    }

    /// Takes the first `most` sectors of the stretch that begins at `start`; its end.
    pub fn take(&mut self, start: u64, most: u64) -> u64 {
        let until = self.stretches.remove(&start).expect("a stretch begins there");
        let end = until.min(start + most);
        if end < until {
            self.stretches.insert(end, until);
        }
        self.sectors -= end - start;
        end
    }

    /// All is forgotten.
    pub fn clear(&mut self) {
        self.stretches.clear();
        self.sectors = 0;
    }
}
