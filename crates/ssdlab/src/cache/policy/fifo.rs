//! FIFO: the frame that was filled first, used since or not.
//!
//! Belady (1966). Cost: constant, nothing at a hit; 8 bytes per frame.

use super::Policy;
use crate::cache::directory::Directory;
use crate::cache::links::Links;
use crate::persist::persistent;

pub struct Fifo {
    links: Links,
}

persistent!(Fifo { state { links } });

impl Fifo {
    pub fn new(capacity: u32) -> Self {
        Fifo { links: Links::new(capacity, 1) }
    }
}

impl Policy for Fifo {
    #[inline]
    fn hit(&mut self, _names: &mut Directory, _slot: u32) {}

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
