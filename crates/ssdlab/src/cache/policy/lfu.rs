//! LFU: the frame used least often since it was filled; among equals the one that reached its count first.
//!
//! Shah, Mitra & Matani (2010): a list of frames per count, the counts in a list of their own. What has left is
//! forgotten, and begins again at one. Cost: constant; 12 bytes per frame and 24 per distinct count.

use super::{Policy, Sizes};
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
}

persistent!(Group { state { count, lower, higher, oldest, newest } });

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
}

impl Persist for Lfu {
    fn persist(&mut self, archive: &mut Archive<'_>) -> crate::error::Result<()> {
        let Lfu { places, groups, free, lowest } = self;
        groups.persist(archive)?;
        free.persist(archive)?;
        lowest.persist(archive)?;
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
        let places = vec![Place::default(); capacity as usize];
        Lfu { places, groups: Vec::new(), free: Vec::new(), lowest: NONE }
    }

    /// A group of `count` after `lower`, which may be none.
    fn open(&mut self, count: u32, lower: u32) -> u32 {
        let higher = if lower == NONE { self.lowest } else { self.groups[lower as usize].higher };
        let group = Group { count, lower, higher, oldest: NONE, newest: NONE };
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
        let Group { lower, higher, oldest, .. } = self.groups[number as usize];
        if oldest != NONE {
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
}

impl Policy for Lfu {
    const SIZES: Sizes = Sizes::Any;

    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        let group = self.unlink(slot);
        let Group { count, higher, oldest, .. } = self.groups[group as usize];
        let count = count.saturating_add(1);
        if higher != NONE && self.groups[higher as usize].count == count {
            self.append(higher, slot);
        } else if oldest == NONE {
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
        let mut group = self.lowest;
        while group != NONE {
            let mut slot = self.groups[group as usize].oldest;
            while slot != NONE && !may(slot) {
                slot = self.places[slot as usize].newer;
            }
            if slot != NONE {
                self.remove(names, slot);
                names.release(slot);
                return Some(slot);
            }
            group = self.groups[group as usize].higher;
        }
        None
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
    }

    fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
            + self.groups.capacity() * size_of::<Group>()
            + self.free.capacity() * size_of::<u32>()
    }
}
