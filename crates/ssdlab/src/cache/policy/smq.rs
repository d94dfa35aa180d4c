//! SMQ: the oldest of the lowest of 64 levels. What comes in begins on the highest; a use, the first in a period, lifts
//! a frame by one level, and what it displaces goes down.
//!
//! After Linux Documentation/admin-guide/device-mapper/cache-policies.rst: the replacement of dm-cache's stochastic
//! multiqueue; its other half, which says what is let in, is the admission `hotspot`. A period is of as many uses as
//! there are frames, since nothing here knows the time (there: a minute). Cost: constant at a use, all frames
//! looked at once in a period; 9 bytes per frame and a bit.

use super::Policy;
use crate::cache::directory::Directory;
use crate::cache::levels::Levels;
use crate::persist::persistent;

pub struct Smq {
    levels: Levels,
}

persistent!(Smq { state { levels } });

impl Smq {
    pub fn new(capacity: u32) -> Self {
        Smq { levels: Levels::new(capacity) }
    }
}

impl Policy for Smq {
    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        self.levels.rise(slot, 1);
        self.levels.tick();
    }

    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let slot = self.levels.lowest_that(may)?;
        self.levels.unlink(slot);
        names.release(slot);
        Some(slot)
    }

    fn admit(&mut self, _names: &mut Directory, slot: u32, _ghost: Option<u32>) {
        self.levels.push(self.levels.count() - 1, slot);
        self.levels.tick();
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.levels.unlink(slot);
    }

    fn pin(&mut self, slot: u32, pinned: bool) {
        self.levels.pin(slot, pinned);
    }

    fn bytes(&self) -> usize {
        self.levels.bytes()
    }
}
