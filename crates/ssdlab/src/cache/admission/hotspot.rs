//! Hotspot: blocks of those stretches come in that are high in a multiqueue of what misses.
//!
//! The half of dm-cache's smq that promotes, after Linux Documentation/admin-guide/device-mapper/cache-policies.rst:
//! stretches of 16 blocks, a quarter as many of them as the cache has frames but 1024 at least, on 64 levels. A
//! stretch that misses, the first time in a period, rises: faster while the queue tells little, as the share of
//! its uses says that are of the upper quarter. How many of the upper levels are let in follows from the
//! same, and from the cache's hits. While the cache has room, more is let in. A period is of as many misses as the
//! queue has stretches, since nothing here knows the time (there: a second), and a hit is one on whatever level.

use super::{Admission, Asked};
use crate::cache::directory::Directory;
use crate::cache::levels::Levels;
use crate::error::{Error, Result};

/// Blocks of a stretch.
const STRETCH: u64 = 16;
const STRETCHES_MIN: u32 = 1024;
/// Levels let in of 64, by sixteenths of the cache's uses that hit.
const LET_IN: [u8; 17] = [1, 1, 1, 2, 4, 6, 7, 8, 7, 6, 4, 4, 3, 3, 2, 2, 1];

/// Uses that told something, and others.
#[derive(Default)]
struct Telling {
    yes: u64,
    no: u64,
}

impl Telling {
    fn count(&mut self, told: bool) {
        *(if told { &mut self.yes } else { &mut self.no }) += 1;
    }

    /// Sixteenths of the uses that told something.
    fn sixteenths(&self) -> u64 {
        (self.yes * 16).checked_div(self.yes + self.no).unwrap_or(0)
    }
}

struct Hotspot {
    names: Directory,
    levels: Levels,
    queue: Telling,
    cache: Telling,
    jump: u8,
    /// From this level on blocks come in.
    from: u8,
}

pub fn build(asked: Asked<'_>) -> Result<Box<dyn Admission>> {
    if let Some(text) = asked.value {
        return Err(Error::value(format!("hotspot:{text}"), "hotspot alone: it takes no value"));
    }
    if asked.objects {
        return Err(Error::value("hotspot", "a trace of blocks: objects have no neighbours"));
    }
    let stretches = (asked.frames / 4).max(STRETCHES_MIN);
    let levels = Levels::new(stretches);
    let names = Directory::new(stretches, 0);
    let (queue, cache) = (Telling::default(), Telling::default());
    let mut new = Hotspot { names, levels, queue, cache, jump: 4, from: 0 };
    new.set(false);
    Ok(Box::new(new))
}

impl Hotspot {
    /// From which level on blocks come in.
    fn set(&mut self, full: bool) {
        let cache = self.cache.sixteenths() as usize;
        let levels = if full { LET_IN[cache] } else { self.levels.count() / 2 };
        let doubt = match self.queue.sixteenths() {
            0 => 4,
            1 => 2,
            _ => 1,
        };
        self.from = self.levels.count() - (levels / doubt).max(1);
        self.jump = doubt;
    }

    /// A stretch missed; its level.
    fn rise(&mut self, stretch: u64) -> u8 {
        let Some(entry) = self.names.find(stretch) else {
            self.queue.count(false);
            let entry = self.names.vacant().unwrap_or_else(|| {
                let lowest = self.levels.lowest_that(|_| true).expect("a full queue");
                self.levels.unlink(lowest);
                self.names.release(lowest);
                lowest
            });
            self.names.insert(stretch, entry);
            self.levels.push(0, entry);
            return 0;
        };
        let level = self.levels.level(entry);
        self.queue.count(level >= self.levels.count() / 4 * 3);
        if !self.levels.rise(entry, self.jump) {
            self.levels.carry(entry, level);
        }
        self.levels.level(entry)
    }
}

impl Admission for Hotspot {
    fn admits(&mut self, key: u64, _bytes: u32, used: f64) -> bool {
        self.cache.count(false);
        let level = self.rise(key / STRETCH);
        if self.levels.tick() {
            self.set(used >= 1.0);
            (self.queue, self.cache) = (Telling::default(), Telling::default());
        }
        level >= self.from
    }

    fn hit(&mut self) {
        self.cache.count(true);
    }
}
