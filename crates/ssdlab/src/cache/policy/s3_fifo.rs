//! S3-FIFO: a small FIFO for what is new, a main FIFO with second chances for what was used there, and the keys that
//! left the small one unused (ghosts), which come back into the main one.
//!
//! Yang et al. (2023). Small 10 %, ghosts 90 % of the frames, two uses to move on, counts up to 3, as in
//! libCacheSim 0.3.5: before the cache has been full, what the small queue has no room for goes to the main one.
//! A small queue has room for one frame at least. Cost: constant on average; 1.9 entries per frame.

use super::{Parameters, Policy, part};
use crate::cache::directory::Directory;
use crate::cache::frames::{Cache, Frames};
use crate::cache::links::Links;
use crate::persist::persistent;
use crate::rng::Stream;

const SMALL: u32 = 0;
const MAIN: u32 = 1;
const GHOSTS: u32 = 2;

const USES_MAX: u8 = 3;
/// Beside the count of uses: the frame is in the main queue.
const IN_MAIN: u8 = 1 << 7;

pub struct S3Fifo {
    links: Links,
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
    state { links, small, main, was_full }
    parts { uses }
    built { small_limit, main_limit, ghost_limit, promote_after }
});

pub fn build(capacity: u32, parameters: &Parameters, _stream: Stream) -> Box<dyn Frames> {
    let ghost_limit = part(capacity, parameters.ghosts);
    let small_limit = part(capacity, parameters.small).max(1);
    let policy = S3Fifo {
        // One more: the ghost of the key to come is still there when its victim becomes one.
        links: Links::new(capacity + ghost_limit + 1, 3),
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
        let mut slot = self.links.oldest(SMALL);
        while !self.links.is_end(slot) {
            let newer = self.links.newer(slot);
            if self.uses[slot as usize] >= self.promote_after {
                self.links.renew(MAIN, slot);
                self.uses[slot as usize] = IN_MAIN;
                self.small -= 1;
                self.main += 1;
            } else if may(slot) {
                self.small -= 1;
                return Some(slot);
            }
            slot = newer;
        }
        None
    }

    /// The oldest of the main queue that was not used; those used before it begin again with a use less.
    #[inline]
    fn evict_main(&mut self, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let mut slot = self.links.oldest(MAIN);
        // Every round takes a use from each; what remains after the last may not be taken.
        let mut rest = u64::from(self.main) * (u64::from(USES_MAX) + 1);
        while rest > 0 {
            if self.links.is_end(slot) {
                slot = self.links.oldest(MAIN);
            }
            let newer = self.links.newer(slot);
            if self.uses[slot as usize] > IN_MAIN {
                self.uses[slot as usize] -= 1;
                self.links.renew(MAIN, slot);
            } else if may(slot) {
                self.main -= 1;
                return Some(slot);
            }
            slot = newer;
            rest -= 1;
        }
        None
    }
}

impl Policy for S3Fifo {
    #[inline]
    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        let uses = &mut self.uses[slot as usize];
        if *uses & USES_MAX < USES_MAX {
            *uses += 1;
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
        self.links.unlink(slot);
        if self.uses[slot as usize] & IN_MAIN != 0 || self.ghost_limit == 0 {
            names.release(slot);
            return Some(slot);
        }
        if names.ghosts() - u32::from(ghost.is_some()) >= self.ghost_limit {
            let oldest = self.links.oldest_that(GHOSTS, |one| Some(one) != ghost).expect("a ghost");
            self.links.unlink(oldest);
            names.forget(oldest);
        }
        let left = names.release_to_ghost(slot);
        self.links.push(GHOSTS, left);
        Some(slot)
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, slot: u32, ghost: Option<u32>) {
        if let Some(ghost) = ghost {
            self.links.unlink(ghost);
        }
        let to_main = ghost.is_some() || !self.was_full && self.small >= self.small_limit;
        if to_main {
            self.links.push(MAIN, slot);
            self.uses[slot as usize] = IN_MAIN;
            self.main += 1;
        } else {
            self.links.push(SMALL, slot);
            self.uses[slot as usize] = 0;
            self.small += 1;
        }
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.links.unlink(slot);
        if self.uses[slot as usize] & IN_MAIN != 0 {
            self.main -= 1;
        } else {
            self.small -= 1;
        }
    }

    fn bytes(&self) -> usize {
        self.links.bytes() + self.uses.capacity()
    }
}
