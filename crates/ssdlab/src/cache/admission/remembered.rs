//! Keys that were refused, how often, the first forgotten first.

use crate::cache::directory::Directory;
use crate::cache::links::Links;
use crate::cache::policy::CAPACITY_MAX;

pub struct Remembered {
    names: Directory,
    line: Links,
    count: Vec<u32>,
    /// Whether a key that is let in keeps its place and is counted anew, or is forgotten.
    keeps: bool,
}

impl Remembered {
    /// Room for `times` as many keys as there are frames; `keeps`: also for those that were let in.
    pub fn new(frames: u32, times: f64, keeps: bool) -> Self {
        let room = (f64::from(frames) * times).clamp(1.0, f64::from(CAPACITY_MAX)) as u32;
        let names = Directory::new(room, 0);
        Remembered { names, line: Links::new(room, 1), count: vec![0; room as usize], keeps }
    }

    /// How often a key missed, this time included; it is let in once that is `enough`.
    pub fn misses(&mut self, key: u64, enough: u32) -> u32 {
        let known = self.names.find(key);
        let count = known.map_or(0, |slot| self.count[slot as usize]) + 1;
        match known {
            Some(slot) if count < enough => self.count[slot as usize] = count,
            Some(slot) if self.keeps => self.count[slot as usize] = 0,
            Some(slot) => {
                self.line.unlink(slot);
                self.names.release(slot);
                self.names.give_back(slot);
            }
            None if count < enough => {
                let slot = self.names.vacant().unwrap_or_else(|| {
                    let oldest = self.line.oldest(0);
                    self.line.unlink(oldest);
                    self.names.release(oldest);
                    oldest
                });
                self.names.insert(key, slot);
                self.line.push(0, slot);
                self.count[slot as usize] = count;
            }
            None => {}
        }
        count
    }
}
