//! A multiqueue: entries on levels, each of them a list from the oldest to the newest.
//!
//! What is used rises, and the oldest of where it goes takes its place below, so that levels keep their lengths; from
//! time to time all get the same length. Sorting by use thus costs a few links at a use, and no count per entry.
//! After Linux Documentation/admin-guide/device-mapper/cache-policies.rst (smq).

use super::queue::Queue;
use crate::persist::persistent;

/// Levels of a queue of many entries.
const MOST: u32 = 64;

/// See the module.
pub struct Levels {
    queue: Queue,
    level: Vec<u8>,
    length: Vec<u32>,
    /// Entries that have risen in this period, a bit each.
    risen: Vec<u64>,
    uses: u32,
}

persistent!(Levels { state { queue, uses } parts { level, length, risen } });

impl Levels {
    /// For so many entries, none of them in it. A period has as many uses as there are entries.
    pub fn new(entries: u32) -> Self {
        let levels = entries.clamp(1, MOST);
        Levels {
            queue: Queue::new(entries, 0, levels),
            level: vec![0; entries as usize],
            length: vec![0; levels as usize],
            risen: vec![0; entries.div_ceil(64) as usize],
            uses: 0,
        }
    }

    /// Levels in all.
    pub fn count(&self) -> u8 {
        self.length.len() as u8
    }

    /// The level of an entry.
    pub fn level(&self, entry: u32) -> u8 {
        self.level[entry as usize]
    }

    /// An entry comes to a level.
    pub fn push(&mut self, level: u8, entry: u32) {
        self.queue.push(u32::from(level), entry);
        self.level[entry as usize] = level;
        self.length[usize::from(level)] += 1;
    }

    /// An entry leaves.
    pub fn unlink(&mut self, entry: u32) {
        self.queue.remove(entry);
        let level = usize::from(self.level(entry));
        self.length[level] -= 1;
        self.risen[entry as usize / 64] &= !(1 << (entry % 64));
    }

    /// An entry is used: the first time in a period it rises by so many levels. Whether it was the first time.
    pub fn rise(&mut self, entry: u32, by: u8) -> bool {
        let bit = 1 << (entry % 64);
        let word = &mut self.risen[entry as usize / 64];
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        let old = self.level(entry);
        let new = old.saturating_add(by).min(self.count() - 1);
        if new > old
            && let Some(other) = self.queue.oldest(u32::from(new))
        {
            self.carry(other, old);
        }
        self.carry(entry, new);
        true
    }

    /// Makes an entry the newest of a level.
    pub fn carry(&mut self, entry: u32, to: u8) {
        self.queue.renew(u32::from(to), entry);
        self.moved(entry, to);
    }

    fn moved(&mut self, entry: u32, to: u8) {
        let from = std::mem::replace(&mut self.level[entry as usize], to);
        self.length[usize::from(from)] -= 1;
        self.length[usize::from(to)] += 1;
    }

    /// An entry is not looked at by [`Levels::lowest_that`] from now on, or is again.
    pub fn pin(&mut self, entry: u32, pinned: bool) {
        self.queue.pin(entry, pinned);
    }

    /// Counts a use of the queue; at the end of a period all levels get the same length. Whether it was the end.
    pub fn tick(&mut self) -> bool {
        self.uses += 1;
        let ends = self.uses >= self.level.len() as u32;
        if ends {
            self.uses = 0;
            self.risen.fill(0);
            self.even_out();
        }
        ends
    }

    /// What a level lacks is the oldest of those above; what it has too much are its newest.
    fn even_out(&mut self) {
        let (all, levels) = (self.length.iter().sum::<u32>(), self.length.len());
        for at in 0..levels - 1 {
            // The rest of the division goes to the levels at the top.
            let target = all / levels as u32;
            while self.length[at] < target {
                let above = (at + 1..levels).find(|&level| self.length[level] > 0);
                let Some(above) = above else { return };
                self.carry(self.queue.oldest(above as u32).expect("it has one"), at as u8);
            }
            while self.length[at] > target {
                let newest = self.queue.newest(at as u32).expect("one too many");
                self.queue.make_oldest(at as u32 + 1, newest);
                self.moved(newest, at as u8 + 1);
            }
        }
    }

    /// The oldest of the lowest level that has one of which `may` holds.
    pub fn lowest_that(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut levels = (0..self.length.len()).filter(|&level| self.length[level] > 0);
        levels.find_map(|level| self.queue.oldest_that(level as u32, &mut may))
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> usize {
        self.queue.bytes() + self.level.capacity() + self.risen.capacity() * 8
    }
}
