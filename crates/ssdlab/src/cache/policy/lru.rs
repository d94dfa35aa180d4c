//! LRU: the frame not used for the longest time.
//!
//! Mattson et al. (1970). Cost: constant, a list is relinked at every hit; 8 bytes per frame, 16 in a device that
//! spares frames.

use super::{Policy, Sizes};
use crate::cache::directory::Directory;
use crate::cache::line::Line;
use crate::persist::persistent;

pub struct Lru {
    line: Line,
}

persistent!(Lru { state { line } });

impl Lru {
    pub fn new(capacity: u32) -> Self {
        Lru { line: Line::new(capacity) }
    }
}

impl Policy for Lru {
    const SIZES: Sizes = Sizes::Any;

    #[inline]
    fn hit(&mut self, _names: &mut Directory, slot: u32) {
        self.line.renew(slot);
    }

    #[inline]
    fn evict(
        &mut self,
        names: &mut Directory,
        _ghost: Option<u32>,
        may: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let slot = self.line.take_oldest(may)?;
        names.release(slot);
        Some(slot)
    }

    #[inline]
    fn admit(&mut self, _names: &mut Directory, slot: u32, _ghost: Option<u32>) {
        self.line.push(slot);
    }

    fn remove(&mut self, _names: &mut Directory, slot: u32) {
        self.line.remove(slot);
    }

    fn spare(&mut self, slot: u32, spared: bool) {
        self.line.spare(slot, spared);
    }

    fn bytes(&self) -> usize {
        self.line.bytes()
    }
}
