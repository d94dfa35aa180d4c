//! W-TinyLFU: what is new passes through a small LRU window; what leaves that comes into the main cache, a segmented
//! LRU, if it was used more often than what would have to leave there.
//!
//! Einziger, Friedman & Manes (2017). Window 1 %; of the main cache four fifths are protected, which a second use
//! there leads to. As in libCacheSim 0.3.5, uses are counted where a block comes in, is found in the main cache or
//! stands for admission, and halved after 32 uses in the main cache for each of its frames. Both segments are rounded
//! down, also as there: a frame that is left over makes probation longer than it may be, and what a use in probation
//! then pushes out of the protected segment costs the oldest its place at once, which the next that leaves the window
//! takes without being compared. A frame that may not be taken then is when it is needed. Cost: constant; a list
//! relinked and ten counters at a hit; 38 bytes per frame.

use super::sketch::Sketch;
use super::{Parameters, Policy, part};
use crate::cache::directory::Directory;
use crate::cache::frames::{Cache, Frames};
use crate::cache::queue::Queue;
use crate::persist::persistent;
use crate::rng::Stream;

const WINDOW: u8 = 0;
const PROBATION: u8 = 1;
const PROTECTED: u8 = 2;

/// Share of the main cache that is not protected.
const ON_PROBATION: f64 = 0.2;
/// And that is.
const PROTECTED_SHARE: f64 = 0.8;
/// Uses in the main cache for each of its frames, after which counts are halved.
const SAMPLE: u64 = 32;

pub struct WTinyLfu {
    queue: Queue,
    /// The list in which a frame is.
    list: Vec<u8>,
    length: [u32; 3],
    sketch: Sketch,
    uses: u64,
    /// Of the oldest on probation, those whose frames are free to be taken.
    outcast: u32,
    main_limit: u32,
    probation_limit: u32,
    protected_limit: u32,
}

persistent!(WTinyLfu {
    state { queue, length, sketch, uses, outcast }
    parts { list }
    built { main_limit, probation_limit, protected_limit }
});

pub fn build(capacity: u32, parameters: &Parameters, _stream: Stream) -> Box<dyn Frames> {
    let main_limit = capacity - part(capacity, parameters.window).max(1);
    let policy = WTinyLfu {
        queue: Queue::new(capacity, 0, 3),
        list: vec![WINDOW; capacity as usize],
        length: [0; 3],
        sketch: Sketch::new(main_limit),
        uses: 0,
        outcast: 0,
        main_limit,
        probation_limit: part(main_limit, ON_PROBATION).max(1),
        protected_limit: part(main_limit, PROTECTED_SHARE).max(1),
    };
    Cache::boxed(capacity, 0, policy)
}

impl WTinyLfu {
    fn joins(&mut self, list: u8, slot: u32) {
        self.list[slot as usize] = list;
        self.length[usize::from(list)] += 1;
    }

    fn leaves(&mut self, slot: u32) {
        self.length[usize::from(self.list[slot as usize])] -= 1;
        self.outcast = self.outcast.min(self.length[usize::from(PROBATION)]);
    }

    fn unlink(&mut self, slot: u32) {
        self.queue.remove(slot);
        self.leaves(slot);
    }

    /// From one list to another.
    fn shift(&mut self, list: u8, slot: u32) {
        self.queue.renew(u32::from(list), slot);
        self.leaves(slot);
        self.joins(list, slot);
    }

    /// Into the main cache, which has room.
    fn let_in(&mut self, slot: u32) {
        // Before the cache has been full, what probation has no room for is protected.
        let fits = self.length[usize::from(PROBATION)] < self.probation_limit
            || self.length[usize::from(PROTECTED)] >= self.protected_limit;
        self.shift(if fits { PROBATION } else { PROTECTED }, slot);
    }

    /// Releases the oldest on probation, if there are more than may be.
    fn cast_out(&mut self, names: &mut Directory, may: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.outcast == 0 {
            return None;
        }
        let slot = self.queue.oldest_that(u32::from(PROBATION), may)?;
        self.outcast -= 1;
        self.unlink(slot);
        names.release(slot);
        Some(slot)
    }

    fn in_main(&self) -> u32 {
        self.length[usize::from(PROBATION)] + self.length[usize::from(PROTECTED)]
    }

    /// A use on probation: protected from now on, in the place of what has been so for the longest time.
    fn protect(&mut self, slot: u32) {
        self.shift(PROTECTED, slot);
        if self.length[usize::from(PROTECTED)] > self.protected_limit {
            let oldest = self.queue.oldest(u32::from(PROTECTED)).expect("too many");
            self.shift(PROBATION, oldest);
            let here = self.length[usize::from(PROBATION)] - self.outcast;
            self.outcast += u32::from(here > self.probation_limit);
        }
    }
}

impl Policy for WTinyLfu {
    fn hit(&mut self, names: &mut Directory, slot: u32) {
        match self.list[slot as usize] {
            WINDOW => return self.queue.renew(u32::from(WINDOW), slot),
            PROTECTED => self.queue.renew(u32::from(PROTECTED), slot),
            _ => self.protect(slot),
        }
        self.sketch.add(names.key(slot));
        self.uses += 1;
        if self.uses >= SAMPLE * u64::from(self.main_limit) {
            self.uses = 0;
            self.sketch.halve();
        }
    }

    fn hit_freeing(
        &mut self,
        names: &mut Directory,
        slot: u32,
        may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        self.hit(names, slot);
        self.cast_out(names, may)
    }

    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        if let Some(outcast) = self.cast_out(names, &mut may) {
            return Some(outcast);
        }
        let slot = loop {
            let candidate = self.queue.oldest_that(u32::from(WINDOW), &mut may);
            if let Some(candidate) = candidate
                && self.in_main() < self.main_limit
            {
                self.let_in(candidate);
                self.sketch.add(names.key(candidate));
                continue;
            }
            let victim = self.queue.oldest_that(u32::from(PROBATION), &mut may);
            let victim = victim.or_else(|| self.queue.oldest_that(u32::from(PROTECTED), &mut may));
            let (Some(candidate), Some(victim)) = (candidate, victim) else {
                break candidate.or(victim)?;
            };
            let (new, old) = (names.key(candidate), names.key(victim));
            let better = self.sketch.count(new) > self.sketch.count(old);
            self.sketch.add(new);
            if !better {
                break candidate;
            }
            self.unlink(victim);
            self.let_in(candidate);
            names.release(victim);
            return Some(victim);
        };
        self.unlink(slot);
        names.release(slot);
        Some(slot)
    }

    fn admit(&mut self, _names: &mut Directory, slot: u32, _ghost: Option<u32>) {
        self.queue.push(u32::from(WINDOW), slot);
        self.joins(WINDOW, slot);
    }

    fn entered(&mut self, names: &mut Directory, slot: u32) {
        self.sketch.add(names.key(slot));
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.unlink(slot);
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        self.queue.pin(slot, pinned);
    }

    fn bytes(&self) -> usize {
        self.queue.bytes() + self.list.capacity() + self.sketch.bytes()
    }
}
