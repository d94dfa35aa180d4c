//! S3-FIFO: a small FIFO for what is new, a main FIFO with second chances for what was used there, and the keys that
//! left the small one unused (ghosts), which come back into the main one.
//!
//! Yang et al. (2023). Small 10 %, ghosts 90 % of the frames, two uses to move on, counts up to 3, as in
//! libCacheSim 0.3.5: before the cache has been full, what the small queue has no room for goes to the main one.
//! A small queue has room for one frame at least. Cost: constant on average; 1.9 entries per frame, and 8 bytes in a
//! device that pins frames.

use super::{Parameters, Policy, part};
use crate::cache::directory::Directory;
use crate::cache::frames::{Cache, Frames};
use crate::cache::queue::Queue;
use crate::persist::persistent;
use crate::rng::Stream;

const SMALL: u32 = 0;
const MAIN: u32 = 1;
const GHOSTS: u32 = 2;

const USES_MAX: u8 = 3;
/// Beside the count of uses: the frame is in the main queue.
const IN_MAIN: u8 = 1 << 7;
/// It is pinned.
const PINNED: u8 = 1 << 6;

pub struct S3Fifo {
    queue: Queue,
    uses: Vec<u8>,
    small: u32,
    main: u32,
    was_full: bool,
    small_limit: u32,
    main_limit: u32,
    ghost_limit: u32,
    promote_after: u8,
}

persistent!(S3Fifo {
    state { queue, small, main, was_full }
    parts { uses }
    built { small_limit, main_limit, ghost_limit, promote_after }
});

pub fn build(capacity: u32, parameters: &Parameters, _stream: Stream) -> Box<dyn Frames> {
    let ghost_limit = part(capacity, parameters.ghosts);
    let small_limit = part(capacity, parameters.small).max(1);
    let policy = S3Fifo {
        // One more: the ghost of the key to come is still there when its victim becomes one.
        queue: Queue::new(capacity, ghost_limit + 1, 3),
        uses: vec![0; capacity as usize],
        small: 0,
        main: 0,
        was_full: false,
        small_limit,
        main_limit: capacity - small_limit,
        ghost_limit,
        promote_after: parameters.promote_after.clamp(1, USES_MAX),
    };
    Cache::boxed(capacity, ghost_limit + 1, policy)
}

impl S3Fifo {
    /// The oldest of the small queue that was used too little; those used enough before it go to the main queue.
    #[inline]
    fn evict_small(&mut self, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        loop {
            let (uses, enough) = (&self.uses, self.promote_after);
            let moves = |slot: u32| uses[slot as usize] & USES_MAX >= enough;
            let slot = self.queue.take_oldest(SMALL, |slot| moves(slot) || may(slot))?;
            self.small -= 1;
            if !moves(slot) {
                return Some(slot);
            }
            self.uses[slot as usize] = IN_MAIN | self.uses[slot as usize] & PINNED;
            self.main += 1;
            self.push_main(slot);
        }
    }

    /// The oldest of the main queue that was not used; those used before it begin again with a use less.
    #[inline]
    fn evict_main(&mut self, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        loop {
            let uses = &self.uses;
            let used = |slot: u32| uses[slot as usize] & USES_MAX > 0;
            let slot = self.queue.take_oldest(MAIN, |slot| used(slot) || may(slot))?;
            if !used(slot) {
                self.main -= 1;
                return Some(slot);
            }
            self.uses[slot as usize] -= 1;
            self.push_main(slot);
        }
    }

    #[inline]
    fn push_main(&mut self, slot: u32) {
        self.queue.push(MAIN, slot);
        self.hold(slot);
    }

    /// A pinned frame is of no interest to a search as long as its uses do not move it.
    #[inline]
    fn hold(&mut self, slot: u32) {
        let uses = self.uses[slot as usize];
        if uses & PINNED != 0 {
            let enough = if uses & IN_MAIN != 0 { 1 } else { self.promote_after };
            self.queue.pin(slot, uses & USES_MAX < enough);
        }
    }
}

impl Policy for S3Fifo {
    #[inline]
    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        let uses = &mut self.uses[slot as usize];
        if *uses & USES_MAX < USES_MAX {
            *uses += 1;
            self.hold(slot);
        }
    }

    #[inline]
    fn evict(
        &mut self,
        names: &mut Directory,
        ghost: Option<u32>,
        mut may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let may = &mut may;
        self.was_full = true;
        let from_main = self.main > self.main_limit || self.small == 0;
        let slot = if from_main {
            self.evict_main(may).or_else(|| self.evict_small(may))
        } else {
            self.evict_small(may).or_else(|| self.evict_main(may))
        }?;
        if self.uses[slot as usize] & IN_MAIN != 0 || self.ghost_limit == 0 {
            names.release(slot);
            return Some(slot);
        }
        if names.ghosts() - u32::from(ghost.is_some()) >= self.ghost_limit {
            let oldest = self.queue.take_oldest(GHOSTS, |one| Some(one) != ghost).expect("a ghost");
            names.forget(oldest);
        }
        let left = names.release_to_ghost(slot);
        self.queue.push(GHOSTS, left);
        Some(slot)
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, slot: u32, ghost: Option<u32>) {
        if let Some(ghost) = ghost {
            self.queue.remove(ghost);
        }
        let to_main = ghost.is_some() || !self.was_full && self.small >= self.small_limit;
        if to_main {
            self.queue.push(MAIN, slot);
            self.uses[slot as usize] = IN_MAIN;
            self.main += 1;
        } else {
            self.queue.push(SMALL, slot);
            self.uses[slot as usize] = 0;
            self.small += 1;
        }
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.queue.remove(slot);
        if self.uses[slot as usize] & IN_MAIN != 0 {
            self.main -= 1;
        } else {
            self.small -= 1;
        }
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        if pinned {
            self.uses[slot as usize] |= PINNED;
            self.hold(slot);
        } else {
            self.uses[slot as usize] &= !PINNED;
            self.queue.pin(slot, false);
        }
    }

    fn bytes(&self) -> usize {
        self.queue.bytes() + self.uses.capacity()
    }
}
