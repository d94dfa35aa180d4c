//! LRU: the frame not used for the longest time.
//!
//! Mattson et al. (1970). Cost: constant, a list is relinked at every hit; 8 bytes per frame.

use super::Policy;
use crate::cache::directory::Directory;
use crate::cache::links::Links;
use crate::persist::persistent;

pub struct Lru {
    links: Links,
}

persistent!(Lru { state { links } });

impl Lru {
    pub fn new(capacity: u32) -> Self {
        Lru { links: Links::new(capacity, 1) }
    }
}

impl Policy for Lru {
    #[inline]
    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        self.links.renew(0, slot);
    }

    #[inline]
    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let slot = self.links.oldest_that(0, may)?;
        self.links.unlink(slot);
        names.release(slot);
        Some(slot)
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, slot: u32, _ghost: Option<u32>) {
        self.links.push(0, slot);
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.links.unlink(slot);
    }

    fn bytes(&self) -> usize {
        self.links.bytes()
    }
}
