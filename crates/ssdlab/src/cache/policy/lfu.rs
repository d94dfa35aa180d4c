//! LFU: the frame used least often since it was filled; among equals the one that reached its count first.
//!
//! Shah, Mitra & Matani (2010): a list of frames per count, the counts in a list of their own. What has left is
//! forgotten, and begins again at one. Cost: constant;
//! 12 bytes per frame and 24 per distinct count, and 8 bytes per frame in a device that pins frames.

use super::{Policy, Sizes};
use crate::cache::aside::Aside;
use crate::cache::directory::Directory;
use crate::persist::{Archive, Part as _, Persist, persistent};

const NONE: u32 = u32::MAX;

/// A list of the frames of one count, between those of the next lower and higher counts.
#[derive(Clone, Copy, Default)]
struct Group {
    count: u32,
    lower: u32,
    higher: u32,
    oldest: u32,
    newest: u32,
    /// Frames of this count that are set aside, all of them older.
    aside: u32,
}

persistent!(Group { state { count, lower, higher, oldest, newest, aside } });

/// Place of a frame: older and newer neighbour in its group, and the group.
#[derive(Clone, Copy, Default)]
struct Place {
    older: u32,
    newer: u32,
    group: u32,
}

pub struct Lfu {
    places: Vec<Place>,
    groups: Vec<Group>,
    free: Vec<u32>,
    lowest: u32,
    /// Of one list, ranked by count.
    aside: Aside,
    /// The last number given to what is set aside.
    last: u64,
}

impl Persist for Lfu {
    fn persist(&mut self, archive: &mut Archive<'_>) -> crate::error::Result<()> {
        let Lfu { places, groups, free, lowest, aside, last } = self;
        groups.persist(archive)?;
        free.persist(archive)?;
        lowest.persist(archive)?;
        aside.persist(archive)?;
        last.persist(archive)?;
        // By columns: runs of equal numbers are short in the file.
        let columns: [fn(&mut Place) -> &mut u32; 3] =
            [|p| &mut p.older, |p| &mut p.newer, |p| &mut p.group];
        for column in columns {
            let mut numbers: Vec<u32> = places.iter_mut().map(|place| *column(place)).collect();
            numbers.persist_part(archive)?;
            places.iter_mut().zip(numbers).for_each(|(place, number)| *column(place) = number);
        }
        Ok(())
    }
}

impl Lfu {
    pub fn new(capacity: u32) -> Self {
        Lfu {
            places: vec![Place::default(); capacity as usize],
            groups: Vec::new(),
            free: Vec::new(),
            lowest: NONE,
            aside: Aside::new(capacity, 1),
            last: 0,
        }
    }

    /// A group of `count` after `lower`, which may be none.
    fn open(&mut self, count: u32, lower: u32) -> u32 {
        let higher = if lower == NONE { self.lowest } else { self.groups[lower as usize].higher };
        let group = Group { count, lower, higher, oldest: NONE, newest: NONE, aside: 0 };
        let number = self.free.pop().unwrap_or_else(|| {
            self.groups.push(group);
            self.groups.len() as u32 - 1
        });
        self.groups[number as usize] = group;
        if higher != NONE {
            self.groups[higher as usize].lower = number;
        }
        match lower {
            NONE => self.lowest = number,
            lower => self.groups[lower as usize].higher = number,
        }
        number
    }

    fn append(&mut self, number: u32, slot: u32) {
        let group = &mut self.groups[number as usize];
        let older = std::mem::replace(&mut group.newest, slot);
        if older == NONE {
            group.oldest = slot;
        } else {
            self.places[older as usize].newer = slot;
        }
        self.places[slot as usize] = Place { older, newer: NONE, group: number };
    }

    /// Takes a frame out of its group, which stays even if it is empty.
    fn unlink(&mut self, slot: u32) -> u32 {
        let Place { older, newer, group } = self.places[slot as usize];
        if self.aside.has(slot) {
            self.aside.take_back(slot);
            self.groups[group as usize].aside -= 1;
            return group;
        }
        if older == NONE {
            self.groups[group as usize].oldest = newer;
        } else {
            self.places[older as usize].newer = newer;
        }
        if newer == NONE {
            self.groups[group as usize].newest = older;
        } else {
            self.places[newer as usize].older = older;
        }
        group
    }

    /// Closes a group if it is empty.
    fn tidy(&mut self, number: u32) {
        let Group { lower, higher, oldest, aside, .. } = self.groups[number as usize];
        if oldest != NONE || aside > 0 {
            return;
        }
        if higher != NONE {
            self.groups[higher as usize].lower = lower;
        }
        match lower {
            NONE => self.lowest = higher,
            lower => self.groups[lower as usize].higher = higher,
        }
        self.free.push(number);
    }

    fn set_aside(&mut self, slot: u32) {
        let number = self.unlink(slot);
        let group = &mut self.groups[number as usize];
        group.aside += 1;
        self.last += 1;
        self.aside.set(0, slot, group.count, self.last);
    }

    /// The first in the lists that is not pinned and of which `may` holds, of a count below `limit`.
    fn first_listed(&mut self, limit: u32, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let mut group = self.lowest;
        while group != NONE && self.groups[group as usize].count < limit {
            let mut slot = self.groups[group as usize].oldest;
            let mut refused = Vec::new();
            while slot != NONE {
                let newer = self.places[slot as usize].newer;
                if self.aside.is_pinned(slot) {
                    // Older ones first: what is set aside is older than what is in the list.
                    refused.drain(..).for_each(|older| self.set_aside(older));
                    self.set_aside(slot);
                } else if may(slot) {
                    return Some(slot);
                } else {
                    refused.push(slot);
                }
                slot = newer;
            }
            group = self.groups[group as usize].higher;
        }
        None
    }
}

impl Policy for Lfu {
    const SIZES: Sizes = Sizes::Any;

    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        let group = self.unlink(slot);
        let Group { count, higher, oldest, aside, .. } = self.groups[group as usize];
        let count = count.saturating_add(1);
        if higher != NONE && self.groups[higher as usize].count == count {
            self.append(higher, slot);
        } else if oldest == NONE && aside == 0 {
            // It was alone: its group goes with it.
            self.groups[group as usize].count = count;
            self.append(group, slot);
            return;
        } else {
            let next = self.open(count, group);
            self.append(next, slot);
        }
        self.tidy(group);
    }

    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let aside = self.aside.first(0, &mut may);
        let limit = aside.map_or(u32::MAX, |(count, _)| count);
        let slot = self.first_listed(limit, &mut may).or(aside.map(|(_, slot)| slot))?;
        self.remove(names, slot);
        names.release(slot);
        Some(slot)
    }

    fn admit(&mut self, _names: &mut Directory, slot: u32, _ghost: Option<u32>) {
        let ones = self.lowest;
        let ones = if ones != NONE && self.groups[ones as usize].count == 1 {
            ones
        } else {
            self.open(1, NONE)
        };
        self.append(ones, slot);
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        let group = self.unlink(slot);
        self.tidy(group);
        self.aside.forget(slot);
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        let group = self.places[slot as usize].group;
        self.aside.pin(slot, pinned, self.groups[group as usize].count);
    }

    fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
            + self.groups.capacity() * size_of::<Group>()
            + self.free.capacity() * size_of::<u32>()
            + self.aside.bytes()
    }
}
